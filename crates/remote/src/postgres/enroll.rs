//! Enrolling a database: a schema of our own with triggers and a log, made in one transaction and taken away without a trace.

use super::connection::Connection;
use crate::rows::{Enrolled, Place, RowsError, Server as _, Uncovered};

const INSTALL: &str = include_str!("install.sql");
const EVENTS: &str = include_str!("events.sql");

impl Connection {
    /// Enrolls the database under a name, or adds what is new since.
    pub(super) fn enroll_it(&mut self, name: Option<&str>) -> Result<Enrolled, RowsError> {
        self.run(
            "SET client_min_messages = warning; BEGIN; SELECT pg_advisory_xact_lock(6220016)",
        )?;
        let made = self.install(name);
        self.run(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        let refused = made?;
        let mut enrolled = self.status_it()?;
        for table in &mut enrolled.uncovered {
            if let Some((_, why)) = refused.iter().find(|(name, _)| *name == table.table) {
                table.why.clone_from(why);
            }
        }
        Ok(enrolled)
    }

    /// Installs what is missing, and says which tables could not be covered.
    fn install(&mut self, name: Option<&str>) -> Result<Vec<(String, String)>, RowsError> {
        self.run("SELECT set_config('backout.covering', 'on', true)")?;
        self.run(INSTALL)?;
        let sql = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
        let is_super: bool = self.client.query_one(sql, &[])?.get(0);
        if is_super {
            self.run(EVENTS)?;
        }
        let database: String = self
            .client
            .query_one("SELECT current_database()", &[])?
            .get(0);
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let usual = database.replace(|letter| !fits(letter), "-");
        // What was copied along belongs to the database that this one was made from.
        if let Err(RowsError::Copy { .. }) = self.find_identity() {
            self.run(
                "TRUNCATE backout.identity, backout.log, backout.transaction, backout.marker",
            )?;
        }
        let (cluster, home) = self.home()?;
        let sql = "INSERT INTO backout.identity (name, cluster, database) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
        let given = name.unwrap_or(&usual);
        let is_new = self.client.execute(sql, &[&given, &cluster, &home])? == 1;
        if let (Some(name), false) = (name, is_new) {
            // A name stands for one database for ever: targets in the journal bear it.
            let found = self.find_identity()?;
            if found.name != name {
                return Err(RowsError::NotUndoable(format!(
                    "the database is enrolled as `{}` already; names of targets in the journal hold that name",
                    found.name
                )));
            }
        }
        let sql = "SELECT relation::regclass::text, backout.cover(relation) FROM backout.coverage WHERE NOT covered";
        let rows = self.client.query(sql, &[])?;
        let refused = rows
            .iter()
            .filter_map(|row| Some((row.get(0), row.get::<_, Option<String>>(1)?)));
        Ok(refused.collect())
    }

    /// Says what is covered and what is not.
    pub(super) fn status_it(&mut self) -> Result<Enrolled, RowsError> {
        let place = self.find_identity()?;
        let sql = "SELECT relation::regclass::text, covered FROM backout.coverage ORDER BY 1";
        let rows = self.client.query(sql, &[])?;
        let (covered, uncovered): (Vec<_>, Vec<_>) =
            rows.iter().partition(|row| row.get::<_, bool>(1));
        let mut uncovered: Vec<Uncovered> = uncovered
            .into_iter()
            .map(|row| Uncovered {
                table: row.get(0),
                why: "it was made or changed since the database was enrolled".to_owned(),
            })
            .collect();
        let sql = "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                   WHERE c.relkind = 'f' AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1";
        for row in self.client.query(sql, &[])? {
            uncovered.push(Uncovered {
                table: row.get(0),
                why: "it is a foreign table: its rows are in another database".to_owned(),
            });
        }
        let sql = "SELECT count(*) = 2 FROM pg_event_trigger WHERE evtname IN ('backout_schema_changed', 'backout_schema_dropped')
                   AND evtenabled = 'A'";
        Ok(Enrolled {
            place,
            covered: covered.len(),
            uncovered,
            covers_new: self.client.query_one(sql, &[])?.get(0),
            stills_triggers: self.may_still_triggers()?,
        })
    }

    /// Tells whether this role may keep other triggers from running.
    pub(super) fn may_still_triggers(&mut self) -> Result<bool, RowsError> {
        // Before 15 only superusers may, and there is no such privilege to ask for.
        let sql = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
        let is_super: bool = self.client.query_one(sql, &[])?.get(0);
        let sql = "SELECT current_setting('server_version_num')::int >= 150000";
        if is_super || !self.client.query_one(sql, &[])?.get::<_, bool>(0) {
            return Ok(is_super);
        }
        let sql = "SELECT has_parameter_privilege('session_replication_role', 'SET')";
        Ok(self.client.query_one(sql, &[])?.get(0))
    }

    /// Takes everything of ours away. The log goes with it: what it held can no longer be undone.
    pub(super) fn unenroll_it(&mut self) -> Result<Place, RowsError> {
        let place = self.find_identity()?;
        self.run(
            "SET client_min_messages = warning; BEGIN; SELECT set_config('backout.covering', 'on', true);
             DROP SCHEMA backout CASCADE;
             DO $$ DECLARE it text; BEGIN FOR it IN SELECT nspname FROM pg_namespace WHERE nspname ~ '^backout_[0-9]+$' LOOP
               EXECUTE format('DROP SCHEMA %I CASCADE', it); END LOOP; END $$; COMMIT",
        )?;
        Ok(place)
    }
}
