//! The right name that is nearest to a wrong one.

/// The longest name that is compared.
const NAME_MAX: usize = 64;

/// The nearest of the names, if it is near enough to be a slip: a third of its letters at most.
pub(crate) fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let most = (wrong.chars().count() / 3).clamp(1, 3);
    names
        .filter(|name| *name != wrong)
        .filter_map(|name| Some((distance(wrong, name)?, name)))
        .filter(|(far, _)| *far <= most)
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to be put in, taken out, exchanged or swapped with their neighbour. Case counts for nothing.
fn distance(a: &str, b: &str) -> Option<usize> {
    let letters = |text: &str| -> Vec<char> {
        text.chars()
            .take(NAME_MAX + 1)
            .flat_map(char::to_lowercase)
            .collect()
    };
    let (a, b) = (letters(a), letters(b));
    if a.len() > NAME_MAX || b.len() > NAME_MAX || a.len().abs_diff(b.len()) > 3 {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let exchanged = last.get(j)? + usize::from(x != y);
            let mut cheapest = exchanged.min(last.get(j + 1)? + 1).min(row.last()? + 1);
            let is_swap = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if is_swap {
                cheapest = cheapest.min(before.get(j - 1)? + 1);
            }
            row.push(cheapest);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_told_and_another_word_is_not() {
        let names = ["port", "host", "timeout", "retries"];
        for (wrong, right) in [
            ("prot", Some("port")),
            ("time_out", Some("timeout")),
            ("Port", Some("port")),
            ("hots", Some("host")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, names.into_iter()), right, "{wrong}");
        }
    }
}
