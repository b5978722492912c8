//! Lines and sections: what INI, `.env` and TOML share in adding and removing whole lines.
//!
//! A comment above a line stays when the line goes; a comment behind it goes with it.

use crate::dialect::Edit;
use crate::document::Document;
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Form, Member, Node, Way};
use crate::weave;

/// Adds a line behind the last one of a section, or of what stands before the first section.
pub(crate) fn add_line(document: &Document<'_>, node: &Node, entry: &str, is_root: bool) -> Edit {
    let text = document.text();
    let line_break = lines::line_break(text);
    let mut own = Vec::new();
    own_lines(node, &mut own);
    let last = own
        .iter()
        .filter_map(|m| m.whole)
        .max_by_key(|whole| whole.end());
    match last {
        Some(last) => {
            let end = lines::line_end(text, last.end());
            let indent = lines::indent(text, last.start());
            Edit::new(end..end, format!("{line_break}{indent}{entry}"))
        }
        None if is_root => first_of_root(document, entry),
        None => {
            let end = lines::line_end(text, node.span.start());
            Edit::new(end..end, format!("{line_break}{entry}"))
        }
    }
}

/// The lines that a section has of its own, also those of tables that are only implied.
fn own_lines<'t>(node: &'t Node, own: &mut Vec<&'t Member>) {
    for member in node.members() {
        match member.node.form {
            Form::Section => {}
            Form::Implied => own_lines(&member.node, own),
            Form::Plain | Form::Block | Form::Absent => own.push(member),
        }
    }
}

/// The first line of a text that has sections only, or nothing.
fn first_of_root(document: &Document<'_>, entry: &str) -> Edit {
    let text = document.text();
    let line_break = lines::line_break(text);
    match first_section(document.root()) {
        Some(start) => {
            let at = above_comments(text, lines::line_start(text, start));
            Edit::new(at..at, format!("{entry}{line_break}{line_break}"))
        }
        None => at_end(text, entry, false),
    }
}

/// Where the first section below a value begins.
pub(crate) fn first_section(node: &Node) -> Option<usize> {
    let starts = node.members().iter().map(|member| match member.node.form {
        Form::Section => {
            let own = member.node.span.start();
            Some(first_section(&member.node).map_or(own, |below| below.min(own)))
        }
        Form::Implied => first_section(&member.node),
        Form::Plain | Form::Block | Form::Absent => None,
    });
    starts.flatten().min()
}

/// The start of the comment lines that stand directly above a line.
pub(crate) fn above_comments(text: &str, mut at: usize) -> usize {
    while at > lines::text_start(text) {
        let above = lines::line_start(text, at - 1);
        if !lines::cut(text, above..at)
            .trim_start()
            .starts_with(['#', ';'])
        {
            break;
        }
        at = above;
    }
    at
}

/// Adds a section at the end of the text.
pub(crate) fn add_section(text: &str, section: &str) -> Edit {
    at_end(text, section, true)
}

/// Adds lines at the end of a text, which keeps its final newline or the lack of it.
pub(crate) fn at_end(text: &str, entry: &str, apart: bool) -> Edit {
    let line_break = lines::line_break(text);
    let end = text.len();
    let start = lines::text_start(text);
    if end == start {
        return Edit::new(end..end, format!("{entry}{line_break}"));
    }
    let gap = if apart { line_break } else { "" };
    if text.ends_with('\n') {
        let blank = lines::cut(text, lines::line_start(text, end - 1)..end)
            .trim()
            .is_empty();
        let gap = if blank { "" } else { gap };
        Edit::new(end..end, format!("{gap}{entry}{line_break}"))
    } else {
        Edit::new(end..end, format!("{line_break}{gap}{entry}"))
    }
}

/// Puts a line back as it stood, into a section or before the first one.
pub(crate) fn weave(
    document: &Document<'_>,
    way: &Way<'_>,
    left: Option<usize>,
    slip: &Slip,
) -> Option<Edit> {
    let (text, node) = (document.text(), way.node());
    let is_section = |member: &Member| matches!(member.node.form, Form::Section | Form::Implied);
    if slip.body.starts_with('[') {
        return None;
    }
    // A line stands before all sections.
    let is_line = |index: &usize| node.members().get(*index).is_some_and(|m| !is_section(m));
    let left = left.and_then(|left| (0..=left).rev().find(is_line));
    let (start, rest) = match (way.members.is_empty(), first_section(node)) {
        (true, None) => (text.len(), node.members().first()),
        (true, Some(first)) => {
            let at = above_comments(text, lines::line_start(text, first));
            (
                at,
                node.members().first().filter(|first| !is_section(first)),
            )
        }
        (false, _) => {
            let at = lines::next_line(text, lines::line_end(text, node.span.start()));
            (
                at,
                node.members().first().filter(|first| !is_section(first)),
            )
        }
    };
    match (left, rest) {
        (None, None) => weave::at(text, slip, start),
        (left, _) => weave::in_lines(text, node, left, slip),
    }
}

/// Takes out the lines of the last member of a way. With a section goes the blank line that set it apart.
pub(crate) fn remove_lines(text: &str, way: &Way<'_>) -> Edit {
    let Some(member) = way.members.last() else {
        return Edit::new(0..0, "");
    };
    let whole = member.whole.unwrap_or(member.node.span);
    let mut start = lines::line_start(text, whole.start());
    let mut end = lines::next_line(text, whole.end());
    if matches!(member.node.form, Form::Section) {
        let is_empty =
            |from: usize, to: usize| from < to && lines::cut(text, from..to).trim().is_empty();
        while is_empty(end, lines::next_line(text, end)) {
            end = lines::next_line(text, end);
        }
        let above = |start: usize| lines::line_start(text, start.saturating_sub(1));
        while end == text.len() && is_empty(above(start), start) {
            start = above(start);
        }
    }
    Edit::new(start..end, "")
}

/// A name in the text that differs from a missing one only in case, or that has the dots which the key takes for steps.
pub(crate) fn alike(way: &Way<'_>, names: &[&str]) -> Option<(KeyPath, usize)> {
    let depth = way.members.len();
    let missing = names.get(depth..).filter(|missing| !missing.is_empty())?;
    let key_of = |last: Vec<&str>| {
        let above = way.members.iter().map(|member| &*member.name);
        KeyPath::new(
            above
                .chain(last)
                .map(|name| Segment::Name(name.to_owned()))
                .collect(),
        )
    };
    for length in (1..=missing.len()).rev() {
        let (joined, below) = missing.split_at_checked(length)?;
        let joined = joined.join(".");
        let found = way
            .node()
            .members()
            .iter()
            .find(|m| m.name.eq_ignore_ascii_case(&joined));
        if let Some(found) = found {
            let names = std::iter::once(&*found.name).chain(below.iter().copied());
            return Some((key_of(names.collect()), found.name_at.start()));
        }
    }
    None
}
