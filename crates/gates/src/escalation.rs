//! Hooks for undos that failed: commands of the user's that restore the environment or tell a person.
//!
//! - A hook gets all that is known as JSON on its standard input, and the main things in `BACKOUT_*` variables.
//! - Its time and what it may say are limited. When it is over, or its time is up, its whole process group is ended.
//! - How it ended is only told. Whether anything came back is for the engine to look at.

use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use backout_model::ports::Escalation;
use backout_model::{Failure, OutcomeKind, Severity};
use rustix::process::{Pid, Signal, kill_process_group};

/// How much a hook may say. The rest is not read.
const SAID_BYTES_MAX: u64 = 4096;

/// How often it is looked whether a hook is over.
const LOOK_MS: u64 = 20;

/// Hooks that are commands.
#[derive(Debug, Clone)]
pub struct CommandEscalation {
    /// What restores the environment, for each severity that has such a hook: a program and its words.
    pub restore: BTreeMap<Severity, Vec<String>>,
    /// What tells a person; empty if nothing does.
    pub alert: Vec<String>,
    /// How long a hook may take.
    pub timeout: Duration,
}

impl Escalation for CommandEscalation {
    fn restores(&self, severity: Severity) -> bool {
        let words = self.restore.get(&severity);
        words.is_some_and(|words| !words.is_empty())
    }

    fn restore(&self, failure: &Failure) -> Result<(), String> {
        let words = self.restore.get(&failure.trigger.severity);
        self.call(words.map_or(&[], Vec::as_slice), failure)
    }

    fn alerts(&self) -> bool {
        !self.alert.is_empty()
    }

    fn alert(&self, failure: &Failure) -> Result<(), String> {
        self.call(&self.alert, failure)
    }
}

impl CommandEscalation {
    fn call(&self, words: &[String], failure: &Failure) -> Result<(), String> {
        let Some((program, words)) = words.split_first() else {
            return Err("there is no such hook".to_owned());
        };
        let told = serde_json::to_vec(failure)
            .map_err(|error| format!("the failure could not be written down: {error}"))?;
        let mut command = Command::new(program);
        command.args(words).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        command.envs(variables(failure));
        let child = command.spawn();
        let child = child.map_err(|error| format!("`{program}` could not be started: {error}"))?;
        let mut hook = Hook { child };
        let ended = hook.talk(told, self.timeout);
        let (ended, said) = ended.map_err(|error| format!("`{program}`: {error}"))?;
        let said = match said.trim() {
            "" => String::new(),
            said => format!(": {said}"),
        };
        match ended {
            None => Err(format!(
                "`{program}` took more than {} s and was ended{said}",
                self.timeout.as_secs_f32()
            )),
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(format!("`{program}` failed ({status}){said}")),
        }
    }
}

/// A hook that runs. With it goes all that it started and that is still in its process group.
struct Hook {
    child: Child,
}

impl Hook {
    /// Tells the hook what happened and waits for its end; none if its time was up. Gives what it said as well.
    fn talk(
        &mut self,
        told: Vec<u8>,
        timeout: Duration,
    ) -> io::Result<(Option<ExitStatus>, String)> {
        let began = Instant::now();
        let (stdin, stderr) = (self.child.stdin.take(), self.child.stderr.take());
        let teller = thread::spawn(move || {
            // Who does not want to know closes the pipe.
            let _told = stdin.map(|mut stdin| stdin.write_all(&told));
        });
        let listener = thread::spawn(move || stderr.map(|mut stderr| heard(&mut stderr)));
        let mut ended = self.child.try_wait()?;
        while ended.is_none() && began.elapsed() < timeout {
            thread::sleep(Duration::from_millis(LOOK_MS));
            ended = self.child.try_wait()?;
        }
        // Whoever still holds the pipes goes with it.
        self.end();
        if ended.is_none() {
            self.child.wait()?;
        }
        let _told = teller.join();
        let said = listener.join().ok().flatten().unwrap_or_default();
        Ok((ended, said))
    }

    fn end(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // What is over already needs no signal.
            let _sent = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.end();
        let _over = self.child.try_wait();
    }
}

/// Reads what a hook says, up to a limit, and lets the rest pass.
fn heard(from: &mut dyn Read) -> String {
    let mut said = Vec::new();
    let _read = from.take(SAID_BYTES_MAX).read_to_end(&mut said);
    let _rest = io::copy(from, &mut io::sink());
    String::from_utf8_lossy(&said).into_owned()
}

/// The main things, for hooks that read no JSON.
fn variables(failure: &Failure) -> Vec<(&'static str, String)> {
    let failed = failure.targets.iter().find_map(|it| match &it.kind {
        OutcomeKind::Failed { why } | OutcomeKind::Conflict { why } => {
            Some((it.target.to_string(), why.clone()))
        }
        _ => None,
    });
    let (target, why) = failed.unwrap_or_default();
    let tried: Vec<&str> = failure.tried.iter().map(|it| it.rung.as_str()).collect();
    vec![
        ("BACKOUT_OPERATION", failure.operation.to_string()),
        ("BACKOUT_SUMMARY", failure.summary.clone()),
        ("BACKOUT_TARGET", target),
        ("BACKOUT_WHY", why),
        ("BACKOUT_STRATEGY", failure.strategy.to_string()),
        ("BACKOUT_TRIGGER", failure.trigger.kind.to_string()),
        ("BACKOUT_SEVERITY", failure.trigger.severity.to_string()),
        ("BACKOUT_TRIED", tried.join(",")),
    ]
}

#[cfg(test)]
mod tests {
    use std::fs;

    use backout_model::{
        Climbed, OperationId, Rung, Source, Strategy, Target, TargetOutcome, TargetPath, Timestamp,
        Tried, Trigger, TriggerKind, Verb,
    };

    use super::*;

    fn failure() -> Failure {
        let why = "the disk is full".to_owned();
        let target = Target::node(TargetPath::new("/etc/app.toml").unwrap());
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

    fn sh(script: &str, timeout: Duration) -> CommandEscalation {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        CommandEscalation {
            restore: BTreeMap::from([(Severity::High, words.clone())]),
            alert: words,
            timeout,
        }
    }

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_hook_is_told_everything() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name).display().to_string();
        let script = format!(
            "cat > '{}'; env | grep ^BACKOUT_ > '{}'",
            file("stdin"),
            file("variables")
        );
        sh(&script, LONG).alert(&failure()).unwrap();
        let told = fs::read(directory.path().join("stdin")).unwrap();
        let told: Failure = serde_json::from_slice(&told).unwrap();
        assert_eq!(told, failure());
        let variables = fs::read_to_string(directory.path().join("variables")).unwrap();
        for line in [
            "BACKOUT_OPERATION=0000000000000007",
            "BACKOUT_TARGET=/etc/app.toml",
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
        let error = sh("echo no room >&2; exit 4", LONG).restore(&failure());
        let error = error.unwrap_err();
        assert!(error.contains("no room") && error.contains('4'), "{error}");
        let missing = CommandEscalation {
            alert: vec!["/no/such/program".to_owned()],
            ..sh("", LONG)
        };
        let error = missing.alert(&failure()).unwrap_err();
        assert!(error.contains("`/no/such/program`"), "{error}");
    }

    #[test]
    fn a_hook_that_hangs_is_ended_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let pids = directory.path().join("pids");
        let script = format!("sleep 600 & echo $! > '{}'; wait", pids.display());
        let error = sh(&script, Duration::from_millis(500)).restore(&failure());
        assert!(error.unwrap_err().contains("was ended"));
        let pid = fs::read_to_string(&pids).unwrap();
        let process = format!("/proc/{}/stat", pid.trim());
        let is_gone = || match fs::read_to_string(&process) {
            Ok(stat) => stat.contains(") Z"),
            Err(_) => true,
        };
        for _ in 0..500 {
            if is_gone() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("the child of the hook is alive");
    }

    #[test]
    fn a_hook_that_reads_nothing_or_says_too_much_ends_all_the_same() {
        sh("exec 0<&-; exit 0", LONG).alert(&failure()).unwrap();
        let loud = sh("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", LONG);
        let error = loud.alert(&failure()).unwrap_err();
        assert!(error.len() < 5000, "{} bytes", error.len());
    }

    #[test]
    fn only_the_severities_that_have_one_have_a_hook() {
        let hooks = sh("true", LONG);
        assert!(hooks.restores(Severity::High) && !hooks.restores(Severity::Low));
        let silent = CommandEscalation {
            alert: Vec::new(),
            ..hooks
        };
        assert!(!silent.alerts() && sh("true", LONG).alerts());
    }
}
