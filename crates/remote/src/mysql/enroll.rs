//! Enrolling a database: a database of our own beside it with a log, and triggers on its tables. The server commits each of
//! these steps by itself, so a table counts as covered only when all of its triggers are there as they should be.

use std::collections::BTreeMap;

use super::catalog::{Catalog, in_schema, texts};
use super::connection::{Connection, name, own_database};
use super::install::INSTALL;
use super::triggers::{Numbers, Writer};
use crate::rows::{Enrolled, Place, RowsError, Uncovered, quote};

/// How our triggers of a table stand.
#[derive(Debug)]
pub(super) struct Coverage {
    pub(super) table: String,
    /// The triggers that it should have, with their names; or why it cannot have them.
    triggers: Result<Vec<(String, String)>, String>,
    /// Whether they are there.
    pub(super) is_covered: bool,
}

impl Coverage {
    /// Says why it is not covered.
    fn why(&self) -> String {
        match &self.triggers {
            Ok(_) => "it was made or changed since the database was enrolled".to_owned(),
            Err(why) => why.clone(),
        }
    }
}

impl Connection {
    /// Enrolls the database under a name, or adds what is new since.
    pub(super) fn enroll_it(&mut self, wanted: Option<&str>) -> Result<Enrolled, RowsError> {
        let own = own_database(&self.database);
        for sql in INSTALL {
            self.tell(&sql.replace("{}", &name(&own)))?;
        }
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        let usual = self.database.replace(|letter| !fits(letter), "-");
        let given = wanted.unwrap_or(&usual);
        self.tell(&format!(
            "INSERT IGNORE INTO {} (id, name) VALUES (UUID(), {})",
            self.own("identity"),
            quote(given)
        ))?;
        let found = self.find_identity()?;
        if wanted.is_some_and(|wanted| wanted != found.name) {
            // A name stands for one database for ever: targets in the journal bear it.
            return Err(RowsError::NotUndoable(format!(
                "the database is enrolled as `{}` already; names of targets in the journal hold that name",
                found.name
            )));
        }
        let catalog = self.catalog()?;
        self.give_numbers(&catalog)?;
        for table in self.coverage(&catalog)? {
            if let (false, Ok(triggers)) = (table.is_covered, &table.triggers) {
                self.cover(&catalog, &table.table, triggers)?;
            }
        }
        self.status_it()
    }

    /// Makes the triggers of a table.
    fn cover(
        &mut self,
        catalog: &Catalog,
        table: &str,
        triggers: &[(String, String)],
    ) -> Result<(), RowsError> {
        for (trigger, at, _) in &catalog.triggers {
            if at == table && is_ours(trigger) {
                self.drop_trigger(trigger)?;
            }
        }
        for (_, sql) in triggers {
            self.tell(sql)?;
        }
        self.tell(&format!(
            "UPDATE {} SET made = {} WHERE name = {}",
            self.own("relation"),
            quote(&made(triggers)),
            quote(table)
        ))
    }

    fn drop_trigger(&mut self, trigger: &str) -> Result<(), RowsError> {
        let trigger = in_schema(&self.database, trigger);
        self.tell(&format!("DROP TRIGGER IF EXISTS {trigger}"))
    }

    /// Gives a number to each table, and to the columns that it has. A table that got another name keeps its number.
    fn give_numbers(&mut self, catalog: &Catalog) -> Result<(), RowsError> {
        let (relation, shape) = (self.own("relation"), self.own("shape"));
        for (trigger, table, _) in &catalog.triggers {
            let number = trigger.strip_prefix("backout_");
            let number = number.and_then(|it| it.strip_suffix("_insert"));
            if let Some(number) = number.and_then(|it| it.parse::<u32>().ok()) {
                self.tell(&format!(
                    "UPDATE IGNORE {relation} SET name = {} WHERE id = {number}",
                    quote(table)
                ))?;
            }
        }
        for (table, info) in &catalog.tables {
            if info.kind != "BASE TABLE" || info.engine != "InnoDB" {
                continue;
            }
            let (table, columns) = (quote(table), quote(&info.shape()));
            self.tell(&format!(
                "INSERT IGNORE INTO {relation} (name) VALUES ({table})"
            ))?;
            self.tell(&format!(
                "INSERT INTO {shape} (relation, columns) SELECT r.id, {columns} FROM {relation} r WHERE r.name = {table}
                 AND NOT EXISTS (SELECT 1 FROM {shape} s WHERE s.relation = r.id AND s.columns = {columns})"
            ))?;
        }
        Ok(())
    }

    /// Says of each table how its triggers stand.
    pub(super) fn coverage(&mut self, catalog: &Catalog) -> Result<Vec<Coverage>, RowsError> {
        let (relation, shape) = (self.own("relation"), self.own("shape"));
        let rows = self.question(&format!(
            "SELECT r.name, r.id, s.id, s.columns, r.made FROM {relation} r JOIN {shape} s ON s.relation = r.id"
        ))?;
        let (mut numbers, mut stored) = (BTreeMap::new(), BTreeMap::new());
        for row in rows {
            let [table, relation, shape, columns, made] = texts(row);
            let info = catalog.tables.get(&table);
            if let (Ok(relation), Ok(shape)) = (relation.parse(), shape.parse())
                && info.is_some_and(|it| it.shape() == columns)
            {
                numbers.insert(table.clone(), Numbers { relation, shape });
                stored.insert(table, made);
            }
        }
        let writer = Writer {
            catalog,
            numbers: &numbers,
        };
        let is_table = |kind: &str| !matches!(kind, "VIEW" | "SEQUENCE" | "SYSTEM VIEW");
        let tables = catalog.tables.iter().filter(|(_, it)| is_table(&it.kind));
        let each = tables.map(|(table, _)| {
            let triggers = writer.triggers(table);
            let has = |name: &String| {
                catalog
                    .triggers
                    .iter()
                    .any(|(it, at, _)| it == name && at == table)
            };
            let is_covered = triggers.as_ref().is_ok_and(|triggers| {
                stored.get(table).is_some_and(|it| *it == made(triggers))
                    && triggers.iter().all(|(name, _)| has(name))
            });
            Coverage {
                table: table.clone(),
                triggers,
                is_covered,
            }
        });
        Ok(each.collect())
    }

    /// Says what is covered and what is not.
    pub(super) fn status_it(&mut self) -> Result<Enrolled, RowsError> {
        let place = self.find_identity()?;
        let catalog = self.catalog()?;
        let coverage = self.coverage(&catalog)?;
        let uncovered = coverage.iter().filter(|it| !it.is_covered);
        let has_others = catalog.triggers.iter().any(|(name, ..)| !is_ours(name));
        Ok(Enrolled {
            place,
            covered: coverage.iter().filter(|it| it.is_covered).count(),
            uncovered: uncovered
                .map(|it| Uncovered {
                    table: it.table.clone(),
                    why: it.why(),
                })
                .collect(),
            covers_new: false,
            stills_triggers: !has_others,
        })
    }

    /// Takes everything of ours away. The log goes with it: what it held can no longer be undone.
    pub(super) fn unenroll_it(&mut self) -> Result<Place, RowsError> {
        let place = self.find_identity()?;
        for (trigger, ..) in self.catalog()?.triggers {
            if is_ours(&trigger) {
                self.drop_trigger(&trigger)?;
            }
        }
        let own = name(&own_database(&self.database));
        self.tell(&format!("DROP DATABASE {own}"))?;
        Ok(place)
    }
}

/// Tells whether a trigger is one of ours.
pub(super) fn is_ours(trigger: &str) -> bool {
    let number = trigger.strip_prefix("backout_");
    let number = number.and_then(|it| it.split_once('_'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// Writes all triggers of a table down.
fn made(triggers: &[(String, String)]) -> String {
    let each: Vec<&str> = triggers.iter().map(|(_, sql)| sql.as_str()).collect();
    each.join(";\n")
}
