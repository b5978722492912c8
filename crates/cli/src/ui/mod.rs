//! The one way out: replies to stdout, talk and errors to stderr.
//!
//! - With `--json` a reply is one JSON object on stdout and an error one JSON object on stderr; there is no talk.
//! - `--quiet` leaves out success messages and talk, never what was asked for and never an error.
//! - A reader that has gone away (`backout log | head`) is no error: what is left to say is dropped.
//! - Everything is readable without colour; colour follows `--color` and the usual environment variables.

mod pager;
mod progress;
mod style;
mod text;

use std::io::{self, IsTerminal as _, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anstream::{AutoStream, ColorChoice};
use backout_engine::{ActLeft, Recovered, Report};
use serde::Serialize;

use crate::args::{Color, GlobalArgs};
use crate::paths::Here;

pub(crate) use progress::Bar;
pub(crate) use style::{ACCENT, BAD, BOLD, DIM, GOOD, PLAIN, WARN, paint};
pub(crate) use text::{Cell, printable, printable_lines, table};

/// Where a command's words go.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
pub(crate) struct Ui {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
    is_json: bool,
    is_quiet: bool,
    is_terminal: bool,
    is_closed: Arc<AtomicBool>,
    lost: Option<io::Error>,
    /// Whether long replies may go through a pager.
    may_page: bool,
    /// What is kept back to be paged.
    paged: Option<String>,
    /// What is said while somebody else has the screen.
    captured: Option<String>,
    /// What was recovered on the way and not told to a program yet.
    recovered: Vec<Recovered>,
    /// What was found to be left half-way and not told to a program yet.
    acts_left: Vec<ActLeft>,
    /// What was said of a wait and not told to a program yet.
    waited: Arc<Mutex<Vec<String>>>,
}

impl Ui {
    /// Sets the streams up.
    pub(crate) fn new(global: &GlobalArgs) -> Self {
        let choice = match global.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        let is_terminal = io::stdout().is_terminal();
        Self {
            out: AutoStream::new(io::stdout(), choice),
            err: AutoStream::new(io::stderr(), choice),
            is_json: global.json,
            is_quiet: global.quiet,
            is_terminal,
            is_closed: Arc::new(AtomicBool::new(false)),
            lost: None,
            may_page: is_terminal && !global.json && !global.no_pager,
            paged: None,
            captured: None,
            recovered: Vec::new(),
            acts_left: Vec::new(),
            waited: Arc::default(),
        }
    }

    /// Tells whether replies are for programs.
    pub(crate) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// Tells whether a person looks at stdout.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Gives the width of the terminal; a pipe has none.
    pub(crate) fn width(&self) -> Option<usize> {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|width| self.is_terminal && *width > 0)
    }

    /// Gives a bar for long work, which is drawn if somebody could see it.
    pub(crate) fn progress(&self) -> Arc<Bar> {
        // Who wants no talk still wonders why nothing happens.
        let is_told = !self.is_json;
        let is_seen = io::stderr().is_terminal() && is_told && !self.is_quiet;
        Arc::new(Bar::new(is_seen, is_told, Arc::clone(&self.waited)))
    }

    /// Lets what is printed from here on go through a pager, if it does not fit on the screen.
    pub(crate) fn page(&mut self) {
        if self.may_page && self.paged.is_none() {
            self.paged = Some(String::new());
        }
    }

    /// Keeps all that is said from here on, for whoever has the screen.
    pub(crate) fn capture(&mut self) {
        self.may_page = false;
        self.captured = Some(String::new());
    }

    /// Gives what was said since it was last asked for.
    pub(crate) fn take_captured(&mut self) -> String {
        self.captured
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    pub(crate) fn end_capture(&mut self) {
        self.captured = None;
    }

    /// Shows what was kept back.
    fn show_page(&mut self) {
        let Some(text) = self.paged.take() else {
            return;
        };
        let rows = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_row);
        let is_long = text.lines().count() >= usize::from(rows).max(1);
        let shown = match self.out.current_choice() {
            ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
            _ => text.clone(),
        };
        let is_shown = is_long && pager::command().is_some_and(|pager| pager::show(&pager, &shown));
        if !is_shown {
            self.print(&text);
        }
    }

    /// Prints what was asked for.
    pub(crate) fn print(&mut self, text: &str) {
        if let Some(captured) = &mut self.captured {
            captured.push_str(text);
            return;
        }
        if let Some(paged) = &mut self.paged {
            paged.push_str(text);
            return;
        }
        if self.is_closed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.out.write_all(text.as_bytes()) {
            self.fails(error);
        }
    }

    /// Prints a reply for programs, with what was recovered on the way and what it waited for.
    pub(crate) fn print_json(&mut self, value: &impl Serialize) {
        match self.with_recovered(value) {
            Ok(json) => self.print(&format!("{json}\n")),
            Err(error) => self.fails(error.into()),
        }
    }

    /// Notes what was recovered on the way, for the next reply or error for programs.
    pub(crate) fn note_recovered(&mut self, recovered: Vec<Recovered>, left: Vec<ActLeft>) {
        self.recovered.extend(recovered);
        self.acts_left.extend(left);
    }

    fn with_recovered(&mut self, value: &impl Serialize) -> serde_json::Result<String> {
        let recovered = std::mem::take(&mut self.recovered);
        let left = std::mem::take(&mut self.acts_left);
        let waited = {
            let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *waited)
        };
        if recovered.is_empty() && left.is_empty() && waited.is_empty() {
            return serde_json::to_string(value);
        }
        let mut value = serde_json::to_value(value)?;
        if let Some(object) = value.as_object_mut() {
            if !recovered.is_empty() {
                object.insert("recovered".to_owned(), serde_json::to_value(recovered)?);
            }
            if !left.is_empty() {
                object.insert("acts_left".to_owned(), serde_json::to_value(left)?);
            }
            if !waited.is_empty() {
                object.insert("waited".to_owned(), serde_json::to_value(waited)?);
            }
        }
        serde_json::to_string(&value)
    }

    /// Says that something was done.
    pub(crate) fn done(&mut self, text: &str) {
        if !self.is_quiet {
            self.print(text);
        }
    }

    /// Prints one of several lines of data, for programs.
    pub(crate) fn print_line(&mut self, line: &str) {
        if let Err(error) = writeln!(self.out, "{line}") {
            self.fails(error);
        }
    }

    /// Tells people something on stderr, as it is: stdout belongs to somebody else.
    pub(crate) fn tell(&mut self, text: &str) {
        if !self.is_json && !self.is_quiet {
            self.say(text);
        }
    }

    /// Tells whether only what was asked for is said.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Says something worth knowing beside the reply.
    pub(crate) fn note(&mut self, text: &str) {
        self.talk(&paint(WARN, "note:"), text);
    }

    /// Says what was done, beside the output of somebody else.
    pub(crate) fn aside(&mut self, text: &str) {
        self.talk(&paint(DIM, "backout:"), text);
    }

    /// Gives a reply for programs beside the output of somebody else.
    pub(crate) fn aside_json(&mut self, value: &impl Serialize) {
        if let Ok(json) = self.with_recovered(value) {
            self.say(&format!("{json}\n"));
        }
    }

    /// Lets out everything that was said.
    pub(crate) fn flush(&mut self) {
        if let Err(error) = self.out.flush() {
            self.fails(error);
        }
    }

    /// Says what to type next.
    pub(crate) fn hint(&mut self, text: &str) {
        self.talk(&paint(ACCENT, "hint:"), text);
    }

    /// Shows what went wrong: what, why, what next.
    pub(crate) fn report(&mut self, report: &Report, here: &Here) {
        let text = if self.is_json {
            self.with_recovered(report)
                .map(|json| format!("{json}\n"))
                .unwrap_or_default()
        } else {
            report_text(report, here)
        };
        self.say(&text);
    }

    /// Gives stdout itself, for what is streamed.
    pub(crate) fn stream(&self) -> Box<dyn Write + Send> {
        Box::new(Outlet {
            out: io::stdout(),
            is_closed: Arc::clone(&self.is_closed),
        })
    }

    /// Tells whether nobody listens any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Gives the reason why stdout could not be written, if there was one.
    pub(crate) fn finish(&mut self) -> Option<io::Error> {
        self.show_page();
        if let Err(error) = self.out.flush() {
            self.fails(error);
        }
        self.lost.take()
    }

    fn talk(&mut self, label: &str, text: &str) {
        if !self.is_json && !self.is_quiet {
            self.say(&format!("{label} {text}\n"));
        }
    }

    fn say(&mut self, text: &str) {
        if let Some(captured) = &mut self.captured {
            captured.push_str(text);
            return;
        }
        // The reply comes first, also where both streams end up in one file.
        self.show_page();
        if let Err(error) = self.out.flush() {
            self.fails(error);
        }
        // If stderr is gone there is nobody left to tell.
        let _said = self.err.write_all(text.as_bytes());
    }

    fn fails(&mut self, error: io::Error) {
        self.is_closed.store(true, Ordering::Relaxed);
        if error.kind() != io::ErrorKind::BrokenPipe && self.lost.is_none() {
            self.lost = Some(error);
        }
    }
}

/// Prints what the parser of the command line has to say: help, version, or how it was asked wrongly.
pub(crate) fn show_usage(error: &clap::Error, is_json: bool) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(2);
    // If nobody listens there is nobody to tell.
    let _printed = if is_json && error.use_stderr() {
        let json = serde_json::to_string(&usage_report(error)).unwrap_or_default();
        writeln!(io::stderr(), "{json}")
    } else {
        error.print()
    };
    ExitCode::from(code)
}

/// Prints a report of what was refused before anything began.
pub(crate) fn show_report(report: &Report, is_json: bool) -> ExitCode {
    let mut err = AutoStream::new(io::stderr(), ColorChoice::Auto);
    // If nobody listens there is nobody to tell.
    let _printed = if is_json {
        let json = serde_json::to_string(report).unwrap_or_default();
        writeln!(err, "{json}")
    } else {
        err.write_all(report_text(report, &Here::find()).as_bytes())
    };
    ExitCode::from(report.exit_code())
}

/// Says the parser's error in our own shape.
fn usage_report(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let mut report = Report::usage(first.strip_prefix("error: ").unwrap_or(first));
    for line in lines {
        report = match line
            .strip_prefix("tip: ")
            .or_else(|| line.strip_prefix("For more information, "))
        {
            Some(advice) => report.next(advice),
            None => report.because(line),
        };
    }
    report
}

fn report_text(report: &Report, here: &Here) -> String {
    let mut text = format!("{} {}\n", paint(BAD, "error:"), line(&report.what, here));
    for why in &report.why {
        text.extend(["  ", &paint(DIM, "why:"), " ", &line(why, here), "\n"]);
    }
    for next in &report.next {
        text.extend([
            "  ",
            &paint(ACCENT, "next:"),
            " ",
            &line(&next.text, here),
            "\n",
        ]);
    }
    text
}

fn line(text: &str, here: &Here) -> String {
    // What a cause says on several lines stays together below its label. A name is one, whatever it holds.
    let lines: Vec<String> = names_in_one_line(text.trim_end())
        .lines()
        .map(|line| here.shorten(&printable(line)))
        .collect();
    lines.join("\n       ")
}

/// Escapes the ends of lines between two backquotes, where names stand.
fn names_in_one_line(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, part)| {
        if number % 2 == 1 {
            part.replace('\n', "\\n")
        } else {
            part.to_owned()
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Stdout for streams: remembers when the reader has gone.
struct Outlet {
    out: io::Stdout,
    is_closed: Arc<AtomicBool>,
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.remember(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.remember(flushed)
    }
}

impl Outlet {
    fn remember<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if result
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        {
            self.is_closed.store(true, Ordering::Relaxed);
        }
        result
    }
}
