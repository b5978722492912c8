//! What protects an agent, where it goes, and what is there now.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use backout_agents::Agent;
use backout_agents::settings::{Generated, Keys, Places, Setup, Standing, setup, tools};
use backout_engine::Report;

use crate::env_vars;
use crate::session::Session;
use crate::state_dir::{home, state_dir};

/// A file that is to be another one, or not to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    /// The file.
    pub(crate) path: PathBuf,
    /// What is in it now; none if it is not there.
    pub(crate) before: Option<String>,
    /// What is to be in it; none if it is to go.
    pub(crate) after: Option<String>,
    /// Whether it can be run.
    pub(crate) is_executable: bool,
    /// Whether it lies in our own state directory, where no operation writes.
    pub(crate) is_own: bool,
}

impl Planned {
    /// Tells whether there is nothing to do.
    pub(crate) fn is_done(&self) -> bool {
        self.before == self.after
    }
}

/// What an agent gets of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gets {
    /// Hooks and the seam, so that its own tools are recorded.
    Protection,
    /// Our tools, beside its own.
    Tools,
}

impl Gets {
    fn setup(self, agent: Agent, places: &Places) -> Result<Setup, Report> {
        match self {
            Self::Protection => Ok(setup(agent, places)),
            Self::Tools => tools(agent, places).ok_or_else(|| {
                let title = agent.title();
                Report::refused(format!(
                    "it is not known how {title} is told of an MCP server"
                ))
                .next("name `backout mcp` in its settings yourself; see docs/mcp.md")
            }),
        }
    }
}

/// Finds where things are.
pub(crate) fn places(session: &Session, agent: Agent, is_project: bool) -> Result<Places, Report> {
    let home = home().ok_or_else(|| {
        Report::usage("it is not clear where your settings are")
            .because(format!("{} is not set", env_vars::HOME))
            .next("set it to your home directory")
    })?;
    let unknown =
        |error: io::Error| Report::refused("it is not clear where this program is").because(error);
    let program = std::env::current_exe().map_err(unknown)?;
    let here = std::env::current_dir().map_err(unknown)?;
    let given = session.global.state_dir.as_deref();
    let state = std::path::absolute(state_dir(given)?).map_err(unknown)?;
    let is_named = given.is_some() || std::env::var_os(env_vars::STATE_DIR).is_some();
    let config = match agent {
        Agent::ClaudeCode => std::env::var_os("CLAUDE_CONFIG_DIR"),
        Agent::Codex => std::env::var_os("CODEX_HOME"),
        Agent::OpenCode => std::env::var_os("OPENCODE_CONFIG_DIR"),
        Agent::Copilot => std::env::var_os("COPILOT_HOME"),
        Agent::Gemini | Agent::Qwen | Agent::Cline | Agent::Cursor => None,
    };
    Ok(Places {
        home,
        project: is_project.then_some(here),
        program,
        own: state.join("agents").join(agent.as_str()),
        state_dir: is_named.then_some(state),
        config: config.map(PathBuf::from).filter(|path| path.is_absolute()),
    })
}

/// How a settings file is read.
pub(crate) type Read = fn(&Path) -> Result<Option<String>, Report>;

/// Says what has to change so that an agent is protected.
pub(crate) fn added(
    gets: Gets,
    agent: Agent,
    places: &Places,
    read: Read,
) -> Result<(Setup, Vec<Planned>), Report> {
    let setup = gets.setup(agent, places)?;
    let mut planned = Vec::new();
    for keys in &setup.keys {
        let before = read(&keys.file)?;
        let after = keys.added(before.as_deref().unwrap_or_default());
        let after = after.map_err(|error| not_edited(keys, &error))?;
        planned.push(Planned {
            path: keys.file.clone(),
            before,
            after: Some(after),
            is_executable: false,
            is_own: false,
        });
    }
    for file in &setup.files {
        planned.push(Planned {
            before: read(&file.path)?,
            after: Some(file.text.clone()),
            ..of_file(file, places)
        });
    }
    Ok((setup, planned))
}

/// Says what has to change so that nothing of ours is left in the settings. The scripts in our own directory stay: another
/// project, or the settings of the user, may name them, and a shell whose script is gone runs unrecorded without a word.
pub(crate) fn removed(
    gets: Gets,
    agent: Agent,
    places: &Places,
    read: Read,
) -> Result<Vec<Planned>, Report> {
    let setup = gets.setup(agent, places)?;
    let mut planned = Vec::new();
    for keys in &setup.keys {
        let before = read(&keys.file)?;
        let after = match &before {
            Some(text) => Some(
                keys.removed(text)
                    .map_err(|error| not_edited(keys, &error))?,
            ),
            None => None,
        };
        planned.push(Planned {
            path: keys.file.clone(),
            before,
            after,
            is_executable: false,
            is_own: false,
        });
    }
    for file in &setup.files {
        let planned_file = of_file(file, places);
        if !planned_file.is_own {
            planned.push(Planned {
                before: read(&file.path)?,
                after: None,
                ..planned_file
            });
        }
    }
    Ok(planned)
}

/// Tells how much of what protects an agent is there.
pub(crate) fn standing(gets: Gets, agent: Agent, places: &Places) -> Result<Standing, Report> {
    let setup = gets.setup(agent, places)?;
    let mut found = Vec::new();
    for keys in &setup.keys {
        let text = settings_text(&keys.file)?.unwrap_or_default();
        let standing = if text.trim().is_empty() {
            Standing::Absent
        } else {
            keys.standing(&text)
                .map_err(|error| not_edited(keys, &error))?
        };
        found.push(standing);
    }
    // The scripts in our own directory protect nobody whose settings do not name them.
    let mut own = Vec::new();
    for file in &setup.files {
        let text = settings_text(&file.path)?;
        let standing = match text {
            None => Standing::Absent,
            Some(text) if text == file.text => Standing::Whole,
            Some(_) => Standing::Part,
        };
        let is_own = of_file(file, places).is_own;
        if is_own { &mut own } else { &mut found }.push(standing);
    }
    let is_all = |standings: &[Standing], wanted| standings.iter().all(|it| *it == wanted);
    Ok(
        if is_all(&found, Standing::Whole) && is_all(&own, Standing::Whole) {
            Standing::Whole
        } else if is_all(&found, Standing::Absent)
            && (!found.is_empty() || is_all(&own, Standing::Absent))
        {
            Standing::Absent
        } else {
            Standing::Part
        },
    )
}

fn of_file(file: &Generated, places: &Places) -> Planned {
    Planned {
        path: file.path.clone(),
        before: None,
        after: None,
        is_executable: file.is_executable,
        is_own: file.path.starts_with(&places.own),
    }
}

/// Reads a settings file that we may write as well; none if it is not there.
pub(crate) fn settings_text(path: &Path) -> Result<Option<String>, Report> {
    writable_text(
        path,
        "see the lines with `-n` and put them where you keep your settings",
    )
}

/// Reads a settings file for somebody who wants to see the lines: one that we may not write, too.
pub(crate) fn text_to_show(path: &Path) -> Result<Option<String>, Report> {
    settings_text(path).or_else(|refused| match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(_) => Err(refused),
    })
}

/// Says why what was shown could not be written.
pub(crate) fn obstacle(planned: &[Planned]) -> Option<Report> {
    let mut others = planned.iter().filter(|it| !it.is_own && !it.is_done());
    let by_hand = "put the lines above where you keep your settings";
    others.find_map(|it| writable_text(&it.path, by_hand).err())
}

fn writable_text(path: &Path, by_hand: &str) -> Result<Option<String>, Report> {
    let shown = path.display();
    let refused = || Report::refused(format!("`{shown}` was not touched"));
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused().because(error)),
    };
    if found.is_symlink() {
        let to = std::fs::read_link(path).unwrap_or_default();
        let why = format!("it is a symbolic link to `{}`", to.display());
        return Err(refused().because(why).next(by_hand));
    }
    if !found.is_file() {
        return Err(refused().because("it is no file"));
    }
    if found.permissions().mode() & 0o222 == 0 {
        let why = "it is read-only: somebody wants it to stay as it is";
        return Err(refused().because(why).next(format!(
            "make it writable with `chmod u+w {shown}`, or {by_hand}"
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| refused().because(error))?;
    let text = String::from_utf8(bytes).map_err(|_| refused().because("it is no UTF-8 text"))?;
    Ok(Some(text))
}

fn not_edited(keys: &Keys, error: &dyn std::error::Error) -> Report {
    Report::refused(format!("`{}` was not touched", keys.file.display()))
        .because_of_causes(error)
        .because(error)
        .next("put it right first, or see the lines with `-n` in an empty home and put them there yourself")
}
