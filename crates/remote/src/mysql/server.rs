//! What the driver of rows asks of a `MariaDB`.

use backout_model::{DriverName, OperationId};

use super::catalog::in_schema;
use super::columns::image;
use super::connection::{Connection, name};
use super::log::number;
use super::undo::{NET_TABLE, column_of, counting};
use crate::rows::{
    Answers, Body, Changed, Database, Enrolled, Foreign, Interrupt, Kind, Net, PATIENCE, Place,
    Reference, RowsError, Server, Stills, Table, TextRow, Way, quote,
};

impl Database for Connection {
    fn identity(&mut self) -> Result<Place, RowsError> {
        self.find_identity()
    }

    fn enroll(&mut self, name: Option<&str>) -> Result<Enrolled, RowsError> {
        self.enroll_it(name)
    }

    fn status(&mut self) -> Result<Enrolled, RowsError> {
        self.status_it()
    }

    fn unenroll(&mut self) -> Result<Place, RowsError> {
        self.unenroll_it()
    }

    fn foreign(&mut self) -> Result<Vec<Foreign>, RowsError> {
        self.foreign_it()
    }

    fn marked(&mut self) -> Result<Vec<String>, RowsError> {
        let sql = format!("SELECT operation FROM {} ORDER BY at", self.own("marker"));
        Ok(self
            .question(&sql)?
            .into_iter()
            .flatten()
            .flatten()
            .collect())
    }

    fn prune(&mut self, operations: &[String]) -> Result<u64, RowsError> {
        self.prune_it(operations)
    }
}

impl Server for Connection {
    const DRIVER: DriverName = Kind::Mysql.driver();
    const UNSTILLED: &'static str = "let it happen with `--force`";
    const FENCE: &'static str = "";
    const SHARE: &'static str = " LOCK IN SHARE MODE";

    fn to(place: &Place, secret_url: Option<&str>) -> Result<Self, RowsError> {
        Self::to_known(place, secret_url)
    }

    fn run(&mut self, sql: &str) -> Result<(), RowsError> {
        match sql {
            // Elsewhere this has another meaning to the server.
            "BEGIN" => self.tell("START TRANSACTION"),
            sql => self.tell(sql),
        }
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<TextRow>, RowsError> {
        self.question(sql)
    }

    fn interrupter(&mut self) -> Result<Interrupt, RowsError> {
        let number = self.value("SELECT CONNECTION_ID()")?;
        let kill = format!(
            "KILL QUERY {}",
            super::log::number(&number.unwrap_or_default())
        );
        let url = self.secret.0.clone();
        Ok(Box::new(move || {
            if let Ok(mut other) = Self::open(&url, PATIENCE) {
                let _told = other.tell(&kill);
            }
        }))
    }

    fn set_exact(&mut self) -> Result<(), RowsError> {
        self.set_modes()
    }

    fn begin(&mut self, id: OperationId, agent: Option<&str>) -> Result<String, RowsError> {
        self.begin_it(id, agent)
    }

    fn statements(&mut self, text: &str, xact: &str, answers: &Answers) -> Result<(), RowsError> {
        self.run_statements(text, xact, answers)
    }

    fn is_busy(&mut self, body: &Body) -> Result<bool, RowsError> {
        // Its marker is locked as long as it is not over.
        let sql = format!(
            "SELECT operation FROM {} WHERE operation = {} LOCK IN SHARE MODE",
            self.own("marker"),
            quote(&body.operation.to_string())
        );
        match self.question(&sql) {
            Ok(_) => Ok(false),
            Err(error) if error.code() == "1205" => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn is_marked(&mut self, body: &Body) -> Result<bool, RowsError> {
        let found = self.value(&format!(
            "SELECT COUNT(*) FROM {} WHERE operation = {} AND COALESCE(taken, started) = {}",
            self.own("marker"),
            quote(&body.operation.to_string()),
            number(&body.xact)
        ))?;
        Ok(found.as_deref() == Some("1"))
    }

    fn mark(&mut self, body: &Body) -> Result<(), RowsError> {
        if !body.is_adopted {
            // It was the first thing that the transaction wrote.
            return Ok(());
        }
        self.tell(&format!(
            "INSERT INTO {} (operation, taken) VALUES ({}, {})",
            self.own("marker"),
            quote(&body.operation.to_string()),
            number(&body.xact)
        ))
    }

    fn let_go(&mut self, operation: &str) -> Result<(), RowsError> {
        let marker = self.own("marker");
        self.tell(&format!(
            "DELETE FROM {marker} WHERE operation = {}",
            quote(operation)
        ))
    }

    fn noted(&mut self, xact: &str) -> Result<Option<Vec<String>>, RowsError> {
        let log = self.own("log");
        let sql = format!("SELECT COUNT(*) FROM {log} WHERE xact = {}", number(xact));
        let found = self.value(&sql)?;
        Ok((found.as_deref() != Some("0")).then(Vec::new))
    }

    fn tables(&mut self, xact: &str) -> Result<Vec<Table>, RowsError> {
        self.logged_tables(xact)
    }

    fn changes(&mut self, xact: &str) -> Result<Vec<Changed>, RowsError> {
        self.logged_changes(xact)
    }

    fn net(&mut self) -> &mut Net {
        &mut self.net
    }

    fn make_net(&mut self) -> Result<(), RowsError> {
        self.tell("DROP TEMPORARY TABLE IF EXISTS backout_net")?;
        self.tell(NET_TABLE)
    }

    fn fill_net(&mut self, table: &Table, xact: &str) -> Result<(), RowsError> {
        let net = self.net_by_key(table, xact)?;
        self.tell(&format!(
            "INSERT INTO backout_net (relation, k, went, came, n) SELECT {}, k, went, came, n FROM ({net}) net",
            table.relation
        ))
    }

    fn count_states(&mut self, table: &Table) -> Result<Vec<TextRow>, RowsError> {
        self.question(&counting(table))
    }

    fn look_at(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        self.look_at_rows(table, locks)
    }

    fn still(&mut self) -> Result<Stills, RowsError> {
        // No reference acts, and what would lead nowhere is found afterwards.
        self.tell("SET SESSION foreign_key_checks = 0")?;
        Ok(Stills {
            references: true,
            triggers: false,
        })
    }

    fn settle(&mut self) -> Result<(), RowsError> {
        Ok(())
    }

    fn go(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        self.take_away(table, way)
    }

    fn come(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        self.bring(table, way)
    }

    fn references(&mut self, table: &Table) -> Result<Vec<Reference>, RowsError> {
        // Whatever it was called, it is asked for by the name that it has.
        let own = table.sql.clone();
        let each = self.foreign_keys(None)?.into_iter().map(|key| Reference {
            is_from: in_schema(&key.from.0, &key.from.1) == own,
            from: in_schema(&key.from.0, &key.from.1),
            to: in_schema(&key.to.0, &key.to.1),
            pairs: key
                .pairs
                .iter()
                .map(|(from, to)| (name(from), name(to)))
                .collect(),
        });
        Ok(each.filter(|it| it.is_from || it.to == own).collect())
    }

    fn beside(&mut self) -> Result<Option<String>, RowsError> {
        self.what_else()
    }

    fn undo_notes(&mut self) -> Result<Vec<String>, RowsError> {
        let others = self.foreign_triggers()?;
        let note = "the server cannot keep other triggers from running: they ran once more";
        let note = (!others.is_empty()).then(|| note.to_owned());
        Ok(note.into_iter().collect())
    }

    fn image(table: &Table, row: &str) -> String {
        image(&table.values, |index| {
            let column = table.columns.get(index);
            format!("{row}.{}", column.map_or("", String::as_str))
        })
    }

    fn digest(table: &Table, row: &str) -> String {
        format!("LEFT(SHA2({}, 256), 16)", Self::image(table, row))
    }

    fn parsed(_table: &Table, text: &str) -> String {
        text.to_owned()
    }

    fn field(table: &Table, row: &str, column: &str) -> String {
        column_of(table, row, column)
    }

    fn only(table: &Table) -> String {
        table.sql.clone()
    }
}
