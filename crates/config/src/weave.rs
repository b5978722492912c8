//! Puts a member back as it stood, among members that may not be the ones it stood among.

use crate::dialect::Edit;
use crate::flow::Flow;
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Node, Span};

/// Puts a member that has lines of its own behind another one, or before all.
pub(crate) fn in_lines(
    text: &str,
    parent: &Node,
    left: Option<usize>,
    slip: &Slip,
) -> Option<Edit> {
    let indent = slip.indent.as_ref()?;
    let whole = |index: usize| parent.members().get(index)?.whole;
    if let Some(left) = left {
        let end = lines::line_end(text, whole(left)?.end());
        let line = lines::line_break(text);
        let entry = format!("{line}{indent}{}{}", slip.body, slip.behind);
        return Some(Edit::new(end..end, entry));
    }
    let first = whole(0)?;
    if !lines::begins_line(text, first.start()) {
        return None;
    }
    at(text, slip, lines::line_start(text, first.start()))
}

/// Puts a member where a line begins, or at the end of a text.
pub(crate) fn at(text: &str, slip: &Slip, at: usize) -> Option<Edit> {
    let entry = format!("{}{}{}", slip.indent.as_ref()?, slip.body, slip.behind);
    let line = lines::line_break(text);
    let is_open = at > lines::text_start(text) && !lines::cut(text, 0..at).ends_with('\n');
    Some(if is_open {
        Edit::new(at..at, format!("{line}{entry}"))
    } else {
        Edit::new(at..at, format!("{entry}{line}"))
    })
}

/// Puts a member between brackets, behind another one or before all. Nothing if there is none: then it is the first.
pub(crate) fn in_brackets(
    flow: &Flow<'_>,
    parent: &Node,
    left: Option<usize>,
    slip: &Slip,
    comma: &str,
) -> Option<Edit> {
    let text = flow.text;
    let members = parent.members();
    let span = |index: usize| -> Option<Span> {
        members.get(index).map(|m| m.whole.unwrap_or(m.node.span))
    };
    let close = parent.span.end().saturating_sub(1);
    let line_break = lines::line_break(text);
    let (body, behind) = (&slip.body, &slip.behind);
    let Some(left) = left else {
        let first = span(0)?;
        return Some(match &slip.indent {
            Some(indent) if lines::begins_line(text, first.start()) => {
                let at = lines::line_start(text, first.start());
                Edit::new(at..at, format!("{indent}{body},{behind}{line_break}"))
            }
            Some(_) | None if !behind.is_empty() => {
                let entry = format!("{body},{behind}{line_break}");
                Edit::new(first.start()..first.start(), entry)
            }
            Some(_) | None => Edit::new(first.start()..first.start(), format!("{body}{comma}")),
        });
    };
    let last = span(left)?;
    let next = span(left + 1).map_or(close, Span::start);
    let found = flow.comma(last.end(), next);
    let own_line = slip.indent.as_ref();
    let Some(indent) = own_line.filter(|_| lines::begins_line(text, last.start())) else {
        return Some(match found {
            // A comment needs the rest of its line.
            Some(at) if !behind.is_empty() => {
                Edit::new(at + 1..at + 1, format!(" {body},{behind}{line_break}"))
            }
            None if !behind.is_empty() => Edit::new(
                last.end()..last.end(),
                format!("{comma}{body}{behind}{line_break}"),
            ),
            Some(at) if left + 1 < members.len() => Edit::new(
                at + 1..at + 1,
                format!("{}{body},", comma.trim_start_matches(',')),
            ),
            Some(at) => Edit::new(at + 1..at + 1, format!(" {body},")),
            None => Edit::new(last.end()..last.end(), format!("{comma}{body}")),
        });
    };
    let end = flow.skip(found.map_or(last.end(), |at| at + 1), true);
    let kept = lines::cut(text, last.end()..end);
    Some(match found {
        Some(_) => Edit::new(
            last.end()..end,
            format!("{kept}{line_break}{indent}{body},{behind}"),
        ),
        None => Edit::new(
            last.end()..end,
            format!(",{kept}{line_break}{indent}{body}{behind}"),
        ),
    })
}
