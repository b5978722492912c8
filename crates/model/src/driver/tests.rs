//! What a driver, a fault, a depot and what is staged answer if they say nothing else, and what is said of them.

use std::error::Error as _;

use super::*;
use crate::ports::{BadRecipe, Depots, NewContent, OnConflict};
use crate::{OutcomeKind, Slot, TargetOutcome, TargetPath, Verb};

/// The fault of a driver that knows nothing.
#[derive(Debug, thiserror::Error)]
#[error("this driver does nothing")]
struct Idle(#[source] std::fmt::Error);

impl Fault for Idle {}

/// A fault that says all there is to say.
#[derive(Debug, thiserror::Error)]
#[error("stopped half-way")]
struct Loud;

impl Fault for Loud {
    fn is_stop(&self) -> bool {
        true
    }

    fn may_pass(&self) -> bool {
        true
    }

    fn is_half_done(&self) -> bool {
        true
    }

    fn out_of_reach(&self) -> Option<&str> {
        Some("the disk is not there")
    }
}

fn idle<T>() -> Result<T, DriverError> {
    Err(DriverError::new(Idle(std::fmt::Error)))
}

/// A driver that answers only where it has to.
#[derive(Debug)]
struct Plain;

impl Driver for Plain {
    fn name(&self) -> DriverName {
        DriverName::literal("plain")
    }

    fn scope(&self, _request: &dyn Request) -> Result<Scope, DriverError> {
        idle()
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        assert_eq!(text.as_str(), "\"ask\"");
        Ok(Box::new(Ask))
    }

    fn prepare(
        &self,
        _id: OperationId,
        _request: &dyn Request,
        _strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        idle()
    }

    fn apply(&self, _armed: Armed) -> Result<Applied, DriverError> {
        idle()
    }

    fn prepare_undo(
        &self,
        _id: OperationId,
        _effect: &Effect,
        _how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        idle()
    }

    fn outline(&self, _effect: &Effect) -> Result<Outline, DriverError> {
        idle()
    }

    /// It has two targets: one as after, and one as the completion says.
    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        assert!(to_the_end);
        let state = match &effect.completion {
            Some(_) => State::After,
            None => State::Before,
        };
        Ok(vec![examined("/a", State::After), examined("/b", state)])
    }
}

/// A depot that keeps nothing.
#[derive(Debug)]
struct Nowhere;

impl Depots for Nowhere {
    fn depot_for(&self, _directory: &TargetPath) -> Option<TargetPath> {
        None
    }

    fn staging(&self, _by: OperationId) -> std::io::Result<TargetPath> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    fn is_ours(&self, _path: &TargetPath) -> bool {
        true
    }
}

/// Something staged that keeps nothing beside the store.
#[derive(Debug, PartialEq, Eq)]
struct Small(u8);

impl Staged for Small {}

#[derive(Debug)]
struct Large;

impl Staged for Large {}

#[derive(Debug)]
struct Ask;

impl Request for Ask {
    fn driver(&self) -> DriverName {
        DriverName::FILE
    }

    fn verb(&self) -> Verb {
        Verb::Write
    }

    fn summary(&self) -> String {
        "write x".to_owned()
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        Ok(JsonText::of(&"ask")?)
    }
}

#[derive(Debug)]
struct AskOther;

impl Request for AskOther {
    fn driver(&self) -> DriverName {
        DriverName::COMMAND
    }

    fn verb(&self) -> Verb {
        Verb::Run
    }

    fn summary(&self) -> String {
        "run y".to_owned()
    }

    fn as_text(&self) -> Result<JsonText, DriverError> {
        idle()
    }
}

fn path(text: &str) -> TargetPath {
    TargetPath::new(text).unwrap()
}

fn node(name: &str) -> Target {
    Target::node(path(name))
}

fn examined(name: &str, state: State) -> Examined {
    Examined::new(0, node(name), state)
}

fn other() -> State {
    State::of("c", "a", "b")
}

fn effect() -> Effect {
    Effect {
        recipe: Recipe::of(DriverName::literal("plain"), 1, &()).unwrap(),
        completion: Some(Completion::default()),
    }
}

#[test]
fn a_driver_that_says_nothing_else_undoes_what_was_named_and_tells_of_no_files_and_no_values() {
    let names: BTreeSet<Key> = ["/a", "/b"].map(|name| Key::from(path(name))).into();
    let effect = effect();
    assert_eq!(Plain.with_moved(&effect, &names).unwrap(), names);
    assert_eq!(Plain.as_files(&effect).unwrap(), None);
    assert_eq!(Plain.values(&effect).unwrap(), None);
    assert_eq!(Plain.name().as_str(), "plain");
    assert_eq!(DriverName::FILE.as_str(), "file");
    assert_eq!(DriverName::COMMAND.to_string(), "command");
}

#[test]
fn a_fault_that_says_nothing_else_is_final_and_left_nothing() {
    let quiet = DriverError::new(Idle(std::fmt::Error));
    let said = |error: &DriverError| {
        let fault = error.fault();
        let flags = (fault.is_stop(), fault.may_pass(), fault.is_half_done());
        (flags, fault.out_of_reach().map(str::to_owned))
    };
    assert_eq!(said(&quiet), ((false, false, false), None));
    let why = Some("the disk is not there".to_owned());
    assert_eq!(said(&DriverError::new(Loud)), ((true, true, true), why));
}

#[test]
fn an_error_of_a_driver_is_told_as_the_driver_tells_it() {
    let error = DriverError::new(Idle(std::fmt::Error));
    assert_eq!(error.to_string(), "this driver does nothing");
    assert_eq!(format!("{error:?}"), "Idle(Error)");
    let source = error.source().unwrap();
    assert_eq!(source.to_string(), std::fmt::Error.to_string());
    assert!(DriverError::new(Loud).source().is_none());
    assert!(error.as_a::<Idle>().is_some() && error.as_a::<Loud>().is_none());
}

#[test]
fn what_came_to_the_wrong_driver_is_named_and_not_guessed_at() {
    let request: &dyn Request = &Ask;
    assert!(request.as_a::<Ask>().is_ok());
    assert_eq!(
        request.as_a::<AskOther>().unwrap_err().to_string(),
        "the driver does not know this request: write x"
    );
    let staged: Box<dyn Staged> = Box::new(Small(7));
    assert!(staged.as_a::<Large>().is_none());
    assert_eq!(staged.as_a::<Small>(), Some(&Small(7)));
    assert_eq!(staged.kept_bytes(), 0, "it keeps nothing unless it says so");
    assert_eq!(staged.take::<Small>().unwrap(), Small(7));
    let staged: Box<dyn Staged> = Box::new(Large);
    assert_eq!(
        staged.take::<Small>().unwrap_err().to_string(),
        "the driver does not know this request: what another driver staged"
    );
}

#[test]
fn a_depot_that_says_nothing_else_holds_nothing_and_hides_nothing() {
    let slot = Slot {
        depot: path("/depot"),
        name: "1-0".to_owned(),
    };
    assert_eq!(slot.path(), path("/depot/1-0"));
    assert_eq!(Nowhere.slots_of(OperationId::from_bits(1)), []);
    assert_eq!(Nowhere.out_of_reach(&slot), None);
    assert!(!Nowhere.is_above_ours(&path("/")));
}

#[test]
fn what_a_dead_process_left_is_taken_back_whole_and_never_over_somebody_elses_change() {
    let how = How::unfinished();
    assert!(how.is_unfinished && !how.is_partial);
    assert_eq!(how.on_conflict, OnConflict::Refuse);
    assert!(how.only.is_none() && how.homes.is_none() && how.earlier.is_empty());
    let how = How::from(OnConflict::Force);
    assert!(!how.is_unfinished);
    assert_eq!(how.on_conflict, OnConflict::Force);
}

#[test]
fn neither_contents_nor_values_are_shown_to_programmers() {
    let content = NewContent::of(b"secret".to_vec());
    let shown = format!("{content:?}");
    assert_eq!(shown, format!("NewContent({:?}, 6 bytes)", content.digest));
    let value = ValueChange {
        key: Key::from(path("/a")).part("password").unwrap(),
        before: Some("old secret".to_owned()),
        after: Some("secret".to_owned()),
        now: Ok(None),
    };
    assert_eq!(format!("{value:?}"), "ValueChange(/a:password)");
}

#[test]
fn a_driver_that_says_nothing_else_is_asked_by_what_it_must_say() {
    let again = Plain.repeatable(OperationId::from_bits(1), &Ask).unwrap();
    assert_eq!(again.summary(), Ask.summary());
    let (whole, mut cut) = (effect(), effect());
    cut.completion = None;
    assert!(Plain.is_in_place(&whole).unwrap());
    assert!(!Plain.is_in_place(&cut).unwrap());
    assert_eq!(Plain.check_kept(&whole, &|_| true).unwrap(), []);
    let print = |recipe: &Recipe| Plain.fingerprint(recipe).unwrap();
    let mut newer = whole.recipe.clone();
    newer.version = 2;
    assert_eq!(print(&whole.recipe), print(&cut.recipe));
    assert_ne!(print(&whole.recipe), print(&newer));
}

#[test]
fn a_recipe_is_read_up_to_the_newest_version_and_no_further() {
    let mut recipe = Recipe::of(DriverName::FILE, 2, &"body").unwrap();
    assert_eq!(recipe.read::<String>(2).unwrap(), "body");
    assert!(recipe.read::<String>(3).is_ok());
    let said = |error: BadRecipe| DriverError::from(error).to_string();
    assert_eq!(
        said(recipe.read::<String>(1).unwrap_err()),
        "the recipe has version 2, this program reads up to 1"
    );
    let unreadable = recipe.read::<u8>(2).unwrap_err();
    assert_eq!(
        said(unreadable),
        "what the driver wrote down cannot be read"
    );
    recipe.version = 0;
    assert!(recipe.read::<String>(2).is_err());
}

#[test]
fn only_what_is_as_after_comes_back_without_force() {
    let states = || [State::of("a", "a", "b"), State::of("b", "a", "b"), other()];
    let why = "somebody else changed it".to_owned();
    for on_conflict in [OnConflict::Refuse, OnConflict::Merge, OnConflict::Force] {
        let why = why.clone();
        let third = match on_conflict {
            OnConflict::Refuse | OnConflict::Merge => OutcomeKind::Conflict { why },
            OnConflict::Force => OutcomeKind::Overwritten { why },
        };
        let kinds = states().map(|state| state.taken_back(on_conflict));
        assert_eq!(
            kinds,
            [OutcomeKind::AlreadyGone, OutcomeKind::Restored, third]
        );
    }
}

#[test]
fn a_way_back_is_taken_whole_or_not_unless_somebody_asks_for_less() {
    let outcomes = || {
        let states = [State::of("b", "a", "b"), State::of("a", "a", "b"), other()];
        let kinds = states.map(|state| state.taken_back(OnConflict::Refuse));
        kinds.map(|kind| TargetOutcome::new(node("/a"), kind))
    };
    let partly = How {
        is_partial: true,
        ..How::default()
    };
    for how in [partly, OnConflict::Force.into()] {
        let mut same = outcomes();
        assert!(how.goes_on(&mut same));
        assert_eq!(same, outcomes());
    }
    let [mut first, second, third] = outcomes();
    assert!(How::default().goes_on(&mut [first.clone(), second.clone()]));
    let mut held = outcomes();
    assert!(!How::default().goes_on(&mut held));
    let why = "another target cannot be taken back, so nothing was".to_owned();
    first.kind = OutcomeKind::Skipped { why };
    assert_eq!(held, [first, second, third]);
}

#[test]
fn a_target_is_meant_by_its_name_or_one_above_it() {
    let only = [Key::from(path("/a"))].into();
    let how = How {
        only: Some(&only),
        ..How::default()
    };
    let part = Key::from(path("/a")).part("x").unwrap();
    let part = Target::new(part, crate::Reach::Node);
    assert!(how.means(&node("/a")) && how.means(&part) && how.means(&node("/a/b")));
    assert!(!how.means(&node("/b")) && How::default().means(&node("/b")));
}

#[test]
fn a_second_look_tells_what_somebody_else_overtook() {
    let states = [State::After, State::Before, other()];
    let applied = Applied::seen(states.map(|state| examined("/a", state)).into());
    let said = applied.unlike.iter().map(|it| it.kind.to_string());
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "overtaken: it is as before",
            "overtaken: somebody else changed it"
        ]
    );
}

#[test]
fn what_stays_half_done_says_so_and_why() {
    let error = DriverError::half_done(Loud);
    assert!(error.fault().is_half_done() && !error.fault().may_pass());
    assert_eq!(error.source().unwrap().to_string(), "stopped half-way");
}
