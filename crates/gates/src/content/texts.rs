//! What schema, value rules and structure find in a config text.

use std::fs;
use std::path::Path;

use backout_checks::schema::Schema;
use backout_checks::syntax::Format;
use backout_checks::value::{Format as Config, Tree};
use backout_checks::values;
use backout_checks::{Finding, structure};

use super::builtin;
use super::file::Looked;
use crate::rules::Rules;
use crate::rules::kinds::Check;

/// Looks at one file as a check wants it.
pub(super) fn look(rules: &Rules, check: &Check, file: &Looked<'_>) -> Vec<Finding> {
    if check.schema.is_none() && check.values.is_empty() && !check.structure {
        return Vec::new();
    }
    let bytes = match file.new_bytes() {
        None => return Vec::new(),
        Some(Ok(bytes)) => bytes,
        Some(Err(why)) => return vec![Finding::new(format!("it cannot be checked: {why}"))],
    };
    let mut formats = builtin::formats_of(rules, file).into_iter();
    let Some(format) = formats.find_map(config_format) else {
        let found = "its name does not tell a format with keys, so nothing in it can be checked";
        let remedy = "name its format in `syntax.formats`, or narrow the `paths` of the check";
        return vec![Finding::new(found).mended_by(remedy)];
    };
    let tree = match Tree::read(format, bytes) {
        Ok(tree) => tree,
        Err(finding) => return vec![finding],
    };
    let mut found = Vec::new();
    if let Some(path) = &check.schema {
        found.extend(by_schema(path, &tree));
    }
    found.extend(by_values(rules, check, file, &tree));
    if check.structure
        && let Some(old) = file.old_bytes()
        && let Ok(before) = Tree::read(format, old)
    {
        found.extend(structure::check(&before, &tree));
    }
    // As they are met by who reads the file.
    found.sort_by_key(|finding| finding.place.map(|place| (place.line, place.column)));
    found
}

fn by_schema(path: &Path, tree: &Tree<'_>) -> Vec<Finding> {
    match schema_at(path) {
        Ok(schema) => schema.check(tree),
        Err(what) => vec![Finding::new(format!("its {what}"))],
    }
}

/// Reads a schema; the error says why it cannot be used.
pub(crate) fn schema_at(path: &Path) -> Result<Schema, String> {
    let unusable = |what: String| format!("schema `{}` cannot be used: {what}", path.display());
    // A pipe would keep us waiting, and a device never ends.
    let is_file = fs::metadata(path).is_ok_and(|found| found.is_file());
    if !is_file && path.exists() {
        return Err(unusable("it is not a file".to_owned()));
    }
    let text = fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    Schema::compile(&text).map_err(|Finding { found, place, .. }| {
        let place = place.map(|place| format!("{place}: "));
        unusable(format!("{}{found}", place.unwrap_or_default()))
    })
}

fn by_values(rules: &Rules, check: &Check, file: &Looked<'_>, tree: &Tree<'_>) -> Vec<Finding> {
    // A path in a config is meant from where the config is, or from the project.
    let near = file.path.as_path().parent().unwrap_or(Path::new("/"));
    let project = rules.file.parent().unwrap_or(Path::new("/"));
    let exists = |name: &str| near.join(name).exists() || project.join(name).exists();
    values::check(tree, &check.values, &exists)
}

/// Gives the format as the reader of keys knows it.
pub(super) const fn config_format(format: Format) -> Option<Config> {
    match format {
        Format::Json => Some(Config::Json),
        Format::JsonWithComments => Some(Config::Jsonc),
        Format::Yaml => Some(Config::Yaml),
        Format::Toml => Some(Config::Toml),
        Format::Ini => Some(Config::Ini),
        Format::Env => Some(Config::Env),
        Format::Xml
        | Format::Shell
        | Format::Sql
        | Format::Hcl
        | Format::Dockerfile
        | Format::Python
        | Format::JavaScript
        | Format::TypeScript
        | Format::Tsx
        | Format::Rust
        | Format::Go
        | Format::C => None,
    }
}
