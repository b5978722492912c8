//! How a table is defined: its name, columns, constraints and indexes, as the server tells them, and the statements that lead
//! from one definition to another.
//!
//! Two definitions are the same if they say the same of every column, wherever it stands: a column that comes again is the
//! last one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::schema::ident;

/// Asks for a definition. `$1` is the table. Names come out in full where the session looks through nothing but `pg_catalog`.
pub(super) const DEFINITION: &str = "
    SELECT json_build_object('schema', n.nspname, 'name', c.relname,
      'columns', coalesce((SELECT json_agg(json_build_object('number', a.attnum, 'name', a.attname,
          'kind', format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation::text ELSE '' END,
          'is_required', a.attnotnull, 'usual', pg_get_expr(d.adbin, d.adrelid), 'comment', col_description(c.oid, a.attnum),
          'is_odd', a.attacl IS NOT NULL OR a.attoptions IS NOT NULL OR coalesce(a.attstattarget, -1) <> -1
            OR a.attstorage <> t.typstorage OR a.attcompression <> '' OR a.attidentity <> '' OR a.attgenerated <> ''
            OR EXISTS (SELECT FROM pg_depend o WHERE o.refclassid = 'pg_class'::regclass AND o.refobjid = c.oid
                AND o.refobjsubid = a.attnum AND o.classid = 'pg_class'::regclass AND o.deptype IN ('a', 'i')
                AND EXISTS (SELECT FROM pg_class s WHERE s.oid = o.objid AND s.relkind = 'S'))) ORDER BY a.attnum)
        FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'),
      'constraints', coalesce((SELECT json_object_agg(k.conname, pg_get_constraintdef(k.oid)) FROM pg_constraint k
        WHERE k.conrelid = c.oid AND k.contype IN ('c', 'f', 'p', 'u', 'x')), '{}'),
      'indexes', coalesce((SELECT json_object_agg(i.relname,
          CASE WHEN x.indisunique THEN 'UNIQUE' ELSE '' END || substring(pg_get_indexdef(i.oid) FROM ' USING .*$')) FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
        WHERE x.indrelid = c.oid AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.oid AND k.contype IN ('p', 'u', 'x'))), '{}'),
      'key', coalesce((SELECT json_agg(a.attname ORDER BY k.i) FROM pg_index x, unnest(x.indkey) WITH ORDINALITY AS k(n, i), pg_attribute a
        WHERE x.indrelid = c.oid AND x.indisprimary AND a.attrelid = c.oid AND a.attnum = k.n), '[]'),
      'is_plain', NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND (x.indisclustered OR x.indisreplident))
        AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid)
        AND NOT EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_description e JOIN pg_constraint k ON k.oid = e.objoid
          WHERE e.classoid = 'pg_constraint'::regclass AND k.conrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_description e JOIN pg_index x ON x.indexrelid = e.objoid
          WHERE e.classoid = 'pg_class'::regclass AND x.indrelid = c.oid))::text
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = $1 AND c.relkind = 'r' AND n.nspname NOT SIMILAR TO 'backout(\\_[0-9]+)?'";

/// How a table is defined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Definition {
    pub(super) schema: String,
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    pub(super) constraints: BTreeMap<String, String>,
    pub(super) indexes: BTreeMap<String, String>,
    /// The columns of the primary key.
    pub(super) key: Vec<String>,
    /// Whether nothing belongs to it that no statement here would bring again.
    pub(super) is_plain: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Column {
    pub(super) number: i32,
    pub(super) name: String,
    /// Its type, with a collation that is not that of the type.
    pub(super) kind: String,
    pub(super) is_required: bool,
    /// What it is if nobody says.
    pub(super) usual: Option<String>,
    pub(super) comment: Option<String>,
    /// Whether it has something that no statement here would bring again.
    is_odd: bool,
}

/// What becomes of the values of a column on the way to another definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The column goes, and they with it.
    Goes,
    /// They get another type.
    Changes,
}

impl Definition {
    /// Writes the name of the table.
    pub(super) fn sql(&self) -> String {
        format!("{}.{}", ident(&self.schema), ident(&self.name))
    }

    /// Tells whether two definitions say the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let of = |it: &Self| {
            let columns = it.columns.iter().cloned();
            let columns = columns.map(|column| {
                (
                    column.name.clone(),
                    Column {
                        number: 0,
                        ..column
                    },
                )
            });
            columns.collect::<BTreeMap<_, _>>()
        };
        (&self.schema, &self.name) == (&other.schema, &other.name)
            && self.constraints == other.constraints
            && self.indexes == other.indexes
            && of(self) == of(other)
    }

    /// Tells whether the columns stand in the same order.
    pub(super) fn is_in_order(&self, other: &Self) -> bool {
        let names = |it: &Self| {
            let names = it.columns.iter().map(|column| column.name.clone());
            names.collect::<Vec<_>>()
        };
        names(self) == names(other)
    }

    /// Finds what becomes of a column.
    fn successor<'o>(column: &Column, other: &'o Self) -> Option<&'o Column> {
        let mut same = other.columns.iter();
        same.find(|it| it.number == column.number)
    }

    /// Lists the columns whose values do not outlive the way to another definition, by their names.
    pub(super) fn fates(&self, to: &Self) -> Vec<(&Column, Fate)> {
        let fate = |column| match Self::successor(column, to) {
            None => Some((column, Fate::Goes)),
            Some(then) => (then.kind != column.kind).then_some((column, Fate::Changes)),
        };
        let mut fates: Vec<_> = self.columns.iter().filter_map(fate).collect();
        fates.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        fates
    }

    /// Lists the columns that come on the way to another definition.
    pub(super) fn coming<'o>(&self, to: &'o Self) -> Vec<&'o Column> {
        let is_new = |it: &&Column| Self::successor(it, self).is_none();
        to.columns.iter().filter(is_new).collect()
    }

    /// Says why the way to another definition could not be gone back, if it could not.
    pub(super) fn hindrance(&self, to: &Self) -> Option<&'static str> {
        let fates = self.fates(to);
        let is_of_key = |(column, _): &(&Column, Fate)| self.key.contains(&column.name);
        if !self.is_plain {
            return Some(
                "the table is a part of others, has parts, statistics or comments of its constraints, which would not come back",
            );
        }
        if fates.iter().any(|(column, _)| column.is_odd) {
            return Some(
                "the column has a sequence, rights or settings of its own, or is made by the server, and that would not come back",
            );
        }
        if !fates.is_empty() && (self.key.is_empty() || fates.iter().any(is_of_key)) {
            return Some(
                "the values of a column are kept by the primary key of their rows: here there is none, or it is the column itself",
            );
        }
        None
    }

    /// Writes the statements that take away what another definition does not have at all.
    pub(super) fn parting(&self, to: &Self) -> Vec<String> {
        let mut gone: Vec<_> = self.constraints.iter().collect();
        gone.retain(|(name, _)| !to.constraints.contains_key(*name));
        // Those that refer to others go first.
        gone.sort_by_key(|(_, text)| !text.starts_with("FOREIGN"));
        let constraints = gone.iter().map(|(name, _)| self.without(name));
        let gone = self.indexes.keys();
        let gone = gone.filter(|name| !to.indexes.contains_key(*name));
        let indexes = gone.map(|name| self.without_index(name));
        constraints.chain(indexes).collect()
    }

    /// Writes the statements that make the name and the columns of another definition. `value` says what a column is filled with.
    pub(super) fn way(&self, to: &Self, value: &dyn Fn(&Column) -> String) -> Vec<String> {
        let table = self.sql();
        let alter = |action: String| format!("ALTER TABLE {table} {action}");
        let mut way = Vec::new();
        for column in &self.columns {
            match Self::successor(column, to) {
                None => way.push(alter(format!("DROP COLUMN {}", ident(&column.name)))),
                Some(then) => way.extend(column.way(then, value).into_iter().map(alter)),
            }
        }
        for column in self.coming(to) {
            let name = ident(&column.name);
            let bare = Column {
                usual: None,
                is_required: false,
                kind: String::new(),
                ..column.clone()
            };
            way.push(alter(format!("ADD COLUMN {name} {}", column.kind)));
            way.extend(bare.way(column, value).into_iter().map(alter));
            if let Some(comment) = &column.comment {
                let comment = crate::rows::quote(comment);
                way.push(format!("COMMENT ON COLUMN {table}.{name} IS {comment}"));
            }
        }
        if self.name != to.name {
            way.push(alter(format!("RENAME TO {}", ident(&to.name))));
        }
        way
    }

    /// Writes the statements that make the constraints and indexes of another definition, once the columns are as there.
    pub(super) fn finish(&self, to: &Self) -> Vec<String> {
        let differs = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| {
            let lost = one
                .iter()
                .filter(|(name, text)| other.get(*name) != Some(text));
            lost.map(|(name, text)| (name.clone(), text.clone()))
                .collect::<Vec<_>>()
        };
        let mut come = differs(&to.constraints, &self.constraints);
        come.sort_by_key(|(_, text)| text.starts_with("FOREIGN"));
        let mut way: Vec<String> = differs(&self.constraints, &to.constraints)
            .iter()
            .map(|(name, _)| self.without(name))
            .collect();
        let gone = differs(&self.indexes, &to.indexes);
        way.extend(gone.iter().map(|(name, _)| self.without_index(name)));
        let table = self.sql();
        let constraint = |(name, text): &(String, String)| {
            format!("ALTER TABLE {table} ADD CONSTRAINT {} {text}", ident(name))
        };
        way.extend(come.iter().map(constraint));
        let index = |(name, text): (String, String)| {
            let (unique, text) = text.split_once(" USING ").unwrap_or_default();
            format!(
                "CREATE {unique} INDEX {} ON {table} USING {text}",
                ident(&name)
            )
        };
        way.extend(differs(&to.indexes, &self.indexes).into_iter().map(index));
        way
    }

    fn without(&self, constraint: &str) -> String {
        let (table, name) = (self.sql(), ident(constraint));
        format!("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {name}")
    }

    fn without_index(&self, index: &str) -> String {
        format!(
            "DROP INDEX IF EXISTS {}.{}",
            ident(&self.schema),
            ident(index)
        )
    }
}

impl Column {
    /// Writes the actions that make another column of it.
    fn way(&self, then: &Self, value: &dyn Fn(&Self) -> String) -> Vec<String> {
        let name = ident(&self.name);
        let alter = |action: String| format!("ALTER COLUMN {name} {action}");
        let mut way = Vec::new();
        let is_other_kind = self.kind != then.kind;
        if self.usual.is_some() && (is_other_kind || then.usual.is_none()) {
            way.push(alter("DROP DEFAULT".to_owned()));
        }
        if is_other_kind {
            way.push(alter(format!("TYPE {} USING {}", then.kind, value(then))));
        }
        if let Some(usual) = then
            .usual
            .as_ref()
            .filter(|usual| is_other_kind || self.usual.as_ref() != Some(usual))
        {
            way.push(alter(format!("SET DEFAULT {usual}")));
        }
        match (self.is_required, then.is_required) {
            (false, true) => way.push(alter("SET NOT NULL".to_owned())),
            (true, false) => way.push(alter("DROP NOT NULL".to_owned())),
            _ => {}
        }
        if self.name != then.name {
            way.push(format!("RENAME COLUMN {name} TO {}", ident(&then.name)));
        }
        way
    }
}
