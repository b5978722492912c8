//! Trials: a command runs in layers, what it changed is looked at, and becomes real as one operation, or never.
//!
//! ```text
//! run ─► layers + manifest ─► look, choose ─► apply: one operation of the file driver, undone like any other
//!                                         └─► discard
//! ```
//!
//! - The real files are untouched until an apply, which is armed, applied and committed like every write.
//! - The manifest is durable, the layers are not: after a restart of the machine a trial is lost, and says so.
//! - What a name was is noted when the command has ended, with a check that nobody changed it meanwhile. If it is
//!   anything else when the trial is applied, nothing is applied.
//!
//! Not here: how layers are mounted (`capture::overlay`), how they become real (`drivers`).

mod diff;
mod error;
mod layers_of;
mod manifest;
mod note;
mod proposed;
mod real;
mod select;
mod view;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backout_capture::overlay::{self, Invocation, Streams, Survivors};
use backout_crashpoint::crash_point;
use backout_files::{BaseChanged, Baseline, UnusablePath};
use backout_model::{
    Key, Operation, OperationId, TargetPath, TaskStatus, Timestamp, any_path, any_words,
};
use backout_storage::Filter;
use serde::{Deserialize, Serialize};

use crate::{Context, Diff, Engine, EngineError, Finished, GateError, Reply, Selection};

pub use error::TrialError;
pub(crate) use layers_of::LayersOf;
pub(crate) use manifest::command_line;
use manifest::{Manifest, Proposed, TrialChange, TrialState, VERSION};
pub use manifest::{TrialEnd, TrialWhat};
pub use view::{TrialChangeView, TrialStanding, TrialView};

/// Where layers can be if the state directory's file system cannot hold them.
pub(crate) const OTHER_PLACES: [&str; 3] = ["/dev/shm", "/var/tmp", "/tmp"];

/// How many operations on a path are looked at to see whether they were taken back.
const SINCE_MAX: usize = 256;

/// What to do with trials.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TryCommand {
    /// Run a command in layers.
    Run(TrialTask),
    /// Make what a trial changed real.
    Apply {
        /// The beginning of its id; none takes the only one.
        trial: Option<String>,
        /// Which part of it.
        selection: Selection,
    },
    /// Let a trial go.
    Discard {
        /// The beginning of its id; none takes the only one.
        trial: Option<String>,
    },
    /// Show what a trial changed.
    Show {
        /// The beginning of its id; none takes the only one.
        trial: Option<String>,
        /// Which part of it.
        selection: Selection,
    },
    /// Show it line by line.
    Diff {
        /// The beginning of its id; none takes the only one.
        trial: Option<String>,
        /// Which part of it.
        selection: Selection,
        /// Whether only the names are wanted.
        is_brief: bool,
    },
    /// List the trials that wait for a decision.
    List,
}

/// A command to try.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialTask {
    /// The program and its arguments.
    #[serde(with = "any_words")]
    pub command: Vec<OsString>,
    /// Where it runs.
    #[serde(with = "any_path")]
    pub directory: PathBuf,
    /// Whether it has no network but its own loopback.
    pub has_no_network: bool,
    /// Whether processes that outlive it are waited for; else they are ended.
    pub waits: bool,
    /// Whether its output goes to our stdout; else to our stderr.
    pub keeps_stdout: bool,
}

impl Engine {
    pub(crate) fn trial(&self, command: TryCommand) -> Result<Reply, EngineError> {
        match command {
            TryCommand::Run(task) => self.run_trial(&task).map(Reply::Trial),
            TryCommand::Apply { trial, selection } => self
                .apply_trial(trial.as_deref(), &selection)
                .map(Reply::Finished),
            TryCommand::Discard { trial } => {
                let id = self.find_trial(trial.as_deref())?;
                let is_rest = self.discard_trial(id)?;
                Ok(Reply::Discarded { id, is_rest })
            }
            TryCommand::Show { trial, selection } => {
                let mut manifest = self.open_trial(self.find_trial(trial.as_deref())?)?;
                self.mark_changed(&mut manifest)?;
                Ok(Reply::Trial(TrialView::of(
                    self.store(),
                    &manifest,
                    &selection,
                )))
            }
            TryCommand::Diff {
                trial,
                selection,
                is_brief,
            } => {
                let manifest = self.open_trial(self.find_trial(trial.as_deref())?)?;
                let chosen = select::chosen(&selection, &manifest.changes);
                let files = self.trial_diff(&chosen, is_brief)?;
                let id = manifest.id;
                Ok(Reply::Diff(Diff { id, files }))
            }
            TryCommand::List => self.list_trials(),
        }
    }

    fn run_trial(&self, task: &TrialTask) -> Result<TrialView, EngineError> {
        self.sweep_trials()?;
        let id = self.next_id();
        let mut manifest = self.new_manifest(id, task)?;
        self.keep_manifest(&manifest)?;
        let finished = match overlay::run(&as_invocation(task)?, &self.places(id), &self.masks()?) {
            Ok(finished) => finished,
            Err(error) => {
                self.remove_trial(id)?;
                return Err(error.into());
            }
        };
        crash_point("trial.ran");
        note::outcome(&mut manifest, &finished)?;
        self.keep_manifest(&manifest)?;
        crash_point("trial.noted");
        let view = TrialView::of(self.store(), &manifest, &Selection::default());
        if manifest.changes.is_empty() {
            self.remove_trial(id)?;
        }
        Ok(view)
    }

    fn new_manifest(&self, id: OperationId, task: &TrialTask) -> Result<Manifest, EngineError> {
        let words = task.command.iter();
        let target = |path: &Path| {
            TargetPath::new(path).map_err(|_| UnusablePath {
                path: path.display().to_string(),
            })
        };
        let places = self.places(id);
        Ok(Manifest {
            version: VERSION,
            id,
            made: self.now(),
            owner: self.store.this_process(),
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            command: words.map(|word| word.display().to_string()).collect(),
            directory: target(&task.directory).or_else(|_| target(&self.trial_home(id)))?,
            ended: None,
            places: places
                .iter()
                .map(|path| target(path))
                .collect::<Result<_, _>>()?,
            changes: Vec::new(),
            homes: Vec::new(),
            is_rest: false,
            proposed: None,
            sandbox: None,
            notes: Vec::new(),
        })
    }

    /// Who applies a trial, and in which task: whoever says so, else whoever made it, while its task is open.
    fn context_of(&self, manifest: &Manifest) -> Result<Context, EngineError> {
        let mut context = self.context.clone();
        context.agent = context.agent.or_else(|| manifest.agent.clone());
        if let (None, Some(task)) = (&context.task, &manifest.task) {
            let found = self.store.task(task)?;
            let is_open = found.is_some_and(|task| task.status == TaskStatus::Open);
            context.task = is_open.then(|| task.clone());
        }
        Ok(context)
    }

    fn apply_trial(
        &self,
        trial: Option<&str>,
        selection: &Selection,
    ) -> Result<Finished, EngineError> {
        let mut manifest = self.open_trial(self.find_trial(trial)?)?;
        if let Some(proposal) = self.proposal_of(&manifest)? {
            let (proposal, untold) = (Box::new(proposal), Vec::new());
            return Err(GateError::Waits { proposal, untold }.into());
        }
        match self.apply_open(&mut manifest, selection) {
            Err(error) if is_base_changed(&error) => {
                let is_undone = self.note_undone(&mut manifest)?;
                let real = self.forget_real(&mut manifest)?;
                if !is_undone && real == 0 {
                    return Err(error);
                }
                if manifest.changes.is_empty() {
                    return Err(TrialError::AllReal { id: manifest.id }.into());
                }
                let mut finished = self.apply_open(&mut manifest, selection)?;
                finished.notes.extend(real::said(real));
                Ok(finished)
            }
            applied => applied,
        }
    }

    fn apply_open(
        &self,
        manifest: &mut Manifest,
        selection: &Selection,
    ) -> Result<Finished, EngineError> {
        let chosen = select::chosen(selection, &manifest.changes);
        if chosen.is_empty() {
            return Err(TrialError::NothingChosen { id: manifest.id }.into());
        }
        let in_conflict = chosen.iter().filter(|change| change.is_conflict);
        let paths: Vec<String> = in_conflict.map(|change| change.path.to_string()).collect();
        if !paths.is_empty() {
            return Err(BaseChanged { paths }.into());
        }
        let homes = select::homes(&manifest.homes, &chosen);
        let all: Vec<&TrialChange> = homes.into_iter().chain(chosen).collect();
        let mut notes = Vec::new();
        let entries = select::entries(&manifest.changes, &all, &mut notes);
        let request = self.files.layering(manifest.summary(), entries);
        let applied: HashSet<TargetPath> = all.iter().map(|change| change.path.clone()).collect();
        let context = self.context_of(manifest)?;
        let mut finished = match self.write_in(&context, &*request) {
            Ok(finished) => finished,
            Err(error) => {
                if matches!(error, EngineError::TakenBack { .. }) {
                    self.note_put_back(manifest, &applied)?;
                }
                if let EngineError::Gate(GateError::Waits { proposal, .. }) = &error {
                    let (id, names) = (proposal.id, applied);
                    manifest.proposed = Some(Proposed { id, names });
                    self.keep_manifest(manifest)?;
                }
                return Err(error);
            }
        };
        finished.notes.extend(notes);
        crash_point("trial.applied");
        finished.left = self.note_applied(manifest, &applied)?;
        Ok(finished)
    }

    /// Notes the change times of what an application had changed and put back: only those are new.
    fn note_put_back(
        &self,
        manifest: &mut Manifest,
        applied: &HashSet<TargetPath>,
    ) -> Result<(), EngineError> {
        for (path, baseline) in baselines(manifest, |change| applied.contains(&change.path)) {
            let _is_so = note_now(&path, baseline);
        }
        self.keep_manifest(manifest)
    }

    /// Notes the change times of what our own operations changed since and took back again. Tells whether there is any.
    fn note_undone(&self, manifest: &mut Manifest) -> Result<bool, EngineError> {
        let made = manifest.made;
        let mut is_any = false;
        for (path, baseline) in baselines(manifest, |_| true) {
            if !baseline.still_holds(path.as_path()).unwrap_or(false)
                && self.is_taken_back_since(&path, made)?
            {
                is_any |= note_now(&path, baseline);
            }
        }
        Ok(is_any)
    }

    /// Tells whether operations at a path or below it were begun since a moment, and none of what they did is in effect.
    pub(crate) fn is_taken_back_since(
        &self,
        path: &TargetPath,
        moment: Timestamp,
    ) -> Result<bool, EngineError> {
        let filter = Filter {
            at: Some(Key::from(path.clone())),
            limit: Some(SINCE_MAX),
            ..Filter::default()
        };
        let found = self.store.operations(&filter)?;
        let since = || found.iter().filter(|operation| operation.at >= moment);
        let stands = |operation: &Operation| {
            !operation.verb.is_reversal() && operation.status.is_in_effect()
        };
        Ok(since().next().is_some() && !since().any(stands))
    }

    /// Reads a trial that can be looked at: its command has ended and its layers are whole.
    fn open_trial(&self, id: OperationId) -> Result<Manifest, EngineError> {
        let manifest = self.read_manifest(id)?;
        if self.store.is_from_another_boot(&manifest.owner) {
            return Err(TrialError::Lost { id }.into());
        }
        if manifest.ended.is_none() {
            let is_running = self.store.is_alive(&manifest.owner);
            return Err(TrialError::Unfinished { id, is_running }.into());
        }
        Ok(manifest)
    }

    fn read_manifest(&self, id: OperationId) -> Result<Manifest, EngineError> {
        let unreadable = |why: String| EngineError::from(TrialError::Unreadable { id, why });
        let bytes = self
            .store
            .read_trial(id)?
            .ok_or_else(|| unreadable("it has no manifest".to_owned()))?;
        let manifest: Manifest =
            serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if manifest.version > VERSION {
            let why = format!(
                "it was made by a newer program (version {})",
                manifest.version
            );
            return Err(unreadable(why));
        }
        Ok(manifest)
    }

    fn list_trials(&self) -> Result<Reply, EngineError> {
        let trials = self.pending_trials()?;
        Ok(Reply::Trials { trials })
    }

    /// Lists the trials that wait for a decision, newest first.
    pub(crate) fn pending_trials(&self) -> Result<Vec<TrialView>, EngineError> {
        let mut trials = Vec::new();
        for id in self.store.trials()? {
            if let Ok(manifest) = self.read_manifest(id) {
                trials.push(TrialView::of(
                    self.store(),
                    &manifest,
                    &Selection::default(),
                ));
            }
        }
        trials.sort_by_key(|trial| std::cmp::Reverse((trial.made.0, trial.id.bits())));
        Ok(trials)
    }

    /// Finds a trial by the beginning of its id.
    fn find_trial(&self, name: Option<&str>) -> Result<OperationId, EngineError> {
        let mut found = self.store.trials()?;
        if let Some(name) = name {
            found.retain(|id| id.to_string().starts_with(name));
        }
        match found.as_slice() {
            [only] => Ok(*only),
            many => Err(TrialError::Which {
                name: name.map(str::to_owned),
                found: many.len(),
            }
            .into()),
        }
    }

    fn keep_manifest(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let bytes = serde_json::to_vec(manifest).map_err(|source| EngineError::Io {
            action: "write down what the command changed",
            source: source.into(),
        })?;
        Ok(self.store.write_trial(manifest.id, &bytes)?)
    }

    /// Removes what trials left whose process died before they could be looked at.
    pub(crate) fn sweep_trials(&self) -> Result<(), EngineError> {
        let armed = self.store.armed()?;
        for id in self.store.trials()? {
            let is_dead = self.read_manifest(id).is_ok_and(|manifest| {
                let is_needed = armed.iter().any(|it| it.owner == manifest.owner);
                manifest.ended.is_none()
                    && manifest.proposed.is_none()
                    && !is_needed
                    && !self.store.is_alive(&manifest.owner)
            });
            if is_dead {
                self.remove_trial(id)?;
            }
        }
        Ok(())
    }

    /// Lets a trial go, unless its command still runs in the layers. Tells whether it was only the rest of one.
    fn discard_trial(&self, id: OperationId) -> Result<bool, EngineError> {
        let manifest = self.read_manifest(id).ok();
        if let Some(manifest) = &manifest
            && manifest.ended.is_none()
            && self.store.is_alive(&manifest.owner)
        {
            let is_running = true;
            return Err(TrialError::Unfinished { id, is_running }.into());
        }
        if let Some(manifest) = &manifest {
            self.withdraw_trial(manifest)?;
        }
        self.remove_trial(id)?;
        Ok(manifest.is_some_and(|manifest| manifest.is_rest))
    }

    fn remove_trial(&self, id: OperationId) -> Result<(), EngineError> {
        let mut directories = self
            .read_manifest(id)
            .map(|manifest| manifest.directories())
            .unwrap_or_default();
        directories.push(self.trial_home(id));
        for directory in directories {
            overlay::remove(&directory).map_err(|source| EngineError::Io {
                action: "remove the layers of the trial",
                source,
            })?;
        }
        Ok(())
    }

    fn trial_home(&self, id: OperationId) -> PathBuf {
        self.store.trial_directory(id)
    }

    /// Lists where the layers of a trial could be, best first.
    pub(crate) fn places(&self, id: OperationId) -> Vec<PathBuf> {
        let name = format!(".backout-trial-{id}");
        let others = OTHER_PLACES
            .iter()
            .map(|place| Path::new(place).join(&name));
        std::iter::once(self.trial_home(id).join("layers"))
            .chain(others)
            .collect()
    }

    /// Lists what is nobody's business inside: our own state, on every file system.
    pub(crate) fn masks(&self) -> Result<Vec<PathBuf>, EngineError> {
        let name = format!(".backout-{}", rustix::process::geteuid().as_raw());
        let mut masks = vec![self.store.directory().to_path_buf()];
        for mount in overlay::mounts()? {
            let depot = mount.point.join(&name);
            let is_inside = masks.iter().any(|mask| depot.starts_with(mask));
            if depot.is_dir() && !is_inside {
                masks.push(depot);
            }
        }
        Ok(masks)
    }
}

fn as_invocation(task: &TrialTask) -> Result<Invocation, EngineError> {
    let mut words = task.command.iter().cloned();
    let empty = || TrialError::NotStarted {
        program: String::new(),
        source: std::io::ErrorKind::NotFound.into(),
    };
    Ok(Invocation {
        program: words.next().ok_or_else(empty)?,
        arguments: words.collect(),
        directory: task.directory.clone(),
        environment: None,
        has_no_network: task.has_no_network,
        streams: if task.keeps_stdout {
            Streams::Ours
        } else {
            Streams::OursOnStderr
        },
        time_max: None,
        survivors: if task.waits {
            Survivors::Wait
        } else {
            Survivors::End
        },
    })
}

/// Gives what some of the changes of a trial were made over, with the names.
fn baselines(
    manifest: &mut Manifest,
    is_meant: impl Fn(&TrialChange) -> bool,
) -> Vec<(TargetPath, &mut Baseline)> {
    let all = manifest.changes.iter_mut().chain(&mut manifest.homes);
    let mut found = Vec::new();
    for change in all.filter(|change| is_meant(change)) {
        found.push((change.path.clone(), &mut change.baseline));
        if let TrialState::Moved { from, baseline } = &mut change.becomes {
            found.push((from.clone(), baseline));
        }
    }
    found
}

/// Notes that something is what it was, but for its change times. Tells whether that is so.
fn note_now(path: &TargetPath, baseline: &mut Baseline) -> bool {
    let Ok(Some(now)) = baseline.put_back(path.as_path()) else {
        return false;
    };
    *baseline = now;
    true
}

fn is_base_changed(error: &EngineError) -> bool {
    let EngineError::Driver(error) = error else {
        return false;
    };
    error.as_a::<BaseChanged>().is_some()
}
