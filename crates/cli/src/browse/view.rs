//! What the screen shows, line by line. It is pure: the same list and size give the same lines.

use backout_model::Timestamp;
use unicode_width::UnicodeWidthChar as _;

use super::list::{Items, Kind, List};
use crate::paths::Here;
use crate::show::{log, prompts};
use crate::ui::{ACCENT, BOLD, DIM, paint, printable};

/// What the keys do.
pub(super) const HELP: &str = "\
j k, arrows         one line down, up
space b, page keys  one page
g G, home end       first, last
enter               what the operation changed; of a prompt or a task, what belongs to it
u                   what an undo would do; then y does it
r                   what a redo would do; then y does it
/ n                 look for a text further down; again
t                   operations, prompts, tasks
R                   read again
q, esc, Ctrl-C      leave
";

/// The marks before a line.
const ON: &str = "> ";
const OFF: &str = "  ";

/// A text that covers the list.
#[derive(Debug)]
pub(super) struct Page {
    title: String,
    lines: Vec<String>,
    top: usize,
}

impl Page {
    pub(super) fn new(title: &str, text: &str) -> Self {
        Self {
            title: printable(title),
            lines: text.lines().map(str::to_owned).collect(),
            top: 0,
        }
    }

    pub(super) const fn up(&mut self, lines: usize) {
        self.top = self.top.saturating_sub(lines);
    }

    pub(super) fn down(&mut self, lines: usize, room: usize) {
        let last = self.lines.len().saturating_sub(room);
        self.top = self.top.saturating_add(lines).min(last);
    }
}

/// All that the screen depends on.
#[derive(Debug)]
pub(super) struct Screen<'s> {
    pub(super) list: &'s List,
    pub(super) page: Option<&'s Page>,
    pub(super) typed: Option<&'s str>,
    pub(super) message: &'s str,
    pub(super) is_asked: bool,
    pub(super) here: &'s Here,
    pub(super) now: Timestamp,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Screen<'_> {
    /// Gives the lines, as many as there is room for.
    pub(super) fn lines(&self) -> Vec<String> {
        let room = self.height.saturating_sub(2).max(1);
        let mut lines = vec![self.head()];
        let middle = match self.page {
            Some(page) => page
                .lines
                .iter()
                .skip(page.top)
                .take(room)
                .cloned()
                .collect(),
            None => self.listed(room),
        };
        lines.extend(middle);
        lines.resize(room + 1, String::new());
        lines.push(self.foot());
        lines.truncate(self.height);
        lines.iter().map(|line| clip(line, self.width)).collect()
    }

    fn head(&self) -> String {
        if let Some(page) = self.page {
            return paint(BOLD, &page.title);
        }
        let what = match self.list.kind() {
            Kind::Operations => "operations".to_owned(),
            Kind::Prompts => "prompts".to_owned(),
            Kind::Tasks => "tasks".to_owned(),
            Kind::OfPrompt(prompt) => format!("operations of prompt {prompt}"),
            Kind::OfTask(task) => format!("operations of task {task}"),
        };
        let count = self.list.items.len();
        let at = if count == 0 { 0 } else { self.list.cursor + 1 };
        let more = if self.list.is_all { "" } else { " or more" };
        paint(BOLD, &format!("{what}: {at} of {count}{more}"))
    }

    fn foot(&self) -> String {
        if let Some(typed) = self.typed {
            return format!("/{}", printable(typed));
        }
        if !self.message.is_empty() {
            return printable(self.message);
        }
        let keys = match (self.page, self.is_asked) {
            (Some(_), true) => return paint(ACCENT, "do it? y / n"),
            (Some(_), false) => "q back  j k scroll  u undo  r redo",
            (None, _) => "enter diff  u undo  r redo  / find  t tasks, prompts  ? keys  q leave",
        };
        paint(DIM, keys)
    }

    fn listed(&self, room: usize) -> Vec<String> {
        let top = self.list.top;
        let width = Some(self.width.saturating_sub(ON.len()));
        let text = match &self.list.items {
            Items::Operations(all) => {
                let seen = all.get(top..).unwrap_or_default();
                let seen = seen.get(..room.min(seen.len())).unwrap_or_default();
                log::lines(seen, self.now, self.here, width, false)
            }
            Items::Prompts(all) => {
                let seen = all.get(top..).unwrap_or_default();
                let seen = seen.get(..room.min(seen.len())).unwrap_or_default();
                prompts::lines(seen, self.now, width)
            }
            Items::Tasks(all) => {
                let seen = all.iter().skip(top).take(room);
                let line = |it: &backout_model::Task| {
                    let agent = it
                        .agent
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default();
                    let status = format!("{:?}", it.status).to_lowercase();
                    format!("{}  {status}  {agent}\n", paint(ACCENT, it.id.as_str()))
                };
                seen.map(line).collect()
            }
        };
        let marked = text.lines().enumerate().map(|(at, line)| {
            let mark = if top + at == self.list.cursor {
                ON
            } else {
                OFF
            };
            format!("{mark}{line}")
        });
        let marked: Vec<String> = marked.collect();
        if marked.is_empty() {
            return vec![paint(DIM, "nothing yet")];
        }
        marked
    }
}

/// Cuts a line down to a width. What colours it takes no room, and is ended with it.
fn clip(line: &str, width: usize) -> String {
    let mut kept = String::new();
    let mut used = 0;
    let mut letters = line.chars();
    let mut is_coloured = false;
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            kept.push(letter);
            is_coloured = true;
            for part in letters.by_ref() {
                kept.push(part);
                if part.is_ascii_alphabetic() {
                    break;
                }
            }
            continue;
        }
        // A tab would jump over what is shown.
        let letter = if letter == '\t' { ' ' } else { letter };
        let wide = letter.width().unwrap_or(0);
        if used + wide > width {
            break;
        }
        used += wide;
        kept.push(letter);
    }
    if is_coloured {
        kept.push_str("\x1b[0m");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_the_screen() {
        assert_eq!(clip("abcdef", 3), "abc");
        assert_eq!(
            clip("\x1b[31mabc\x1b[0mdef", 4),
            "\x1b[31mabc\x1b[0md\x1b[0m"
        );
        assert_eq!(clip("日本語", 5), "日本");
        assert_eq!(clip("a\tb", 10), "a b");
        assert_eq!(clip("abc", 0), "");
    }
}
