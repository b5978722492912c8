//! What happens to somebody else's work: an agent writes forty files, a person edits one of them, another file, and makes
//! a third; then the agent's step is taken back.

use std::fs;
use std::path::Path;

use super::{Peer, Step, Undone, World, tree};
use crate::Failure;

/// What became of the person's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    /// The edit of a file that the agent had written too.
    pub(super) same: &'static str,
    /// The edit of a file that the agent did not touch.
    pub(super) other: &'static str,
    /// The file that the person made.
    pub(super) new: &'static str,
}

const EDIT: &[u8] = b"\n// a line that a person wrote later\n";

/// Runs the story; whatever fails is told instead.
pub(super) fn examine(place: &Path, peer: Box<dyn Peer>) -> Foreign {
    let told = tell(place, peer);
    let _removed = fs::remove_dir_all(place);
    told.unwrap_or(Foreign {
        same: "the story failed",
        other: "",
        new: "",
    })
}

fn tell(place: &Path, mut peer: Box<dyn Peer>) -> Result<Foreign, Failure> {
    let world = World::new_for_corners(place)?;
    tree::make(&world.tree, 2 * tree::DIRECTORY_FILES, 0)?;
    peer.prepare(&world)?;
    let step = Step::Write(Path::new("a").join(tree::directory_name(0)));
    world.stage(&step, 1)?;
    peer.step(&world, &step)?;

    let same_file = world.tree.join(step.at()).join(tree::file_name(5));
    let other_file = world.tree.join("b/m000").join(tree::file_name(5));
    let new_file = world.tree.join("b/made-by-a-person.txt");
    let by_agent = fs::read(&same_file)?;
    append(&same_file)?;
    append(&other_file)?;
    fs::write(&new_file, EDIT)?;

    let outcome = peer.undo(&world, &step)?;
    let is_kept = |path: &Path| fs::read(path).is_ok_and(|is| is.ends_with(EDIT));
    let is_agents = fs::read(&same_file).is_ok_and(|is| is.starts_with(&by_agent));
    let kept = |path: &Path| if is_kept(path) { "kept" } else { "**lost**" };
    Ok(Foreign {
        same: match (outcome, is_kept(&same_file), is_agents) {
            (Undone::Refused(_), true, _) => "kept, conflict reported",
            (Undone::Refused(_), false, _) => "**lost**, conflict reported",
            (Undone::Done, true, true) => "kept, and the agent's too",
            (Undone::Done, true, false) => "kept, the agent's taken out",
            (Undone::Done, false, _) => "**lost silently**",
        },
        other: kept(&other_file),
        new: kept(&new_file),
    })
}

fn append(path: &Path) -> Result<(), Failure> {
    let mut text = fs::read(path)?;
    text.extend_from_slice(EDIT);
    Ok(fs::write(path, text)?)
}
