//! A driver that nobody else has: notes on a board, which is a map in memory. It shows what a driver needs, at the least.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, Fault, How, LookedAt, OnConflict, Outline,
    Prepared, PreparedUndo, Request, Scope, Staged, State,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, Key, OperationId, OperationKind,
    OutcomeKind, Reach, Recipe, Strategy, Target, TargetOutcome, Traits, Verb,
};
use serde::{Deserialize, Serialize};

pub(crate) const TOY: DriverName = DriverName::literal("toy");

/// What hangs on the board, shared by whoever looks at it.
pub(crate) type Board = Arc<Mutex<BTreeMap<String, String>>>;

#[derive(Debug, Default)]
pub(crate) struct Toy {
    pub(crate) board: Board,
    /// Strategies that cannot be prepared.
    pub(crate) cannot: Vec<Strategy>,
}

/// Hang a note up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Request for Note {
    fn driver(&self) -> DriverName {
        TOY
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        format!("note {}", self.name)
    }
}

/// What a note was and becomes: the recipe, and what is staged.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Swap {
    name: String,
    before: Option<String>,
    after: Option<String>,
}

impl Staged for Swap {}

#[derive(Debug)]
struct Unreadable(serde_json::Error);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the recipe cannot be read: {}", self.0)
    }
}

impl std::error::Error for Unreadable {}

impl Fault for Unreadable {}

#[derive(Debug)]
struct NoConnection(Strategy);

impl fmt::Display for NoConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no connection for a {}", self.0)
    }
}

impl std::error::Error for NoConnection {}

impl Fault for NoConnection {
    fn not_prepared(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Swap {
    fn of(effect: &Effect) -> Result<Self, DriverError> {
        let body = effect.recipe.body.read();
        body.map_err(|error| DriverError::new(Unreadable(error)))
    }

    fn target(&self) -> Target {
        let key = Key::in_space("board", &[&self.name]).unwrap();
        Target::new(key, Reach::Node)
    }

    fn prepared(self) -> Prepared {
        Prepared {
            recipe: Recipe {
                driver: TOY,
                version: 1,
                contents: Vec::new(),
                slots: Vec::new(),
                body: JsonText::of(&self).unwrap(),
            },
            strategy: Strategy::Snapshot,
            copied_bytes: 0,
            targets: vec![self.target()],
            contents: Vec::new(),
            is_noop: self.before == self.after,
            staged: Box::new(self),
            notes: Vec::new(),
        }
    }
}

impl Toy {
    fn now(&self, name: &str) -> Option<String> {
        self.board.lock().unwrap().get(name).cloned()
    }

    fn state(&self, swap: &Swap) -> State {
        let now = self.now(&swap.name);
        if now == swap.after {
            State::After
        } else if now == swap.before {
            State::Before
        } else {
            let why = "somebody wrote on it".to_owned();
            State::Other { why }
        }
    }
}

impl Driver for Toy {
    fn name(&self) -> DriverName {
        TOY
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let note: &Note = request.as_a()?;
        let key = Key::in_space("board", &[&note.name]).unwrap();
        Ok(Scope {
            targets: vec![Target::new(key, Reach::Node)],
            sources: Vec::new(),
            traits: Traits::of(OperationKind::ApiCall),
        })
    }

    fn repeatable(
        &self,
        _by: OperationId,
        request: &dyn Request,
    ) -> Result<Box<dyn Request>, DriverError> {
        let note: &Note = request.as_a()?;
        Ok(Box::new(note.clone()))
    }

    fn encode_request(&self, request: &dyn Request) -> Result<(Vec<u8>, Vec<Digest>), DriverError> {
        let note: &Note = request.as_a()?;
        let bytes = serde_json::to_vec(note);
        let bytes = bytes.map_err(|error| DriverError::new(Unreadable(error)))?;
        Ok((bytes, Vec::new()))
    }

    fn decode_request(&self, bytes: &[u8]) -> Result<Box<dyn Request>, DriverError> {
        let note: Result<Note, _> = serde_json::from_slice(bytes);
        let note = note.map_err(|error| DriverError::new(Unreadable(error)))?;
        Ok(Box::new(note))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        let swap: Result<Swap, _> = recipe.body.read();
        let swap = swap.map_err(|error| DriverError::new(Unreadable(error)))?;
        let all = format!("{:?} {:?} {:?}", swap.name, swap.before, swap.after);
        Ok(Digest::of(all.as_bytes()))
    }

    fn prepare(
        &self,
        _id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        if self.cannot.contains(&strategy) {
            return Err(DriverError::new(NoConnection(strategy)));
        }
        let note: &Note = request.as_a()?;
        let swap = Swap {
            name: note.name.clone(),
            before: self.now(&note.name),
            after: Some(note.text.clone()),
        };
        Ok(Prepared {
            strategy,
            ..swap.prepared()
        })
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let swap: Swap = staged.take()?;
        let mut board = self.board.lock().unwrap();
        match swap.after {
            Some(text) => board.insert(swap.name, text),
            None => board.remove(&swap.name),
        };
        Ok(Applied {
            completion: Completion::default(),
            durability: Durability::Power,
            unlike: Vec::new(),
        })
    }

    fn prepare_undo(
        &self,
        _id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let swap = Swap::of(effect)?;
        let now = self.now(&swap.name);
        let kind = match (self.state(&swap), how.on_conflict) {
            (State::Before, _) => OutcomeKind::AlreadyGone,
            (State::After, _) => OutcomeKind::Restored,
            (State::Other { why }, OnConflict::Force) => OutcomeKind::Overwritten { why },
            (State::Other { why }, _) => OutcomeKind::Conflict { why },
        };
        let outcomes = vec![TargetOutcome::new(swap.target(), kind.clone())];
        let after = if kind.is_taken_back() {
            swap.before
        } else {
            now.clone()
        };
        let back = Swap {
            name: swap.name,
            before: now,
            after,
        };
        Ok(PreparedUndo {
            prepared: back.prepared(),
            outcomes,
        })
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline {
            targets: vec![Swap::of(effect)?.target()],
            ..Outline::default()
        })
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let swap = Swap::of(effect)?;
        Ok(vec![Examined {
            target: swap.target(),
            state: self.state(&swap),
            change: 0,
            goes: swap.before.is_none(),
            lost: None,
            shared: None,
            strangers: Vec::new(),
            barred: None,
            has_come: false,
        }])
    }

    fn is_in_place(&self, effect: &Effect) -> Result<bool, DriverError> {
        Ok(self.state(&Swap::of(effect)?) == State::After)
    }

    fn check_kept(
        &self,
        _effect: &Effect,
        _is_needed: &dyn Fn(&Key) -> bool,
    ) -> Result<Vec<LookedAt>, DriverError> {
        Ok(Vec::new())
    }
}
