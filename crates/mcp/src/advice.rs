//! Advice in the words of tools: the engine names commands of the command line, and an agent that speaks MCP has none.
//!
//! Each clause of a sentence is taken by itself. A command that a tool does becomes that tool with its arguments. What no tool does is left to a
//! person, with the command. A clause that only names an option of the command line is left out, if another clause helps.

use serde_json::{Value, json};

/// What stands before advice that an agent cannot follow itself.
const PERSON: &str = "only a person can do this, ask for it: ";

/// Rewords the advice in an error, as programs read it.
pub(crate) fn reword(report: &mut Value) {
    let Some(next) = report.get_mut("next").and_then(Value::as_array_mut) else {
        return;
    };
    let texts = next.iter().filter_map(|it| it.get("text")?.as_str());
    let texts: Vec<String> = texts.flat_map(for_tools).collect();
    *next = texts.iter().map(|text| json!({"text": text})).collect();
}

/// Rewords one sentence of advice. It may become two: what the agent can do, and what a person can.
pub(crate) fn for_tools(sentence: &str) -> Vec<String> {
    let (mut own, mut persons, mut options) = (Vec::new(), Vec::new(), Vec::new());
    for clause in clauses(sentence) {
        match worded(&clause) {
            Worded::Own(text) => own.push(text),
            Worded::Command => persons.push(clause),
            Worded::Option => options.push(clause),
        }
    }
    if own.is_empty() && persons.is_empty() {
        persons = options;
    }
    let mut all = Vec::new();
    if !own.is_empty() {
        all.push(own.join(", or "));
    }
    if !persons.is_empty() {
        all.push(format!("{PERSON}{}", persons.join(", or ")));
    }
    all
}

/// Takes a sentence apart where it offers something else, but not inside of what is quoted.
fn clauses(sentence: &str) -> Vec<String> {
    let (mut all, mut clause) = (Vec::new(), String::new());
    for (at, piece) in sentence.split('`').enumerate() {
        if at > 0 {
            clause.push('`');
        }
        let mut rest = piece;
        let is_quoted = at % 2 == 1;
        loop {
            let ends = [", or ", "; or ", "; "].map(|end| rest.find(end).map(|at| (at, end)));
            let first = ends.into_iter().flatten().min_by_key(|(at, _)| *at);
            let Some((end_at, end)) = first.filter(|_| !is_quoted) else {
                break;
            };
            let (before, after) = rest.split_at(end_at);
            clause.push_str(before);
            all.push(std::mem::take(&mut clause));
            rest = after.strip_prefix(end).unwrap_or_default();
        }
        clause.push_str(rest);
    }
    all.push(clause);
    all.retain(|clause| !clause.trim().is_empty());
    all
}

/// What became of a clause.
enum Worded {
    /// The agent can do it.
    Own(String),
    /// It names a command that no tool does.
    Command,
    /// It names an option that no tool has.
    Option,
}

fn worded(clause: &str) -> Worded {
    // Some of our own advice says already whom to ask.
    if clause.contains("a person") || clause.contains("the person") {
        return Worded::Own(clause.to_owned());
    }
    let mut text = String::new();
    for (at, piece) in clause.split('`').enumerate() {
        if at % 2 == 0 {
            text.push_str(piece);
        } else if let Some(line) = piece.strip_prefix("backout ") {
            match tool(&words(line)) {
                Some(tool) => text.push_str(&tool),
                None => return Worded::Command,
            }
        } else if piece.starts_with("--") || piece == "-r" {
            match option(piece) {
                Some(argument) => text.push_str(&argument),
                None => return Worded::Option,
            }
        } else {
            text.extend(["`", piece, "`"]);
        }
    }
    Worded::Own(text)
}

/// Words a call as the tool that does the same; none if no tool does.
fn tool(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (command, rest) = words.split_first()?;
    match (*command, rest) {
        ("undo", rest) => undo(rest),
        ("redo", rest) => {
            let Undo {
                operations,
                on_conflict,
                paths,
                only,
                is_preview,
            } = Undo::of(rest)?;
            let fits = paths.is_empty() && only.is_empty() && !is_preview;
            fits.then(|| {
                named(
                    "redo",
                    &[("operations", operations), ("on_conflict", on_conflict)],
                )
            })
        }
        ("rollback", ["--to", name]) => Some(named("undo", &[("checkpoint", json!(name))])),
        ("rollback", [task]) if is_name(task) => Some(task_of("rollback", task)),
        ("rollback", [task, "--merge"]) if is_name(task) => Some(named(
            "undo",
            &[("task", json!(task)), ("on_conflict", json!("merge"))],
        )),
        ("commit", [task]) if is_name(task) => Some(task_of("commit", task)),
        ("task", ["begin", task]) if is_name(task) => Some(task_of("begin", task)),
        ("task", ["list"]) => Some(named("task", &[("act", json!("list"))])),
        ("show", [id]) if is_name(id) => Some(named("show", &[("operation", json!(id))])),
        ("diff", [id]) if is_name(id) => Some(named("diff", &[("operation", json!(id))])),
        ("log", []) => Some(named("log", &[])),
        ("log", ["--task", task]) => Some(named("log", &[("task", json!(task))])),
        ("log", [path]) if is_name(path) => Some(named("log", &[("path", json!(path))])),
        ("drift", []) => Some(named("drift", &[])),
        ("drift", [path]) if path.starts_with('/') => {
            Some(named("drift", &[("path", json!(path))]))
        }
        ("checkpoint", [name]) if is_name(name) => {
            Some(named("checkpoint", &[("name", json!(name))]))
        }
        ("resume", [task]) if is_name(task) => Some(named("resume", &[("task", json!(task))])),
        ("stage", ["list"]) => Some(named("stage", &[("act", json!("list"))])),
        ("graph", ["show" | "export", ..]) => Some(named("graph", &[])),
        ("try", ["apply" | "discard", ..]) => try_end(&words),
        ("write" | "edit" | "set" | "run" | "sql" | "http" | "try", []) => {
            Some(named(command, &[]))
        }
        ("unset", []) => Some(named("set", &[])),
        ("rm", []) => Some(named("delete", &[])),
        ("mv", []) => Some(named("move", &[])),
        ("sql", ["--create"]) => Some(named("sql", &[("create", json!(true))])),
        _ => None,
    }
}

fn task_of(act: &str, task: &str) -> String {
    named("task", &[("act", json!(act)), ("name", json!(task))])
}

fn try_end(words: &[&str]) -> Option<String> {
    let [_, verdict, trial] = words else {
        return None;
    };
    let arguments = [("trial", json!(trial)), ("verdict", json!(verdict))];
    Some(named("try_end", &arguments))
}

/// What an undo is asked.
struct Undo {
    operations: Value,
    paths: Vec<String>,
    only: Vec<String>,
    on_conflict: Value,
    is_preview: bool,
}

impl Undo {
    /// None if it asks for what no tool does, such as to overwrite.
    fn of(words: &[&str]) -> Option<Self> {
        let mut operations: Vec<&str> = Vec::new();
        let (mut paths, mut only) = (Vec::new(), Vec::new());
        let (mut on_conflict, mut is_preview) = (Value::Null, false);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--merge" => on_conflict = json!("merge"),
                "--partial" => on_conflict = json!("partial"),
                // The preview shows the differences by itself.
                "-n" | "--dry-run" | "--diff" => is_preview = true,
                "--only" => only.push((*words.next()?).to_owned()),
                option if option.starts_with('-') || option.starts_with('@') => return None,
                path if path.contains(['/', '.']) => paths.push(path.to_owned()),
                id => operations.push(id),
            }
        }
        Some(Self {
            operations: if operations.is_empty() {
                Value::Null
            } else {
                json!(operations)
            },
            paths,
            only,
            on_conflict,
            is_preview,
        })
    }
}

fn undo(words: &[&str]) -> Option<String> {
    let Undo {
        operations,
        paths,
        only,
        on_conflict,
        is_preview,
    } = Undo::of(words)?;
    let list = |list: Vec<String>| {
        if list.is_empty() {
            Value::Null
        } else {
            json!(list)
        }
    };
    let name = if is_preview { "preview_undo" } else { "undo" };
    let arguments = [
        ("operations", operations),
        ("paths", list(paths)),
        ("only", list(only)),
        ("on_conflict", on_conflict),
    ];
    Some(named(name, &arguments))
}

/// Words an option as the argument that means the same.
fn option(text: &str) -> Option<String> {
    match text.split_once(' ') {
        None => match text {
            "--all" => Some("`all`: true".to_owned()),
            "-r" => Some("`recursive`: true".to_owned()),
            "--only" => Some("`only`".to_owned()),
            "--task" => Some("`task`".to_owned()),
            _ => None,
        },
        Some(("--task", task)) => Some(format!("`task`: {}", json!(task))),
        Some(_) => None,
    }
}

fn is_name(word: &str) -> bool {
    !word.starts_with(['-', '@'])
}

/// Names a tool with its arguments; those that are null are left out.
fn named(tool: &str, arguments: &[(&str, Value)]) -> String {
    let given = arguments.iter().filter(|(_, value)| !value.is_null());
    let given: Vec<String> = given
        .map(|(name, value)| format!("`{name}`: {value}"))
        .collect();
    match given.join(", ") {
        given if given.is_empty() => format!("the tool `{tool}`"),
        given => format!("the tool `{tool}` ({given})"),
    }
}

/// Splits a line as a shell does: the engine quotes with single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut is_quoted, mut is_word) = (Vec::new(), String::new(), false, false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                is_quoted = !is_quoted;
                is_word = true;
            }
            '\\' if !is_quoted => word.extend(letters.next()),
            ' ' if !is_quoted => {
                if is_word || !word.is_empty() {
                    all.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            letter => word.push(letter),
        }
    }
    if is_word || !word.is_empty() {
        all.push(word);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(sentence: &str, wanted: &[&str]) {
        assert_eq!(for_tools(sentence), wanted);
    }

    #[test]
    fn a_command_that_a_tool_does_becomes_the_tool() {
        reads(
            "see the difference with `backout diff 12345678`",
            &["see the difference with the tool `diff` (`operation`: \"12345678\")"],
        );
        reads(
            "undo it with `backout undo 12345678 9abcdef0 --merge`",
            &[
                "undo it with the tool `undo` (`operations`: [\"12345678\",\"9abcdef0\"], `on_conflict`: \"merge\")",
            ],
        );
        reads(
            "see which operations wrote it with `backout log '/w/a b, or c'`",
            &["see which operations wrote it with the tool `log` (`path`: \"/w/a b, or c\")"],
        );
        reads(
            "take `backout undo -n` first",
            &["take the tool `preview_undo` first"],
        );
        reads(
            "end it with `backout commit t` or `backout rollback t`",
            &[
                "end it with the tool `task` (`act`: \"commit\", `name`: \"t\") or the tool `task` (`act`: \"rollback\", `name`: \"t\")",
            ],
        );
        reads(
            "return with `backout rollback --to before`",
            &["return with the tool `undo` (`checkpoint`: \"before\")"],
        );
    }

    #[test]
    fn what_no_tool_does_is_a_persons() {
        reads(
            "check the store with `backout doctor`",
            &["only a person can do this, ask for it: check the store with `backout doctor`"],
        );
        reads(
            "take it back with `backout undo 12345678`, or keep it with `backout recover --keep 12345678`",
            &[
                "take it back with the tool `undo` (`operations`: [\"12345678\"])",
                "only a person can do this, ask for it: keep it with `backout recover --keep 12345678`",
            ],
        );
        reads(
            "overwrite it with `backout undo 12345678 --force`",
            &[
                "only a person can do this, ask for it: overwrite it with `backout undo 12345678 --force`",
            ],
        );
    }

    #[test]
    fn options_of_the_command_line_are_arguments_or_are_left_out() {
        reads(
            "give more of the surrounding text, or `--all`, or `--nth N`",
            &["give more of the surrounding text, or `all`: true"],
        );
        reads(
            "write into it with `--task t`",
            &["write into it with `task`: \"t\""],
        );
        reads(
            "let it happen with `--force`",
            &["only a person can do this, ask for it: let it happen with `--force`"],
        );
    }

    #[test]
    fn what_names_no_command_stays() {
        reads("wait, or name `path`", &["wait, or name `path`"]);
        reads("", &[]);
        let asks = "ask a person to enroll it with `backout db enroll`, and give its name";
        reads(asks, &[asks]);
    }

    #[test]
    fn programs_read_the_same() {
        let mut report = json!({"next": [{"text": "see `backout show 12345678`", "calls": [{"command": "show"}]}]});
        reword(&mut report);
        assert_eq!(
            report,
            json!({"next": [{"text": "see the tool `show` (`operation`: \"12345678\")"}]})
        );
    }
}
