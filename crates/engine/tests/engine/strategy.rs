//! The strategy that is chosen is the one that is carried out, or the next one, and both are on record.

use std::sync::Arc;

use backout_driver_example::{PutRows, Rows, Table};
use backout_drivers::file::FileRequest;
use backout_engine::{Command, Context, Engine, EngineError, Finished, TaskCommand, UndoOptions};
use backout_model::ports::OnConflict;
use backout_model::{Cost, Decision, OperationId, Strategy};

use crate::picky::Picky;
use crate::world::{World, named, on, written};

/// More than rides with a record.
const LARGE: usize = 200 * 1024;

fn text(line: usize) -> String {
    let plain = |at: usize| format!("line {at} of a file that is often written\n");
    let lines = (0..100).map(|at| match at {
        50 => format!("version {line}\n"),
        at => plain(at),
    });
    lines.collect()
}

fn large(last: &str) -> String {
    let mut all: String = (0..).map(|at| format!("{at}\n")).take(LARGE / 4).collect();
    all.push_str(last);
    all
}

fn decision(world: &World, id: OperationId) -> Decision {
    let operation = world.engine.store().operation(id).unwrap();
    operation.unwrap().decision
}

fn cost(world: &World, id: OperationId) -> Cost {
    decision(world, id).cost.unwrap()
}

/// The store does not take another large file.
fn full(world: &World) -> Engine {
    world.with(|settings| settings.retention.store_bytes_max = 64 * 1024)
}

#[test]
fn a_file_that_is_written_again_and_again_is_logged() {
    let world = World::new().file("f", &text(0));
    let ids: Vec<_> = (1..=20).map(|line| world.write("f", &text(line))).collect();
    let strategies: Vec<_> = ids
        .iter()
        .map(|id| decision(&world, *id).strategy)
        .collect();
    assert_eq!(strategies[..6], [Strategy::Snapshot; 6]);
    assert_eq!(strategies[6..], [Strategy::Transaction; 14]);
    let seventh = decision(&world, ids[6]);
    assert_eq!(seventh.reason, "6 writes in a minute to one file");
    assert_eq!(
        (seventh.asked, seventh.fallbacks),
        (Some(Strategy::Transaction), vec![Strategy::Snapshot])
    );
    // The new text rides with either; of the old one, only what changes.
    let whole = text(0).len() as u64;
    assert!(cost(&world, ids[0]).stored_bytes > 2 * whole - 10);
    assert!(cost(&world, ids[7]).stored_bytes < whole + 100);
    for (id, line) in ids.iter().zip(0..20).rev() {
        world.undone(*id);
        assert_eq!(world.read("f").unwrap(), text(line));
    }
    for line in 1..=20 {
        world.redo();
        assert_eq!(world.read("f").unwrap(), text(line));
    }
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn what_is_logged_survives_whatever_others_write() {
    let world = World::new().file("f", &text(0));
    let ids: Vec<_> = (1..=9).map(|line| world.write("f", &text(line))).collect();
    let last = ids[8];
    assert_eq!(decision(&world, last).strategy, Strategy::Transaction);
    std::fs::write(world.path("f"), "mine\n").unwrap();
    world
        .engine
        .undo(&named(last), &on(OnConflict::Force))
        .unwrap();
    assert_eq!(world.read("f").unwrap(), text(8));
    let mine = text(8).replace("line 3 ", "line three ");
    std::fs::write(world.path("f"), &mine).unwrap();
    world
        .engine
        .undo(&named(ids[7]), &on(OnConflict::Merge))
        .unwrap();
    assert_eq!(
        world.read("f").unwrap(),
        text(7).replace("line 3 ", "line three ")
    );
}

#[test]
fn where_all_of_it_changes_it_is_kept_whole_and_that_is_on_record() {
    let world = World::new().file("f", "0");
    let whole = |number: usize| number.to_string().repeat(2000);
    let write = |number| {
        world
            .engine
            .write(&FileRequest::write(world.path("f"), whole(number)))
    };
    let all: Vec<Finished> = (1..=8).map(|number| write(number).unwrap()).collect();
    let last = all[7].decision.clone().unwrap();
    assert_eq!(
        (last.asked, last.strategy),
        (Some(Strategy::Transaction), Strategy::Snapshot)
    );
    let why = format!(
        "`{}`: more than 1000 bytes of it change",
        world.path("f").display()
    );
    assert_eq!(last.not_prepared[0].why, why);
    assert_eq!(decision(&world, written(&all[7])), last);
    world.undone(written(&all[7]));
    assert_eq!(world.read("f").unwrap(), whole(7));
}

#[test]
fn what_the_store_has_no_room_for_is_logged() {
    let world = World::new().file("big", &large("one"));
    let engine = full(&world);
    let write = |last: &str| engine.write(&FileRequest::write(world.path("big"), large(last)));
    let first = write("two").unwrap();
    let told = first.decision.clone().unwrap();
    assert_eq!(
        (told.asked, told.strategy),
        (Some(Strategy::Snapshot), Strategy::Transaction)
    );
    assert!(told.not_prepared[0].why.contains("its cap is"), "{told:?}");
    let notes = first.notes.join("; ");
    assert!(notes.contains("as this leaves it"), "{notes}");
    assert!(
        notes.contains("the way back is a transaction, not a snapshot"),
        "{notes}"
    );
    let cost = told.cost.unwrap();
    assert!(cost.stored_bytes < 64 && cost.kept_bytes == 0, "{cost:?}");
    let second = written(&write("three").unwrap());
    assert_eq!(engine.verify().unwrap().findings, []);
    world.undone(second);
    assert_eq!(world.read("big").unwrap(), large("two"));
    world.redo();
    assert_eq!(world.read("big").unwrap(), large("three"));
    world.undone(written(&first));
    assert_eq!(world.read("big").unwrap(), large("one"));
    assert_eq!(engine.verify().unwrap().findings, []);
}

#[test]
fn what_was_made_from_a_file_that_somebody_wrote_into_is_said_to_be_lost() {
    let world = World::new().file("big", &large("one"));
    let request = FileRequest::write(world.path("big"), large("two"));
    let id = written(&full(&world).write(&request).unwrap());
    std::fs::write(world.path("big"), "mine").unwrap();
    for options in [
        UndoOptions::default(),
        on(OnConflict::Force),
        on(OnConflict::Merge),
    ] {
        let refused = world.engine.undo(&named(id), &options);
        assert!(refused.is_err(), "{refused:?}");
        assert_eq!(world.read("big").unwrap(), "mine");
    }
    let report = world.engine.verify().unwrap();
    assert_eq!((report.findings, report.undoable), (vec![], vec![]));
    let [lost] = &report.not_undoable[..] else {
        panic!("{:?}", report.not_undoable);
    };
    assert_eq!(lost.id, id);
    assert!(
        lost.why.contains("only what changed was kept"),
        "{}",
        lost.why
    );
    std::fs::write(world.path("big"), large("two")).unwrap();
    assert_eq!(world.engine.verify().unwrap().undoable, [id]);
    world.undone(id);
    assert_eq!(world.read("big").unwrap(), large("one"));
}

#[test]
fn what_the_caller_insists_on_is_done_so_or_not_at_all() {
    let world = World::new().file("f", &text(0)).file("g", "0");
    let engine = world.asking(|c| c.strategy = Some(Strategy::Transaction));
    let done = engine
        .write(&FileRequest::write(world.path("f"), text(1)))
        .unwrap();
    let told = done.decision.clone().unwrap();
    assert_eq!(
        (told.asked, told.strategy),
        (Some(Strategy::Transaction), Strategy::Transaction)
    );
    assert_eq!(
        (told.reason.as_str(), told.fallbacks),
        ("the caller asked for it", vec![])
    );
    let refused = engine.write(&FileRequest::write(world.path("g"), "1"));
    assert!(
        matches!(refused, Err(EngineError::Driver(_))),
        "{refused:?}"
    );
    assert_eq!(world.read("g").unwrap(), "0");
    world.undone(written(&done));
    assert_eq!(world.read("f").unwrap(), text(0));
}

#[test]
fn any_driver_may_say_that_a_strategy_cannot_be_prepared() {
    let note = PutRows([("a".to_owned(), Some("one".to_owned()))].into());
    let with = |cannot: &[Strategy]| {
        let world = World::new();
        let mut engine = world.with(|_| {});
        let cannot = cannot.to_vec();
        let rows = Rows::new(Table::new(world.path("table")));
        engine.register(Arc::new(Picky { rows, cannot })).unwrap();
        (world, engine)
    };
    let (world, engine) = with(&[]);
    let told = decision(&world, written(&engine.write(&note).unwrap()));
    let (first, rest) = (told.strategy, told.fallbacks);
    let (world, engine) = with(&[first]);
    let told = decision(&world, written(&engine.write(&note).unwrap()));
    assert_eq!((told.asked, told.strategy), (Some(first), rest[0]));
    assert_eq!(
        told.not_prepared[0].why,
        format!("no connection for a {first}")
    );
    let (world, engine) = with(&[first, rest[0]]);
    let refused = engine.write(&note).unwrap_err();
    assert!(
        matches!(&refused, EngineError::Driver(error) if error.fault().not_prepared().is_some())
    );
    assert_eq!(
        world.engine.verify().unwrap().records,
        0,
        "nothing was armed"
    );
}

/// Writes by one strategy and no other.
fn insisting(world: &World, strategy: Strategy, change: impl Fn(&mut Context)) -> Engine {
    world.asking(|context| {
        context.strategy = Some(strategy);
        change(context);
    })
}

#[test]
fn gc_keeps_what_an_older_logged_write_is_a_change_of() {
    for newer in [Strategy::Snapshot, Strategy::Transaction] {
        let world = World::new().file("big", &large("one"));
        let write = |engine: &Engine, last: &str| {
            let request = FileRequest::write(world.path("big"), large(last));
            written(&engine.write(&request).unwrap())
        };
        let begin = TaskCommand::Begin {
            id: Some("t".parse().unwrap()),
            owner_pid: None,
        };
        world.engine.execute(Command::Task(begin)).unwrap();
        // The older one waits for its task; the newer one is past its retention.
        let task = |context: &mut Context| context.task = Some("t".parse().unwrap());
        let older = write(&insisting(&world, Strategy::Transaction, task), "two");
        let later = write(&insisting(&world, newer, |_| {}), "three");
        assert_eq!(decision(&world, older).strategy, Strategy::Transaction);
        assert_eq!(decision(&world, later).strategy, newer);
        let at_once = world.with(|settings| {
            settings.retention.committed_ms_min = 0;
            settings.retention.committed_ms_max = 0;
        });
        let collected = at_once.gc(false, false).unwrap().collected;
        assert_eq!(collected.expired, [], "{newer:?}");
        assert_eq!(world.engine.verify().unwrap().not_undoable, []);
        world.undone(older);
        assert_eq!(world.read("big").unwrap(), large("one"));
        // What nobody needs any more goes.
        let collected = at_once.gc(false, false).unwrap().collected;
        let gone: Vec<_> = collected.expired.iter().map(|(id, _)| *id).collect();
        assert!(gone.contains(&older) && gone.contains(&later), "{gone:?}");
    }
}
