//! Running a command in a sandbox: one more layer, kept if the command succeeds and dropped if it does not.
//!
//! ```text
//! note that it runs ─► run ─► look at what it changed ─► note the checkpoint      (kept)
//!                                                    └─► note, drop the layer     (rolled back)
//! ```

use std::ffi::OsString;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use backout_capture::overlay::{self, Above, Ended, Invocation, Stack, Streams, Survivors, What};
use backout_crashpoint::crash_point;
use backout_model::{OperationId, TargetPath, any_words};
use serde::{Deserialize, Serialize};

use super::carry::{Note, Variables};
use super::depth::LAYERS_MAX;
use super::manifest::{Checkpoint, Entry, Running, said, targets};
use super::open::{Open, remove};
use super::text;
use super::view::{SandboxAct, SandboxRan, SandboxVerdict};
use crate::{Engine, EngineError, TrialChangeView, TrialError, TrialWhat};

/// How much of a command's words is kept, from the end.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// A command to run in a sandbox.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxTask {
    /// The program and its arguments; or one word, a line for a shell.
    #[serde(with = "any_words")]
    pub command: Vec<OsString>,
    /// Whether it is a line for a shell, which carries its directory and variables on.
    pub is_line: bool,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_max: Option<Duration>,
    /// What becomes of what it did if it fails.
    pub on_failure: OnFailure,
    /// Whether its words are kept for the reply; else they go where ours go.
    pub keeps_output: bool,
}

/// What becomes of what a failing command did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// It is dropped.
    Rollback,
    /// It stays, as a checkpoint.
    Keep,
}

impl Engine {
    pub(super) fn exec(
        &self,
        name: Option<&str>,
        task: &SandboxTask,
    ) -> Result<SandboxRan, EngineError> {
        let mut open = self.open_sandbox(name)?;
        let mut ran = self.exec_open(&mut open, task)?;
        self.flatten(&mut open)?;
        ran.notes.extend(self.prune_by_itself(&mut open)?);
        Ok(ran)
    }

    fn exec_open(&self, open: &mut Open, task: &SandboxTask) -> Result<SandboxRan, EngineError> {
        let layer = self.next_id();
        let words = task.command.iter().map(|word| word.display().to_string());
        let command: Vec<String> = words.collect();
        let running = Running {
            layer,
            command: command.clone(),
            is_line: task.is_line,
            owner: self.store.this_process(),
            at: self.now(),
        };
        let at = running.at;
        open.manifest.running = Some(running);
        self.save(open)?;
        crash_point("sandbox.begun");
        let began = Instant::now();
        let done = self.run_in(open, layer, task);
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        open.manifest.running = None;
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                open.manifest.unfinished.push(layer);
                self.save_making_room(open)?;
                open.sweep()?;
                return Err(error);
            }
        };
        crash_point("sandbox.ran");
        let verdict = done.verdict();
        let is_kept = verdict == SandboxVerdict::Succeeded || task.on_failure == OnFailure::Keep;
        let before = open.manifest.head;
        let directory = open.directory();
        if is_kept {
            self.add_checkpoint(open, layer, &done)?;
        } else {
            open.manifest.unfinished.push(layer);
        }
        open.manifest.log.push(Entry {
            act: SandboxAct::Ran,
            command: command.clone(),
            is_line: task.is_line,
            verdict: Some(verdict),
            code: Some(done.above.finished.ended.code()),
            checkpoint: open.manifest.head,
            is_rolled_back: !is_kept,
            directory,
            at,
            took_ms,
            changes: done.changes.len() as u64,
        });
        self.save_making_room(open)?;
        crash_point("sandbox.noted");
        open.sweep()?;
        Ok(done.told(
            open,
            said(&command, task.is_line),
            (before, is_kept, took_ms),
        ))
    }

    fn run_in(
        &self,
        open: &Open,
        layer: OperationId,
        task: &SandboxTask,
    ) -> Result<Done, EngineError> {
        let stack = open.manifest.stack(layer).ok_or_else(no_place)?;
        if stack.lowers.len() > LAYERS_MAX {
            return Err(EngineError::Io {
                action: "put one more layer above so many that cannot be merged",
                source: std::io::ErrorKind::QuotaExceeded.into(),
            });
        }
        let directory = open.directory();
        let variables = self.variables(open)?;
        let io = |source| EngineError::Io {
            action: "prepare the command",
            source,
        };
        let note = task.is_line.then(Note::new).transpose().map_err(io)?;
        let tail = task
            .keeps_output
            .then(Tail::begin)
            .transpose()
            .map_err(io)?;
        let (streams, tail) = match tail {
            Some((streams, tail)) => (streams, Some(tail)),
            None => (Streams::Ours, None),
        };
        let mut invocation = invocation_of(open, task, note.as_ref(), streams);
        let mut masks = self.masks()?;
        masks.extend(
            open.manifest
                .place
                .iter()
                .map(|it| it.as_path().to_path_buf()),
        );
        let above = run_near(&mut invocation, &variables, &stack, &masks);
        let began_in = std::mem::take(&mut invocation.directory);
        drop(invocation);
        let told = tail.map(Tail::end);
        let above = above?;
        let (output, left_out) = told.unzip();
        let mut notes = notes_of(&above);
        if began_in != directory.as_path() {
            notes.push(format!(
                "`{}` is gone in the sandbox; the command began in `{}`",
                directory.as_path().display(),
                began_in.display()
            ));
        }
        let (changes, is_all_told) = overlay::touched(&stack, &above.points).map_or_else(
            |error| {
                let why = EngineError::from(error);
                notes.push(format!("what it changed cannot all be told: {why}"));
                (Vec::new(), false)
            },
            |changes| (changes, true),
        );
        Ok(Done {
            above,
            is_all_told,
            changes: changes.iter().filter_map(seen).collect(),
            carried: note.and_then(Note::read),
            output,
            left_out: left_out.filter(|bytes| *bytes > 0),
            notes,
        })
    }

    /// Reads what the head carries.
    fn variables(&self, open: &Open) -> Result<Variables, EngineError> {
        let head = open.manifest.checkpoint(open.manifest.head);
        let Some(number) = head.and_then(|it| it.variables) else {
            return Ok(Variables::default());
        };
        let file = variables_file(number);
        let bytes = self.sandboxes().read(&open.manifest.name, &file)?;
        let read = |bytes: Vec<u8>| serde_json::from_slice(&bytes);
        let variables = bytes.map(read).transpose();
        variables
            .map(Option::unwrap_or_default)
            .map_err(|error| EngineError::Io {
                action: "read the variables of the sandbox",
                source: error.into(),
            })
    }

    fn add_checkpoint(
        &self,
        open: &mut Open,
        layer: OperationId,
        done: &Done,
    ) -> Result<(), EngineError> {
        let number = open.manifest.next;
        let head = open.manifest.checkpoint(open.manifest.head);
        let mut variables = head.and_then(|it| it.variables);
        let mut directory = open.directory();
        let name = open.manifest.name.clone();
        let failed = |source: serde_json::Error| EngineError::Io {
            action: "write down how the sandbox stands",
            source: source.into(),
        };
        if let Some((there, carried)) = &done.carried {
            directory = TargetPath::new(there).unwrap_or(directory);
            variables = (!carried.is_empty()).then_some(number);
            if !carried.is_empty() {
                let bytes = serde_json::to_vec(carried).map_err(failed)?;
                self.sandboxes()
                    .write(&name, &variables_file(number), &bytes)?;
            }
        }
        if !done.changes.is_empty() {
            let bytes = serde_json::to_vec(&done.changes).map_err(failed)?;
            self.sandboxes()
                .write(&name, &changes_file(number), &bytes)?;
        }
        let is_layer = !done.above.tops.is_empty();
        if !is_layer {
            open.manifest.unfinished.push(layer);
        }
        open.manifest.points = targets(&done.above.points);
        open.manifest.checkpoints.push(Checkpoint {
            number,
            parent: Some(open.manifest.head),
            layer: is_layer.then_some(layer),
            tops: done.above.tops.clone(),
            began: done.above.finished.began.0,
            directory,
            variables,
            at: self.now(),
            is_empty: done.is_all_told && done.changes.is_empty(),
            was_real: false,
            is_folded: false,
        });
        open.manifest.head = number;
        open.manifest.next = number + 1;
        Ok(())
    }
}

/// Says how a command runs; a line for a shell tells in a note what is carried on.
fn invocation_of(
    open: &Open,
    task: &SandboxTask,
    note: Option<&Note>,
    streams: Streams,
) -> Invocation {
    let mut words = task.command.iter().cloned();
    let first = words.next().unwrap_or_default();
    let (program, arguments) = match note {
        Some(note) => note.words(&first),
        None => (first, words.collect()),
    };
    Invocation {
        program,
        arguments,
        environment: None,
        directory: open.directory().as_path().to_path_buf(),
        has_no_network: open.manifest.has_no_network,
        streams,
        time_max: task.time_max,
        survivors: Survivors::End,
    }
}

/// Runs a command in its directory; where a command before it removed that, in the nearest above that is left.
fn run_near(
    invocation: &mut Invocation,
    variables: &Variables,
    stack: &Stack,
    masks: &[PathBuf],
) -> Result<Above, EngineError> {
    loop {
        invocation.environment = Some(variables.environment(&invocation.directory));
        match overlay::run_above(invocation, stack, masks) {
            Err(error) if error.is_directory_gone() && invocation.directory.pop() => {
                remove(&stack.layer)?;
            }
            above => return Ok(above?),
        }
    }
}

/// The file with the variables of a checkpoint.
pub(super) fn variables_file(number: u64) -> String {
    format!("variables-{number}.json")
}

/// The file with what the command of a checkpoint changed.
pub(super) fn changes_file(number: u64) -> String {
    format!("changes-{number}.json")
}

/// A sandbox whose beginning died has no place for layers.
fn no_place() -> EngineError {
    TrialError::Layers(overlay::OverlayError::NoPlace { tried: Vec::new() }).into()
}

/// What there is to tell after a command.
struct Done {
    above: Above,
    /// Whether `changes` is all of it.
    is_all_told: bool,
    changes: Vec<TrialChangeView>,
    carried: Option<(PathBuf, Variables)>,
    output: Option<String>,
    left_out: Option<u64>,
    notes: Vec<String>,
}

impl Done {
    const fn verdict(&self) -> SandboxVerdict {
        match self.above.finished.ended {
            _ if self.above.finished.is_timed_out => SandboxVerdict::TimedOut,
            Ended::Code(0) => SandboxVerdict::Succeeded,
            Ended::Code(_) => SandboxVerdict::Failed,
            Ended::Signal(_) => SandboxVerdict::Killed,
        }
    }

    /// Makes the answer.
    fn told(
        self,
        open: &mut Open,
        command: String,
        (before, is_kept, took_ms): (u64, bool, u64),
    ) -> SandboxRan {
        let mut ran = SandboxRan {
            sandbox: open.manifest.name.clone(),
            command,
            verdict: self.verdict(),
            exit_code: self.above.finished.ended.code(),
            signal: self.signal(),
            took_ms,
            checkpoint: open.manifest.head,
            before,
            is_rolled_back: !is_kept,
            directory: open.directory(),
            changes: self.changes,
            output: self.output,
            output_left_out: self.left_out,
            notes: std::mem::take(&mut open.notes)
                .into_iter()
                .chain(self.notes)
                .collect(),
            text: String::new(),
        };
        ran.text = text::of(&ran);
        ran
    }

    const fn signal(&self) -> Option<u8> {
        match self.above.finished.ended {
            Ended::Signal(signal) => Some(signal),
            Ended::Code(_) => None,
        }
    }
}

fn notes_of(above: &Above) -> Vec<String> {
    let survivors = above.finished.survivors.iter().map(|survivor| {
        let (pid, command) = (survivor.pid, &survivor.command);
        format!("process {pid} outlived the command and was ended: {command}")
    });
    let closed = above.finished.not_layered.iter().map(|(path, why)| {
        let path = path.display();
        format!("`{path}` could only be read inside: {why}")
    });
    survivors.chain(closed).collect()
}

/// Says one change; nothing for a path that no operation can write.
fn seen(change: &overlay::Touched) -> Option<TrialChangeView> {
    Some(TrialChangeView {
        path: TargetPath::new(&change.path).ok()?,
        from: None,
        what: match change.what {
            What::Created => TrialWhat::Created,
            What::Changed => TrialWhat::Changed,
            What::Metadata => TrialWhat::Metadata,
            What::Deleted => TrialWhat::Deleted,
            What::Moved => TrialWhat::Moved,
        },
        is_conflict: false,
        size_before: change.size_before,
        size_after: change.size_after,
        gone_below: None,
    })
}

/// Reads a command's words and keeps the end of them.
struct Tail(JoinHandle<(Vec<u8>, u64)>);

impl Tail {
    fn begin() -> std::io::Result<(Streams, Self)> {
        let (mut from, to) = std::io::pipe()?;
        let reader = std::thread::spawn(move || {
            let (mut kept, mut left_out) = (Vec::new(), 0_u64);
            let mut block = vec![0_u8; OUTPUT_BYTES_MAX];
            while let Ok(read) = from.read(&mut block) {
                if read == 0 {
                    break;
                }
                kept.extend_from_slice(block.get(..read).unwrap_or_default());
                let over = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
                left_out += over as u64;
                kept.drain(..over);
            }
            (kept, left_out)
        });
        Ok((Streams::To(Arc::new(to.into())), Self(reader)))
    }

    /// Waits for the last word: all who could speak have ended.
    fn end(self) -> (String, u64) {
        let (kept, left_out) = self.0.join().unwrap_or_default();
        (String::from_utf8_lossy(&kept).into_owned(), left_out)
    }
}
