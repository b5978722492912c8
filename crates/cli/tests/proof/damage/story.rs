//! A store with everything in it that can be hurt, and a world that knows what each operation must give back.

use std::fs;
use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use backout_engine::{
    Command, Context, Engine, EngineError, Finished, Settings, TaskCommand, UndoOptions,
    UndoReport, UndoWhat,
};
use backout_model::OperationId;

use crate::world::{Tree, World, memory};

/// One operation of the story.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) id: OperationId,
    /// The names that it changes.
    pub(crate) names: Vec<&'static str>,
    /// The world before it.
    pub(crate) before: Tree,
}

/// A world, what happened in it, and a store that remembers.
pub(crate) struct Story {
    pub(crate) world: World,
    /// Operations in effect, oldest first.
    pub(crate) told: Vec<Told>,
    _place: tempfile::TempDir,
}

impl Story {
    /// Small images, large ones in packs, kept inodes, differences, a task, an undone and an unfinished operation.
    pub(crate) fn new() -> Self {
        // Nothing here is about the disk, so it need not wait for one.
        let place = tempfile::tempdir_in(memory()).unwrap();
        let work = place.path().join("work");
        fs::create_dir(&work).unwrap();
        let world = World::at(&work, Some(&place.path().join("state"))).with_project();
        world.file("versions.txt", &lines(0));
        world.file("twin", &noise(1, 150_000));
        fs::hard_link(world.path("twin"), world.path("twin2")).unwrap();
        let mut story = Self {
            world,
            told: Vec::new(),
            _place: place,
        };
        story.tell();
        story
    }

    fn tell(&mut self) {
        let engine = self.engine().unwrap();
        for version in 1..=4 {
            self.write(&engine, "versions.txt", &lines(version));
        }
        self.write(&engine, "large.bin", "small now\n");
        self.step(&engine, &["twin", "twin2"], |path| {
            FileRequest::write(path, "a new one\n")
        });
        self.step(&engine, &["src"], |path| FileRequest::Remove {
            path,
            recursive: true,
        });
        engine
            .execute(Command::Gc {
                is_dry_run: false,
                compact: true,
            })
            .unwrap();
        drop(engine);
        self.fold();
        let task = |command| Command::Task(command);
        let engine = Engine::open(self.settings(), backout_drivers::local)
            .unwrap()
            .for_caller(Context {
                task: Some("work".parse().unwrap()),
                ..Context::default()
            });
        let begin = TaskCommand::Begin {
            id: Some("work".parse().unwrap()),
            owner_pid: None,
        };
        engine.execute(task(begin)).unwrap();
        self.write(&engine, "app.toml", "port = 1\n");
        self.write(&engine, "new.txt", "made in a task\n");
        let commit = TaskCommand::Commit {
            id: Some("work".parse().unwrap()),
        };
        engine.execute(task(commit)).unwrap();
        let engine = self.engine().unwrap();
        self.step(&engine, &["run.sh", "moved.sh"], |path| FileRequest::Move {
            to: path.with_file_name("moved.sh"),
            from: path,
            replace: false,
        });
        self.write(&engine, "one", "no longer two names\n");
        let undone = self.told.pop().unwrap().id;
        undo(&engine, undone).unwrap();
        self.write(&engine, "versions.txt", &lines(5));
        drop(engine);
        let mut crashing = self.world.command(&["write", "half.txt", "--text", "half"]);
        let output = crashing
            .env("BACKOUT_CRASH_AT", "engine.applied")
            .output()
            .unwrap();
        assert!(!output.status.success());
    }

    fn write(&mut self, engine: &Engine, name: &'static str, content: &str) {
        let names: &[&'static str] = if name == "one" {
            &["one", "other"]
        } else {
            &[]
        };
        let names = if names.is_empty() {
            vec![name]
        } else {
            names.to_vec()
        };
        self.step(engine, &names, |path| FileRequest::write(path, content));
    }

    fn step(
        &mut self,
        engine: &Engine,
        names: &[&'static str],
        request: impl FnOnce(PathBuf) -> FileRequest,
    ) {
        let before = self.world.tree();
        let finished: Finished = engine.write(&request(self.world.path(names[0]))).unwrap();
        self.told.push(Told {
            id: finished.id.unwrap(),
            names: names.to_vec(),
            before,
        });
    }

    /// Folds the log into the database, so that both hold something.
    fn fold(&self) {
        let raw = rusqlite::Connection::open(self.world.state().join("journal.sqlite")).unwrap();
        raw.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap();
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings::new(self.world.state())
    }

    pub(crate) fn engine(&self) -> Result<Engine, EngineError> {
        Engine::open(self.settings(), backout_drivers::local)
    }

    /// Says what an undo of these operations gave wrong, compared with the world before it; none if all is right.
    pub(crate) fn wrong(&self, before: &Tree, ids: &[OperationId]) -> Option<String> {
        let now = self.world.tree().without_directory_times();
        let before = before.clone().without_directory_times();
        let steps: Vec<&Told> = self
            .told
            .iter()
            .filter(|told| ids.contains(&told.id))
            .collect();
        let mut wanted = before;
        // The oldest comes last and has the last word.
        for told in steps.iter().rev() {
            wanted =
                wanted.with_those_of(&told.before.clone().without_directory_times(), &told.names);
        }
        (now != wanted).then(|| now.difference(&wanted))
    }
}

/// Takes one operation back.
pub(crate) fn undo(engine: &Engine, id: OperationId) -> Result<UndoReport, EngineError> {
    let what = UndoWhat::Operations(vec![id.to_string().parse().unwrap()]);
    let options = UndoOptions {
        committed: true,
        ..UndoOptions::default()
    };
    engine.undo(&what, &options)
}

fn lines(version: usize) -> String {
    let line = |number: usize| {
        let version = if number % 17 == version { version } else { 0 };
        format!(
            "line {number} of version {version}: {}\n",
            number * 7919 % 1013
        )
    };
    (0..120).map(line).collect()
}

/// Text that does not compress.
fn noise(seed: u64, length: usize) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b' ' + u8::try_from(state % 94).unwrap())
        })
        .collect()
}
