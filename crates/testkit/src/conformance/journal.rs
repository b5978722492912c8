//! Appending and reading back.

use backout_model::ports::{Durability, Entry, NewContent, StorageError};
use backout_model::{
    Captured, CommandEnd, Completion, Digest, Event, GENESIS, Lsn, OutcomeKind, Record, Refusal,
    Status, TargetOutcome, Verb,
};

use super::{World, applied, id, intent, node};

/// Records count from 1, in the order in which they came, whoever asks.
pub fn records_are_numbered_and_read_back_by_another_process(world: &World) {
    world.commit(1, &[node("/a")]);
    let last = world.append(vec![Event::Intent(Box::new(intent(2, &[node("/b")])))]);
    assert_eq!(last, Lsn(4));
    let other = world.again();
    let records = other.records_after(Lsn(0), 100).expect("they are read");
    let kinds: Vec<_> = records.iter().map(|r| (r.lsn.0, r.event.kind())).collect();
    let expected = [(1, "intent"), (2, "applied"), (3, "commit"), (4, "intent")];
    assert_eq!(kinds, expected);
    assert_eq!(other.records_after(Lsn(1), 2).expect("read").len(), 2);
    let of_one = other.records_of(id(1)).expect("they are read");
    assert_eq!(of_one.len(), 3);
    assert_eq!(world.status(id(1)), Status::Committed);
}

/// The hash of a record covers the one before it.
pub fn each_record_is_linked_to_the_one_before_it(world: &World) {
    world.commit(1, &[node("/a")]);
    world.clock.pass(5);
    world.commit(2, &[node("/a")]);
    let mut previous = GENESIS;
    for record in world.store.records_after(Lsn(0), 100).expect("read") {
        let body = serde_json::to_vec(&record.event).expect("an event");
        let hash = Record::chain(&previous, record.lsn, record.at, &body);
        assert_eq!(record.hash, hash, "record {}", record.lsn);
        previous = record.hash;
    }
    assert_ne!(previous, GENESIS);
}

/// If one event does not fit, none of them and none of the contents is there.
pub fn an_entry_is_all_or_nothing(world: &World) {
    let content = NewContent::of(b"secret".to_vec());
    let digest = content.digest;
    let entry = Entry {
        events: vec![
            Event::Intent(Box::new(intent(1, &[node("/a")]))),
            Event::Commit { id: id(9) }, // was never armed
        ],
        contents: vec![content],
    };
    world
        .store
        .append(&entry, Durability::Power)
        .expect_err("it does not fit");
    assert_eq!(world.store.summary().expect("numbers").records, 0);
    assert_eq!(world.store.operation(id(1)).expect("read"), None);
    assert!(!world.store.has(&digest).expect("asked"));
}

/// The status machine is kept.
pub fn a_history_that_cannot_have_happened_is_refused(world: &World) {
    let committed = world.commit(1, &[node("/a")]);
    let again = Entry::of(vec![Event::Commit { id: committed }]);
    let error = world
        .store
        .append(&again, Durability::Process)
        .expect_err("twice");
    assert!(
        matches!(error, StorageError::Inconsistent { .. }),
        "{error}"
    );
    assert_eq!(world.store.summary().expect("numbers").records, 3);
}

/// Two operations never have one id, also if the first was refused.
pub fn an_id_is_given_once(world: &World) {
    world.commit(1, &[node("/a")]);
    let twice = Entry::of(vec![Event::Intent(Box::new(intent(1, &[])))]);
    let error = world
        .store
        .append(&twice, Durability::Process)
        .expect_err("twice");
    assert!(
        matches!(error, StorageError::DuplicateId { id: it } if it == id(1)),
        "{error}"
    );
}

/// An undo without its images would be none.
pub fn a_recipe_is_not_armed_without_what_it_needs(world: &World) {
    let mut needs = intent(1, &[node("/a")]);
    let digest = Digest::of(b"nobody kept this");
    needs.recipe.contents = vec![digest];
    let entry = Entry::of(vec![Event::Intent(Box::new(needs))]);
    let error = world
        .store
        .append(&entry, Durability::Power)
        .expect_err("it is gone");
    assert!(
        matches!(error, StorageError::ContentGone { digest: it } if it == digest),
        "{error}"
    );
}

/// What an abort could not put back has to be looked at.
pub fn an_abort_that_left_something_behind_is_in_doubt(world: &World) {
    let abort = |number, kind| Event::Abort {
        id: id(number),
        why: String::new(),
        outcomes: vec![TargetOutcome::new(node("/a"), kind)],
        trigger: None,
    };
    world.arm(1, &[node("/a")]);
    let why = "changed".to_owned();
    world.append(vec![abort(1, OutcomeKind::Conflict { why })]);
    world.arm(2, &[node("/a")]);
    world.append(vec![abort(2, OutcomeKind::Restored)]);
    world.arm(3, &[node("/b")]);
    assert_eq!(
        (world.status(id(1)), world.status(id(2))),
        (Status::InDoubt, Status::Aborted)
    );
    let ids =
        |found: Vec<backout_model::Operation>| found.iter().map(|op| op.id).collect::<Vec<_>>();
    assert_eq!(ids(world.store.stuck().expect("listed")), [id(1)]);
    assert_eq!(ids(world.store.armed().expect("listed")), [id(3)]);
}

/// It has a place and a reason.
pub fn a_refusal_is_an_operation_with_nothing_to_undo(world: &World) {
    world.append(vec![Event::Refused(Box::new(Refusal {
        id: id(1),
        verb: Verb::Write,
        summary: "write a".to_owned(),
        agent: None,
        targets: vec![node("/a")],
        owner: backout_storage::this_process(),
        why: "no".to_owned(),
        call: None,
        trigger: None,
        decided: None,
    }))]);
    let operation = world.operation(id(1));
    assert_eq!(
        (operation.status, operation.retained),
        (Status::Refused, false)
    );
    assert_eq!(
        (operation.lsn, operation.decision.reason.as_str()),
        (Lsn(1), "no")
    );
    assert_eq!(world.store.dependencies(&[node("/a")]).expect("asked"), []);
}

/// What was written while it ran came before its end.
pub fn a_command_stands_where_it_ended(world: &World) {
    let command = world.arm(1, &[]);
    world.commit(2, &[node("/b")]);
    let mut recipe = intent(1, &[]).recipe;
    recipe.version = 7;
    let end = world.append(vec![Event::Captured(Box::new(Captured {
        id: command,
        targets: vec![node("/a")],
        depends_on: Vec::new(),
        reads: Vec::new(),
        notes: vec!["seen".to_owned()],
        lasting: Vec::new(),
        end: CommandEnd::default(),
        recipe,
    }))]);
    let operation = world.operation(command);
    assert_eq!((operation.lsn, operation.place), (end, end));
    assert_eq!(operation.notes, ["seen"]);
    assert_eq!(operation.targets.len(), 1);
    assert_eq!(
        world
            .store
            .effect(command)
            .expect("an effect")
            .recipe
            .version,
        7
    );
    world.finish(command);
    let newest = world.store.resolve(&"@".parse().expect("a name"));
    assert_eq!(newest.expect("found"), command);
}

/// What recovery could not know counts as nothing.
pub fn an_effect_is_its_recipe_and_what_only_it_could_tell(world: &World) {
    let told = world.arm(1, &[node("/a")]);
    let completion = Completion(serde_json::json!({"inode": 7}));
    world.append(vec![Event::Applied {
        id: told,
        completion: completion.clone(),
    }]);
    let untold = world.arm(2, &[node("/b")]);
    world.append(vec![applied(untold)]);
    let effect = world.store.effect(told).expect("an effect");
    assert_eq!(effect.recipe, intent(1, &[]).recipe);
    assert_eq!(effect.completion, Some(completion));
    assert_eq!(
        world.store.effect(untold).expect("an effect").completion,
        None
    );
    world.store.effect(id(9)).expect_err("there is none");
    assert_eq!(
        world.store.first_owner(told).expect("known"),
        intent(1, &[]).owner
    );
}
