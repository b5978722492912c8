//! Small values: each state of a target, and what an undo makes of it.

use super::*;
use crate::ports::OnConflict;

const DRIVER: DriverName = DriverName::literal("rows");

fn key(name: &str) -> Key {
    Key::in_space("rows:table", &[name]).unwrap()
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands where there may be none"
)]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn changes() -> NewValues {
    let values = [
        NewValue::new(key("same"), some("1"), some("1")),
        NewValue::new(key("new"), None, some("1")),
        NewValue::new(key("changed"), some("1"), some("2")),
        NewValue::new(key("gone"), some("1"), None),
    ];
    values.into_iter().collect()
}

/// What is there after the changes, but for `other`, which somebody wrote.
fn after(other: &'static str) -> impl Fn(&Key) -> Option<String> {
    move |it: &Key| match it.names().first().map(String::as_str) {
        Some(name) if name == other => some("somebody's"),
        Some("new") => some("1"),
        Some("changed") => some("2"),
        _ => None,
    }
}

fn kinds(undo: &PreparedUndo) -> Vec<&str> {
    let each = undo.outcomes.iter();
    each.map(|it| match it.kind {
        OutcomeKind::Restored => "restored",
        OutcomeKind::Compensated => "compensated",
        OutcomeKind::Conflict { .. } => "conflict",
        OutcomeKind::Skipped { .. } => "skipped",
        OutcomeKind::Overwritten { .. } => "overwritten",
        OutcomeKind::Merged
        | OutcomeKind::Incomplete { .. }
        | OutcomeKind::Overtaken { .. }
        | OutcomeKind::AlreadyGone
        | OutcomeKind::Left { .. }
        | OutcomeKind::Failed { .. }
        | OutcomeKind::InDoubt { .. } => "else",
    })
    .collect()
}

#[test]
fn what_does_not_change_is_no_target_and_the_recipe_reads_back() {
    let prepared = changes().prepared(DRIVER).unwrap();
    assert_eq!(prepared.targets.len(), 3);
    assert_eq!(NewValues::read(&prepared.recipe).unwrap(), changes());
    let nothing = [NewValue::new(key("a"), None, None)];
    let nothing: NewValues = nothing.into_iter().collect();
    assert!(nothing.prepared(DRIVER).unwrap().is_noop);
}

#[test]
fn each_target_is_examined_by_what_it_is_now() {
    let examined = changes().examined(after("changed"));
    let states: Vec<_> = examined.iter().map(|it| (it.goes, &it.state)).collect();
    assert_eq!(states[0], (true, &State::After));
    assert!(
        matches!(states[1], (false, State::Other { .. })),
        "{states:?}"
    );
    assert_eq!(states[2], (false, &State::After));
    let before = changes().examined(|it| match it.names() {
        [name] if name == "new" => None,
        _ => some("1"),
    });
    assert!(before.iter().all(|it| it.state == State::Before));
}

#[test]
fn an_undo_goes_the_other_way_and_the_undo_of_it_brings_everything_back() {
    let undo = changes()
        .taken_back(DRIVER, &How::default(), Guarantee::Exact, after(""))
        .unwrap();
    assert_eq!(kinds(&undo), ["restored", "restored", "restored"]);
    let back = NewValues::read(&undo.prepared.recipe).unwrap();
    let expected = [
        NewValue::new(key("gone"), None, some("1")),
        NewValue::new(key("changed"), some("2"), some("1")),
        NewValue::new(key("new"), some("1"), None),
    ];
    assert_eq!(back.values(), expected);
}

#[test]
fn what_only_answers_is_called_compensated() {
    let how = How::default();
    let undo = changes().taken_back(DRIVER, &how, Guarantee::Compensating, after("gone"));
    assert_eq!(kinds(&undo.unwrap()), ["skipped", "skipped", "conflict"]);
    let undo = changes().taken_back(DRIVER, &how, Guarantee::Compensating, after(""));
    assert_eq!(kinds(&undo.unwrap()), ["compensated"; 3]);
}

#[test]
fn a_conflict_holds_all_back_unless_force_keeps_what_is_there() {
    let how = How::default();
    let undo = changes().taken_back(DRIVER, &how, Guarantee::Exact, after("changed"));
    let undo = undo.unwrap();
    assert_eq!(kinds(&undo), ["skipped", "conflict", "skipped"]);
    assert!(undo.prepared.is_noop);
    let how = How {
        on_conflict: OnConflict::Force,
        ..How::default()
    };
    let undo = changes().taken_back(DRIVER, &how, Guarantee::Exact, after("changed"));
    let undo = undo.unwrap();
    assert_eq!(kinds(&undo), ["restored", "overwritten", "restored"]);
    let back = NewValues::read(&undo.prepared.recipe).unwrap();
    let kept = NewValue::new(key("changed"), some("somebody's"), some("1"));
    assert!(back.values().contains(&kept), "{back:?}");
}

#[test]
fn values_are_not_printed_by_accident() {
    assert!(!format!("{:?}", changes()).contains('2'));
}
