//! What is walked through: operations, prompts or tasks. It is read as far as the cursor goes, and a page more.

use backout_engine::{Command, Filter, PromptFilter, PromptView, Reply, TaskCommand};
use backout_model::{Operation, PromptId, Task, TaskId};

use crate::failure::Failure;
use crate::session::Session;

/// How many are read at first. Whoever goes further down gets twice as many each time.
const FIRST: usize = 200;

/// So many of the newest are compared to find out whether somebody did something.
const NEWEST: usize = 50;

/// What kind of thing is walked through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Operations,
    Prompts,
    Tasks,
    OfPrompt(PromptId),
    OfTask(TaskId),
}

impl Kind {
    /// Gives the kind that comes after this one.
    pub(super) const fn next(&self) -> Self {
        match self {
            Self::Operations => Self::Prompts,
            Self::Prompts => Self::Tasks,
            Self::Tasks | Self::OfPrompt(_) | Self::OfTask(_) => Self::Operations,
        }
    }
}

/// What was read.
#[derive(Debug)]
pub(super) enum Items {
    Operations(Vec<Operation>),
    Prompts(Vec<PromptView>),
    Tasks(Vec<Task>),
}

impl Items {
    pub(super) const fn len(&self) -> usize {
        match self {
            Self::Operations(all) => all.len(),
            Self::Prompts(all) => all.len(),
            Self::Tasks(all) => all.len(),
        }
    }
}

/// A list with a cursor.
#[derive(Debug)]
pub(super) struct List {
    kind: Kind,
    pub(super) items: Items,
    /// The line that the cursor is on.
    pub(super) cursor: usize,
    /// The first line that is seen.
    pub(super) top: usize,
    /// How many were asked for.
    limit: usize,
    /// Whether there are no more.
    pub(super) is_all: bool,
}

impl List {
    /// Reads the first page.
    pub(super) fn open(session: &mut Session, kind: Kind) -> Result<Self, Failure> {
        let items = read(session, &kind, FIRST)?;
        Ok(Self {
            is_all: items.len() < FIRST,
            kind,
            items,
            cursor: 0,
            top: 0,
            limit: FIRST,
        })
    }

    pub(super) const fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Tells whether it is what belongs to one prompt or task.
    pub(super) const fn is_part(&self) -> bool {
        !matches!(self.kind, Kind::Operations)
    }

    /// Gives the operation that the cursor is on.
    pub(super) fn operation(&self) -> Option<&Operation> {
        match &self.items {
            Items::Operations(all) => all.get(self.cursor),
            Items::Prompts(_) | Items::Tasks(_) => None,
        }
    }

    /// Gives what lies inside of what the cursor is on.
    pub(super) fn inside(&self) -> Option<Kind> {
        match &self.items {
            Items::Operations(_) => None,
            Items::Prompts(all) => all
                .get(self.cursor)
                .map(|it| Kind::OfPrompt(it.prompt.id.clone())),
            Items::Tasks(all) => all.get(self.cursor).map(|it| Kind::OfTask(it.id.clone())),
        }
    }

    pub(super) fn up(&mut self, lines: usize) {
        self.cursor = self.cursor.saturating_sub(lines);
    }

    /// Goes down, and reads more if that is needed.
    pub(super) fn down(&mut self, session: &mut Session, lines: usize) -> Result<(), Failure> {
        let wanted = self.cursor.saturating_add(lines);
        while !self.is_all && wanted >= self.items.len() {
            self.more(session)?;
        }
        self.cursor = wanted.min(self.items.len().saturating_sub(1));
        Ok(())
    }

    fn more(&mut self, session: &mut Session) -> Result<(), Failure> {
        self.limit = self.limit.saturating_mul(2);
        self.items = read(session, &self.kind, self.limit)?;
        self.is_all = self.items.len() < self.limit;
        Ok(())
    }

    /// Goes to the next line that has a text, further down. Tells whether there is one.
    pub(super) fn find(&mut self, session: &mut Session, text: &str) -> Result<bool, Failure> {
        let text = text.to_lowercase();
        let mut from = self.cursor + 1;
        loop {
            let found = (from..self.items.len()).find(|at| self.words(*at).contains(&text));
            if let Some(at) = found {
                self.cursor = at;
                return Ok(true);
            }
            if self.is_all {
                return Ok(false);
            }
            from = self.items.len();
            self.more(session)?;
        }
    }

    /// Gives all that can be looked for in a line.
    fn words(&self, at: usize) -> String {
        let words = match &self.items {
            Items::Operations(all) => all.get(at).map(|it| {
                let agent = it
                    .agent
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let task = it
                    .task
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                let targets = it.targets.iter().map(|target| target.target.to_string());
                let targets: Vec<String> = targets.collect();
                format!(
                    "{} {} {agent} {task} {} {}",
                    it.id,
                    it.summary,
                    it.status,
                    targets.join(" ")
                )
            }),
            Items::Prompts(all) => all.get(at).map(|it| it.prompt.text.clone()),
            Items::Tasks(all) => all.get(at).map(|it| it.id.to_string()),
        };
        words.unwrap_or_default().to_lowercase()
    }

    /// Moves what is seen so that the cursor is.
    pub(super) const fn scroll(&mut self, room: usize) {
        if self.cursor < self.top {
            self.top = self.cursor;
        } else if self.cursor >= self.top + room {
            self.top = self.cursor + 1 - room;
        }
    }

    /// Reads again if somebody did something. The cursor stays on what it is on.
    pub(super) fn refresh(&mut self, session: &mut Session) -> Result<(), Failure> {
        let is_same = match (&self.items, read(session, &self.kind, NEWEST)?) {
            (Items::Operations(old), Items::Operations(new)) => {
                let told = |it: &Operation| (it.id, it.status, it.undos().len());
                let mut both = old.iter().zip(&new);
                old.len().min(NEWEST) == new.len() && both.all(|(old, new)| told(old) == told(new))
            }
            (Items::Prompts(old), Items::Prompts(new)) => {
                let told = |it: &PromptView| (it.prompt.id.clone(), it.operations, it.in_effect);
                let mut both = old.iter().zip(&new);
                old.len().min(NEWEST) == new.len() && both.all(|(old, new)| told(old) == told(new))
            }
            (Items::Tasks(old), Items::Tasks(new)) => {
                let mut both = old.iter().zip(&new);
                old.len().min(NEWEST) <= new.len()
                    && both.all(|(old, new)| old.status == new.status)
            }
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        self.reload(session)
    }

    /// Reads again.
    pub(super) fn reload(&mut self, session: &mut Session) -> Result<(), Failure> {
        let (on, is_first) = (self.operation().map(|it| it.id), self.cursor == 0);
        // What came since moves everything down.
        self.items = read(session, &self.kind, self.limit)?;
        self.is_all = self.items.len() < self.limit;
        let last = self.items.len().saturating_sub(1);
        let found = match &self.items {
            Items::Operations(all) if !is_first => all.iter().position(|it| Some(it.id) == on),
            Items::Operations(_) | Items::Prompts(_) | Items::Tasks(_) => None,
        };
        let moved = found.map_or(0, |at| at.saturating_sub(self.cursor));
        self.top = (self.top + moved).min(last);
        self.cursor = found.unwrap_or(self.cursor).min(last);
        Ok(())
    }
}

fn read(session: &mut Session, kind: &Kind, limit: usize) -> Result<Items, Failure> {
    let engine = session.engine()?;
    let filter = Filter {
        agent: session.global.agent.clone(),
        task: session.global.task.clone(),
        limit: Some(limit),
        ..Filter::default()
    };
    let command = match kind {
        Kind::Operations => Command::Log(filter),
        Kind::OfPrompt(prompt) => Command::Log(Filter {
            prompt: Some(prompt.clone()),
            ..filter
        }),
        Kind::OfTask(task) => Command::Log(Filter {
            task: Some(task.clone()),
            ..filter
        }),
        Kind::Prompts => Command::Prompts(PromptFilter {
            below: None,
            limit: Some(limit),
        }),
        Kind::Tasks => Command::Task(TaskCommand::List),
    };
    Ok(match session.execute(&engine, command)? {
        Reply::Log { operations } => Items::Operations(operations),
        Reply::Prompts { prompts } => Items::Prompts(prompts),
        Reply::Tasks { mut tasks } => {
            tasks.truncate(limit);
            Items::Tasks(tasks)
        }
        _ => Items::Operations(Vec::new()),
    })
}
