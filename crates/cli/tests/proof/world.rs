//! A world of its own for every test: a directory to work in, a state directory beside it, and the real program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// What one name is, in full.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    kind: &'static str,
    mode: u32,
    owner: (u32, u32),
    mtime: (i64, i64),
    links: u64,
    content: Vec<u8>,
    /// Where a file has data, by start and end: the rest is holes.
    data: Vec<(u64, u64)>,
    /// Extended attributes, ACLs and capabilities included, as far as the one who looks may see them.
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The flags that `chattr` sets.
    flags: u32,
    /// Of a file with several names, the first of them in the tree.
    first_name: Option<Vec<u8>>,
}

impl std::fmt::Debug for Entry {
    // A failing test shows what differs, not a screen full of zeros.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let start = &self.content[..self.content.len().min(40)];
        write!(f, "{} {:04o} {:?}", self.kind, self.mode, self.owner)?;
        write!(f, " mtime {:?} links {}", self.mtime, self.links)?;
        write!(
            f,
            " {} bytes {:?}",
            self.content.len(),
            String::from_utf8_lossy(start)
        )?;
        write!(f, " data {:?} flags {:x}", self.data, self.flags)?;
        if let Some(first) = &self.first_name {
            write!(f, " is {:?}", String::from_utf8_lossy(first))?;
        }
        for (name, value) in &self.xattrs {
            write!(f, " {}={value:x?}", String::from_utf8_lossy(name))?;
        }
        Ok(())
    }
}

/// Everything below a directory, by relative path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<Vec<u8>, Entry>);

impl Tree {
    pub(crate) fn of(root: &Path) -> Self {
        let mut entries = BTreeMap::new();
        collect(root, root, &mut entries);
        let mut firsts = BTreeMap::new();
        let mut tree = BTreeMap::new();
        for (name, (number, mut entry)) in entries {
            if entry.links > 1 {
                let first = firsts.entry(number).or_insert_with(|| name.clone());
                entry.first_name = Some(first.clone());
            }
            tree.insert(name, entry);
        }
        Self(tree)
    }

    /// The same without times, to compare two runs.
    pub(crate) fn without_times(mut self) -> Self {
        for entry in self.0.values_mut() {
            entry.mtime = (0, 0);
        }
        self
    }

    /// The same without the times of directories: after a crash nobody can tell who changed them last.
    pub(crate) fn without_directory_times(mut self) -> Self {
        for entry in self
            .0
            .values_mut()
            .filter(|entry| entry.kind == "directory")
        {
            entry.mtime = (0, 0);
        }
        self
    }

    /// The same without which names are one file.
    pub(crate) fn without_links(mut self) -> Self {
        for entry in self.0.values_mut() {
            (entry.links, entry.first_name) = (1, None);
        }
        self
    }

    /// The same, counting only the names in it: a depot may hold another.
    pub(crate) fn counting_own_names(mut self) -> Self {
        let mut counts: BTreeMap<Vec<u8>, _> = BTreeMap::new();
        for first in self.0.values().filter_map(|entry| entry.first_name.clone()) {
            *counts.entry(first).or_insert(0) += 1;
        }
        for entry in self.0.values_mut() {
            let count = entry
                .first_name
                .as_ref()
                .and_then(|first| counts.get(first));
            entry.links = count.copied().unwrap_or(entry.links);
            entry.first_name.take_if(|_| count == Some(&1));
        }
        self
    }

    /// The same with some names as files of their own: so an overlay leaves what it copied out of a lower layer. The
    /// others keep the count of that layer.
    pub(crate) fn taken_apart(mut self, names: &[String]) -> Self {
        let mut firsts = BTreeMap::new();
        for (name, entry) in &mut self.0 {
            if names.iter().any(|apart| apart.as_bytes() == name) {
                (entry.links, entry.first_name) = (1, None);
            } else if let Some(first) = entry.first_name.take() {
                entry.first_name =
                    Some(firsts.entry(first).or_insert_with(|| name.clone()).clone());
            }
        }
        self
    }

    /// The same without holes in some files.
    pub(crate) fn filled(mut self, names: &[String]) -> Self {
        for (name, entry) in &mut self.0 {
            if names.iter().any(|filled| filled.as_bytes() == name) {
                entry.data = vec![(0, u64::try_from(entry.content.len()).unwrap())];
            }
        }
        self
    }

    /// The same without one name.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.0.remove(name.as_bytes());
        self
    }

    /// The same with everything at and below some names as another tree has it.
    pub(crate) fn with_those_of(mut self, other: &Self, names: &[&str]) -> Self {
        let is_below = |path: &[u8]| {
            names.iter().any(|name| {
                path.strip_prefix(name.as_bytes())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            })
        };
        self.0.retain(|path, _| !is_below(path));
        let theirs = other.0.iter().filter(|(path, _)| is_below(path));
        self.0
            .extend(theirs.map(|(path, entry)| (path.clone(), entry.clone())));
        self
    }

    pub(crate) fn mode_of(&self, name: &str) -> Option<u32> {
        self.0.get(name.as_bytes()).map(|entry| entry.mode)
    }

    /// Says what differs, for a failing test.
    pub(crate) fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        for name in self.0.keys().chain(other.0.keys()) {
            let (a, b) = (self.0.get(name), other.0.get(name));
            if a != b {
                lines.push(format!(
                    "{}:\n  {a:?}\n  {b:?}",
                    String::from_utf8_lossy(name)
                ));
            }
        }
        lines.dedup();
        lines.join("\n")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.0
            .keys()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }
}

/// Things by their names, each with the numbers of its device and inode.
type Numbered = BTreeMap<Vec<u8>, ((u64, u64), Entry)>;

fn collect(root: &Path, path: &Path, entries: &mut Numbered) {
    let found = fs::symlink_metadata(path).unwrap();
    let kind = found.file_type();
    let (kind, content) = if kind.is_symlink() {
        (
            "link",
            fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
        )
    } else if kind.is_dir() {
        ("directory", Vec::new())
    } else if kind.is_file() {
        ("file", fs::read(path).unwrap())
    } else if kind.is_fifo() {
        ("fifo", Vec::new())
    } else {
        ("special", Vec::new())
    };
    let name = path
        .strip_prefix(root)
        .unwrap()
        .as_os_str()
        .as_bytes()
        .to_vec();
    let entry = Entry {
        kind,
        mode: found.mode() & 0o7777,
        owner: (found.uid(), found.gid()),
        mtime: (found.mtime(), found.mtime_nsec()),
        links: if kind == "directory" {
            0
        } else {
            found.nlink()
        },
        content,
        data: data(path, kind),
        xattrs: xattrs(path),
        flags: flags(path, kind),
        first_name: None,
    };
    entries.insert(name, ((found.dev(), found.ino()), entry));
    if kind == "directory" {
        for entry in fs::read_dir(path).unwrap() {
            collect(root, &entry.unwrap().path(), entries);
        }
    }
}

/// Lists the parts of a file that are not holes.
fn data(path: &Path, kind: &str) -> Vec<(u64, u64)> {
    use rustix::fs::{SeekFrom, seek};
    let mut parts = Vec::new();
    if kind != "file" {
        return parts;
    }
    let file = fs::File::open(path).unwrap();
    let mut at = 0;
    while let Ok(start) = seek(&file, SeekFrom::Data(at)) {
        let end = seek(&file, SeekFrom::Hole(start)).unwrap();
        parts.push((start, end));
        at = end;
    }
    parts
}

fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0_u8; 4096];
    let length = rustix::fs::llistxattr(path, names.as_mut_slice()).unwrap_or(0);
    names.truncate(length);
    let value_of = |name: &[u8]| {
        let mut value = vec![0_u8; 4096];
        let read = rustix::fs::lgetxattr(path, OsStr::from_bytes(name), value.as_mut_slice());
        value.truncate(read.unwrap_or(0));
        (name.to_vec(), value)
    };
    let names = names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    let mut all: Vec<_> = names.map(value_of).collect();
    all.sort();
    all
}

fn flags(path: &Path, kind: &str) -> u32 {
    // Whether data is kept in the inode or by extents is the file system's own business.
    const OWN_BUSINESS: u32 = 0x1008_1000;
    if !matches!(kind, "file" | "directory") {
        return 0;
    }
    let file = fs::File::open(path).unwrap();
    rustix::fs::ioctl_getflags(file).map_or(0, |flags| flags.bits() & !OWN_BUSINESS)
}

/// A directory to work in and a state directory.
pub(crate) struct World {
    root: tempfile::TempDir,
    work: PathBuf,
    state: PathBuf,
    /// The ordinary user as whom the program runs.
    user: Option<u32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    /// A world in memory, if that can be had: for what is done thousands of times, each with its syncs.
    pub(crate) fn in_memory() -> Self {
        Self::below(&memory())
    }

    fn below(place: &Path) -> Self {
        let root = tempfile::tempdir_in(place).unwrap();
        let (work, state) = (root.path().join("work"), root.path().join("state"));
        fs::create_dir(&work).unwrap();
        Self {
            root,
            work,
            state,
            user: None,
        }
    }

    /// A world on a mounted file system, beside others that are there.
    pub(crate) fn on(disk: &crate::disk::Disk) -> Self {
        Self::below(disk.root())
    }

    /// A world whose work happens elsewhere, on a file system of its own.
    pub(crate) fn at(work: &Path, state: Option<&Path>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let state = state.map_or_else(|| root.path().join("state"), Path::to_path_buf);
        Self {
            root,
            work: work.to_path_buf(),
            state,
            user: None,
        }
    }

    /// The same, with the program run by an ordinary user who owns the directory to work in and the one that the state
    /// is in.
    pub(crate) fn of_user(mut self, user: u32) -> Self {
        self.user = Some(user);
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.root.path(), open.clone()).unwrap();
        // Where it was built an ordinary user may have no access.
        fs::copy(env!("CARGO_BIN_EXE_backout"), self.scratch("backout")).unwrap();
        fs::set_permissions(self.scratch("backout"), open).unwrap();
        fs::create_dir_all(&self.state).unwrap();
        for path in [self.root.path(), &self.state, &self.work] {
            chown(path, Some(user), Some(user)).unwrap();
        }
        self
    }

    /// A small project with everything that is easy to lose.
    pub(crate) fn with_project(self) -> Self {
        self.file("app.toml", "port = 8080\n");
        self.file("src/main.rs", "fn main() {}\n");
        self.file("src/lib.rs", "pub fn f() {}\n");
        fs::create_dir(self.path("src/empty")).unwrap();
        symlink("main.rs", self.path("src/link")).unwrap();
        symlink("nowhere", self.path("dangling")).unwrap();
        self.file("run.sh", "#!/bin/sh\n");
        fs::set_permissions(self.path("run.sh"), fs::Permissions::from_mode(0o4755)).unwrap();
        self.file("large.bin", &"0123456789abcdef".repeat(8 * 1024));
        self.file("one", "two names\n");
        fs::hard_link(self.path("one"), self.path("other")).unwrap();
        self
    }

    pub(crate) fn file(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.join(name)
    }

    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| format!("<{error}>"))
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree::of(&self.work)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.user {
            None => Command::new(env!("CARGO_BIN_EXE_backout")),
            Some(user) => {
                let mut command = Command::new("setpriv");
                let (user, group) = (format!("--reuid={user}"), format!("--regid={user}"));
                command.args([&user, &group, "--clear-groups", "--"]);
                command.arg(self.scratch("backout"));
                command
            }
        };
        command
            .args(arguments)
            .current_dir(&self.work)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("BACKOUT_STATE_DIR", &self.state)
            .env("HOME", self.root.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and gives what it said.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a command that must end with `code`, and gives what it complained of.
    pub(crate) fn fails(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        serde_json::from_str(&self.ok(&all)).unwrap()
    }

    /// The operations of the journal, newest first: (verb, status).
    pub(crate) fn operations(&self) -> Vec<(String, String)> {
        let log = self.json(&["log", "-n", "1000"]);
        let word = |op: &serde_json::Value, key: &str| op[key].as_str().unwrap().to_owned();
        let operations = log["operations"].as_array().unwrap();
        operations
            .iter()
            .map(|op| (word(op, "verb"), word(op, "status")))
            .collect()
    }

    /// Everything that must hold of the store after whatever happened.
    pub(crate) fn check_store(&self) {
        self.check().unwrap();
    }

    /// Says what does not hold of the store.
    pub(crate) fn check(&self) -> Result<(), String> {
        let nothing = serde_json::json!([]);
        let verified = self.run(&["verify"]);
        if !verified.status.success() {
            let log = said(&self.run(&["log", "-n", "20"]));
            return Err(format!("the store is not whole: {}{log}", said(&verified)));
        }
        let status = self.json(&["status"]);
        if status["unfinished"] != nothing {
            return Err(format!("unfinished: {}", status["unfinished"]));
        }
        if status["summary"]["leases"] != 0 {
            return Err(format!("{} leases", status["summary"]["leases"]));
        }
        let names = self.tree().names();
        let left: Vec<&String> = names
            .iter()
            .filter(|name| name.contains(".backout-"))
            .collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("left behind: {left:?}"))
        }
    }
}

/// A directory in memory, or else the usual one.
pub(crate) fn memory() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    }
}

pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}
