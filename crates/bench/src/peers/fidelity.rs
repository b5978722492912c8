//! What an undo loses: each corner in a world of its own, removed or written over, and taken back.

use std::fs;
use std::path::Path;

use super::corners::{self, Corner};
use super::{Peer, Step, Undone, World};
use crate::Failure;

/// What did not come back, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    /// After the directory was removed.
    pub(super) by_removal: Vec<&'static str>,
    /// After the file was replaced.
    pub(super) by_write: Vec<&'static str>,
}

/// Tries every corner with a fresh contender.
pub(super) fn examine(place: &Path, peer: impl Fn() -> Box<dyn Peer>) -> Lost {
    let mut lost = Lost::default();
    for corner in corners::all() {
        let removal = Step::Remove("corner".into());
        if !comes_back(place, peer(), &corner, &removal) {
            lost.by_removal.push(corner.name);
        }
        if let Some(name) = corner.written {
            let write = Step::Write(Path::new("corner").join(name));
            if !comes_back(place, peer(), &corner, &write) {
                lost.by_write.push(corner.name);
            }
        }
    }
    lost
}

/// Whether the corner is as it was. A contender that fails or refuses has lost it.
fn comes_back(place: &Path, peer: Box<dyn Peer>, corner: &Corner, step: &Step) -> bool {
    let result = try_corner(place, peer, corner, step);
    // A world that cannot be removed would fail the next corner, which then shows it.
    let _removed = fs::remove_dir_all(place);
    result.unwrap_or(false)
}

fn try_corner(
    place: &Path,
    mut peer: Box<dyn Peer>,
    corner: &Corner,
    step: &Step,
) -> Result<bool, Failure> {
    let world = World::new_for_corners(place)?;
    fs::write(world.tree.join("readme"), "beside the corner\n")?;
    let at = world.tree.join("corner");
    fs::create_dir(&at)?;
    (corner.make)(&at)?;
    if !(corner.is_there)(&at) {
        return Err(format!("{} cannot be made here", corner.name).into());
    }
    peer.prepare(&world)?;
    world.stage(step, 1)?;
    peer.step(&world, step)?;
    let outcome = peer.undo(&world, step)?;
    Ok(outcome == Undone::Done && (corner.is_there)(&at))
}
