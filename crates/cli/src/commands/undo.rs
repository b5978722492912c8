//! `backout undo`, and how to take things back, which `redo` and `rollback` share.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use backout_engine::{
    Call, Command, Engine, EngineError, Glob, OperationRef, Report, Selection, Typed, UndoOptions,
    UndoWhat, literal,
};
use backout_model::ports::OnConflict;
use backout_model::{AgentId, Key, Severity, Source, TargetPath, Trigger, TriggerKind};
use backout_storage::RefError;
use clap::Args;

use crate::failure::Failure;
use crate::named_targets::named_target;
use crate::paths::absolute;
use crate::session::Session;
use crate::show::undo::{Asked, Words};
use crate::when::moment;

/// Take operations back, with everything that was built on them.
///
/// Without a name, this takes what this agent did last at or below this directory, or outside of files, and says what
/// that was: one operation, or all that one redo brought back. If you name a path, a row or another target, it takes
/// back what was last done to that and nothing else. Later work that does not depend on it stays. If somebody changed a target since, nothing is undone,
/// unless `--merge`, `--force` or `--partial` says what to do about it. You can take an undo back with `backout redo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Operations, paths, or other targets as they are printed, like `app.toml:server.port` or `postgres:shop/public/orders:7`.
    #[arg(value_name = "REF|TARGET")]
    names: Vec<OsString>,

    /// Take paths back to what they were at this time, like `10m`, `2h ago`, `14:30` or `2026-11-16 09:00`.
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,

    /// Without a name: the newest operation wherever it was.
    #[arg(long, conflicts_with = "names")]
    everywhere: bool,

    /// Also take back the operations that they were built on.
    #[arg(long)]
    with_dependencies: bool,

    #[command(flatten)]
    part: PartArgs,

    #[command(flatten)]
    pub(crate) how: HowArgs,
}

/// Which targets are meant.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PartArgs {
    /// Only targets that match, like `src/**`, `/etc/*.conf` or `postgres:shop/public/orders:*`; may be repeated.
    #[arg(long, value_name = "GLOB")]
    only: Vec<OsString>,

    /// Not targets that match; may be repeated.
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<OsString>,
}

impl PartArgs {
    /// Says it to the engine.
    pub(crate) fn selection(&self) -> Result<Selection, Report> {
        let here = absolute(Path::new("."))?;
        Ok(Selection {
            only: Selection::typed(&self.only, &here),
            exclude: Selection::typed(&self.exclude, &here),
        })
    }

    /// Says it as it was typed.
    pub(crate) fn typed(&self) -> Result<Typed, Report> {
        let typed = each_typed(Typed::default(), "--only", &self.only)?;
        each_typed(typed, "--exclude", &self.exclude)
    }
}

fn each_typed(typed: Typed, flag: &str, patterns: &[OsString]) -> Result<Typed, Report> {
    let here = absolute(Path::new("."))?;
    let each = patterns.iter().fold(typed, |typed, pattern| {
        // A word that begins with a dash would be taken for a flag.
        let between = if pattern.as_bytes().starts_with(b"-") {
            "="
        } else {
            " "
        };
        let line = [flag, between, &literal(pattern)].concat();
        let words = Selection::typed(&[pattern], &here).into_iter().map(|glob| {
            let mut word = OsString::from(format!("{flag}="));
            word.push(glob.from_root());
            word
        });
        typed.and_so(&line, words.collect())
    });
    Ok(each)
}

/// How to take things back.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "one per flag of the command line"
)]
pub(crate) struct HowArgs {
    /// Show what would happen and change nothing; the exit code is 1 where it would be refused, or not all of it done.
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,

    /// With `--dry-run`: show line by line what would change back, and what somebody else changed.
    #[arg(long, requires = "dry_run")]
    pub(crate) diff: bool,

    /// Where a target changed since, take out only this change and keep the others.
    #[arg(long, conflicts_with = "force")]
    merge: bool,

    /// Where a target changed since, change it anyway; what is overwritten is kept, so this too can be undone.
    #[arg(long)]
    force: bool,

    /// Do what can be done, target by target; the rest stays as it is and can be done later.
    #[arg(long)]
    partial: bool,

    /// Also take back operations of committed tasks that depend on it and that you did not name.
    #[arg(long)]
    committed: bool,

    /// Also take back other agents' operations that depend on it and that you did not name.
    #[arg(long)]
    others: bool,

    #[command(flatten)]
    set_off: TriggerArgs,
}

/// What sets it off, for the journal.
#[derive(Debug, Clone, Args)]
pub(crate) struct TriggerArgs {
    /// What sets it off: plan-failure, user-rejection, policy-violation, manual-abort, transaction-abort or user-request.
    #[arg(long, value_name = "KIND")]
    trigger: Option<TriggerKind>,

    /// How grave it is: low, medium, high or critical. By default as its kind is. It decides what follows if an undo fails.
    #[arg(long, value_name = "LEVEL")]
    severity: Option<Severity>,

    /// Why, in words.
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
}

impl TriggerArgs {
    /// Says it to the engine; none if nothing was said.
    fn trigger(&self, agent: Option<&AgentId>) -> Option<Trigger> {
        if self.trigger.is_none() && self.severity.is_none() && self.why.is_none() {
            return None;
        }
        let kind = self.trigger.unwrap_or(TriggerKind::UserRequest);
        let source = match agent {
            Some(agent) => Source::Agent {
                agent: agent.clone(),
            },
            None => Source::Person,
        };
        Some(Trigger {
            severity: self.severity.unwrap_or(kind.severity()),
            why: self.why.clone(),
            ..Trigger::new(kind, source)
        })
    }

    /// Says it as it was typed, a word each.
    fn typed(&self) -> Vec<String> {
        let kind = self.trigger.map(|kind| kind.to_string());
        let severity = self.severity.map(|severity| severity.to_string());
        let words = [
            ("--trigger", kind),
            ("--severity", severity),
            ("--why", self.why.clone()),
        ];
        let given = words
            .into_iter()
            .filter_map(|(flag, word)| Some((flag, word?)));
        given.map(|(flag, word)| format!("{flag}={word}")).collect()
    }
}

impl UndoArgs {
    /// Tells whether others' work is to go along.
    pub(crate) const fn takes_others(&self) -> bool {
        self.how.takes_others()
    }
}

impl HowArgs {
    /// Tells whether others' work is to go along.
    pub(crate) const fn takes_others(&self) -> bool {
        self.others && !self.dry_run
    }

    /// Tells whether others' work may go along, also where it is only looked at.
    pub(crate) const fn others(&self) -> bool {
        self.others
    }

    /// Refuses what has no meaning where directories become what they were.
    pub(crate) fn refuse_for_directories(&self) -> Result<(), Report> {
        let set_off = &self.set_off;
        let given = [
            (self.diff, "--diff"),
            (self.merge, "--merge"),
            (self.partial, "--partial"),
            (set_off.trigger.is_some(), "--trigger"),
            (set_off.severity.is_some(), "--severity"),
            (set_off.why.is_some(), "--why"),
        ];
        match given.into_iter().find(|(is_given, _)| *is_given) {
            None => Ok(()),
            Some((_, flag)) => Err(Report::usage(format!(
                "`{flag}` has no meaning for a checkpoint that keeps directories"
            ))
            .because("they become what they were, whoever changed them")
            .next(format!(
                "leave it out, or take back only the recorded operations with `--operations {flag}`"
            ))),
        }
    }

    /// Says it to the engine.
    pub(crate) fn options(
        &self,
        part: &PartArgs,
        agent: Option<&AgentId>,
    ) -> Result<UndoOptions, Report> {
        let on_conflict = match (self.merge, self.force) {
            (true, _) => OnConflict::Merge,
            (false, true) => OnConflict::Force,
            (false, false) => OnConflict::Refuse,
        };
        Ok(UndoOptions {
            on_conflict,
            with_dependencies: false,
            committed: self.committed,
            others: self.others,
            partial: self.partial,
            selection: part.selection()?,
            diff: self.diff,
            only: None,
            trigger: self.set_off.trigger(agent),
        })
    }

    /// Says it as it was typed, without the dry run, a word each.
    pub(crate) fn typed(&self) -> Vec<String> {
        let flags = [
            (self.merge, "--merge"),
            (self.force, "--force"),
            (self.partial, "--partial"),
            (self.committed, "--committed"),
            (self.others, "--others"),
        ];
        let given = flags.into_iter().filter(|(is_given, _)| *is_given);
        let flags = given.map(|(_, flag)| flag.to_owned());
        flags.chain(self.set_off.typed()).collect()
    }
}

/// Takes operations back.
pub(crate) fn cmd_undo(session: &mut Session, args: &UndoArgs) -> Result<(), Failure> {
    session.sync_databases();
    let engine = session.engine()?;
    let what = what(&engine, args)?;
    let (name, mut part) = match &what {
        UndoWhat::Paths { paths, since } => {
            // An operation goes by the name that it wrote. If there is none, the undo says so.
            let names = engine.written_names(paths, *since);
            of_paths(args, &names.unwrap_or_else(|_| paths.clone()))?
        }
        UndoWhat::Newest { .. }
        | UndoWhat::Operations(_)
        | UndoWhat::Task(_)
        | UndoWhat::Prompt(_)
        | UndoWhat::ToCheckpoint(_)
        | UndoWhat::ToPlace { .. } => (None, args.part.typed()?),
    };
    if args.with_dependencies {
        part = part.and(&["--with-dependencies"]);
    }
    let asked = Asked {
        words: Words::Undo,
        chosen: chosen(session, &what),
        brought: brought(session, &what),
        part,
        flags: args.how.typed(),
        name,
        command: None,
    };
    let command = Command::Undo {
        what,
        options: UndoOptions {
            with_dependencies: args.with_dependencies,
            ..args.how.options(&args.part, session.agent.as_ref())?
        },
        is_dry_run: args.how.dry_run,
    };
    session.take_back(&engine, command, &asked)
}

/// Says an undo of paths as one of operations, each restricted to those paths. A part of a part is only said by the
/// paths themselves.
fn of_paths(args: &UndoArgs, paths: &[Key]) -> Result<(Option<Typed>, Typed), Failure> {
    if !args.part.only.is_empty() {
        let both = std::iter::zip(&args.names, paths);
        let names = both.fold(Typed::default(), |typed, (name, path)| {
            // A word that begins with a dash would be taken for a flag.
            let line = if name.as_bytes().starts_with(b"-") {
                literal(Path::new(".").join(name).as_os_str())
            } else {
                literal(name)
            };
            typed.and_so(&line, vec![written(path)])
        });
        let names = args.at.iter().fold(names, |typed, at| {
            let line = format!("--at {}", literal(at.as_ref()));
            typed.and_so(&line, vec![format!("--at={at}").into()])
        });
        return Ok((Some(names), args.part.typed()?));
    }
    let here = absolute(Path::new("."))?;
    let exactly = |key: &Key| {
        let path = PathBuf::from(written(key));
        match path.strip_prefix(&here) {
            Ok(below) if below.as_os_str().is_empty() => OsString::from("."),
            Ok(below) => Glob::exactly(below),
            Err(_) => Glob::exactly(&path),
        }
    };
    let part = PartArgs {
        only: paths.iter().map(exactly).collect(),
        exclude: args.part.exclude.clone(),
    };
    Ok((None, part.typed()?))
}

/// Writes a path, or a key of a file, as it is typed.
fn written(key: &Key) -> OsString {
    match (key.file(), key.parts()) {
        (Some(path), []) => path.as_path().into(),
        _ => key.to_string().into(),
    }
}

/// Says how the operation was chosen, where nobody named it.
fn chosen(session: &Session, what: &UndoWhat) -> Option<String> {
    let whose = match &session.agent {
        Some(agent) => format!("the newest of {agent}"),
        None => "the newest".to_owned(),
    };
    chosen_below(session, what, whose)
}

/// Says so where it is another's that this agent brought back.
fn brought(session: &Session, what: &UndoWhat) -> Option<(AgentId, String)> {
    let agent = session.agent.clone()?;
    let said = chosen_below(session, what, format!("what {agent} brought back"))?;
    Some((agent, said))
}

fn chosen_below(session: &Session, what: &UndoWhat, whose: String) -> Option<String> {
    match what {
        UndoWhat::Newest { below: Some(below) } => Some(format!(
            "{whose} below {}",
            session.here.show(below.as_path())
        )),
        UndoWhat::Newest { below: None } => Some(whose),
        UndoWhat::Operations(_)
        | UndoWhat::Paths { .. }
        | UndoWhat::Task(_)
        | UndoWhat::Prompt(_)
        | UndoWhat::ToCheckpoint(_)
        | UndoWhat::ToPlace { .. } => None,
    }
}

/// The directory we are in, as the journal knows it; none if everything is meant.
pub(super) fn below_here(everywhere: bool) -> Result<Option<TargetPath>, Failure> {
    if everywhere {
        return Ok(None);
    }
    let here = absolute(Path::new("."))?;
    let here = here.canonicalize().unwrap_or(here);
    Ok(TargetPath::new(here).ok())
}

/// Finds out what is meant: nothing named, operations, or paths.
fn what(engine: &Engine, args: &UndoArgs) -> Result<UndoWhat, Failure> {
    if args.names.is_empty() {
        if args.at.is_some() {
            return Err(Report::usage("`--at` needs a path")
                .next_call(
                    "name what to take back: {}",
                    [Call::of("undo").blank("PATH --at WHEN")],
                )
                .into());
        }
        let below = below_here(args.everywhere)?;
        return Ok(UndoWhat::Newest { below });
    }
    let (mut operations, mut paths) = (Vec::new(), Vec::new());
    for name in &args.names {
        match meant(engine, name)? {
            Meant::Operation(reference) => operations.push(reference),
            Meant::Path(path) => paths.push(path),
        }
    }
    let since = args.at.as_deref().map(moment).transpose()?;
    if args.with_dependencies && !paths.is_empty() {
        return Err(Report::usage("`--with-dependencies` is for operations")
            .because("what an operation was built on may lie at other paths")
            .next_call(
                "name the operation: see which wrote the path with {}",
                [Call::of("log").blank("PATH")],
            )
            .into());
    }
    match (operations.is_empty(), paths.is_empty(), since) {
        (true, false, since) => Ok(UndoWhat::Paths { paths, since }),
        (false, true, None) => Ok(UndoWhat::Operations(operations)),
        (false, true, Some(_)) => Err(Report::usage("`--at` is for paths")
            .because("an operation has its own time")
            .next("name a path, or leave out `--at`")
            .into()),
        _ => Err(Report::usage("operations and paths cannot be mixed")
            .next("restrict operations to paths with `--only PATH`")
            .into()),
    }
}

/// What a name on the command line stands for.
enum Meant {
    Operation(OperationRef),
    Path(Key),
}

fn meant(engine: &Engine, name: &OsStr) -> Result<Meant, Failure> {
    let path = PathBuf::from(name);
    // What is no text is no operation.
    let Some(name) = name.to_str() else {
        return Ok(Meant::Path(named_target(engine, &path)?));
    };
    let is_there = path.symlink_metadata().is_ok();
    let reference = match name.parse::<OperationRef>() {
        Ok(reference) => reference,
        Err(_) if name.starts_with('@') && !is_there => {
            let text = name.to_owned();
            return Err(EngineError::Ref(RefError::Malformed { text }).into());
        }
        Err(_) => return Ok(Meant::Path(named_target(engine, &path)?)),
    };
    match engine.store().resolve(&reference) {
        Ok(_) if is_there => Err(Report::usage(format!(
            "`{name}` is an operation and a file here"
        ))
        .next(format!("write `./{name}` for the file"))
        .next("or give the operation's own id, or more digits of it")
        .into()),
        Err(RefError::Unknown { .. }) if is_there => Ok(Meant::Path(named_target(engine, &path)?)),
        Ok(_) | Err(_) => Ok(Meant::Operation(reference)),
    }
}
