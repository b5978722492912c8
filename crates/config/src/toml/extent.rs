//! Finds for each table of TOML whether its headers and lines stand together, so that they can be removed as one.

use crate::tree::{Form, Kind, Node, Span};

/// What a table is made of: from where to where, and how many headers and lines.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    start: usize,
    end: usize,
    count: usize,
}

/// Sets `whole` of every table whose headers and lines stand together. `starts` has where all headers and lines begin.
pub(super) fn mark_whole(node: &mut Node, starts: &[usize]) -> Option<Extent> {
    let own = node.form == Form::Section && matches!(node.kind, Kind::Map(_));
    let mut extent = own.then(|| Extent {
        start: node.span.start(),
        end: node.span.end(),
        count: 1,
    });
    let (Kind::Map(members) | Kind::List(members)) = &mut node.kind else {
        return extent;
    };
    for member in members {
        let part = match (member.node.form, member.whole) {
            (Form::Section | Form::Implied, _) => {
                let part = mark_whole(&mut member.node, starts);
                member.whole = part
                    .filter(|part| stands_together(*part, starts))
                    .map(|p| Span::new(p.start, p.end));
                part
            }
            (Form::Plain | Form::Block | Form::Absent, Some(whole)) => Some(Extent {
                start: whole.start(),
                end: whole.end(),
                count: 1,
            }),
            (Form::Plain | Form::Block | Form::Absent, None) => None,
        };
        extent = match (extent, part) {
            (Some(a), Some(b)) => Some(Extent {
                start: a.start.min(b.start),
                end: a.end.max(b.end),
                count: a.count + b.count,
            }),
            (a, b) => a.or(b),
        };
    }
    extent
}

fn stands_together(extent: Extent, starts: &[usize]) -> bool {
    let before = starts.partition_point(|start| *start < extent.start);
    let until = starts.partition_point(|start| *start <= extent.end);
    until - before == extent.count
}
