//! The comments of a text: what stands between its names and values and is no sign of the format.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::ops::Range;

use crate::change::KeyChange;
use crate::document::Document;
use crate::format::Format;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::tree::{Kind, Node, Span};

/// A comment without the blanks around it.
#[derive(Debug)]
pub(crate) struct Remark<'d> {
    pub(crate) text: &'d str,
    /// The keys whose names stand before it in its line, by their hashes, but for the changed one and what it holds.
    pub(crate) names: Vec<u64>,
}

/// Gives all comments in their order.
pub(crate) fn remarks<'d>(document: &'d Document<'_>, changed: u64) -> Vec<Remark<'d>> {
    let text = document.text();
    let mut spans = Vec::new();
    gather(document.root(), Some(0), changed, &mut spans);
    spans.sort_unstable_by_key(|(span, _)| (span.start(), span.end()));
    let mut found = Vec::new();
    let mut at = 0;
    let end = (Span::new(text.len(), text.len()), None);
    for (span, _) in spans.iter().chain([&end]) {
        in_gap(document.format(), text, at..span.start(), &mut found);
        at = at.max(span.end());
    }
    let remark = |range: Range<usize>| {
        let line = lines::line_start(text, range.start);
        let from = spans.partition_point(|(span, _)| span.start() < line);
        let names = spans.iter().skip(from);
        let names = names.take_while(|(span, _)| span.start() < range.start);
        Remark {
            names: names.filter_map(|(_, name)| *name).collect(),
            text: lines::cut(text, range).trim_end(),
        }
    };
    found.into_iter().map(remark).collect()
}

/// The places of all names, with their keys, and of single values. Nothing is told of the changed key and what is below it.
fn gather(node: &Node, key: Option<u64>, changed: u64, spans: &mut Vec<(Span, Option<u64>)>) {
    if let Kind::Scalar(_) | Kind::Alias = node.kind {
        spans.push((node.span, None));
    }
    let is_list = matches!(node.kind, Kind::List(_));
    for (index, member) in node.members().iter().enumerate() {
        let below = key.map(|key| {
            if is_list {
                step(key, &index)
            } else {
                step(key, &*member.name)
            }
        });
        let below = below.filter(|below| *below != changed);
        spans.push((member.name_at, below.filter(|_| !is_list)));
        gather(&member.node, below, changed, spans);
    }
}

fn step(key: u64, segment: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    segment.hash(&mut hasher);
    hasher.finish()
}

fn hash_of(key: &KeyPath) -> u64 {
    let segments = key.segments().iter();
    segments.fold(0, |key, segment| match segment {
        Segment::Name(name) => step(key, name.as_str()),
        Segment::Index(index) => step(key, index),
        Segment::Append => step(key, &usize::MAX),
    })
}

fn in_gap(format: Format, text: &str, gap: Range<usize>, found: &mut Vec<Range<usize>>) {
    let signs: &[&str] = match format {
        Format::Json => return,
        Format::Jsonc => &["//", "/*"],
        Format::Ini => &["#", ";"],
        Format::Yaml | Format::Toml | Format::Env => &["#"],
    };
    let mut at = gap.start;
    loop {
        let rest = lines::cut(text, at..gap.end);
        let Some(start) = signs.iter().filter_map(|sign| rest.find(sign)).min() else {
            return;
        };
        let from = lines::rest(rest, start);
        let length = if from.starts_with("/*") {
            from.find("*/").map_or(from.len(), |end| end + 2)
        } else {
            // Two that came to stand in one line are two still.
            let line = lines::cut(from, 0..lines::line_end(from, 0));
            let next = |sign: &&str| line.find(&format!(" {sign}"));
            signs.iter().filter_map(next).min().unwrap_or(line.len())
        };
        found.push(at + start..at + start + length);
        at += start + length;
    }
}

/// Whether every comment is what it was and stands in a line with the same name, but for those that came or went with the key.
pub(crate) fn keeps_remarks(
    one: &Document<'_>,
    two: &Document<'_>,
    change: &KeyChange,
    is_moved: bool,
) -> bool {
    let is_known = |remark: &str| {
        let pieces = [&change.before, &change.after].into_iter().flatten();
        let mut texts = pieces.flat_map(|piece| [&piece.raw, &piece.tail]);
        let patch = change.patch.as_ref();
        texts.any(|text| text.contains(remark))
            || patch.is_some_and(|it| it.before.contains(remark) || it.after.contains(remark))
            || change
                .slip
                .as_ref()
                .is_some_and(|slip| slip.behind.contains(remark) || slip.body.contains(remark))
    };
    let changed = hash_of(&change.key);
    let of = |document| {
        let mut remarks = remarks(document, changed);
        remarks.retain(|remark| !is_known(remark.text));
        remarks.sort_by_key(|remark| remark.text);
        remarks
    };
    let (one, two) = (of(one), of(two));
    one.len() == two.len()
        && one.iter().zip(&two).all(|(one, two)| {
            let mut names = one.names.iter();
            let stays =
                !is_moved || one.names.is_empty() || names.any(|name| two.names.contains(name));
            one.text == two.text && stays
        })
}
