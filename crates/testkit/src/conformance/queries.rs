//! Questions about many operations.

use backout_model::ports::{Filter, RefError};
use backout_model::{
    AgentId, Checkpoint, CheckpointName, Event, Intent, Lsn, OperationId, Status, TargetPath,
    TaskId, TaskStatus, Timestamp,
};

use super::{World, applied, id, intent, node};

fn listed(world: &World, filter: &Filter) -> Vec<OperationId> {
    let found = world.store.operations(filter).expect("listed");
    found.iter().map(|operation| operation.id).collect()
}

/// Newest first, by each of what a filter may say, and by all of it together.
pub fn the_log_is_filtered(world: &World) {
    let agent: AgentId = "robin".parse().expect("a name");
    let task: TaskId = "refactor".parse().expect("a name");
    world.commit(1, &[node("/d/f")]);
    world.finish(world.arm_as(Intent {
        agent: Some(agent.clone()),
        ..intent(2, &[node("/dd")])
    }));
    world.finish(world.arm_as(Intent {
        task: Some(task.clone()),
        group: Some(id(3)),
        ..intent(3, &[node("/d")])
    }));
    let any = Filter::default;
    assert_eq!(listed(world, &any()), [id(3), id(2), id(1)]);
    let at: Option<backout_model::Key> = Some(TargetPath::new("/d").expect("a path").into());
    assert_eq!(
        listed(
            world,
            &Filter {
                at: at.clone(),
                ..any()
            }
        ),
        [id(3), id(1)]
    );
    let agent = Some(agent);
    assert_eq!(listed(world, &Filter { agent, ..any() }), [id(2)]);
    let task = Some(task);
    assert_eq!(listed(world, &Filter { task, ..any() }), [id(3)]);
    let group = Some(id(3));
    assert_eq!(listed(world, &Filter { group, ..any() }), [id(3)]);
    let after = Some(Lsn(1));
    assert_eq!(listed(world, &Filter { after, ..any() }), [id(3), id(2)]);
    let newest = world.store.operation(id(3)).expect("an answer");
    let before = newest.map(|newest| newest.lsn);
    assert_eq!(listed(world, &Filter { before, ..any() }), [id(2), id(1)]);
    let limit = Some(1);
    assert_eq!(listed(world, &Filter { at, limit, ..any() }), [id(3)]);
    // What came back is done anew.
    let undo = world.undo(4, id(1), &[node("/d/f")]);
    let place = world.store.summary().expect("numbers").last_lsn;
    let redo = world.redo(5, undo, id(1), &[node("/d/f")]);
    let placed_after = Some(place);
    assert_eq!(
        listed(
            world,
            &Filter {
                placed_after,
                ..any()
            }
        ),
        [redo, id(1)]
    );
}

/// A prefix, the newest, and those before it.
pub fn names_lead_to_one_operation_or_say_why_not(world: &World) {
    let resolve = |text: &str| world.store.resolve(&text.parse().expect("a name"));
    assert!(matches!(resolve("@"), Err(RefError::Unknown { .. })));
    for number in [0x1111, 0x1122, 0xff00] {
        world.commit(number, &[node("/a")]);
    }
    let undo = world.undo(0xab00, id(0xff00), &[node("/a")]);
    world.commit(0xcd00, &[]);
    assert_eq!(
        resolve("@").expect("one"),
        id(0xff00),
        "neither the undo nor what did nothing"
    );
    assert_eq!(resolve("@-2").expect("one"), id(0x1111));
    assert_eq!(resolve("FF").expect("one"), id(0xff00));
    assert_eq!(resolve("1122").expect("one"), id(0x1122));
    assert_eq!(resolve(&undo.to_string()).expect("one"), undo);
    let ambiguous = resolve("11");
    assert!(
        matches!(&ambiguous, Err(RefError::Ambiguous { candidates, .. }) if *candidates == [id(0x1122), id(0x1111)]),
        "{ambiguous:?}"
    );
    assert!(matches!(resolve("@-3"), Err(RefError::Unknown { text }) if text == "@-3"));
    assert!(matches!(resolve("ee"), Err(RefError::Unknown { text }) if text == "ee"));
}

/// A record has its moment, a moment its last record.
pub fn moments_and_places_lead_to_each_other(world: &World) {
    let begin = world.now();
    world.arm(1, &[node("/a")]);
    world.clock.pass(1000);
    world.append(vec![applied(id(1))]);
    let later = Timestamp(begin.0 + 1000);
    assert_eq!(world.store.moment_of(Lsn(2)).expect("asked"), later);
    assert_eq!(
        world.store.moment_of(Lsn(9)).expect("asked"),
        Timestamp(i64::MIN)
    );
    assert_eq!(
        world
            .store
            .place_at(Timestamp(begin.0 + 999))
            .expect("asked"),
        Lsn(1)
    );
    assert_eq!(world.store.place_at(later).expect("asked"), Lsn(2));
    assert_eq!(
        world.store.place_at(Timestamp(begin.0 - 1)).expect("asked"),
        Lsn(0)
    );
    assert!(!world.store.has_gap_after(Lsn(0)).expect("asked"));
}

/// The busiest target counts, and no more than was asked.
pub fn writes_of_a_target_are_counted(world: &World) {
    for number in 1..=4 {
        world.commit(number, &[node("/hot")]);
        world.clock.pass(1000);
    }
    world.commit(5, &[node("/cold")]);
    let count = |since, limit| {
        let targets = [node("/cold"), node("/hot")];
        world
            .store
            .writes_since(&targets, since, limit)
            .expect("counted")
    };
    let begin = Timestamp(world.now().0 - 4000);
    assert_eq!(count(begin, 100), 4);
    assert_eq!(count(begin, 3), 3);
    assert_eq!(count(Timestamp(begin.0 + 2000), 100), 2);
}

/// Newest first, with how each ended.
pub fn tasks_are_listed_as_they_stand(world: &World) {
    let name = |text: &str| text.parse::<TaskId>().expect("a name");
    let begin = |task: &str| Event::TaskBegin {
        task: name(task),
        agent: None,
        owner: Some(super::dead()),
    };
    world.append(vec![begin("one")]);
    world.clock.pass(1);
    world.append(vec![begin("two")]);
    world.append(vec![
        Event::TaskCommit { task: name("one") },
        Event::TaskRollback {
            task: name("two"),
            why: "no".to_owned(),
        },
    ]);
    let tasks = world.again().tasks().expect("listed");
    let told: Vec<_> = tasks.iter().map(|it| (it.id.as_str(), it.status)).collect();
    assert_eq!(
        told,
        [
            ("two", TaskStatus::RolledBack),
            ("one", TaskStatus::Committed)
        ]
    );
    let one = world
        .store
        .task(&name("one"))
        .expect("asked")
        .expect("there");
    assert_eq!(one.owner, Some(super::dead()));
    assert_eq!(world.store.task(&name("three")).expect("asked"), None);
    world.append(vec![begin("two")]);
    let again = world
        .store
        .task(&name("two"))
        .expect("asked")
        .expect("there");
    assert_eq!(again.status, TaskStatus::Open, "it begins anew");
}

/// It has its place and its moment.
pub fn a_checkpoint_of_the_same_name_takes_it_over(world: &World) {
    let name: CheckpointName = "before".parse().expect("a name");
    let point = |state: &str| {
        Event::Checkpoint(Checkpoint {
            name: name.clone(),
            lsn: Lsn(0),
            at: Timestamp(0),
            agent: None,
            task: None,
            state: serde_json::json!(state),
            files: None,
            resume: None,
        })
    };
    world.append(vec![point("first")]);
    world.clock.pass(7);
    let lsn = world.append(vec![point("second")]);
    let found = world.again().checkpoints().expect("listed");
    let [checkpoint] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((checkpoint.lsn, checkpoint.at), (lsn, world.now()));
    assert_eq!(checkpoint.state, serde_json::json!("second"));
    let by_name = world.store.checkpoint(&name).expect("asked");
    assert_eq!(by_name.as_ref(), Some(checkpoint));
}

/// Records, leases, and operations by status.
pub fn a_store_is_told_in_numbers(world: &World) {
    world.commit(1, &[node("/a")]);
    world.arm(2, &[node("/b")]);
    let owner = backout_storage::this_process();
    let targets = [node("/c"), node("/d")];
    world
        .store
        .lease(id(3), &targets, &owner, &[])
        .expect("leased");
    let told = world.store.summary().expect("numbers");
    assert_eq!((told.records, told.last_lsn, told.leases), (4, Lsn(4), 2));
    let counts: Vec<_> = told.operations.into_iter().collect();
    assert_eq!(counts, [(Status::Armed, 1), (Status::Committed, 1)]);
}

/// One JSON object each, with the same words as everywhere.
pub fn records_are_exported_one_a_line(world: &World) {
    world.commit(1, &[node("/a")]);
    let mut out = Vec::new();
    let count = world.store.export(Lsn(1), &mut out).expect("exported");
    let text = String::from_utf8(out).expect("text");
    assert_eq!((count, text.lines().count()), (2, 2));
    let first: serde_json::Value = text.lines().next().expect("a line").parse().expect("JSON");
    let told = (first.get("lsn"), first.get("event"));
    assert_eq!(
        told,
        (
            Some(&serde_json::json!(2)),
            Some(&serde_json::json!("applied"))
        )
    );
    assert!(first.get("hash").is_some());
}
