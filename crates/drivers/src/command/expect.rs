//! What the calls of a command do to names, so that what others do stands out.

use backout_capture::live::{Act, Answer, Place, Touch};
use backout_model::TargetPath;
use rustix::fs::RenameFlags;

use super::others::What;
use super::recorder::{Recorder, node_of};
use crate::file::recipe::Kind;

impl Recorder {
    /// Notes what the call will do to names, if it succeeds.
    pub(super) fn expect(&mut self, touch: &Touch, answer: Answer) {
        if matches!(answer, Answer::Refuse(_) | Answer::Fails(_)) {
            return;
        }
        let path = |place: &Place| TargetPath::new(place.path()).ok();
        if let (Act::Link, Some(second)) = (touch.act, touch.second.as_ref().and_then(path)) {
            self.others.expect_of_call(&second, What::Arrives);
        }
        let (Some(place), Some(first)) = (&touch.first, touch.first.as_ref().and_then(path)) else {
            return;
        };
        let node = node_of(place);
        match touch.act {
            Act::Open {
                creates,
                writes,
                is_exclusive,
            } => {
                match &node {
                    None if creates => self.others.expect_of_call(&first, What::Arrives),
                    // It fails.
                    None => return,
                    Some(_) if creates && is_exclusive => return,
                    Some(_) => {}
                }
                if writes || node.is_none() {
                    self.others.expect_of_call(&first, What::Closed);
                }
                if let Some(node) = node.filter(|node| node.is_shared && node.kind == Kind::File) {
                    let number = (node.identity.dev, node.identity.ino);
                    self.others.expect_inode(place, &first, number);
                }
                // Whoever writes a program that gives rights takes those away.
                if node.is_some_and(|node| node.mode & 0o6000 != 0) {
                    self.others.expect_of_call(&first, What::Dressed);
                }
            }
            Act::Unlink | Act::Rmdir if node.is_some() => {
                self.others.expect_of_call(&first, What::Leaves);
                if answer == Answer::Done {
                    self.others.went(&first);
                }
            }
            Act::Make if node.is_none() => self.others.expect_of_call(&first, What::Arrives),
            Act::Attributes | Act::Times if node.is_some() => {
                self.others.expect_of_call(&first, What::Dressed);
            }
            // One that is only passed on does nothing: both names are the same file.
            Act::Rename { .. } if answer == Answer::Continue => {}
            Act::Rename { flags } => {
                if let Some(second) = touch.second.as_ref().and_then(path) {
                    let is_exchange = is_exchange(flags);
                    self.expect_move(&first, &second, is_exchange);
                    if answer == Answer::Done {
                        let is_tree =
                            is_exchange || node.is_some_and(|node| node.kind == Kind::Directory);
                        self.others.moved(&first, &second, is_exchange, is_tree);
                    }
                }
            }
            _ => {}
        }
    }

    /// Notes that something that is open already will be closed.
    pub(super) fn expect_closing(&mut self, place: &Place) {
        let (Some(node), Ok(path)) = (node_of(place), TargetPath::new(place.path())) else {
            return;
        };
        self.others.expect(&path, What::Closed);
        if node.is_shared && node.kind == Kind::File {
            let number = (node.identity.dev, node.identity.ino);
            self.others.expect_inode(place, &path, number);
        }
    }

    fn expect_move(&mut self, from: &TargetPath, to: &TargetPath, is_exchange: bool) {
        self.others.expect_of_call(from, What::Leaves);
        self.others.expect_of_call(to, What::Arrives);
        if is_exchange {
            self.others.expect_of_call(to, What::Leaves);
            self.others.expect_of_call(from, What::Arrives);
        }
    }
}

/// Tells whether a rename swaps two names.
pub(super) const fn is_exchange(flags: u32) -> bool {
    RenameFlags::from_bits_retain(flags).contains(RenameFlags::EXCHANGE)
}
