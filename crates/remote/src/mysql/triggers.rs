//! The triggers of a table: what they write into the log for its own rows, and for rows of others that a foreign key changes
//! or takes away with them. The server fires no trigger for those, so they are read before it happens.

use std::collections::BTreeMap;

use super::catalog::{Catalog, ForeignKey, TableInfo, in_schema};
use super::columns::image;
use super::connection::{name, own_database};

/// How many tables a cascade may lead through; the server itself stops at fifteen.
const DEPTH_MAX: usize = 15;

/// The numbers of a table and of its columns as they are now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) relation: u32,
    pub(super) shape: u32,
}

/// Says the name of a trigger.
pub(super) fn trigger_name(relation: u32, event: &str) -> String {
    format!("backout_{relation}_{event}")
}

/// What a rule of a foreign key does to the rows that refer.
fn acts(rule: &str) -> bool {
    matches!(rule, "CASCADE" | "SET NULL" | "SET DEFAULT")
}

/// Writes triggers.
pub(super) struct Writer<'c> {
    pub(super) catalog: &'c Catalog,
    pub(super) numbers: &'c BTreeMap<String, Numbers>,
}

impl Writer<'_> {
    /// Writes the triggers of a table, with their names; or says why it cannot be covered.
    pub(super) fn triggers(&self, table: &str) -> Result<Vec<(String, String)>, String> {
        let (info, numbers) = self.table(table)?;
        let values = info.values()?;
        let columns: Vec<&str> = info.written().map(|it| it.name.as_str()).collect();
        let row = |side: &str| {
            image(&values, |index| {
                let column = columns.get(index).copied().unwrap_or_default();
                format!("{side}.{}", name(column))
            })
        };
        let (old, new) = (row("OLD"), row("NEW"));
        let log = |op: &str, went: &str, came: &str| {
            format!(
                "{} VALUES ({}, {went}, {came}, {WHO});",
                self.insert(),
                head(numbers, op)
            )
        };
        let (followed, moved) = self.moved_along(table)?;
        // `UPDATE IGNORE` fires it for rows that it left alone, too.
        let changed = format!(
            "SET @backout_went = {old}, @backout_came = {new}; IF NOT (@backout_went <=> @backout_came){} THEN {}{followed} END IF;",
            self.is_so(table, info, &row("t")),
            log("u", "@backout_went", "@backout_came")
        );
        let mut made = vec![
            ("AFTER INSERT", "insert", log("i", "NULL", &new)),
            ("AFTER UPDATE", "update", changed),
            ("AFTER DELETE", "delete", log("d", &old, "NULL")),
        ];
        let taken = self.taken_along(table)?;
        if !taken.is_empty() {
            made.push(("BEFORE DELETE", "cascade", taken));
        }
        if !moved.is_empty() {
            made.push(("BEFORE UPDATE", "follow", moved));
        }
        let each = made.into_iter().map(|(when, event, body)| {
            let trigger = trigger_name(numbers.relation, event);
            // A copy of the tables without our log is nobody's business: it goes on without.
            let text = format!(
                "CREATE TRIGGER {} {when} ON {} FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1146, 1049 BEGIN END; {body} END",
                in_schema(&self.catalog.schema, &trigger),
                in_schema(&self.catalog.schema, table)
            );
            (trigger, text)
        });
        Ok(each.collect())
    }

    fn table(&self, table: &str) -> Result<(&TableInfo, Numbers), String> {
        let info = self.catalog.tables.get(table);
        let info = info.ok_or_else(|| format!("`{table}` is not there"))?;
        match info.kind.as_str() {
            "BASE TABLE" => {}
            "SYSTEM VERSIONED" => return Err("it keeps a history of its own".to_owned()),
            other => return Err(format!("it is a {}", other.to_lowercase())),
        }
        if info.engine != "InnoDB" {
            return Err(format!("its engine, {}, has no transactions", info.engine));
        }
        let numbers = self.numbers.get(table).copied();
        Ok((
            info,
            numbers.ok_or("it is new since the database was enrolled")?,
        ))
    }

    fn insert(&self) -> String {
        let log = in_schema(&own_database(&self.catalog.schema), "log");
        format!(
            "INSERT INTO {log} (relation, shape, op, went, came, operation, agent, role, connection)"
        )
    }

    /// Lists the references to a table that do something to the rows that refer to it.
    fn acting(&self, table: &str, rule: impl Fn(&ForeignKey) -> &str) -> Vec<&ForeignKey> {
        let is_to = |key: &&ForeignKey| key.to == (self.catalog.schema.clone(), table.to_owned());
        let keys = self.catalog.keys.iter().filter(is_to);
        keys.filter(|key| acts(rule(key))).collect()
    }

    /// Writes what goes or changes with a row that is removed.
    fn taken_along(&self, table: &str) -> Result<String, String> {
        let mut written = String::new();
        let mut ways: Vec<(Vec<&ForeignKey>, &str)> = vec![(Vec::new(), table)];
        while let Some((way, at)) = ways.pop() {
            for key in self.acting(at, |key| &key.on_delete) {
                let child = self.child(key)?;
                if child == table
                    || way.iter().any(|it| it.from == key.from)
                    || way.len() >= DEPTH_MAX
                {
                    return Err(
                        "what refers to it goes with it, and that leads back to it".to_owned()
                    );
                }
                let mut way = way.clone();
                way.push(key);
                if key.on_delete == "CASCADE" {
                    written.push_str(&self.write_down(&way, Fate::Goes)?);
                    ways.push((way, child));
                } else {
                    written.push_str(&self.write_down(&way, Fate::LosesIt)?);
                    self.changes_nothing_else(key)?;
                }
            }
        }
        Ok(checked(written))
    }

    /// Writes the condition that a row is what the trigger was told.
    fn is_so(&self, table: &str, info: &TableInfo, image: &str) -> String {
        if info.key.is_empty() {
            return String::new();
        }
        let each = |write: &dyn Fn(&str) -> String| {
            let each = info.key.iter().map(|it| write(&name(it)));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let is_there = format!(
            "(SELECT {image} FROM {} t WHERE {}) <=> @backout_came",
            in_schema(&self.catalog.schema, table),
            each(&|it| format!("t.{it} = NEW.{it}"))
        );
        let own = (self.catalog.schema.clone(), table.to_owned());
        let refers = self
            .catalog
            .keys
            .iter()
            .any(|it| it.from == own || it.to == own);
        if info.has_unique || refers {
            return format!(" AND {is_there}");
        }
        // Nothing but its key can be in the way of a change.
        let same = each(&|it| format!("OLD.{it} <=> NEW.{it}"));
        format!(" AND ({same} OR {is_there})")
    }

    /// Writes what changes with a row whose key changes: what can be read afterwards, and what only before.
    fn moved_along(&self, table: &str) -> Result<(String, String), String> {
        let (mut after, mut before) = (String::new(), String::new());
        for key in self.acting(table, |key| &key.on_update) {
            if self.child(key)? == table {
                return Err(
                    "what refers to it changes with it, and is in the same table".to_owned(),
                );
            }
            self.changes_nothing_else(key)?;
            let same = key.pairs.iter();
            let same = same.map(|(_, to)| format!("OLD.{0} <=> NEW.{0}", name(to)));
            let same = same.collect::<Vec<_>>().join(" AND ");
            let (fate, written) = match key.on_update.as_str() {
                "CASCADE" => (Fate::Follows, &mut after),
                _ => (Fate::LosesIt, &mut before),
            };
            let body = self.write_down(&[key], fate)?;
            *written = format!("{written}IF NOT ({same}) THEN {body} END IF; ");
        }
        Ok((checked(after), checked(before)))
    }

    /// Makes sure that what a foreign key does to a row is all that it does.
    fn changes_nothing_else(&self, key: &ForeignKey) -> Result<(), String> {
        let child = self.child(key)?;
        let further = self.acting(child, |key| &key.on_update);
        let touches = |it: &&ForeignKey| {
            it.pairs
                .iter()
                .any(|(_, to)| key.pairs.iter().any(|(from, _)| from == to))
        };
        if further.iter().any(touches) {
            return Err(format!(
                "what refers to it in `{child}` changes with it, and so does what refers to that"
            ));
        }
        Ok(())
    }

    /// Names the table that refers, which has to be one that can be covered.
    fn child<'k>(&self, key: &'k ForeignKey) -> Result<&'k str, String> {
        let (schema, child) = &key.from;
        if *schema != self.catalog.schema {
            return Err(format!(
                "rows of `{schema}`.`{child}` go or change with its rows, in another database"
            ));
        }
        if key.on_delete == "SET DEFAULT" || key.on_update == "SET DEFAULT" {
            return Err(format!("`{child}` refers to it with SET DEFAULT"));
        }
        let (info, _) = self.table(child).map_err(|why| {
            format!("rows of `{child}` go or change with its rows, and that is not covered: {why}")
        })?;
        info.values()?;
        Ok(child)
    }

    /// Writes the rows down that are at the end of a way of references.
    fn write_down(&self, way: &[&ForeignKey], fate: Fate) -> Result<String, String> {
        let Some(last) = way.last() else {
            return Ok(String::new());
        };
        let (info, numbers) = self.table(&last.from.1)?;
        let values = info.values()?;
        let columns: Vec<&str> = info.written().map(|it| it.name.as_str()).collect();
        let column = |index: usize| columns.get(index).copied().unwrap_or_default();
        let own = |index: usize| format!("t{}.{}", way.len(), name(column(index)));
        let to = |index: usize| {
            let mut pairs = last.pairs.iter();
            let found = pairs.find(|(from, _)| from == column(index));
            found.map(|(_, to)| to)
        };
        let with = |other: &dyn Fn(&String) -> String| {
            image(&values, |index| to(index).map_or_else(|| own(index), other))
        };
        let (op, went, came, parent) = match fate {
            Fate::Goes => ("d", image(&values, own), "NULL".to_owned(), "OLD"),
            Fate::LosesIt => (
                "u",
                image(&values, own),
                with(&|_| "NULL".to_owned()),
                "OLD",
            ),
            Fate::Follows => {
                let went = with(&|to| format!("OLD.{}", name(to)));
                ("u", went, image(&values, own), "NEW")
            }
        };
        let on = |depth: usize, key: &ForeignKey| {
            let before = match depth {
                0 => parent.to_owned(),
                _ => format!("t{depth}"),
            };
            let each = key
                .pairs
                .iter()
                .map(|(from, to)| format!("t{}.{} = {before}.{}", depth + 1, name(from), name(to)));
            each.collect::<Vec<_>>().join(" AND ")
        };
        let (mut tables, mut first) = (String::new(), String::new());
        for (depth, key) in way.iter().enumerate() {
            let table = format!("{} t{}", in_schema(&key.from.0, &key.from.1), depth + 1);
            if depth == 0 {
                first = on(depth, key);
                tables = table;
            } else {
                tables = format!("{tables} JOIN {table} ON {}", on(depth, key));
            }
        }
        Ok(format!(
            "{} SELECT {}, {went}, {came}, {WHO} FROM {tables} WHERE {first}; ",
            self.insert(),
            head(numbers, op)
        ))
    }
}

/// What becomes of a row that refers to one that goes or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It goes, too.
    Goes,
    /// It refers to nothing any more.
    LosesIt,
    /// It goes on to refer to it.
    Follows,
}

/// Who writes it: what the session says of itself, and what the server knows of it.
const WHO: &str = "@backout_operation, @backout_agent, USER(), CONNECTION_ID()";

fn head(numbers: Numbers, op: &str) -> String {
    format!("{}, {}, '{op}'", numbers.relation, numbers.shape)
}

/// Lets it happen only if the server follows references in this session.
fn checked(written: String) -> String {
    if written.is_empty() {
        written
    } else {
        format!("IF @@foreign_key_checks = 1 THEN {written} END IF;")
    }
}
