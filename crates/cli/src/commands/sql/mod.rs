//! `backout sql`: which database is meant, and what to run there. What each kind of database does with it is beside this file.

mod answer;
mod file;
mod server;

use std::path::PathBuf;

use backout_engine::Report;
use backout_remote::rows::Kind;
use clap::{Args, ValueHint};

pub(crate) use self::answer::Table;
use crate::failure::Failure;
use crate::input::read_file_or_stdin;
use crate::session::Session;

/// Run SQL, with an undo for every row that it changes.
///
/// All statements run in one database transaction: all of them count, or none. What they change is known and kept before that
/// transaction is committed. The undo looks at each row again and leaves what somebody else changed since. Statements that only
/// read show their rows, and record nothing.
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The database: an `SQLite` file, a URL (`postgres://`, `mysql://`), or the name of an enrolled database.
    #[arg(long, value_name = "DATABASE", value_hint = ValueHint::FilePath)]
    db: String,

    /// The statements; without them and without `--file` they come from standard input.
    #[arg(
        value_name = "SQL",
        conflicts_with = "file",
        allow_hyphen_values = true
    )]
    statements: Option<String>,

    /// Take the statements from this file; `-` is standard input.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,

    /// Make the database first, if there is no such file. That is an operation of its own.
    #[arg(long)]
    create: bool,
}

/// Where a database is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Database {
    /// In a file.
    File(PathBuf),
    /// Behind a URL.
    Url(String),
    /// Somewhere that was enrolled under this name.
    Name(String),
}

impl Database {
    /// Tells a URL by its scheme and takes what has a slash or a dot, or is there, for a file. All else is a name.
    fn of(text: &str) -> Self {
        let is_url = Kind::of(text).is_some();
        let path = PathBuf::from(text);
        if is_url {
            Self::Url(text.to_owned())
        } else if text.contains(['/', '.']) || path.exists() {
            Self::File(path)
        } else {
            Self::Name(text.to_owned())
        }
    }
}

/// Runs SQL.
pub(crate) fn cmd_sql(session: &mut Session, args: SqlArgs) -> Result<(), Failure> {
    let statements = match (args.statements, args.file) {
        (Some(text), _) => text,
        (None, file) => {
            let file = file.unwrap_or_else(|| PathBuf::from("-"));
            let instead = "give the statements, or `--file FILE`";
            let bytes = read_file_or_stdin(&file, session.bar(), instead)?;
            String::from_utf8(bytes).map_err(|_| {
                Report::usage("the statements are not UTF-8")
                    .next("give them in UTF-8; write other bytes as hexadecimal literals")
            })?
        }
    };
    match Database::of(&args.db) {
        Database::File(path) => file::run(session, &path, statements, args.create),
        Database::Url(url) => server::run_at(session, &url, statements),
        Database::Name(name) => server::run_by_name(session, &name, statements),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_a_file_and_a_name_are_told_apart() {
        for url in ["postgres://h/d", "postgresql:///d", "mysql://h/d"] {
            assert_eq!(Database::of(url), Database::Url(url.to_owned()));
        }
        for file in ["a.db", "./a", "/tmp/a", ":memory:/"] {
            assert_eq!(Database::of(file), Database::File(file.into()));
        }
        assert_eq!(Database::of("shop"), Database::Name("shop".to_owned()));
    }
}
