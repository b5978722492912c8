//! What is mounted where, for a command that shall change nothing: pure data, made from the list of mounts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::mountinfo::Mount;

/// How the layers are set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// By root, one overlay per mount.
    Root,
    /// In a user namespace of our own, with a skeleton of the directories above mounts.
    UserNamespace,
}

impl Means {
    /// Gives the beginning of the names that overlays keep their notes under.
    pub const fn xattr_prefix(self) -> &'static str {
        match self {
            Self::Root => "trusted.overlay.",
            Self::UserNamespace => "user.overlay.",
        }
    }
}

/// A place where writes land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The real directory that it covers.
    pub point: PathBuf,
    /// Where the writes are.
    pub upper: PathBuf,
    /// How they are to be read.
    pub kind: LayerKind,
    /// Mode, owner and group of its top as it was made.
    pub(super) top: Option<(u32, u32, u32)>,
}

/// How a layer is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerKind {
    /// The upper directory of an overlay.
    Overlay,
    /// A plain directory that began with nothing but places to mount things on: all else is new.
    Skeleton {
        /// What it began with, by real path.
        known: BTreeSet<PathBuf>,
    },
}

/// One thing to mount below the new root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// An overlay over a directory.
    Overlay {
        /// The directory.
        point: PathBuf,
        /// Where its layer is: `upper` and `work` in it.
        layer: PathBuf,
        /// The options of the mount that it covers.
        options: String,
        /// Layers between it and the directory, topmost first.
        lowers: Vec<PathBuf>,
        /// Where the directory is shown by an overlay that nobody writes: the kernel refuses a lower directory that lies
        /// in another one, but not one that lies below the other's own lower directory.
        base: Option<PathBuf>,
    },
    /// The thing itself, with all that is mounted below.
    Bind {
        /// Where it is mounted.
        point: PathBuf,
        /// Whether it may not be written.
        is_read_only: bool,
    },
    /// The kernel's own view of the new processes.
    Processes {
        /// Where it is mounted.
        point: PathBuf,
    },
    /// Nothing, in place of a directory that is nobody's business.
    Mask {
        /// The directory that is hidden.
        point: PathBuf,
    },
}

impl Step {
    /// Gives the directory or file that it covers.
    pub(super) fn point(&self) -> &Path {
        match self {
            Self::Overlay { point, .. }
            | Self::Bind { point, .. }
            | Self::Processes { point }
            | Self::Mask { point } => point,
        }
    }

    /// Says what it does.
    pub(super) fn describe(&self) -> String {
        let at = self.point().display();
        match self {
            Self::Overlay { .. } => format!("mount an overlay over `{at}`"),
            Self::Bind { .. } => format!("show `{at}`"),
            Self::Processes { .. } => "mount a process file system".to_owned(),
            Self::Mask { .. } => format!("hide `{at}`"),
        }
    }
}

/// Everything that is mounted, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Who mounts: root, or a user namespace of our own.
    pub means: Means,
    /// Where the new root is put together: a directory in the layers' own.
    pub(super) root: PathBuf,
    /// The directory with the layers.
    pub(super) scratch: PathBuf,
    /// The first is the root itself.
    pub(super) steps: Vec<Step>,
    /// Directories that have mounts below and are not layered themselves.
    pub(super) spine: BTreeSet<PathBuf>,
    /// Where writes land.
    pub layers: Vec<Layer>,
    /// Whether the layers go above others and below others yet to come: then none of them may speak of a place elsewhere,
    /// and the skeleton, which is no layer, cannot be written.
    pub(super) is_stacked: bool,
}

impl Plan {
    /// Plans for root: one overlay per real mount, deepest last.
    pub fn for_root(mounts: &[Mount], scratch: &Path, masks: &[PathBuf]) -> Self {
        let mut plan = Self::empty(Means::Root, scratch);
        for mount in in_order(mounts) {
            plan.add(mount, mount.point.clone());
        }
        plan.mask(masks);
        plan
    }

    /// Plans for an ordinary user. `entries` lists a directory that has mounts below: directories first, then the rest.
    /// Directories that are `foreign` to the user get a layer of their own: in a user namespace an overlay cannot make a
    /// directory of somebody else anew, and nothing could be written below it.
    pub fn for_user(
        mounts: &[Mount],
        scratch: &Path,
        (masks, foreign): (&[PathBuf], &[PathBuf]),
        entries: impl Fn(&Path) -> (Vec<PathBuf>, Vec<PathBuf>),
    ) -> Self {
        let mut plan = Self::empty(Means::UserNamespace, scratch);
        let ordered = in_order(mounts);
        plan.spine = spine(&ordered);
        plan.layers.push(Layer {
            point: PathBuf::from("/"),
            upper: scratch.join("skeleton"),
            kind: LayerKind::Skeleton {
                known: BTreeSet::new(),
            },
            top: None,
        });
        for above in plan.spine.clone() {
            let (directories, others) = entries(&above);
            let Some(mount) = ordered
                .iter()
                .rfind(|mount| above.starts_with(&mount.point))
            else {
                continue;
            };
            let is_mount = |path: &PathBuf| ordered.iter().any(|mount| mount.point == *path);
            for path in directories {
                if !is_mount(&path) && !plan.spine.contains(&path) {
                    plan.add(mount, path);
                }
            }
            for point in others.into_iter().filter(|path| !is_mount(path)) {
                plan.steps.push(Step::Bind {
                    point,
                    is_read_only: true,
                });
            }
        }
        for mount in &ordered {
            if !plan.spine.contains(&mount.point) {
                plan.add(mount, mount.point.clone());
            }
        }
        plan.layer_inside(&ordered, foreign);
        plan.mask(masks);
        plan
    }

    /// Adds layers for directories inside of other layers, from above.
    fn layer_inside(&mut self, ordered: &[&Mount], points: &[PathBuf]) {
        let mut points = points.to_vec();
        points.sort_by_key(|point| point.components().count());
        for point in points {
            let within = self
                .steps
                .iter()
                .filter(|step| point.starts_with(step.point()));
            let innermost = within.max_by_key(|step| step.point().components().count());
            let is_layered =
                matches!(innermost, Some(Step::Overlay { point: above, .. }) if *above != point);
            let mount = ordered
                .iter()
                .rfind(|mount| point.starts_with(&mount.point));
            if let Some(mount) = mount.filter(|_| is_layered && !self.spine.contains(&point)) {
                self.add(mount, point);
            }
        }
    }

    pub(super) fn empty(means: Means, scratch: &Path) -> Self {
        Self {
            means,
            root: scratch.join("root"),
            scratch: scratch.to_path_buf(),
            steps: Vec::new(),
            spine: BTreeSet::new(),
            layers: Vec::new(),
            is_stacked: false,
        }
    }

    /// Adds what stands for `point`, which lies on `mount`.
    fn add(&mut self, mount: &Mount, point: PathBuf) {
        if point == Path::new("/proc") && mount.kind == "proc" {
            self.steps.push(Step::Processes { point });
            return;
        }
        // What is mounted below something that is shown as it is, is shown with it.
        let is_shown = |step: &Step| {
            matches!(step, Step::Bind { .. } | Step::Processes { .. })
                && point.starts_with(step.point())
        };
        let is_plain = mount.is_window() || mount.is_read_only;
        if is_plain && self.steps.iter().any(is_shown) {
            return;
        }
        if is_plain {
            // Devices can be written all the same; their names cannot be taken away.
            let is_read_only = !mount.is_window() || point == Path::new("/dev");
            self.steps.push(Step::Bind {
                point,
                is_read_only,
            });
            return;
        }
        let layer = self.scratch.join(self.layers.len().to_string());
        self.layers.push(Layer {
            point: point.clone(),
            upper: layer.join("upper"),
            kind: LayerKind::Overlay,
            top: None,
        });
        self.steps.push(Step::Overlay {
            point,
            layer,
            options: mount.options.clone(),
            lowers: Vec::new(),
            base: None,
        });
    }

    /// Leaves nothing writable but what is below some directories.
    pub(super) fn confine(&mut self, mounts: &[Mount], roots: &[PathBuf]) {
        let is_inside = |point: &Path| roots.iter().any(|root| point.starts_with(root));
        for step in &mut self.steps {
            if let Step::Overlay { point, .. } = step
                && !is_inside(point)
            {
                *step = Step::Bind {
                    point: point.clone(),
                    is_read_only: true,
                };
            }
        }
        let is_skeleton = |layer: &Layer| layer.kind != LayerKind::Overlay;
        self.layers
            .retain(|layer| is_skeleton(layer) || is_inside(&layer.point));
        let ordered = in_order(mounts);
        for root in roots {
            let is_there = |step: &Step| step.point() == root;
            let within = |mount: &&&Mount| root.starts_with(&mount.point);
            let Some(mount) = ordered.iter().rfind(within) else {
                continue;
            };
            if self.steps.iter().any(is_there) || mount.is_window() || mount.is_read_only {
                continue;
            }
            self.add(mount, root.clone());
            // What is mounted below it comes after it.
            let is_after = |step: &Step| {
                matches!(step, Step::Mask { .. })
                    || step.point() != root && step.point().starts_with(root)
            };
            let place = self.steps.iter().position(is_after);
            if let (Some(place), Some(step)) = (place, self.steps.pop()) {
                self.steps.insert(place, step);
            }
        }
    }

    fn mask(&mut self, masks: &[PathBuf]) {
        let steps = masks.iter().map(|point| Step::Mask {
            point: point.clone(),
        });
        self.steps.extend(steps);
    }
}

/// Sorts mounts so that each comes after the one it lies in.
fn in_order(mounts: &[Mount]) -> Vec<&Mount> {
    let mut ordered: Vec<&Mount> = mounts.iter().collect();
    ordered.sort_by_key(|mount| mount.point.components().count());
    ordered
}

/// Finds the directories that have mounts below them. What is shown as it is has its mounts with it.
fn spine(ordered: &[&Mount]) -> BTreeSet<PathBuf> {
    let is_shown = |path: &Path| {
        let mut shown = ordered.iter().filter(|mount| {
            mount.is_window() || mount.is_read_only && mount.point != Path::new("/")
        });
        shown.any(|mount| path.starts_with(&mount.point))
    };
    let above = ordered
        .iter()
        .flat_map(|mount| mount.point.ancestors().skip(1))
        .filter(|path| !is_shown(path));
    let mut spine: BTreeSet<PathBuf> = above.map(Path::to_path_buf).collect();
    spine.insert(PathBuf::from("/"));
    spine
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: &[u8] = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n\
        2 1 0:1 / /proc rw - proc proc rw\n\
        3 1 0:2 / /sys rw - sysfs sysfs rw\n\
        4 3 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
        5 1 0:4 / /dev rw - devtmpfs dev rw\n\
        6 5 0:5 / /dev/shm rw,nosuid - tmpfs tmpfs rw\n\
        7 1 8:2 / /srv ro - ext4 /dev/sdb ro\n\
        8 1 8:3 / /home/ada/disk rw - ext4 /dev/sdc rw\n";

    fn shown(plan: &Plan) -> Vec<String> {
        let word = |step: &Step| match step {
            Step::Overlay { .. } => "layer",
            Step::Bind {
                is_read_only: true, ..
            } => "read-only",
            Step::Bind { .. } => "as it is",
            Step::Processes { .. } => "processes",
            Step::Mask { .. } => "nothing",
        };
        let line = |step: &Step| format!("{} {}", step.point().display(), word(step));
        plan.steps.iter().map(line).collect()
    }

    #[test]
    fn root_gets_one_layer_per_real_mount() {
        let masks = [PathBuf::from("/state")];
        let plan = Plan::for_root(&super::super::parse(MACHINE), Path::new("/s"), &masks);
        let wanted = [
            "/ layer",
            "/proc processes",
            "/sys as it is",
            "/dev read-only",
            "/srv read-only",
            "/dev/shm layer",
            "/home/ada/disk layer",
            "/state nothing",
        ];
        assert_eq!(shown(&plan), wanted);
        assert_eq!(plan.layers.len(), 3);
    }

    #[test]
    fn a_user_gets_a_layer_per_directory_beside_a_mount() {
        let entries = |path: &Path| {
            let join = |names: &[&str]| names.iter().map(|name| path.join(name)).collect();
            match path.to_str() {
                Some("/") => (
                    join(&["proc", "sys", "dev", "srv", "home", "usr"]),
                    join(&["x"]),
                ),
                Some("/home") => (join(&["ada", "bob"]), Vec::new()),
                _ => (join(&["disk", "work"]), join(&["note"])),
            }
        };
        let foreign = ["/", "/usr", "/usr/local/share", "/srv/x", "/usr/local"].map(PathBuf::from);
        let mounts = super::super::parse(MACHINE);
        let plan = Plan::for_user(&mounts, Path::new("/s"), (&[], &foreign), entries);
        let wanted = [
            "/usr layer",
            "/x read-only",
            "/home/bob layer",
            "/home/ada/work layer",
            "/home/ada/note read-only",
            "/proc processes",
            "/sys as it is",
            "/dev read-only",
            "/srv read-only",
            "/dev/shm layer",
            "/home/ada/disk layer",
            "/usr/local layer",
            "/usr/local/share layer",
        ];
        assert_eq!(shown(&plan), wanted);
    }
}
