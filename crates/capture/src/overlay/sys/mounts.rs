//! Putting the new root together, step by step, and moving into it.

#![expect(unsafe_code, reason = "rustix does not wrap `mount_setattr`")]

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::CWD;
use rustix::io::{Errno, Result};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, chroot, pivot_root};

use super::script::{Ready, Script, What};
use crate::overlay::plan::Means;

/// What the kernel takes for "this mount and all below".
const AT_RECURSIVE: libc::c_uint = 0x8000;

/// The argument of `mount_setattr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    namespace: u64,
}

/// Puts everything together. `fell_back` is told of each mount that is read-only inside because it cannot be layered;
/// an error comes with the number of its step.
pub(super) fn build(
    script: &Script,
    mut fell_back: impl FnMut(usize, Errno),
) -> std::result::Result<(), (usize, Errno)> {
    let setup = script.steps.len();
    let privately = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change(c"/", privately).map_err(|errno| (setup, errno))?;
    if script.means == Means::UserNamespace {
        open_clone(&script.skeleton, false)
            .and_then(|tree| {
                if script.is_stacked {
                    make_read_only(&tree, false)?;
                }
                attach(&tree, &script.root)
            })
            .map_err(|errno| (setup, errno))?;
    }
    for (number, step) in script.steps.iter().enumerate() {
        let done = match (&step.what, one(step, script)) {
            // What is to be hidden and is not there needs no hiding.
            (_, Ok(())) | (What::Mask, Err(Errno::NOENT)) => Ok(()),
            // The root has nothing to fall back to.
            (What::Overlay { .. }, Err(errno)) if step.is_root => Err(errno),
            (What::Overlay { .. }, Err(errno)) => {
                fell_back(number, errno);
                match show(step, true) {
                    // It went away while we looked: there is nothing to protect.
                    Err(Errno::NOENT) => Ok(()),
                    other => other,
                }
            }
            (What::Processes, Err(_)) => show(step, false),
            // What is not shown cannot be written either.
            (What::Bind { .. }, Err(errno)) if !step.is_root => {
                fell_back(number, errno);
                Ok(())
            }
            (What::Bind { .. } | What::Mask, Err(errno)) => Err(errno),
        };
        done.map_err(|errno| (number, errno))?;
    }
    move_in(script).map_err(|errno| (setup, errno))
}

fn one(step: &Ready, script: &Script) -> Result<()> {
    match &step.what {
        What::Overlay {
            upper,
            work,
            base,
            lowers,
            escaped,
            flags,
        } => {
            if let Some(base) = base {
                let real = std::slice::from_ref(&step.from);
                let (lowers, writes) = ((real, &*base.escaped), (&*base.upper, &*base.work));
                attach(&overlay(script, lowers, writes, *flags)?, &base.at)?;
            }
            let made = overlay(script, (lowers, escaped), (upper, work), *flags)?;
            attach(&made, &step.to)
        }
        What::Bind { is_read_only } => show(step, *is_read_only),
        What::Processes => {
            let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
            mount(c"proc", &*step.to, c"proc", flags, None::<&CStr>)
        }
        What::Mask => {
            let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
            fsconfig_set_string(&context, c"mode", c"0555")?;
            fsconfig_create(&context)?;
            let flags = MountAttrFlags::MOUNT_ATTR_RDONLY;
            let made = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
            attach(&made, &step.to)
        }
    }
}

/// Makes an overlay, attached to nothing yet.
fn overlay(
    script: &Script,
    (lowers, escaped): (&[CString], &CStr),
    (upper, work): (&CStr, &CStr),
    flags: MountAttrFlags,
) -> Result<OwnedFd> {
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    // One by one and without escapes; older kernels know only the list.
    let mut each = lowers.iter();
    if each.any(|lower| fsconfig_set_string(&context, c"lowerdir+", &**lower).is_err()) {
        fsconfig_set_string(&context, c"lowerdir", escaped)?;
    }
    fsconfig_set_string(&context, c"upperdir", upper)?;
    fsconfig_set_string(&context, c"workdir", work)?;
    fsconfig_set_flag(&context, c"volatile")?;
    match script.means {
        Means::Root => {
            // A layer that others come above must stand for itself.
            let redirect = if script.is_stacked { c"off" } else { c"on" };
            fsconfig_set_string(&context, c"redirect_dir", redirect)?;
            fsconfig_set_string(&context, c"metacopy", c"off")?;
            fsconfig_set_string(&context, c"index", c"off")?;
        }
        Means::UserNamespace => fsconfig_set_flag(&context, c"userxattr")?,
    }
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)
}

/// Shows the real thing, with all that is mounted below it.
fn show(step: &Ready, is_read_only: bool) -> Result<()> {
    let tree = open_clone(&step.from, true)?;
    if is_read_only {
        make_read_only(&tree, !step.has_own_below)?;
    }
    attach(&tree, &step.to)
}

fn open_clone(path: &CStr, is_recursive: bool) -> Result<OwnedFd> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    if is_recursive {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    open_tree(CWD, path, flags)
}

fn attach(tree: &impl AsFd, to: &CStr) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(tree, c"", CWD, to, flags)
}

fn make_read_only(tree: &OwnedFd, is_recursive: bool) -> Result<()> {
    let attributes = MountAttr {
        set: u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()),
        clear: 0,
        propagation: 0,
        namespace: 0,
    };
    let flags = libc::AT_EMPTY_PATH.cast_unsigned() | if is_recursive { AT_RECURSIVE } else { 0 };
    // SAFETY: the descriptor is open, the path is a constant, and the structure lives as long as the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Makes the new root the root. Where the old one cannot be swapped out, it is covered.
fn move_in(script: &Script) -> Result<()> {
    chdir(&*script.root)?;
    match pivot_root(c".", c".") {
        Ok(()) => unmount(c".", UnmountFlags::DETACH)?,
        Err(Errno::INVAL) => {
            rustix::mount::mount_move(c".", c"/")?;
            chroot(c".")?;
        }
        Err(errno) => return Err(errno),
    }
    chdir(c"/")?;
    chdir(&*script.directory)
}

/// Gives what the last call of libc said.
pub(super) fn last_error() -> Errno {
    // SAFETY: the location belongs to this thread.
    Errno::from_raw_os_error(unsafe { *libc::__errno_location() })
}
