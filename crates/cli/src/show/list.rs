//! Long lists: of what stands alike the first few are shown, so that what is different is seen.

use std::collections::HashMap;

/// How many things that stand alike are named.
pub(crate) const FINE_MAX: usize = 10;

/// Chooses what of a long list is shown: of those of which the same is `said` so many, so that what is different is seen.
pub(super) fn abridged<T>(
    items: &[T],
    most: usize,
    said: impl Fn(&T) -> String,
) -> (Vec<&T>, usize) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let is_shown = |item: &&T| {
        let count = seen.entry(said(item)).or_default();
        *count += 1;
        *count <= most
    };
    let shown: Vec<&T> = items.iter().filter(is_shown).collect();
    let hidden = items.len() - shown.len();
    (shown, hidden)
}

/// Counts what is not shown, and says how to see it.
pub(super) fn hidden_text(hidden: usize) -> String {
    format!("and {hidden} more (see all with `--verbose`)")
}

/// The same as a line; nothing if all is shown.
pub(super) fn hidden_line(indent: &str, hidden: usize) -> String {
    match hidden {
        0 => String::new(),
        _ => format!("{indent}{}\n", hidden_text(hidden)),
    }
}
