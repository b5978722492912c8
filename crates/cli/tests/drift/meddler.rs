//! Somebody else, who changes recorded targets behind our back, and what has to be found of it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::random::Random;
use crate::world::World;

/// What can be done to a recorded file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Longer,
    SameSize,
    Mode,
    Remove,
    ByLink,
    ByDirectory,
}

pub(crate) const EDITS: [Edit; 6] = [
    Edit::Longer,
    Edit::SameSize,
    Edit::Mode,
    Edit::Remove,
    Edit::ByLink,
    Edit::ByDirectory,
];

impl Edit {
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Longer | Self::SameSize => "changed",
            Self::Mode => "looks",
            Self::Remove => "gone",
            Self::ByLink | Self::ByDirectory => "replaced",
        }
    }

    pub(crate) fn make(self, path: &Path) {
        match self {
            Self::Longer => fs::write(path, "somebody else wrote this, and more\n").unwrap(),
            Self::SameSize => {
                let mut bytes = fs::read(path).unwrap();
                bytes[0] ^= 1;
                fs::write(path, bytes).unwrap();
            }
            Self::Mode => fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap(),
            Self::Remove => fs::remove_file(path).unwrap(),
            Self::ByLink => {
                fs::remove_file(path).unwrap();
                symlink("/dev/null", path).unwrap();
            }
            Self::ByDirectory => {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            }
        }
    }
}

/// Files that [`record`] leaves as they were recorded.
const FILES: [&str; 7] = [
    "src/one.txt",
    "src/two.txt",
    "src/three.txt",
    "made/copied.txt",
    "ran.txt",
    "restored.txt",
    "dressed.txt",
];

/// Records something of every kind: writes, an edit, a copied directory, a move, a mode, removals, undos and redos, a command, keys, rows.
pub(crate) fn record(world: &World) {
    for name in ["one", "two", "three"] {
        world.write(&format!("src/{name}.txt"), &format!("this is {name}\n"));
    }
    world.put("theirs/copied.txt", "copy me\n");
    world.does(&["cp", "-r", "theirs", "made"]);
    world.put("restored.txt", "it was here before\n");
    world.does(&["rm", "restored.txt"]);
    world.does(&["undo"]);
    world.put("dressed.txt", "with a mode\n");
    world.does(&["chmod", "640", "dressed.txt"]);
    world.write("dressed.txt", "with a mode and other bytes\n");
    world.put("gone.txt", "it goes\n");
    world.does(&["rm", "gone.txt"]);
    world.write("never.txt", "it comes and goes\n");
    world.does(&["undo"]);
    world.does(&["run", "--", "sh", "-c", "echo ran > ran.txt"]);
    world.does(&["undo"]);
    world.does(&["redo"]);
    world.put("app.toml", "[server]\nport = 1\nhost = \"a\"\n");
    world.does(&["set", "app.toml", "server.port", "8080"]);
    shop(world, "shop.db");
}

/// Makes a database, and changes a row of it.
pub(crate) fn shop(world: &World, name: &str) {
    let rows =
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT); INSERT INTO t VALUES(1,'a'),(2,'b');";
    world.does(&["sql", "--db", name, "--create", rows]);
    let update = "UPDATE t SET v = 'agent' WHERE id = 1";
    world.does(&["sql", "--db", name, update]);
}

/// Changes some of what was recorded, and says what has to be found: what, and of what kind.
pub(crate) fn meddle(world: &World, seed: u64) -> BTreeMap<String, String> {
    let mut random = Random::new(seed);
    let mut expected = BTreeMap::new();
    let mut note = |name: &str, kind: &str| {
        let subject = world.path(name).to_str().unwrap().to_owned();
        expected.insert(subject, kind.to_owned());
    };
    for name in FILES {
        if random.below(3) == 0 {
            let edit = *random.pick(&EDITS);
            edit.make(&world.path(name));
            note(name, edit.kind());
        }
    }
    if random.below(2) == 0 {
        world.put("made/new.txt", "nobody recorded this\n");
        note("made/new.txt", "added");
    }
    if random.below(2) == 0 {
        world.put("gone.txt", "it is back\n");
        note("gone.txt", "added");
    }
    if random.below(3) == 0 {
        world.put("never.txt", "somebody made it\n");
        note("never.txt", "added");
    }
    if random.below(2) == 0 {
        world.put("app.toml", "[server]\nport = 9\nhost = \"a\"\n");
        note("app.toml:server.port", "changed");
    }
    if random.below(2) == 0 {
        let database = rusqlite_free(world, "UPDATE t SET v = 'other' WHERE id = 1");
        assert!(database, "the row was not changed");
        note("shop.db:t.1", "changed");
    }
    // What nobody recorded is nobody's concern.
    world.put("theirs/more.txt", "more\n");
    world.put("unrelated.txt", "more\n");
    expected
}

/// Changes a row with a connection of its own.
pub(crate) fn rusqlite_free(world: &World, sql: &str) -> bool {
    let script = "import sqlite3,sys\nc=sqlite3.connect(sys.argv[1])\nc.execute(sys.argv[2])\nc.commit()\nc.close()";
    let path = world.path("shop.db");
    let mut python = std::process::Command::new("python3");
    let python = python.arg("-c").arg(script).arg(path).arg(sql);
    python.status().unwrap().success()
}
