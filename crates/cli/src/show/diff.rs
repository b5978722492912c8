//! What changed: contents as a unified diff, everything else in words.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

use anstyle::Style as Colour;
use backout_engine::{DiffChange, DiffFile, DiffSide};
use backout_model::text::header_name;

use super::counted;
use super::time::{exactly, size};
use super::values::{Between, is_row, values};
use crate::accounts::owner_name;
use crate::paths::Here;
use crate::session::Session;
use crate::ui::{
    ACCENT, BAD, BOLD, Cell, DIM, GOOD, PLAIN, paint, printable, printable_lines, table,
};

/// The longest bar of `--stat`, in characters.
const BAR_MAX: usize = 40;

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Everything.
    Full,
    /// How many lines.
    Counts,
    /// Only names.
    Names,
}

/// Shows the differences. A pipe gets contents exactly as they are, so that `patch` can read them.
pub(crate) fn files(session: &mut Session, files: &[DiffFile], style: Style) {
    if files.is_empty() {
        session.ui.done("no difference\n");
        return;
    }
    let is_seen = session.ui.is_terminal();
    let text = match style {
        Style::Full => {
            let is_all = session.global.verbose;
            full(
                files,
                &session.here,
                is_seen,
                (Between::BeforeAndAfter, is_all),
            )
        }
        Style::Counts => counts(files, &session.here),
        Style::Names => names(files, &session.here),
    };
    session.ui.print(&text);
}

/// Shows everything of each: values that fit into a row as a table, in full if all is wanted.
pub(super) fn full(
    files: &[DiffFile],
    here: &Here,
    is_seen: bool,
    (between, is_all): (Between, bool),
) -> String {
    let (rows, others): (Vec<_>, Vec<_>) = files.iter().partition(|file| is_row(file));
    let others = others.into_iter().map(|file| one(file, here, is_seen));
    others.collect::<String>() + &here.shorten(&values(&rows, between, is_all))
}

fn one(file: &DiffFile, here: &Here, is_seen: bool) -> String {
    let mut text = head(file, here);
    for line in details(file) {
        // Writing to a string cannot fail.
        let _written = writeln!(text, "  {}", here.shorten(&line));
    }
    let body = if is_seen {
        printable_lines(&file.text)
    } else {
        file.text.clone()
    };
    let body = match file.key {
        Some(_) => body,
        None => relative(&body, file, here),
    };
    text.push_str(&coloured(&body));
    text
}

/// Names a file, and the key in it if only that is meant.
fn name_of(file: &DiffFile, here: &Here) -> String {
    let path = file.path.as_ref().map(|path| here.show(path.as_path()));
    let key = file.key.as_deref().map(printable);
    let names: Vec<_> = path.into_iter().chain(key).collect();
    names.join(":")
}

/// Says what happened to which name.
fn head(file: &DiffFile, here: &Here) -> String {
    let path = name_of(file, here);
    let is_directory = file.kind() == "directory";
    let path = if is_directory {
        format!("{path}/")
    } else {
        path
    };
    let line = match (file.change, &file.from) {
        (DiffChange::Moved, Some(from)) => {
            format!("moved {} -> {path}", here.show(from.as_path()))
        }
        (DiffChange::Created, _) => format!("created {path}"),
        (DiffChange::Removed, _) => format!("removed {path}"),
        (DiffChange::Changed | DiffChange::Moved, _) => format!("changed {path}"),
    };
    format!("{}\n", paint(BOLD, &line))
}

/// Everything that is not said by lines of content.
fn details(file: &DiffFile) -> Vec<String> {
    let mut details = match (&file.before, &file.after) {
        (Some(before), Some(after)) => differences(before, after, !file.text.is_empty()),
        (None, Some(only)) | (Some(only), None) => vec![described(only)],
        (None, None) => Vec::new(),
    };
    if file.change == DiffChange::Moved {
        details.clear();
    }
    if let Some(why) = &file.unshown {
        let bytes = |side: &Option<DiffSide>| side.as_ref().and_then(|side| side.size);
        details.push(match (bytes(&file.before), bytes(&file.after)) {
            (Some(before), Some(after)) => {
                let sizes = format!("{} -> {}", size(before), size(after));
                format!("content {sizes}, not shown: {why}")
            }
            _ => format!("content not shown: {why}"),
        });
    }
    details
}

fn described(side: &DiffSide) -> String {
    let mut parts = vec![side.kind.to_string()];
    if let Some(to) = &side.points_to {
        parts.push(format!("to {}", printable(to)));
    }
    if let Some(first) = &side.same_as {
        parts.push(format!("another name of {first}"));
    }
    parts.extend(side.mode.as_ref().map(|mode| format!("mode {mode}")));
    parts.extend(owner(side).map(|owner| format!("owner {owner}")));
    parts.extend(side.size.map(size));
    parts.join(", ")
}

fn owner(side: &DiffSide) -> Option<String> {
    Some(owner_name(side.uid?, side.gid?))
}

/// Says old and new of everything that differs. Where the content does, its time is no news.
fn differences(before: &DiffSide, after: &DiffSide, has_text: bool) -> Vec<String> {
    let mut said = Vec::new();
    let mut differ = |what: &str, old: Option<String>, new: Option<String>| {
        if let (Some(old), Some(new)) = (old, new)
            && old != new
        {
            said.push(format!("{what} {old} -> {new}"));
        }
    };
    let kind = |side: &DiffSide| Some(side.kind.to_string());
    differ("was", kind(before), kind(after));
    differ("mode", before.mode.clone(), after.mode.clone());
    differ("owner", owner(before), owner(after));
    let link = |side: &DiffSide| side.points_to.as_deref().map(printable);
    differ("link", link(before), link(after));
    let is_content = has_text || before.size != after.size;
    if !is_content {
        let time = |side: &DiffSide| side.modified.map(exactly);
        differ("time", time(before), time(after));
    }
    if let Some(first) = after.same_as.as_ref().filter(|_| before.same_as.is_none()) {
        said.push(format!("now another name of {first}"));
    }
    for name in &before.attributes {
        if !after.attributes.contains(name) {
            said.push(format!("attribute {} is gone", printable(name)));
        }
    }
    for name in &after.attributes {
        if !before.attributes.contains(name) {
            said.push(format!("attribute {} is new", printable(name)));
        }
    }
    if before == after && !has_text && !before.attributes.is_empty() {
        said.push("the value of an attribute changed".to_owned());
    }
    said
}

/// Names the file in the two lines above a diff as it is seen from here, so that `patch` finds it.
fn relative(diff: &str, file: &DiffFile, here: &Here) -> String {
    let path = file.path.as_ref();
    let Some(below) = path.and_then(|path| here.below(path.as_path())) else {
        return diff.to_owned();
    };
    let mut lines = diff.splitn(3, '\n');
    let mut text = String::with_capacity(diff.len());
    for (mark, side) in [("---", "a/"), ("+++", "b/")] {
        let Some(line) = lines.next() else {
            break;
        };
        if line.starts_with(mark) && !line.ends_with(" /dev/null") {
            let name = [side.as_bytes(), below.as_os_str().as_bytes()].concat();
            let _written = writeln!(text, "{mark} {}", header_name(&name));
        } else if !line.is_empty() {
            let _written = writeln!(text, "{line}");
        }
    }
    text + lines.next().unwrap_or_default()
}

fn names(files: &[DiffFile], here: &Here) -> String {
    let mut names: Vec<String> = files.iter().map(|file| name_of(file, here)).collect();
    names.dedup();
    names.into_iter().map(|name| name + "\n").collect()
}

/// Counts the lines of each.
fn counts(files: &[DiffFile], here: &Here) -> String {
    let most = files.iter().map(DiffFile::lines).max().unwrap_or_default();
    let rows = files.iter().map(|file| {
        let name = match (&file.from, file.change) {
            (Some(from), DiffChange::Moved) => {
                format!(" {} -> {}", here.show(from.as_path()), name_of(file, here))
            }
            _ => format!(" {}", name_of(file, here)),
        };
        vec![Cell::plain(name), count(file, most, here)]
    });
    let mut text = table(rows.collect(), None);
    let sum =
        |of: fn(&DiffFile) -> Option<usize>| files.iter().filter_map(of).sum::<usize>() as u64;
    let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
    let _written = writeln!(
        text,
        " {} changed, {} added, {} removed",
        counted(files.len() as u64, "name"),
        counted(added, "line"),
        counted(removed, "line")
    );
    text
}

fn count(file: &DiffFile, most: usize, here: &Here) -> Cell {
    if let (Some(added), Some(removed)) = (file.added, file.removed)
        && added + removed > 0
    {
        let scaled = |lines: usize| match most {
            0..=BAR_MAX => lines,
            most => (lines * BAR_MAX).div_ceil(most),
        };
        return Cell::plain(format!("| {} ", added + removed))
            .and(GOOD, "+".repeat(scaled(added)))
            .and(BAD, "-".repeat(scaled(removed)));
    }
    let said = match file.change {
        DiffChange::Moved => "moved".to_owned(),
        DiffChange::Created | DiffChange::Changed | DiffChange::Removed => {
            here.shorten(&details(file).join("; "))
        }
    };
    let said = match (file.change, said.is_empty()) {
        (DiffChange::Created, _) => format!("created: {said}"),
        (DiffChange::Removed, _) => format!("removed: {said}"),
        (DiffChange::Changed | DiffChange::Moved, false) => said,
        (DiffChange::Changed | DiffChange::Moved, true) => "touched".to_owned(),
    };
    Cell::plain("| ").and(DIM, said)
}

fn coloured(diff: &str) -> String {
    let mut is_header = true;
    let lines = diff.split_inclusive('\n').map(|line| {
        is_header = is_header && !line.starts_with("@@");
        let body = line.strip_suffix('\n').unwrap_or(line);
        let end = if body.len() < line.len() { "\n" } else { "" };
        paint(colour(body, is_header), body) + end
    });
    lines.collect()
}

fn colour(line: &str, is_header: bool) -> Colour {
    match line.bytes().next() {
        Some(b'+' | b'-') if is_header => BOLD,
        Some(b'@') => ACCENT,
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        _ => PLAIN,
    }
}
