//! `backout set`

use std::path::PathBuf;

use backout_drivers::config::{
    ConfigEdit, ConfigError, ConfigRequest, Format, KeyPath, NewValue, Value,
};
use backout_engine::Report;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Give one key of a config file a value.
///
/// JSON, JSON with comments, YAML, TOML, INI and .env files are edited in place: comments, order and layout stay. The undo puts
/// back exactly this key and leaves what other people and other keys changed in the file since. If the text around the key is not
/// what it was, it says what may differ. A later `write` or `edit` of the whole file is built on the key: it is taken back first,
/// and `undo -n` shows it.
///
/// A key is written `server.port`, `list[0].name`, `list[+]` (one more item) or `a."b.c".d`. A value is taken for what it looks
/// like; if that is not clear, or the type would change, say how you mean it.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The key. What is missing above it is made.
    #[arg(value_parser = parse_key)]
    key: KeyPath,

    /// The value.
    #[arg(allow_hyphen_values = true)]
    value: String,

    /// The value is a text, whatever it looks like.
    #[arg(long, conflicts_with_all = ["as_json", "raw"])]
    string: bool,

    /// The value is JSON, and may be of another type than the one that is there.
    #[arg(long = "value-json", conflicts_with = "raw")]
    as_json: bool,

    /// The value is in the file's own syntax.
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    format: FormatArg,
}

/// How a file is written.
#[derive(Debug, Args)]
pub(crate) struct FormatArg {
    /// How the file is written, if its name does not tell.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    #[arg(
        help = "How the file is written, if its name does not tell: json, jsonc, yaml, toml, ini, env"
    )]
    pub(crate) format: Option<Format>,
}

/// Sets a key.
pub(crate) fn cmd_set(session: &mut Session, args: SetArgs) -> Result<(), Failure> {
    let value = match (args.string, args.as_json, args.raw) {
        (true, _, _) => NewValue::Text(args.value),
        (_, true, _) => NewValue::Typed(json(&args.value)?),
        (_, _, true) => NewValue::Raw(args.value),
        (false, false, false) => NewValue::Plain(args.value),
    };
    session.write_keys(ConfigRequest {
        path: absolute(&args.file)?,
        format: args.format.format,
        edit: ConfigEdit::Set {
            key: args.key,
            value,
        },
    })
}

/// Reads a JSON text that was given.
pub(super) fn json(text: &str) -> Result<Value, Report> {
    Value::from_json(text).map_err(|error| {
        let what = if let ConfigError::BadValue { what } = error {
            what
        } else {
            error.to_string()
        };
        Report::usage(format!("this is not JSON: {what}"))
            .next("JSON is like `8080`, `\"text\"`, `[1, 2]` or `{\"a\": 1}`")
    })
}

/// Reads a key.
pub(super) fn parse_key(text: &str) -> Result<KeyPath, String> {
    text.parse().map_err(|error: ConfigError| error.to_string())
}

fn parse_format(text: &str) -> Result<Format, String> {
    let known = || "a format is json, jsonc, yaml, toml, ini or env".to_owned();
    Format::of_name(text).ok_or_else(known)
}
