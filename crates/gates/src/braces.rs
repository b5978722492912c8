//! Braces: `{a,b}` is written out before anything else is read, as a shell does. So each choice is a pattern of its own, with its
//! own slashes, dots and links.

/// More patterns than this one pattern does not stand for.
const CHOICES_MAX: usize = 1000;

/// Writes a pattern out; the error says what is wrong with it.
pub(crate) fn written_out(pattern: &str) -> Result<Vec<String>, String> {
    let mut done = Vec::new();
    let mut waiting = vec![pattern.to_owned()];
    while let Some(next) = waiting.pop() {
        match first_choice(&next, pattern)? {
            None => done.push(next),
            Some((before, choices, after)) => {
                let each = choices.iter().rev();
                waiting.extend(each.map(|choice| [before, choice, after].concat()));
            }
        }
        if done.len() + waiting.len() > CHOICES_MAX {
            return Err(format!(
                "`{pattern}` stands for more than {CHOICES_MAX} patterns"
            ));
        }
    }
    Ok(done)
}

/// What is before the first braces, what is in them, and what follows.
type Choice<'p> = (&'p str, Vec<&'p str>, &'p str);

/// Finds the first braces that are no letters.
fn first_choice<'p>(text: &'p str, whole: &str) -> Result<Option<Choice<'p>>, String> {
    let unclosed = || format!("braces are not closed in `{whole}`");
    let mut open: Option<usize> = None;
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut signs = Signs::default();
    for (at, letter) in text.char_indices() {
        if !signs.is_sign(letter) {
            continue;
        }
        match (letter, open) {
            ('{', None) => open = Some(at),
            ('{', Some(_)) => depth += 1,
            ('}', None) => return Err(format!("braces are not opened in `{whole}`")),
            ('}', Some(_)) if depth > 0 => depth -= 1,
            (',', Some(_)) if depth == 0 => commas.push(at),
            ('}', Some(open)) => {
                let mut choices = Vec::new();
                let mut from = open + 1;
                for end in commas.into_iter().chain([at]) {
                    choices.push(text.get(from..end).unwrap_or_default());
                    from = end + 1;
                }
                let before = text.get(..open).unwrap_or_default();
                let after = text.get(at + 1..).unwrap_or_default();
                return Ok(Some((before, choices, after)));
            }
            _ => {}
        }
    }
    match open {
        Some(_) => Err(unclosed()),
        None => Ok(None),
    }
}

/// Knows which letters mean something: not those after a backslash, and not those in brackets.
#[derive(Default)]
struct Signs {
    is_escaped: bool,
    /// How many letters of a class were seen; none outside of one.
    class: Option<usize>,
}

impl Signs {
    fn is_sign(&mut self, letter: char) -> bool {
        if self.is_escaped {
            self.is_escaped = false;
            return false;
        }
        match (letter, self.class) {
            ('\\', None) => self.is_escaped = true,
            ('[', None) => self.class = Some(0),
            // At the beginning of a class it is a letter, and so it is after the sign that turns the class around.
            (']', Some(seen)) if seen > 0 => self.class = None,
            ('!' | '^', Some(0)) => {}
            (_, Some(seen)) => self.class = Some(seen + 1),
            _ => return matches!(letter, '{' | '}' | ','),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_choice_is_a_pattern() {
        for (pattern, choices) in [
            ("a", vec!["a"]),
            ("{./secrets,x}", vec!["./secrets", "x"]),
            ("sec{rets,}", vec!["secrets", "sec"]),
            ("{a,b/{c,d}}/*", vec!["a/*", "b/c/*", "b/d/*"]),
            ("{a}{b,c}", vec!["ab", "ac"]),
            ("\\{a,b}", vec![]),
            ("\\{a,b\\}", vec!["\\{a,b\\}"]),
            ("[{,}]x", vec!["[{,}]x"]),
            ("[!]{]", vec!["[!]{]"]),
            ("a,b", vec!["a,b"]),
        ] {
            assert_eq!(
                written_out(pattern).unwrap_or_default(),
                choices,
                "{pattern}"
            );
        }
    }

    #[test]
    fn what_is_not_closed_or_stands_for_too_much_is_refused() {
        let wrong = |pattern: &str| written_out(pattern).unwrap_err();
        assert_eq!(wrong("a{b,{c}"), "braces are not closed in `a{b,{c}`");
        assert_eq!(wrong("a}"), "braces are not opened in `a}`");
        let many = "{a,b}".repeat(12);
        assert!(wrong(&many).ends_with("stands for more than 1000 patterns"));
    }
}
