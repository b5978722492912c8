//! Permission changes as people write them: `644`, `u+x`, `go-w`, `a=rX`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Says why a text is not a permission change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a mode (like 644, u+x, go-w or a=rX)")]
pub struct ModeError {
    /// What was given.
    pub text: String,
}

/// A permission change, absolute or relative to what is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModeChange {
    text: String,
    clauses: Vec<Clause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Exactly(u32),
    Symbolic {
        who: u32,
        action: char,
        bits: u32,
        execute_if_any: bool,
    },
}

impl From<ModeChange> for String {
    fn from(change: ModeChange) -> Self {
        change.text
    }
}

impl TryFrom<String> for ModeChange {
    type Error = ModeError;

    fn try_from(text: String) -> Result<Self, ModeError> {
        text.parse()
    }
}

impl ModeChange {
    /// Makes a change to exactly these bits (07777).
    pub fn exactly(mode: u32) -> Self {
        Self {
            text: format!("{mode:o}"),
            clauses: vec![Clause::Exactly(mode & 0o7777)],
        }
    }

    /// Gives the bits after the change of a node that has `mode` now.
    pub fn apply(&self, mode: u32, is_directory: bool) -> u32 {
        self.clauses
            .iter()
            .fold(mode, |mode, clause| match *clause {
                Clause::Exactly(exactly) => exactly,
                Clause::Symbolic {
                    who,
                    action,
                    bits,
                    execute_if_any,
                } => {
                    let executes = execute_if_any && (is_directory || mode & 0o111 != 0);
                    let bits = if executes { bits | (0o111 & who) } else { bits };
                    match action {
                        '+' => mode | bits,
                        '-' => mode & !bits,
                        _ => (mode & !who) | bits,
                    }
                }
            })
    }
}

impl fmt::Display for ModeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for ModeChange {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        let wrong = || ModeError {
            text: text.to_owned(),
        };
        if text.bytes().all(|b| b.is_ascii_digit()) {
            let mode = u32::from_str_radix(text, 8).map_err(|_| wrong())?;
            let clauses = vec![Clause::Exactly(mode)];
            return if mode > 0o7777 {
                Err(wrong())
            } else {
                Ok(Self {
                    text: text.into(),
                    clauses,
                })
            };
        }
        let mut clauses = Vec::new();
        for part in text.split(',') {
            parse_clause(part, &mut clauses).ok_or_else(wrong)?;
        }
        Ok(Self {
            text: text.to_owned(),
            clauses,
        })
    }
}

/// Reads one clause, which may hold several actions (`u+x-w`).
fn parse_clause(part: &str, clauses: &mut Vec<Clause>) -> Option<()> {
    let split = part.find(['+', '-', '='])?;
    let (whom, mut rest) = part.split_at(split);
    let mut who = 0;
    for letter in whom.chars() {
        who |= match letter {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => 0o7777,
            _ => return None,
        };
    }
    if who == 0 {
        who = 0o7777;
    }
    while !rest.is_empty() {
        let action = rest.chars().next()?;
        let body = rest.get(1..)?;
        let end = body.find(['+', '-', '=']).unwrap_or(body.len());
        let (letters, next) = body.split_at(end);
        let (mut bits, mut execute_if_any) = (0, false);
        for letter in letters.chars() {
            bits |= match letter {
                'r' => 0o444,
                'w' => 0o222,
                'x' => 0o111,
                's' => 0o6000,
                't' => 0o1000,
                'X' => {
                    execute_if_any = true;
                    0
                }
                _ => return None,
            };
        }
        // The sticky bit belongs to everybody, whoever is named.
        let sticky = bits & 0o1000;
        clauses.push(Clause::Symbolic {
            who,
            action,
            bits: bits & who | sticky,
            execute_if_any,
        });
        rest = next;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, mode: u32, is_directory: bool) -> u32 {
        text.parse::<ModeChange>()
            .unwrap()
            .apply(mode, is_directory)
    }

    #[test]
    fn modes_are_read_as_chmod_reads_them() {
        assert_eq!(changed("644", 0o777, false), 0o644);
        assert_eq!(changed("4755", 0, false), 0o4755);
        assert_eq!(changed("u+x", 0o644, false), 0o744);
        assert_eq!(changed("go-w", 0o666, false), 0o644);
        assert_eq!(changed("a=rX", 0o755, false), 0o555);
        assert_eq!(changed("a=rX", 0o644, false), 0o444);
        assert_eq!(changed("a=rX", 0o600, true), 0o555);
        assert_eq!(changed("u+s,g+s", 0o755, false), 0o6755);
        assert_eq!(changed("+t", 0o777, true), 0o1777);
        assert_eq!(changed("u=rw,go=", 0o777, false), 0o600);
        assert_eq!(changed("u+x-w", 0o644, false), 0o544);
    }

    #[test]
    fn what_is_not_a_mode_is_refused() {
        for text in ["", "9", "77777", "z+x", "u+q", "rw", "u", ","] {
            assert!(text.parse::<ModeChange>().is_err(), "{text}");
        }
    }
}
