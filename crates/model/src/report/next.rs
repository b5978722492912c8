//! What to do next, as data: a sentence, and the calls that it names. Each surface words the calls in its own way.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use super::quoted;
use crate::{OperationId, TargetPath, TaskId, any_path};

/// Where a call stands in a sentence.
const HOLE: &str = "{}";

/// One thing to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Next {
    /// The sentence, worded for whoever reads it.
    pub text: String,
    /// The calls that it names, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    #[serde(skip)]
    template: String,
}

impl Next {
    /// Makes a sentence that names calls, one for each `{}` in it, as one would type them into a shell.
    pub fn naming<const N: usize>(template: impl Into<String>, calls: [Call; N]) -> Self {
        let template = template.into();
        let calls = Vec::from(calls);
        Self {
            text: worded(&template, &calls, &|call| format!("`{call}`")),
            calls,
            template,
        }
    }

    /// Words the calls in another way.
    #[must_use]
    pub fn worded(&self, word: impl Fn(&Call) -> String) -> Self {
        Self {
            text: worded(&self.template, &self.calls, &word),
            ..self.clone()
        }
    }
}

fn worded(template: &str, calls: &[Call], word: &dyn Fn(&Call) -> String) -> String {
    let mut text = String::new();
    let mut pieces = template.split(HOLE);
    text.push_str(pieces.next().unwrap_or_default());
    let mut calls = calls.iter();
    for piece in pieces {
        text.push_str(&calls.next().map_or_else(|| HOLE.to_owned(), word));
        text.push_str(piece);
    }
    text
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for Next {
    fn from(text: &str) -> Self {
        Self::naming(text, [])
    }
}

impl From<String> for Next {
    fn from(text: String) -> Self {
        Self::naming(text, [])
    }
}

impl From<&String> for Next {
    fn from(text: &String) -> Self {
        Self::naming(text.as_str(), [])
    }
}

/// One call of a Backout command: what to do, and to what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    command: &'static str,
    words: Vec<Word>,
}

/// One word of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    Option(&'static str),
    Operation(OperationId),
    Path(TargetPath),
    Task(TaskId),
    /// What the reader has to fill in.
    Blank(&'static str),
    /// What the reader typed himself.
    Typed(Typed),
}

/// Words that the reader typed himself: as he did, for him, and so that they mean the same from every directory, for programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typed {
    line: String,
    words: Vec<OsString>,
}

impl Typed {
    /// Adds words that mean the same everywhere.
    #[must_use]
    pub fn and(self, words: &[&str]) -> Self {
        let line: Vec<String> = words.iter().map(|word| quoted(word.as_ref())).collect();
        let words = words.iter().map(OsString::from).collect();
        self.and_so(&line.join(" "), words)
    }

    /// Adds words that mean something from where he is: as he typed them, and as they are to be typed elsewhere.
    #[must_use]
    pub fn and_so(mut self, line: &str, words: Vec<OsString>) -> Self {
        if !self.line.is_empty() {
            self.line.push(' ');
        }
        self.line.push_str(line);
        self.words.extend(words);
        self
    }
}

impl Call {
    /// Begins a call of a command.
    pub const fn of(command: &'static str) -> Self {
        Self {
            command,
            words: Vec::new(),
        }
    }

    /// Adds an option, as the command line has it, without the dashes.
    #[must_use]
    pub fn option(self, name: &'static str) -> Self {
        self.with(Word::Option(name))
    }

    /// Adds several options.
    #[must_use]
    pub fn options(self, names: &[&'static str]) -> Self {
        names.iter().fold(self, |call, name| call.option(name))
    }

    /// Says which operation.
    #[must_use]
    pub fn operation(self, id: OperationId) -> Self {
        self.with(Word::Operation(id))
    }

    /// Says which operations.
    #[must_use]
    pub fn operations(self, ids: &[OperationId]) -> Self {
        ids.iter().fold(self, |call, id| call.operation(*id))
    }

    /// Says which path.
    #[must_use]
    pub fn path(self, path: &TargetPath) -> Self {
        self.with(Word::Path(path.clone()))
    }

    /// Says which task.
    #[must_use]
    pub fn task(self, id: &TaskId) -> Self {
        self.with(Word::Task(id.clone()))
    }

    /// Leaves a word for the reader to fill in.
    #[must_use]
    pub fn blank(self, name: &'static str) -> Self {
        self.with(Word::Blank(name))
    }

    /// Repeats what the reader typed himself.
    #[must_use]
    pub fn typed(self, typed: Typed) -> Self {
        if typed.words.is_empty() {
            return self;
        }
        self.with(Word::Typed(typed))
    }

    /// Takes operations back.
    pub fn undo(ids: &[OperationId]) -> Self {
        Self::of("undo").operations(ids)
    }

    /// Brings operations back.
    pub fn redo(ids: &[OperationId]) -> Self {
        Self::of("redo").operations(ids)
    }

    /// Looks at all that is known of an operation.
    pub fn show(id: OperationId) -> Self {
        Self::of("show").operation(id)
    }

    /// Lists what was done to a path.
    pub fn log_of(path: &TargetPath) -> Self {
        Self::of("log").path(path)
    }

    /// Accepts what an operation left.
    pub fn keep(id: OperationId) -> Self {
        Self::of("recover").option("keep").operation(id)
    }

    /// Takes back what an operation left.
    pub fn roll_back(id: OperationId) -> Self {
        Self::of("recover").option("rollback").operation(id)
    }

    fn with(mut self, word: Word) -> Self {
        self.words.push(word);
        self
    }

    /// Gives the call as one would type it after the name of the program.
    pub fn line(&self) -> String {
        let mut line = self.command.to_owned();
        for word in &self.words {
            line.push(' ');
            match word {
                Word::Option(name) => line.extend(["--", name]),
                Word::Operation(id) => line.push_str(&id.short()),
                Word::Path(path) => line.push_str(&quoted(path.as_path().as_os_str())),
                Word::Task(id) => line.push_str(id.as_str()),
                Word::Blank(name) => line.push_str(name),
                Word::Typed(typed) => line.push_str(&typed.line),
            }
        }
        line
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "backout {}", self.line())
    }
}

/// A call as programs read it.
#[derive(Debug, Default, Serialize)]
struct Told<'c> {
    command: &'c str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    operations: Vec<OperationId>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<&'c TargetPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'c TaskId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blank: Option<&'c str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    typed: Vec<AnyWord<'c>>,
}

/// A word, which need not be text.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct AnyWord<'c>(#[serde(serialize_with = "any_path::serialize")] &'c Path);

impl Serialize for Call {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = Told {
            command: self.command,
            ..Told::default()
        };
        for word in &self.words {
            match word {
                Word::Option(name) => told.options.push(name),
                Word::Operation(id) => told.operations.push(*id),
                Word::Path(path) => told.paths.push(path),
                Word::Task(id) => told.task = Some(id),
                Word::Blank(name) => told.blank = Some(name),
                Word::Typed(typed) => {
                    let words = typed.words.iter();
                    told.typed
                        .extend(words.map(|word| AnyWord(Path::new(word))));
                }
            }
        }
        told.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_its_calls_and_says_them_as_data() {
        let id = OperationId::from_bits(0x1234_5678_0000_0000);
        let next = Next::naming(
            "take it back with {}, or keep it with {}",
            [Call::undo(&[id]).option("force"), Call::keep(id)],
        );
        assert_eq!(
            next.text,
            "take it back with `backout undo 12345678 --force`, or keep it with `backout recover --keep 12345678`"
        );
        let by_name = next.worded(|call| call.line().to_uppercase());
        assert_eq!(
            by_name.text,
            "take it back with UNDO 12345678 --FORCE, or keep it with RECOVER --KEEP 12345678"
        );
        let told = serde_json::to_value(&next).unwrap();
        assert_eq!(told["calls"][0]["command"], "undo");
        assert_eq!(told["calls"][0]["options"][0], "force");
        assert_eq!(told["calls"][1]["operations"][0], "1234567800000000");
        let plain = Next::from("wait");
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"text":"wait"}"#);
    }

    #[test]
    fn paths_tasks_and_blanks_are_typed_as_a_shell_reads_them() {
        let path = TargetPath::new("/w/a b").unwrap();
        let call = Call::of("restore").path(&path).option("from").blank("REF");
        assert_eq!(call.line(), "restore '/w/a b' --from REF");
        let call = Call::of("commit").task(&"t".parse().unwrap());
        assert_eq!(call.to_string(), "backout commit t");
        let typed = Typed::default().and(&["--force"]);
        let typed = typed.and_so("--only 'a b'", vec!["--only=/w/a b".into()]);
        let call = Call::of("undo").typed(typed).typed(Typed::default());
        assert_eq!(call.line(), "undo --force --only 'a b'");
        let told = serde_json::to_value(&call).unwrap();
        assert_eq!(
            told["typed"],
            serde_json::json!(["--force", "--only=/w/a b"])
        );
    }
}
