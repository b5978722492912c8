//! Both stores do what every store must do.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use backout_model::Digest;
use backout_model::ports::Store;
use backout_testkit::conformance::Kit;
use backout_testkit::{MemoryStore, TestClock};

/// A store of SQLite in a directory of its own.
struct Sqlite {
    directory: tempfile::TempDir,
    clock: Arc<TestClock>,
}

impl Sqlite {
    fn kit(clock: Arc<TestClock>) -> Box<dyn Kit> {
        let directory = tempfile::tempdir().unwrap();
        Box::new(Self { directory, clock })
    }

    fn run(&self, sql: &str, content: Digest) {
        let journal = self.directory.path().join("state/journal.sqlite");
        let raw = rusqlite::Connection::open(journal).unwrap();
        let bytes = content.as_bytes().as_slice();
        assert_eq!(raw.execute(sql, [bytes]).unwrap(), 1);
    }
}

impl Kit for Sqlite {
    fn open(&self) -> Arc<dyn Store> {
        let state = self.directory.path().join("state");
        let clock = Arc::clone(&self.clock);
        Arc::new(backout_storage::Store::open(&state, clock).unwrap())
    }

    fn hurt(&self, content: Digest) {
        let sql = "UPDATE content SET bytes = zeroblob(length(bytes)) WHERE digest = ?1";
        self.run(sql, content);
    }

    fn lose(&self, content: Digest) {
        self.run("DELETE FROM content WHERE digest = ?1", content);
    }
}

/// A store in memory, whose files are in a directory of its own.
struct Memory {
    store: MemoryStore,
    _directory: tempfile::TempDir,
}

impl Memory {
    fn kit(clock: Arc<TestClock>) -> Box<dyn Kit> {
        let directory = tempfile::tempdir().unwrap();
        let store = MemoryStore::new(&directory.path().join("state"), clock).unwrap();
        Box::new(Self {
            store,
            _directory: directory,
        })
    }
}

impl Kit for Memory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store.again())
    }

    fn hurt(&self, content: Digest) {
        self.store.hurt(content);
    }

    fn lose(&self, content: Digest) {
        self.store.lose(content);
    }
}

/// A store in memory whose changes stand in a file: each opening reads them anew, as another process would.
struct Shared {
    directory: tempfile::TempDir,
    clock: Arc<TestClock>,
}

impl Shared {
    fn kit(clock: Arc<TestClock>) -> Box<dyn Kit> {
        let directory = tempfile::tempdir().unwrap();
        Box::new(Self { directory, clock })
    }

    fn store(&self) -> MemoryStore {
        let clock = Arc::clone(&self.clock);
        MemoryStore::shared(&self.directory.path().join("state"), clock).unwrap()
    }
}

impl Kit for Shared {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store())
    }

    fn hurt(&self, content: Digest) {
        self.store().hurt(content);
    }

    fn lose(&self, content: Digest) {
        self.store().lose(content);
    }
}

mod sqlite {
    backout_testkit::store_conformance!(crate::Sqlite::kit);
}

mod memory {
    backout_testkit::store_conformance!(crate::Memory::kit);
}

mod shared {
    backout_testkit::store_conformance!(crate::Shared::kit);
}
