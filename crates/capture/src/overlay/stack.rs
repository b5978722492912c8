//! Running a command above layers that earlier commands left: one more layer, and nothing below it changes.
//!
//! ```text
//! LAYER/N/upper      what one command wrote below the N-th of the sandbox's points; not there if it wrote nothing
//! ```
//!
//! - A point is a directory that has an overlay of its own. Its number is its place in the list of points, which only grows.
//! - Layers speak of no place but their own: a directory that lies in a lower layer cannot be renamed (`EXDEV`).
//! - A layer is the upper directory of one mount only, and is never written again.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::clock::ClockReference;
use super::error::OverlayError;
use super::mountinfo::{Mount, mounts};
use super::plan::{Layer, LayerKind, Means, Plan, Step};
use super::process::Invocation;
use super::run::{Finished, Supervised, make_directory, supervise};
use super::{layer_dir, skeleton};

/// Mode, owner and group of the top of a layer as it was made, after the number of its point.
pub type Top = (usize, (u32, u32, u32));

/// What a command runs above, and where its writes go.
#[derive(Debug, Clone)]
pub struct Stack {
    /// How the layers are set up; the same for all of them.
    pub means: Means,
    /// Directories that need an overlay of their own, since they are not the user's.
    pub foreign: Vec<PathBuf>,
    /// The directory that the first command ran in.
    pub home: PathBuf,
    /// The only directories that can be written below; none stands for all.
    pub roots: Vec<PathBuf>,
    /// The points known so far.
    pub points: Vec<PathBuf>,
    /// The layers below, topmost first.
    pub lowers: Vec<PathBuf>,
    /// Where the new layer is made.
    pub layer: PathBuf,
}

/// How a command above other layers went.
#[derive(Debug)]
pub struct Above {
    /// As any command in layers.
    pub finished: Finished,
    /// The points known now.
    pub points: Vec<PathBuf>,
    /// Mode, owner and group of the tops of the new layer as they were made, by the number of the point.
    pub tops: Vec<Top>,
}

/// Finds a place for layers, and the means to make them: where it is, what works, and what needs overlays of its own.
pub fn settle(
    places: &[PathBuf],
    directory: &Path,
) -> Result<(PathBuf, Means, Vec<PathBuf>), OverlayError> {
    let root = rustix::process::geteuid().is_root().then_some(Means::Root);
    let mut last = OverlayError::NoPlace { tried: Vec::new() };
    for means in root.into_iter().chain([Means::UserNamespace]) {
        match layer_dir::choose(places, means) {
            Ok(place) => {
                // Work is done there, whatever is mounted beside it later.
                let mut apart = layer_dir::foreign_above(directory);
                apart.push(directory.to_path_buf());
                return Ok((place, means, apart));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads the moment, after a tick of the clock that stamps files.
pub fn moment(directory: &Path) -> Result<ClockReference, OverlayError> {
    ClockReference::now(directory)
}

/// Runs a command above other layers. What is at `masks` is not seen inside.
pub fn run_above(
    invocation: &Invocation,
    stack: &Stack,
    masks: &[PathBuf],
) -> Result<Above, OverlayError> {
    let mut plan = stack.plan(&mounts()?, masks);
    let points = stack.number(&mut plan)?;
    make_directory(&plan.root)?;
    let tops = dressed(&mut plan, &points)?;
    if plan.means == Means::UserNamespace {
        skeleton::make(&mut plan)?;
    }
    let began = ClockReference::at_once(&stack.layer)?;
    let Supervised {
        ended,
        survivors,
        not_layered,
        is_timed_out,
        signals,
    } = supervise(invocation, &plan)?;
    let tops = tidy(&plan, &points, &tops).map_err(|source| OverlayError::Unreadable {
        path: stack.layer.clone(),
        source,
    })?;
    Ok(Above {
        finished: Finished {
            plan,
            ended,
            survivors,
            not_layered,
            began,
            is_timed_out,
            signals,
        },
        points,
        tops,
    })
}

impl Stack {
    fn plan(&self, mounts: &[Mount], masks: &[PathBuf]) -> Plan {
        let mut plan = match self.means {
            Means::Root => Plan::for_root(mounts, &self.layer, masks),
            Means::UserNamespace => {
                // A mount that is gone must not take the layers along that were made beside it.
                let used = self.points.iter().enumerate();
                let used = used.filter(|(number, _)| self.is_used(*number));
                let mut apart: Vec<PathBuf> = used.map(|(_, point)| point.clone()).collect();
                apart.extend(self.foreign.iter().cloned());
                Plan::for_user(mounts, &self.layer, (masks, &apart), |directory| {
                    skeleton::entries(directory, &self.home)
                })
            }
        };
        if !self.roots.is_empty() {
            plan.confine(mounts, &self.roots);
        }
        plan.is_stacked = true;
        plan
    }

    /// Tells whether a layer below has something at a point.
    fn is_used(&self, number: usize) -> bool {
        let number = number.to_string();
        self.lowers.iter().any(|below| below.join(&number).is_dir())
    }

    /// Gives every overlay its place in the new layer, by the number of its point, and the layers below.
    fn number(&self, plan: &mut Plan) -> Result<Vec<PathBuf>, OverlayError> {
        let mut points = self.points.clone();
        for step in &mut plan.steps {
            let Step::Overlay {
                point,
                layer,
                lowers,
                base,
                ..
            } = step
            else {
                continue;
            };
            let number = points.iter().position(|known| known == point);
            let number = number.unwrap_or_else(|| {
                points.push(point.clone());
                points.len() - 1
            });
            *layer = self.layer.join(number.to_string());
            let upper = |below: &PathBuf| below.join(number.to_string()).join("upper");
            let found = self.lowers.iter().map(upper);
            *lowers = found.filter(|upper| upper.is_dir()).collect();
            let is_above = self.layer.starts_with(&*point) && is_on_one(point, &self.layer);
            *base = (is_above && !lowers.is_empty()).then(|| layer.join("base"));
            if let Some(place) = plan.layers.iter_mut().find(|it| it.point == *point)
                && place.kind == LayerKind::Overlay
            {
                place.upper = layer.join("upper");
            }
        }
        // What was written over a mount that is gone must not be shown elsewhere, or be lost without a word.
        for (number, point) in points.iter().enumerate() {
            let is_here =
                |step: &Step| matches!(step, Step::Overlay { .. }) && step.point() == point;
            if !plan.steps.iter().any(is_here) && self.is_used(number) {
                return Err(OverlayError::Unreadable {
                    path: point.clone(),
                    source: io::Error::other("it was layered before, and cannot be any more"),
                });
            }
        }
        Ok(points)
    }
}

/// Tells whether two directories are on one file system; the second may yet have to be made.
fn is_on_one(point: &Path, layer: &Path) -> bool {
    let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
    let there = layer.ancestors().find(|path| path.exists());
    device(point) == there.and_then(device)
}

/// Makes the directories of the new layer. Its tops look like what they cover.
fn dressed(plan: &mut Plan, points: &[PathBuf]) -> Result<Vec<Top>, OverlayError> {
    let mut tops = Vec::new();
    for step in &plan.steps {
        let Step::Overlay {
            point,
            layer,
            lowers,
            base,
            ..
        } = step
        else {
            continue;
        };
        for part in ["upper", "work", "at"] {
            if let Some(base) = base {
                make_directory(&base.join(part))?;
            }
        }
        let upper = layer.join("upper");
        make_directory(&upper)?;
        make_directory(&layer.join("work"))?;
        layer_dir::dress(lowers.first().unwrap_or(point), &upper);
        let number = points.iter().position(|known| known == point);
        tops.extend(number.zip(layer_dir::top_of(&upper)));
    }
    for layer in &mut plan.layers {
        layer.top = layer_dir::top_of(&layer.upper);
    }
    Ok(tops)
}

/// Removes what the mounts needed and what stayed empty. Gives the tops that are left.
fn tidy(plan: &Plan, points: &[PathBuf], tops: &[Top]) -> io::Result<Vec<Top>> {
    for rest in [&plan.root, &plan.scratch.join("skeleton")] {
        layer_dir::remove(rest)?;
    }
    let mut left = Vec::new();
    for layer in plan
        .layers
        .iter()
        .filter(|it| it.kind == LayerKind::Overlay)
    {
        let Some(home) = layer.upper.parent() else {
            continue;
        };
        layer_dir::remove(&home.join("work"))?;
        layer_dir::remove(&home.join("base"))?;
        let is_same = layer_dir::top_of(&layer.upper) == layer.top;
        // One that cannot be listed is kept: somebody closed it.
        let is_empty = || {
            let listing = fs::read_dir(&layer.upper);
            listing.is_ok_and(|mut listing| listing.next().is_none())
        };
        if is_same && is_empty() {
            fs::remove_dir(&layer.upper)?;
            fs::remove_dir(home)?;
        } else if let Some(number) = points.iter().position(|point| *point == layer.point) {
            left.extend(tops.iter().filter(|(known, _)| *known == number));
        }
    }
    Ok(left)
}

/// Makes a plan of one merged layer, to tell what it changes: the upper directories below `layer`, and the tops as they
/// were when the first of the merged layers was made.
pub fn plan_of(means: Means, layer: &Path, points: &[PathBuf], tops: &[Top]) -> Plan {
    let mut plan = Plan::empty(means, layer);
    for (number, point) in points.iter().enumerate() {
        let upper = layer.join(number.to_string()).join("upper");
        if upper.is_dir() {
            let top = tops.iter().find(|(known, _)| *known == number);
            plan.layers.push(Layer {
                point: point.clone(),
                upper,
                kind: LayerKind::Overlay,
                top: top.map(|(_, top)| *top),
            });
        }
    }
    plan
}
