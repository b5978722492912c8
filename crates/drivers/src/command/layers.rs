//! Files in a lower layer of an overlay.
//!
//! Such a file becomes one of the upper layer when it changes, moves or gets another name. What that loses, an undo cannot
//! bring back: its other names stay behind, and its holes are filled. It happens here first, so that it is this file that
//! is kept and that what is lost is said.

use backout_capture::live::{Act, Place, Touch};
use backout_model::TargetPath;
use rustix::fs::{AtFlags, Mode, OFlags, chownat, openat};

use super::others::What;
use super::recorder::{Recorder, node_of};
use crate::file::recipe::Kind;

impl Recorder {
    /// Lets what a call is about to change become a file of the upper layer.
    pub(super) fn bring_up(&mut self, touch: &mut Touch) {
        let act = touch.act;
        if matches!(act, Act::Read | Act::Make) {
            return;
        }
        if let Some(place) = &mut touch.first {
            self.bring_up_one(place, act);
        }
        // What is replaced is kept, which gives it another name.
        if let (Act::Rename { .. }, Some(place)) = (act, &mut touch.second) {
            self.bring_up_one(place, act);
        }
    }

    fn bring_up_one(&mut self, place: &mut Place, act: Act) {
        let Some(node) = node_of(place).filter(|node| node.kind != Kind::Directory) else {
            return;
        };
        // The bytes that a write replaces are kept as they are, with their holes.
        let is_written = matches!(act, Act::Open { .. } | Act::Truncate);
        let holes = holes_in(place).filter(|_| node.kind == Kind::File);
        let is_worth_it = node.is_shared || holes.is_some() && !is_written;
        let is_known = self
            .raised
            .contains(&(node.identity.dev, node.identity.ino));
        if !is_worth_it || is_known || !is_in_overlay(place) {
            return;
        }
        let Some(told) = copy_up(place, node.kind) else {
            return;
        };
        if let Ok(path) = TargetPath::new(place.path()) {
            // That was ourselves. What cannot be written into the log stops the next call.
            self.others.expect(&path, told);
            let _told = self.look_around();
        }
        if place.look().is_err() {
            return;
        }
        let now = node_of(place);
        self.raised
            .extend(now.as_ref().map(|now| (now.identity.dev, now.identity.ino)));
        let name = place.path().display().to_string();
        if node.is_shared && !now.is_some_and(|now| now.is_shared) {
            self.note(format!(
                "`{name}` has other names in a lower layer of its overlay; from now on it is a file of its own, and an undo \
                 does not join them again"
            ));
        }
        if holes.is_some() && holes_in(place) < holes {
            self.note(format!(
                "`{name}` has holes in a lower layer of its overlay; they were filled, and an undo does not make them again"
            ));
        }
    }
}

/// Makes the smallest change that takes a file out of its lower layer; gives how that is seen.
fn copy_up(place: &Place, kind: Kind) -> Option<What> {
    if kind == Kind::File {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = openat(&place.dir, &place.name, flags, Mode::empty()).ok()?;
        drop(opened);
        return Some(What::Closed);
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    chownat(&place.dir, &place.name, None, None, flags).ok()?;
    Some(What::Dressed)
}

/// Gives how many bytes of a file are holes; none if there are none.
fn holes_in(place: &Place) -> Option<i64> {
    let stat = place.stat.as_ref()?;
    let holes = stat.st_size - stat.st_blocks * 512;
    (holes > 0).then_some(holes)
}

/// Tells whether a place is in an overlay of several layers.
fn is_in_overlay(place: &Place) -> bool {
    const OVERLAY: i64 = 0x794c_7630;
    rustix::fs::fstatfs(&place.dir).is_ok_and(|found| found.f_type == OVERLAY)
}
