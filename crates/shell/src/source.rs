//! The text that was parsed, and what of the parser's answer it bears out.
//!
//! The parser works on tokens and puts texts together again from them: comments are gone, blanks are one, and
//! the body of a here-document inside a word is lost. It also looks for comments and here-documents in places
//! where bash does not, as in `((x<<2))`, and then swallows the lines that follow. So words are taken from the
//! text itself, and where the two could differ, the part is refused.

use brush_parser::SourceSpan;
use brush_parser::ast::Word as RawWord;

use crate::scan_end::is_one_group;

/// A text that was parsed.
#[derive(Debug)]
pub(crate) struct Source {
    chars: Vec<char>,
}

impl Source {
    /// Takes a text.
    pub(crate) fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
        }
    }

    /// Gives a part of it.
    pub(crate) fn part(&self, start: usize, end: usize) -> String {
        let length = end.saturating_sub(start);
        self.chars.iter().skip(start).take(length).collect()
    }

    fn span(&self, span: &SourceSpan) -> String {
        self.part(span.start.index, span.end.index)
    }

    /// Gives a word as it was written. The place of a word may begin with what stands before it.
    pub(crate) fn word(&self, word: &RawWord) -> String {
        let Some(span) = &word.loc else {
            return word.value.clone();
        };
        let text = self.span(span);
        if text.ends_with(&word.value) {
            return word.value.clone();
        }
        let mut rest = text.as_str();
        while let Some(next) = rest
            .strip_prefix([' ', '\t'])
            .or_else(|| rest.strip_prefix("\\\n"))
        {
            rest = next;
        }
        rest.to_owned()
    }

    /// Tells whether a list in parentheses was put together as it was written, but for blanks.
    pub(crate) fn has_list(&self, word: &RawWord) -> bool {
        let solid = |text: &str| text.split_whitespace().collect::<String>();
        word.loc
            .as_ref()
            .is_some_and(|span| solid(&self.span(span)).ends_with(&solid(&word.value)))
    }

    /// Gives the inside of an arithmetic command, if that is what stands there. The parser also takes
    /// `( ( rm x ) )` for one, and the command in it would vanish.
    pub(crate) fn arithmetic(&self, span: &SourceSpan) -> Option<String> {
        inside_arithmetic(&self.span(span))
    }

    /// Tells whether bash may take a subshell for arithmetic, in which single quotes protect nothing.
    pub(crate) fn may_be_arithmetic(&self, span: &SourceSpan) -> bool {
        let text = self.span(span);
        let Some(inner) = text
            .trim_start()
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
        else {
            return false;
        };
        let inner: Vec<char> = inner.chars().collect();
        let is_doubtful = text.contains("<<") || text.contains('\n') || has_comment(&text);
        inner.starts_with(&['('])
            && inner.ends_with(&[')'])
            && (is_doubtful || is_one_group(&inner).unwrap_or(true))
    }

    /// Gives the inside of the head of a loop, which stands between two places.
    pub(crate) fn loop_head(&self, loop_span: &SourceSpan, body: &SourceSpan) -> Option<String> {
        let head = self.part(loop_span.start.index, body.start.index);
        let head = head.trim().strip_prefix("for")?.trim_start();
        inside_arithmetic(head.trim_end_matches(|c: char| c.is_whitespace() || c == ';'))
    }

    /// Tells whether `[[ … ]]` holds nothing that bash reads in another way.
    pub(crate) fn is_plain_test(&self, span: &SourceSpan) -> bool {
        let text = self.span(span);
        !text.contains('\n') && !text.contains("<<") && !has_comment(&text)
    }
}

fn inside_arithmetic(text: &str) -> Option<String> {
    let inside = text.strip_prefix("((")?.strip_suffix("))")?;
    let is_plain = !inside.contains(['\'', '"', '\\', '\n', '`'])
        && !inside.contains("<<")
        && !has_comment(inside)
        && !has_neighbours(inside);
    is_plain.then(|| inside.to_owned())
}

/// Tells whether two operands stand side by side: then it is no arithmetic, and to a shell that has no
/// arithmetic commands it is a command with its words. What is inside of `$(…)` does not count.
pub(crate) fn has_neighbours(text: &str) -> bool {
    let (mut before, mut is_behind_blank, mut nested) = (' ', false, 0_usize);
    text.chars().any(|character| {
        if nested > 0 || (before == '$' && character == '(') {
            nested = match character {
                '(' => nested + 1,
                ')' => nested - 1,
                _ => nested,
            };
            before = if nested == 0 { ')' } else { ' ' };
            is_behind_blank = false;
            return false;
        }
        if matches!(character, ' ' | '\t') {
            is_behind_blank = true;
            return false;
        }
        let is_operand = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_neighbour = is_behind_blank
            && is_operand(character)
            && (is_operand(before) || matches!(before, ')' | ']' | '}'));
        before = character;
        is_behind_blank = false;
        is_neighbour
    })
}

/// Tells whether something looks like the beginning of a comment.
fn has_comment(text: &str) -> bool {
    let mut before = ' ';
    text.chars().any(|character| {
        let begins = character == '#'
            && matches!(
                before,
                ' ' | '\t' | '\n' | '(' | ')' | ';' | '&' | '|' | '<' | '>'
            );
        before = character;
        begins
    })
}

/// Tells whether the delimiter of a here-document means the same to everybody.
pub(crate) fn is_plain_delimiter(raw: &str) -> bool {
    let inner = ['\'', '"']
        .into_iter()
        .find_map(|quote| raw.strip_prefix(quote)?.strip_suffix(quote))
        .or_else(|| raw.strip_prefix('\\'))
        .unwrap_or(raw);
    !inner.is_empty()
        && inner.chars().all(|c| {
            c.is_ascii_alphanumeric()
                || matches!(c, '_' | '-' | '.' | '!' | '%' | '@' | ':' | '+' | '=')
        })
}

/// Tells whether a here-document could end earlier for bash, which joins lines at a backslash before it looks
/// for the delimiter.
pub(crate) fn ends_early(body: &str, delimiter: &str) -> bool {
    body.lines().any(|line| {
        line.trim_start_matches('\t')
            .strip_suffix('\\')
            .is_some_and(|begin| delimiter.starts_with(begin))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_arithmetic_is_believed() {
        for text in ["((i++))", "(( a > b ))", "((16#ff + 1))", "(( $# > 1 ))"] {
            assert!(inside_arithmetic(text).is_some(), "{text}");
        }
        for text in [
            "( ( rm x ) )",
            "((rm x) )",
            "((x<<2))",
            "((x # ))\nrm y\n))",
            "((x['a']))",
            "((rm x))",
        ] {
            assert!(inside_arithmetic(text).is_none(), "{text}");
        }
    }

    #[test]
    fn only_plain_delimiters_are_believed() {
        for text in ["EOF", "'EOF'", "\"EOF\"", "\\EOF", "E-1"] {
            assert!(is_plain_delimiter(text), "{text}");
        }
        for text in ["$X", "$'E'", "E'O'F", "'E F'", "", "$(x)", "E`x`"] {
            assert!(!is_plain_delimiter(text), "{text}");
        }
    }
}
