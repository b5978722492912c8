//! The suite of all drivers and what is special of keys, each against a real server.

mod conforms;
mod judged;
mod lost;
mod random;
mod special;
mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use backout_model::ports::{Driver, How, OnConflict, Prepared, PreparedUndo, Request};
use backout_model::{Armed, Effect, OperationId, OutcomeKind, Recipe, Strategy, Verb};
use backout_testkit::driver::{Harness, Steps};
use backout_testkit::fakes::{MemoryContents, MemoryJournal};
use backout_testkit::world::RedisServer;

use super::words::commands_of;
use super::{RedisDriver, RedisFault, RedisRequest, Server};

/// A server, what is in it, and what is asked of it.
struct World {
    server: Arc<RedisServer>,
    driver: RedisDriver,
    journal: MemoryJournal,
    contents: Arc<MemoryContents>,
    steps: Arc<Steps>,
    asked: String,
    /// What somebody else does to a key that is written.
    drift: Vec<&'static str>,
}

impl World {
    fn new(server: &Arc<RedisServer>, before: &[&str], asked: &str) -> Self {
        let mut client = server.client();
        client.ask(&["FLUSHALL"]);
        for line in before {
            let words: Vec<_> = line.split(' ').collect();
            client.ask(&words);
        }
        Self::new_beside(server, asked)
    }

    /// Another client of a server that is in use.
    fn new_beside(server: &Arc<RedisServer>, asked: &str) -> Self {
        let contents = Arc::new(MemoryContents::default());
        let steps = Arc::new(Steps::default());
        let counted = Arc::clone(&steps);
        let driver = RedisDriver::new(Arc::clone(&contents) as _, Arc::clone(&contents) as _)
            .with_step(Arc::new(move || {
                counted.pass().map_err(|_| RedisFault::Cut)
            }));
        Self {
            server: Arc::clone(server),
            driver,
            journal: MemoryJournal::new(Arc::clone(&contents)),
            contents,
            steps,
            asked: asked.to_owned(),
            drift: vec!["SET", "a", "somebody's"],
        }
    }

    fn asked(&self) -> RedisRequest {
        request(&self.server, &self.asked)
    }

    /// Looks at how an effect could be taken back.
    fn undo(&self, id: u64, effect: &Effect, on_conflict: OnConflict) -> PreparedUndo {
        let id = OperationId::from_bits(id);
        let undo = self.driver.prepare_undo(id, effect, on_conflict.into());
        undo.expect("looks")
    }

    fn carry_out(&self, id: u64, prepared: Prepared) -> Effect {
        let recipe = prepared.recipe.clone();
        let applied = self
            .driver
            .apply(self.arm(OperationId::from_bits(id), prepared));
        let completion = Some(applied.expect("applies").completion);
        Effect { recipe, completion }
    }

    fn write(&self, id: u64) -> Effect {
        let prepared = self.prepare(id).expect("prepares");
        self.carry_out(id, prepared)
    }

    fn prepare(&self, id: u64) -> Result<Prepared, backout_model::ports::DriverError> {
        let id = OperationId::from_bits(id);
        self.driver
            .prepare(id, &self.asked(), Strategy::Transaction)
    }
}

fn request(server: &RedisServer, text: &str) -> RedisRequest {
    let commands = commands_of(text.as_bytes()).unwrap();
    RedisRequest::new(Server::parse(&server.url()).unwrap(), commands).unwrap()
}

fn kinds(undo: &PreparedUndo) -> Vec<OutcomeKind> {
    undo.outcomes.iter().map(|it| it.kind.clone()).collect()
}

impl Harness for World {
    type Snapshot = BTreeMap<String, String>;

    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn request(&self) -> Box<dyn Request> {
        Box::new(self.asked())
    }

    fn snapshot(&self, _exactly: bool) -> Self::Snapshot {
        self.server.snapshot()
    }

    fn contents(&self, snapshot: &Self::Snapshot) -> BTreeSet<String> {
        snapshot
            .iter()
            .map(|(key, value)| format!("{key} {value}"))
            .collect()
    }

    fn arm(&self, id: OperationId, prepared: Prepared) -> Armed {
        self.journal.arm(id, Verb::Write, prepared)
    }

    fn release(&self, recipe: &Recipe) {
        self.contents.release(recipe);
    }

    fn drift(&self) -> bool {
        self.server.client().ask(&self.drift);
        true
    }

    fn fail_at_step(&self, at: Option<usize>, abandons: bool) {
        self.steps.fail_at(at, abandons);
    }

    fn steps_passed(&self) -> usize {
        self.steps.passed()
    }
}

/// Takes everything back that can be taken back.
const ANYWAY: How<'_> = How {
    is_partial: true,
    ..How::unfinished()
};
