//! `backout db`: the databases whose rows can be taken back.

use backout_engine::Report;
use backout_remote::rows::{Database as Remote, Enrolled, Kind, PATIENCE, connect, is_name};
use backout_storage::Database;
use clap::Args;
use serde::Serialize;

use crate::databases::driver;
use crate::failure::Failure;
use crate::session::Session;
use crate::show;

/// Enroll databases, so that every row that changes can come back.
///
/// What counts is every change, whoever makes it and with whichever program.
#[derive(Debug, Args)]
pub(crate) struct DbArgs {
    #[command(subcommand)]
    what: What,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
enum What {
    /// Put triggers and a log into a database. Once more covers tables that are new since.
    ///
    /// Everything is in a schema of its own, `backout`, or with `MariaDB` in a database of its own, `backout_NAME`. From then on
    /// each transaction of each client is kept there, row by row, until it expires. A password in the URL is used now and kept
    /// nowhere: later it comes from `PGPASSWORD` or `~/.pgpass`, `MYSQL_PWD` or `~/.my.cnf`.
    Enroll {
        /// Where it is, like `postgres://user@host/database` or `mysql://user@host/database`.
        url: String,

        /// What to call it; the name of the database if nothing is said.
        #[arg(long, value_parser = parse_name)]
        name: Option<String>,
    },
    /// Take the triggers and the log out of a database. What the log held can no longer be undone.
    Unenroll {
        /// The name or the URL of the database.
        database: String,

        /// Also if operations can no longer be undone then, here or in other journals.
        #[arg(long)]
        discard: bool,
    },
    /// List the enrolled databases.
    List,
    /// Say what is covered in a database and what is not.
    Status {
        /// The name or the URL of the database.
        database: String,
    },
    /// Take up what other clients did in a database, one operation for each transaction.
    Sync {
        /// The name or the URL of the database; all of them if nothing is said.
        database: Option<String>,
    },
}

/// A reply in JSON.
#[derive(Serialize)]
struct Told<T> {
    reply: &'static str,
    #[serde(flatten)]
    told: T,
}

/// The list in JSON.
#[derive(Serialize)]
struct Listed {
    databases: Vec<Database>,
}

/// What was taken up, in JSON.
#[derive(Serialize)]
struct Synced {
    operations: Vec<String>,
    pruned_rows: u64,
}

impl DbArgs {
    /// Tells whether it changes nothing, here or in a database.
    pub(crate) const fn only_looks(&self) -> bool {
        matches!(self.what, What::List | What::Status { .. })
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let wrong = "a name is letters, digits, `-` and `_`, at most 64";
    is_name(text)
        .then(|| text.to_owned())
        .ok_or_else(|| wrong.to_owned())
}

/// Does what was asked about databases.
pub(crate) fn cmd_db(session: &mut Session, args: DbArgs) -> Result<(), Failure> {
    match args.what {
        What::Enroll { url, name } => enroll(session, &url, name.as_deref()),
        What::Unenroll { database, discard } => unenroll(session, &database, discard),
        What::List => list(session),
        What::Status { database } => {
            let mut connection = open(session, &database)?;
            let status = connection.status().map_err(driver)?;
            tell(session, "database", &status, "is enrolled");
            Ok(())
        }
        What::Sync { database } => sync(session, database.as_deref()),
    }
}

/// Connects to a database by its URL, or by the name that it was enrolled under.
pub(crate) fn open(session: &Session, database: &str) -> Result<Box<dyn Remote>, Failure> {
    let url = if Kind::of(database).is_some() {
        database.to_owned()
    } else {
        known(session, database)?.url
    };
    connect(&url, PATIENCE).map_err(driver)
}

/// Finds a database that was enrolled.
pub(crate) fn known(session: &Session, name: &str) -> Result<Database, Failure> {
    session.database(name)?.ok_or_else(|| {
        Report::refused(format!("no database is enrolled as `{name}`"))
            .next("see those that are with `backout db list`")
            .into()
    })
}

fn enroll(session: &mut Session, url: &str, name: Option<&str>) -> Result<(), Failure> {
    if Kind::of(url).is_none() {
        return Err(
            Report::usage("this is no URL of a database that can be enrolled")
                .next("it is like `postgres://user@host/database` or `mysql://user@host/database`")
                .into(),
        );
    }
    let mut connection = connect(url, PATIENCE).map_err(driver)?;
    let enrolled = connection.enroll(name).map_err(driver)?;
    session.remember(&enrolled.place)?;
    tell(session, "database", &enrolled, "was enrolled");
    Ok(())
}

fn unenroll(session: &mut Session, database: &str, discard: bool) -> Result<(), Failure> {
    let mut connection = open(session, database)?;
    let held =
        connection.marked().map_err(driver)?.len() + connection.foreign().map_err(driver)?.len();
    if held > 0 && !discard {
        let kept = show::counted(held as u64, "operation");
        return Err(Report::refused(format!("`{database}` stays enrolled"))
            .because(format!(
                "its log holds what {kept} changed, and goes with it: nothing could undo them then"
            ))
            .next("undo first what you want back; `--discard` unenrolls it all the same")
            .into());
    }
    let place = connection.unenroll().map_err(driver)?;
    session.forget(&place.id)?;
    if session.ui.is_json() {
        let reply = "unenrolled";
        session.ui.print_json(&Told {
            reply,
            told: &place,
        });
    } else {
        session
            .ui
            .done(&format!("{} is not enrolled any more\n", place.name));
    }
    Ok(())
}

fn list(session: &mut Session) -> Result<(), Failure> {
    let databases = session.databases()?;
    if session.ui.is_json() {
        let reply = "databases";
        session.ui.print_json(&Told {
            reply,
            told: Listed { databases },
        });
        return Ok(());
    }
    for database in databases {
        session
            .ui
            .print(&format!("{}  {}\n", database.name, database.url));
    }
    Ok(())
}

fn sync(session: &mut Session, database: Option<&str>) -> Result<(), Failure> {
    let databases = match database {
        Some(name) => vec![known(session, name)?],
        None => session.databases()?,
    };
    let (mut operations, mut pruned_rows) = (Vec::new(), 0);
    for database in &databases {
        let taken = session.sync_database(database, PATIENCE)?;
        operations.extend(taken.iter().map(ToString::to_string));
        pruned_rows += session.prune_database(database)?;
    }
    if session.ui.is_json() {
        let reply = "synced";
        let told = Synced {
            operations,
            pruned_rows,
        };
        session.ui.print_json(&Told { reply, told });
    } else {
        let count = crate::show::counted(operations.len() as u64, "transaction");
        session
            .ui
            .done(&format!("took up {count} of other clients\n"));
    }
    Ok(())
}

fn tell(session: &mut Session, reply: &'static str, enrolled: &Enrolled, said: &str) {
    if session.ui.is_json() {
        session.ui.print_json(&Told {
            reply,
            told: enrolled,
        });
        return;
    }
    let name = &enrolled.place.name;
    let tables = crate::show::counted(enrolled.covered as u64, "table");
    session
        .ui
        .done(&format!("{name} {said}: {tables} covered\n"));
    for table in &enrolled.uncovered {
        session
            .ui
            .note(&format!("`{}` is not covered: {}", table.table, table.why));
    }
    let is_mysql = Kind::of(&enrolled.place.url) == Some(Kind::Mysql);
    if !enrolled.covers_new {
        session.ui.note(if is_mysql {
            "tables that are made later are not covered by themselves: enroll it once more then"
        } else {
            "tables that are made later are not covered by themselves: only a superuser can have that"
        });
    }
    if !enrolled.stills_triggers {
        session.ui.note(if is_mysql {
            "the server cannot keep other triggers from running during an undo: they run once more"
        } else {
            "this role cannot keep other triggers from running during an undo: they run once more"
        });
    }
}
