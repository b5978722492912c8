//! A text of SQL as single statements, each with its first words.
//!
//! The words only tell early and in plain terms what cannot be done. What a statement really did is asked of the server
//! afterwards (`run.rs`).

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement<'t> {
    /// Its text, without the semicolon.
    pub(crate) text: &'t str,
    /// Its words up to the first value or bracket, as they are written.
    pub(crate) words: Vec<&'t str>,
    /// All its words, names with several parts in pieces, without quotes.
    pub(crate) names: Vec<&'t str>,
    /// Whether a comment in it is carried out by some servers.
    pub(crate) has_living_comment: bool,
    /// The lines below a `COPY ... FROM STDIN`, up to `\.`.
    pub(crate) data: Option<&'t str>,
}

/// How a server reads statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As `PostgreSQL` does.
    Postgres,
    /// As `MySQL` and `MariaDB` do: names in backticks, a backslash in every text, `#` begins a comment.
    Mysql,
}

impl Dialect {
    /// Gives that of a kind of server.
    pub(crate) fn of(kind: Option<Kind>) -> Self {
        match kind {
            Some(Kind::Mysql) => Self::Mysql,
            Some(Kind::Postgres) | None => Self::Postgres,
        }
    }
}

/// How many words of a statement are of interest.
const WORDS_MAX: usize = 6;

impl Statement<'_> {
    /// Gives a word in capitals; empty if there is none.
    pub(crate) fn word(&self, index: usize) -> String {
        self.words
            .get(index)
            .map(|it| it.to_ascii_uppercase())
            .unwrap_or_default()
    }

    /// Tells whether it copies rows out of a stream.
    fn reads_stream(&self) -> bool {
        let has = |word: &str| self.names.iter().any(|it| it.eq_ignore_ascii_case(word));
        self.word(0) == "COPY" && has("from") && has("stdin")
    }

    /// Says why it cannot be run here, if it cannot.
    pub(crate) fn refused(&self) -> Option<String> {
        let (first, second) = (self.word(0), self.word(1));
        #[cfg(feature = "postgres")]
        if crate::postgres::can_be_taken_back(self) {
            return None;
        }
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
            "COPY" if self.data.is_some() => return None,
            "COPY" if !self.words.iter().any(|it| it.eq_ignore_ascii_case("to")) => {
                "there is no stream to read from here: put the rows on the lines below `COPY ... FROM STDIN;`, and `\\.` below them"
            }
            "COPY" => "it would write a file; use `SELECT`",
            _ => return None,
        };
        Some(format!("`{first}` cannot be run: {why}"))
    }

    /// Says it in a few words that hold no value.
    pub(crate) fn said(&self) -> String {
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
pub(crate) fn split(text: &str, dialect: Dialect) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut scan = Scan::new(text, dialect);
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
    dialect: Dialect,
}

impl<'t> Scan<'t> {
    const fn new(text: &'t str, dialect: Dialect) -> Self {
        let (at, has_token) = (0, false);
        Self {
            text,
            at,
            has_token,
            dialect,
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
        let mut found = Statement {
            text: "",
            words: Vec::new(),
            names: Vec::new(),
            has_living_comment: false,
            data: None,
        };
        let mut is_open = true;
        self.has_token = false;
        while let Some(letter) = self.rest().chars().next() {
            if self.is_line_comment() {
                self.skip_past(1, "\n");
                continue;
            }
            if self.rest().starts_with("/*") {
                let is_living = ["/*!", "/*M!"].iter();
                let is_living = is_living.into_iter().any(|it| self.rest().starts_with(it));
                found.has_living_comment |= is_living;
                self.has_token |= is_living && self.dialect == Dialect::Mysql;
                self.comment();
                continue;
            }
            if letter == ';' {
                found.text = self.text.get(begin..self.at).unwrap_or_default();
                self.at += 1;
                if self.dialect == Dialect::Postgres && found.reads_stream() {
                    found.data = Some(self.lines_below());
                }
                return found;
            }
            self.has_token |= !letter.is_whitespace();
            if letter.is_alphabetic() || letter == '_' || self.is_name_quote(letter) {
                let word = self.word(letter);
                if is_open && found.words.len() < WORDS_MAX {
                    found.words.push(word);
                }
                found.names.extend(pieces(word));
                // E'..' has its own rules for a backslash.
                if word.eq_ignore_ascii_case("e") && self.rest().starts_with('\'') {
                    self.quoted('\'', true);
                }
                continue;
            }
            // A name may have several parts; whatever else comes ends the words that are told.
            is_open &= letter.is_whitespace() || ",.*".contains(letter);
            let is_mysql = self.dialect == Dialect::Mysql;
            match letter {
                '\'' | '"' => self.quoted(letter, is_mysql),
                '$' if !is_mysql => self.dollar(),
                _ => self.at += letter.len_utf8(),
            }
        }
        found.text = self.text.get(begin..self.at).unwrap_or_default();
        found
    }

    /// Takes the lines that follow, up to one that is `\.`, or all.
    fn lines_below(&mut self) -> &'t str {
        self.skip_past(0, "\n");
        let rest = self.rest();
        let mut at = 0;
        for line in rest.split_inclusive('\n') {
            if line.trim_end() == "\\." {
                self.at += at + line.len();
                return rest.get(..at).unwrap_or_default();
            }
            at += line.len();
        }
        self.at = self.text.len();
        rest
    }

    /// Tells whether a comment begins here that ends with the line.
    fn is_line_comment(&self) -> bool {
        let rest = self.rest();
        match self.dialect {
            Dialect::Postgres => rest.starts_with("--"),
            // Two dashes count only before a blank.
            Dialect::Mysql => {
                let after = rest.strip_prefix("--");
                rest.starts_with('#')
                    || after.is_some_and(|it| {
                        it.is_empty() || it.starts_with(|letter: char| letter <= ' ')
                    })
            }
        }
    }

    /// Tells whether a name in quotes begins with this.
    fn is_name_quote(&self, letter: char) -> bool {
        letter
            == match self.dialect {
                Dialect::Postgres => '"',
                Dialect::Mysql => '`',
            }
    }

    fn word(&mut self, first: char) -> &'t str {
        let rest = self.rest();
        let end = if self.is_name_quote(first) {
            rest.get(1..)
                .and_then(|it| it.find(first))
                .map_or(rest.len(), |found| found + 2)
        } else {
            let is_in = |letter: char| letter.is_alphanumeric() || "_$.".contains(letter);
            rest.find(|letter| !is_in(letter)).unwrap_or(rest.len())
        };
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn quoted(&mut self, end: char, has_escapes: bool) {
        self.at += 1;
        let mut letters = self.rest().char_indices();
        while let Some((index, letter)) = letters.next() {
            if letter == '\\' && has_escapes {
                letters.next();
            } else if letter == end {
                // Two of them are one in the text; the next round begins another text then.
                self.at += index + 1;
                return;
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
            if rest.starts_with("/*") && (depth == 0 || self.dialect == Dialect::Postgres) {
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

/// Gives the parts of a name, without their quotes.
fn pieces(word: &str) -> Vec<&str> {
    let quoted = ['"', '`']
        .iter()
        .find_map(|quote| word.strip_prefix(*quote)?.strip_suffix(*quote));
    match quoted {
        Some(name) => vec![name],
        None => word.split('.').filter(|it| !it.is_empty()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Statement};

    fn split(text: &str) -> Vec<Statement<'_>> {
        super::split(text, Dialect::Postgres)
    }

    #[test]
    fn mysql_has_its_own_quotes_and_comments() {
        let text = "INSERT INTO `a;b` VALUES ('x\\';', \";\"); # c;\n-- d;\nUPDATE shop.t SET a=1--1 /* /* */; SELECT 2";
        let found = super::split(text, Dialect::Mysql);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].names, ["INSERT", "INTO", "a;b", "VALUES"]);
        assert_eq!(found[1].names, ["UPDATE", "shop", "t", "SET", "a"]);
        assert!(super::split("/*!50000 x */ SELECT 1", Dialect::Mysql)[0].has_living_comment);
    }

    #[test]
    fn a_semicolon_ends_a_statement_unless_it_is_in_something() {
        let text = "INSERT INTO a VALUES ('x;''y', E'\\';', $$;$$, $t$;$$;$t$, \"a;b\"); -- c;\n/* ; /* ; */ ; */ SELECT 1;;\n--;";
        let found = split(text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[1].words, ["SELECT"]);
        assert!(found[0].text.ends_with("\"a;b\")"));
    }

    #[test]
    fn rows_stand_below_a_copy() {
        let found =
            split("COPY a (b) FROM STDIN;\n1\tx;y\n2\t\\N\n\\.\nSELECT 1;COPY a FROM stdin;\n3\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[0].data, Some("1\tx;y\n2\t\\N\n"));
        assert_eq!(found[2].data, Some("3\n"));
        assert_eq!(found[2].refused(), None);
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
            "Create type a as (b int)",
            "drop table a cascade",
            "alter table a owner to b",
            "alter table a drop column b cascade",
            "copy a from stdin",
        ] {
            assert!(split(text)[0].refused().is_some(), "{text}");
        }
        for text in [
            "create unique index on a (b)",
            "alter table a add b int",
            "alter table a drop column b",
            "alter table a rename to b",
            "drop view a",
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
