//! A text of SQL as single statements, each with its first words.
//!
//! The words only tell early and in plain terms what cannot be done. What a statement really did is asked of the server
//! afterwards (`run.rs`).

/// One statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement<'t> {
    /// Its text, without the semicolon.
    pub(super) text: &'t str,
    /// Its words up to the first value or bracket, as they are written.
    pub(super) words: Vec<&'t str>,
}

/// How many words of a statement are of interest.
const WORDS_MAX: usize = 6;

impl Statement<'_> {
    /// Gives a word in capitals; empty if there is none.
    fn word(&self, index: usize) -> String {
        self.words
            .get(index)
            .map(|it| it.to_ascii_uppercase())
            .unwrap_or_default()
    }

    /// Says why it cannot be run here, if it cannot.
    pub(super) fn refused(&self) -> Option<String> {
        let (first, second) = (self.word(0), self.word(1));
        let is_back_to =
            first == "ROLLBACK" && self.words.iter().any(|it| it.eq_ignore_ascii_case("to"));
        let why = match first.as_str() {
            "ROLLBACK" if is_back_to => return None,
            "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" => {
                "all statements run in one transaction, which Backout begins and ends"
            }
            "PREPARE" if second == "TRANSACTION" => "the transaction would outlive its record",
            "VACUUM" | "CLUSTER" | "REINDEX" | "CHECKPOINT" | "LOAD" | "DISCARD" => {
                "it works outside of the transaction, so it could not be taken back"
            }
            "CREATE" | "ALTER" | "DROP" | "COMMENT" | "GRANT" | "REVOKE" | "REASSIGN"
            | "SECURITY" | "IMPORT" | "REFRESH" => {
                "it changes the schema, and what is kept here is rows: nothing would bring the schema back"
            }
            "COPY" if !self.words.iter().any(|it| it.eq_ignore_ascii_case("to")) => {
                "there is no stream to read from here; use `backout run -- psql` with `\\copy`, which is kept row by row, too"
            }
            "COPY" => "it would write a file; use `SELECT`",
            _ => return None,
        };
        Some(format!("`{first}` cannot be run: {why}"))
    }

    /// Says it in a few words that hold no value.
    pub(super) fn said(&self) -> String {
        const ENDS: [&str; 8] = [
            "SET",
            "VALUES",
            "WHERE",
            "SELECT",
            "USING",
            "AS",
            "RETURNING",
            "DEFAULT",
        ];
        let is_end = |index: usize| index > 0 && ENDS.contains(&self.word(index).as_str());
        let end = (0..self.words.len())
            .find(|index| is_end(*index))
            .unwrap_or(self.words.len());
        self.words.get(..end).unwrap_or_default().join(" ")
    }
}

/// Splits a text into statements.
pub(super) fn split(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut scan = Scan::new(text);
    while scan.at < text.len() {
        let statement = scan.statement();
        if !statement.text.trim().is_empty() && scan.has_token {
            statements.push(statement);
        }
    }
    statements
}

/// Where a reader stands in a text.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// Whether the statement holds more than comments.
    has_token: bool,
}

impl<'t> Scan<'t> {
    const fn new(text: &'t str) -> Self {
        let (at, has_token) = (0, false);
        Self {
            text,
            at,
            has_token,
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Goes on to behind the next place of `end`, or to the end of the text.
    fn skip_past(&mut self, from: usize, end: &str) {
        let rest = self.text.get(self.at + from..).unwrap_or_default();
        let length = rest.find(end).map_or(rest.len(), |found| found + end.len());
        self.at = (self.at + from + length).min(self.text.len());
    }

    /// Reads up to the next semicolon that ends a statement.
    fn statement(&mut self) -> Statement<'t> {
        let begin = self.at;
        let mut words: Vec<&'t str> = Vec::new();
        let mut is_open = true;
        self.has_token = false;
        while let Some(letter) = self.rest().chars().next() {
            let rest = self.rest();
            if rest.starts_with("--") {
                self.skip_past(2, "\n");
                continue;
            }
            if rest.starts_with("/*") {
                self.comment();
                continue;
            }
            if letter == ';' {
                let text = self.text.get(begin..self.at).unwrap_or_default();
                self.at += 1;
                return Statement { text, words };
            }
            self.has_token |= !letter.is_whitespace();
            if letter.is_alphabetic() || letter == '_' || letter == '"' {
                let word = self.word();
                if is_open && words.len() < WORDS_MAX {
                    words.push(word);
                }
                // E'..' has its own rules for a backslash.
                if word.eq_ignore_ascii_case("e") && self.rest().starts_with('\'') {
                    self.quoted(true);
                }
                continue;
            }
            // A name may have several parts; whatever else comes ends the words that are told.
            is_open &= letter.is_whitespace() || ",.*".contains(letter);
            match letter {
                '\'' => self.quoted(false),
                '$' => self.dollar(),
                _ => self.at += letter.len_utf8(),
            }
        }
        let text = self.text.get(begin..self.at).unwrap_or_default();
        Statement { text, words }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = if rest.starts_with('"') {
            rest.get(1..)
                .and_then(|it| it.find('"'))
                .map_or(rest.len(), |found| found + 2)
        } else {
            let is_in = |letter: char| letter.is_alphanumeric() || "_$.".contains(letter);
            rest.find(|letter| !is_in(letter)).unwrap_or(rest.len())
        };
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn quoted(&mut self, has_escapes: bool) {
        self.at += 1;
        let mut letters = self.rest().char_indices();
        while let Some((index, letter)) = letters.next() {
            match letter {
                '\\' if has_escapes => drop(letters.next()),
                // Two of them are one in the text; the next round begins another text then.
                '\'' => {
                    self.at += index + 1;
                    return;
                }
                _ => {}
            }
        }
        self.at = self.text.len();
    }

    fn dollar(&mut self) {
        let rest = self.rest();
        let tag_end = rest
            .get(1..)
            .and_then(|it| it.find('$'))
            .map(|found| found + 2);
        let is_tag = |tag: &str| {
            let name = tag.trim_matches('$');
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            name.chars().all(is_name) && !name.starts_with(|it: char| it.is_ascii_digit())
        };
        match tag_end.and_then(|end| rest.get(..end)) {
            Some(tag) if is_tag(tag) => self.skip_past(tag.len(), tag),
            _ => self.at += 1,
        }
    }

    fn comment(&mut self) {
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
            } else if let Some(letter) = rest.chars().next() {
                self.at += letter.len_utf8();
            } else {
                return;
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_in_something() {
        let text = "INSERT INTO a VALUES ('x;''y', E'\\';', $$;$$, $t$;$$;$t$, \"a;b\"); -- c;\n/* ; /* ; */ ; */ SELECT 1;;\n--;";
        let found = split(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].words, ["SELECT"]);
        assert!(found[0].text.ends_with("\"a;b\")"));
    }

    #[test]
    fn what_would_end_the_transaction_or_change_the_schema_is_told_early() {
        for text in [
            "commit",
            "/* x */ COMMIT",
            "end",
            "ROLLBACK",
            "begin",
            "vacuum a",
            "Create table a()",
            "copy a from stdin",
        ] {
            assert!(split(text)[0].refused().is_some(), "{text}");
        }
        for text in [
            "ROLLBACK TO SAVEPOINT a",
            "savepoint a",
            "with x as (select 1) select 1",
            "do $$ begin commit; end $$",
        ] {
            assert_eq!(split(text)[0].refused(), None, "{text}");
        }
    }

    #[test]
    fn a_statement_is_said_without_its_values() {
        let said = |text| split(text)[0].said();
        assert_eq!(
            said("UPDATE public.orders SET token = 'secret'"),
            "UPDATE public.orders"
        );
        assert_eq!(
            said("insert into users(name) values ('x')"),
            "insert into users"
        );
        assert_eq!(
            said("DELETE FROM \"Odd Name\" WHERE id = 7"),
            "DELETE FROM \"Odd Name\""
        );
    }
}
