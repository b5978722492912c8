//! Files whose name went while somebody has them open: what is done to them still shows by their other names, and in what is
//! kept of them.
//!
//! Their inode is in a slot of this command, so it is known which name of before they are. What happens to them is noted
//! under that.

use backout_capture::live::{Act, Answer, Held, Place, Touch};
use backout_model::TargetPath;
use rustix::fs::{Mode, OFlags};

use super::before_image::Kept;
use super::log::Note;
use super::others::What;
use super::recorder::{EPERM, Recorder, Stop, node_of};
use super::tracker::Known;
use crate::file::recipe::{Image, Kind};

impl Recorder {
    /// Keeps what a call changes of a file whose name went. None if the file is not one of those that were kept.
    pub(super) fn nameless(&mut self, touch: &Touch) -> Option<Answer> {
        if matches!(touch.act, Act::Flags { .. }) && touch.gone.is_some() {
            let note = "changing the flags of a file whose name is gone (as `chattr` does) was refused: they could not be brought back";
            self.note(note.to_owned());
            return Some(Answer::Refuse(EPERM));
        }
        if !is_change(touch.act) || touch.second.is_some() {
            return None;
        }
        let number = match (&touch.first, &touch.gone) {
            (Some(place), _) => place.stat.as_ref().map(|stat| (stat.st_dev, stat.st_ino))?,
            (None, Some(gone)) => gone.number,
            (None, None) => return None,
        };
        let (origin, image) = self.kept_as(number)?;
        let slot = place_of(&image)?;
        if let Some(Ok(name)) = touch.gone.as_ref().map(|gone| TargetPath::new(&gone.path)) {
            let what = if matches!(touch.act, Act::Open { .. }) {
                What::Closed
            } else {
                What::Dressed
            };
            self.others.expect(&name, what);
        }
        if matches!(touch.act, Act::Attributes | Act::Times) {
            // What it was is noted with the inode.
            return Some(Answer::Continue);
        }
        Some(match self.rewritten(&slot, origin, image) {
            Ok(()) => Answer::Continue,
            Err(stop) => self.stop(&slot, stop),
        })
    }

    /// Says of a file that nobody knows any more that it changes.
    pub(super) fn unknown(&mut self, touch: &Touch) {
        if touch.first.is_none() && touch.gone.is_some() && is_change(touch.act) {
            self.note_lasting(
                "it changed a file by a descriptor whose name is gone; what its other names show is not undone"
                    .to_owned(),
            );
        }
    }

    /// Finds under which name of before an inode is kept.
    fn kept_as(&self, number: (u64, u64)) -> Option<(TargetPath, Image)> {
        let is_it = |image: &Image| {
            matches!(image, Image::Kept { identity, node: Kind::File, .. }
                if (identity.dev, identity.ino) == number)
        };
        let mut known = self.tracker.known.iter();
        let in_slot = known.find_map(|(origin, known)| match known {
            Known::Whole(image) if is_it(image) => Some((origin.clone(), image.clone())),
            Known::Whole(_) | Known::Absent | Known::Dressed { .. } => None,
        });
        let mut shelved = self.tracker.shelved.iter();
        in_slot.or_else(|| {
            let found = shelved.find(|(_, image)| is_it(image));
            found.map(|(origin, image)| (origin.clone(), image.clone()))
        })
    }

    /// The inode that is kept is about to be written: from now on its bytes are, and the inode beside them.
    fn rewritten(&mut self, slot: &Place, origin: TargetPath, image: Image) -> Result<(), Stop> {
        let Some(node) = node_of(slot) else {
            return Ok(());
        };
        if self.tracker.written.get(&origin) == Some(&node.identity.ino) {
            return Ok(());
        }
        let meta = image.meta().cloned();
        let path = origin.clone();
        self.learn(Note::Shelved { path, image }, Vec::new())?;
        let Kept { image, bytes, .. } = self.content(slot, &node, meta)?;
        self.note_first(&node, &origin);
        let whole = Note::Whole {
            path: origin,
            image,
            written: Some(node.identity.ino),
        };
        self.learn(whole, bytes)
    }

    /// What cannot be found by any path of ours, on a file system that is ours too, could be anything.
    pub(super) fn hidden(&mut self) -> Answer {
        self.note(
            "writing was refused by a path that nobody else can follow, on a file system that others see".to_owned(),
        );
        Answer::Refuse(EPERM)
    }
}

const fn is_change(act: Act) -> bool {
    match act {
        Act::Open { writes, .. } => writes,
        Act::Truncate | Act::Attributes | Act::Times => true,
        Act::Unlink
        | Act::Rmdir
        | Act::Rename { .. }
        | Act::Link
        | Act::Make
        | Act::Flags { .. }
        | Act::Read
        | Act::Exec
        | Act::Standing
        | Act::Mounts
        | Act::Quotas
        | Act::Sync => false,
    }
}

/// Opens the slot of an image.
fn place_of(image: &Image) -> Option<Place> {
    let slot = image.slot()?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = rustix::fs::open(slot.depot.as_path(), flags, Mode::empty()).ok()?;
    let mut place = Place {
        dir: Held::new(dir),
        dir_path: slot.depot.as_path().to_path_buf(),
        dir_number: None,
        name: slot.name.clone().into(),
        stat: None,
        is_slashed: false,
        through: None,
    };
    place.look().ok()?;
    place.stat.is_some().then_some(place)
}
