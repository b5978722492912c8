//! Commands under watch, trials, and processes that die: the real program.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use backout_model::{Operation, OperationId, Status};
use backout_testkit::world::said;

use crate::act::Change;
use crate::oracle::May;
use crate::scene::Scene;
use crate::snapshot::{Tree, differing};
use crate::story::{Dying, Meanwhile};

/// A command that has done its first part and waits for a word.
struct Waiting {
    child: Child,
    input: Option<ChildStdin>,
}

fn script(changes: &[Change]) -> String {
    let lines: Vec<String> = changes.iter().map(|change| change.line()).collect();
    format!("{{ {}; }} 2>/dev/null", lines.join("; "))
}

impl Waiting {
    fn start(scene: &Scene, agent: usize, first: &[Change], then: &[Change]) -> Self {
        let line = format!(
            "{}; echo ready; read word; {}; true",
            script(first),
            script(then)
        );
        let mut command = program(scene, agent);
        command.args(["run", "--", "sh", "-c", &line]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut ready)
            .unwrap();
        assert_eq!(ready, "ready\n");
        let input = child.stdin.take();
        Self { child, input }
    }

    fn watcher(&self) -> i32 {
        let front = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{front}/task/{front}/children"));
        children
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .parse()
            .unwrap()
    }

    fn go_on(mut self) -> Output {
        let _may_be_dead = writeln!(self.input.as_mut().unwrap(), "go");
        drop(self.input.take());
        self.child.wait_with_output().unwrap()
    }
}

fn end(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    // On a busy machine it takes its time to die.
    for _ in 0..30_000 {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        if stat.map_or(true, |stat| stat.contains(") Z ")) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn program(scene: &Scene, agent: usize) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_backout"));
    command
        .current_dir(&scene.root)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("BACKOUT_STATE_DIR", scene.state())
        .env("HOME", scene.state())
        .stdin(Stdio::null());
    if let Some(name) = Scene::agent(agent) {
        command.env("BACKOUT_AGENT", name);
    }
    command
}

/// Runs a command to its end, or to that of its watcher.
pub(crate) fn run(
    scene: &mut Scene,
    agent: usize,
    (first, then): (&[Change], &[Change]),
    meanwhile: &Meanwhile,
) -> Result<(), String> {
    scene.tally.runs += 1;
    let start = scene.look();
    let known = scene.operations().into_keys().collect();
    let waiting = Waiting::start(scene, agent, first, then);
    let before = scene.look();
    let (mut theirs, mut edited) = (BTreeSet::new(), before.clone());
    let output = match meanwhile {
        Meanwhile::Nothing => waiting.go_on(),
        Meanwhile::Foreign(change) => {
            change.by_somebody(&scene.root);
            edited = scene.look();
            theirs = differing(&before, &edited);
            waiting.go_on()
        }
        Meanwhile::Write { agent, change } => {
            return with_a_write(scene, waiting, (&start, &before), *agent, *change);
        }
        Meanwhile::KillWatcher => {
            scene.tally.kills += 1;
            end(waiting.watcher());
            waiting.go_on()
        }
        Meanwhile::KillBoth(change) => {
            scene.tally.kills += 1;
            let (front, watcher) = (waiting.child.id(), waiting.watcher());
            end(i32::try_from(front).unwrap());
            end(watcher);
            let output = waiting.go_on();
            if let Some(change) = change {
                let before = scene.look();
                change.by_somebody(&scene.root);
                theirs = differing(&before, &scene.look());
            }
            output
        }
    };
    let is_killed = matches!(meanwhile, Meanwhile::KillWatcher | Meanwhile::KillBoth(_));
    if !output.status.success() && !is_killed {
        return Err(format!("a command failed: {}", said(&output)));
    }
    let mut now = scene.look();
    let doubtful = scene.doubtful();
    scene.recover()?;
    let recovered = scene.look();
    // What was in doubt already may come back when what stood in its way is gone.
    for name in differing(&now, &recovered) {
        if doubtful.contains(&name) {
            crate::snapshot::put(&mut now, &name, recovered.get(&name).cloned());
            scene.oracle.blur(&name);
        }
    }
    if let Some(why) = crate::snapshot::unlike(&now, &recovered) {
        return Err(format!("recovering a command changed something: {why}"));
    }
    if !doubtful.is_empty() {
        let may = May {
            overwrite: true,
            merge: true,
            ..May::default()
        };
        scene.follow((&now, &recovered), may)?;
    }
    learn(scene, (&start, &now), &before, &theirs, is_killed)?;
    begin_anew(scene, &known, &theirs, &edited);
    Ok(())
}

/// Where somebody wrote what the command had touched, and the command wrote over that, its part until then is told by
/// itself. What it did after that begins with what they left, and gives it back exactly.
fn begin_anew(
    scene: &mut Scene,
    known: &BTreeSet<OperationId>,
    theirs: &BTreeSet<String>,
    edited: &Tree,
) {
    let operations = scene.operations();
    let is_new = |op: &&Operation| !op.verb.is_reversal() && !known.contains(&op.id);
    let mut new: Vec<_> = operations.values().filter(is_new).collect();
    new.sort_by_key(|op| op.place);
    let Some((last, parts)) = new.split_last() else {
        return;
    };
    let is_cut = |name: &str| {
        let mut targets = parts.iter().flat_map(|part| &part.targets);
        targets.any(|standing| {
            let at = crate::oracle::name_of(&scene.root, &standing.target);
            at.is_some_and(|(at, _)| at == name)
        })
    };
    let cut: Vec<&String> = theirs.iter().filter(|name| is_cut(name)).collect();
    for (name, side) in scene.oracle.sides_of(last.id) {
        if cut.contains(&name) {
            side.begin_with(edited.get(name).cloned());
        }
    }
}

/// Learns a command. What somebody else changed meanwhile is theirs, and what both changed is shared.
fn learn(
    scene: &mut Scene,
    (start, now): (&Tree, &Tree),
    before: &Tree,
    theirs: &BTreeSet<String>,
    is_killed: bool,
) -> Result<(), String> {
    let changed = differing(start, now);
    let by_command = differing(start, before);
    let found = found_by(start, before, now, theirs);
    let operations = scene.operations();
    let new: Vec<_> = operations
        .values()
        .filter(|op| !scene.oracle.knows(op.id))
        .collect();
    let mut answered = BTreeSet::new();
    for operation in new.into_iter().filter(|op| !op.verb.is_reversal()) {
        answered.extend(
            scene
                .oracle
                .learn(&scene.root, operation, (&found, now), &changed),
        );
        scene.oracle.learn_vaguely(&scene.root, operation, theirs);
        for (name, side) in scene.oracle.sides_of(operation.id) {
            // What happens in a directory is no change of the directory, and the other way round.
            let is_dressed = side.is_dressed_directory();
            let stays = |other: &String| {
                let is_directory = |tree: &Tree| tree.get(other).is_some_and(|it| it.is_directory);
                is_directory(before) && is_directory(now)
            };
            let touches = |other: &&String| {
                *other == name || (!is_dressed && !stays(other) && is_near(other, name))
            };
            let is_theirs = theirs.iter().any(|other| touches(&other));
            let is_first = by_command.iter().any(|other| touches(&other));
            side.is_shared = is_theirs && is_first;
            // What somebody changed before the command did is what the command found.
            side.is_vague |= is_theirs && !is_first;
            // When the watcher is dead nobody knows what came before its end.
            side.is_vague |= is_killed && side.is_shared;
        }
    }
    let missed = by_command
        .iter()
        .filter(|name| changed.contains(*name) && !answered.contains(*name));
    let missed: Vec<&String> = missed
        .filter(|name| !theirs.iter().any(|t| is_near(t, name)))
        .collect();
    // What the command moved and somebody then took away is nobody's any more.
    if missed.is_empty() || !theirs.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "the command changed {missed:?}, and nobody answers for it"
        ))
    }
}

/// Gives the world as a command found it. Where it changed nothing but the mode of a file that somebody then wrote, their
/// bytes are none of its doing: not even force takes them.
fn found_by(start: &Tree, before: &Tree, now: &Tree, theirs: &BTreeSet<String>) -> Tree {
    let mut found = start.clone();
    for name in theirs {
        if let (Some(was), Some(dressed), Some(is)) =
            (start.get(name), before.get(name), now.get(name))
            && was != dressed
            && dressed.with_mode_of(was) == *was
        {
            crate::snapshot::put(&mut found, name, Some(is.with_mode_of(was)));
        }
    }
    found
}

/// Tells whether two names are one, or one lies in the other: in a directory, or in a file as a key.
pub(crate) fn is_near(one: &str, other: &str) -> bool {
    let is_in = |one: &str, other: &str| {
        let rest = one.strip_prefix(other);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
    };
    is_in(one, other) || is_in(other, one)
}

/// Another operation writes while a command runs: each has its place, and the command's may come in two parts.
fn with_a_write(
    scene: &mut Scene,
    waiting: Waiting,
    (start, before): (&Tree, &Tree),
    agent: usize,
    change: Change,
) -> Result<(), String> {
    let written = scene.engine(agent).write(&change.request(&scene.root));
    let after = scene.look();
    let id = written.ok().and_then(|finished| finished.id);
    let output = waiting.go_on();
    if !output.status.success() {
        return Err(format!("a command failed: {}", said(&output)));
    }
    let now = scene.look();
    let operations = scene.operations();
    let mut new: Vec<_> = operations
        .values()
        .filter(|op| !scene.oracle.knows(op.id))
        .collect();
    new.sort_by_key(|op| op.place);
    let last = new.last().map(|op| op.id);
    // What was cut off is not the command's any more, also where the write was refused after that.
    let mut begun = start.clone();
    for operation in new.into_iter().filter(|op| !op.verb.is_reversal()) {
        let is_write = Some(operation.id) == id;
        let looks = match (is_write, Some(operation.id) == last) {
            (true, _) => (before, &after),
            // What was cut off before the write.
            (false, false) => (start, before),
            (false, true) => (&begun, &now),
        };
        let changed = differing(looks.0, looks.1);
        let answered = scene.oracle.learn(&scene.root, operation, looks, &changed);
        if !is_write {
            for name in answered {
                crate::snapshot::put(&mut begun, &name, before.get(&name).cloned());
            }
        }
        if !is_write && Some(operation.id) == last {
            // Where both wrote, only the second part is the command's own.
            let both = differing(before, &after);
            scene.oracle.learn_vaguely(&scene.root, operation, &both);
            for (name, side) in scene.oracle.sides_of(operation.id) {
                side.is_vague = both.iter().any(|other| is_near(other, name));
            }
        }
    }
    Ok(())
}

/// Tries a command in a layer, and applies it; the rest, if something is left out, is thrown away.
pub(crate) fn attempt(
    scene: &mut Scene,
    changes: &[Change],
    meanwhile: Option<Change>,
    except: Option<&str>,
) -> Result<(), String> {
    scene.tally.trials += 1;
    let start = scene.look();
    let made = program(scene, 0)
        .args([
            "--json",
            "try",
            "--",
            "sh",
            "-c",
            &format!("{}; true", script(changes)),
        ])
        .output()
        .unwrap();
    if let Some(why) = crate::snapshot::unlike(&start, &scene.look()) {
        return Err(format!("a trial changed the real files: {why}"));
    }
    let reply: serde_json::Value = serde_json::from_slice(&made.stdout)
        .map_err(|error| format!("{error}: {}", said(&made)))?;
    if reply["standing"] != "pending" {
        return Ok(());
    }
    let id = reply["id"].as_str().unwrap().to_owned();
    if let Some(change) = meanwhile {
        change.by_somebody(&scene.root);
    }
    let before = scene.look();
    let mut apply = program(scene, 0);
    apply.args(["--json", "try", "--apply", &id]);
    if let Some(name) = except {
        apply.args(["--exclude", name]);
    }
    let applied = apply.output().unwrap();
    let now = scene.look();
    if let (false, Some(why)) = (
        applied.status.success(),
        crate::snapshot::unlike(&before, &now),
    ) {
        return Err(format!(
            "a trial that was not applied changed something: {why}"
        ));
    }
    scene.learn_new((&before, &now))?;
    // Whatever waits is thrown away, and that changes nothing.
    let _thrown = program(scene, 0)
        .args(["try", "--discard", &id])
        .output()
        .unwrap();
    match crate::snapshot::unlike(&now, &scene.look()) {
        None => Ok(()),
        Some(why) => Err(format!("discarding a trial changed something: {why}")),
    }
}

/// A process dies, perhaps somebody edits, and then the living recover.
pub(crate) fn death(
    scene: &mut Scene,
    of: &Dying,
    at: usize,
    meanwhile: Option<Change>,
) -> Result<(), String> {
    let start = scene.look();
    let mut command = program(scene, 0);
    match of {
        Dying::Write(change) => command.args(change.arguments()),
        Dying::Undo(back) => {
            let Some(id) = scene.in_effect(*back) else {
                return Ok(());
            };
            command.args(["undo", "--others", "--committed", &id.to_string()])
        }
        Dying::Redo(back) => {
            let Some(id) = scene.undone(*back) else {
                return Ok(());
            };
            command.args(["redo", "--others", "--committed", &id.to_string()])
        }
    };
    scene.tally.deaths += 1;
    command.env("BACKOUT_CRASH_AT", at.to_string());
    let _dead = command.output().unwrap();
    let dead = scene.look();
    if let Some(change) = meanwhile {
        change.by_somebody(&scene.root);
    }
    let edited = scene.look();
    scene.recover()?;
    if matches!(meanwhile, Some(Change::Move { .. })) {
        // A temporary name that went along with a directory is found by nobody.
        scene.sweep();
    }
    let now = scene.look();
    let theirs = differing(&dead, &edited);
    // A name that somebody took away may be one that the dead had no time to put back: then nothing is lost by it.
    let is_lost = |name: &&String| {
        let (was, is) = (edited.get(*name), now.get(*name));
        was != is && !(was.is_none() && is == start.get(*name))
    };
    if let Some(name) = theirs.iter().find(is_lost) {
        let (was, is) = (edited.get(name), now.get(name));
        return Err(format!(
            "recovery changed what somebody wrote: `{name}` was {was:?} and is {is:?}"
        ));
    }
    for name in &theirs {
        // Whoever came in between, nobody can foresee what a later undo finds.
        scene.oracle.blur(name);
    }
    if let Dying::Write(change) = of {
        let meant = finished(*change, &start, &dead);
        return recovered_write(scene, (&start, &dead, &meant, &now), &theirs);
    }
    let mut expected = now.clone();
    let is_in_doubt = !theirs.is_empty() && waits_for_a_decision(scene);
    for name in differing(&start, &now) {
        if is_in_doubt {
            // The journal claims nothing until somebody decides.
            scene.oracle.blur(&name);
        } else if !theirs.iter().any(|other| is_near(other, &name)) {
            continue;
        }
        crate::snapshot::put(&mut expected, &name, start.get(&name).cloned());
    }
    scene.follow((&start, &expected), May::default()).map(drop)
}

/// Tells that the reversal that died waits for somebody to decide, because of what was edited in between.
fn waits_for_a_decision(scene: &Scene) -> bool {
    let operations = scene.operations();
    let mut new = operations.values().filter(|op| !scene.oracle.knows(op.id));
    new.any(|op| op.verb.is_reversal() && op.status == Status::InDoubt)
}

/// Gives what a dead write comes back as. A move over something swaps the two names first, and what it replaces goes
/// after that. Who died in between left both, and nobody asked for that: a redo brings the write back, whole.
fn finished(change: Change, start: &Tree, dead: &Tree) -> Tree {
    let mut whole = dead.clone();
    if let Change::Move { from, to } = change
        && dead.contains_key(from)
        && dead.get(from) == start.get(to)
        && dead.get(to) == start.get(from)
    {
        whole.retain(|name, _| name != from && !name.starts_with(&format!("{from}/")));
    }
    whole
}

/// A write that died happened, or did not, or waits for somebody to decide.
fn recovered_write(
    scene: &mut Scene,
    (start, dead, meant, now): (&Tree, &Tree, &Tree, &Tree),
    theirs: &BTreeSet<String>,
) -> Result<(), String> {
    let operations = scene.operations();
    let new: Vec<_> = operations
        .values()
        .filter(|op| !scene.oracle.knows(op.id))
        .collect();
    let write = new.into_iter().find(|op| !op.verb.is_reversal()).cloned();
    let stands = write.as_ref().is_some_and(|op| op.status.is_in_effect());
    let is_theirs = |name: &String| theirs.iter().any(|other| is_near(other, name));
    let must = if stands { dead } else { start };
    for name in differing(must, now) {
        if !is_theirs(&name) {
            let (must, is) = (must.get(&name), now.get(&name));
            return Err(format!(
                "a write that died: `{name}` must be {must:?} and is {is:?}"
            ));
        }
    }
    if let Some(operation) = write {
        let changed = differing(start, meant);
        scene
            .oracle
            .learn(&scene.root, &operation, (start, meant), &changed);
        for name in theirs {
            scene.oracle.blur(name);
        }
    }
    Ok(())
}
