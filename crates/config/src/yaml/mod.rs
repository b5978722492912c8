//! YAML, one document.
//!
//! A value is written in one line: texts plain where every reader takes them for a text, else in quotes; lists and tables in flow style. A value
//! that others use through an anchor, or that comes through an alias, is not touched.

mod build;
mod write;

use crate::dialect::{Dialect, Edit, Fresh, behind_line};
use crate::document::Document;
use crate::error::ConfigError;
use crate::flow::{Comments, Flow, Look};
use crate::key::{KeyPath, Segment};
use crate::lines;
use crate::slip::Slip;
use crate::tree::{Form, Kind, Member, Node, Span, Way};
use crate::value::Value;
use crate::weave;

pub(crate) use write::resolved;

#[derive(Debug)]
pub(crate) struct Yaml;

/// Skips blanks, line ends and comments.
fn skip_space(text: &str, from: usize) -> usize {
    let mut at = from;
    loop {
        match lines::byte(text, at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
            Some(b'#')
                if at == 0
                    || lines::byte(text, at - 1).is_some_and(|b| b.is_ascii_whitespace()) =>
            {
                at = lines::line_end(text, at);
            }
            Some(_) | None => return at,
        }
    }
}

/// Skips anchors and tags, and the blanks between them.
fn behind_properties(text: &str, from: usize) -> usize {
    let mut at = from;
    let mut end = from;
    while matches!(lines::byte(text, at), Some(b'&' | b'!')) {
        let token = lines::rest(text, at);
        end = at
            + token
                .find(|c: char| c.is_whitespace())
                .unwrap_or(token.len());
        at = skip_space(text, end);
    }
    end
}

impl Dialect for Yaml {
    fn parse(&self, text: &str) -> Result<Node, ConfigError> {
        build::parse(text)
    }

    fn scalar(&self, raw: &str, decoded: Option<&str>) -> Value {
        match decoded {
            Some(decoded) => Value::Text(decoded.to_owned()),
            None => write::resolved(raw),
        }
    }

    fn tail(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        value: &Fresh,
    ) -> Result<String, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let tail = way.members.last().and_then(|m| m.tail).unwrap_or_default();
        let old = node.span.of(text);
        let lead = lines::cut(text, tail.start()..node.span.start());
        let value = write::written(value, old, in_flow(way));
        let block = old.starts_with(['|', '>']) || node.form == Form::Block;
        if matches!(node.kind, Kind::Scalar(_)) && node.form == Form::Plain && !block {
            return Ok(format!("{lead}{value}"));
        }
        let remark = lead.lines().next().unwrap_or_default().trim();
        let space = if lead.is_empty() && node.form == Form::Plain {
            ""
        } else {
            " "
        };
        Ok(if remark.is_empty() {
            format!("{space}{value}")
        } else {
            format!(" {value} {remark}")
        })
    }

    fn insert(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        missing: &[Segment],
        value: &Fresh,
    ) -> Result<Edit, ConfigError> {
        let (text, node) = (document.text(), way.node());
        let unit = unit(document);
        match node.form {
            Form::Plain | Form::Section | Form::Implied => {
                let value = write::written(value, "", true);
                let entry = write::flow_chain(missing, value);
                Ok(flow(document).insert(node, &entry, LOOK))
            }
            Form::Absent if in_flow(way) => {
                let value = write::flow_value(missing, write::written(value, "", true));
                Ok(Edit::new(node.span.range(), format!(" {value}")))
            }
            Form::Absent => {
                let member = way.members.last();
                let start = member.map_or(0, |m| m.whole.unwrap_or_default().start());
                let indent = " ".repeat(column(text, start) + unit);
                let entry =
                    write::block_chain(missing, value, &indent, unit, lines::line_break(text));
                let at = lines::line_end(text, node.span.start());
                Ok(Edit::new(
                    at..at,
                    format!("{}{indent}{entry}", lines::line_break(text)),
                ))
            }
            Form::Block => {
                let last = node.members().last().and_then(|m| m.whole);
                let indent = " ".repeat(last.map_or(0, |whole| column(text, whole.start())));
                let entry =
                    write::block_chain(missing, value, &indent, unit, lines::line_break(text));
                let Some(last) = last else {
                    return Ok(crate::sections::at_end(text, &entry, false));
                };
                let at = lines::line_end(text, last.end());
                Ok(Edit::new(
                    at..at,
                    format!("{}{indent}{entry}", lines::line_break(text)),
                ))
            }
        }
    }

    // A comment behind a value of one line stays in the line of the name.
    fn exchange(&self, document: &Document<'_>, span: Span, tail: String) -> Edit {
        let text = document.text();
        let end = lines::line_end(text, span.end());
        let behind = lines::cut(text, span.end()..end);
        match tail.split_once('\n') {
            Some((first, rest)) if behind.trim_start().starts_with('#') => {
                let (first, line) = match first.strip_suffix('\r') {
                    Some(first) => (first, "\r\n"),
                    None => (first, "\n"),
                };
                Edit::new(span.start()..end, format!("{first}{behind}{line}{rest}"))
            }
            Some(_) | None => Edit::new(span.range(), tail),
        }
    }

    fn behind(&self, document: &Document<'_>, way: &Way<'_>) -> String {
        if way.parent().form == Form::Block {
            behind_line(document.text(), way).to_owned()
        } else {
            flow(document).remark(way)
        }
    }

    fn weave(
        &self,
        document: &Document<'_>,
        way: &Way<'_>,
        left: Option<usize>,
        slip: &Slip,
    ) -> Option<Edit> {
        let (text, node) = (document.text(), way.node());
        let is_empty = node.members().is_empty() && !matches!(node.form, Form::Block);
        let lies_open = way
            .nodes()
            .take(way.members.len())
            .all(|node| node.form == Form::Block);
        match node.form {
            Form::Block => weave::in_lines(text, node, left, slip),
            Form::Plain | Form::Absent if is_empty && slip.in_lines && lies_open => {
                let entry = format!("{}{}{}", slip.indent.as_ref()?, slip.body, slip.behind);
                let Some(member) = way.members.last() else {
                    return Some(Edit::new(node.span.range(), entry));
                };
                let tail = member.tail?;
                let end = lines::line_end(text, tail.end());
                let kept = lines::cut(text, tail.end()..end);
                let line = lines::line_break(text);
                Some(Edit::new(tail.start()..end, format!("{kept}{line}{entry}")))
            }
            Form::Plain if is_empty => flow(document).first_again(node, slip, ""),
            Form::Plain => weave::in_brackets(&flow(document), node, left, slip, ", "),
            Form::Absent | Form::Section | Form::Implied => None,
        }
    }

    fn remove(&self, document: &Document<'_>, way: &Way<'_>) -> Result<Edit, ConfigError> {
        let (text, parent) = (document.text(), way.parent());
        if parent.form != Form::Block {
            return flow(document).remove(way);
        }
        let members = parent.members();
        let whole = |member: &Member| member.whole.unwrap_or(member.node.span);
        let own = way
            .members
            .last()
            .map_or(Span::default(), |member| whole(member));
        if members.len() == 1 {
            // The comment behind it goes with it.
            let end = parent.span.end() + behind_line(text, way).len();
            let empty = if matches!(parent.kind, Kind::List(_)) {
                "[]"
            } else {
                "{}"
            };
            let above = way
                .members
                .len()
                .checked_sub(2)
                .and_then(|at| way.members.get(at));
            return Ok(match above.and_then(|member| member.tail) {
                Some(tail) => {
                    // Remarks between the name and its first member stay.
                    let lead = lines::cut(text, tail.start()..own.start()).trim_end();
                    let kept = if lead.contains('#') { lead } else { "" };
                    Edit::new(tail.start()..end, format!(" {empty}{kept}"))
                }
                None => Edit::new(parent.span.start()..end, empty),
            });
        }
        if lines::begins_line(text, own.start()) {
            let start = lines::line_start(text, own.start());
            return Ok(Edit::new(start..lines::next_line(text, own.end()), ""));
        }
        let next = members
            .iter()
            .map(whole)
            .find(|next| next.start() >= own.end());
        let end = next.map_or(own.end(), Span::start);
        Ok(Edit::new(own.start()..end, ""))
    }

    fn guard(
        &self,
        document: &Document<'_>,
        key: &KeyPath,
        way: &Way<'_>,
    ) -> Result<(), ConfigError> {
        let shared = |node: &Node, why| {
            Err(ConfigError::Shared {
                key: key.clone(),
                at: document.place(node.span.start()),
                why,
            })
        };
        if let Some(node) = way.nodes().find(|node| node.shared) {
            return shared(node, "others have this value through its anchor");
        }
        let there = way.members.len() == key.segments().len();
        if there && holds_shared(way.node()) {
            return shared(way.node(), "it holds an anchor that others use");
        }
        if !there && way.node().named("<<").next().is_some() {
            return shared(
                way.node(),
                "it may come through the merge key `<<` that stands there",
            );
        }
        Ok(())
    }
}

fn holds_shared(node: &Node) -> bool {
    node.shared
        || node
            .members()
            .iter()
            .any(|member| holds_shared(&member.node))
}

const LOOK: Look<'static> = Look {
    unit: "  ",
    comma: ", ",
    pad: "",
    many_lines: false,
};

fn flow<'t>(document: &Document<'t>) -> Flow<'t> {
    Flow {
        text: document.text(),
        comments: Comments::Hash,
    }
}

/// Whether the end of the way stands in brackets.
fn in_flow(way: &Way<'_>) -> bool {
    let above = way.members.len();
    way.nodes().take(above).any(|node| node.form == Form::Plain)
}

/// How far from the start of its line a position is, in characters.
fn column(text: &str, at: usize) -> usize {
    lines::cut(text, lines::line_start(text, at)..at)
        .chars()
        .count()
}

/// How deep the text indents one level.
fn unit(document: &Document<'_>) -> usize {
    let text = document.text();
    let mut depths = document.root().members().iter().filter_map(|member| {
        let inner = member.node.members().first()?.whole?;
        let is_map = matches!(member.node.kind, Kind::Map(_)) && member.node.form == Form::Block;
        let depth = column(text, inner.start()).checked_sub(column(text, member.whole?.start()))?;
        (is_map && depth > 0 && lines::begins_line(text, inner.start())).then_some(depth)
    });
    depths.next().unwrap_or(2)
}
