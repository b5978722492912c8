//! What a call of a tool comes to: something that the engine is asked, or a process of this program.
//!
//! Whatever names a path, a task or an operation is checked against the caller here, before anything is asked.

mod files;
mod look;
mod programs;
mod state;
mod take_back;

pub(crate) use look::{diff_now, show_now};

use backout_engine::{
    Command, Context, Engine, EngineError, Expect, GraphCommand, Reply, Report, TaskCommand,
    UndoOptions, UndoReport, UndoWhat,
};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::{Connection, Declare, Task, TaskAct};
use crate::child::Start;
use crate::{Caller, own};

/// Something that was not done, or not wholly.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Why.
    pub(crate) report: Report,
    /// What was done of it all the same.
    pub(crate) done: Option<Box<UndoReport>>,
}

impl From<Report> for Failed {
    fn from(report: Report) -> Self {
        Self { report, done: None }
    }
}

impl From<EngineError> for Failed {
    fn from(error: EngineError) -> Self {
        let done = match &error {
            EngineError::Partial(report) | EngineError::Stopped(report) => Some((**report).clone()),
            _ => None,
        };
        Self {
            report: Report::from(error),
            done: done.map(Box::new),
        }
    }
}

/// What the engine is asked, by somebody who has it open.
pub(crate) type Asked = Box<dyn FnOnce(&Engine, &Caller) -> Result<Reply, Failed> + Send>;

/// What a call comes to.
pub(crate) enum Work {
    /// The engine is asked. The flag says whether what others did elsewhere is taken up first.
    Engine(Asked, bool),
    /// A process is started.
    Process(Box<Start>),
}

/// Finds out what a call comes to.
pub(crate) fn work(tool: &str, arguments: JsonObject, caller: &Caller) -> Result<Work, Report> {
    match tool {
        "write" => files::write(read(arguments)?, caller),
        "edit" => files::edit(read(arguments)?, caller),
        "delete" => files::delete(read(arguments)?, caller),
        "move" => files::moved(read(arguments)?, caller),
        "set" => files::set(read(arguments)?, caller),
        "run" => programs::run(read(arguments)?, caller),
        "try" => programs::trial(read(arguments)?, caller),
        "try_end" => programs::trial_end(read(arguments)?, caller),
        "sql" => programs::sql(read(arguments)?, caller),
        "http" => programs::http(read(arguments)?, caller),
        "task" => Ok(task(read(arguments)?)),
        "declare" => Ok(declare(read(arguments)?)),
        "graph" => Ok(graph()),
        "checkpoint" => state::checkpoint(read(arguments)?, caller),
        "resume" => state::resume(read(arguments)?),
        "stage" => state::stage(read(arguments)?),
        "log" => look::log(read(arguments)?, caller),
        "drift" => look::drift(&read(arguments)?, caller),
        "diff" => Ok(look::diff(read(arguments)?)),
        "show" => Ok(look::show(read(arguments)?)),
        "preview_undo" => take_back::undo(read(arguments)?, caller, true),
        "undo" => take_back::undo(read(arguments)?, caller, false),
        "redo" => Ok(take_back::redo(read(arguments)?)),
        _ => Err(Report::usage(format!("there is no tool `{tool}`"))),
    }
}

fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Report> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Report::usage("the arguments are not as the tool wants them").because(error)
    })
}

/// Makes work of the engine.
fn asked(ask: impl FnOnce(&Engine, &Caller) -> Result<Reply, Failed> + Send + 'static) -> Work {
    Work::Engine(Box::new(ask), false)
}

/// The same, for what is about the past: others may have written where nobody tells us.
fn asked_of_the_past(
    ask: impl FnOnce(&Engine, &Caller) -> Result<Reply, Failed> + Send + 'static,
) -> Work {
    Work::Engine(Box::new(ask), true)
}

/// Gives the engine in the caller's hands, in this connection.
fn connected(engine: &Engine, caller: &Caller, connection: &Connection) -> Result<Engine, Report> {
    let task = match &connection.task {
        Some(name) => Some(own::task(engine, caller, name)?),
        None => None,
    };
    let key = connection.once.as_deref().map(|key| {
        // Two agents may have the same idea of a key.
        let key = format!("{}/{key}", caller.agent);
        key.parse()
            .map_err(|error| Report::usage(format!("`{key}` cannot be a key: {error}")))
    });
    let context = Context {
        task,
        key: key.transpose()?,
        ..engine.context().clone()
    };
    Ok(engine.for_caller(context))
}

/// Takes objects into the project's state graph. Its history is not the agent's to edit: nothing here removes or brings back.
fn declare(arguments: Declare) -> Work {
    asked(move |engine: &Engine, caller: &Caller| {
        let connection = Connection {
            task: arguments.task,
            once: None,
        };
        let engine = connected(engine, caller, &connection)?;
        let expect = arguments.version.map_or(Expect::Unsaid, Expect::Version);
        let document = match arguments.objects {
            Value::Array(objects) => Value::Array(objects),
            object => Value::Array(vec![object]),
        };
        let command = GraphCommand::Import {
            document,
            expect,
            is_dry_run: false,
        };
        Ok(engine.execute(Command::Graph(command))?)
    })
}

fn graph() -> Work {
    asked(|engine: &Engine, _: &Caller| {
        let command = GraphCommand::Export { at: None };
        Ok(engine.execute(Command::Graph(command))?)
    })
}

fn task(arguments: Task) -> Work {
    let is_back = arguments.act == TaskAct::Rollback;
    let ask = move |engine: &Engine, caller: &Caller| {
        let named = |name: Option<&String>| {
            let name = name.ok_or_else(|| Report::usage("say which task, with `name`"))?;
            own::task(engine, caller, name)
        };
        let name = arguments.name.as_ref();
        match arguments.act {
            TaskAct::Begin => {
                let id = name.map(|name| {
                    let wrong =
                        |error| Report::usage(format!("`{name}` is no name of a task: {error}"));
                    name.parse().map_err(wrong)
                });
                let id = id.transpose()?;
                let begin = TaskCommand::Begin {
                    id,
                    owner_pid: None,
                };
                Ok(engine.execute(Command::Task(begin))?)
            }
            TaskAct::Commit => {
                let id = Some(named(name)?);
                Ok(engine.execute(Command::Task(TaskCommand::Commit { id }))?)
            }
            TaskAct::Rollback => {
                let what = UndoWhat::Task(named(name)?);
                take_back::carry_out(engine, caller, what, UndoOptions::default())
            }
            TaskAct::List => match engine.execute(Command::Task(TaskCommand::List))? {
                Reply::Tasks { mut tasks } => {
                    tasks.retain(|task| task.agent.as_ref() == Some(&caller.agent));
                    Ok(Reply::Tasks { tasks })
                }
                other => Ok(other),
            },
        }
    };
    if is_back {
        asked_of_the_past(ask)
    } else {
        asked(ask)
    }
}
