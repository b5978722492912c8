//! Taking a key out.

use super::fit::{EMPTY, as_large, first_good};
use super::{Applied, bare};
use crate::change::KeyChange;
use crate::check::{Want, is_chain};
use crate::document::Document;
use crate::edit;
use crate::error::ConfigError;
use crate::tree::{Kind, Way};

/// Takes a key out, and the parents that were made for it and hold nothing else.
pub(super) fn take_out(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
) -> Result<Applied, ConfigError> {
    let key = &change.key;
    let length = key.segments().len();
    for up in (0..=change.made.min(length.saturating_sub(1))).rev() {
        let mut short = way.clone();
        short.members.truncate(length - up);
        let below = key.segments().get(length - up..).unwrap_or_default();
        let alone = is_chain(short.node(), below) && (up == 0 || is_ours(document, change, &short));
        let Some(mut edit) = edit::removal(document, key, &short).ok().filter(|_| alone) else {
            continue;
        };
        if let Some(rest) = edit.new.strip_prefix(" {}").map(str::to_owned)
            && change.hollow
            && up == change.made
        {
            edit.new = rest;
        }
        let parent = short.parent();
        let edit = std::iter::once(edit);
        let Ok(text) = first_good(document, change, edit, Want::Absent) else {
            continue;
        };
        let is_left = parent.members().len() == 1 && !text.trim().is_empty();
        return Ok(if is_left && had_others(change) {
            Applied::Nearly { text, why: EMPTY }
        } else {
            as_large(document, change, text)
        });
    }
    Err(ConfigError::Disturbs { key: key.clone() })
}

/// Whether others stood beside the member that came or went.
pub(super) fn had_others(change: &KeyChange) -> bool {
    let slip = change.slip.as_ref();
    slip.is_some_and(|slip| !slip.above.is_empty() || !slip.below.is_empty())
}

/// Whether a parent that was made for a key holds no line, and so no remark, that did not come with it.
fn is_ours(document: &Document<'_>, change: &KeyChange, parent: &Way<'_>) -> bool {
    let whole = parent.members.last().and_then(|member| member.whole);
    let lines = whole.map(|whole| bare(whole.of(document.text())));
    match (lines, &change.patch) {
        (Some(lines), Some(patch)) => lines.iter().all(|line| patch.before.contains(line)),
        (Some(_) | None, _) => false,
    }
}

/// Refuses to take a member away on which somebody wrote a comment.
pub(super) fn unremarked(
    document: &Document<'_>,
    change: &KeyChange,
    way: &Way<'_>,
) -> Result<(), ConfigError> {
    let (Some(slip), Some(member)) = (&change.slip, way.members.last()) else {
        return Ok(());
    };
    let head = |body: &str| body.lines().next().unwrap_or_default().trim().to_owned();
    let body = member.whole.map_or("", |whole| whole.of(document.text()));
    let is_single = matches!(member.node.kind, Kind::Scalar(_) | Kind::Alias);
    let is_same = is_single || body.is_empty() || head(body) == head(&slip.body);
    let behind = document.dialect().behind(document, way);
    if is_same && behind.trim() == slip.behind.trim() {
        return Ok(());
    }
    Err(ConfigError::Remarked {
        key: change.key.clone(),
    })
}
