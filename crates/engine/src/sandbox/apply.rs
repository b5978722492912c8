//! From a sandbox to the real files: all its layers become one, and that is applied like what was tried.
//!
//! A name is a conflict if the real file is not what the sandbox was made over: it was changed after the command began that
//! first touched it here, or it is gone. What we applied ourselves, and what was taken back since, is none: neither by an undo, nor
//! by the end of an application that was interrupted or died. What each name was is written down before the first is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use backout_capture::overlay::{self, ClockReference, Ended, Plan, Top};
use backout_crashpoint::crash_point;
use backout_files::Baseline;
use backout_model::{OperationId, TargetPath};

use super::SandboxError;
use super::exec::changes_file;
use super::manifest::{Applied, Begun, Entry, Manifest};
use super::open::Open;
use super::view::SandboxAct;
use crate::trial::LayersOf;
use crate::{Diff, Engine, EngineError, Finished, Selection, TrialChangeView, TrialWhat};

/// How many names are told of those that were applied since.
const NAMED_MAX: usize = 5;

/// What is known of the first time that a name was touched.
struct First {
    began: i64,
    was_there: bool,
    /// Whether everything below it went.
    is_whole: bool,
}

impl Engine {
    pub(super) fn apply_sandbox(
        &self,
        name: Option<&str>,
        selection: &Selection,
    ) -> Result<Finished, EngineError> {
        let mut open = self.open_sandbox(name)?;
        // What a dead application did goes first: else the rest of it would be taken for all.
        self.recover_the_dead()?;
        self.sweep_trials()?;
        let prepared = self.layers_of(&open)?;
        let before: Vec<(TargetPath, Baseline)> = prepared.baselines(selection);
        if before.is_empty() {
            prepared.let_go(self)?;
            // Somebody did the same, or what was kept of a dead application was all of it.
            let is_real = selection.is_everything() && open.manifest.is_pending();
            if is_real {
                self.note_real(&mut open, Vec::new(), true)?;
            }
            let name = open.manifest.name.clone();
            return Err(SandboxError::Nothing { name, is_real }.into());
        }
        if !prepared.has_conflict(selection) {
            self.note_begun(&mut open, &before)?;
        }
        crash_point("sandbox.prepared");
        let (mut finished, is_whole) = prepared.apply(self, selection)?;
        crash_point("sandbox.applied");
        finished.notes.splice(0..0, std::mem::take(&mut open.notes));
        self.note_real(&mut open, before, is_whole)?;
        Ok(finished)
    }

    pub(super) fn diff_sandbox(
        &self,
        name: Option<&str>,
        selection: &Selection,
        is_brief: bool,
    ) -> Result<Diff, EngineError> {
        let open = self.open_sandbox(name)?;
        let prepared = self.layers_of(&open)?;
        let id = open.manifest.family;
        let files = prepared.diff(self, selection, is_brief);
        prepared.let_go(self)?;
        Ok(Diff { id, files: files? })
    }

    /// Merges all layers of the head into one, beside them, and looks at what it changes.
    fn layers_of(&self, open: &Open) -> Result<LayersOf, EngineError> {
        let manifest = &open.manifest;
        let id = self.next_id();
        let place = self.place_beside(manifest, id);
        let line = vec!["sandbox".to_owned(), manifest.name.clone()];
        let mut prepared = LayersOf::begin(self, id, line, (&manifest.home, &place))?;
        prepared.belongs_to(manifest.agent.clone(), manifest.task.clone());
        let result = self.fill(open, &place, &mut prepared);
        if let Err(error) = result {
            prepared.let_go(self)?;
            return Err(error);
        }
        Ok(prepared)
    }

    fn fill(&self, open: &Open, place: &Path, prepared: &mut LayersOf) -> Result<(), EngineError> {
        let plan = merged(&open.manifest, place)?;
        prepared.look(self, &finished(plan))?;
        let firsts = self.firsts(&open.manifest)?;
        let own = Real::of(&open.manifest);
        // What a fork made real and took back again is as it was for all of them.
        let others = self.others_of_the_family(&open.manifest)?;
        let others: Vec<Real<'_>> = others.iter().map(Real::of).collect();
        prepared.judge(|path, baseline| {
            // What was no conflict before a fork made it real, or was about to, is none when it is as it was then.
            let is_as_good = |before: &Baseline| !is_conflict(&firsts, path, before);
            let is_put_back = |real: &Real<'_>| self.is_back_as_it_was(real, path, &is_as_good);
            is_conflict(&firsts, path, baseline)
                && !own.holds(path)
                && !self.is_back_as_it_was(&own, path, &|_| true)
                && !others.iter().any(is_put_back)
        });
        prepared.keep(self)
    }

    /// Tells whether a name is what it was before it was made real, or before an application that was put back came to it.
    fn is_back_as_it_was(
        &self,
        real: &Real<'_>,
        path: &TargetPath,
        is_meant: &dyn Fn(&Baseline) -> bool,
    ) -> bool {
        let is_put_back = |before: &Baseline| {
            let now = before.put_back(path.as_path());
            now.is_ok_and(|now| now.is_some())
        };
        let applied = real.applied.get(path).map(|it| &it.before);
        let begun = real.begun.get(path).filter(|it| is_meant(&it.before));
        applied
            .filter(|before| is_meant(before))
            .is_some_and(|before| still_holds(before, path) || is_put_back(before))
            || begun.is_some_and(|it| {
                let is_ours = || self.is_taken_back_since(path, it.at).unwrap_or(false);
                still_holds(&it.before, path) || is_put_back(&it.before) && is_ours()
            })
    }

    /// Reads the sandboxes that have layers in common with one.
    pub(super) fn others_of_the_family(
        &self,
        manifest: &Manifest,
    ) -> Result<Vec<Manifest>, EngineError> {
        let mut others = Vec::new();
        for name in self.sandbox_names()? {
            let other = self.read_sandbox(&name)?;
            if name != manifest.name && other.family == manifest.family {
                others.push(other);
            }
        }
        Ok(others)
    }

    /// Gives a directory on the file system of the layers.
    pub(super) fn place_beside(&self, manifest: &Manifest, id: OperationId) -> PathBuf {
        let places = self.places(id);
        let device = |path: &Path| {
            use std::os::unix::fs::MetadataExt as _;
            let there = path
                .ancestors()
                .find_map(|path| path.symlink_metadata().ok());
            there.map(|found| found.dev())
        };
        let wanted = manifest.place.as_ref().and_then(|it| device(it.as_path()));
        let beside = places.iter().find(|place| device(place) == wanted);
        beside.or(places.first()).cloned().unwrap_or_default()
    }

    /// Reads when each name was first touched on the way to the head.
    fn firsts(&self, manifest: &Manifest) -> Result<BTreeMap<TargetPath, First>, EngineError> {
        let mut firsts = BTreeMap::new();
        for checkpoint in manifest.chain(manifest.head) {
            let file = changes_file(checkpoint.number);
            let Some(bytes) = self.sandboxes().read(&manifest.name, &file)? else {
                continue;
            };
            let changes: Vec<TrialChangeView> =
                serde_json::from_slice(&bytes).map_err(|error| SandboxError::Unreadable {
                    name: manifest.name.clone(),
                    why: error.to_string(),
                })?;
            for change in changes {
                firsts.entry(change.path).or_insert(First {
                    began: checkpoint.began,
                    was_there: change.what != TrialWhat::Created,
                    is_whole: change.what == TrialWhat::Deleted,
                });
            }
        }
        Ok(firsts)
    }

    /// Says which names were made real by checkpoints that are not behind the head: they are real there, too.
    pub(super) fn shown_through(&self, manifest: &Manifest) -> Result<Option<String>, EngineError> {
        let own = self.firsts(manifest)?;
        let is_real = |it: &&Applied| it.after.still_holds(it.path.as_path()).unwrap_or(false);
        let names = manifest.applied.iter();
        let names = names
            .filter(|it| !own.contains_key(&it.path))
            .filter(is_real);
        let names: Vec<String> = names.map(|it| format!("`{}`", it.path)).collect();
        let (shown, more) = names.split_at(names.len().min(NAMED_MAX));
        let more = match more.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok((!names.is_empty()).then(|| {
            format!(
                "what was applied since is real, and is seen here too: {}{more}; an undo of the application takes it back",
                shown.join(", ")
            )
        }))
    }

    /// Notes what each name is before the first is touched, so that what is put back of it is no conflict the next time.
    fn note_begun(
        &self,
        open: &mut Open,
        before: &[(TargetPath, Baseline)],
    ) -> Result<(), EngineError> {
        let at = self.now();
        open.manifest.forget_begun(before);
        let begun = before.iter().map(|(path, before)| Begun {
            path: path.clone(),
            before: before.clone(),
            at,
        });
        open.manifest.begun.extend(begun);
        self.save(open)
    }

    /// Notes what is real now, so that it is no conflict the next time.
    fn note_real(
        &self,
        open: &mut Open,
        before: Vec<(TargetPath, Baseline)>,
        is_whole: bool,
    ) -> Result<(), EngineError> {
        let manifest = &mut open.manifest;
        manifest.forget_begun(&before);
        let anew: BTreeSet<&TargetPath> = before.iter().map(|(path, _)| path).collect();
        manifest.applied.retain(|it| !anew.contains(&it.path));
        for (path, before) in before {
            let after = Baseline::of(path.as_path(), true).unwrap_or(Baseline::Absent);
            manifest.applied.push(Applied {
                path,
                before,
                after,
            });
        }
        manifest.applied_head = None;
        if is_whole {
            manifest.note_real();
        }
        let directory = manifest.home.clone();
        let checkpoint = manifest.head;
        manifest.log.push(Entry {
            act: if is_whole {
                SandboxAct::Applied
            } else {
                SandboxAct::AppliedInPart
            },
            command: Vec::new(),
            is_line: false,
            verdict: None,
            code: None,
            checkpoint,
            is_rolled_back: false,
            directory,
            at: self.now(),
            took_ms: 0,
            changes: 0,
        });
        self.save(open)
    }
}

/// What a sandbox made real, and what it was about to, by name.
struct Real<'m> {
    applied: BTreeMap<&'m TargetPath, &'m Applied>,
    begun: BTreeMap<&'m TargetPath, &'m Begun>,
}

impl<'m> Real<'m> {
    fn of(manifest: &'m Manifest) -> Self {
        let (applied, begun) = (manifest.applied.iter(), manifest.begun.iter());
        Self {
            applied: applied.map(|it| (&it.path, it)).collect(),
            begun: begun.map(|it| (&it.path, it)).collect(),
        }
    }

    /// Tells whether a name is as it was made real.
    fn holds(&self, path: &TargetPath) -> bool {
        let applied = self.applied.get(path);
        applied.is_some_and(|it| still_holds(&it.after, path))
    }
}

fn still_holds(baseline: &Baseline, path: &TargetPath) -> bool {
    baseline.still_holds(path.as_path()).unwrap_or(false)
}

/// Merges the layers of the head.
pub(super) fn merged(manifest: &Manifest, into: &Path) -> Result<Plan, EngineError> {
    let layers = manifest.layers(manifest.head).into_iter().rev();
    let layers: Vec<PathBuf> = layers.filter_map(|id| manifest.layer(id)).collect();
    overlay::merge(manifest.means(), &layers, manifest.points.len(), into)?;
    let points = manifest.points.iter().map(|it| it.as_path().to_path_buf());
    let points: Vec<PathBuf> = points.collect();
    // Of each point the oldest layer knows what its top was.
    let mut tops: Vec<Top> = Vec::new();
    for checkpoint in manifest.chain(manifest.head) {
        for (number, top) in &checkpoint.tops {
            if !tops.iter().any(|(known, _)| known == number) {
                tops.push((*number, *top));
            }
        }
    }
    Ok(overlay::plan_of(manifest.means(), into, &points, &tops))
}

/// A merged layer, as if one command had made it. Who changed what meanwhile is judged name by name.
fn finished(plan: Plan) -> overlay::Finished {
    overlay::Finished {
        plan,
        ended: Ended::Code(0),
        survivors: Vec::new(),
        not_layered: Vec::new(),
        began: ClockReference(i64::MAX),
        is_timed_out: false,
        signals: Vec::new(),
    }
}

fn is_conflict(
    firsts: &BTreeMap<TargetPath, First>,
    path: &TargetPath,
    baseline: &Baseline,
) -> bool {
    let above = path.ancestors();
    let whole = above.filter_map(|above| firsts.get(&above).filter(|it| it.is_whole));
    let own = firsts.get(path);
    let was_gone = own.is_some_and(|it| it.was_there) && matches!(baseline, Baseline::Absent);
    let hidden: Option<i64> = whole.map(|it| it.began).min();
    let began = own.map(|it| it.began).into_iter().chain(hidden).min();
    // What nobody noted was touched by none of the commands.
    let is_newer = began.is_some_and(|began| baseline.is_newer_than(began));
    is_newer || was_gone && hidden.is_none()
}
