//! Which variables look like secrets. Whoever exports is told which went along and which did not.

use std::collections::BTreeSet;
use std::ffi::OsString;

use super::SandboxExported;
use crate::sandbox::carry::Variables;

/// What the names of secrets have in them.
const WORDS: [&str; 12] = [
    "SECRET",
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "AUTH",
    "COOKIE",
];

/// What values of secrets begin with.
const BEGINNINGS: [&str; 9] = [
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "-----BEGIN",
];

/// Tells whether a variable looks like a secret: by its name, by its value, or because that is a URL with a password.
pub(crate) fn is_secret(name: &str, value: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let is_named = WORDS.iter().any(|word| upper.contains(word));
    let is_begun = BEGINNINGS.iter().any(|begin| value.starts_with(begin));
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'))
    });
    is_named || is_begun || has_password
}

/// What was said on the way.
pub(super) struct Told {
    has_secrets: bool,
    with: BTreeSet<String>,
    without: BTreeSet<String>,
    /// Those of them that were told of.
    named: BTreeSet<String>,
}

impl Told {
    pub(super) const fn new(has_secrets: bool) -> Self {
        Self {
            has_secrets,
            with: BTreeSet::new(),
            without: BTreeSet::new(),
            named: BTreeSet::new(),
        }
    }

    /// Tells whether a variable may go along, and notes what becomes of it.
    pub(super) fn lets(&mut self, name: &str, value: &str) -> bool {
        let is_let = self.has_secrets || !is_secret(name, value);
        let list = if is_let {
            &mut self.with
        } else {
            &mut self.without
        };
        list.insert(name.to_owned());
        is_let
    }

    /// Names those that were left out since this was asked last.
    pub(super) fn newly_left_out(&mut self) -> Vec<String> {
        let new: Vec<String> = self.without.difference(&self.named).cloned().collect();
        self.named.extend(new.iter().cloned());
        new
    }

    /// Gives the variables that may go along, as `NAME=value`.
    pub(super) fn environment(&mut self, variables: &Variables) -> Vec<String> {
        let mut all = Vec::new();
        for (name, value) in variables.set() {
            let (name, value) = (lossy(name), lossy(value));
            if self.lets(&name, &value) {
                all.push(format!("{name}={value}"));
            }
        }
        all
    }

    /// Takes the values out of assignments in a shell line that look like secrets: the script wants them from its caller.
    pub(super) fn redacted(&mut self, line: &str) -> String {
        let mut told = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find('=') {
            let (before, after) = rest.split_at(at);
            let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let begin = before
                .char_indices()
                .rev()
                .take_while(|(_, it)| is_part(*it))
                .last()
                .map_or(before.len(), |(at, _)| at);
            let name = before.get(begin..).unwrap_or_default();
            let value = after.get(1..).unwrap_or_default();
            let length = word_length(value);
            let word = value.get(..length).unwrap_or_default();
            let plain = word.trim_matches(['"', '\'']);
            let is_taken = !plain.starts_with('$') && !plain.is_empty();
            told.push_str(before);
            told.push('=');
            if !name.is_empty() && is_taken && is_secret(name, plain) && !self.lets(name, plain) {
                told.extend(["\"${", name, ":?set it first}\""]);
            } else {
                told.push_str(word);
            }
            rest = value.get(length..).unwrap_or_default();
        }
        told.push_str(rest);
        told
    }

    /// Writes it into the answer.
    pub(super) fn tell(self, exported: &mut SandboxExported) {
        exported.variables = self.with.into_iter().collect();
        exported.left_out = self.without.into_iter().collect();
    }
}

/// Tells how long the first word of a shell line is, with its quotes.
fn word_length(text: &str) -> usize {
    let (mut quote, mut is_escaped) = (None, false);
    for (at, it) in text.char_indices() {
        match (quote, it) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (Some(open), _) if open == it => quote = None,
            (None, '"' | '\'') => quote = Some(it),
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '>' | '<') => return at,
            (Some(_) | None, _) => {}
        }
    }
    text.len()
}

/// A variable that is no text is shown as well as can be.
pub(super) fn lossy(text: &OsString) -> String {
    text.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name_and_by_value() {
        for (name, value) in [
            ("API_TOKEN", "x"),
            ("db_password", "x"),
            ("DATABASE_URL", "postgres://me:hush@host/db"),
            ("GH", "ghp_abc"),
            ("CERT", "-----BEGIN PRIVATE KEY-----"),
        ] {
            assert!(is_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("CC", "clang"),
            ("URL", "https://host/a@b:c"),
            ("KEYBOARD", "us"),
            ("PATH", "/bin"),
        ] {
            assert!(!is_secret(name, value), "{name}");
        }
    }

    #[test]
    fn a_line_keeps_everything_but_the_values_of_secrets() {
        let mut told = Told::new(false);
        let line =
            "export A=1 API_TOKEN='s3 cret' && TOKEN=$OTHER make X=\"y z\" PASSWORD=a\\ b; ls";
        assert_eq!(
            told.redacted(line),
            "export A=1 API_TOKEN=\"${API_TOKEN:?set it first}\" && TOKEN=$OTHER make X=\"y z\" PASSWORD=\"${PASSWORD:?set it first}\"; ls"
        );
        assert_eq!(Told::new(true).redacted(line), line);
    }
}
