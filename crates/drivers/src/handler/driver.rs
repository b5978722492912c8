//! Carries an effect out by its handler, and answers it.

use std::sync::Arc;

use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, How, OnConflict, Outline, Prepared,
    PreparedUndo, Request, Scope, State,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, Key, OperationId, OperationKind,
    OutcomeKind, Reach, Strategy, Target, TargetOutcome,
};
use serde_json::Value;

use super::recipe::{HandledRecipe, VERSION};
use super::request::driver_name;
use super::{CompensationHandler, Found, Handled, HandlerError};

/// The driver of one handler.
#[derive(Debug)]
pub struct HandlerDriver(pub Arc<dyn CompensationHandler>);

impl HandlerDriver {
    fn target(&self, name: &str) -> Result<Target, DriverError> {
        let key = Key::in_space(&format!("handler:{}", self.0.name()), &[name])?;
        Ok(Target::new(key, Reach::Node))
    }

    /// Looks where an effect stands; what it gave, if that is known by now.
    fn stand(
        &self,
        made: &HandledRecipe,
        answer: Option<Value>,
        is_unfinished: bool,
    ) -> (Stand, Option<Value>) {
        match (self.0.find(&made.arguments, &made.key()), answer) {
            (Found::NotThere, answer) => (Stand::Before, answer),
            (Found::There(found), Some(answer)) if is_another(&found, &answer) => {
                (Stand::Changed, Some(answer))
            }
            (Found::There(found), None) => (Stand::After, Some(found)),
            (Found::There(_) | Found::Unknown, Some(answer)) => (Stand::After, Some(answer)),
            // Somebody decided that it happened.
            (Found::Unknown, None) if !is_unfinished => (Stand::After, None),
            (Found::Unknown, None) => (Stand::Unseen("it is not known whether it happened"), None),
            (Found::Failed(why), answer) => (Stand::Hidden(why), answer),
        }
    }

    /// Makes sure that an effect is there, if the handler can tell.
    fn seen(&self, made: &HandledRecipe, answer: Value) -> Result<Value, HandlerError> {
        let why = match self.0.find(&made.arguments, &made.key()) {
            Found::There(found) if is_another(&found, &answer) => {
                "a look finds another answer than it gave".to_owned()
            }
            Found::There(_) | Found::Unknown => return Ok(answer),
            Found::NotThere => "it ended well, and a look does not find what it made".to_owned(),
            Found::Failed(why) => why,
        };
        Err(HandlerError::Unknown(why))
    }

    /// Makes sure before anything happens that what is made will be this operation's, and can be answered.
    fn ready(&self, made: &HandledRecipe) -> Result<(), HandlerError> {
        let why = match (
            self.0.hindrance(&made.arguments, false),
            self.0.find(&made.arguments, &made.key()),
        ) {
            (Some(why), _) | (None, Found::Failed(why)) => why,
            (None, Found::There(_)) => THERE_ALREADY.to_owned(),
            (None, Found::NotThere | Found::Unknown) => return Ok(()),
        };
        Err(HandlerError::Nothing(why))
    }

    /// Takes back at once what may have happened although it failed, if the handler can tell. Gives the error to return.
    fn put_back(&self, made: &HandledRecipe, error: HandlerError) -> HandlerError {
        let (HandlerError::Unknown(why) | HandlerError::Stopped(why)) = &error else {
            return error;
        };
        let (arguments, key) = (&made.arguments, made.key());
        let is_gone = match self.0.find(arguments, &key) {
            Found::NotThere => true,
            Found::Unknown | Found::Failed(_) => false,
            Found::There(answer) => {
                self.0.compensate(arguments, &answer, &key).is_ok()
                    && self.0.find(arguments, &key) == Found::NotThere
            }
        };
        match (is_gone, &error) {
            (true, HandlerError::Stopped(_)) => HandlerError::Withdrawn(why.clone()),
            (true, _) => HandlerError::Nothing(why.clone()),
            (false, _) => error,
        }
    }

    /// Makes sure that an effect that was answered is not there any more, if the handler can tell.
    fn look_again(&self, answered: &HandledRecipe) -> Result<(), DriverError> {
        let why = match self.0.find(&answered.arguments, &answered.key()) {
            Found::There(_) => "it was answered, and is still there".to_owned(),
            Found::Failed(why) => why,
            Found::NotThere | Found::Unknown => return Ok(()),
        };
        Err(DriverError::new(HandlerError::Unknown(why)))
    }

    /// Says what becomes of an effect that is to be made again.
    fn redone(&self, answer: &HandledRecipe, how: How<'_>) -> OutcomeKind {
        if how.is_unfinished {
            return taken_back(self.stand_of_answer(answer, false), how);
        }
        match self.0.find(&answer.arguments, &answer.key()) {
            Found::NotThere | Found::Unknown => OutcomeKind::Compensated,
            Found::There(_) => OutcomeKind::Left {
                why: THERE_ALREADY.to_owned(),
            },
            Found::Failed(why) => taken_back(Stand::Hidden(why), how),
        }
    }

    /// Looks where the answer to an effect stands: the other way round.
    fn stand_of_answer(&self, answer: &HandledRecipe, is_recorded: bool) -> Stand {
        match (self.0.find(&answer.arguments, &answer.key()), is_recorded) {
            (Found::NotThere, _) | (Found::Unknown, true) => Stand::After,
            (Found::There(_), _) => Stand::Before,
            (Found::Unknown, false) => Stand::Unseen("it is not known whether it was taken back"),
            (Found::Failed(why), _) => Stand::Hidden(why),
        }
    }
}

/// Where an effect stands, or the answer to one.
enum Stand {
    Before,
    After,
    /// Somebody changed it since.
    Changed,
    /// Nobody can look, and it was not seen to end.
    Unseen(&'static str),
    /// The look failed.
    Hidden(String),
}

impl From<Stand> for State {
    fn from(stand: Stand) -> Self {
        let why = match stand {
            Stand::Before => return Self::Before,
            Stand::After => return Self::After,
            Stand::Changed => CHANGED.to_owned(),
            Stand::Unseen(why) => why.to_owned(),
            Stand::Hidden(why) => why,
        };
        Self::Other { why }
    }
}

/// Why nobody may make what is there.
const THERE_ALREADY: &str =
    "what it would make is there already: an undo would take away what somebody else made";

/// Why an effect is not answered.
const CHANGED: &str =
    "somebody changed it since, and nobody could bring that back: take it back by hand";

/// Tells whether what a look found is not what was recorded.
fn is_another(found: &Value, recorded: &Value) -> bool {
    let says_nothing = |value: &Value| value.is_null() || value == "";
    found != recorded && !says_nothing(found) && !says_nothing(recorded)
}

/// Says what becomes of an effect that stands so.
fn taken_back(stand: Stand, how: How<'_>) -> OutcomeKind {
    let is_forced = how.on_conflict == OnConflict::Force;
    match stand {
        Stand::Before => OutcomeKind::AlreadyGone,
        Stand::After => OutcomeKind::Compensated,
        // What somebody made of it could not be brought back, so no force takes it along.
        Stand::Changed => OutcomeKind::Failed {
            why: CHANGED.to_owned(),
        },
        Stand::Unseen(_) | Stand::Hidden(_) if is_forced => OutcomeKind::Compensated,
        Stand::Unseen(why) => OutcomeKind::InDoubt {
            why: why.to_owned(),
        },
        Stand::Hidden(why) => OutcomeKind::InDoubt { why },
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

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        // Two that are told the same wait for each other.
        let asked = Digest::of(request.as_text()?.as_str().as_bytes()).to_string();
        let target = self.target(&asked)?;
        let mut scope = Scope::of(vec![target], OperationKind::ApiCall);
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
            target: self.target(&id.to_string())?,
            arguments: request.arguments.clone(),
            is_answer: false,
            answer: None,
            is_idle: false,
        };
        self.ready(&made).map_err(DriverError::new)?;
        made.prepared(self.name())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, _, staged) = armed.into_parts();
        let it: HandledRecipe = staged.take()?;
        let answer = if it.is_idle {
            Value::Bool(it.is_answer)
        } else if it.is_answer {
            let answer = it.answer.clone().unwrap_or_default();
            let answered = self.0.compensate(&it.arguments, &answer, &it.key());
            answered.map_err(DriverError::new)?;
            self.look_again(&it)?;
            Value::Bool(true)
        } else {
            let acted = self.0.act(&it.arguments, &it.key());
            let acted = acted.and_then(|answer| self.seen(&it, answer));
            acted.map_err(|error| DriverError::new(self.put_back(&it, error)))?
        };
        Ok(Applied {
            completion: Completion(serde_json::json!({ "answer": answer })),
            durability: Durability::Power,
            unlike: Vec::new(),
            is_idle: false,
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
        let hindrance = self.0.hindrance(&it.arguments, it.is_answer);
        let (kind, mut back) = if it.is_answer {
            // A redo is a new effect.
            let kind = self.redone(&it, how);
            let (is_answer, answer) = (false, None);
            let again = HandledRecipe {
                id,
                is_answer,
                answer,
                ..it
            };
            (kind, again)
        } else {
            let answer = answer_in(effect.completion.as_ref());
            let (stand, answer) = self.stand(&it, answer, how.is_unfinished);
            let is_answer = true;
            let answered = HandledRecipe {
                is_answer,
                answer,
                ..it
            };
            (taken_back(stand, how), answered)
        };
        let kind = match hindrance {
            Some(why) if kind == OutcomeKind::Compensated => OutcomeKind::Failed { why },
            _ => kind,
        };
        back.is_idle = kind != OutcomeKind::Compensated;
        let is_idle = back.is_idle;
        let mut prepared = back.prepared(self.name())?;
        prepared.is_noop = is_idle;
        let outcomes = vec![TargetOutcome::new(target, kind)];
        Ok(PreparedUndo { prepared, outcomes })
    }

    fn foresees_by_trying(&self) -> bool {
        true
    }

    fn answered_by(&self, effect: &Effect) -> Result<Option<String>, DriverError> {
        let made: HandledRecipe = effect.recipe.read(VERSION)?;
        Ok((!made.is_answer).then(|| format!("{}, by its handler", self.0.name())))
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        let it: HandledRecipe = effect.recipe.read(VERSION)?;
        Ok(Outline::of(vec![it.target]).compensating())
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let it: HandledRecipe = effect.recipe.read(VERSION)?;
        let answer = answer_in(effect.completion.as_ref());
        let stand = if it.is_answer {
            self.stand_of_answer(&it, answer.is_some())
        } else {
            self.stand(&it, answer, true).0
        };
        let is_unseen = matches!(stand, Stand::Unseen(_));
        Ok(vec![Examined {
            is_unseen,
            ..Examined::new(0, it.target, stand.into())
        }])
    }
}
