//! Effects of your own that are answered by code of your own, registered by name.
//!
//! A recipe never holds code. It holds the name of a [`CompensationHandler`] and JSON; any later process that registers a handler
//! of that name can take the effect back. A program without it reports the operation and keeps it, as for any driver that is not
//! there.
//!
//! Each handler is a driver of its own, `handler:NAME`. What it cannot tell is in doubt, and never guessed.

use std::fmt;
use std::sync::Arc;

use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, Fault, How, Outline, Prepared,
    PreparedUndo, Request, Scope, Staged, State,
};
use backout_model::{
    Armed, Completion, DriverName, Effect, JsonText, Key, OperationId, OperationKind, OutcomeKind,
    Reach, Recipe, Strategy, Target, TargetOutcome, Verb,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The newest version of a recipe's body.
const VERSION: u16 = 1;

/// What a handler found of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// It is there, and this is what [`CompensationHandler::act`] gave or would have given.
    There(Value),
    /// Nothing of the effect is in the world.
    NotThere,
    /// Nobody can tell.
    Unknown,
}

/// Says why a handler did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandlerError {
    /// Nothing happened.
    #[error("{0}")]
    Nothing(String),
    /// Nothing happened, and it may work a moment later.
    #[error("{0}")]
    Busy(String),
    /// It may have happened.
    #[error("it is not known whether it happened: {0}")]
    Unknown(String),
}

impl Fault for HandlerError {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::Unknown(_))
    }

    fn is_half_done(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

/// An effect of your own, and what answers it. `key` is the same each time one effect is meant, and another for every other.
pub trait CompensationHandler: fmt::Debug + Send + Sync {
    /// Names it. Recipes bear the name: never change it.
    fn name(&self) -> String;

    /// Makes it happen. What it gives is kept for the way back: no secrets.
    fn act(&self, arguments: &Value, key: &str) -> Result<Value, HandlerError>;

    /// Answers it. Twice is once: it may be asked again after a crash.
    fn compensate(&self, arguments: &Value, answer: &Value, key: &str) -> Result<(), HandlerError>;

    /// Looks for the effect. Changes nothing.
    fn find(&self, _arguments: &Value, _key: &str) -> Found {
        Found::Unknown
    }
}

/// Asks a handler to act.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Handled {
    /// The name of the handler.
    pub handler: String,
    /// What it is told. It is kept: no secrets.
    pub arguments: Value,
}

impl Request for Handled {
    fn driver(&self) -> DriverName {
        driver_name(&self.handler)
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        format!("{} {}", self.handler, self.arguments)
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(self)?)
    }
}

fn driver_name(handler: &str) -> DriverName {
    DriverName::from(format!("handler:{handler}"))
}

/// The body of a recipe, and all there is to stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct HandledRecipe {
    /// The operation whose effect is meant.
    id: OperationId,
    target: Target,
    arguments: Value,
    /// Whether it answers the effect; otherwise it makes it.
    is_answer: bool,
    /// What the effect gave, if it is known.
    answer: Option<Value>,
}

impl Staged for HandledRecipe {}

impl HandledRecipe {
    fn key(&self) -> String {
        self.id.to_string()
    }

    fn prepared(self, driver: DriverName) -> Result<Prepared, DriverError> {
        let recipe = Recipe::of(driver, VERSION, &self)?;
        let mut prepared = Prepared::plain(recipe, vec![self.target.clone()], self);
        prepared.strategy = Strategy::Compensation;
        Ok(prepared.boxed())
    }
}

#[derive(Debug)]
pub(crate) struct HandlerDriver(pub(crate) Arc<dyn CompensationHandler>);

impl HandlerDriver {
    fn target(&self, id: Option<OperationId>) -> Result<Target, DriverError> {
        let id = id.map(|id| id.to_string());
        let names: Vec<&str> = id.iter().map(String::as_str).collect();
        let key = Key::in_space(&format!("handler:{}", self.0.name()), &names)?;
        Ok(Target::new(key, Reach::Node))
    }

    /// Looks where an effect stands; what it gave, if that is known by now.
    fn state(&self, made: &HandledRecipe, answer: Option<Value>) -> (State, Option<Value>) {
        match (self.0.find(&made.arguments, &made.key()), answer) {
            (Found::There(_) | Found::Unknown, Some(answer)) => (State::After, Some(answer)),
            (Found::There(found), None) => (State::After, Some(found)),
            (Found::NotThere, answer) => (State::Before, answer),
            (Found::Unknown, None) => {
                let why = "it is not known whether it happened".to_owned();
                (State::Other { why }, None)
            }
        }
    }

    /// Looks where the answer to an effect stands: the other way round.
    fn state_of_answer(&self, answer: &HandledRecipe, is_recorded: bool) -> State {
        match (self.0.find(&answer.arguments, &answer.key()), is_recorded) {
            (Found::NotThere, _) | (Found::Unknown, true) => State::After,
            // It does no harm to answer it again.
            (Found::There(_), _) | (Found::Unknown, false) => State::Before,
        }
    }
}

fn answer_in(completion: Option<&Completion>) -> Option<Value> {
    let answer = completion?.0.get("answer")?;
    Some(answer.clone())
}

impl Driver for HandlerDriver {
    fn name(&self) -> DriverName {
        driver_name(&self.0.name())
    }

    fn keeps_undos_in_place(&self) -> bool {
        true
    }

    fn scope(&self, _request: &dyn Request) -> Result<Scope, DriverError> {
        let mut scope = Scope::of(vec![self.target(None)?], OperationKind::ApiCall);
        scope.traits.needs_semantic_undo = true;
        Ok(scope)
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(text.read::<Handled>()?))
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        let request: &Handled = request.as_a()?;
        let made = HandledRecipe {
            id,
            target: self.target(Some(id))?,
            arguments: request.arguments.clone(),
            is_answer: false,
            answer: None,
        };
        made.prepared(self.name())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let it: HandledRecipe = staged.take()?;
        let answer = if it.is_answer {
            let answer = it.answer.clone().unwrap_or_default();
            let answered = self.0.compensate(&it.arguments, &answer, &it.key());
            answered.map_err(DriverError::new)?;
            Value::Bool(true)
        } else {
            let acted = self.0.act(&it.arguments, &it.key());
            acted.map_err(DriverError::new)?
        };
        Ok(Applied {
            completion: Completion(serde_json::json!({ "answer": answer })),
            durability: Durability::Power,
            unlike: Vec::new(),
        })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let it: HandledRecipe = effect.recipe.read(VERSION)?;
        let target = it.target.clone();
        let (state, back) = if it.is_answer {
            // A redo is a new effect.
            let state = if how.is_unfinished {
                self.state_of_answer(&it, false)
            } else {
                State::After
            };
            let (is_answer, answer) = (false, None);
            (
                state,
                HandledRecipe {
                    id,
                    is_answer,
                    answer,
                    ..it
                },
            )
        } else {
            let (state, answer) = self.state(&it, answer_in(effect.completion.as_ref()));
            let is_answer = true;
            (
                state,
                HandledRecipe {
                    is_answer,
                    answer,
                    ..it
                },
            )
        };
        let kind = match state {
            State::Before => OutcomeKind::AlreadyGone,
            State::After => OutcomeKind::Compensated,
            State::Other { why } => OutcomeKind::InDoubt { why },
        };
        let mut prepared = back.prepared(self.name())?;
        prepared.is_noop = kind != OutcomeKind::Compensated;
        let outcomes = vec![TargetOutcome::new(target, kind)];
        Ok(PreparedUndo { prepared, outcomes })
    }

    fn answered_by(&self, effect: &Effect) -> Result<Option<String>, DriverError> {
        let made: HandledRecipe = effect.recipe.read(VERSION)?;
        Ok((!made.is_answer).then(|| format!("{}, by its handler", self.0.name())))
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let it: HandledRecipe = effect.recipe.read(VERSION)?;
        Ok(Outline::of(vec![it.target]))
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let it: HandledRecipe = effect.recipe.read(VERSION)?;
        let answer = answer_in(effect.completion.as_ref());
        let state = if it.is_answer {
            self.state_of_answer(&it, answer.is_some())
        } else {
            self.state(&it, answer).0
        };
        Ok(vec![Examined::new(0, it.target, state)])
    }
}
