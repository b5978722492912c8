//! What travels between processes: commands that were written down are carried out as if they had been asked here, and
//! several callers share one engine.

#![expect(
    clippy::panic,
    clippy::too_many_lines,
    reason = "a test fails by panicking, and a table is as long as it is"
)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::sync::Arc;
use std::thread;

use backout_driver_example::{PutRows, ROWS, Rows, Table};
use backout_drivers::file::{FileRequest, Source};
use backout_engine::{
    CheckpointCommand, Command, Context, Decide, EngineError, Filter, Glob, OnFailure, Ran,
    RecoverWhat, RedoWhat, Reply, RunRequest, SandboxCommand, SandboxTask, Selection, TaskCommand,
    TrialTask, TryCommand, UndoOptions, UndoWhat, WriteRequest,
};
use backout_model::ports::OnConflict;
use backout_model::{Key, Lsn, Status, TargetPath};

use crate::world::World;

/// Writes a command down and reads it again.
fn sent(command: &Command) -> Command {
    let text = serde_json::to_string(command).unwrap();
    let read: Command = serde_json::from_str(&text).unwrap();
    let (once, twice) = (serde_json::to_value(command), serde_json::to_value(&read));
    assert_eq!(once.unwrap(), twice.unwrap());
    read
}

fn id_of(reply: &Reply) -> backout_model::OperationId {
    match reply {
        Reply::Finished(finished) => finished.id.unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_that_was_written_down_is_carried_out_and_taken_back() {
    let world = World::new().file("f", "before");
    let odd = world
        .directory
        .path()
        .join(OsString::from_vec(b"caf\xe9".to_vec()));
    for path in [world.path("f"), odd.clone()] {
        let request = FileRequest::write(path, "after").into();
        let reply = world.engine.execute(sent(&Command::Write { request }));
        assert_eq!(
            world
                .engine
                .store()
                .operation(id_of(&reply.unwrap()))
                .unwrap()
                .unwrap()
                .status,
            Status::Committed
        );
    }
    assert_eq!(world.read("f").as_deref(), Some("after"));
    assert_eq!(std::fs::read(&odd).unwrap(), b"after");
    for _ in 0..2 {
        let undo = Command::Undo {
            what: UndoWhat::Newest { below: None },
            options: UndoOptions::default(),
            is_dry_run: false,
        };
        let Reply::Undone(_) = world.engine.execute(sent(&undo)).unwrap() else {
            panic!("no undo");
        };
    }
    assert_eq!(world.read("f").as_deref(), Some("before"));
    assert!(!odd.exists());
}

#[test]
fn a_request_of_a_driver_that_is_registered_travels_too() {
    let mut world = World::new();
    let put = || Command::Write {
        request: PutRows([("n".to_owned(), Some("t".to_owned()))].into()).into(),
    };
    match world.engine.execute(sent(&put())) {
        Err(EngineError::NoDriver { name }) => assert_eq!(name, ROWS),
        other => panic!("{other:?}"),
    }
    let table = Table::new(world.path("table"));
    let rows = Arc::new(Rows::new(table.clone()));
    world.engine.register(rows).unwrap();
    world.engine.execute(sent(&put())).unwrap();
    assert_eq!(table.rows().unwrap()["n"], "t");
}

#[test]
fn what_only_this_process_has_cannot_be_written_down() {
    let world = World::new();
    let request = FileRequest::Write {
        path: world.path("f"),
        source: Source::Opened(std::fs::File::open("/dev/null").unwrap()),
        expect: backout_drivers::file::Expect::Anything,
        parents: false,
        mode: None,
    };
    let command = Command::Write {
        request: WriteRequest::from(request),
    };
    assert!(serde_json::to_string(&command).is_err());
    let nonsense = r#"{"command":"write","with":{"request":{"driver":"file","request":{"x":1}}}}"#;
    let command: Command = serde_json::from_str(nonsense).unwrap();
    assert!(world.engine.execute(command).is_err());
}

#[test]
fn every_command_that_can_travel_comes_back_as_it_was() {
    let path = TargetPath::new("/w/a").unwrap();
    let selection = Selection {
        only: vec![Glob::new("*.rs", std::path::Path::new("/w"))],
        exclude: Vec::new(),
    };
    let options = UndoOptions {
        on_conflict: OnConflict::Merge,
        selection: selection.clone(),
        partial: true,
        ..UndoOptions::default()
    };
    let newest: backout_engine::OperationRef = "@-2".parse().unwrap();
    let trial = TrialTask {
        command: vec!["ls".into(), OsString::from_vec(vec![0xff])],
        directory: "/w".into(),
        has_no_network: true,
        waits: false,
        keeps_stdout: false,
    };
    let mut run = RunRequest::new(vec!["make".into()]);
    run.environment = vec![("A".into(), "b".into())];
    run.roots = vec!["/w".into()];
    for command in [
        Command::Run(Box::new(run)),
        Command::Sandbox(SandboxCommand::Exec {
            name: None,
            task: SandboxTask {
                command: vec!["make".into(), OsString::from_vec(vec![0xff])],
                is_line: false,
                time_max: Some(std::time::Duration::from_secs(3)),
                on_failure: OnFailure::Keep,
                keeps_output: true,
            },
        }),
        Command::Try(TryCommand::Run(trial)),
        Command::Try(TryCommand::Apply {
            trial: None,
            selection: selection.clone(),
        }),
        Command::Undo {
            what: UndoWhat::Paths {
                paths: vec![path.clone().into()],
                since: None,
            },
            options: options.clone(),
            is_dry_run: true,
        },
        Command::Redo {
            what: RedoWhat::Operations(vec![newest.clone()]),
            options,
            is_dry_run: false,
        },
        Command::Task(TaskCommand::Begin {
            id: None,
            owner_pid: Some(1),
        }),
        Command::Checkpoint(CheckpointCommand::Mark {
            name: None,
            state: serde_json::json!({"step": 3}),
            resume: None,
        }),
        Command::Log(Filter {
            at: Some(Key::from(path.clone())),
            after: Some(Lsn(3)),
            ..Filter::default()
        }),
        Command::Show(newest.clone()),
        Command::Diff {
            operation: newest.clone(),
            selection,
            is_brief: true,
        },
        Command::Restore {
            paths: vec![path],
            targets: Vec::new(),
            from: newest.clone(),
            is_after: true,
        },
        Command::Status,
        Command::Recover(RecoverWhat::ByHand {
            operations: vec![newest],
            decide: Decide::Rollback {
                on_conflict: OnConflict::Force,
            },
        }),
        Command::Verify,
        Command::Gc {
            is_dry_run: true,
            compact: false,
        },
        Command::Doctor {
            directory: "/".into(),
            repair: false,
        },
    ] {
        let read = sent(&command);
        assert_eq!(format!("{read:?}"), format!("{command:?}"));
    }
}

#[test]
fn callers_in_several_threads_share_one_engine_and_keep_their_names() {
    let world = World::new();
    thread::scope(|scope| {
        for number in 0..4 {
            let engine =
                world.asking(|c| c.agent = Some(format!("agent-{number}").parse().unwrap()));
            let path = world.path(&format!("f{number}"));
            scope.spawn(move || {
                for round in 0..5 {
                    let request = FileRequest::write(path.clone(), format!("{number} {round}"));
                    engine
                        .execute(Command::Write {
                            request: request.into(),
                        })
                        .unwrap();
                }
                let mine = UndoWhat::Newest { below: None };
                engine.undo(&mine, &UndoOptions::default()).unwrap();
            });
        }
        // Whoever looks waits for nobody, and sees whole operations.
        let looker = world.asking(|_| {});
        scope.spawn(move || {
            for _ in 0..20 {
                let Reply::Log { operations } =
                    looker.execute(Command::Log(Filter::default())).unwrap()
                else {
                    panic!("no log");
                };
                assert!(operations.iter().all(|it| it.agent.is_some()));
            }
        });
    });
    for number in 0..4 {
        assert_eq!(
            world.read(&format!("f{number}")),
            Some(format!("{number} 3"))
        );
        let of_one = Filter {
            agent: Some(format!("agent-{number}").parse().unwrap()),
            ..Filter::default()
        };
        assert_eq!(world.engine.store().operations(&of_one).unwrap().len(), 6);
    }
    assert_eq!(world.engine.verify().unwrap().findings, []);
}

#[test]
fn a_context_travels_and_asks_for_somebody() {
    let world = World::new();
    let context = Context {
        agent: Some("bot".parse().unwrap()),
        ..Context::default()
    };
    let text = serde_json::to_string(&context).unwrap();
    let engine = world
        .engine
        .for_caller(serde_json::from_str(&text).unwrap());
    let reply = engine.execute(Command::Write {
        request: FileRequest::write(world.path("f"), "x").into(),
    });
    let id = id_of(&reply.unwrap());
    let operation = world.engine.store().operation(id).unwrap().unwrap();
    assert_eq!(operation.agent, Some("bot".parse().unwrap()));
    assert!(
        serde_json::from_str::<Context>("{}")
            .unwrap()
            .agent
            .is_none()
    );
}

#[test]
fn a_command_is_run_like_any_other_command() {
    let world = World::new().file("f", "before\n");
    let script = format!("echo after > {}", world.path("f").display());
    let request = RunRequest::new(vec!["sh".into(), "-c".into(), script.into()]);
    let reply = world.engine.execute(sent(&Command::Run(Box::new(request))));
    let Reply::Ran(ran) = reply.unwrap() else {
        panic!("it did not run");
    };
    let Ran { report, left, .. } = *ran;
    assert!(left.is_none());
    assert_eq!((report.status, report.end.changed), (Status::Committed, 1));
    assert_eq!(world.read("f").as_deref(), Some("after\n"));
    world.undone(report.id);
    assert_eq!(world.read("f").as_deref(), Some("before\n"));
}
