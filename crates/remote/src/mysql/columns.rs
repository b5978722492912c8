//! Columns: how a value becomes text that is exact whatever the settings of the session are, and text the value again.
//!
//! A row is kept as a JSON array of texts. Bytes, and texts in character sets that do not go to Unicode and back, are
//! hexadecimal.

use crate::rows::ValueSql;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    /// Its kind, like `varchar`.
    pub(super) kind: String,
    /// Its kind in full, like `decimal(20,4) unsigned`.
    pub(super) full_kind: String,
    /// Its character set and collation; empty if it has none.
    pub(super) characters: String,
    pub(super) collation: String,
    /// Whether the server makes it.
    pub(super) is_made: bool,
}

impl Column {
    /// Says how its values are read and written; none if they cannot be.
    pub(super) fn value(&self) -> Option<ValueSql> {
        let of = |read: &str, write: &str| {
            Some(ValueSql {
                read: read.to_owned(),
                write: write.to_owned(),
            })
        };
        let plain = "CAST({} AS CHAR)";
        match self.kind.as_str() {
            "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => {
                let is_unsigned = self.kind == "year" || self.full_kind.contains("unsigned");
                let write = if is_unsigned {
                    "CAST({} AS UNSIGNED)"
                } else {
                    "CAST({} AS SIGNED)"
                };
                of(plain, write)
            }
            "decimal" => {
                let size = self.full_kind.split_once('(')?.1.split_once(')')?.0;
                of(plain, &format!("CAST({{}} AS DECIMAL({size}))"))
            }
            // Six digits are what it shows of a `float`; as a `double` it shows all.
            "float" | "double" => of("CAST(CAST({} AS DOUBLE) AS CHAR)", "CAST({} AS DOUBLE)"),
            "bit" => of("CAST({} + 0 AS CHAR)", "CAST({} AS UNSIGNED)"),
            "date" => of(plain, "CAST({} AS DATE)"),
            "time" => of(plain, "CAST({} AS TIME(6))"),
            "datetime" => of(plain, "CAST({} AS DATETIME(6))"),
            // What it shows depends on the time zone of the session; its number of seconds does not.
            "timestamp" => of(
                "CAST(IF(UNIX_TIMESTAMP({}) = 0, '0000-00-00 00:00:00', DATE_ADD('1970-01-01 00:00:00', INTERVAL UNIX_TIMESTAMP({}) SECOND)) AS CHAR)",
                "CAST({} AS DATETIME(6))",
            ),
            "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum"
            | "set" => {
                let (characters, collation) = (&self.characters, &self.collation);
                let is_unicode = ["utf8mb4", "utf8mb3", "utf8", "latin1", "ascii"];
                if is_unicode.contains(&characters.as_str()) {
                    let write = format!("CONVERT({{}} USING {characters}) COLLATE {collation}");
                    of("CONVERT({} USING utf8mb4)", &write)
                } else {
                    let write =
                        format!("CONVERT(UNHEX({{}}) USING {characters}) COLLATE {collation}");
                    of("HEX({})", &write)
                }
            }
            "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
                of("HEX({})", "UNHEX({})")
            }
            "uuid" | "inet4" | "inet6" => of(plain, "{}"),
            _ => None,
        }
    }

    /// Says what it is, so that a change of it is noticed.
    pub(super) fn shape(&self) -> String {
        let made = if self.is_made { " made" } else { "" };
        format!("{} {} {}{made}", self.name, self.full_kind, self.collation)
    }
}

/// Writes the text of a row. `value` gives each column's value.
pub(super) fn image(values: &[ValueSql], value: impl Fn(usize) -> String) -> String {
    let each = values.iter().enumerate().map(|(index, sql)| {
        let read = sql.read.replace("{}", &value(index));
        format!("COALESCE(JSON_QUOTE({read}), 'null')")
    });
    let each: Vec<String> = each.collect();
    format!("CONCAT('[', {}, ']')", each.join(", ',', "))
}

/// Writes a value out of the text of a row.
pub(super) fn field(value: &ValueSql, index: usize, text: &str) -> String {
    let found = format!("JSON_VALUE({text}, '$[{index}]')");
    value.write.replace("{}", &found)
}
