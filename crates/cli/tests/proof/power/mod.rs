//! Power cuts: a disk of our own logs every write and flush of a file system in use; from the log come the images that
//! a power cut at any moment could have left, with what was not flushed lost, kept, reordered or torn.
//!
//! Each image is mounted, recovered in a new process, and judged: what was acknowledged is there, what was in flight
//! is whole or not there at all, and everything can be taken back to the very beginning. `cargo xtask crash --images N`
//! makes more of them. That the judge bites is proved by leaving out one kind of sync at a time.

mod command;
mod fuse;
mod log;
mod story;

use log::Fate;
use story::{BTRFS, EXT4, Kind, Story, XFS};

use crate::random::Random;

/// So many images for each file system, unless `BACKOUT_IMAGES` says otherwise.
const IMAGES: usize = 40;

/// So many cover every acknowledgement and every arm after one.
const EVERY: usize = 5 * 34;

#[test]
fn ext4_after_power_cuts() {
    holds_on(EXT4);
}

#[test]
fn xfs_after_power_cuts() {
    holds_on(XFS);
}

#[test]
fn btrfs_after_power_cuts() {
    holds_on(BTRFS);
}

/// One test per kind of sync, each left out in turn: on some file system something that was promised must be lost.
macro_rules! bites {
    ($($test:ident: $name:literal;)*) => {
        $(
            #[test]
            fn $test() {
                bites_without($name);
            }
        )*
    };
}

bites! {
    without_the_sync_of_the_journal: "journal.arm";
    without_the_sync_of_new_files: "stage.file";
    without_the_sync_of_changed_directories: "apply.dir";
    without_the_sync_of_restored_files: "undo.file";
    without_the_sync_of_a_kept_file: "keep.file";
    without_the_sync_of_a_pack: "pack.file";
}

/// Syncs whose lack shows seldom or never here, so that no test can ask for it; `cargo xtask crash --bites N` counts.
///
/// - Of restored directories: most cuts that lose a restored name also lose the record that the undo is done, and then
///   recovery finishes it. It takes a cut between the record's block and the file system's own journal.
/// - Of the depot and of the directory of packs: nothing promises that the names in one directory are durable before
///   those in another, or a name with its file, but these three file systems see to both by themselves.
#[test]
fn without_the_syncs_that_are_seldom_missed() {
    if std::env::var_os("BACKOUT_VIOLATIONS").is_some() {
        for name in ["undo.dir", "depot.link", "pack.dir"] {
            losses_without(name, number("BACKOUT_IMAGES", IMAGES), usize::MAX);
        }
    }
}

fn bites_without(name: &str) {
    let images = number("BACKOUT_IMAGES", EVERY);
    let enough = number("BACKOUT_VIOLATIONS", 1);
    let found = losses_without(name, images, enough);
    assert!(
        found > 0,
        "nothing is lost without the sync {name}: is it needed?"
    );
}

fn losses_without(name: &str, images: usize, enough: usize) -> usize {
    let mut found = 0;
    for kind in [EXT4, BTRFS, XFS] {
        if found < enough {
            found += cut(kind, Some(name), images, enough).len();
        }
    }
    found
}

fn number(name: &str, default: usize) -> usize {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

fn holds_on(kind: Kind) {
    let violations = cut(kind, None, number("BACKOUT_IMAGES", IMAGES), usize::MAX);
    assert!(
        violations.is_empty(),
        "{kind:?}: {} violations; the first: {}",
        violations.len(),
        violations[0]
    );
}

/// Tells the story once, and judges so many images of it; ends early after so many violations.
fn cut(kind: Kind, skipped: Option<&str>, images: usize, enough: usize) -> Vec<String> {
    let mut story = Story::recorded(kind, skipped);
    let mut random = Random::new(u64::try_from(number("BACKOUT_SEED", 1)).unwrap());
    let (first, last) = story.span();
    let flushes = story.history.flushes(first, last).len();
    let writes = last - first - flushes;
    let mut violations = Vec::new();
    for (position, fate) in moments(&story, images, &mut random) {
        let image = story.history.image(position, fate, &mut random);
        if let Err(why) = story.judge(&image, position) {
            violations.push(format!("{fate:?} at {position}: {why}"));
            if violations.len() >= enough {
                break;
            }
        }
    }
    eprintln!(
        "{} without {skipped:?}: {images} images of {writes} writes and {flushes} flushes, {} violations",
        kind.0,
        violations.len()
    );
    if let Some(first) = violations.first() {
        eprintln!("the first: {first}");
    }
    violations
}

/// Chooses when the power fails, in order of time: right after an acknowledgement, where most was promised; right after
/// the next flush, which makes records durable that say so, and right before it, when records have been sent and names
/// perhaps not; right after any flush; anywhere.
fn moments(story: &Story, images: usize, random: &mut Random) -> Vec<(usize, Fate)> {
    let acknowledged = story.acknowledgements();
    let (first, last) = story.span();
    let flushes = story.history.flushes(first, last);
    let next_flush = |after: &usize| flushes.iter().copied().find(|flush| flush > after);
    let armed: Vec<usize> = acknowledged.iter().filter_map(next_flush).collect();
    let spread = |of: &[usize], number: usize| of[(number * of.len() / images) % of.len()];
    let mut moments: Vec<_> = (0..images)
        .map(|number| match number % 5 {
            0 => (spread(&acknowledged, number), Fate::Lost),
            1 => (spread(&armed, number), Fate::Lost),
            2 => (spread(&armed, number) - 1, Fate::Kept),
            3 => (spread(&flushes, number), Fate::Lost),
            _ => {
                let position = first + random.below(last - first + 1);
                let fate = random.pick(&[Fate::Scattered, Fate::Scattered, Fate::Kept]);
                (position, *fate)
            }
        })
        .collect();
    moments.sort_by_key(|(position, _)| *position);
    moments
}
