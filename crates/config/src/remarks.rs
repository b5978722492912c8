//! The comments of a text: what stands between its names and values and is no sign of the format.

use std::ops::Range;

use crate::change::KeyChange;
use crate::document::Document;
use crate::format::Format;
use crate::key::Segment;
use crate::lines;
use crate::tree::{Kind, Node, Span};

/// A comment without the blanks around it.
#[derive(Debug)]
pub(crate) struct Remark<'d> {
    pub(crate) text: &'d str,
    /// The names that stand before it in its line.
    pub(crate) names: Vec<&'d str>,
}

/// Gives all comments in their order.
pub(crate) fn remarks<'d>(document: &'d Document<'_>) -> Vec<Remark<'d>> {
    let text = document.text();
    let mut spans = Vec::new();
    gather(document.root(), &mut spans);
    spans.sort_unstable_by_key(|(span, _)| (span.start(), span.end()));
    let mut found = Vec::new();
    let mut at = 0;
    let end = (Span::new(text.len(), text.len()), "");
    for (span, _) in spans.iter().chain([&end]) {
        in_gap(document.format(), text, at..span.start(), &mut found);
        at = at.max(span.end());
    }
    let remark = |range: Range<usize>| {
        let line = lines::line_start(text, range.start);
        let from = spans.partition_point(|(span, _)| span.start() < line);
        let names = spans.iter().skip(from);
        let names = names.take_while(|(span, _)| span.start() < range.start);
        let names = names.map(|(_, name)| *name).filter(|name| !name.is_empty());
        Remark {
            names: names.collect(),
            text: lines::cut(text, range).trim_end(),
        }
    };
    found.into_iter().map(remark).collect()
}

/// The places of all names, and of single values without one.
fn gather<'d>(node: &'d Node, spans: &mut Vec<(Span, &'d str)>) {
    if let Kind::Scalar(_) | Kind::Alias = node.kind {
        spans.push((node.span, ""));
    }
    for member in node.members() {
        spans.push((member.name_at, &*member.name));
        gather(&member.node, spans);
    }
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
    let of = |document| {
        let mut remarks = remarks(document);
        remarks.retain(|remark| !is_known(remark.text));
        remarks.sort_by_key(|remark| remark.text);
        remarks
    };
    let is_own = |name: &str| {
        let mut own = change.key.segments().iter();
        own.any(|segment| matches!(segment, Segment::Name(own) if own == name))
    };
    let (one, two) = (of(one), of(two));
    one.len() == two.len()
        && one.iter().zip(&two).all(|(one, two)| {
            let mut names = one.names.iter().filter(|name| !is_own(name)).peekable();
            let stays =
                !is_moved || names.peek().is_none() || names.any(|name| two.names.contains(name));
            one.text == two.text && stays
        })
}
