//! The guard around the bash parser: what it is given, and what of its answer is believed.
//!
//! The parser is a good one, but it was not made for hostile input. It recurses, and a few of its rules try
//! the same tokens again and again, so that a short line of open parentheses would keep it busy for years.
//! Hence the limits here, all of them counted before the parser runs, and its own thread with a large stack.
//! Whatever is over a limit is refused, and what is refused is unknown.
//!
//! Only the tokenizer and the parser of programs are used: they keep no copy of what they read. The parser
//! of words does (it caches the last 64), so words are read in `scan`.

use brush_parser::ast::Program;
use brush_parser::{ParserOptions, Token, parse_tokens, uncached_tokenize_str};

/// Longer commands are not read.
pub(crate) const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// Deeper nesting of brackets and braces is not read.
const NESTING_MAX: usize = 100;

/// More expansions than this are not read.
const EXPANSIONS_MAX: usize = 1000;

/// How much nesting is read of the kinds that the parser tries again and again: open parentheses, `case`,
/// `<(…)` and `>(…)`. Each doubles the work.
const RETRIES_MAX: usize = 10;

/// A number of a file descriptor with more digits makes the parser fail.
const DESCRIPTOR_DIGITS_MAX: usize = 9;

/// The stack of the thread that reads.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Runs the reading on a thread with room for deep nesting. Gives nothing if it failed.
pub(crate) fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("shell".to_owned())
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, work)
            .ok()?
            .join()
            .ok()
    })
}

/// Parses a program, or says why it is not read.
pub(crate) fn parse(text: &str) -> Result<Program, String> {
    check_text(text)?;
    let options = ParserOptions {
        // As in `bash -c`: with it on, `!(rm x)` would be a pattern instead of a command.
        enable_extended_globbing: false,
        ..ParserOptions::default()
    };
    let tokens = uncached_tokenize_str(text, &options.tokenizer_options())
        .map_err(|error| format!("it cannot be parsed: {error}"))?;
    check_tokens(&tokens)?;
    parse_tokens(&tokens, &options).map_err(|error| format!("it cannot be parsed: {error}"))
}

/// Refuses what is too long or too deep, whatever is quoted in it.
fn check_text(text: &str) -> Result<(), String> {
    if text.len() > COMMAND_BYTES_MAX {
        return Err(format!("it is longer than {COMMAND_BYTES_MAX} bytes"));
    }
    if text.contains('\0') {
        return Err("it contains a zero byte".to_owned());
    }
    if text.contains('\r') {
        return Err("it contains a carriage return".to_owned());
    }
    check_documents(text)?;
    let (mut depth, mut expansions, mut before) = (0_usize, 0, ' ');
    for character in text.chars() {
        match character {
            '(' | '{' | '[' => {
                depth += 1;
                expansions += usize::from(before == '$');
            }
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > NESTING_MAX || expansions > EXPANSIONS_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        before = character;
    }
    Ok(())
}

/// Refuses here-documents at which the tokenizer fails, or from which it never comes back: those without a
/// delimiter, and those inside of `${…}`. It is not known here what is quoted, so some are refused in vain.
fn check_documents(text: &str) -> Result<(), String> {
    for (place, _) in text.match_indices("<<") {
        let after = text.get(place + 2..).unwrap_or_default();
        let is_string = after.starts_with('<')
            || text
                .get(..place)
                .is_some_and(|before| before.ends_with('<'));
        if !is_string && !has_delimiter(after) {
            return Err("a here-document has no delimiter".to_owned());
        }
    }
    let in_braces = |(place, _)| {
        let after: &str = text.get(place..).unwrap_or_default();
        after
            .split('}')
            .next()
            .is_some_and(|inside| inside.contains("<<"))
    };
    if text.match_indices("${").any(in_braces) {
        return Err("a here-document inside `${…}` is not read".to_owned());
    }
    Ok(())
}

/// Tells whether a word can begin behind `<<`, and is more than a pair of quotes.
fn has_delimiter(after: &str) -> bool {
    let after = after.strip_prefix('-').unwrap_or(after);
    let after = after.trim_start_matches([' ', '\t']);
    let ends = |text: &str| {
        text.is_empty() || text.starts_with(|c: char| c.is_whitespace() || ";&|<>()#".contains(c))
    };
    let rest = after.trim_start_matches(['\'', '"', '\\']);
    let is_empty_quotes = ends(rest) && after.len() > rest.len() + 1;
    !ends(after) && !is_empty_quotes && !after.starts_with("\\\n")
}

/// Refuses what the parser would try again and again, or fail at.
fn check_tokens(tokens: &[Token]) -> Result<(), String> {
    let (mut open, mut cases, mut blocks, mut substitutions) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut before = "";
    for token in tokens {
        match token {
            Token::Operator(text, _) => match text.as_str() {
                "(" => {
                    open += 1;
                    substitutions += usize::from(matches!(before, "<" | ">"));
                }
                ")" => open = open.saturating_sub(1),
                text if text.starts_with(['<', '>']) && is_long_number(before) => {
                    return Err("a file descriptor has too many digits".to_owned());
                }
                _ => {}
            },
            Token::Word(text, _) => match text.as_str() {
                "case" => cases += 1,
                "esac" => cases = cases.saturating_sub(1),
                "if" | "while" | "until" | "do" | "{" => blocks += 1,
                "fi" | "done" | "}" => blocks = blocks.saturating_sub(1),
                _ => {}
            },
        }
        if open + cases + substitutions > RETRIES_MAX || blocks > NESTING_MAX {
            return Err("it is nested too deeply".to_owned());
        }
        before = token.to_str();
    }
    Ok(())
}

fn is_long_number(text: &str) -> bool {
    text.len() > DESCRIPTOR_DIGITS_MAX && text.chars().all(|digit| digit.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_keep_the_parser_busy_is_refused_before() {
        let nested = |open: &str, middle: &str, close: &str, times: usize| {
            format!("{}{middle}{}", open.repeat(times), close.repeat(times))
        };
        for text in [
            "(".repeat(40),
            "( ".repeat(40),
            nested("(", "a;b", ")", 40),
            nested("( ", "a;b", " )", 40),
            nested("$(", "ls", ")", 200),
            nested("case x in a) ", "ls", " esac", 30),
            nested("case x in a) ", "", "", 30),
            "cat <(".repeat(30),
            nested("if ls; then ", "ls", "; fi", 200),
            nested("{ ", "ls", "; }", 200),
            format!("echo {}", "$(".repeat(20_000)),
            "a".repeat(COMMAND_BYTES_MAX + 1),
            "[[ a =~ (a ".to_owned() + &"(a ".repeat(40),
            "((".to_owned() + &"a (".repeat(40),
            "ls 99999999999>x".to_owned(),
            "cat <<\"\"\nx\n\n".to_owned(),
            "cat <<- '' x".to_owned(),
            "echo \"$(ls <<  # x)\"".to_owned(),
            "echo $(ls << <#')".to_owned(),
            "echo ${x#<<-E\n} x".to_owned(),
            "cat <<\\\n \"\"".to_owned(),
        ] {
            assert!(parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_people_write_is_not() {
        for text in [
            "(( (a + b) * (c + d) ))",
            "case $x in a) ls;; b) case $y in c) ls;; esac;; esac",
            "diff <(sort a) <(sort b)",
            "if ls; then if ls; then ls; fi; fi",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }
}
