//! The race as a picture: a panel per measure, a bar per contender, on a logarithmic scale. Readable on light and dark.

use std::fmt::Write as _;

use super::race::{Standing, Work};
use super::table::{OURS, milliseconds, spaced, title};

const PANEL_WIDTH: f64 = 470.0;
const LABEL_WIDTH: f64 = 92.0;
const BAR_WIDTH: f64 = 300.0;
const ROW: f64 = 19.0;
const HEAD: f64 = 44.0;
const GAP: f64 = 18.0;
const COLUMNS: usize = 2;

/// Grey that can be read on white and on black; ours stands out.
const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#7d8590}.t{font-weight:600;font-size:13px}.us{fill:#2da44e;\
font-weight:600}.bar{fill:#8c959f;opacity:.55}.base{fill:#8c959f;opacity:.28}.our{fill:#2da44e}.no{font-style:italic}\
.grid{stroke:#7d8590;opacity:.22}";

/// One bar: who, how much, how it is written.
struct Bar {
    name: String,
    value: Result<f64, String>,
    label: String,
}

/// Draws the largest tree.
pub(super) fn draw(standings: &[Standing]) -> String {
    let keys = standings.iter().flat_map(|standing| standing.times.keys());
    let files = keys.map(|(files, _)| *files).max().unwrap_or_default();
    let mut panels = Vec::new();
    for work in [
        Work::WriteOne,
        Work::UndoOne,
        Work::WriteForty,
        Work::UndoForty,
        Work::UndoMany,
        Work::UndoRemoval,
    ] {
        let bars = time_bars(standings, (files, work));
        if !bars.is_empty() {
            panels.push((format!("{}, ms", describe(work)), bars));
        }
    }
    let of = format!(
        "Backout and what else could undo, in a tree of {} files",
        spaced(files)
    );
    assemble(&of, &panels)
}

fn describe(work: Work) -> String {
    match work {
        Work::UndoOne => "undo the write of 1 file".to_owned(),
        Work::UndoForty => "undo the write of 40 files".to_owned(),
        Work::UndoMany => "undo the write of 10 000 files".to_owned(),
        Work::UndoRemoval => "undo the removal of 10 000 files".to_owned(),
        Work::WriteOne | Work::WriteForty => format!("protect and {}", title(work)),
        Work::WriteMany | Work::RemoveMany => title(work).to_owned(),
    }
}

fn time_bars(standings: &[Standing], key: (usize, Work)) -> Vec<Bar> {
    let mut bars = Vec::new();
    for standing in standings {
        let Some(time) = standing.times.get(&key) else {
            continue;
        };
        if time.is_err() && standing.name.starts_with("bare") {
            continue;
        }
        bars.push(Bar {
            name: standing.name.replace(['*', '`'], ""),
            value: time
                .as_ref()
                .map(|time| time.as_secs_f64() * 1000.0)
                .map_err(Clone::clone),
            label: time.as_ref().map_or_else(
                |_| "did not come back".to_owned(),
                |time| milliseconds(*time),
            ),
        });
    }
    bars.sort_by(|one, other| match (&one.value, &other.value) {
        (Ok(one), Ok(other)) => one.total_cmp(other),
        (one, other) => one.is_err().cmp(&other.is_err()),
    });
    bars
}

#[expect(clippy::cast_precision_loss, reason = "there are few rows")]
fn assemble(heading: &str, panels: &[(String, Vec<Bar>)]) -> String {
    let rows = panels
        .iter()
        .map(|(_, bars)| bars.len())
        .max()
        .unwrap_or_default();
    let panel_height = HEAD + ROW * rows as f64 + GAP;
    let width = PANEL_WIDTH * COLUMNS as f64;
    let height = 34.0 + panel_height * panels.len().div_ceil(COLUMNS) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{heading}</title>\n\
         <style>{STYLE}</style>\n<text class=\"t\" x=\"8\" y=\"20\">{heading} (logarithmic scale, shorter is better)</text>\n"
    );
    for (number, (title, bars)) in panels.iter().enumerate() {
        let x = (number % COLUMNS) as f64 * PANEL_WIDTH;
        let y = 34.0 + (number / COLUMNS) as f64 * panel_height;
        add(&mut svg, &format!("<g transform=\"translate({x} {y})\">"));
        panel(&mut svg, title, bars);
        add(&mut svg, "</g>");
    }
    svg + "</svg>\n"
}

#[expect(clippy::cast_precision_loss, reason = "there are few rows")]
fn panel(svg: &mut String, title: &str, bars: &[Bar]) {
    let values = || bars.iter().filter_map(|bar| bar.value.as_ref().ok());
    let low = values()
        .copied()
        .fold(f64::INFINITY, f64::min)
        .log10()
        .floor();
    let high = values()
        .copied()
        .fold(1.0, f64::max)
        .log10()
        .ceil()
        .max(low + 1.0);
    let scale = |value: f64| (value.log10() - low) / (high - low) * BAR_WIDTH;
    add(
        svg,
        &format!("<text class=\"t\" x=\"8\" y=\"20\">{title}</text>"),
    );
    let bottom = HEAD + ROW * bars.len() as f64;
    let mut power = low;
    while power <= high {
        let value = 10_f64.powf(power);
        let x = LABEL_WIDTH + scale(value);
        power += 1.0;
        add(
            svg,
            &format!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{HEAD}\" y2=\"{bottom}\"/>"
            ),
        );
        add(
            svg,
            &format!(
                "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
                HEAD - 6.0
            ),
        );
    }
    for (number, bar) in bars.iter().enumerate() {
        let y = HEAD + ROW * number as f64;
        row(
            svg,
            bar,
            y,
            bar.value.as_ref().ok().map(|value| scale(*value)),
        );
    }
}

fn row(svg: &mut String, bar: &Bar, y: f64, width: Option<f64>) {
    let is_ours = bar.name == OURS.replace('*', "");
    let (text_class, bar_class) = match (is_ours, bar.name.starts_with("bare")) {
        (true, _) => (" class=\"us\"", "our"),
        (false, true) => ("", "base"),
        (false, false) => ("", "bar"),
    };
    let middle = y + ROW * 0.68;
    let name_x = LABEL_WIDTH - 8.0;
    add(
        svg,
        &format!(
            "<text{text_class} x=\"{name_x}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            bar.name
        ),
    );
    let Some(width) = width else {
        let x = LABEL_WIDTH + 4.0;
        add(
            svg,
            &format!(
                "<text class=\"no\" x=\"{x}\" y=\"{middle:.1}\">{}</text>",
                bar.label
            ),
        );
        return;
    };
    let (height, width) = (ROW - 5.0, width.max(2.0));
    add(
        svg,
        &format!(
            "<rect class=\"{bar_class}\" x=\"{LABEL_WIDTH}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height}\" rx=\"2\"/>",
            y + 2.0
        ),
    );
    let x = LABEL_WIDTH + width + 5.0;
    add(
        svg,
        &format!(
            "<text{text_class} x=\"{x:.1}\" y=\"{middle:.1}\">{}</text>",
            bar.label
        ),
    );
}

fn add(svg: &mut String, element: &str) {
    // Writing to a string cannot fail.
    let _written = writeln!(svg, "{element}");
}
