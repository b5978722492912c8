//! Hooks that work, fail, hang and talk too much.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use backout_model::{
    Climbed, OperationId, Rung, Source, Strategy, TargetOutcome, TargetPath, Timestamp, Tried,
    Trigger, TriggerKind, Verb,
};

use super::*;

/// A directory with rules, and what an undo of a file in it failed with.
struct World {
    directory: tempfile::TempDir,
    hooks: Hooks,
    failure: Failure,
}

impl World {
    /// Has one script restore and tell, for failures of high severity.
    fn new(script: &str, timeout: &str) -> Self {
        let script = serde_json::to_string(script).unwrap();
        let hook = format!("['sh', '-c', {script}]\ntimeout = '{timeout}'");
        Self::with(&format!(
            "[ladder.high]\nrestore = {hook}\n[notify]\ncommand = {hook}\n"
        ))
    }

    fn with(rules: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("backout.toml"), rules).unwrap();
        Self {
            failure: failure(directory.path()),
            hooks: Hooks::new(Arc::new(Paths::new(None, None))),
            directory,
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

fn failure(directory: &Path) -> Failure {
    let why = "the disk is full".to_owned();
    let target = Target::node(TargetPath::new(directory.join("app.toml")).unwrap());
    Failure {
        operation: OperationId::from_bits(7),
        verb: Verb::Write,
        summary: "write app.toml".to_owned(),
        agent: None,
        task: None,
        strategy: Strategy::Snapshot,
        trigger: Trigger::new(TriggerKind::PlanFailure, Source::Command),
        targets: vec![TargetOutcome::new(target, OutcomeKind::Failed { why })],
        tried: vec![Tried {
            rung: Rung::Retry,
            climbed: Climbed::DidNotHelp {
                why: "again".to_owned(),
            },
            times: 3,
            at: Timestamp(5),
        }],
    }
}

#[test]
fn a_hook_is_told_everything() {
    let world = World::new("cat > stdin; env | grep ^BACKOUT_ > variables", "60s");
    world.hooks.alert(&world.failure).unwrap();
    let told: Failure = serde_json::from_str(&world.read("stdin")).unwrap();
    assert_eq!(told, world.failure);
    let variables = world.read("variables");
    let target = format!(
        "BACKOUT_TARGET={}/app.toml",
        world.directory.path().display()
    );
    for line in [
        "BACKOUT_OPERATION=0000000000000007",
        &target,
        "BACKOUT_WHY=the disk is full",
        "BACKOUT_STRATEGY=snapshot",
        "BACKOUT_TRIGGER=plan-failure",
        "BACKOUT_SEVERITY=high",
        "BACKOUT_TRIED=retry",
    ] {
        assert!(
            variables.lines().any(|it| it == line),
            "{line}: {variables}"
        );
    }
}

#[test]
fn a_hook_that_fails_is_told_with_what_it_said() {
    let world = World::new("echo no room >&2; exit 4", "60s");
    let error = world.hooks.restore(&world.failure).unwrap_err();
    assert!(error.contains("no room") && error.contains('4'), "{error}");
    let world = World::with("[notify]\ncommand = ['/no/such/program']");
    let error = world.hooks.alert(&world.failure).unwrap_err();
    assert!(error.contains("`/no/such/program`"), "{error}");
    let world = World::with("[notify]\nwebhook = 'http://127.0.0.1:1/'");
    let error = world.hooks.alert(&world.failure).unwrap_err();
    assert!(error.starts_with("the webhook was not told: "), "{error}");
}

#[test]
fn a_hook_that_hangs_is_ended_with_all_that_it_started() {
    let world = World::new("sleep 600 & echo $! > pid; wait", "500ms");
    let error = world.hooks.restore(&world.failure).unwrap_err();
    assert!(error.contains("took longer than"), "{error}");
    let process = format!("/proc/{}/stat", world.read("pid").trim());
    let is_gone = || match fs::read_to_string(&process) {
        Ok(stat) => stat.contains(") Z"),
        Err(_) => true,
    };
    let is_soon_gone = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        is_gone()
    });
    assert!(is_soon_gone, "the child of the hook is alive");
}

#[test]
fn a_hook_that_reads_nothing_or_says_too_much_ends_all_the_same() {
    let world = World::new("exec 0<&-; exit 0", "60s");
    world.hooks.alert(&world.failure).unwrap();
    let world = World::new("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", "60s");
    let error = world.hooks.alert(&world.failure).unwrap_err();
    assert!(error.len() < 20_000, "{} bytes", error.len());
}

#[test]
fn only_the_severities_that_have_one_have_a_hook() {
    let world = World::new("true", "60s");
    assert!(world.hooks.restores(&world.failure) && world.hooks.alerts(&world.failure));
    let mut low = world.failure.clone();
    low.trigger.severity = Severity::Low;
    assert!(!world.hooks.restores(&low));
    let silent = World::with("[ladder.high]\nretries = 1");
    assert!(!silent.hooks.alerts(&silent.failure));
}

#[test]
fn what_a_file_does_not_say_is_as_usual() {
    let world = World::with("[ladder.high]\nretries = 9\nbackoff = '3s'\naccept-partial = true");
    let targets: Vec<Target> = world
        .failure
        .targets
        .iter()
        .map(|it| it.target.clone())
        .collect();
    let usual = Rungs::default();
    let rungs = world.hooks.rungs(Severity::High, &targets, usual);
    assert_eq!((rungs.retries, rungs.backoff_ms), (9, 3000));
    assert!(rungs.accept_partial && rungs.fallback == usual.fallback);
    assert_eq!(world.hooks.rungs(Severity::Low, &targets, usual), usual);
    let elsewhere = [Target::node(TargetPath::new("/nowhere/x").unwrap())];
    assert_eq!(world.hooks.rungs(Severity::High, &elsewhere, usual), usual);
}
