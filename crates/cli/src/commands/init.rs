//! `backout init`

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use backout_agents::Agent;
use backout_agents::settings::{Places, Standing, trust};
use backout_config::{Document, Format, NewValue, Value};
use backout_drivers::file::{Expect, FileRequest, Source};
use backout_engine::{
    Call, Command, Context, Engine, Filter, OperationRef, Reply, Report, Typed, UndoOptions,
    UndoWhat,
};
use backout_model::{AgentId, OperationId, Status, Target, TargetPath, text};
use clap::Args;
use serde::Serialize;

use super::all_or_nothing;
use crate::agents::doctor;
use crate::agents::setup::{self, Gets, Planned};
use crate::failure::Failure;
use crate::session::Session;

/// Protect a coding agent: whatever it writes can be undone.
///
/// That is every write of its file tools, and everything that its shell commands do to files.
///
/// It edits the agent's own settings and leaves what is there as it is. The edit is an operation: undo it, or use `--remove`.
/// Agents: claude-code, codex, gemini, qwen, opencode, copilot, cline, cursor.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub(crate) struct InitArgs {
    /// The agent.
    #[arg(value_name = "AGENT", value_parser = parse_agent)]
    which: Agent,

    /// Only in this project: the settings in the current directory.
    #[arg(long)]
    project: bool,

    /// Take the protection away again.
    #[arg(long, conflicts_with_all = ["check", "trust"])]
    remove: bool,

    /// Only tell whether the agent is protected.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,

    /// Also tell Codex that you trust these hooks, as `/hooks` would.
    #[arg(long)]
    trust: bool,

    /// Give the agent Backout's tools over MCP, beside its own, instead of hooks; see `backout mcp`. With `--remove`: take them away.
    #[arg(long, conflicts_with = "trust")]
    mcp: bool,

    /// Only show what would change.
    #[arg(long, short = 'n')]
    dry_run: bool,
}

impl InitArgs {
    const fn gets(&self) -> Gets {
        if self.mcp {
            Gets::Tools
        } else {
            Gets::Protection
        }
    }

    /// Tells whether it only looks.
    pub(crate) const fn only_looks(&self) -> bool {
        self.check || self.dry_run
    }
}

/// The reply for programs.
#[derive(Debug, Serialize)]
struct AgentReply<'r> {
    reply: &'static str,
    agent: &'static str,
    is_protected: bool,
    /// Whether it has our tools; none if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_tools: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<OperationId>,
    files: Vec<String>,
    notes: &'r [String],
}

/// Says something to people.
fn say(session: &mut Session, text: &str) {
    if !session.ui.is_json() {
        session.ui.done(text);
    }
}

/// Tells a program what became of an agent's settings.
fn reply(
    session: &mut Session,
    (gets, agent): (Gets, Agent),
    is_there: bool,
    operation: Option<OperationId>,
    (planned, notes): (&[Planned], &[String]),
) {
    if !session.ui.is_json() {
        return;
    }
    let (is_protected, has_tools) = match gets {
        Gets::Protection => (is_there, None),
        Gets::Tools => (is_protected(session, agent), Some(is_there)),
    };
    let files = planned.iter().filter(|it| !it.is_own);
    session.ui.print_json(&AgentReply {
        reply: "agent",
        agent: agent.as_str(),
        is_protected,
        has_tools,
        operation,
        files: files.map(|it| it.path.display().to_string()).collect(),
        notes,
    });
}

/// Tells whether an agent's own tools are recorded, by the user's settings or the project's.
fn is_protected(session: &Session, agent: Agent) -> bool {
    [false, true].into_iter().any(|is_project| {
        let places = setup::places(session, agent, is_project);
        places.is_ok_and(|it| {
            let standing = setup::standing(Gets::Protection, agent, &it);
            matches!(standing, Ok(Standing::Whole)) && doctor::switched_off(agent, &it).is_empty()
        })
    })
}

fn parse_agent(text: &str) -> Result<Agent, String> {
    text.parse()
        .map_err(|error: backout_agents::UnknownAgent| error.to_string())
}

/// Protects an agent, or takes that away.
pub(crate) fn cmd_init(session: &mut Session, args: &InitArgs) -> Result<(), Failure> {
    let (agent, gets) = (args.which, args.gets());
    let places = setup::places(session, agent, args.project)?;
    if args.check {
        return check(session, (gets, agent), &places);
    }
    if args.remove {
        return remove(session, (gets, agent), &places, args.dry_run);
    }
    let (setup, mut planned) = setup::added(gets, agent, &places, reader(args.dry_run))?;
    if args.trust {
        add_trust(agent, &mut planned)?;
    }
    if args.dry_run {
        preview(session, &planned);
        reply(
            session,
            (gets, agent),
            false,
            None,
            (&planned, &setup.notes),
        );
        return not_written(&planned);
    }
    let id = carry_out(session, (gets, agent), &planned)?;
    let off = switched_off(gets, agent, &places);
    let is_there = off.is_none();
    reply(
        session,
        (gets, agent),
        is_there,
        id,
        (&planned, &setup.notes),
    );
    if let Some(id) = id {
        let is = if is_there {
            is(gets, agent)
        } else {
            format!("{} has its hooks", agent.title())
        };
        say(session, &format!("{is}  ({})\n", id.short()));
        for planned in planned.iter().filter(|planned| !planned.is_own) {
            say(session, &format!("  {}\n", planned.path.display()));
        }
    } else if is_there {
        let was = match gets {
            Gets::Protection => "was protected already",
            Gets::Tools => "had Backout's tools already",
        };
        say(session, &format!("{} {was}\n", agent.title()));
    }
    for note in &setup.notes {
        session.ui.note(note);
    }
    if let Some(report) = off {
        return Err(report.into());
    }
    let mut options = options(gets, &places);
    options.push("--check");
    let options = options.join(" ");
    session.ui.hint(&format!(
        "see whether it works with `backout init {agent} {options}`; start the agent anew if it runs"
    ));
    Ok(())
}

/// Says that an agent has what it gets.
fn is(gets: Gets, agent: Agent) -> String {
    let title = agent.title();
    match gets {
        Gets::Protection => format!("{title} is protected"),
        Gets::Tools => format!("{title} has Backout's tools"),
    }
}

/// Says that it does not.
fn is_not(gets: Gets, agent: Agent) -> String {
    let title = agent.title();
    match gets {
        Gets::Protection => format!("{title} is not protected"),
        Gets::Tools => format!("{title} does not have Backout's tools"),
    }
}

/// Says what switches off what an agent gets, if something does.
fn switched_off(gets: Gets, agent: Agent, places: &Places) -> Option<Report> {
    if gets == Gets::Tools {
        return None;
    }
    let off = doctor::switched_off(agent, places).into_iter().next()?;
    let report = Report::refused(format!("{} as it should be", is_not(gets, agent)));
    Some(report.because(off.to_string()).next(doctor::TAKE_OUT))
}

/// How settings are read by who only shows what would change, and by who changes it.
const fn reader(is_dry_run: bool) -> setup::Read {
    if is_dry_run {
        setup::text_to_show
    } else {
        setup::settings_text
    }
}

/// Says that what was shown cannot be written, where it cannot.
fn not_written(planned: &[Planned]) -> Result<(), Failure> {
    setup::obstacle(planned).map_or(Ok(()), |report| Err(report.into()))
}

/// Gives the options that mean the same settings and the same gift again.
fn options(gets: Gets, places: &Places) -> Vec<&'static str> {
    let project = places.project.is_some().then_some("--project");
    let tools = (gets == Gets::Tools).then_some("--mcp");
    project.into_iter().chain(tools).collect()
}

/// Tells whether an agent has what it gets.
fn check(
    session: &mut Session,
    (gets, agent): (Gets, Agent),
    places: &Places,
) -> Result<(), Failure> {
    let (be, give) = match gets {
        Gets::Protection => (" be", "protect it with {}"),
        Gets::Tools => ("", "give them to it with {}"),
    };
    match setup::standing(gets, agent, places)? {
        Standing::Whole => {
            if let Some(report) = switched_off(gets, agent, places) {
                return Err(report.into());
            }
            say(session, &format!("{}\n", is(gets, agent)));
            reply(session, (gets, agent), true, None, (&[], &[]));
            Ok(())
        }
        Standing::Part => Err(
            Report::refused(format!("{} as it should{be}", is_not(gets, agent)))
                .because("a part of what it needs is missing, or is of another version")
                .next_call("bring it up to date with {}", [init(gets, agent, places)])
                .into(),
        ),
        Standing::Absent => Err(Report::refused(is_not(gets, agent))
            .next_call(give, [init(gets, agent, places)])
            .into()),
    }
}

fn init(gets: Gets, agent: Agent, places: &Places) -> Call {
    let mut words = vec![agent.as_str()];
    words.extend(options(gets, places));
    Call::of("init").typed(Typed::default().and(&words))
}

/// Takes the protection away: by undoing what put it there, or, where others have written since, by taking ours out.
fn remove(
    session: &mut Session,
    (gets, agent): (Gets, Agent),
    places: &Places,
    is_dry_run: bool,
) -> Result<(), Failure> {
    let planned = setup::removed(gets, agent, places, reader(is_dry_run))?;
    if planned.iter().all(Planned::is_done) {
        let was_not = match gets {
            Gets::Protection => "was not protected",
            Gets::Tools => "did not have Backout's tools",
        };
        say(session, &format!("{} {was_not}\n", agent.title()));
        reply(session, (gets, agent), false, None, (&[], &[]));
        return Ok(());
    }
    if is_dry_run {
        preview(session, &planned);
        reply(session, (gets, agent), true, None, (&planned, &[]));
        return not_written(&planned);
    }
    if !undo_init(session, (gets, agent), &planned)? {
        carry_out(session, (gets, agent), &planned)?;
    }
    write_own(&planned)?;
    let title = agent.title();
    let gone = match gets {
        Gets::Protection => "is no longer protected",
        Gets::Tools => "no longer has Backout's tools",
    };
    say(session, &format!("{title} {gone}\n"));
    reply(session, (gets, agent), false, None, (&planned, &[]));
    Ok(())
}

/// Undoes the operation that protected an agent, if what it wrote is still there as it was.
fn undo_init(
    session: &mut Session,
    got: (Gets, Agent),
    planned: &[Planned],
) -> Result<bool, Failure> {
    let engine = engine_for(session, got)?;
    let mut ids = Vec::new();
    for planned in planned.iter().filter(|it| !it.is_own && !it.is_done()) {
        let Some(id) = newest(&engine, &planned.path)? else {
            return Ok(false);
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let references = ids.iter().map(|id| OperationRef::Prefix(id.to_string()));
    let what = UndoWhat::Operations(references.collect());
    Ok(!ids.is_empty() && engine.undo(&what, &UndoOptions::default()).is_ok())
}

/// Finds the last operation in effect that protected an agent by writing this file.
fn newest(engine: &Engine, path: &Path) -> Result<Option<OperationId>, Failure> {
    let Ok(path) = TargetPath::new(path) else {
        return Ok(None);
    };
    let filter = Filter {
        agent: engine.context().agent.clone(),
        at: Some(Target::node(path).key().clone()),
        ..Filter::default()
    };
    let operations = engine.store().operations(&filter);
    let operations = operations.map_err(backout_engine::EngineError::from)?;
    let mut operations = operations.into_iter();
    let found = operations.find(|it| it.undoes.is_none() && it.status == Status::Committed);
    Ok(found.map(|operation| operation.id))
}

fn engine_for(session: &Session, (gets, agent): (Gets, Agent)) -> Result<Engine, Failure> {
    // What gave an agent the one is not undone to take the other away.
    let name: Result<AgentId, _> = match gets {
        Gets::Protection => format!("init/{agent}"),
        Gets::Tools => format!("init/{agent}/mcp"),
    }
    .parse();
    let engine = session.engine()?;
    let context = engine.context().clone();
    Ok(engine.for_caller(Context {
        agent: name.ok(),
        ..context
    }))
}

/// Writes what is planned: files of others as one operation, our own beside it. Gives the operation.
fn carry_out(
    session: &mut Session,
    got: (Gets, Agent),
    planned: &[Planned],
) -> Result<Option<OperationId>, Failure> {
    write_own(planned)?;
    let mut requests = Vec::new();
    for planned in planned.iter().filter(|it| !it.is_own && !it.is_done()) {
        // Somebody may have written it since it was shown.
        if setup::settings_text(&planned.path)? != planned.before {
            let path = planned.path.display();
            let report = Report::refused(format!("`{path}` was not touched"));
            let report = report.because("somebody changed it a moment ago");
            return Err(report.next("do it again").into());
        }
        requests.push(request(planned));
    }
    if requests.is_empty() {
        return Ok(None);
    }
    let engine = engine_for(session, got)?;
    let request = all_or_nothing(requests).into();
    match session.execute(&engine, Command::Write { request })? {
        Reply::Finished(finished) => Ok(finished.id),
        _ => Ok(None),
    }
}

fn request(planned: &Planned) -> FileRequest {
    match &planned.after {
        Some(text) => FileRequest::Write {
            path: planned.path.clone(),
            source: Source::Bytes(text.clone().into_bytes()),
            expect: if planned.before.is_some() {
                Expect::Existing
            } else {
                Expect::New
            },
            parents: true,
            mode: planned.is_executable.then_some(0o755),
        },
        None => FileRequest::Remove {
            path: planned.path.clone(),
            recursive: false,
        },
    }
}

/// Writes the files in our own state directory.
fn write_own(planned: &[Planned]) -> Result<(), Failure> {
    for planned in planned.iter().filter(|it| it.is_own && !it.is_done()) {
        let path = &planned.path;
        let written = match &planned.after {
            Some(text) => write_script(path, text, planned.is_executable),
            None => match std::fs::remove_file(path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            },
        };
        written.map_err(|error| {
            Report::refused(format!("`{}` could not be written", path.display())).because(error)
        })?;
    }
    Ok(())
}

/// Puts a script in its place at once: an agent may be about to run it.
fn write_script(path: &Path, text: &str, is_executable: bool) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let temporary = path.with_extension("new");
    std::fs::write(&temporary, text)?;
    let mode = if is_executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(mode))?;
    std::fs::rename(temporary, path)
}

/// Shows what would change.
fn preview(session: &mut Session, planned: &[Planned]) {
    if session.ui.is_json() {
        return;
    }
    if planned.iter().all(Planned::is_done) {
        say(session, "nothing would change\n");
        return;
    }
    for planned in planned.iter().filter(|planned| !planned.is_done()) {
        let name = planned.path.display().to_string();
        let before = planned.before.as_deref().unwrap_or_default();
        let after = planned.after.as_deref().unwrap_or_default();
        let shown = text::unified(before.as_bytes(), after.as_bytes(), &name, &name, 3);
        session.ui.print(&shown);
    }
}

/// Adds the trust that Codex wants, to the config that is planned.
fn add_trust(agent: Agent, planned: &mut [Planned]) -> Result<(), Failure> {
    if agent != Agent::Codex {
        let report = Report::usage(format!("{} asks for no trust", agent.title()));
        return Err(report.next("leave `--trust` out").into());
    }
    let ends = |name: &str| planned.iter().position(|it| it.path.ends_with(name));
    let (Some(hooks), Some(config)) = (ends("hooks.json"), ends("config.toml")) else {
        return Ok(());
    };
    let broken = |error: &dyn std::error::Error| {
        Report::refused("the trust could not be noted").because(error)
    };
    let (Some(hooks), Some(config)) = (planned.get(hooks).cloned(), planned.get_mut(config)) else {
        return Ok(());
    };
    let trusted = trust(&hooks.path, hooks.after.as_deref().unwrap_or_default());
    let mut text = config.after.clone().unwrap_or_default();
    for trust in trusted.map_err(|error| broken(&error))? {
        let value = NewValue::Typed(Value::Text(trust.hash));
        let document = Document::parse(Format::Toml, &text).map_err(|error| broken(&error))?;
        let edited = document.set(&trust.key, &value);
        text = edited.map_err(|error| broken(&error))?.text;
    }
    config.after = Some(text);
    Ok(())
}
