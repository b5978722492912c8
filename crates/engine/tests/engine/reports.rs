//! What a program reads that asks the engine itself, without the command line, held against the files.

use std::fs;

use backout_drivers::file::FileRequest;
use backout_engine::{EngineError, Report, UndoOptions};
use backout_model::ports::{Durability, Entry};
use backout_model::{Completion, Decision, Event, Intent, OperationId, Status, Strategy, Verb};
use insta::assert_snapshot;

use crate::world::{World, named, written};

/// Shows a report as lines, with the operations by number.
fn told(error: EngineError, operations: &[OperationId], world: &World) -> String {
    let report = Report::from(error);
    let why = report.why.iter().map(|why| format!("why: {why}"));
    let next = report.next.iter().map(|next| format!("next: {next}"));
    let lines: Vec<String> = std::iter::once(report.what.clone())
        .chain(why)
        .chain(next)
        .collect();
    let mut text = lines.join("\n");
    for (number, id) in operations.iter().enumerate() {
        text = text.replace(&id.short(), &format!("#{number}"));
    }
    text.replace(&world.directory.path().display().to_string(), "$WORLD")
}

/// Asks for something that is refused, and sees that nothing happened.
fn refused(world: &World, request: &FileRequest) -> String {
    let before = names(world);
    let error = world.engine.write(request).unwrap_err();
    assert_eq!(names(world), before);
    assert_eq!(world.engine.store().summary().unwrap().records, 0);
    told(error, &[], world)
}

fn names(world: &World) -> Vec<(String, Option<String>)> {
    let entries = fs::read_dir(world.directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .map(|name| (name.clone(), world.read(&name)))
        .collect();
    names.sort();
    names
}

#[test]
fn a_missing_directory_is_named_with_the_way_to_make_it() {
    let world = World::new();
    let request = FileRequest::write(world.path("missing/a"), "1");
    assert_snapshot!(refused(&world, &request), @"
    `$WORLD/missing` does not exist
    next: check the name; missing directories are made with `--parents`
    ");
}

#[test]
fn a_directory_is_not_written_like_a_file() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    let request = FileRequest::write(world.path("d"), "1");
    assert_snapshot!(refused(&world, &request), @"
    `$WORLD/d` is a directory
    next: name a file in it, or act on the whole tree with `-r`
    ");
}

#[test]
fn a_name_that_is_taken_stays() {
    let world = World::new().file("a", "1").file("b", "2");
    let request = FileRequest::Move {
        from: world.path("a"),
        to: world.path("b"),
        replace: false,
    };
    assert_snapshot!(refused(&world, &request), @"
    `$WORLD/b` already exists
    next: choose another name, or say that it may be replaced
    ");
}

#[test]
fn a_directory_that_holds_something_stays() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    fs::write(world.path("d/a"), "1").unwrap();
    let request = FileRequest::Remove {
        path: world.path("d"),
        recursive: false,
    };
    assert_snapshot!(refused(&world, &request), @"
    the directory `$WORLD/d` is not empty
    next: remove it with all that is in it with `rm -r`
    ");
    assert_eq!(world.read("d/a").as_deref(), Some("1"));
}

#[test]
fn what_a_gate_refused_is_in_the_journal() {
    let world = World::new().file("a", "1");
    let request = FileRequest::write(world.path("a"), "bad");
    let staged = world.engine.stage(&request).unwrap();
    let id = staged.id();
    let error = staged.refuse("it is bad");
    assert_snapshot!(told(error, &[id], &world), @"
    nothing was written
    why: it is bad
    next: the journal has it as #0
    ");
    assert_eq!(world.status(id), Status::Refused);
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn what_did_not_hold_is_taken_back() {
    let world = World::new().file("a", "1");
    let request = FileRequest::write(world.path("a"), "2");
    let staged = world.engine.stage(&request).unwrap();
    let id = staged.id();
    let checked = staged.apply_and_verify(|| Err("the service is down".to_owned()));
    assert_snapshot!(told(checked.unwrap_err(), &[id], &world), @"
    the check after the write said no
    why: the service is down
    why: operation #0 was put back: nothing of it stays
    ");
    assert_eq!(world.status(id), Status::Undone);
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn what_did_not_hold_and_what_somebody_wrote_over_it_stays() {
    let world = World::new().file("a", "1");
    let request = FileRequest::write(world.path("a"), "2");
    let staged = world.engine.stage(&request).unwrap();
    let id = staged.id();
    let checked = staged.apply_and_verify(|| {
        fs::write(world.path("a"), "theirs").unwrap();
        Err("the service is down".to_owned())
    });
    assert_snapshot!(told(checked.unwrap_err(), &[id], &world), @"
    the check after the write said no, but operation #0 stays
    why: the service is down
    why: operation #0 was not undone
    why: `$WORLD/a`: content changed since (1 -> 6 bytes)
    next: see what would change back, and what others changed, with `backout undo #0 --dry-run --diff`
    next: do it anyway with `backout undo #0 --force` (what is there now is kept)
    next: until it is settled `backout failed` lists it, with what to do
    ");
    assert_eq!(world.status(id), Status::Applied);
    assert_eq!(world.read("a").as_deref(), Some("theirs"));
}

#[test]
fn another_agents_work_needs_a_word() {
    let world = World::new().file("a", "1");
    let as_agent = |name: &str| world.asking(|c| c.agent = Some(name.parse().unwrap()));
    let (one, other) = (as_agent("one"), as_agent("other"));
    let write = |text: &str| FileRequest::write(world.path("a"), text);
    let first = written(&one.write(&write("2")).unwrap());
    let second = written(&other.write(&write("3")).unwrap());
    let undone = one.undo(&named(first), &UndoOptions::default());
    let text = told(undone.unwrap_err(), &[first, second], &world);
    assert_snapshot!(text, @"
    operation #0 was not undone
    why: 1 operation of other agents would have to go with it
    why: #1 write $WORLD/a
    next: take them back as well with `backout undo #0 --others`
    next: see the plan with `backout undo #0 --dry-run`
    ");
    assert_eq!(world.read("a").as_deref(), Some("3"));
    assert_eq!(world.status(first), Status::Committed);
}

#[test]
fn what_somebody_changed_since_is_not_taken_back() {
    let world = World::new().file("a", "1\n");
    let id = world.write("a", "2\n");
    fs::write(world.path("a"), "theirs\n").unwrap();
    let undone = world.undo(id, &UndoOptions::default());
    assert_snapshot!(told(undone.unwrap_err(), &[id], &world), @"
    operation #0 was not undone
    why: `$WORLD/a`: content changed since (2 -> 7 bytes)
    next: see what would change back, and what others changed, with `backout undo #0 --dry-run --diff`
    next: do it anyway with `backout undo #0 --force` (what is there now is kept)
    ");
    assert_eq!(world.read("a").as_deref(), Some("theirs\n"));
    assert_eq!(world.status(id), Status::Committed);
}

#[test]
fn who_waited_in_vain_is_told_for_whom() {
    let world = World::new().file("a", "1");
    let request = FileRequest::write(world.path("a"), "2");
    let staged = world.engine.stage(&request).unwrap();
    let hasty = world.with(|settings| settings.lease_wait_ms = 0);
    let text = told(hasty.write(&request).unwrap_err(), &[staged.id()], &world);
    let text = text.replace(&std::process::id().to_string(), "PID");
    assert_snapshot!(text, @"
    `$WORLD/a` was not written
    why: process PID has been writing it as operation #0 all the while
    next: try again when it is done, or end that process: its work is then undone
    ");
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

/// What a driver for messages or payments would leave in the journal.
#[test]
fn what_nothing_takes_back_is_left_to_a_person() {
    let world = World::new().file("a", "0");
    let write = world.write("a", "1");
    let (id, store) = (OperationId::from_bits(7), world.engine.store());
    let sent = Intent {
        verb: Verb::Run,
        summary: "send a letter".to_owned(),
        decision: Decision::new(
            Strategy::Irreversible,
            &[],
            "a letter does not come back".to_owned(),
        ),
        ..world.intent(id, write)
    };
    let completion = Completion::default();
    let events = vec![
        Event::Intent(Box::new(sent)),
        Event::Applied { id, completion },
        Event::Commit { id },
    ];
    store.append(&Entry::of(events), Durability::Power).unwrap();
    let error = world.undo(id, &UndoOptions::default()).unwrap_err();
    assert_snapshot!(told(error, &[id], &world), @"
    operation #0 is irreversible
    next: a person has to decide what to do about it
    ");
    assert_eq!(world.status(id), Status::Committed);
    assert_eq!(world.read("a").as_deref(), Some("1"));
}

#[test]
fn a_call_that_was_answered_is_not_staged_again() {
    let world = World::new().file("a", "1");
    let keyed = world.engine.for_caller(backout_engine::Context {
        key: Some("k".parse().unwrap()),
        ..Default::default()
    });
    let request = FileRequest::write(world.path("a"), "2");
    let id = written(&keyed.write(&request).unwrap());
    assert_snapshot!(told(keyed.stage(&request).unwrap_err(), &[id], &world), @"
    nothing was staged
    why: this call was answered before, as operation #0
    ");
    assert!(keyed.write(&request).unwrap().is_again);
}
