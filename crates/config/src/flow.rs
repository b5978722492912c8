//! Members between brackets with commas: JSON, arrays and inline tables of TOML, flow style of YAML.
//!
//! A new member comes behind the last one and copies its line form. A comment behind a member stays behind it, and goes with it.

use crate::dialect::Edit;
use crate::error::ConfigError;
use crate::key::KeyPath;
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Member, Node, Way};

/// What begins a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comments {
    None,
    /// `//` and `/* */`
    Slashes,
    /// `#`
    Hash,
}

/// How a new member looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'t> {
    /// One level of indentation.
    pub(crate) unit: &'t str,
    /// What stands between two members in one line.
    pub(crate) comma: &'t str,
    /// What stands inside the brackets of one that was empty.
    pub(crate) pad: &'t str,
    /// Whether the first member gets a line of its own.
    pub(crate) many_lines: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow<'t> {
    pub(crate) text: &'t str,
    pub(crate) comments: Comments,
}

impl Flow<'_> {
    /// The indent that members of this list or object have, or would have.
    pub(crate) fn member_indent(&self, node: &Node, unit: &str) -> String {
        let start = |member: &Member| member.whole.unwrap_or(member.node.span).start();
        match node.members().last().map(start) {
            Some(start) if lines::begins_line(self.text, start) => {
                lines::indent(self.text, start).to_owned()
            }
            Some(_) => lines::indent(self.text, node.span.start()).to_owned(),
            None => format!("{}{unit}", lines::indent(self.text, node.span.start())),
        }
    }

    /// Adds a member behind the last one.
    pub(crate) fn insert(&self, node: &Node, entry: &str, look: Look<'_>) -> Edit {
        let close = node.span.end().saturating_sub(1);
        match node.members().last() {
            Some(last) => self.behind(
                last.whole.unwrap_or(last.node.span).range(),
                close,
                entry,
                look,
            ),
            None => self.first_in(node, close, entry, look),
        }
    }

    fn behind(
        &self,
        last: std::ops::Range<usize>,
        close: usize,
        entry: &str,
        look: Look<'_>,
    ) -> Edit {
        let text = self.text;
        let comma = self.comma(last.end, close);
        if !lines::begins_line(text, last.start) {
            return match comma {
                Some(comma) => Edit::new(comma + 1..comma + 1, format!(" {entry},")),
                None => Edit::new(last.end..last.end, format!("{}{entry}", look.comma)),
            };
        }
        let end = self.skip(comma.map_or(last.end, |comma| comma + 1), true);
        let kept = lines::cut(text, last.end..end);
        let line = lines::line_break(text);
        let indent = lines::indent(text, last.start);
        match comma {
            Some(_) => Edit::new(last.end..end, format!("{kept}{line}{indent}{entry},")),
            None => Edit::new(last.end..end, format!(",{kept}{line}{indent}{entry}")),
        }
    }

    fn first_in(&self, node: &Node, close: usize, entry: &str, look: Look<'_>) -> Edit {
        let unit = look.unit;
        let open = node.span.start() + 1;
        let inside = lines::cut(self.text, open..close);
        let line = lines::line_break(self.text);
        let indent = lines::indent(self.text, node.span.start());
        let end = open + inside.trim_end().len();
        if end > open {
            let close_indent = if lines::cut(self.text, end..close).contains('\n') {
                String::new()
            } else {
                format!("{line}{indent}")
            };
            Edit::new(
                end..end,
                format!("{line}{indent}{unit}{entry}{close_indent}"),
            )
        } else if look.many_lines {
            Edit::new(
                open..close,
                format!("{line}{indent}{unit}{entry}{line}{indent}"),
            )
        } else {
            let pad = if inside.is_empty() { look.pad } else { " " };
            Edit::new(open..close, format!("{pad}{entry}{pad}"))
        }
    }

    /// Takes the last member of the way out, and the comma that is too many then.
    pub(crate) fn remove(&self, way: &Way<'_>) -> Result<Edit, ConfigError> {
        let node = way.parent();
        let missing = || ConfigError::Missing {
            key: KeyPath::default(),
        };
        let member = way.members.last().copied().ok_or_else(missing)?;
        let members = node.members();
        let index = members
            .iter()
            .position(|m| std::ptr::eq(m, member))
            .ok_or_else(missing)?;
        let whole = |m: &Member| m.whole.unwrap_or(m.node.span);
        let own = whole(member).range();
        let close = node.span.end().saturating_sub(1);
        let next = members.get(index + 1).map_or(close, |m| whole(m).start());
        let comma = self.comma(own.end, next);
        let end = self.skip(comma.map_or(own.end, |comma| comma + 1), true);
        let ends_line = end == lines::line_end(self.text, end);
        let alone = lines::begins_line(self.text, own.start) && ends_line;
        let previous = index
            .checked_sub(1)
            .and_then(|i| members.get(i))
            .map(|m| whole(m).end());
        Ok(match (comma, previous) {
            (Some(_), _) if alone => Edit::new(
                lines::line_start(self.text, own.start)..lines::next_line(self.text, end),
                "",
            ),
            (Some(comma), _) => Edit::new(own.start..lines::skip_blanks(self.text, comma + 1), ""),
            (None, Some(previous)) => self.without_last(previous, own, end, ends_line),
            (None, None) => self.without_only(node, own, end, alone),
        })
    }

    /// Takes out the last member, which has no comma of its own: the comma before it goes too.
    fn without_last(
        &self,
        previous: usize,
        own: std::ops::Range<usize>,
        end: usize,
        ends_line: bool,
    ) -> Edit {
        let text = self.text;
        let Some(comma) = self.comma(previous, own.start) else {
            return Edit::new(own, "");
        };
        let kept = lines::cut(text, comma + 1..own.start).trim_end();
        let before = lines::cut(text, previous..comma);
        let end = if ends_line { end } else { own.end };
        let closed = if kept.is_empty() || ends_line {
            ""
        } else {
            lines::line_break(text)
        };
        Edit::new(previous..end, format!("{before}{kept}{closed}"))
    }

    fn without_only(
        &self,
        node: &Node,
        own: std::ops::Range<usize>,
        end: usize,
        alone: bool,
    ) -> Edit {
        let text = self.text;
        let inside = node.span.start() + 1..node.span.end().saturating_sub(1);
        let above = lines::cut(text, inside.start..own.start).trim();
        let below = lines::cut(text, end..inside.end).trim();
        if above.is_empty() && below.is_empty() {
            Edit::new(inside, "")
        } else if alone {
            Edit::new(
                lines::line_start(text, own.start)..lines::next_line(text, end),
                "",
            )
        } else {
            Edit::new(own, "")
        }
    }

    /// The comment behind a member, without its comma, if nothing else follows in the line.
    pub(crate) fn remark(&self, way: &Way<'_>) -> String {
        let Some(member) = way.members.last() else {
            return String::new();
        };
        let own = member.whole.unwrap_or(member.node.span);
        let close = way.parent().span.end().saturating_sub(1);
        let comma = self.comma(own.end(), close);
        let end = self.skip(comma.map_or(own.end(), |comma| comma + 1), true);
        if end != lines::line_end(self.text, end) {
            return String::new();
        }
        match comma {
            Some(comma) => {
                let before = lines::cut(self.text, own.end()..comma);
                format!("{before}{}", lines::cut(self.text, comma + 1..end))
            }
            None => lines::cut(self.text, own.end()..end).to_owned(),
        }
    }

    /// Puts the first member into empty brackets, as it stood, behind a comment that is in them.
    pub(crate) fn first_again(&self, node: &Node, slip: &Slip, pad: &str) -> Option<Edit> {
        let inside = node.span.start() + 1..node.span.end().saturating_sub(1);
        let (body, behind) = (&slip.body, &slip.behind);
        let line = lines::line_break(self.text);
        let close = lines::indent(self.text, node.span.start());
        let held = lines::cut(self.text, inside.clone()).trim_end();
        if !held.trim().is_empty() {
            let (at, indent) = (inside.start + held.len(), slip.indent.as_ref()?);
            let rest = lines::cut(self.text, at..inside.end);
            let end = if rest.contains('\n') {
                String::new()
            } else {
                format!("{line}{close}")
            };
            return Some(Edit::new(
                at..at,
                format!("{line}{indent}{body}{behind}{end}"),
            ));
        }
        Some(match &slip.indent {
            Some(indent) => Edit::new(inside, format!("{line}{indent}{body}{behind}{line}{close}")),
            None => Edit::new(inside, format!("{pad}{body}{pad}")),
        })
    }

    /// The comma between two positions, comments left aside.
    pub(crate) fn comma(&self, from: usize, to: usize) -> Option<usize> {
        let at = self.skip(from, false);
        (at < to && lines::byte(self.text, at) == Some(b',')).then_some(at)
    }

    /// Skips blanks and comments, beyond the line only if `in_line` is not set. A line's trailing blanks are left if nothing else was skipped.
    pub(crate) fn skip(&self, from: usize, in_line: bool) -> usize {
        let mut at = from;
        loop {
            let next = match lines::byte(self.text, at) {
                Some(b' ' | b'\t') => at + 1,
                Some(b'\n' | b'\r') if !in_line => at + 1,
                Some(_) | None => self.behind_comment(at, in_line),
            };
            if next == at {
                return at;
            }
            at = next;
        }
    }

    /// The end of the comment that begins here, or this position.
    fn behind_comment(&self, at: usize, in_line: bool) -> usize {
        let rest = lines::rest(self.text, at);
        match self.comments {
            Comments::Hash if rest.starts_with('#') => lines::line_end(self.text, at),
            Comments::Slashes if rest.starts_with("//") => lines::line_end(self.text, at),
            Comments::Slashes if rest.starts_with("/*") => {
                let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
                if in_line && lines::cut(rest, 0..end).contains('\n') {
                    at
                } else {
                    at + end
                }
            }
            Comments::None | Comments::Hash | Comments::Slashes => at,
        }
    }
}
