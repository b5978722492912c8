//! The right name that is nearest to a wrong one.

/// The longest name that is compared.
const NAME_MAX: usize = 64;

/// The nearest of the names, if it is near enough to be a slip: a third of its letters at most.
pub fn nearest<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
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
    let is_long = |text: &str| text.chars().nth(NAME_MAX).is_some();
    if is_long(a) || is_long(b) {
        return None;
    }
    Some(strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase()))
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
