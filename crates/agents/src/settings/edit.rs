//! Editing a settings text: ours in, ours out, and nothing else.

use backout_config::{Document, Format, KeyPath, NewValue, Segment, Value};

use super::mcp::is_our_server;
use super::{Keys, SettingsError, Want};
use crate::Agent;

/// Where the hooks of a group stand.
const HOOKS: &str = "hooks";

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
                        now = self.without_ours(now, &item)?;
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
                        Some(Value::List(items)) => items.iter().any(|item| {
                            item.means(value) || own_part(item, self.agent).means(value)
                        }),
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
            Some(index) => {
                let item = key.child(Segment::Index(*index));
                match find(self.format, text, &item)? {
                    // Others stand beside ours: theirs stay there, and ours gets a group of its own.
                    Some(found) if is_shared(&found, self.agent) => {
                        if own_part(&found, self.agent).means(value) {
                            return Ok(text.to_owned());
                        }
                        let now = self.without_ours(text.to_owned(), &item)?;
                        set(self.format, &now, &key.child(Segment::Append), value)
                    }
                    Some(_) | None => set(self.format, text, &item, value),
                }
            }
            None if find(self.format, text, key)?.is_some() => {
                set(self.format, text, &key.child(Segment::Append), value)
            }
            None => set(self.format, text, key, &Value::List(vec![value.clone()])),
        }
    }

    /// Takes an item of ours out of a list; of a group in which hooks of others stand, only ours.
    fn without_ours(&self, text: String, item: &KeyPath) -> Result<String, SettingsError> {
        let found = find(self.format, &text, item)?;
        let Some(found) = found.filter(|found| is_shared(found, self.agent)) else {
            return Ok(Document::parse(self.format, &text)?.unset(item)?.text);
        };
        let mut now = text;
        let hooks = hooks_of(&found).iter().enumerate().rev();
        for (index, _) in hooks.filter(|(_, hook)| runs_our_hook(hook, self.agent)) {
            let hook = item.child(Segment::Name(HOOKS.to_owned()));
            let hook = hook.child(Segment::Index(index));
            now = Document::parse(self.format, &now)?.unset(&hook)?.text;
        }
        Ok(now)
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

/// Lists the hooks of a group; none if it is no group.
fn hooks_of(group: &Value) -> &[Value] {
    if let Value::Map(members) = group
        && let Some((_, Value::List(hooks))) = members.iter().find(|(name, _)| name == HOOKS)
    {
        return hooks;
    }
    &[]
}

/// Tells whether hooks of others stand in a group beside ours.
fn is_shared(group: &Value, agent: Agent) -> bool {
    let is_ours = |hook: &Value| runs_our_hook(hook, agent);
    let hooks = hooks_of(group);
    hooks.iter().any(is_ours) && !hooks.iter().all(is_ours)
}

/// Gives a group without the hooks of others.
fn own_part(group: &Value, agent: Agent) -> Value {
    let mut group = group.clone();
    if let Value::Map(members) = &mut group {
        for (_, hooks) in members.iter_mut().filter(|(name, _)| name == HOOKS) {
            if let Value::List(hooks) = hooks {
                hooks.retain(|hook| runs_our_hook(hook, agent));
            }
        }
    }
    group
}

/// Tells whether an entry runs `backout hook AGENT`.
pub(super) fn runs_our_hook(entry: &Value, agent: Agent) -> bool {
    let hooks = hooks_of(entry);
    if !hooks.is_empty() {
        return hooks.iter().any(|hook| runs_our_hook(hook, agent));
    }
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
