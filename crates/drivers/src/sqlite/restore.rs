//! Making rows what they were, or became, as statements of their own.
//!
//! Of a row that was updated only the columns that changed are kept. So it can be put right while it is there, and not be made
//! anew when it is gone.

use backout_changeset::{Change, Op, Value};
use backout_model::{Completion, Effect, Target};

use super::SqliteDriver;
use super::driver::Sight;
use super::error::SqliteFault;
use super::name::{literal, quoted};
use super::recipe::SqliteRecipe;
use super::request::SqlRequest;
use super::row_states::Looked;

impl SqliteDriver {
    /// Makes the request that makes rows of an effect what they were, or became; none if more than rows is meant.
    pub(super) fn restored(
        &self,
        effect: &Effect,
        targets: &[Target],
        is_after: bool,
        summary: String,
    ) -> Result<Option<SqlRequest>, SqliteFault> {
        let recipe = SqliteRecipe::of(effect)?;
        // It is asked what is there now, whether the effect is or not.
        let done = Effect {
            recipe: effect.recipe.clone(),
            completion: Some(Completion::default()),
        };
        let mut statements = Vec::new();
        let mut wrong = None;
        let (sight, shapes) = self.looked(&done, |target, looked| {
            if targets.contains(&target) {
                match statement(&looked, is_after) {
                    Ok(statement) => statements.extend(statement),
                    Err(why) => wrong = Some((target, why)),
                }
            }
        })?;
        if shapes.iter().any(|it| targets.contains(&it.target)) {
            return Ok(None);
        }
        let what = |target: &Target| format!("`{target}` cannot be restored");
        let refused = |what: String, why: String| SqliteFault::Refused {
            what,
            why,
            way: "take the operation back that removed it, or restore what it was before that"
                .to_owned(),
        };
        if let Some((target, why)) = wrong {
            return Err(refused(what(&target), why));
        }
        if let (Sight::Nothing(why), Some(target)) = (sight, targets.first()) {
            return Err(refused(what(target), why));
        }
        Ok(Some(SqlRequest {
            restores: Some(summary),
            ..SqlRequest::new(recipe.path.as_path().to_owned(), statements.join(";\n"))
        }))
    }
}

/// Gives the statement that makes a row what it was, or became; none if it is so. The error says why there is none.
fn statement(looked: &Looked<'_>, is_after: bool) -> Result<Option<String>, String> {
    let Looked {
        change,
        now,
        columns,
        ..
    } = looked;
    if columns.is_empty() || columns.len() < change.key.len() {
        return Err(format!("the table `{}` is not as it was", change.table));
    }
    let table = quoted(&change.table);
    let wanted = match (change.op, is_after) {
        (Op::Insert, false) | (Op::Delete, true) => None,
        (Op::Insert | Op::Update, true) => Some(&change.new),
        (Op::Delete | Op::Update, false) => Some(&change.old),
    };
    let found = key_of(change, columns);
    Ok(match (wanted, now) {
        (None, None) => None,
        (None, Some(_)) => Some(format!("DELETE FROM {table} WHERE {found}")),
        (Some(_), None) if change.op == Op::Update => {
            return Err("the row is gone, and only what changed of it is kept".to_owned());
        }
        (Some(row), None) => {
            let told = told(columns, row);
            let names: Vec<String> = told.iter().map(|(name, _)| quoted(name)).collect();
            let values: Vec<String> = told.iter().map(|(_, value)| literal(value)).collect();
            let (names, values) = (names.join(", "), values.join(", "));
            Some(format!("INSERT INTO {table} ({names}) VALUES ({values})"))
        }
        (Some(row), Some(now)) => {
            let other = std::iter::zip(columns.iter(), std::iter::zip(row, now));
            let other = other.filter_map(|(name, (wanted, now))| {
                let wanted = wanted.as_ref().filter(|wanted| *wanted != now)?;
                Some(format!("{} = {}", quoted(name), literal(wanted)))
            });
            let other: Vec<String> = other.collect();
            let set = other.join(", ");
            (!set.is_empty()).then(|| format!("UPDATE {table} SET {set} WHERE {found}"))
        }
    })
}

/// Finds a row by its key.
fn key_of(change: &Change, columns: &[String]) -> String {
    let names = std::iter::zip(columns, &change.key).filter(|(_, is_key)| **is_key);
    let values = change.key_values();
    let each = std::iter::zip(names, values);
    let each: Vec<String> = each
        .map(|((name, _), value)| format!("{} IS {}", quoted(name), literal(value)))
        .collect();
    each.join(" AND ")
}

/// Lists the columns that a row tells, with their values.
fn told<'r>(columns: &'r [String], row: &'r [Option<Value>]) -> Vec<(&'r str, &'r Value)> {
    let each = std::iter::zip(columns, row);
    each.filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)))
        .collect()
}
