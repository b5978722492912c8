//! Reads the tables of a file whose keys and types were checked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backout_checks::Finding;
use backout_checks::condition::Condition;
use backout_model::{TriggerAction, TriggerKind};
use toml_edit::{Item, TableLike, Value};

use super::compensation::compensation;
use super::kinds::{
    Check, Held, NamedFile, Notify, Outcome, Policy, Probe, Program, Risk, Rule, Rungs, Scope,
    Syntax, Test, Watch,
};
use super::mistake::{Mistakes, nearest};
use super::spec::FORMATS;
use super::{EXPIRES, Rules, units};
use crate::http::Url;
use crate::patterns::{Patterns, Roots};

/// How long a program may take unless somebody says otherwise.
const TIME: Duration = Duration::from_secs(10);

/// How much of a program's words is kept unless somebody says otherwise.
const OUTPUT: u64 = 16 << 10;

/// How large a file of low risk is unless somebody says otherwise.
const LOW_BYTES: u64 = 10_000;

/// Reads all tables.
pub(super) fn rules(
    file: &Path,
    table: &dyn TableLike,
    roots: &Roots<'_>,
    mistakes: &mut Mistakes<'_>,
) -> Rules {
    let names = Vec::new();
    let mut reader = Reader {
        roots,
        mistakes,
        names,
    };
    let none = toml_edit::Table::new();
    let under = |name: &str| table.get(name).and_then(Item::as_table_like);
    let protect = under("protect").unwrap_or(&none);
    Rules {
        file: file.to_owned(),
        deny: reader.patterns(protect, "deny"),
        ask: reader.patterns(protect, "ask"),
        expires: waits(protect, "expires", EXPIRES),
        syntax: under("syntax").map(|table| reader.syntax(table)),
        policy: under("policy").map(policy).unwrap_or_default(),
        checks: reader.each(table, "check", Reader::check),
        conditions: reader
            .each(table, "rule", Reader::rule)
            .into_iter()
            .flatten()
            .collect(),
        watches: reader.each(table, "watch", Reader::watch),
        compensations: reader
            .each(table, "compensation", |reader, table, span| {
                compensation(table, span, reader.mistakes)
            })
            .into_iter()
            .flatten()
            .collect(),
        risk: under("risk").map(|table| reader.risk(table)),
        notify: under("notify")
            .map(|table| reader.notify(table))
            .unwrap_or_default(),
        ladder: under("ladder")
            .map(|table| reader.ladder(table))
            .unwrap_or_default(),
        triggers: under("triggers").map(triggers).unwrap_or_default(),
        checkpoint_every: under("checkpoints").and_then(|table| count(table, "every")),
        names: reader.names,
    }
}

/// Reads what triggers do; words that are none were noted before.
fn triggers(table: &dyn TableLike) -> BTreeMap<TriggerKind, TriggerAction> {
    let said = |kind: TriggerKind| {
        let word = text(table, kind.as_str())?;
        Some((kind, word.parse().ok()?))
    };
    TriggerKind::ALL.into_iter().filter_map(said).collect()
}

struct Reader<'r, 't, 'm> {
    roots: &'r Roots<'r>,
    mistakes: &'m mut Mistakes<'t>,
    names: Vec<NamedFile>,
}

impl Reader<'_, '_, '_> {
    fn each<T>(
        &mut self,
        table: &dyn TableLike,
        name: &str,
        read: fn(&mut Self, &dyn TableLike, Option<std::ops::Range<usize>>) -> T,
    ) -> Vec<T> {
        let Some(item) = table.get(name) else {
            return Vec::new();
        };
        if let Some(tables) = item.as_array_of_tables() {
            let each = tables.iter().map(|table| read(self, table, table.span()));
            return each.collect();
        }
        let inline = item.as_array().into_iter().flatten();
        let tables = inline.filter_map(|value| Some((value.as_inline_table()?, value.span())));
        tables
            .map(|(table, span)| read(self, table, span))
            .collect()
    }

    fn patterns(&mut self, table: &dyn TableLike, name: &str) -> Patterns {
        let written = texts(table, name);
        Patterns::new(&written, self.roots).unwrap_or_else(|what| {
            let span = table.get(name).and_then(Item::span);
            self.mistakes.note(span, what);
            Patterns::default()
        })
    }

    fn scope(&mut self, table: &dyn TableLike) -> Scope {
        Scope {
            paths: table.get("paths").map(|_| self.patterns(table, "paths")),
            formats: texts(table, "formats"),
            operations: texts(table, "operations"),
        }
    }

    fn named(
        &mut self,
        table: &dyn TableLike,
        what: &str,
        span: Option<std::ops::Range<usize>>,
    ) -> String {
        let name = text(table, "name").unwrap_or_default();
        // What is no text is noted already.
        let is_given = table.get("name").is_some_and(|item| !item.is_str());
        if name.is_empty() && !is_given {
            self.mistakes
                .note(span, format!("a [[{what}]] needs a `name`"));
        }
        name
    }

    fn syntax(&mut self, table: &dyn TableLike) -> Syntax {
        let mut formats = Vec::new();
        let by_pattern = table.get("formats").and_then(Item::as_table_like);
        for (pattern, item) in by_pattern.into_iter().flat_map(TableLike::iter) {
            let name = item.as_str().unwrap_or_default();
            if item.is_str() && !FORMATS.contains(&name) {
                let nearest = nearest(name, FORMATS);
                let what = format!("`{name}` is no format; {nearest}");
                self.mistakes.note(item.span(), what);
            }
            match Patterns::new(&[pattern.to_owned()], self.roots) {
                Ok(patterns) => formats.push((patterns, name.to_owned())),
                Err(what) => self.mistakes.note(item.span(), what),
            }
        }
        Syntax {
            skip: self.patterns(table, "skip"),
            formats,
            on_failure: outcome(table, "on-failure").unwrap_or(Outcome::Deny),
        }
    }

    fn check(&mut self, table: &dyn TableLike, span: Option<std::ops::Range<usize>>) -> Check {
        let name = self.named(table, "check", span.clone());
        let is_any = ["schema", "values", "structure", "command"];
        if !is_any.iter().any(|key| table.contains_key(key)) {
            let what =
                "it checks nothing: give it a `schema`, `values`, `structure` or a `command`";
            self.mistakes.note(span, what.to_owned());
        }
        let values = table.get("values").and_then(Item::as_array);
        let mut about_values = Vec::new();
        for value in values.into_iter().flatten() {
            match serde_json::from_value(json_of(value)) {
                Ok(rule) => about_values.push(rule),
                Err(_) if self.mistakes.is_any_in(value.span()) => {}
                Err(error) => self.mistakes.note(value.span(), error.to_string()),
            }
        }
        Check {
            name,
            scope: self.scope(table),
            schema: self.file(table, "schema", Held::Schema),
            values: about_values,
            structure: is(table, "structure").unwrap_or(false),
            command: self.program(table, "command"),
            on_failure: outcome(table, "on-failure").unwrap_or(Outcome::Deny),
        }
    }

    /// None if it cannot be read; that is noted.
    fn rule(
        &mut self,
        table: &dyn TableLike,
        span: Option<std::ops::Range<usize>>,
    ) -> Option<Rule> {
        let name = self.named(table, "rule", span.clone());
        let test = match (text(table, "when"), text(table, "rego")) {
            (Some(when), None) => {
                let condition = Condition::compile(&when).and_then(Condition::tried);
                condition
                    .map(Test::When)
                    .map_err(|it| wrong("condition", it))
            }
            (None, Some(file)) => self.rego(&file),
            // What is no text is noted already.
            (None, None) if table.contains_key("when") || table.contains_key("rego") => {
                return None;
            }
            (_, _) => {
                let what = "a [[rule]] needs a condition in `when`, or a policy in `rego`";
                self.mistakes.note(span, what.to_owned());
                return None;
            }
        };
        let item = table.get("when").or_else(|| table.get("rego"));
        let test = test.map_err(|what| self.mistakes.note(item.and_then(Item::span), what));
        Some(Rule {
            name,
            test: test.ok()?,
            then: outcome(table, "then").unwrap_or(Outcome::Deny),
            because: text(table, "because"),
            remedy: text(table, "remedy"),
        })
    }

    #[cfg(feature = "rego")]
    fn rego(&self, name: &str) -> Result<Test, String> {
        let file = self.path(name);
        // A pipe would keep us waiting, and a device never ends.
        if file.exists() && !file.is_file() {
            return Err(format!("`{}` is not a file", file.display()));
        }
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("`{}` cannot be read: {error}", file.display()))?;
        let policy = backout_checks::rego::Rego::compile(&text);
        policy
            .map(|it| Test::Rego(file, it))
            .map_err(|it| wrong("policy", it))
    }

    #[cfg(not(feature = "rego"))]
    #[expect(
        clippy::unused_self,
        reason = "with the feature it knows where the file is"
    )]
    fn rego(&self, _name: &str) -> Result<Test, String> {
        Err("this build knows no Rego: build it with `--features rego`, or write a condition in `when`".to_owned())
    }

    fn watch(&mut self, table: &dyn TableLike, span: Option<std::ops::Range<usize>>) -> Watch {
        let name = self.named(table, "watch", span.clone());
        if !table.contains_key("paths") {
            let what = "a [[watch]] needs `paths`: which writes is it for?".to_owned();
            self.mistakes.note(span.clone(), what);
        }
        let command = self.program(table, "command");
        let probe = match (command, self.url(table, "http")) {
            (Some(program), None) => Probe::Command(program),
            (None, Some(url)) => Probe::Http {
                url,
                status: count(table, "status").unwrap_or(200),
                contains: text(table, "contains"),
            },
            (None, None) if table.contains_key("reload") || table.contains_key("http") => {
                Probe::Reload
            }
            (None, None) => {
                let what = "it looks at nothing: give it a `command`, `http` or a `reload`";
                self.mistakes.note(span, what.to_owned());
                Probe::Reload
            }
            (Some(_), Some(_)) => {
                let what = "a [[watch]] has a `command` or `http`, not both".to_owned();
                self.mistakes.note(span, what);
                Probe::Reload
            }
        };
        Watch {
            name,
            scope: self.scope(table),
            reload: self.program(table, "reload"),
            probe,
            tries: count(table, "tries").unwrap_or(3),
            pause: time(table, "pause").unwrap_or(Duration::from_secs(1)),
            window: time(table, "window").unwrap_or_default(),
            time_max: time(table, "timeout").unwrap_or(TIME),
        }
    }

    fn risk(&mut self, table: &dyn TableLike) -> Risk {
        Risk {
            low_bytes_max: size(table, "low-bytes-max").unwrap_or(LOW_BYTES),
            medium_paths: self.patterns(table, "medium-paths"),
            high_paths: self.patterns(table, "high-paths"),
            high_operations: texts(table, "high-operations"),
            medium: outcome(table, "medium").unwrap_or(Outcome::Ask),
            high: outcome(table, "high").unwrap_or(Outcome::Ask),
            medium_waits: waits(table, "medium-waits", Duration::from_hours(1)),
        }
    }

    fn notify(&mut self, table: &dyn TableLike) -> Notify {
        Notify {
            command: self.program(table, "command"),
            webhook: self.url(table, "webhook"),
            secret_file: self.file(table, "webhook-secret-file", Held::Key),
            desktop: is(table, "desktop").unwrap_or(false),
            time_max: time(table, "timeout").unwrap_or(TIME),
        }
    }

    fn ladder(&mut self, table: &dyn TableLike) -> BTreeMap<String, Rungs> {
        let tables = table.iter();
        let tables = tables.filter_map(|(name, item)| Some((name, item.as_table_like()?)));
        let each = tables.map(|(severity, table)| {
            let rungs = Rungs {
                retries: count(table, "retries"),
                backoff: time(table, "backoff"),
                fallback: is(table, "fallback"),
                restore: self.program(table, "restore"),
                accept_partial: is(table, "accept-partial"),
            };
            (severity.to_owned(), rungs)
        });
        each.collect()
    }

    fn program(&self, table: &dyn TableLike, name: &str) -> Option<Program> {
        table.get(name)?;
        let output = size(table, "output-max").unwrap_or(OUTPUT);
        Some(Program {
            words: texts(table, name).into_iter().map(Into::into).collect(),
            directory: self.roots.base.to_owned(),
            time_max: time(table, "timeout").unwrap_or(TIME),
            output_max: usize::try_from(output).unwrap_or(usize::MAX),
        })
    }

    fn url(&mut self, table: &dyn TableLike, name: &str) -> Option<Url> {
        let written = text(table, name)?;
        match Url::read(&written) {
            Ok(url) => Some(url),
            Err(what) => {
                let span = table.get(name).and_then(Item::span);
                self.mistakes.note(span, what);
                None
            }
        }
    }

    /// Reads the name of a file that is opened when it is needed.
    fn file(&mut self, table: &dyn TableLike, name: &str, holds: Held) -> Option<PathBuf> {
        let path = self.path(&text(table, name)?);
        let place = self.mistakes.place_of(table.get(name).and_then(Item::span));
        self.names.push(NamedFile {
            path: path.clone(),
            holds,
            place,
        });
        Some(path)
    }

    fn path(&self, written: &str) -> PathBuf {
        match (written.strip_prefix("~/"), self.roots.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.roots.base.join(written),
        }
    }
}

/// Says what is wrong with a condition or a policy.
fn wrong(what: &str, finding: Finding) -> String {
    let remedy = finding.remedy.map(|remedy| format!("; {remedy}"));
    let place = finding.place.map(|place| format!(" at {place} of it"));
    let (place, remedy) = (place.unwrap_or_default(), remedy.unwrap_or_default());
    format!("the {what} is wrong{place}: {}{remedy}", finding.found)
}

fn policy(table: &dyn TableLike) -> Policy {
    Policy {
        secrets: outcome(table, "secrets"),
        permissions: outcome(table, "permissions"),
        wildcard_iam: outcome(table, "wildcard-iam"),
        files_max: count(table, "files-max"),
        bytes_max: size(table, "bytes-max"),
        removed_percent_max: count(table, "removed-percent-max"),
    }
}

pub(super) fn text(table: &dyn TableLike, name: &str) -> Option<String> {
    table.get(name)?.as_str().map(str::to_owned)
}

pub(super) fn texts(table: &dyn TableLike, name: &str) -> Vec<String> {
    let list = table.get(name).and_then(Item::as_array);
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

pub(super) fn is(table: &dyn TableLike, name: &str) -> Option<bool> {
    table.get(name)?.as_bool()
}

pub(super) fn count<N: TryFrom<i64>>(table: &dyn TableLike, name: &str) -> Option<N> {
    N::try_from(table.get(name)?.as_integer()?).ok()
}

fn size(table: &dyn TableLike, name: &str) -> Option<u64> {
    units::size_of(table.get(name)?)
}

pub(super) fn time(table: &dyn TableLike, name: &str) -> Option<Duration> {
    units::time(table.get(name)?.as_str()?)
}

fn outcome(table: &dyn TableLike, name: &str) -> Option<Outcome> {
    table.get(name)?.as_str().map(Outcome::of)
}

/// How long something waits; none for ever.
fn waits(table: &dyn TableLike, name: &str, usual: Duration) -> Option<Duration> {
    match table.get(name).and_then(Item::as_str) {
        Some("never") => None,
        Some(text) => units::time(text),
        None => Some(usual),
    }
}

/// Gives what a key holds as JSON, whichever way it is written.
pub(super) fn json_of_item(item: &Item) -> serde_json::Value {
    if let Some(tables) = item.as_array_of_tables() {
        let each = tables.iter().map(|table| json_of_table(table));
        return each.collect();
    }
    match (item.as_value(), item.as_table_like()) {
        (Some(value), _) => json_of(value),
        (None, Some(table)) => json_of_table(table),
        (None, None) => serde_json::Value::Null,
    }
}

fn json_of_table(table: &dyn TableLike) -> serde_json::Value {
    let each = table.iter();
    let each = each.map(|(name, item)| (name.to_owned(), json_of_item(item)));
    serde_json::Value::Object(each.collect())
}

/// Gives a value of TOML as one of JSON.
fn json_of(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.value().clone().into(),
        Value::Integer(number) => (*number.value()).into(),
        Value::Float(number) => (*number.value()).into(),
        Value::Boolean(is) => (*is.value()).into(),
        Value::Datetime(time) => time.value().to_string().into(),
        Value::Array(list) => list.iter().map(json_of).collect(),
        Value::InlineTable(table) => {
            let each = table
                .iter()
                .map(|(name, value)| (name.to_owned(), json_of(value)));
            serde_json::Value::Object(each.collect())
        }
    }
}
