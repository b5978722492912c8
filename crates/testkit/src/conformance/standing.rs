//! How operations, targets and tasks stand after an undo or a redo.

use backout_model::{
    Event, Intent, Key, Operation, OperationId, OutcomeKind, Reach, Standing, Status, Target,
    TargetOutcome, TargetPath, TaskId, TaskStatus, Verb,
};

use super::{World, applied, id, intent, node, tree};

/// The targets of an operation, who took each back, and who holds it.
fn stands(operation: &Operation) -> Vec<(String, Option<OperationId>, Option<OperationId>)> {
    let each = |it: &Standing| (it.target.to_string(), it.undone_by, it.held_by);
    operation.targets.iter().map(each).collect()
}

fn at(
    path: &str,
    undone_by: Option<OperationId>,
    held_by: Option<OperationId>,
) -> (String, Option<OperationId>, Option<OperationId>) {
    (node(path).to_string(), undone_by, held_by)
}

/// Nothing of it is in effect then, and what became of each target can be asked.
pub fn a_whole_undo_takes_all_targets_back(world: &World) {
    let write = world.commit(1, &[node("/a"), node("/b")]);
    let undo = world.undo(2, write, &[node("/a"), node("/b")]);
    let operation = world.operation(write);
    assert_eq!(operation.status, Status::Undone);
    assert_eq!(
        stands(&operation),
        [at("/a", Some(undo), None), at("/b", Some(undo), None)]
    );
    assert_eq!(world.status(undo), Status::Committed);
    assert_eq!(world.store.outcomes_of(write, undo).expect("asked"), []);
    assert_eq!(world.store.undone_with(undo).expect("asked"), None);
}

/// Only what was settled.
pub fn a_partial_undo_leaves_the_rest_in_effect(world: &World) {
    let write = world.commit(1, &[node("/a"), node("/b")]);
    let by = world.finish(world.arm_as(Intent {
        verb: Verb::Undo,
        undoes: Some(write),
        with: Some(id(7)),
        ..intent(2, &[node("/a")])
    }));
    let why = "changed".to_owned();
    let outcomes = vec![
        TargetOutcome::new(node("/a"), OutcomeKind::Restored),
        TargetOutcome::new(node("/b"), OutcomeKind::Conflict { why }),
    ];
    world.append(vec![Event::Undone {
        id: write,
        by,
        outcomes: outcomes.clone(),
        is_partial: true,
    }]);
    let operation = world.operation(write);
    assert_eq!(operation.status, Status::Committed);
    assert!(operation.is_partly_undone());
    assert_eq!(
        stands(&operation),
        [at("/a", Some(by), None), at("/b", None, None)]
    );
    assert_eq!(world.store.outcomes_of(write, by).expect("asked"), outcomes);
    assert_eq!(world.store.undone_with(by).expect("asked"), Some(id(7)));
    world.append(vec![Event::Undone {
        id: write,
        by,
        outcomes: vec![TargetOutcome::new(node("/b"), OutcomeKind::Restored)],
        is_partial: true,
    }]);
    assert_eq!(
        world.status(write),
        Status::Undone,
        "nothing is left in effect"
    );
}

/// Its recipe takes it back now, and the operation stands where it was brought back.
pub fn a_redo_holds_what_it_brought_back(world: &World) {
    let write = world.commit(1, &[node("/a")]);
    let undo = world.undo(2, write, &[node("/a")]);
    let redo = world.redo(3, undo, write, &[node("/a")]);
    let operation = world.operation(write);
    assert_eq!(operation.status, Status::Committed);
    assert_eq!(stands(&operation), [at("/a", None, Some(redo))]);
    assert_eq!(operation.holders(), [redo]);
    assert!(operation.place > operation.lsn);
    assert_eq!(world.status(undo), Status::Undone);
    assert_eq!(world.status(redo), Status::Committed);
}

/// Also where it brought back a tree, and names in it are taken back.
pub fn a_redo_ends_with_what_it_brought_back(world: &World) {
    let targets = [node("/d/a"), node("/d/b")];
    let write = world.commit(1, &targets);
    let undo = world.undo(2, write, &targets);
    let redo = world.finish(world.arm_as(Intent {
        verb: Verb::Redo,
        undoes: Some(undo),
        ..intent(3, &[tree("/d")])
    }));
    let held = |target: &Target| Standing {
        held_by: Some(redo),
        ..Standing::new(target.clone())
    };
    world.append(vec![Event::Redone {
        id: write,
        by: redo,
        targets: Some(targets.iter().map(held).collect()),
    }]);
    let take_back = |number, target: &Target| {
        let by = world.finish(world.arm_as(Intent {
            verb: Verb::Undo,
            undoes: Some(write),
            ..intent(number, std::slice::from_ref(target))
        }));
        world.append(vec![Event::Undone {
            id: write,
            by,
            outcomes: vec![TargetOutcome::new(target.clone(), OutcomeKind::Restored)],
            is_partial: true,
        }]);
        by
    };
    take_back(4, &targets[0]);
    assert_eq!(
        world.status(redo),
        Status::Committed,
        "one of them is still there"
    );
    let last = take_back(5, &targets[1]);
    assert_eq!(
        (world.status(write), world.status(redo)),
        (Status::Undone, Status::Undone)
    );
    // What that undo took away comes back, and with it the redo that held it.
    let again = world.finish(world.arm_as(Intent {
        verb: Verb::Redo,
        undoes: Some(last),
        ..intent(6, &targets[1..])
    }));
    world.append(vec![Event::Redone {
        id: write,
        by: again,
        targets: Some(vec![held(&targets[1])]),
    }]);
    assert_eq!(
        (world.status(write), world.status(redo)),
        (Status::Committed, Status::Committed)
    );
}

/// A slash in the name of a key is a letter like any other.
pub fn a_redo_of_a_key_does_not_hold_by_another_with_a_slash(world: &World) {
    let file: Key = TargetPath::new("/f").expect("a path").into();
    let key = |part| Target::new(file.part(part).expect("a part"), Reach::Node);
    let targets = [key("a"), key("a/b")];
    let write = world.commit(1, &targets);
    let undo = world.undo(2, write, &targets);
    let redo = world.redo(3, undo, write, &targets);
    let by = world.finish(world.arm_as(Intent {
        verb: Verb::Undo,
        undoes: Some(write),
        ..intent(4, &targets[..1])
    }));
    world.append(vec![Event::Undone {
        id: write,
        by,
        outcomes: vec![TargetOutcome::new(
            targets[0].clone(),
            OutcomeKind::Restored,
        )],
        is_partial: true,
    }]);
    let redone = world.operation(redo);
    let gone: Vec<_> = redone.targets.iter().map(|it| it.undone_by).collect();
    assert_eq!(gone, [Some(by), None]);
}

/// Open again, with its operations waiting for it; and rolled back again when nothing is left.
pub fn a_task_that_is_brought_back_is_what_it_was(world: &World) {
    let task: TaskId = "refactor".parse().expect("a name");
    world.append(vec![Event::TaskBegin {
        task: task.clone(),
        agent: None,
        owner: None,
    }]);
    let write = world.arm_as(Intent {
        task: Some(task.clone()),
        ..intent(1, &[node("/a")])
    });
    world.append(vec![applied(write)]);
    let undo = world.undo(2, write, &[node("/a")]);
    world.append(vec![Event::TaskRollback {
        task: task.clone(),
        why: "no".to_owned(),
    }]);
    let status = || {
        world
            .store
            .task(&task)
            .expect("asked")
            .expect("there")
            .status
    };
    assert_eq!(status(), TaskStatus::RolledBack);
    let redo = world.redo(3, undo, write, &[node("/a")]);
    assert_eq!(
        (status(), world.status(write)),
        (TaskStatus::Open, Status::Applied)
    );
    world.undo(4, write, &[node("/a")]);
    assert_eq!(
        (status(), world.status(redo)),
        (TaskStatus::RolledBack, Status::Undone)
    );
}

/// In effect, of others, and of what holds the key.
pub fn later_work_is_found_at_a_key_and_above_it(world: &World) {
    let key: Key = TargetPath::new("/d/f").expect("a path").into();
    let first = world.commit(1, &[node("/d/f")]);
    let place = world.operation(first).place;
    let since = || world.store.done_since(&key, place, first).expect("asked");
    assert_eq!(since(), None);
    world.commit(2, &[node("/d")]);
    assert_eq!(since(), None, "the directory itself is not what is in it");
    let removed = world.commit(3, &[tree("/d")]);
    assert_eq!(since(), Some(removed));
    let newest = world.commit(4, &[node("/d/f")]);
    assert_eq!(since(), Some(newest));
    world.undo(5, newest, &[node("/d/f")]);
    assert_eq!(since(), Some(removed), "an undo is nobody's work");
}
