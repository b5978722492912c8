//! Rollouts at the engine: waves, checks that are scripted, who goes on, and what the store keeps for them.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use backout_drivers::file::FileRequest;
use backout_engine::{
    Command, Engine, EngineError, Reply, Report, RolloutCommand, RolloutError, RolloutStart,
    RolloutView, StartStep, WaveStanding,
};
use backout_model::ports::{GcRequest, Probe, Progress, WaveLook};
use backout_model::{
    OnWaveFailure, Retention, RolloutState, Status, TargetPath, TaskStatus, Timestamp, WaveCheck,
};

use crate::world::World;

type Saying = Box<dyn Fn(&WaveLook<'_>) -> Option<String> + Send + Sync>;

/// A check that says what the test wants, and remembers what it was asked.
struct Scripted {
    says: Saying,
    asked: Mutex<Vec<(u32, Vec<TargetPath>)>>,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl Probe for Scripted {
    fn look(&self, look: &WaveLook<'_>) -> Option<String> {
        let targets = look.targets.iter().map(|target| (*target).clone());
        self.asked
            .lock()
            .unwrap()
            .push((look.wave, targets.collect()));
        (self.says)(look)
    }

    fn refuses(&self, check: &WaveCheck) -> Option<String> {
        check.http.clone()
    }
}

fn scripted(
    says: impl Fn(&WaveLook<'_>) -> Option<String> + Send + Sync + 'static,
) -> Arc<Scripted> {
    Arc::new(Scripted {
        says: Box::new(says),
        asked: Mutex::default(),
    })
}

/// Somebody who wants to stop, or not.
#[derive(Debug, Default)]
struct Stop(AtomicBool);

impl Progress for Stop {
    fn total(&self, _items: u64) {}

    fn advance(&self, _items: u64) {}

    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn five() -> World {
    let world = World::new();
    NAMES
        .iter()
        .fold(world, |world, name| world.file(name, "old"))
}

fn read(world: &World) -> String {
    let all: Vec<String> = NAMES.iter().map(|name| world.read(name).unwrap()).collect();
    all.join(" ")
}

/// A rollout of one target and then two and two, checked.
fn start(world: &World) -> RolloutStart {
    let step = |name: &&str| StartStep {
        target: TargetPath::new(world.path(name)).unwrap(),
        request: FileRequest::write(world.path(name), "new").into(),
    };
    RolloutStart {
        name: Some("r".parse().unwrap()),
        steps: NAMES.iter().map(step).collect(),
        first: 1,
        wave: Some(2),
        pause_ms: 0,
        check: Some(WaveCheck {
            command: Some("as the test says".to_owned()),
            http: None,
            directory: world.directory.path().to_path_buf(),
            tries: 1,
            timeout_ms: 1,
        }),
        on_failure: OnWaveFailure::Wave,
    }
}

/// An engine that is stopped while a wave is checked.
fn stopping(world: &World, stop: &Arc<Stop>, wave: u32) -> Engine {
    let in_probe = Arc::clone(stop);
    let probe = scripted(move |look| {
        in_probe.0.fetch_or(look.wave == wave, Ordering::SeqCst);
        (look.wave == wave).then(|| "the check was ended, too".to_owned())
    });
    world.with(|settings| {
        settings.probe = Some(probe);
        settings.progress = Some(Arc::clone(stop) as _);
    })
}

fn asked(engine: &Engine, command: RolloutCommand) -> Result<RolloutView, EngineError> {
    match engine.execute(Command::Rollout(command))? {
        Reply::Rollout(view) => Ok(*view),
        other => panic!("{other:?}"),
    }
}

fn started(engine: &Engine, start: RolloutStart) -> RolloutView {
    asked(engine, RolloutCommand::Start(Box::new(start))).unwrap()
}

fn resume(engine: &Engine) -> Result<RolloutView, EngineError> {
    let (which, force) = (None, false);
    asked(engine, RolloutCommand::Resume { which, force })
}

fn task(engine: &Engine) -> TaskStatus {
    let task = engine.store().task(&"r".parse().unwrap()).unwrap();
    task.unwrap().status
}

#[test]
fn each_wave_is_checked_before_the_next_is_written() {
    let world = five();
    let names: Vec<_> = NAMES.iter().map(|name| world.path(name)).collect();
    // The check sees the waves before it and its own written, and none after it.
    let seen = names.clone();
    let probe = scripted(move |look| {
        let written = match look.wave {
            1 => 1,
            2 => 3,
            _ => 5,
        };
        let found = seen
            .iter()
            .map(|path| std::fs::read_to_string(path).unwrap());
        let is_new: Vec<bool> = found.map(|text| text == "new").collect();
        let expected: Vec<bool> = (0..5).map(|number| number < written).collect();
        (is_new != expected).then(|| format!("{is_new:?}"))
    });
    let engine = world.with(|settings| settings.probe = Some(Arc::clone(&probe) as _));
    let view = started(&engine, start(&world));
    assert_eq!(view.state, RolloutState::Done);
    assert!(
        view.waves
            .iter()
            .all(|wave| wave.standing == WaveStanding::Passed)
    );
    let path = |number: usize| TargetPath::new(&names[number]).unwrap();
    assert_eq!(
        *probe.asked.lock().unwrap(),
        [
            (1, vec![path(0)]),
            (2, vec![path(1), path(2)]),
            (3, vec![path(3), path(4)])
        ]
    );
    assert_eq!(task(&engine), TaskStatus::Committed);
    for step in view.waves.iter().flat_map(|wave| &wave.targets) {
        assert_eq!(step.status, Some(Status::Committed));
    }
    let ended = resume(&engine);
    assert!(matches!(
        ended,
        Err(EngineError::Rollout(RolloutError::Unknown { name: None }))
    ));
}

#[test]
fn a_wave_that_fails_goes_and_those_before_it_stay_or_go() {
    for (on_failure, after, status) in [
        (
            OnWaveFailure::Wave,
            "new old old old old",
            TaskStatus::Committed,
        ),
        (
            OnWaveFailure::All,
            "old old old old old",
            TaskStatus::RolledBack,
        ),
    ] {
        let world = five();
        let probe = scripted(|look| (look.wave == 2).then(|| "it is down".to_owned()));
        let engine = world.with(|settings| settings.probe = Some(probe));
        let view = started(
            &engine,
            RolloutStart {
                on_failure,
                ..start(&world)
            },
        );
        let RolloutState::Stopped { wave: 2, why, back } = &view.state else {
            panic!("{:?}", view.state);
        };
        assert_eq!(
            (why.as_str(), *back),
            ("the check said no: it is down", on_failure)
        );
        assert_eq!(read(&world), after);
        assert_eq!(task(&engine), status);
        assert_eq!(view.waves[2].standing, WaveStanding::Untouched);
        assert_eq!(view.waves[1].standing, WaveStanding::Undone);
    }
}

#[test]
fn who_is_stopped_during_a_check_goes_on_with_it() {
    let world = five();
    let stop = Arc::new(Stop::default());
    let engine = stopping(&world, &stop, 2);
    let view = started(&engine, start(&world));
    assert_eq!(view.state, RolloutState::Interrupted { wave: 2 });
    assert_eq!(view.waves[1].standing, WaveStanding::UnderWay);
    assert_eq!(read(&world), "new new new old old");
    let well = world.with(|settings| settings.probe = Some(scripted(|_| None)));
    assert_eq!(resume(&well).unwrap().state, RolloutState::Done);
    assert_eq!(read(&world), "new new new new new");
}

#[test]
fn whoever_carries_it_out_is_the_only_one() {
    let world = five();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let other = Arc::new(world.with(|_| {}));
    let (in_probe, heard) = (Arc::clone(&other), Arc::clone(&told));
    let probe = scripted(move |_| {
        let abort = RolloutCommand::Abort {
            which: None,
            force: false,
        };
        for refused in [resume(&in_probe), asked(&in_probe, abort)] {
            heard.lock().unwrap().push(refused.unwrap_err().to_string());
        }
        let status = RolloutCommand::Status { which: None };
        let state = asked(&in_probe, status).unwrap().state;
        assert!(matches!(state, RolloutState::Running { .. }), "{state:?}");
        None
    });
    let engine = world.with(|settings| settings.probe = Some(probe));
    assert_eq!(started(&engine, start(&world)).state, RolloutState::Done);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 6);
    assert!(
        told.iter()
            .all(|it| it.starts_with("the rollout `r` is at work"))
    );
}

#[test]
fn a_write_that_was_undone_by_hand_holds_the_rollout_up() {
    let world = five();
    let stop = Arc::new(Stop::default());
    let engine = stopping(&world, &stop, 1);
    let view = started(&engine, start(&world));
    assert_eq!(view.state, RolloutState::Interrupted { wave: 1 });
    let first = view.waves[0].targets[0].operation.unwrap();
    let calm = world.with(|settings| settings.probe = Some(scripted(|_| None)));
    world.undone(first);
    let RolloutState::Held { wave: 1, why } = resume(&calm).unwrap().state else {
        panic!("it must be held up");
    };
    let said = format!(
        "its write {} was undone by hand; bring it back first, or abort",
        first.short()
    );
    assert!(why.ends_with(&said), "{why}");
    world.redo();
    assert_eq!(resume(&calm).unwrap().state, RolloutState::Done);
}

#[test]
fn nothing_begins_that_could_not_be_carried_out() {
    let world = five();
    let begin = |engine: &Engine, start| {
        let command = RolloutCommand::Start(Box::new(start));
        let Err(EngineError::Rollout(error)) = asked(engine, command) else {
            panic!("it must be refused");
        };
        error.to_string()
    };
    let engine = world.with(|settings| settings.probe = Some(scripted(|_| None)));
    let why = begin(&world.engine, start(&world));
    assert_eq!(
        why,
        "the check cannot be carried out: this program does not look at waves"
    );
    let mut bad = start(&world);
    bad.check = bad.check.map(|check| WaveCheck {
        http: Some("no address".to_owned()),
        ..check
    });
    let why = begin(&engine, bad);
    assert_eq!(why, "the check cannot be carried out: no address");
    let mut none = start(&world);
    none.steps.clear();
    assert_eq!(begin(&engine, none), "a rollout needs a target");
    let told = Report::from(EngineError::from(RolloutError::NoTarget));
    assert_eq!(told.why, ["no target was named"]);
    assert_eq!(told.next[0].text, "name the files to write");
    let mut twice = start(&world);
    twice.steps.extend(start(&world).steps);
    assert!(begin(&engine, twice).ends_with("is named twice"));
    // One target that cannot be written is found before the first is.
    let mut missing = start(&world);
    missing.steps.push(StartStep {
        target: TargetPath::new(world.path("no/such")).unwrap(),
        request: FileRequest::write(world.path("no/such"), "new").into(),
    });
    let missing = asked(&engine, RolloutCommand::Start(Box::new(missing)));
    assert!(
        matches!(missing, Err(EngineError::Driver(_))),
        "{missing:?}"
    );
    assert_eq!(read(&world), "old old old old old");
    assert!(engine.store().rollouts().unwrap().is_empty());
}

#[test]
fn a_rollout_that_was_written_down_is_begun_by_another_process() {
    let world = five();
    let engine = world.with(|settings| settings.probe = Some(scripted(|_| None)));
    let command = Command::Rollout(RolloutCommand::Start(Box::new(start(&world))));
    let text = serde_json::to_string(&command).unwrap();
    let read_back: Command = serde_json::from_str(&text).unwrap();
    let Reply::Rollout(view) = engine.execute(read_back).unwrap() else {
        panic!("a rollout");
    };
    assert_eq!(view.state, RolloutState::Done);
    assert_eq!(read(&world), "new new new new new");
}

#[test]
fn the_store_keeps_what_an_open_rollout_needs_and_lets_it_go_with_its_end() {
    let world = five();
    let stop = Arc::new(Stop::default());
    let view = started(&stopping(&world, &stop, 1), start(&world));
    assert_eq!(view.state, RolloutState::Interrupted { wave: 1 });
    let calm = world.with(|settings| settings.probe = Some(scripted(|_| None)));
    let now = Timestamp(calm.now().0 + 1_000_000_000_000);
    let collect = || {
        let request = GcRequest {
            retention: Retention {
                audit_ms: 0,
                ..Retention::standard()
            },
            now,
            is_dry_run: false,
        };
        calm.store().gc(&request, &mut |_, _| {}).unwrap()
    };
    collect();
    assert_eq!(calm.store().rollouts().unwrap().len(), 1);
    assert!(
        matches!(calm.execute(Command::Verify), Ok(Reply::Verified(report)) if report.findings.is_empty())
    );
    assert_eq!(resume(&calm).unwrap().state, RolloutState::Done);
    assert_eq!(read(&world), "new new new new new");
    let report = collect();
    assert!(report.contents > 0, "the requests go with the end");
}
