//! A terminal as an SVG: what was typed and what came, in the colours that came with it.

use std::fmt::Write as _;

const LINE_HEIGHT: usize = 19;
const LETTER_WIDTH: usize = 8;
const MARGIN: usize = 16;
const BAR: usize = 28;

/// The colours on a dark ground. The classes are the numbers that terminals know them by.
const STYLE: &str = "text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;fill:#c9d1d9;white-space:pre}\
.c1{font-weight:600}.c2{fill:#7d8590}.c31{fill:#ff7b72}.c32{fill:#56d364}.c33{fill:#e3b341}.c36{fill:#76e3ea}.p{fill:#56d364}.t{font-weight:600}";

/// Draws a terminal.
pub(super) fn svg(shown: &str) -> String {
    let lines: Vec<&str> = shown.trim_end().lines().collect();
    let widest = lines.iter().map(|line| plain(line).chars().count()).max();
    let width = widest.unwrap_or_default() * LETTER_WIDTH + 2 * MARGIN;
    let height = lines.len() * LINE_HEIGHT + BAR + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\">\n\
         <title>An agent's command removes what git never knew; backout brings it back and keeps the later work</title>\n\
         <style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let x = MARGIN + 4 + number * 18;
        // Writing to a string cannot fail.
        let _written = writeln!(
            svg,
            "<circle cx=\"{x}\" cy=\"14\" r=\"5\" fill=\"{colour}\"/>"
        );
    }
    for (number, line) in lines.iter().enumerate() {
        let y = BAR + (number + 1) * LINE_HEIGHT - 4;
        let _written = writeln!(svg, "<text x=\"{MARGIN}\" y=\"{y}\">{}</text>", spans(line));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Gives a line without its colours.
fn plain(line: &str) -> String {
    pieces(line).map(|(_, text)| text).collect()
}

/// Cuts a line at its escape sequences: each piece with the number of the sequence before it.
fn pieces(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split("\u{1b}[").enumerate().map(|(number, piece)| {
        if number == 0 {
            return ("0", piece);
        }
        piece.split_once('m').unwrap_or(("0", piece))
    })
}

fn spans(line: &str) -> String {
    if let Some(typed) = line.strip_prefix("$ ") {
        return format!(
            "<tspan class=\"p\">$ </tspan><tspan class=\"t\">{}</tspan>",
            escaped(typed)
        );
    }
    let mut spans = String::new();
    let mut classes: Vec<&str> = Vec::new();
    for (code, text) in pieces(line) {
        if code == "0" {
            classes.clear();
        } else {
            classes.push(code);
        }
        if text.is_empty() {
            continue;
        }
        let names: Vec<String> = classes.iter().map(|code| format!("c{code}")).collect();
        let _written = match names.as_slice() {
            [] => write!(spans, "{}", escaped(text)),
            names => write!(
                spans,
                "<tspan class=\"{}\">{}</tspan>",
                names.join(" "),
                escaped(text)
            ),
        };
    }
    spans
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_what_was_typed_stands_out() {
        let svg = svg("$ backout undo <x>\nundid \u{1b}[36m12\u{1b}[0m  \u{1b}[1mrun\u{1b}[0m\n");
        assert!(svg.contains("<tspan class=\"t\">backout undo &lt;x&gt;</tspan>"));
        assert!(
            svg.contains("undid <tspan class=\"c36\">12</tspan>  <tspan class=\"c1\">run</tspan>")
        );
        assert!(!svg.contains('\u{1b}'));
        assert_eq!(plain("a\u{1b}[31mb\u{1b}[0mc"), "abc");
    }
}
