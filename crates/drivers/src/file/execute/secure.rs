//! Before the arm: a file that will be kept as it is, as the only pre-image of a change, is made durable.
//!
//! Somebody may have written it a moment ago and never synced it. If power fails after the arm, the journal must not
//! speak of a file that the disk has never seen. A tree that is kept whole is not walked: its bytes are as safe as they
//! were.

use std::collections::BTreeMap;

use super::{SINGLE_SYNCS_MAX, Step};
use crate::file::context::FileContext;
use crate::file::error::FileError;
use crate::file::recipe::{Change, Image, Kind};
use crate::file::sys::{Dir, ToSync};

const NAME: &str = "keep.file";

/// Makes durable what the steps keep.
pub(crate) fn secure(context: &FileContext, steps: &[Step]) -> Result<(), FileError> {
    let kept: Vec<&Step> = steps.iter().filter(|step| keeps_a_file(step)).collect();
    if kept.len() > SINGLE_SYNCS_MAX {
        return sync_file_systems(context, &kept);
    }
    // One that we may replace but not read is left to the system, and one whose name is only to come was ours.
    let opened = kept.into_iter().filter_map(|step| {
        let path = step.change.path();
        let file = Dir::of(path).and_then(|place| place.read()).ok()?;
        Some((file.into(), path.clone(), NAME))
    });
    context.syncs.files(&opened.collect::<Vec<ToSync>>())
}

fn keeps_a_file(step: &Step) -> bool {
    let Change::Set { before, .. } = &step.change else {
        return false;
    };
    matches!(
        before,
        Image::Kept {
            node: Kind::File,
            ..
        }
    )
}

fn sync_file_systems(context: &FileContext, kept: &[&Step]) -> Result<(), FileError> {
    let mut dirs = BTreeMap::new();
    for step in kept {
        if let Ok(place) = Dir::of(step.change.path()) {
            dirs.insert(place.dir.node()?.identity.dev, place.dir);
        }
    }
    for dir in dirs.values() {
        context.syncs.file_system(dir, NAME)?;
    }
    Ok(())
}
