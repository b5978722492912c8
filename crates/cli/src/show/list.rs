//! Long lists: what is out of order is always shown, of the rest the first few.

/// How many things that are in order are named.
pub(crate) const FINE_MAX: usize = 10;

/// Chooses what of a long list is shown: everything that is out of order, and of the rest so many.
pub(super) fn abridged<T>(
    items: &[T],
    fine_max: usize,
    is_fine: impl Fn(&T) -> bool,
) -> (Vec<&T>, usize) {
    let mut fine = 0;
    let shown: Vec<&T> = items
        .iter()
        .filter(|item| {
            fine += usize::from(is_fine(item));
            !is_fine(item) || fine <= fine_max
        })
        .collect();
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
