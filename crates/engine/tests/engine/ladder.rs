//! Undos that fail: what is tried, what is recorded, and that nothing else waits for them.

use std::fs;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use backout_driver_example::{PutRows, Table};
use backout_drivers::file::FileRequest;
use backout_engine::{
    Command, EngineError, FailedCommand, Filter, Reply, UndoOptions, UndoReport, UndoWhat,
};
use backout_model::{
    Climbed, Decided, OperationId, OutcomeKind, Rung, Severity, Source, Status, Strategy, Trigger,
    TriggerKind,
};

use crate::faults::faulty;
use crate::trouble::{FOR_EVER, Hook, Trouble, reference};
use crate::world::{World, committed, named, written};

fn partial(result: Result<UndoReport, EngineError>) -> UndoReport {
    let Err(EngineError::Partial(report)) = result else {
        unreachable!("it must be done in part: {result:?}")
    };
    *report
}

fn decided() -> Decided {
    Decided {
        by: "somebody".to_owned(),
        why: Some("nobody needs it".to_owned()),
    }
}

#[test]
fn independent_undos_are_not_held_up_and_what_it_stands_on_waits() {
    let trouble = Trouble::new(FOR_EVER, false, None);
    let world = &trouble.world;
    let first = world.write("f", "1");
    let base = trouble.row("a", "1");
    let stuck = trouble.row("a", "2");
    let last = world.write("g", "2");
    let report = partial(trouble.undo(&[first, base, last]));
    assert_eq!((world.read("f"), world.read("g")), (None, None));
    assert_eq!(trouble.value("a").as_deref(), Some("2"));
    for (id, status) in [
        (first, Status::Undone),
        (last, Status::Undone),
        (stuck, Status::Committed),
        (base, Status::Committed),
    ] {
        assert_eq!(world.status(id), status, "{report:?}");
    }
    let kinds = |id: OperationId| {
        let mut steps = report.steps.iter();
        let step = steps.find(|step| step.id == id).unwrap();
        step.outcomes.first().unwrap().kind.clone()
    };
    assert!(matches!(kinds(stuck), OutcomeKind::Failed { .. }));
    assert!(matches!(kinds(base), OutcomeKind::Skipped { .. }));
    assert_eq!(trouble.failed(), [stuck]);
}

#[test]
fn what_passes_is_tried_again_and_then_all_that_stood_on_it_goes() {
    let trouble = Trouble::new(2, true, None);
    let base = trouble.row("a", "1");
    let top = trouble.row("a", "2");
    let report = trouble.undo(&[base]).unwrap();
    assert_eq!(trouble.value("a"), None);
    assert_eq!(report.steps.len(), 2);
    let rungs = trouble.rungs(top);
    let [retry] = rungs.as_slice() else {
        panic!("{rungs:?}")
    };
    assert_eq!(
        (retry.rung, retry.times, &retry.climbed),
        (Rung::Retry, 2, &Climbed::Helped)
    );
    assert_eq!(trouble.failed(), []);
    assert_eq!(trouble.engine.verify().unwrap().findings, []);
}

#[test]
fn every_rung_is_recorded_in_order_and_a_person_is_told_everything() {
    let trouble = Trouble::new(FOR_EVER, true, Some(Box::new(|_| Ok(()))));
    let id = trouble.row("a", "1");
    let report = partial(trouble.undo(&[id]));
    let rungs: Vec<_> = trouble
        .rungs(id)
        .into_iter()
        .map(|it| (it.rung, it.climbed))
        .collect();
    let kinds: Vec<_> = rungs.iter().map(|(rung, _)| *rung).collect();
    let (restore, alert) = (Rung::Restore, Rung::Alert);
    let expected = [Rung::Retry, Rung::Fallback, restore, restore, alert, alert];
    assert_eq!(kinds, expected);
    assert!(matches!(&rungs[0].1, Climbed::DidNotHelp { why } if why.contains("does not answer")));
    assert!(
        matches!(&rungs[1].1, Climbed::NotPossible { why } if why.contains("has no second way back"))
    );
    assert_eq!(rungs[2].1, Climbed::Began);
    // The hook ended well, and nothing was restored: that is no help.
    assert!(matches!(&rungs[3].1, Climbed::DidNotHelp { why } if why.contains("ended well")));
    assert_eq!(
        (&rungs[4].1, &rungs[5].1),
        (&Climbed::Began, &Climbed::Helped)
    );
    let told = trouble.hooks.told.lock().unwrap();
    let [failure] = told.as_slice() else {
        panic!("{told:?}")
    };
    assert_eq!(failure.operation, id);
    assert_eq!(failure.strategy, Strategy::Transaction);
    assert_eq!(failure.trigger.kind, TriggerKind::UserRequest);
    let why = &failure.targets.first().unwrap().kind;
    assert!(matches!(why, OutcomeKind::Failed { why } if why.contains("does not answer")));
    let tried: Vec<_> = failure.tried.iter().map(|it| it.rung).collect();
    assert_eq!(tried, [Rung::Retry, Rung::Fallback, Rung::Restore]);
    let tried: Vec<_> = report.steps[0].tried.iter().map(|it| it.rung).collect();
    assert_eq!(
        tried,
        [Rung::Retry, Rung::Fallback, Rung::Restore, Rung::Alert]
    );
    assert_eq!(trouble.failed(), [id]);
}

#[test]
fn a_hook_that_restores_is_believed_after_a_look_however_it_ended() {
    for ended in [Ok(()), Err("it ended with code 1".to_owned())] {
        let slot: Arc<Mutex<Option<Table>>> = Arc::default();
        let (inside, said) = (Arc::clone(&slot), ended.clone());
        let hook: Hook = Box::new(move |_| {
            let table = inside.lock().unwrap().clone().unwrap();
            table.put("a", Some("1"), None).unwrap();
            said.clone()
        });
        let trouble = Trouble::new(FOR_EVER, false, Some(hook));
        *slot.lock().unwrap() = Some(trouble.table.clone());
        let id = trouble.row("a", "1");
        let report = trouble.undo(&[id]).unwrap();
        let kind = &report.steps[0].outcomes[0].kind;
        assert_eq!(*kind, OutcomeKind::AlreadyGone, "nobody here restored it");
        assert_eq!(trouble.world.status(id), Status::Undone);
        let last = trouble.rungs(id).pop().unwrap();
        assert_eq!((last.rung, last.climbed), (Rung::Restore, Climbed::Helped));
        assert!(trouble.hooks.told.lock().unwrap().is_empty());
        assert_eq!(trouble.failed(), []);
    }
}

#[test]
fn what_is_as_before_at_a_second_look_waits_for_nobody() {
    let trouble = Trouble::new(FOR_EVER, false, None);
    let id = trouble.row("a", "1");
    partial(trouble.undo(&[id]));
    assert_eq!(trouble.failed(), [id]);
    trouble.table.put("a", Some("1"), None).unwrap();
    assert_eq!(trouble.failed(), []);
}

#[test]
fn who_looks_after_it_climbs_again_and_it_is_gone_from_the_list() {
    let trouble = Trouble::new(FOR_EVER, false, None);
    let (one, other) = (trouble.row("a", "1"), trouble.row("b", "1"));
    partial(trouble.undo(&[one, other]));
    assert_eq!(trouble.failed().len(), 2);
    let stranger = trouble.world.write("f", "1");
    let retry = |ids: &[OperationId]| {
        let operations = ids.iter().map(|id| reference(*id)).collect();
        let command = Command::Failed(FailedCommand::Retry { operations });
        trouble.engine.execute(command)
    };
    assert!(matches!(retry(&[stranger]), Err(EngineError::Ladder(_))));
    assert!(matches!(retry(&[]), Err(EngineError::Partial(_))));
    trouble.fails.store(0, Ordering::SeqCst);
    retry(&[one]).unwrap();
    assert_eq!(trouble.failed(), [other]);
    retry(&[]).unwrap();
    assert_eq!(trouble.failed(), []);
    assert_eq!(trouble.table.rows().unwrap(), [].into());
}

#[test]
fn what_is_left_is_accepted_by_somebody_else_and_that_is_recorded() {
    let trouble = Trouble::new(FOR_EVER, false, None);
    let robin = || {
        trouble.engine.for_caller(backout_engine::Context {
            agent: Some("robin".parse().unwrap()),
            ..backout_engine::Context::default()
        })
    };
    let rows = PutRows([("a".to_owned(), Some("1".to_owned()))].into());
    let id = written(&robin().write(&rows).unwrap());
    partial(robin().undo(&named(id), &committed()));
    let refused = robin().accept_failed(&reference(id), &decided());
    assert!(
        matches!(refused, Err(EngineError::Ladder(_))),
        "{refused:?}"
    );
    assert_eq!(trouble.failed(), [id]);
    trouble
        .engine
        .accept_failed(&reference(id), &decided())
        .unwrap();
    assert_eq!(trouble.failed(), []);
    let last = trouble.rungs(id).pop().unwrap();
    assert_eq!((last.rung, last.decided), (Rung::Accept, Some(decided())));
    assert!(
        trouble
            .engine
            .accept_failed(&reference(id), &decided())
            .is_err()
    );
    // It is in effect, and can be undone when the driver answers again.
    assert_eq!(trouble.world.status(id), Status::Committed);
    trouble.fails.store(0, Ordering::SeqCst);
    trouble.undo(&[id]).unwrap();
    assert_eq!(trouble.value("a"), None);
}

#[test]
fn a_task_whose_rest_the_settings_accept_is_rolled_back_and_says_so() {
    let trouble = Trouble::with(FOR_EVER, false, None, |settings| {
        settings.ladder.low.accept_partial = true;
    });
    let task = trouble.engine.begin(None, None).unwrap().id;
    let inside = trouble.engine.for_caller(backout_engine::Context {
        task: Some(task.clone()),
        ..backout_engine::Context::default()
    });
    let rows = PutRows([("a".to_owned(), Some("1".to_owned()))].into());
    let stuck = written(&inside.write(&rows).unwrap());
    let path = trouble.world.path("f");
    inside.write(&FileRequest::write(path, "1")).unwrap();
    let trigger = Trigger {
        severity: Severity::Low,
        ..Trigger::asked_for()
    };
    let options = UndoOptions {
        trigger: Some(trigger),
        ..UndoOptions::default()
    };
    let rolled = trouble
        .engine
        .rollback(&UndoWhat::Task(task.clone()), &options, "a test");
    let report = partial(rolled);
    assert!(report.is_accepted() && !report.is_complete());
    assert_eq!(trouble.world.read("f"), None);
    assert_eq!(trouble.failed(), []);
    let status = trouble.engine.store().task(&task).unwrap().unwrap().status;
    assert_eq!(status, backout_model::TaskStatus::RolledBack);
    let last = trouble.rungs(stuck).pop().unwrap();
    assert_eq!((last.rung, last.climbed), (Rung::Accept, Climbed::Helped));
    assert_eq!(last.decided.unwrap().by, "the settings of the ladder");
}

#[test]
fn a_rollback_that_nobody_asked_for_does_not_call_people_again_and_again() {
    let trouble = Trouble::new(FOR_EVER, false, None);
    let id = trouble.row("a", "1");
    let options = UndoOptions {
        trigger: Some(Trigger::new(
            TriggerKind::TransactionAbort,
            Source::Recovery,
        )),
        ..committed()
    };
    for _ in 0..3 {
        partial(trouble.engine.undo(&named(id), &options));
    }
    assert_eq!(trouble.hooks.told.lock().unwrap().len(), 1);
    partial(trouble.undo(&[id]));
    assert_eq!(
        trouble.hooks.told.lock().unwrap().len(),
        2,
        "who asks is heard"
    );
}

/// A large file that Backout wrote, and then wrote over: its inode is kept, and its bytes are known.
fn kept_inode(world: &World) -> (OperationId, String) {
    let large = "a line of a large file\n".repeat(10_000);
    world.write("large", &large);
    let id = world.write("large", "small");
    (id, large)
}

fn empty_depot(world: &World) -> usize {
    let depot = world.path("state/depot");
    let kept = fs::read_dir(depot)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    kept.map(|path| fs::remove_file(path).unwrap()).count()
}

#[test]
fn the_same_bytes_are_taken_from_elsewhere() {
    let world = World::new();
    let large = "a line of a large file\n".repeat(10_000);
    let id = world.write("large", &large);
    world.write("same", &large);
    world.undone(id);
    assert_eq!(empty_depot(&world), 1);
    let report = world.redo();
    assert_eq!(world.read("large").as_deref(), Some(large.as_str()));
    let tried = &report.steps[0].tried;
    let helped = tried.iter().find(|it| it.climbed == Climbed::Helped);
    assert_eq!(helped.map(|it| it.rung), Some(Rung::Fallback), "{tried:?}");
    assert_eq!(world.engine.failed_undos().unwrap().len(), 0);
    // And once more, by what is in the store now.
    world.undone(id);
    world.redo();
    assert_eq!(world.read("large").as_deref(), Some(large.as_str()));
}

#[test]
fn where_nothing_has_the_bytes_it_is_refused_recorded_and_the_others_go() {
    let world = World::new();
    let (lost, _) = kept_inode(&world);
    let other = world.write("other", "1");
    assert_eq!(empty_depot(&world), 1);
    let alone = world.undo(lost, &committed());
    assert!(
        matches!(alone, Err(EngineError::Conflicts { .. })),
        "{alone:?}"
    );
    let both = UndoWhat::Operations(vec![reference(lost), reference(other)]);
    let view = world.engine.preview_undo(&both, &committed()).unwrap();
    assert!(view.is_executable && !view.is_whole(), "{view:?}");
    let report = partial(world.engine.undo(&both, &committed()));
    assert_eq!(world.read("other"), None);
    assert_eq!(world.read("large").as_deref(), Some("small"));
    assert_eq!(report.steps.len(), 2);
    let failed = world.engine.failed_undos().unwrap();
    let [failed] = failed.as_slice() else {
        panic!("{failed:?}")
    };
    assert_eq!(failed.id, lost);
    let why = |rung| {
        let mut tried = failed.tried.iter();
        tried
            .find(|it| it.rung == rung)
            .map(|it| it.climbed.clone())
    };
    let fallback = why(Rung::Fallback).unwrap();
    assert!(
        matches!(&fallback, Climbed::NotPossible { why } if why.contains("was kept as it was and is gone, and nobody knows which bytes it had"))
    );
    let Reply::Status(status) = world.engine.execute(Command::Status).unwrap() else {
        panic!("no status")
    };
    assert_eq!(status.failed, [lost]);
}

#[test]
fn an_undo_says_what_set_it_off() {
    let world = World::new().file("a", "0");
    let trigger_of = |world: &World, report: &UndoReport| {
        let undo = world.engine.store().operation(report.act.unwrap());
        undo.unwrap().unwrap().trigger.unwrap()
    };
    let id = world.write("a", "1");
    let report = world.undone(id);
    assert_eq!(trigger_of(&world, &report), Trigger::asked_for());
    let report = world.redo();
    assert_eq!(trigger_of(&world, &report), Trigger::asked_for());
    let robin = world.asking(|context| context.agent = Some("robin".parse().unwrap()));
    let options = UndoOptions {
        others: true,
        ..committed()
    };
    let report = robin.undo(&named(id), &options).unwrap();
    let trigger = trigger_of(&world, &report);
    assert!(matches!(trigger.source, Source::Agent { agent } if agent.as_str() == "robin"));
    let staged = FileRequest::write(world.path("b"), "1");
    let refused = world.engine.stage(&staged).unwrap();
    let refused = refused.apply_and_verify(|| Err("it must not be".to_owned()));
    assert!(matches!(refused, Err(EngineError::TakenBack { .. })));
    let log = world.engine.store().operations(&Filter::default()).unwrap();
    let trigger = log.first().unwrap().trigger.clone().unwrap();
    assert_eq!(
        (trigger.kind, trigger.severity),
        (TriggerKind::PolicyViolation, Severity::Critical)
    );
}

#[test]
fn where_a_rung_cannot_be_recorded_nobody_climbs_on() {
    let mut is_told = false;
    for works in 0..40 {
        let world = World::new();
        let (lost, _) = kept_inode(&world);
        let other = world.write("other", "1");
        empty_depot(&world);
        let (engine, store) = faulty(&world, works);
        let both = UndoWhat::Operations(vec![reference(lost), reference(other)]);
        let result = engine.undo(&both, &committed());
        if !store.has_failed() {
            break;
        }
        if let Err(EngineError::Partial(report)) = result {
            let mut notes = report.steps.iter().flat_map(|step| &step.notes);
            let said = "what was done about it could not be recorded: ";
            if notes.any(|note| note.contains(said)) {
                is_told = true;
                assert_eq!(world.read("other"), None, "the other one was not held up");
            }
        }
        engine.recover(None).unwrap();
        assert_eq!(world.read("large").as_deref(), Some("small"));
    }
    assert!(is_told);
}
