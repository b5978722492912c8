//! A plan made ready for the moment when nothing may be allocated.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::MountAttrFlags;

use crate::overlay::plan::{Means, Plan, Step};
use crate::overlay::process::Invocation;
use crate::overlay::skeleton::below;

/// What the child does, in order.
#[derive(Debug)]
pub(in crate::overlay) struct Script {
    pub(super) means: Means,
    pub(super) is_cut_off: bool,
    /// Whether the layers go above others.
    pub(super) is_stacked: bool,
    /// What is written to the files that map users and groups.
    pub(super) user_map: Vec<u8>,
    pub(super) group_map: Vec<u8>,
    pub(super) skeleton: CString,
    pub(super) root: CString,
    pub(super) directory: CString,
    pub(super) steps: Vec<Ready>,
}

/// One step with everything it needs.
#[derive(Debug)]
pub(super) struct Ready {
    /// The real path.
    pub(super) from: CString,
    /// The path below the new root.
    pub(super) to: CString,
    pub(super) is_root: bool,
    /// Whether what is mounted below it is told by itself.
    pub(super) has_own_below: bool,
    pub(super) what: What,
}

/// An overlay over the real directory that nobody writes.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) upper: CString,
    pub(super) work: CString,
    pub(super) at: CString,
    pub(super) escaped: CString,
}

impl Base {
    fn of(base: &Path, point: &Path) -> io::Result<Self> {
        Ok(Self {
            upper: c_path(&base.join("upper"))?,
            work: c_path(&base.join("work"))?,
            at: c_path(&base.join("at"))?,
            escaped: escaped(std::iter::once(point))?,
        })
    }
}

/// What a step mounts.
#[derive(Debug)]
pub(super) enum What {
    Overlay {
        upper: CString,
        work: CString,
        /// What stands for the real directory, if that cannot be a lower one itself.
        base: Option<Base>,
        /// The lower directories, topmost first; the last is the real one, or what stands for it.
        lowers: Vec<CString>,
        /// The same as older kernels want it.
        escaped: CString,
        flags: MountAttrFlags,
    },
    Bind {
        is_read_only: bool,
    },
    Processes,
    Mask,
}

impl Script {
    /// Makes a plan ready.
    pub(in crate::overlay) fn new(plan: &Plan, task: &Invocation) -> io::Result<Self> {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let map = |id: u32| format!("{id} {id} 1\n").into_bytes();
        let ready = |step: &Step| {
            let point = step.point();
            Ok(Ready {
                from: c_path(point)?,
                to: c_path(&below(&plan.root, point))?,
                is_root: point == Path::new("/"),
                has_own_below: ["/", "/dev"].iter().any(|top| point == Path::new(top)),
                what: what(step)?,
            })
        };
        Ok(Self {
            means: plan.means,
            is_cut_off: task.has_no_network,
            is_stacked: plan.is_stacked,
            user_map: map(user),
            group_map: map(group),
            skeleton: c_path(&plan.scratch.join("skeleton"))?,
            root: c_path(&plan.root)?,
            directory: c_path(&task.directory)?,
            steps: plan.steps.iter().map(ready).collect::<io::Result<_>>()?,
        })
    }
}

fn what(step: &Step) -> io::Result<What> {
    Ok(match step {
        Step::Overlay {
            point,
            layer,
            options,
            lowers,
            base,
        } => {
            let bottom = base
                .as_ref()
                .map_or_else(|| point.clone(), |base| base.join("at"));
            let lowers = || lowers.iter().chain([&bottom]).map(PathBuf::as_path);
            What::Overlay {
                upper: c_path(&layer.join("upper"))?,
                work: c_path(&layer.join("work"))?,
                base: base
                    .as_ref()
                    .map(|base| Base::of(base, point))
                    .transpose()?,
                lowers: lowers().map(c_path).collect::<io::Result<_>>()?,
                escaped: escaped(lowers())?,
                flags: flags_of(options),
            }
        }
        Step::Bind { is_read_only, .. } => What::Bind {
            is_read_only: *is_read_only,
        },
        Step::Processes { .. } => What::Processes,
        Step::Mask { .. } => What::Mask,
    })
}

/// The layered mount has the restrictions of the one it covers.
fn flags_of(options: &str) -> MountAttrFlags {
    let mut flags = MountAttrFlags::empty();
    for option in options.split(',') {
        flags |= match option {
            "nosuid" => MountAttrFlags::MOUNT_ATTR_NOSUID,
            "nodev" => MountAttrFlags::MOUNT_ATTR_NODEV,
            "noexec" => MountAttrFlags::MOUNT_ATTR_NOEXEC,
            "noatime" => MountAttrFlags::MOUNT_ATTR_NOATIME,
            _ => MountAttrFlags::empty(),
        };
    }
    flags
}

fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Escapes what separates lower directories in the old form of the option.
fn escaped<'p>(paths: impl Iterator<Item = &'p Path>) -> io::Result<CString> {
    let mut bytes = Vec::new();
    for path in paths {
        if !bytes.is_empty() {
            bytes.push(b':');
        }
        for byte in path.as_os_str().as_bytes() {
            if matches!(byte, b':' | b'\\' | b',') {
                bytes.push(b'\\');
            }
            bytes.push(*byte);
        }
    }
    Ok(CString::new(bytes)?)
}
