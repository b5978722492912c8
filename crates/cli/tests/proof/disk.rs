//! Real file systems in a file, mounted through a loop device, or in memory. Needs root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system that goes away with the test.
pub(crate) struct Disk {
    directory: tempfile::TempDir,
}

impl Disk {
    /// A file system in memory of so many KiB.
    pub(crate) fn memory(kib: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], directory.path());
        Self { directory }
    }

    /// A real file system of so many MiB.
    pub(crate) fn of_kind(kind: &str, mib: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let image = tempfile::NamedTempFile::new().unwrap();
        image
            .as_file()
            .set_len(u64::from(mib) * 1024 * 1024)
            .unwrap();
        let path = image.path().to_str().unwrap();
        run(Command::new(format!("/sbin/mkfs.{kind}"))
            .arg("-q")
            .arg(path));
        mount(&["-o", "loop", path], directory.path());
        Self { directory }
    }

    /// An overlay whose lower layer a shell line makes.
    pub(crate) fn overlay(setting: &str) -> Self {
        let below = Self::memory(64 * 1024);
        let at = |name: &str| below.root().join(name);
        for name in ["lower/work", "upper", "index"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        run(Command::new("bash")
            .args(["-ec", setting])
            .current_dir(at("lower/work")));
        let directory = tempfile::tempdir().unwrap();
        let part = |name: &str| at(name).display().to_string();
        let options = format!(
            "index=off,lowerdir={},upperdir={},workdir={}",
            part("lower"),
            part("upper"),
            part("index")
        );
        run(Command::new("mount")
            .args(["-t", "overlay", "-o", &options, "overlay"])
            .arg(directory.path()));
        // What is mounted holds what is below it.
        drop(below);
        Self { directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("work")
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    /// Uses up all the space that is left.
    pub(crate) fn fill(&self) {
        use std::io::Write as _;
        let mut file = fs::File::create(self.root().join("filler")).unwrap();
        let block = vec![b'x'; 4096];
        while file.write_all(&block).is_ok() {}
        let _flushed = file.sync_all();
    }

    pub(crate) fn empty(&self) {
        fs::remove_file(self.root().join("filler")).unwrap();
    }

    pub(crate) fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        run(Command::new("mount")
            .args(["-o", &options])
            .arg(self.root()));
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _status = Command::new("umount").arg("-l").arg(self.root()).status();
    }
}

fn mount(arguments: &[&str], at: &Path) {
    run(Command::new("mount").args(arguments).arg(at));
    fs::create_dir(at.join("work")).unwrap();
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
