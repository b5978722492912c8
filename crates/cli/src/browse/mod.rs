//! `backout log -i`: one screen to walk what was done, read what it changed, and take it back with a key.
//!
//! - `list` has what is walked through, and gets more of it as the cursor goes down; `view` says what the screen shows, and is pure;
//!   `terminal` is the screen, the keys and the signals.
//! - Nothing is undone before its plan was shown and answered with `y`. What is shown afterwards is what the engine found.
//! - The terminal is put back however this ends, and while it is stopped.

mod act;
mod keys;
mod list;
mod terminal;
mod view;

use std::time::{Duration, Instant};

use backout_engine::{Call, Report};

use self::act::Act;
use self::keys::Key;
use self::list::{Kind, List};
use self::terminal::{Heard, Terminal};
use self::view::{Page, Screen};
use crate::failure::Failure;
use crate::session::{Session, now};

/// How often to look whether somebody else did something.
const REFRESH: Duration = Duration::from_millis(800);

/// What is on the screen.
#[derive(Debug)]
struct Browser {
    list: List,
    /// What covers the list.
    page: Option<Page>,
    /// What `y` would do.
    asks: Option<Act>,
    /// What is being typed after `/`.
    typed: Option<String>,
    /// What is looked for.
    search: String,
    /// The line below.
    message: String,
    /// How many lines of the list there is room for.
    room: usize,
}

/// What a key leads to.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Leave,
    Stop,
}

/// Walks through the log.
pub(crate) fn walk(session: &mut Session) -> Result<(), Failure> {
    let Some(mut terminal) = Terminal::take(session.global.color) else {
        let report = Report::usage("there is no terminal to show the log on");
        return Err(report
            .next_call("list it with {}", [Call::of("log")])
            .into());
    };
    session.ui.capture();
    let walked = walk_on(session, &mut terminal);
    drop(terminal);
    session.ui.end_capture();
    walked
}

fn walk_on(session: &mut Session, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut browser = Browser {
        list: List::open(session, Kind::Operations)?,
        page: None,
        asks: None,
        typed: None,
        search: String::new(),
        message: String::new(),
        room: 1,
    };
    let mut looked = Instant::now();
    loop {
        browser.note(session);
        browser.draw(session, terminal);
        let then = match terminal.hear(REFRESH) {
            Heard::Key(key) => browser.take(session, terminal, key)?,
            Heard::Ended => Then::Leave,
            Heard::Stopped => Then::Stop,
            Heard::Nothing | Heard::Resized => Then::GoOn,
        };
        match then {
            Then::Leave => return Ok(()),
            Then::Stop => terminal.stop(),
            Then::GoOn => {}
        }
        // Whoever reads a plan wants to find it as it was.
        if looked.elapsed() >= REFRESH && browser.page.is_none() {
            browser.list.refresh(session)?;
            looked = Instant::now();
        }
    }
}

impl Browser {
    /// Shows in the line below what was said on the way, such as what was recovered.
    fn note(&mut self, session: &mut Session) {
        let said = session.ui.take_captured();
        if let Some(line) = said.lines().rev().find(|line| !line.trim().is_empty()) {
            self.message = anstream::adapter::strip_str(line).to_string();
        }
    }

    fn draw(&mut self, session: &Session, terminal: &mut Terminal) {
        let (width, height) = Terminal::size();
        // A line above, and one below.
        self.room = height.saturating_sub(2).max(1);
        self.list.scroll(self.room);
        let screen = Screen {
            list: &self.list,
            page: self.page.as_ref(),
            typed: self.typed.as_deref(),
            message: &self.message,
            is_asked: self.asks.is_some(),
            here: &session.here,
            now: now(),
            width,
            height,
        };
        terminal.show(&screen.lines());
    }

    fn take(
        &mut self,
        session: &mut Session,
        terminal: &Terminal,
        key: Key,
    ) -> Result<Then, Failure> {
        self.message.clear();
        if self.typed.is_some() {
            return self.type_on(session, key);
        }
        match key {
            Key::Letter('\u{3}') => return Ok(Then::Leave),
            Key::Letter('\u{1a}') => return Ok(Then::Stop),
            Key::Letter(_)
            | Key::Enter
            | Key::Escape
            | Key::Backspace
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End => {}
        }
        if self.page.is_some() {
            self.on_page(session, terminal, key)?;
            return Ok(Then::GoOn);
        }
        let room = self.room;
        match key {
            Key::Escape if self.list.is_part() => self.open(session, Kind::Operations)?,
            Key::Letter('q') | Key::Escape => return Ok(Then::Leave),
            Key::Letter('j') | Key::Down => self.list.down(session, 1)?,
            Key::Letter('k') | Key::Up => self.list.up(1),
            Key::Letter(' ' | 'f' | '\u{6}') | Key::PageDown => self.list.down(session, room)?,
            Key::Letter('b' | '\u{2}') | Key::PageUp => self.list.up(room),
            Key::Letter('g') | Key::Home => self.list.up(usize::MAX),
            Key::Letter('G') | Key::End => self.list.down(session, usize::MAX)?,
            Key::Letter('/') => self.typed = Some(String::new()),
            Key::Letter('n') => self.find(session)?,
            Key::Letter('t') => {
                let next = self.list.kind().next();
                self.open(session, next)?;
            }
            Key::Letter('R' | '\u{c}') => self.list.reload(session)?,
            Key::Letter('?' | 'h') => self.page = Some(Page::new("keys", view::HELP)),
            Key::Enter => self.enter(session)?,
            Key::Letter('u') => self.preview(session, terminal, Act::undo(&self.list)),
            Key::Letter('r') => self.preview(session, terminal, Act::redo(&self.list)),
            Key::Letter(_) | Key::Backspace => {}
        }
        Ok(Then::GoOn)
    }

    fn open(&mut self, session: &mut Session, kind: Kind) -> Result<(), Failure> {
        self.list = List::open(session, kind)?;
        Ok(())
    }

    /// Takes a key while a text covers the list.
    fn on_page(
        &mut self,
        session: &mut Session,
        terminal: &Terminal,
        key: Key,
    ) -> Result<(), Failure> {
        let room = self.room;
        match (key, self.asks.take()) {
            (Key::Letter('y'), Some(act)) => {
                let shown = act.carry_out(session, terminal);
                self.page = Some(shown);
                self.list.reload(session)?;
                return Ok(());
            }
            // Any other key leaves it, but those that only look.
            (Key::Letter('n' | 'q') | Key::Escape, _) => self.page = None,
            (_, asks) => self.asks = asks,
        }
        let Some(page) = &mut self.page else {
            return Ok(());
        };
        match key {
            Key::Letter('j') | Key::Down | Key::Enter => page.down(1, room),
            Key::Letter('k') | Key::Up => page.up(1),
            Key::Letter(' ' | 'f' | '\u{6}') | Key::PageDown => page.down(room, room),
            Key::Letter('b' | '\u{2}') | Key::PageUp => page.up(room),
            Key::Letter('g') | Key::Home => page.up(usize::MAX),
            Key::Letter('G') | Key::End => page.down(usize::MAX, room),
            Key::Letter('u') if self.asks.is_none() => {
                self.preview(session, terminal, Act::undo(&self.list));
            }
            Key::Letter('r') if self.asks.is_none() => {
                self.preview(session, terminal, Act::redo(&self.list));
            }
            Key::Letter(_) | Key::Escape | Key::Backspace => {}
        }
        Ok(())
    }

    fn enter(&mut self, session: &mut Session) -> Result<(), Failure> {
        if let Some(inside) = self.list.inside() {
            return self.open(session, inside);
        }
        self.page = act::diff(session, &self.list);
        Ok(())
    }

    /// Shows what an act would do, and asks.
    fn preview(&mut self, session: &mut Session, terminal: &Terminal, act: Option<Act>) {
        let Some(act) = act else {
            "there is nothing here".clone_into(&mut self.message);
            return;
        };
        let (page, is_possible) = act.preview(session, terminal);
        self.page = Some(page);
        self.asks = is_possible.then_some(act);
    }

    /// Takes a key while something is typed to look for.
    fn type_on(&mut self, session: &mut Session, key: Key) -> Result<Then, Failure> {
        let Some(mut typed) = self.typed.take() else {
            return Ok(Then::GoOn);
        };
        match key {
            Key::Enter => {
                if !typed.is_empty() {
                    self.search = typed;
                }
                self.find(session)?;
            }
            Key::Escape | Key::Letter('\u{3}') => {}
            Key::Backspace => {
                if typed.pop().is_some() {
                    self.typed = Some(typed);
                }
            }
            Key::Letter(letter) if !letter.is_control() => {
                typed.push(letter);
                self.typed = Some(typed);
            }
            Key::Letter(_)
            | Key::Up
            | Key::Down
            | Key::PageUp
            | Key::PageDown
            | Key::Home
            | Key::End => self.typed = Some(typed),
        }
        Ok(Then::GoOn)
    }

    fn find(&mut self, session: &mut Session) -> Result<(), Failure> {
        if self.search.is_empty() {
            "type / and what you look for".clone_into(&mut self.message);
        } else if !self.list.find(session, &self.search)? {
            self.message = format!("nothing further down has `{}`", self.search);
        }
        Ok(())
    }
}
