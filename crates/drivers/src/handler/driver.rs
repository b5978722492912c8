//! Carries an effect out by its handler, and answers it.

use std::sync::Arc;

use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, How, Outline, Prepared, PreparedUndo,
    Request, Scope, State,
};
use backout_model::{
    Armed, Completion, DriverName, Effect, JsonText, Key, OperationId, OperationKind, OutcomeKind,
    Reach, Strategy, Target, TargetOutcome,
};
use serde_json::Value;

use super::recipe::{HandledRecipe, VERSION};
use super::request::driver_name;
use super::{CompensationHandler, Found, Handled, HandlerError};

/// The driver of one handler.
#[derive(Debug)]
pub struct HandlerDriver(pub Arc<dyn CompensationHandler>);

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

    /// Takes back at once what may have happened although it failed, if the handler can tell. Gives the error to return.
    fn put_back(&self, made: &HandledRecipe, error: HandlerError) -> HandlerError {
        let HandlerError::Unknown(why) = &error else {
            return error;
        };
        let (arguments, key) = (&made.arguments, made.key());
        let is_gone = match self.0.find(arguments, &key) {
            Found::NotThere => true,
            Found::Unknown => false,
            Found::There(answer) => {
                self.0.compensate(arguments, &answer, &key).is_ok()
                    && self.0.find(arguments, &key) == Found::NotThere
            }
        };
        if is_gone {
            HandlerError::Nothing(why.clone())
        } else {
            error
        }
    }

    /// Makes sure that an effect that was answered is not there any more, if the handler can tell.
    fn look_again(&self, answered: &HandledRecipe) -> Result<(), DriverError> {
        match self.0.find(&answered.arguments, &answered.key()) {
            Found::There(_) => {
                let why = "it was answered, and is still there".to_owned();
                Err(DriverError::new(HandlerError::Unknown(why)))
            }
            Found::NotThere | Found::Unknown => Ok(()),
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
            self.look_again(&it)?;
            Value::Bool(true)
        } else {
            let acted = self.0.act(&it.arguments, &it.key());
            acted.map_err(|error| DriverError::new(self.put_back(&it, error)))?
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
