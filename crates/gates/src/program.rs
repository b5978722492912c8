//! Runs a program of the user's own, with a limit on time and words, and ends all that it started.

use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use backout_capture::overlay::{self, Ended, Invocation, OverlayError, Streams, Survivors};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group, waitid,
};

use crate::rules::kinds::Program;

/// How often we look whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// How long we listen to what a program left running: it may talk for ever.
const LINGER: Duration = Duration::from_millis(200);

/// How often what a program left running is looked for: what is ended cannot start more.
const ROUNDS_MAX: usize = 20;

/// How many bytes are kept of what a program prints that is asked for something.
const ASKED_BYTES_MAX: usize = 1 << 20;

/// The variable by which what a program started is known.
const MARK: &str = "BACKOUT_PROGRAM";

/// What becomes of what a program leaves running. If its time is up, its group ends in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It ends: who looks leaves nothing behind.
    Ends,
    /// It stays: a reload may start a service.
    Stays,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// With exit code 0.
    Passed,
    /// Otherwise, with its words.
    Failed {
        /// What its end was.
        how: String,
        /// What it said, cut to its limit.
        said: String,
    },
}

impl End {
    fn of(ended: Ended, is_timed_out: bool, program: &Program, said: String) -> Self {
        let name = program.words.first().map(|name| name.to_string_lossy());
        let name = name.unwrap_or_default();
        let how = match ended {
            _ if is_timed_out => format!("`{name}` took longer than {:?}", program.time_max),
            Ended::Code(0) => return Self::Passed,
            Ended::Code(code) => format!("`{name}` ended with {code}"),
            Ended::Signal(signal) => format!("`{name}` was ended by signal {signal}"),
        };
        Self::Failed { how, said }
    }

    /// A program that did not even begin.
    pub(crate) fn not_begun(how: impl Into<String>) -> Self {
        Self::Failed {
            how: how.into(),
            said: String::new(),
        }
    }

    /// Says how it ended and what it said, if it did not pass.
    pub(crate) fn told(&self) -> Option<String> {
        match self {
            Self::Passed => None,
            Self::Failed { how, said } if said.trim().is_empty() => Some(how.clone()),
            Self::Failed { how, said } => Some(format!("{how}: {}", said.trim())),
        }
    }
}

/// Runs a program as it is, with `input` to read.
pub(crate) fn run(program: &Program, variables: &[(&str, String)], input: &str, rest: Rest) -> End {
    let each = variables.iter();
    let variables: Vec<_> = each
        .map(|(name, value)| (*name, OsStr::new(value)))
        .collect();
    run_with(program, &variables, input, rest)
}

/// The same, with variables whose values are any bytes.
pub(crate) fn run_with(
    program: &Program,
    variables: &[(&str, &OsStr)],
    input: &str,
    rest: Rest,
) -> End {
    let (sink, words) = match listen(program.output_max) {
        Ok(both) => both,
        Err(error) => return End::not_begun(error.to_string()),
    };
    let more = match sink.try_clone() {
        Ok(more) => more,
        Err(error) => return End::not_begun(error.to_string()),
    };
    match carry_out(program, variables, input, rest, ([sink, more], &|| false)) {
        Ok((ended, is_timed_out)) => End::of(ended, is_timed_out, program, words.take()),
        Err(how) => End::not_begun(how),
    }
}

/// What a program that was asked for something gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its exit code; none if it was ended, or its time was up.
    pub code: Option<u8>,
    /// What it printed, cut to its limit.
    pub printed: Vec<u8>,
    /// What it said beside that, and how it ended if that was not with 0.
    pub said: String,
    /// Whether somebody stopped it.
    pub is_stopped: bool,
}

/// How far a program that was asked for something may go.
pub struct Limits<'l> {
    /// How long it may take.
    pub time_max: Duration,
    /// Whether somebody wants to stop.
    pub is_stopped: &'l dyn Fn() -> bool,
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits")
            .field("time_max", &self.time_max)
            .finish_non_exhaustive()
    }
}

/// Runs a program of the user's own for what it prints, and ends what it left running. The error says why it did not begin.
pub fn ask_program(
    words: Vec<OsString>,
    directory: &Path,
    variables: &[(&str, &OsStr)],
    input: &str,
    limits: &Limits<'_>,
) -> Result<Asked, String> {
    let program = Program {
        words,
        directory: directory.to_owned(),
        time_max: limits.time_max,
        output_max: ASKED_BYTES_MAX,
    };
    let listening = || listen(program.output_max).map_err(|error| error.to_string());
    let ((sink, printed), (side, said)) = (listening()?, listening()?);
    let carried = carry_out(
        &program,
        variables,
        input,
        Rest::Ends,
        ([sink, side], limits.is_stopped),
    );
    let (ended, is_timed_out) = carried?;
    let said = said.take();
    if is_timed_out && (limits.is_stopped)() {
        return Ok(Asked {
            code: None,
            printed: printed.take_bytes(),
            said: format!("`{}` was stopped", program.line()),
            is_stopped: true,
        });
    }
    let end = End::of(ended, is_timed_out, &program, said.clone());
    Ok(Asked {
        code: match ended {
            Ended::Code(code) if !is_timed_out => Some(code),
            Ended::Code(_) | Ended::Signal(_) => None,
        },
        printed: printed.take_bytes(),
        said: end.told().unwrap_or(said),
        is_stopped: false,
    })
}

/// Starts a program, waits for it, and ends what is not to stay. Gives how it ended, and whether its time was up or somebody stopped it.
fn carry_out(
    program: &Program,
    variables: &[(&str, &OsStr)],
    input: &str,
    rest: Rest,
    ([out, side], is_stopped): ([OwnedFd; 2], &dyn Fn() -> bool),
) -> Result<(Ended, bool), String> {
    let Some((name, arguments)) = program.words.split_first() else {
        return Err("it has no name".to_owned());
    };
    let mark = mark();
    let mut command = Command::new(name);
    command
        .args(arguments)
        .env(MARK, &mark)
        .current_dir(&program.directory)
        .envs(variables.iter().copied())
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(out)
        .stderr(side);
    let spawned = command.spawn();
    // Our own ends of the pipes are in it.
    drop(command);
    let mut child = spawned.map_err(|error| {
        let name = name.to_string_lossy();
        format!("`{name}` could not be started: {error}")
    })?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(mut to) = child.stdin.take() {
        let input = input.to_owned();
        // Who does not read it must not keep us waiting.
        thread::spawn(move || std::io::Write::write_all(&mut to, input.as_bytes()));
    }
    let is_over = until_over(group, Instant::now() + program.time_max, is_stopped);
    // As long as nobody has asked how it ended, its number is its own.
    if !is_over || rest == Rest::Ends {
        if let Some(group) = group {
            let _gone = kill_process_group(group, Signal::KILL);
        }
        end_marked(&mark);
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    Ok((ended_of(status), !is_over))
}

/// Waits until a process has ended, without taking its end away. Tells whether it did in time.
fn until_over(process: Option<Pid>, deadline: Instant, is_stopped: &dyn Fn() -> bool) -> bool {
    let Some(process) = process else {
        return false;
    };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    loop {
        match waitid(WaitId::Pid(process), how) {
            Ok(Some(_)) | Err(_) => return true,
            Ok(None) if Instant::now() >= deadline || is_stopped() => return false,
            Ok(None) => thread::sleep(LOOK),
        }
    }
}

/// A value that no other process has in its environment.
fn mark() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    format!("{}-{now}", std::process::id())
}

/// Ends every process that has the mark in its environment: what left its group has it still.
fn end_marked(mark: &str) {
    let wanted = format!("{MARK}={mark}");
    for _ in 0..ROUNDS_MAX {
        let mut is_any = false;
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            if variables.any(|it| it == wanted.as_bytes())
                && let Some(pid) = Pid::from_raw(pid)
            {
                is_any |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        if !is_any {
            return;
        }
        thread::sleep(LOOK);
    }
}

/// Runs a program where it can change nothing: in layers that are thrown away, without a network. `before` is carried out
/// in there first. The error says that there are no layers here.
pub(crate) fn run_in_layers(
    program: &Program,
    shell: &Shell,
    places: &[PathBuf],
    masks: &[PathBuf],
) -> Result<End, OverlayError> {
    let (sink, words) = match listen(program.output_max) {
        Ok(both) => both,
        Err(error) => return Ok(End::not_begun(error.to_string())),
    };
    let sink = Arc::new(sink);
    let invocation = Invocation {
        program: "/bin/sh".into(),
        arguments: shell.arguments(&program.words),
        directory: program.directory.clone(),
        environment: None,
        has_no_network: true,
        streams: Streams::To(Arc::clone(&sink)),
        time_max: Some(program.time_max),
        survivors: Survivors::End,
    };
    let finished = overlay::run(&invocation, places, masks);
    drop(invocation);
    drop(sink);
    for place in places {
        let _gone = overlay::remove(place);
    }
    let finished = finished?;
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // Who stops us does not mean the check alone.
        if finished.signals.contains(&signal.as_raw()) {
            let _heard = kill_process(getpid(), signal);
        }
    }
    Ok(End::of(
        finished.ended,
        finished.is_timed_out,
        program,
        words.take(),
    ))
}

/// What a shell does in the layers before the program: puts the change in its place, so that the program sees the world as it
/// would be.
#[derive(Debug, Default)]
pub(crate) struct Shell {
    /// Names that come to stand for something: where it is staged, and where it goes.
    pub(crate) puts: Vec<(PathBuf, PathBuf)>,
    /// Names that go.
    pub(crate) removes: Vec<PathBuf>,
}

impl Shell {
    /// All paths are arguments: nothing is quoted, and nothing can be mistaken for a word of the shell.
    const SCRIPT: &str = r#"
n=$1; shift
while [ "$n" -gt 0 ]; do rm -rf -- "$1" || exit 125; shift; n=$((n-1)); done
n=$1; shift
while [ "$n" -gt 0 ]; do
  mkdir -p -- "${2%/*}/" && {
    [ -d "$2" ] && rm -rf -- "$2"
    { cat -- "$1" >"$2"; } 2>/dev/null || { rm -f -- "$2" && cat -- "$1" >"$2"; }
  } || exit 125
  shift 2; n=$((n-1))
done
exec "$@"
"#;

    fn arguments(&self, words: &[OsString]) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["-c".into(), Self::SCRIPT.into(), "check".into()];
        let count = |number: usize| OsString::from(number.to_string());
        arguments.push(count(self.removes.len()));
        arguments.extend(self.removes.iter().map(OsString::from));
        arguments.push(count(self.puts.len()));
        for (from, to) in &self.puts {
            arguments.extend([OsString::from(from), OsString::from(to)]);
        }
        arguments.extend(words.iter().cloned());
        arguments
    }
}

/// Puts paths into the words of a program.
pub(crate) fn filled(program: &Program, staged: &Path, target: &Path) -> Program {
    let places = [
        ("{staged}", staged.as_os_str()),
        ("{target}", target.as_os_str()),
    ];
    let words = program.words.iter().map(|word| filled_in(word, &places));
    Program {
        words: words.collect(),
        ..program.clone()
    }
}

/// Puts something in the place of each name in a word. What was put in is not looked at again: names may hold such names.
pub(crate) fn filled_in(word: &OsStr, places: &[(&str, &OsStr)]) -> OsString {
    let mut rest = word.as_bytes();
    let mut filled = Vec::with_capacity(rest.len());
    while let Some(first) = rest.first() {
        let mut all = places.iter();
        let place =
            all.find_map(|(name, value)| Some((rest.strip_prefix(name.as_bytes())?, value)));
        if let Some((after, value)) = place {
            filled.extend(value.as_bytes());
            rest = after;
        } else {
            filled.push(*first);
            rest = rest.get(1..).unwrap_or_default();
        }
    }
    OsString::from_vec(filled)
}

fn ended_of(status: std::process::ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt as _;
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(byte(code)),
        (None, signal) => Ended::Signal(byte(signal.unwrap_or(0))),
    }
}

/// What a program says, being read.
struct Words {
    said: Arc<Mutex<Vec<u8>>>,
    /// Closed when all ends of the pipe are.
    is_over: Receiver<()>,
}

impl Words {
    /// Gives what was said, and does not wait for ever for what goes on running.
    fn take(self) -> String {
        String::from_utf8_lossy(&self.take_bytes()).into_owned()
    }

    /// The same, as it was said.
    fn take_bytes(self) -> Vec<u8> {
        let _over = self.is_over.recv_timeout(LINGER);
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut said)
    }
}

/// Opens a pipe and reads it to its end; what is beyond a limit is read and dropped.
fn listen(bytes_max: usize) -> std::io::Result<(OwnedFd, Words)> {
    let (mut from, to) = std::io::pipe()?;
    let said = Arc::new(Mutex::new(Vec::new()));
    let (over, is_over) = channel::<()>();
    let heard = Arc::clone(&said);
    thread::spawn(move || {
        let _over = over;
        let mut piece = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            let mut said = heard.lock().unwrap_or_else(PoisonError::into_inner);
            let room = bytes_max.saturating_sub(said.len()).min(count);
            said.extend(piece.get(..room).unwrap_or_default());
        }
    });
    Ok((to.into(), Words { said, is_over }))
}
