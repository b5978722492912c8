//! Editing a settings text: ours in, ours out, and nothing else.

use backout_config::{Document, Format, KeyPath, NewValue, Segment, Value};

use super::mcp::is_our_server;
use super::{Keys, SettingsError, Want};
use crate::Agent;

/// How much of what is wanted is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing would have to be written.
    Whole,
    /// A part of it, or an older form of it.
    Part,
    /// Nothing.
    Absent,
}

impl Keys {
    /// Gives the text with all that is wanted. One that is not there yet is empty.
    pub fn added(&self, text: &str) -> Result<String, SettingsError> {
        let is_new = text.trim().is_empty();
        let mut now = self.begun(text);
        for want in &self.wants {
            now = match want {
                Want::Value { key, value } => self.with_value(&now, key, value)?,
                Want::Default { key, value } => match find(self.format, &now, key)? {
                    Some(_) => now,
                    None => set(self.format, &now, key, value)?,
                },
                Want::Item { key, value } => self.with_item(&now, key, value)?,
            };
        }
        Ok(if is_new { self.laid_out(now) } else { now })
    }

    /// Gives the text without what is ours.
    pub fn removed(&self, text: &str) -> Result<String, SettingsError> {
        let mut now = text.to_owned();
        for want in self.wants.iter().rev() {
            match want {
                Want::Value { key, value } => {
                    let found = find(self.format, &now, key)?;
                    if found.is_some_and(|found| self.is_ours(&found, value)) {
                        now = without(self.format, &now, key)?;
                    }
                }
                // Nobody knows whose it is, and alone it does nothing.
                Want::Default { .. } => {}
                Want::Item { key, value } => {
                    for index in self.ours_in(&now, key, value)?.into_iter().rev() {
                        let item = key.child(Segment::Index(index));
                        now = Document::parse(self.format, &now)?.unset(&item)?.text;
                    }
                    if find(self.format, &now, key)? == Some(Value::List(Vec::new())) {
                        now = without(self.format, &now, key)?;
                    }
                }
            }
        }
        Ok(now)
    }

    /// Tells how much of what is wanted is there.
    pub fn standing(&self, text: &str) -> Result<Standing, SettingsError> {
        let mut there = 0;
        let mut ours = 0;
        let mut all = 0;
        for want in &self.wants {
            let (is_there, is_ours) = match want {
                Want::Default { .. } => continue,
                Want::Value { key, value } => {
                    let found = find(self.format, text, key)?;
                    let is_ours = |found: &Value| self.is_ours(found, value);
                    (
                        found.as_ref() == Some(value),
                        found.as_ref().is_some_and(is_ours),
                    )
                }
                Want::Item { key, value } => {
                    let is_there = match find(self.format, text, key)? {
                        Some(Value::List(items)) => items.iter().any(|item| item.means(value)),
                        Some(_) | None => false,
                    };
                    (is_there, !self.ours_in(text, key, value)?.is_empty())
                }
            };
            all += 1;
            there += usize::from(is_there);
            ours += usize::from(is_ours);
        }
        Ok(match (there, ours) {
            (there, _) if there == all => Standing::Whole,
            (0, 0) => Standing::Absent,
            _ => Standing::Part,
        })
    }

    fn begun(&self, text: &str) -> String {
        let is_new = text.trim().is_empty();
        match self.format {
            Format::Json | Format::Jsonc if is_new => "{}\n".to_owned(),
            Format::Json
            | Format::Jsonc
            | Format::Yaml
            | Format::Toml
            | Format::Ini
            | Format::Env => text.to_owned(),
        }
    }

    /// Lays out a file that nobody else has written in.
    fn laid_out(&self, text: String) -> String {
        if !matches!(self.format, Format::Json | Format::Jsonc) {
            return text;
        }
        let value: Result<serde_json::Value, _> = serde_json::from_str(&text);
        match value.map(|value| serde_json::to_string_pretty(&value)) {
            Ok(Ok(pretty)) => format!("{pretty}\n"),
            Ok(Err(_)) | Err(_) => text,
        }
    }

    fn with_value(
        &self,
        text: &str,
        key: &KeyPath,
        value: &Value,
    ) -> Result<String, SettingsError> {
        match find(self.format, text, key)? {
            Some(found) if !self.is_ours(&found, value) => Err(SettingsError::Taken {
                key: key.clone(),
                found: shown(&found),
            }),
            Some(_) | None => set(self.format, text, key, value),
        }
    }

    fn with_item(&self, text: &str, key: &KeyPath, value: &Value) -> Result<String, SettingsError> {
        match self.ours_in(text, key, value)?.first() {
            Some(index) => set(self.format, text, &key.child(Segment::Index(*index)), value),
            None if find(self.format, text, key)?.is_some() => {
                set(self.format, text, &key.child(Segment::Append), value)
            }
            None => set(self.format, text, key, &Value::List(vec![value.clone()])),
        }
    }

    /// Finds the items of a list that are ours, whatever program they name.
    fn ours_in(
        &self,
        text: &str,
        key: &KeyPath,
        value: &Value,
    ) -> Result<Vec<usize>, SettingsError> {
        let items = match find(self.format, text, key)? {
            Some(Value::List(items)) => items,
            Some(_) | None => Vec::new(),
        };
        let ours = items.iter().enumerate();
        let ours = ours.filter(|(_, item)| self.is_ours(item, value));
        Ok(ours.map(|(index, _)| index).collect())
    }

    /// Tells whether a value is ours: the same, a hook or a server of ours, or a script of ours in another place.
    fn is_ours(&self, found: &Value, wanted: &Value) -> bool {
        if found.means(wanted) {
            return true;
        }
        match (found, wanted) {
            (Value::Text(found), Value::Text(_)) => is_own_script(found, self.agent),
            _ => runs_our_hook(found, self.agent) || is_our_server(found),
        }
    }
}

fn is_own_script(path: &str, agent: Agent) -> bool {
    let own = [
        format!("/agents/{agent}/backout-shell"),
        format!("/agents/{agent}/bash-env"),
    ];
    own.iter().any(|end| path.ends_with(end.as_str()))
}

/// Tells whether an entry runs `backout hook AGENT`.
pub(super) fn runs_our_hook(entry: &Value, agent: Agent) -> bool {
    let text = gathered(entry).join(" ");
    text.contains("backout") && text.contains(&format!("hook {agent}"))
}

/// Lists all texts in a value.
pub(super) fn gathered(value: &Value) -> Vec<&str> {
    let mut words = Vec::new();
    gather(value, &mut words);
    words
}

fn gather<'v>(value: &'v Value, words: &mut Vec<&'v str>) {
    match value {
        Value::Text(text) => words.push(text),
        Value::List(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Map(members) => members.iter().for_each(|(_, it)| gather(it, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Raw(_) => {}
    }
}

fn find(format: Format, text: &str, key: &KeyPath) -> Result<Option<Value>, SettingsError> {
    let document = Document::parse(format, text)?;
    Ok(document.get(key)?.map(|found| found.value))
}

fn set(format: Format, text: &str, key: &KeyPath, value: &Value) -> Result<String, SettingsError> {
    let new = NewValue::Typed(value.clone());
    Ok(Document::parse(format, text)?.set(key, &new)?.text)
}

/// Takes a key out, and the tables above it that it leaves empty.
fn without(format: Format, text: &str, key: &KeyPath) -> Result<String, SettingsError> {
    let mut now = Document::parse(format, text)?.unset(key)?.text;
    for depth in (1..key.segments().len()).rev() {
        let above = key.prefix(depth);
        if find(format, &now, &above)? != Some(Value::Map(Vec::new())) {
            break;
        }
        now = Document::parse(format, &now)?.unset(&above)?.text;
    }
    Ok(now)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Raw(_)
        | Value::List(_)
        | Value::Map(_)) => other.kind().to_owned(),
    }
}
