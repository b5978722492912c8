//! What the driver of rows asks of a `PostgreSQL`.

use backout_model::ports::State;
use backout_model::{DriverName, OperationId};
use postgres::SimpleQueryMessage;

use super::connection::Connection;
use super::log::net_by_key;
use super::undo::{NET_TABLE, coming, counting, going, updating};
use crate::rows::{
    Answers, Body, Changed, Database, Enrolled, Foreign, Interrupt, Kind, Net, Place, Reference,
    RowsError, SchemaChange, Server, Stills, Table, TextRow, Way, quote,
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
        self.marked_it()
    }

    fn prune(&mut self, operations: &[String]) -> Result<u64, RowsError> {
        self.prune_it(operations)
    }
}

impl Server for Connection {
    const DRIVER: DriverName = Kind::Postgres.driver();
    const UNSTILLED: &'static str =
        "let a role do it that may keep triggers from running, or let it happen with `--force`";
    const FENCE: &'static str = " OFFSET 0";
    const SHARE: &'static str = " FOR KEY SHARE";

    fn to(place: &Place, secret_url: Option<&str>) -> Result<Self, RowsError> {
        Self::to_known(place, secret_url)
    }

    fn run(&mut self, sql: &str) -> Result<(), RowsError> {
        Ok(self.client.batch_execute(sql)?)
    }

    fn ask(&mut self, sql: &str) -> Result<Vec<TextRow>, RowsError> {
        let mut rows = Vec::new();
        for message in self.client.simple_query(sql)? {
            if let SimpleQueryMessage::Row(row) = message {
                let values = (0..row.len()).map(|index| row.get(index).map(str::to_owned));
                rows.push(values.collect());
            }
        }
        Ok(rows)
    }

    fn interrupter(&mut self) -> Result<Interrupt, RowsError> {
        let token = self.client.cancel_token();
        if !self.is_encrypted {
            return Ok(Box::new(move || {
                let _told = token.cancel_query(postgres::NoTls);
            }));
        }
        let config = crate::tls::config("PGSSLROOTCERT").map_err(RowsError::Tls)?;
        let tls = tokio_postgres_rustls::MakeRustlsConnect::new(config);
        Ok(Box::new(move || {
            let _told = token.cancel_query(tls.clone());
        }))
    }

    fn set_exact(&mut self) -> Result<(), RowsError> {
        self.run(
            "SET search_path = pg_catalog, pg_temp; SET \"DateStyle\" = 'ISO, MDY'; SET \"IntervalStyle\" = 'postgres';
             SET \"TimeZone\" = 'UTC'; SET extra_float_digits = 1; SET bytea_output = 'hex'; SET lc_monetary = 'C';
             SET quote_all_identifiers = off; SET array_nulls = on; SET lock_timeout = '5s'; SET row_security = off;
             SET standard_conforming_strings = on",
        )
    }

    fn begin(&mut self, id: OperationId, agent: Option<&str>) -> Result<String, RowsError> {
        self.begin_it(id, agent)
    }

    fn statements(&mut self, text: &str, xact: &str, answers: &Answers) -> Result<(), RowsError> {
        self.run_statements(text, xact, answers)
    }

    fn schema(&mut self) -> Vec<SchemaChange> {
        std::mem::take(&mut self.schema)
    }

    fn schema_state(&mut self, change: &SchemaChange) -> Result<State, RowsError> {
        self.schema_state_it(change)
    }

    fn schema_back(&mut self, change: &SchemaChange) -> Result<SchemaChange, RowsError> {
        self.schema_back_it(change)
    }

    fn is_busy(&mut self, body: &Body) -> Result<bool, RowsError> {
        // Of a transaction that is long past nothing is known but the marker.
        let sql = format!("SELECT pg_xact_status({}::xid8)", quote(&body.xact));
        let found = self.ask(&sql)?.into_iter().flatten().next().flatten();
        Ok(found.as_deref() == Some("in progress"))
    }

    fn is_marked(&mut self, body: &Body) -> Result<bool, RowsError> {
        let sql = "SELECT count(*) FROM backout.marker WHERE operation = $1";
        let found: i64 = self
            .client
            .query_one(sql, &[&body.operation.to_string()])?
            .get(0);
        Ok(found > 0)
    }

    fn mark(&mut self, body: &Body) -> Result<(), RowsError> {
        let sql = "INSERT INTO backout.marker (operation, xact) VALUES ($1, $2::text::xid8)";
        self.client
            .execute(sql, &[&body.operation.to_string(), &body.xact])?;
        Ok(())
    }

    fn let_go(&mut self, operation: &str) -> Result<(), RowsError> {
        self.run("BEGIN; SELECT set_config('backout.covering', 'on', true)")?;
        let sql = "DELETE FROM backout.marker WHERE operation = $1";
        self.client.execute(sql, &[&operation])?;
        self.run("COMMIT")
    }

    fn noted(&mut self, xact: &str) -> Result<Option<Vec<String>>, RowsError> {
        let sql = "SELECT ddl FROM backout.transaction WHERE xact = $1::text::xid8";
        let Some(row) = self.client.query_opt(sql, &[&xact])? else {
            return Ok(None);
        };
        let ddl: Option<String> = row.get(0);
        let note =
            ddl.map(|ddl| format!("it also changed the schema, which is not taken back: {ddl}"));
        Ok(Some(note.into_iter().collect()))
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
        self.run("DROP TABLE IF EXISTS pg_temp.backout_net")?;
        self.run(NET_TABLE)
    }

    fn fill_net(&mut self, table: &Table, xact: &str) -> Result<(), RowsError> {
        let net = net_by_key(table);
        let sql = format!(
            "INSERT INTO backout_net (relation, k, went, came, n)
             SELECT $2::oid, key, went, came, n FROM ({net}) net"
        );
        self.client.execute(&sql, &[&xact, &table.relation])?;
        self.run("ANALYZE backout_net")
    }

    fn count_states(&mut self, table: &Table) -> Result<Vec<TextRow>, RowsError> {
        self.ask(&counting(table))
    }

    fn look_at(&mut self, table: &Table, locks: bool) -> Result<(), RowsError> {
        self.look_at_rows(table, locks)
    }

    fn still(&mut self) -> Result<Stills, RowsError> {
        let stills = self.may_still_triggers()?;
        if stills {
            self.run("SET LOCAL session_replication_role = replica")?;
        }
        self.run("SET CONSTRAINTS ALL DEFERRED")?;
        Ok(Stills {
            references: stills,
            triggers: stills,
        })
    }

    fn settle(&mut self) -> Result<(), RowsError> {
        self.run("SET CONSTRAINTS ALL IMMEDIATE")
    }

    fn go(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        self.run(&going(table, way))
    }

    fn come(&mut self, table: &Table, way: Way) -> Result<(), RowsError> {
        let sql = updating(table).filter(|_| way == Way::Update);
        if let Some(sql) = sql {
            self.run(&sql)?;
        }
        self.run(&coming(table, way))
    }

    fn references(&mut self, table: &Table) -> Result<Vec<Reference>, RowsError> {
        self.references_of(table)
    }

    fn beside(&mut self) -> Result<Option<String>, RowsError> {
        let sql = "SELECT count(*), string_agg(DISTINCT l.relation::regclass::text, ', ') FROM backout.log l
                   WHERE l.xact = pg_current_xact_id()
                     AND NOT ((l.before IS NULL OR EXISTS (SELECT FROM backout_net n
                                 WHERE n.relation = l.relation AND n.take AND n.present = l.before))
                          AND (l.after IS NULL OR EXISTS (SELECT FROM backout_net n
                                 WHERE n.relation = l.relation AND n.take AND n.went = l.after)))";
        let row = self.client.query_one(sql, &[])?;
        let (count, tables): (i64, Option<String>) = (row.get(0), row.get(1));
        Ok(tables.map(|tables| format!("{count} rows of {tables}")))
    }

    fn undo_notes(&mut self) -> Result<Vec<String>, RowsError> {
        let note = "this role may not keep other triggers from running: they ran once more";
        let is_free = self.may_still_triggers()?;
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend((!is_free).then(|| note.to_owned()));
        Ok(notes)
    }

    fn image(_table: &Table, row: &str) -> String {
        format!("({row}.*)::text")
    }

    fn digest(table: &Table, row: &str) -> String {
        super::log::digest(&Self::image(table, row))
    }

    fn parsed(table: &Table, text: &str) -> String {
        format!("{text}::{}", table.sql)
    }

    fn field(_table: &Table, row: &str, column: &str) -> String {
        format!("({row}).{column}")
    }

    fn only(table: &Table) -> String {
        format!("ONLY {}", table.sql)
    }
}
