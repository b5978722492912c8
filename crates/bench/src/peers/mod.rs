//! The race: the same steps on the same trees by us and by what a user could take instead, in one run.
//!
//! A contender is a [`Peer`]. Each step is protected and done by the contender's own programs, as an agent's harness would
//! start them; nothing is linked in. Who checkpoints does so before the step; who asks for paths is given the paths.
//! What is not installed is shown as such.

mod agent_undo;
mod backout;
mod bare;
mod borg;
mod copy;
mod corners;
mod doover;
mod fidelity;
mod foreign;
mod install;
mod jj;
mod plot;
mod race;
mod restic;
mod shadow_git;
mod table;
#[cfg(test)]
mod tests;
mod tree;
mod undo_core;
mod world;

use std::path::{Path, PathBuf};

use crate::report::say;
use crate::{Failure, process, report, root};
use race::Race;
use world::{Step, World};

/// How an undo ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Undone {
    /// The contender says that it is done.
    Done,
    /// The contender says that it did not do it, and why.
    Refused(String),
}

/// One contender, in one world.
trait Peer {
    /// What the table calls it.
    fn name(&self) -> &'static str;

    /// Its version, or why it cannot take part.
    fn version(&self) -> Result<String, Failure>;

    /// What a step and its undo are, in a line.
    fn how(&self) -> &'static str;

    /// Whatever is needed once per tree; not part of a step's time.
    fn prepare(&mut self, world: &World) -> Result<(), Failure>;

    /// Protects what the step touches, and makes the step.
    fn step(&mut self, world: &World, step: &Step) -> Result<(), Failure>;

    /// Takes back the newest step.
    fn undo(&mut self, world: &World, step: &Step) -> Result<Undone, Failure>;

    /// Where its bytes are.
    fn stores(&self, world: &World) -> Vec<PathBuf> {
        vec![world.store.clone()]
    }
}

/// Makes the outcome of an undo from that of its program.
fn undone(ran: &process::Ran) -> Undone {
    if ran.is_success {
        Undone::Done
    } else {
        Undone::Refused(ran.why())
    }
}

/// Everybody, in the order of the table.
fn contenders(backout: &Path) -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(bare::Bare { is_synced: false }),
        Box::new(bare::Bare { is_synced: true }),
        Box::new(backout::Backout::new(backout)),
        Box::new(copy::Copy::default()),
        Box::new(shadow_git::ShadowGit::default()),
        Box::new(doover::Doover::default()),
        Box::new(undo_core::UndoCore),
        Box::new(agent_undo::AgentUndo::default()),
        Box::new(jj::Jj),
        Box::new(restic::Restic),
        Box::new(borg::Borg::default()),
    ]
}

/// Installs what is missing, runs the race and writes table and picture. With names only these run, and nothing is written.
pub(crate) fn measure(place: &Path, names: &[String]) -> Result<(), Failure> {
    let backout = process::backout()?;
    for complaint in install::install_missing(names) {
        say(&complaint);
    }
    let mut race = Race::new(place, &backout);
    if !names.is_empty() {
        let is_chosen = |name: &&str| names.iter().any(|word| name.contains(word.as_str()));
        let all = contenders(&backout);
        race.only = all
            .iter()
            .map(|peer| peer.name())
            .filter(is_chosen)
            .collect();
    }
    let standings = race.run()?;
    let text = table::to_markdown(&standings);
    if !names.is_empty() {
        say(&text);
        return Ok(());
    }
    std::fs::write(root().join("docs/race.svg"), plot::draw(&standings))?;
    report::write_section("race", &text)?;
    say(&text);
    Ok(())
}
