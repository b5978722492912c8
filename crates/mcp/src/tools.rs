//! The tools: what each is called, what it says of itself, and what it answers.

use std::sync::{Arc, LazyLock};

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::Value;

use crate::arguments::{
    Checkpoint, Declare, Delete, Differs, Drift, Edit, Graph, Http, Log, Move, Named, Redo, Resume,
    Run, Set, Sql, Stage, Task, Try, TryEnd, Undo, Write,
};
use crate::schema;

/// One tool.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    hints: Hints,
    input: fn() -> Arc<JsonObject>,
    /// What it answers, as the schema of replies calls them.
    pub(crate) replies: &'static [&'static str],
}

/// What a client may believe of a tool.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has these four")]
struct Hints {
    reads_only: bool,
    destroys: bool,
    repeats: bool,
    is_open: bool,
}

/// It changes nothing.
const LOOKS: Hints = Hints {
    reads_only: true,
    destroys: false,
    repeats: true,
    is_open: false,
};

/// It may overwrite or remove what is there, which can be taken back.
const WRITES: Hints = Hints {
    reads_only: false,
    destroys: true,
    repeats: false,
    is_open: false,
};

/// It only adds.
const ADDS: Hints = Hints {
    destroys: false,
    ..WRITES
};

/// The same call twice is as good as once.
const SETTLES: Hints = Hints {
    repeats: true,
    ..WRITES
};

/// It reaches what is not on this machine, or anything.
const REACHES: Hints = Hints {
    is_open: true,
    ..WRITES
};

/// All tools, in the order of the list.
pub(crate) const ALL: &[Kind] = &[
    Kind {
        name: "write",
        title: "Write a file",
        description: "Write a file's whole content, or add to its end. What was there is kept first. Missing directories are made.",
        hints: WRITES,
        input: input::<Write>,
        replies: &["finished"],
    },
    Kind {
        name: "edit",
        title: "Edit a file",
        description: "Replace a part of a file, or apply a unified diff to several. What was there is kept first.",
        hints: WRITES,
        input: input::<Edit>,
        replies: &["finished"],
    },
    Kind {
        name: "delete",
        title: "Delete files",
        description: "Remove files, links and directories. They are kept, and `undo` brings them back.",
        hints: WRITES,
        input: input::<Delete>,
        replies: &["finished"],
    },
    Kind {
        name: "move",
        title: "Move a file",
        description: "Move or rename a file or a directory.",
        hints: WRITES,
        input: input::<Move>,
        replies: &["finished"],
    },
    Kind {
        name: "set",
        title: "Set a key of a config file",
        description: "Give one key of a JSON, YAML, TOML, INI or .env file a value, or take it away. Comments and layout stay. Its undo puts back exactly this key.",
        hints: SETTLES,
        input: input::<Set>,
        replies: &["finished"],
    },
    Kind {
        name: "run",
        title: "Run a command",
        description: "Run a shell command so that everything it does to files is one operation that `undo` takes back. It may write in your directories and in those for temporary files. You get its exit code and the end of its output. What it does over the network is not taken back.",
        hints: REACHES,
        input: input::<Run>,
        replies: &["ran"],
    },
    Kind {
        name: "try",
        title: "Try a command",
        description: "Run a shell command in a layer above the real files and see what it would change. Then decide with `try_end`. Nothing in files is real until you apply it.",
        hints: Hints {
            is_open: true,
            ..ADDS
        },
        input: input::<Try>,
        replies: &["trial"],
    },
    Kind {
        name: "try_end",
        title: "Apply or discard a trial",
        description: "Make what a command changed under `try` real, as one operation, or let it go.",
        hints: WRITES,
        input: input::<TryEnd>,
        replies: &["finished", "discarded"],
    },
    Kind {
        name: "sql",
        title: "Run SQL",
        description: "Run SQL in an SQLite file or an enrolled PostgreSQL or MariaDB database, with an undo for every row that it changes. Statements that only read give their rows and record nothing.",
        hints: REACHES,
        input: input::<Sql>,
        replies: &["rows", "finished"],
    },
    Kind {
        name: "http",
        title: "Call a web service",
        description: "Call a web service. GET, HEAD and OPTIONS are just sent. Any other call needs a rule in backout.toml that says what takes it back; without one it is refused, or with `irreversible` waits for a person.",
        hints: REACHES,
        input: input::<Http>,
        replies: &["called", "finished"],
    },
    Kind {
        name: "task",
        title: "Group work in a task",
        description: "Begin a task and name it in other calls; then `commit` keeps all of its operations, or `rollback` takes all of them back. Only your own tasks.",
        hints: WRITES,
        input: input::<Task>,
        replies: &["task", "tasks", "committed", "undone"],
    },
    Kind {
        name: "checkpoint",
        title: "Mark a point to return to",
        description: "Mark this point, with how far you are and what you want to find again. `undo` with `checkpoint` takes back what you did since, and `resume` goes on from here if you are ended. With `keep` everything in some directories is kept, whoever writes there.",
        hints: ADDS,
        input: input::<Checkpoint>,
        replies: &["checkpoint", "workspace-kept", "checkpoint-not-due"],
    },
    Kind {
        name: "resume",
        title: "Go on where you were",
        description: "Find the newest good checkpoint of a task of yours, take back what you did after it and nobody committed, and tell where to go on: step, state, directory, variables, what was taken back and why.",
        hints: WRITES,
        input: input::<Resume>,
        replies: &["resumed"],
    },
    Kind {
        name: "stage",
        title: "Begin or end a stage",
        description: "Begin a stage of your work, and end it. One that failed is taken back to where it began, unless the rules of this place say otherwise.",
        hints: WRITES,
        input: input::<Stage>,
        replies: &["stage", "stages"],
    },
    Kind {
        name: "declare",
        title: "Declare context, plan and steps",
        description: "Put objects that follow the MPLP v1.0.0 schemas into the project's state graph: a context, a plan with its steps, a role, a trace. Each is a new version; say with `version` which one you saw when you change one.",
        hints: ADDS,
        input: input::<Declare>,
        replies: &["graph-updated"],
    },
    Kind {
        name: "graph",
        title: "Read the project's state graph",
        description: "Read all objects of the project's state graph, each with its version, and what leads from one to another.",
        hints: LOOKS,
        input: input::<Graph>,
        replies: &["graph-document"],
    },
    Kind {
        name: "log",
        title: "List operations",
        description: "List what you did, newest first, with the id of each operation.",
        hints: LOOKS,
        input: input::<Log>,
        replies: &["log"],
    },
    Kind {
        name: "drift",
        title: "List what others changed",
        description: "List what you wrote and somebody else has changed since, so that you do not rely on it. Only a person decides about it.",
        hints: LOOKS,
        input: input::<Drift>,
        replies: &["drift"],
    },
    Kind {
        name: "diff",
        title: "Show what an operation changed",
        description: "Show what one operation changed, line by line.",
        hints: LOOKS,
        input: input::<Differs>,
        replies: &["diff"],
    },
    Kind {
        name: "show",
        title: "Show an operation",
        description: "Show where one operation stands: in effect, undone, refused, or waiting for a person's decision. Ask here what became of a write that had to wait.",
        hints: LOOKS,
        input: input::<Named>,
        replies: &["shown"],
    },
    Kind {
        name: "preview_undo",
        title: "Preview an undo",
        description: "Show what an undo would bring back, what stands in its way and what stays, and change nothing.",
        hints: LOOKS,
        input: input::<Undo>,
        replies: &["plan", "workspace-plan"],
    },
    Kind {
        name: "undo",
        title: "Undo your own work",
        description: "Take back operations of yours with everything of yours that was built on them. Later independent work stays. Nothing is undone if somebody else changed a target since, unless `on_conflict` says what to do. `redo` takes an undo back.",
        hints: WRITES,
        input: input::<Undo>,
        replies: &["undone", "finished"],
    },
    Kind {
        name: "redo",
        title: "Redo what you undid",
        description: "Bring back what one of your undos took back.",
        hints: WRITES,
        input: input::<Redo>,
        replies: &["undone"],
    },
];

fn input<T: schemars::JsonSchema + 'static>() -> Arc<JsonObject> {
    let mut schema = schema_for_input::<T>()
        .map(|it| (*it).clone())
        .unwrap_or_default();
    // A word that is not known must not be passed over: who asked for more would not get it and not know.
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema.remove("title");
    Arc::new(schema)
}

use rmcp::schemars;

impl Kind {
    /// Finds a tool.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// Lists the arguments that it does not know.
    pub(crate) fn unknown<'a>(&self, arguments: &'a JsonObject) -> Vec<&'a str> {
        let schema = (self.input)();
        let known = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
        let names = arguments.keys().map(String::as_str);
        names.filter(|name| !is_known(name)).collect()
    }

    fn described(&self) -> Tool {
        let Hints {
            reads_only,
            destroys,
            repeats,
            is_open,
        } = self.hints;
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(reads_only)
            .destructive(destroys)
            .idempotent(repeats)
            .open_world(is_open);
        Tool::new(self.name, self.description, (self.input)())
            .with_title(self.title)
            .with_raw_output_schema(Arc::new(schema::of(self.replies)))
            .with_annotations(annotations)
    }
}

/// Describes all tools.
pub(crate) fn list() -> Vec<Tool> {
    static LIST: LazyLock<Vec<Tool>> = LazyLock::new(|| ALL.iter().map(Kind::described).collect());
    LIST.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_says_what_it_is() {
        for tool in list() {
            assert_eq!(tool.input_schema["type"], "object");
            let arguments = tool.input_schema.get("properties");
            for (name, of) in arguments
                .and_then(|it| it.as_object())
                .into_iter()
                .flatten()
            {
                assert!(of.get("description").is_some(), "{} {name}", tool.name);
            }
        }
    }

    #[test]
    fn what_only_looks_destroys_nothing() {
        for tool in list() {
            let hints = tool.annotations.unwrap();
            if hints.read_only_hint == Some(true) {
                assert_eq!(hints.destructive_hint, Some(false), "{}", tool.name);
            }
        }
        let of = |name: &str| Kind::named(name).unwrap().described().annotations.unwrap();
        assert_eq!(of("delete").destructive_hint, Some(true));
        assert_eq!(of("log").read_only_hint, Some(true));
        assert_eq!(of("http").open_world_hint, Some(true));
    }
}
