//! Putting a key in.

use super::Applied;
use super::fit::{LAYOUT, PLACE, REMARK, as_large, by_patch, first_good};
use crate::change::{Anchor, KeyChange, Piece};
use crate::check::Want;
use crate::dialect::Fresh;
use crate::document::Document;
use crate::error::ConfigError;
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Span, Way};
use crate::value::Value;

/// Puts a key in: to its place with its exact bytes, or as it stood among those that are there, or at the end of what holds it.
pub(super) fn put_in(
    document: &Document<'_>,
    change: &KeyChange,
    upper: &Way<'_>,
    piece: &Piece,
) -> Result<Applied, ConfigError> {
    let want = Want::Means(&piece.value);
    let depth = upper.members.len();
    let missing = change.key.segments().get(depth..).unwrap_or_default();
    let slip = change.slip.as_ref().filter(|_| missing.len() == 1);
    let spot = slip.map(|slip| slip.spot(upper.node()));
    let is_sure = spot.map_or_else(
        // What held it is gone, too: only the text on both sides tells.
        || {
            let patch = change.patch.as_ref();
            patch.is_some_and(|patch| patch.places(document, &patch.before, false).1)
        },
        |spot| spot.is_sure,
    );
    let placed = |text| {
        if is_sure {
            Applied::Done(text)
        } else {
            Applied::Nearly { text, why: PLACE }
        }
    };
    let from_right = slip.is_some_and(|slip| slip.above.is_empty());
    if let Some(text) = by_patch(document, change, want, from_right) {
        return Ok(placed(text));
    }
    let dialect = document.dialect();
    if let (Some(slip), Some(spot)) = (slip, spot) {
        let edit = dialect.weave(document, upper, spot.left, slip);
        let is_sure = spot.is_sure && lies_close(document, change, upper, spot.left);
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(if is_sure {
                as_large(document, change, text)
            } else {
                Applied::Nearly { text, why: PLACE }
            });
        }
        // As deep as the one that is there: what stands deeper may be a part of that.
        let near = upper.node().members().get(spot.left.unwrap_or(0));
        let beside = near.and_then(|near| near.whole).map(|near| Slip {
            indent: Some(lines::indent(document.text(), near.start()).to_owned()),
            ..slip.clone()
        });
        let edit = beside.and_then(|slip| dialect.weave(document, upper, spot.left, &slip));
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(Applied::Nearly { text, why: LAYOUT });
        }
    }
    if let Value::Map(_) = piece.value {
        let behind = change.slip.as_ref().map_or("", |slip| &slip.behind);
        let section = format!("{}{behind}", piece.tail);
        let edit = dialect.insert_section(document.text(), &section);
        if let Ok(text) = first_good(document, change, edit.into_iter(), want) {
            return Ok(Applied::Nearly { text, why: PLACE });
        }
    }
    let values = [
        Fresh::Raw(piece.tail.clone()),
        Fresh::Raw(piece.raw.clone()),
        Fresh::Value(piece.value.clone()),
    ];
    let edits = values
        .iter()
        .filter_map(|value| dialect.insert(document, upper, missing, value).ok());
    let text = first_good(document, change, edits, want)?;
    let why = match change.slip.as_ref() {
        Some(slip) if !has_remarks(&text, slip) => REMARK,
        Some(_) | None => LAYOUT,
    };
    Ok(Applied::Nearly { text, why })
}

/// Whether a text has what may be a comment in or behind a member.
fn has_remarks(text: &str, slip: &Slip) -> bool {
    let held = format!("{}{}", slip.body, slip.behind);
    held.lines().all(|line| {
        let starts = [" #", " ;", "//", "/*"].map(|sign| line.find(sign));
        let start = starts.into_iter().flatten().min();
        start.is_none_or(|start| text.contains(lines::rest(line, start).trim()))
    })
}

/// Whether no line stood or stands between a member and its neighbours, not even a blank one: its place among such lines is not known.
pub(super) fn lies_close(
    document: &Document<'_>,
    change: &KeyChange,
    upper: &Way<'_>,
    left: Option<usize>,
) -> bool {
    let is_close = |gap: &str| gap.matches('\n').count() <= 1;
    let then = change.patch.as_ref();
    // A line end at the very beginning is a blank line.
    let is_first = |left: &Anchor| !left.edge || !left.gap.starts_with(['\n', '\r']);
    let then = then
        .is_some_and(|it| is_close(&it.left.gap) && is_close(&it.right.gap) && is_first(&it.left));
    let span = |index: usize| upper.node().members().get(index)?.whole;
    let parent = upper.node().span;
    let from = left.map_or(Some(parent.start()), |left| Some(span(left)?.end()));
    let to = span(left.map_or(0, |left| left + 1));
    let to = to.map_or_else(|| parent.end().max(from.unwrap_or(0)), Span::start);
    then && from.is_some_and(|from| is_close(lines::cut(document.text(), from..to)))
}
