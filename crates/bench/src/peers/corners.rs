//! What a file system can hold besides bytes: each corner makes one such thing and tells whether it is still there.

use std::ffi::OsStr;
use std::fs::{self, File, FileTimes, Permissions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use crate::Failure;
use crate::process::run_well;

/// One thing that an undo can lose.
pub(super) struct Corner {
    pub(super) name: &'static str,
    /// Makes it in an empty directory.
    pub(super) make: fn(&Path) -> Result<(), Failure>,
    /// Whether it is there as it was made.
    pub(super) is_there: fn(&Path) -> bool,
    /// The file that a write replaces; none where only a removal makes sense.
    pub(super) written: Option<&'static str>,
}

const TEXT: &str = "what was there before\n";
const OWNER: u32 = 12_345;
const TIME: Duration = Duration::new(1_234_567_890, 123_456_789);
const SPARSE_BYTES: u64 = 8 << 20;

/// All corners.
pub(super) fn all() -> Vec<Corner> {
    [plain(), times(), links(), kinds()]
        .into_iter()
        .flatten()
        .collect()
}

fn plain() -> Vec<Corner> {
    vec![
        Corner {
            name: "content",
            make: |at| text(at, "file"),
            is_there: |at| has_text(at, "file"),
            written: Some("file"),
        },
        Corner {
            name: "setuid mode",
            make: |at| {
                text(at, "file")?;
                Ok(fs::set_permissions(
                    at.join("file"),
                    Permissions::from_mode(0o4751),
                )?)
            },
            is_there: |at| has(at, "file", |file| file.mode() & 0o7777 == 0o4751),
            written: Some("file"),
        },
        Corner {
            name: "owner",
            make: |at| {
                text(at, "file")?;
                // Without the right to it there is nothing to lose.
                let _given = std::os::unix::fs::chown(at.join("file"), Some(OWNER), Some(OWNER));
                Ok(())
            },
            is_there: |at| {
                has(at, "file", |file| file.uid() == OWNER) || !rustix::process::geteuid().is_root()
            },
            written: Some("file"),
        },
        Corner {
            name: "extended attribute",
            make: |at| {
                text(at, "file")?;
                let path = at.join("file");
                Ok(rustix::fs::setxattr(
                    path,
                    "user.note",
                    b"kept",
                    XattrFlags::empty(),
                )?)
            },
            is_there: |at| {
                let mut value = [0; 16];
                rustix::fs::getxattr(at.join("file"), "user.note", &mut value) == Ok(4)
            },
            written: Some("file"),
        },
    ]
}

fn times() -> Vec<Corner> {
    vec![
        Corner {
            name: "nanoseconds of the time",
            make: |at| {
                text(at, "file")?;
                set_time(&at.join("file"))
            },
            is_there: |at| has(at, "file", is_time),
            written: Some("file"),
        },
        Corner {
            name: "time of the directory",
            make: |at| {
                text(at, "file")?;
                set_time(at)
            },
            is_there: |at| has(at, ".", is_time),
            written: Some("file"),
        },
        Corner {
            name: "file ignored by git",
            make: |at| {
                fs::write(at.join(".gitignore"), "*.log\n")?;
                text(at, "debug.log")
            },
            is_there: |at| has_text(at, "debug.log"),
            written: Some("debug.log"),
        },
    ]
}

fn links() -> Vec<Corner> {
    vec![
        Corner {
            name: "hard link",
            make: |at| {
                text(at, "file")?;
                Ok(fs::hard_link(at.join("file"), at.join("other"))?)
            },
            is_there: |at| {
                let inode = |name| fs::metadata(at.join(name)).map(|file| file.ino()).ok();
                has_text(at, "file") && inode("file") == inode("other")
            },
            written: Some("file"),
        },
        Corner {
            name: "hole of a sparse file",
            make: |at| {
                let mut file = File::create(at.join("file"))?;
                file.seek(SeekFrom::Start(SPARSE_BYTES))?;
                Ok(file.write_all(b"end")?)
            },
            is_there: |at| {
                has(at, "file", |file| {
                    file.len() == SPARSE_BYTES + 3 && file.blocks() * 512 < SPARSE_BYTES / 2
                })
            },
            written: Some("file"),
        },
        Corner {
            name: "symbolic link",
            make: |at| Ok(std::os::unix::fs::symlink("nowhere", at.join("link"))?),
            is_there: |at| {
                fs::read_link(at.join("link")).is_ok_and(|to| to == Path::new("nowhere"))
            },
            written: None,
        },
    ]
}

fn kinds() -> Vec<Corner> {
    vec![
        Corner {
            name: "empty directory",
            make: |at| Ok(fs::create_dir(at.join("empty"))?),
            is_there: |at| has(at, "empty", fs::Metadata::is_dir),
            written: None,
        },
        Corner {
            name: "FIFO",
            make: |at| {
                let (kind, mode) = (FileType::Fifo, Mode::from_raw_mode(0o600));
                Ok(rustix::fs::mknodat(CWD, at.join("fifo"), kind, mode, 0)?)
            },
            is_there: |at| has(at, "fifo", |file| file.file_type().is_fifo()),
            written: None,
        },
        Corner {
            name: "name that is not UTF-8",
            make: |at| Ok(fs::write(at.join(OsStr::from_bytes(b"caf\xe9")), TEXT)?),
            is_there: |at| {
                fs::read(at.join(OsStr::from_bytes(b"caf\xe9")))
                    .is_ok_and(|is| is == TEXT.as_bytes())
            },
            written: None,
        },
        Corner {
            name: "nested git repository",
            make: |at| {
                text(at, "file")?;
                let mut init = Command::new("git");
                run_well(init.args(["init", "-q", "nested"]).current_dir(at))?;
                text(&at.join("nested"), "inner")
            },
            is_there: |at| {
                has_text(&at.join("nested"), "inner")
                    && has(at, "nested/.git/HEAD", fs::Metadata::is_file)
            },
            written: None,
        },
    ]
}

fn text(at: &Path, name: &str) -> Result<(), Failure> {
    Ok(fs::write(at.join(name), TEXT)?)
}

fn has_text(at: &Path, name: &str) -> bool {
    fs::read(at.join(name)).is_ok_and(|is| is == TEXT.as_bytes())
}

fn has(at: &Path, name: &str, test: impl Fn(&fs::Metadata) -> bool) -> bool {
    fs::symlink_metadata(at.join(name)).is_ok_and(|status| test(&status))
}

fn set_time(path: &Path) -> Result<(), Failure> {
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + TIME);
    Ok(File::open(path)?.set_times(times)?)
}

fn is_time(status: &fs::Metadata) -> bool {
    let (seconds, nanos) = (TIME.as_secs().cast_signed(), i64::from(TIME.subsec_nanos()));
    status.mtime() == seconds && status.mtime_nsec() == nanos
}
