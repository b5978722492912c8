//! Sandboxes: a stack of layers above the real files, one for each command, and a checkpoint after each.
//!
//! ```text
//! start ─► exec ─► exec ─► rollback ─► exec ─► apply: one operation, undone like any other
//!           │        └ fails: its layer is dropped                     └─► end
//! ```
//!
//! - The real files are untouched until an apply, which goes the way of a trial's (`trial`).
//! - A layer is never written again, so every checkpoint can be gone back to until the sandbox ends.
//! - One process at a time uses a sandbox; what a dead one left is settled by the next (`open`).
//! - The layers are not synced: after a restart of the machine the sandbox is lost, and says so.
//!
//! Design: `docs/design/sandbox.md`. Not here: how layers are mounted and merged (`capture::overlay`).

mod apply;
mod carry;
mod depth;
mod error;
mod exec;
mod export;
mod manifest;
mod open;
mod prune;
mod settle;
mod text;
mod view;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backout_capture::overlay;
use backout_crashpoint::crash_point;
use backout_files::UnusablePath;
use backout_model::{OperationId, TargetPath, any_path};
use serde::{Deserialize, Serialize};

use crate::{Engine, EngineError, Reply, Selection};

pub use error::SandboxError;
pub use exec::{OnFailure, SandboxTask};
use exec::{changes_file, variables_file};
pub(crate) use export::secrets::is_secret;
pub use export::{SandboxExport, SandboxExported};
use manifest::{Checkpoint, Entry, Manifest, VERSION, targets};
use open::remove;
pub use prune::{SandboxKeep, SandboxPruned};
pub use settle::SandboxSettled;
pub use view::{
    SandboxAct, SandboxBatch, SandboxCheckpoint, SandboxEntry, SandboxRan, SandboxStanding,
    SandboxVerdict, SandboxView,
};

/// What a sandbox is called that got no name.
const NAME: &str = "sandbox";

/// How long a name may be.
const NAME_CHARS_MAX: usize = 64;

/// What to do with sandboxes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxCommand {
    /// Begin one.
    Start(SandboxStart),
    /// Run a command in one.
    Exec {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// The command.
        task: SandboxTask,
    },
    /// Show one with its checkpoints and its log.
    Show {
        /// Its name; none takes the only one.
        name: Option<String>,
    },
    /// Go to another checkpoint.
    Rollback {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// The number of the checkpoint.
        checkpoint: String,
    },
    /// Begin one that shares what another has up to a checkpoint.
    Fork {
        /// The other.
        name: Option<String>,
        /// The checkpoint; none takes the present one.
        checkpoint: Option<String>,
        /// The new name.
        new: String,
    },
    /// Show what it would change, line by line.
    Diff {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// Which part of it.
        selection: Selection,
        /// Whether only the names are wanted.
        is_brief: bool,
    },
    /// Make what it changed real.
    Apply {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// Which part of it.
        selection: Selection,
    },
    /// Let checkpoints go.
    Prune {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// Which stay.
        keep: SandboxKeep,
        /// Whether what was set aside and not applied may go.
        is_discarding: bool,
        /// Only show what would go.
        is_dry_run: bool,
    },
    /// Write it down for elsewhere.
    Export {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// In which form.
        how: SandboxExport,
        /// Whether variables that look like secrets go along.
        has_secrets: bool,
    },
    /// Let it go.
    End {
        /// Its name; none takes the only one.
        name: Option<String>,
        /// Whether what was not applied may go.
        is_discarding: bool,
    },
    /// Tell which there are.
    List,
}

/// A sandbox to begin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SandboxStart {
    /// Its name; none takes a free one.
    pub name: Option<String>,
    /// Where its first command runs.
    #[serde(with = "any_path")]
    pub directory: PathBuf,
    /// The only directories that can be written below; none stands for all.
    pub roots: Vec<TargetPath>,
    /// Whether its commands have no network but their own loopback.
    pub has_no_network: bool,
    /// Which checkpoints stay when there are many.
    #[serde(default)]
    pub keep: SandboxKeep,
}

impl Engine {
    pub(crate) fn sandbox(&self, command: SandboxCommand) -> Result<Reply, EngineError> {
        match command {
            SandboxCommand::Start(start) => self.start_sandbox(&start),
            SandboxCommand::Exec { name, task } => self
                .exec(name.as_deref(), &task)
                .map(|ran| Reply::SandboxRan(Box::new(ran))),
            SandboxCommand::Show { name } => {
                let manifest = self.read_sandbox(&self.find_sandbox(name.as_deref())?)?;
                Ok(self.as_view(&manifest, true))
            }
            SandboxCommand::Rollback { name, checkpoint } => {
                self.return_to(name.as_deref(), &checkpoint)
            }
            SandboxCommand::Fork {
                name,
                checkpoint,
                new,
            } => self.fork_sandbox(name.as_deref(), checkpoint.as_deref(), &new),
            SandboxCommand::Diff {
                name,
                selection,
                is_brief,
            } => self
                .diff_sandbox(name.as_deref(), &selection, is_brief)
                .map(Reply::Diff),
            SandboxCommand::Apply { name, selection } => self
                .apply_sandbox(name.as_deref(), &selection)
                .map(Reply::Finished),
            SandboxCommand::Prune {
                name,
                keep,
                is_discarding,
                is_dry_run,
            } => self.prune_sandbox(name.as_deref(), &keep, (is_discarding, is_dry_run)),
            SandboxCommand::Export {
                name,
                how,
                has_secrets,
            } => self.export_sandbox(name.as_deref(), &how, has_secrets),
            SandboxCommand::End {
                name,
                is_discarding,
            } => self.end_sandbox(name.as_deref(), is_discarding),
            SandboxCommand::List => {
                let sandboxes = self.all_sandboxes()?;
                Ok(Reply::Sandboxes { sandboxes })
            }
        }
    }

    fn as_view(&self, manifest: &Manifest, is_whole: bool) -> Reply {
        let standing = self.standing(manifest);
        Reply::Sandbox(Box::new(SandboxView::of(manifest, standing, is_whole)))
    }

    fn start_sandbox(&self, start: &SandboxStart) -> Result<Reply, EngineError> {
        let _held = self.sandboxes().hold()?;
        let name = self.free_name(start.name.as_deref())?;
        let unusable = |_| UnusablePath {
            path: start.directory.display().to_string(),
        };
        let home = TargetPath::new(&start.directory).map_err(unusable)?;
        let family = self.next_id();
        let places = self.sandbox_places(family);
        let first = Checkpoint {
            number: 0,
            parent: None,
            layer: None,
            tops: Vec::new(),
            began: 0,
            directory: home.clone(),
            variables: None,
            is_empty: false,
            was_real: false,
            is_folded: false,
            at: self.now(),
        };
        let mut manifest = Manifest {
            version: VERSION,
            name: name.clone(),
            family,
            made: self.now(),
            owner: self.store.this_process(),
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            is_roots: false,
            place: None,
            places: targets(&places),
            home,
            foreign: Vec::new(),
            roots: start.roots.clone(),
            points: Vec::new(),
            began: 0,
            has_no_network: start.has_no_network,
            checkpoints: vec![first],
            head: 0,
            next: 1,
            merges: Vec::new(),
            unfinished: Vec::new(),
            running: None,
            log: Vec::new(),
            applied: Vec::new(),
            begun: Vec::new(),
            applied_head: None,
            keep: start.keep.clone(),
            is_ended: false,
        };
        self.sandboxes().make(&name)?;
        self.keep_sandbox(&manifest)?;
        crash_point("sandbox.made");
        if let Err(error) = self.try_out(&mut manifest, &places) {
            self.remove_sandbox(&manifest)?;
            return Err(error);
        }
        self.keep_sandbox(&manifest)?;
        Ok(self.as_view(&manifest, false))
    }

    /// Finds a place for the layers, and runs something in one, so that what does not work here is said at once.
    fn try_out(&self, manifest: &mut Manifest, places: &[PathBuf]) -> Result<(), EngineError> {
        let (place, means, foreign) = overlay::settle(places, manifest.home.as_path())?;
        manifest.is_roots = means == overlay::Means::Root;
        manifest.foreign = targets(&foreign);
        manifest.place = targets(&[&place]).pop();
        manifest.began = overlay::moment(&place)?.0;
        let layer = self.next_id();
        let Some(stack) = manifest.stack(layer) else {
            return Ok(());
        };
        let invocation = overlay::Invocation {
            program: "true".into(),
            arguments: Vec::new(),
            environment: None,
            directory: manifest.home.as_path().to_path_buf(),
            has_no_network: manifest.has_no_network,
            streams: overlay::Streams::Ours,
            time_max: None,
            survivors: overlay::Survivors::End,
        };
        let mut masks = self.masks()?;
        masks.push(place);
        let ran = overlay::run_above(&invocation, &stack, &masks);
        remove(&stack.layer)?;
        match ran {
            Ok(above) => manifest.points = targets(&above.points),
            // There is no such program here; the layers were fine.
            Err(overlay::OverlayError::NotStarted { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn sandbox_places(&self, family: OperationId) -> Vec<PathBuf> {
        let name = format!(".backout-sandbox-{family}");
        let own = self
            .store
            .directory()
            .join("layers")
            .join(family.to_string());
        let others = crate::trial::OTHER_PLACES.iter();
        std::iter::once(own)
            .chain(others.map(|place| Path::new(place).join(&name)))
            .collect()
    }

    /// Gives a name that no sandbox has.
    fn free_name(&self, wanted: Option<&str>) -> Result<String, EngineError> {
        let taken: BTreeSet<String> = self.sandbox_names()?.into_iter().collect();
        let is_free = |name: &String| !taken.contains(name);
        if let Some(name) = wanted {
            let is_good =
                |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
            let begins = name
                .chars()
                .next()
                .is_some_and(|it| it.is_ascii_alphanumeric());
            let name = name.to_owned();
            if !begins || name.len() > NAME_CHARS_MAX || !name.chars().all(is_good) {
                return Err(SandboxError::BadName { name }.into());
            }
            return if is_free(&name) {
                Ok(name)
            } else {
                Err(SandboxError::Exists { name }.into())
            };
        }
        let numbered = (2..).map(|number: u32| format!("{NAME}-{number}"));
        let mut names = std::iter::once(NAME.to_owned()).chain(numbered);
        Ok(names.find(is_free).unwrap_or_default())
    }

    fn return_to(&self, name: Option<&str>, checkpoint: &str) -> Result<Reply, EngineError> {
        // Who asks for what is not there settles nothing.
        let manifest = self.read_sandbox(&self.find_sandbox(name)?)?;
        let number = number_of(&manifest, checkpoint)?;
        let mut open = self.open_sandbox(Some(&manifest.name))?;
        let before = open.manifest.head;
        open.manifest.head = number;
        let directory = open
            .manifest
            .checkpoint(number)
            .map(|it| it.directory.clone());
        open.manifest.log.push(Entry {
            act: SandboxAct::Returned,
            command: Vec::new(),
            is_line: false,
            verdict: None,
            code: None,
            checkpoint: number,
            is_rolled_back: false,
            directory: directory.unwrap_or_else(|| open.manifest.home.clone()),
            at: self.now(),
            took_ms: 0,
            changes: 0,
        });
        self.save(&open)?;
        crash_point("sandbox.returned");
        let standing = self.standing(&open.manifest);
        let mut view = SandboxView::of(&open.manifest, standing, false);
        view.before = Some(before).filter(|before| *before != number);
        let shown_through = self.shown_through(&open.manifest)?;
        view.notes = open.notes;
        view.notes.extend(shown_through);
        Ok(Reply::Sandbox(Box::new(view)))
    }

    fn fork_sandbox(
        &self,
        name: Option<&str>,
        checkpoint: Option<&str>,
        new: &str,
    ) -> Result<Reply, EngineError> {
        let _held = self.sandboxes().hold()?;
        let from = self.read_sandbox(&self.find_sandbox(name)?)?;
        if self.standing(&from) == SandboxStanding::Lost || from.is_ended {
            return Err(SandboxError::Lost { name: from.name }.into());
        }
        let new = self.free_name(Some(new))?;
        let head = match checkpoint {
            Some(checkpoint) => number_of(&from, checkpoint)?,
            None => from.head,
        };
        let checkpoints: Vec<Checkpoint> = from.chain(head).into_iter().cloned().collect();
        let layers: BTreeSet<OperationId> = checkpoints.iter().filter_map(|it| it.layer).collect();
        let mut merges = Vec::new();
        let mut known = layers;
        for merge in &from.merges {
            if merge.of.iter().all(|id| known.contains(id)) {
                known.insert(merge.into);
                merges.push(merge.clone());
            }
        }
        let is_shared = |entry: &&Entry| {
            let is_there = checkpoints.iter().any(|it| it.number == entry.checkpoint);
            entry.act == SandboxAct::Ran && !entry.is_rolled_back && is_there
        };
        let log: Vec<Entry> = from.log.iter().filter(is_shared).cloned().collect();
        self.sandboxes().make(&new)?;
        for number in checkpoints.iter().map(|it| it.number) {
            for file in [variables_file(number), changes_file(number)] {
                if let Some(bytes) = self.sandboxes().read(&from.name, &file)? {
                    self.sandboxes().write(&new, &file, &bytes)?;
                }
            }
        }
        crash_point("sandbox.forking");
        let forked = Manifest {
            name: new,
            made: self.now(),
            agent: self.context.agent.clone(),
            task: self.context.task.clone(),
            checkpoints,
            head,
            merges,
            unfinished: Vec::new(),
            running: None,
            log,
            applied_head: None,
            ..from
        };
        self.keep_sandbox(&forked)?;
        Ok(self.as_view(&forked, false))
    }

    fn end_sandbox(&self, name: Option<&str>, is_discarding: bool) -> Result<Reply, EngineError> {
        let _held = self.sandboxes().hold()?;
        let name = self.find_sandbox(name)?;
        let mut open = self.take_sandbox(&name)?;
        let is_usable = self.standing(&open.manifest) != SandboxStanding::Lost;
        let checkpoints = open.manifest.unapplied();
        let is_pending = !checkpoints.is_empty() && !open.manifest.is_ended;
        if is_usable && is_pending && !is_discarding {
            let head = open.manifest.head;
            return Err(SandboxError::NotApplied {
                name,
                checkpoints,
                head,
            }
            .into());
        }
        open.manifest.is_ended = true;
        self.save(&open)?;
        crash_point("sandbox.ending");
        self.remove_sandbox(&open.manifest)?;
        Ok(Reply::SandboxEnded { name })
    }

    /// Removes the layers that no other sandbox needs, then all that is known of this one. Called while others are held.
    fn remove_sandbox(&self, manifest: &Manifest) -> Result<(), EngineError> {
        // Of one that cannot be read nobody knows what it needs.
        let needed = self.needed_by_forks(manifest)?;
        let is_alone = self.others_of_the_family(manifest)?.is_empty();
        let running = manifest.running.as_ref().map(|it| it.layer);
        let mut own = manifest.all_layers();
        own.extend(manifest.unfinished.iter().copied().chain(running));
        for id in own.into_iter().filter(|id| !needed.contains(id)) {
            if let Some(layer) = manifest.layer(id) {
                remove(&layer)?;
            }
        }
        for place in manifest.places.iter().filter(|_| is_alone) {
            remove(place.as_path())?;
        }
        Ok(self.sandboxes().remove(&manifest.name)?)
    }
}

/// Finds a checkpoint by its number.
fn number_of(manifest: &Manifest, checkpoint: &str) -> Result<u64, EngineError> {
    let number = checkpoint.parse().ok();
    let found = number.and_then(|number| manifest.checkpoint(number));
    let found = found.filter(|it| !it.is_folded);
    match found {
        Some(found) => Ok(found.number),
        None => Err(SandboxError::NoCheckpoint {
            name: manifest.name.clone(),
            checkpoint: checkpoint.to_owned(),
            newest: manifest.next.saturating_sub(1),
        }
        .into()),
    }
}
