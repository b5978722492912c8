//! A process of this program that works for one call: its output, bounded, and its end.
//!
//! - Of what it says only the end is kept, so that no command fills the memory.
//! - A process that a command leaves behind keeps the pipes open: nobody waits for those once the reply is there.
//! - Who cancels the call ends the command: it is asked first, then killed. What it did is recorded either way.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backout_engine::Report;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Program;
use crate::arguments::Connection;
use crate::progress::Teller;

/// How much of the end of each stream is kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// How long a command may take to end when it is asked to, and again when it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// How long the last words of a process may take that has ended.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often a client is told that a command still runs.
const BEAT: Duration = Duration::from_secs(1);

/// How often to look for the last words.
const STEP: Duration = Duration::from_millis(5);

/// What is told of a line of output on the way.
const LINE_CHARS_MAX: usize = 200;

/// A process to start.
#[derive(Debug)]
pub(crate) struct Start {
    /// The words after those of the program.
    pub(crate) words: Vec<OsString>,
    /// Where.
    pub(crate) directory: PathBuf,
    /// What it reads.
    pub(crate) input: Option<Vec<u8>>,
    /// In what connection.
    pub(crate) connection: Connection,
    /// Where its reply is.
    pub(crate) ending: Ending,
    /// Whether it is a trial that the caller may decide about.
    pub(crate) is_trial: bool,
}

/// Where the reply of a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// On stdout, which is ours alone.
    Reply,
    /// The last line of stderr: both streams are the command's.
    Command,
}

/// What a process said, and how it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The reply, or the error, if there is one.
    pub(crate) reply: Option<Value>,
    /// Whether it ended well.
    pub(crate) is_good: bool,
    /// Whether it was ended because somebody cancelled the call.
    pub(crate) is_cancelled: bool,
    /// What else was said on stdout and stderr.
    pub(crate) said: [Said; 2],
}

/// The end of a stream.
#[derive(Debug, Default, Clone)]
pub(crate) struct Said {
    /// How many bytes there were.
    pub(crate) bytes: u64,
    /// The last of them.
    pub(crate) tail: Vec<u8>,
}

/// A stream that is being read.
#[derive(Debug, Default)]
struct Tail {
    bytes: u64,
    kept: VecDeque<u8>,
    is_over: bool,
}

type Shared = Arc<Mutex<Tail>>;

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.kept.extend(bytes);
        let over = self.kept.len().saturating_sub(KEPT_BYTES_MAX);
        self.kept.drain(..over);
    }

    fn last_line(&self) -> Option<String> {
        let end: Vec<u8> = self
            .kept
            .iter()
            .rev()
            .take(LINE_CHARS_MAX * 4)
            .copied()
            .collect();
        let end: Vec<u8> = end.into_iter().rev().collect();
        let text = String::from_utf8_lossy(&end);
        let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.chars().take(LINE_CHARS_MAX).collect())
    }
}

fn held(tail: &Shared) -> std::sync::MutexGuard<'_, Tail> {
    tail.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a process and waits for its end.
pub(crate) async fn run(
    program: Program,
    start: Start,
    teller: Teller,
    stop: CancellationToken,
) -> Result<Ended, Report> {
    let mut command = Command::new(&program.path);
    command
        .args(&program.words)
        .args(&start.words)
        .envs(program.variables)
        .current_dir(&start.directory)
        .stdin(if start.input.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A signal for our own group is not for it: it is asked to end.
        .process_group(0);
    let mut child = command.spawn().map_err(|error| {
        Report::refused("nothing was done: the program could not be started").because(error)
    })?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), start.input) {
        tokio::spawn(async move {
            // Who refuses early does not listen to the end.
            let _written = stdin.write_all(&input).await;
        });
    }
    let out = follow(child.stdout.take());
    let err = follow(child.stderr.take());
    let (status, is_cancelled) = wait(&mut child, &teller, &[&out, &err], stop).await;
    let where_said = match start.ending {
        Ending::Reply => [&out, &err],
        Ending::Command => [&err, &err],
    };
    let is_good = status.is_some_and(|status| status.success());
    let reply = last_words(where_said, &[&out, &err]).await;
    let said = |tail: &Shared| {
        let tail = held(tail);
        Said {
            bytes: tail.bytes,
            tail: tail.kept.iter().copied().collect(),
        }
    };
    let mut said = [said(&out), said(&err)];
    if reply.is_some() {
        take_out_reply(&mut said, start.ending);
    }
    Ok(Ended {
        reply,
        is_good,
        is_cancelled,
        said,
    })
}

/// Reads a stream to its end.
fn follow(stream: Option<impl AsyncRead + Unpin + Send + 'static>) -> Shared {
    let tail = Shared::default();
    let Some(mut stream) = stream else {
        held(&tail).is_over = true;
        return tail;
    };
    let kept = Arc::clone(&tail);
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            held(&kept).add(buffer.get(..count).unwrap_or_default());
        }
        held(&kept).is_over = true;
    });
    tail
}

/// Waits for a process, tells how it goes, and ends it if somebody wants that.
async fn wait(
    child: &mut Child,
    teller: &Teller,
    streams: &[&Shared; 2],
    stop: CancellationToken,
) -> (Option<ExitStatus>, bool) {
    let began = Instant::now();
    let mut beat = interval(BEAT);
    let mut count = 0;
    loop {
        tokio::select! {
            status = child.wait() => return (status.ok(), false),
            () = stop.cancelled() => return (end(child).await, true),
            _ = beat.tick() => {
                count += 1;
                let line = streams.iter().rev().find_map(|stream| held(stream).last_line());
                let seconds = began.elapsed().as_secs();
                let message = match line {
                    Some(line) => format!("runs for {seconds} s; it last said: {line}"),
                    None => format!("runs for {seconds} s"),
                };
                teller.say(count, None, Some(message));
            }
        }
    }
}

/// Ends a process and all that it runs, as Ctrl-C on a terminal does: they are asked, then killed. Those of ours that watch are left to
/// record the end; what they leave is recovered by whoever writes next.
async fn end(child: &mut Child) -> Option<ExitStatus> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok());
    let below = pid.map(running_below).unwrap_or_default();
    let others = || below.iter().map(|(pid, _)| *pid);
    for pid in pid.into_iter().chain(others()) {
        signal(pid, Signal::TERM);
    }
    let asked = timeout(GRACE, child.wait()).await;
    let stayed: Vec<(i32, u64)> = below
        .into_iter()
        .filter(|(pid, began)| stat(*pid).is_some_and(|(_, it)| it == *began))
        .collect();
    for (pid, _) in &stayed {
        signal(*pid, Signal::KILL);
    }
    if let Ok(status) = asked {
        return status.ok();
    }
    if !stayed.is_empty()
        && let Ok(status) = timeout(GRACE, child.wait()).await
    {
        return status.ok();
    }
    let _killed = child.start_kill();
    child.wait().await.ok()
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // If it is gone there is nobody to ask.
        let _sent = kill_process(pid, signal);
    }
}

/// Lists what a process of ours runs, each with the moment of its start; none of those is ours.
fn running_below(top: i32) -> Vec<(i32, u64)> {
    let own = std::fs::read_link("/proc/self/exe").ok();
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<i32>().ok());
        if let Some((pid, (parent, began))) = pid.and_then(|pid| Some((pid, stat(pid)?))) {
            all.push((pid, parent, began));
        }
    }
    let mut below = vec![(top, 0)];
    let mut at = 0;
    while let Some((above, _)) = below.get(at).copied() {
        let children = all.iter().filter(|(_, parent, _)| *parent == above);
        below.extend(children.map(|(pid, _, began)| (*pid, *began)));
        at += 1;
    }
    let is_ours =
        |pid: i32| own.is_some() && std::fs::read_link(format!("/proc/{pid}/exe")).ok() == own;
    below
        .into_iter()
        .skip(1)
        .filter(|(pid, _)| !is_ours(*pid))
        .collect()
}

/// Reads the parent of a process and the moment of its start.
fn stat(pid: i32) -> Option<(i32, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program may hold anything, a bracket too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    let began = fields.nth(17)?.parse().ok()?;
    Some((parent, began))
}

/// Waits for the reply of a process that has ended: until it is there, or nothing more can come.
async fn last_words(places: [&Shared; 2], streams: &[&Shared; 2]) -> Option<Value> {
    let deadline = Instant::now() + LAST_WORDS;
    loop {
        let is_over = streams.iter().all(|stream| held(stream).is_over);
        let found = places.iter().find_map(|place| {
            let tail: Vec<u8> = held(place).kept.iter().copied().collect();
            reply_at_end(&tail).map(|(_, value)| value)
        });
        if found.is_some() || is_over || Instant::now() >= deadline {
            return found;
        }
        sleep(STEP).await;
    }
}

/// Finds a reply or an error in the last line, and where that begins.
fn reply_at_end(bytes: &[u8]) -> Option<(usize, Value)> {
    let end = bytes.strip_suffix(b"\n")?;
    let begin = end
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = end.get(begin..)?;
    if line.first() != Some(&b'{') {
        return None;
    }
    let value: Value = serde_json::from_slice(line).ok()?;
    let is_one = value.get("reply").is_some() || value.get("severity").is_some();
    is_one.then_some((begin, value))
}

fn take_out_reply(said: &mut [Said; 2], ending: Ending) {
    let [out, err] = said;
    if ending == Ending::Reply && reply_at_end(&out.tail).is_some() {
        *out = Said::default();
        return;
    }
    // An error may come after the reply.
    while let Some((begin, _)) = reply_at_end(&err.tail) {
        let gone = err.tail.len() - begin;
        err.tail.truncate(begin);
        err.bytes = err.bytes.saturating_sub(gone as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_is_a_reply() {
        let found = |text: &str| reply_at_end(text.as_bytes()).map(|(at, _)| at);
        assert_eq!(found("a\n{\"reply\":\"ran\"}\n"), Some(2));
        assert_eq!(found("{\"severity\":\"refused\"}\n"), Some(0));
        assert_eq!(found("{\"reply\":\"ran\"}\nmore\n"), None);
        assert_eq!(found("{\"reply\":\"ran\"}"), None, "it may go on");
        assert_eq!(found("{\"a\":1}\n"), None);
    }

    #[test]
    fn of_much_output_the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..200_000 {
            tail.add(format!("line {number}\n").as_bytes());
        }
        assert_eq!(tail.kept.len(), KEPT_BYTES_MAX);
        assert_eq!(tail.last_line().as_deref(), Some("line 199999"));
        assert!(tail.bytes > KEPT_BYTES_MAX as u64);
    }
}
