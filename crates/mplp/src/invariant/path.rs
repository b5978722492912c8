//! Where a rule looks: `steps[*].step_id`, `events[?event_type=="tool.call"].data`.

use serde_json::Value;

/// A way into an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The property of this name.
    Key(String),
    /// Every item of a list.
    Each,
    /// The items of a list whose property is this.
    Where { key: String, is: String },
}

/// What is at the end of a way, and where; nothing if the way leads nowhere.
pub(super) type Found<'v> = (String, Option<&'v Value>);

impl Path {
    /// Reads a way; none if it cannot be read.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let (inside, after) = after.split_once(']')?;
                steps.push(Step::in_brackets(inside)?);
                rest = after;
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (key, after) = rest.split_at(end);
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if key.is_empty() || !key.chars().all(is_name) {
                    return None;
                }
                steps.push(Step::Key(key.to_owned()));
                rest = after;
            }
            if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() {
                    return None;
                }
                rest = after;
            }
        }
        Some(Self(steps))
    }

    /// Follows the way. A list without items has nothing at its end; a property that is not there is told as such.
    pub(super) fn follow<'v>(&self, root: &'v Value) -> Vec<Found<'v>> {
        let mut found = vec![(String::new(), Some(root))];
        for step in &self.0 {
            found = found
                .into_iter()
                .flat_map(|(place, value)| step.take(&place, value))
                .collect();
        }
        found
    }
}

impl Step {
    fn in_brackets(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Each);
        }
        let (key, is) = text.strip_prefix('?')?.split_once("==")?;
        let is: String = serde_json::from_str(is.trim()).ok()?;
        let key = key.trim().to_owned();
        Some(Self::Where { key, is })
    }

    fn take<'v>(&self, place: &str, value: Option<&'v Value>) -> Vec<Found<'v>> {
        let Some(value) = value else {
            return vec![(place.to_owned(), None)];
        };
        match self {
            Self::Key(key) => vec![(format!("{place}/{key}"), value.get(key))],
            Self::Each => match value.as_array() {
                Some(items) => {
                    let numbered = items.iter().enumerate();
                    let at = |(at, item)| (format!("{place}/{at}"), Some(item));
                    numbered.map(at).collect()
                }
                None => vec![(format!("{place}/*"), None)],
            },
            Self::Where { key, is } => {
                let items = value.as_array().into_iter().flatten().enumerate();
                let fits = |item: &Value| item.get(key).and_then(Value::as_str) == Some(is);
                let chosen: Vec<Found<'v>> = items
                    .filter(|(_, item)| fits(item))
                    .map(|(at, item)| (format!("{place}/{at}"), Some(item)))
                    .collect();
                if chosen.is_empty() {
                    return vec![(format!("{place}/?{key}={is}"), None)];
                }
                chosen
            }
        }
    }
}
