//! The comments of a text: what stands between its names and values and is no sign of the format.

use std::ops::Range;

use crate::document::Document;
use crate::format::Format;
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
        let length = match from.starts_with("/*") {
            true => from.find("*/").map_or(from.len(), |end| end + 2),
            // Two that came to stand in one line are two still.
            false => {
                let line = lines::cut(from, 0..lines::line_end(from, 0));
                let next = |sign: &&str| line.find(&format!(" {sign}"));
                signs.iter().filter_map(next).min().unwrap_or(line.len())
            }
        };
        found.push(at + start..at + start + length);
        at += start + length;
    }
}
