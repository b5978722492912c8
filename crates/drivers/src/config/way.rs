//! The way back of a change of keys through a text that others may have edited: which keys go back, which are there already, which
//! do not.
//!
//! Pure: text in, text out. The changes are taken back last first, each on what the ones after it left.

use backout_config::{
    Applied, ConfigError, Document, Edited, Format, KeyChange, NewValue, Segment, Value, revert,
};
use backout_model::OutcomeKind;
use backout_model::ports::OnConflict;

/// What becomes of one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes back.
    Back,
    /// It goes back, but something around it may not be as it was.
    Nearly(&'static str),
    /// It is taken out of what others made of the same key.
    Merged,
    /// It is as before already.
    Already,
    /// It is not what the change left, and goes back all the same.
    Forced(String),
    /// It stays, and why.
    Stays(String),
    /// It was not asked for.
    NotMeant,
}

impl Fate {
    /// Says it as the outcome of an undo; none if it was not asked for.
    pub(super) fn outcome(&self) -> Option<OutcomeKind> {
        Some(match self {
            Self::Back => OutcomeKind::Restored,
            Self::Nearly(_) | Self::Merged => OutcomeKind::Merged,
            Self::Already => OutcomeKind::AlreadyGone,
            Self::Forced(why) => OutcomeKind::Overwritten { why: why.clone() },
            Self::Stays(why) => OutcomeKind::Conflict { why: why.clone() },
            Self::NotMeant => return None,
        })
    }
}

/// Where the way back leads.
#[derive(Debug)]
pub(super) struct WayBack {
    /// The text at its end.
    pub(super) text: String,
    /// What was done on it, in this order: the changes of the undo.
    pub(super) changes: Vec<KeyChange>,
    /// What becomes of each key, in the order of the changes that are taken back.
    pub(super) fates: Vec<Fate>,
}

/// Takes changes back in a text, those that are meant.
pub(super) fn way_back(
    format: Format,
    text: &str,
    changes: &[KeyChange],
    is_meant: impl Fn(usize) -> bool,
    on_conflict: OnConflict,
) -> WayBack {
    let mut way = WayBack {
        text: text.to_owned(),
        changes: Vec::new(),
        fates: vec![Fate::NotMeant; changes.len()],
    };
    for (index, change) in changes.iter().enumerate().rev() {
        if !is_meant(index) {
            continue;
        }
        let fate = way.take_back(format, change, on_conflict);
        if let Some(slot) = way.fates.get_mut(index) {
            *slot = fate;
        }
    }
    way
}

impl WayBack {
    /// Leads to another text, in which everything is as it was.
    pub(super) fn is_now(&mut self, text: String) {
        self.text = text;
        for fate in &mut self.fates {
            if let Fate::Nearly(_) = fate {
                *fate = Fate::Back;
            }
        }
    }

    fn take_back(&mut self, format: Format, change: &KeyChange, on_conflict: OnConflict) -> Fate {
        let error = match revert(format, &self.text, change) {
            Ok(Applied::Done(text)) => {
                self.text = text;
                self.changes.push(change.inverse());
                return Fate::Back;
            }
            Ok(Applied::Nearly { text, why }) => {
                self.text = text;
                self.changes.push(change.inverse());
                return Fate::Nearly(why);
            }
            Ok(Applied::Already) => return Fate::Already,
            Err(error) => error,
        };
        let why = said(&error);
        if let (ConfigError::Conflict { .. }, OnConflict::Merge) = (&error, on_conflict)
            && let Some(merged) = merged_out(format, &self.text, change)
        {
            self.text = merged.text;
            self.changes.extend(merged.changes);
            return Fate::Merged;
        }
        let is_theirs = matches!(
            error,
            ConfigError::Conflict { .. } | ConfigError::Remarked { .. }
        );
        if is_theirs
            && on_conflict == OnConflict::Force
            && let Some(forced) = forced(format, &self.text, change)
        {
            self.text = forced.text;
            self.changes.extend(forced.changes);
            return Fate::Forced(why);
        }
        Fate::Stays(why)
    }
}

/// Takes an item that came out of a list to which others added behind it; none if the item cannot be told.
fn merged_out(format: Format, text: &str, change: &KeyChange) -> Option<Edited> {
    let items = |value: &Value| match value {
        Value::List(items) => Some(items.clone()),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::Raw(_)
        | Value::Map(_) => None,
    };
    let slip = change.slip.as_ref()?;
    let index = slip.item?;
    let before = items(&change.before.as_ref()?.value)?;
    let after = items(&change.after.as_ref()?.value)?;
    let document = Document::parse(format, text).ok()?;
    let now = items(&document.get(&change.key).ok()??.value)?;
    let known = after.get(..=index)?;
    let is_there = now.len() > index && known.iter().zip(&now).all(|(one, two)| one.means(two));
    if before.len() >= after.len() || !is_there {
        return None;
    }
    let edited = document.unset(&change.key.child(Segment::Index(index)));
    let edited = edited.ok()?;
    // A comment that somebody wrote on it stays.
    let gone = edited.changes.first()?.slip.as_ref()?;
    (gone.behind.trim() == slip.behind.trim()).then_some(edited)
}

/// Gives a key what it was, whatever it is now; none if the text does not take it.
fn forced(format: Format, text: &str, change: &KeyChange) -> Option<Edited> {
    let document = Document::parse(format, text).ok()?;
    let Some(before) = &change.before else {
        let edited = document.unset(&change.key).ok()?;
        return Some(without_made(format, edited, change));
    };
    let values = [
        NewValue::Raw(before.raw.clone()),
        NewValue::Typed(before.value.clone()),
    ];
    let mut edits = values.iter().filter_map(|value| {
        let edited = document.set(&change.key, value).ok()?;
        let now = Document::parse(format, &edited.text).ok()?;
        let found = now.get(&change.key).ok()??;
        found.value.means(&before.value).then_some(edited)
    });
    edits.next()
}

/// Takes the parents out that a change made for its key and that hold nothing any more, not even a remark.
fn without_made(format: Format, mut edited: Edited, change: &KeyChange) -> Edited {
    let length = change.key.segments().len();
    for up in 1..=change.made.min(length.saturating_sub(1)) {
        let parent = change.key.prefix(length - up);
        let unset = |text: &str| {
            let document = Document::parse(format, text).ok()?;
            let found = document.get(&parent).ok()??;
            let is_empty = matches!(&found.value, Value::Map(members) if members.is_empty());
            let gone = document.unset(&parent).ok().filter(|_| is_empty)?;
            let slip = gone.changes.first()?.slip.as_ref()?;
            (slip.body.lines().count() <= 1 && slip.behind.is_empty()).then_some(gone)
        };
        let Some(mut gone) = unset(&edited.text) else {
            break;
        };
        edited.text = std::mem::take(&mut gone.text);
        edited.changes.append(&mut gone.changes);
    }
    edited
}

/// Says why a key stays. Values are not in it: they may be secrets.
fn said(error: &ConfigError) -> String {
    if let ConfigError::Conflict {
        expected, found, ..
    } = error
    {
        let said = match (expected, found) {
            (Some(_), None) => "somebody else removed it",
            (None, Some(_)) => "somebody else set it again",
            (Some(_), Some(_)) | (None, None) => "somebody else gave it another value",
        };
        said.to_owned()
    } else if matches!(error, ConfigError::Remarked { .. }) {
        "somebody else wrote a comment on it".to_owned()
    } else {
        error.to_string()
    }
}
