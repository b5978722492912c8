//! `backout edit`

use std::path::PathBuf;

use backout_drivers::file::FileRequest;
use backout_engine::Report;
use backout_model::text::Occurrence;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::input::{read_file, read_file_or_stdin};
use crate::paths::absolute;
use crate::session::Session;

/// Replace a part of a file, or apply a patch to several.
///
/// The text to replace must be there exactly once, unless `--all` or `--nth` says otherwise. A patch is what `git diff`
/// or `diff -u` writes; it fits exactly or nothing is changed.
#[derive(Debug, Args)]
#[command(override_usage = "\
backout edit [OPTIONS] --search TEXT --replace TEXT PATH
       backout edit [OPTIONS] --patch FILE")]
pub(crate) struct EditArgs {
    /// The file to edit.
    #[arg(value_hint = ValueHint::FilePath, required_unless_present = "patch", conflicts_with = "patch")]
    path: Option<PathBuf>,

    /// The text to look for.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["search_file", "patch"])]
    search: Option<String>,

    /// Look for what this file holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "patch")]
    search_file: Option<PathBuf>,

    /// The text that comes instead; may be empty.
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["replace_file", "patch"])]
    replace: Option<String>,

    /// Put in what this file holds.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "patch")]
    replace_file: Option<PathBuf>,

    /// Replace every place found.
    #[arg(long, conflicts_with_all = ["nth", "patch"])]
    all: bool,

    /// Replace only the place with this number, the first being 1.
    #[arg(long, value_name = "N", conflicts_with = "patch")]
    nth: Option<usize>,

    /// Apply this unified patch; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    patch: Option<PathBuf>,

    /// The directory that the names in the patch start at; by default this one.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "patch")]
    base: Option<PathBuf>,
}

/// Edits a file, or applies a patch.
pub(crate) fn cmd_edit(session: &mut Session, args: EditArgs) -> Result<(), Failure> {
    if let Some(patch) = &args.patch {
        let base = absolute(args.base.as_deref().unwrap_or_else(|| ".".as_ref()))?;
        let patch = read_file_or_stdin(patch, session.bar(), "name a file with `--patch FILE`")?;
        return session.write(FileRequest::Patch { base, patch });
    }
    let path = absolute(&args.path.unwrap_or_default())?;
    let search = text("--search", args.search, args.search_file)?;
    let replacement = text("--replace", args.replace, args.replace_file)?;
    let occurrence = match (args.all, args.nth) {
        (true, _) => Occurrence::All,
        (false, Some(nth)) => Occurrence::Nth(nth),
        (false, None) => Occurrence::Unique,
    };
    session.write(FileRequest::Edit {
        path,
        search,
        replacement,
        occurrence,
    })
}

fn text(option: &str, given: Option<String>, file: Option<PathBuf>) -> Result<Vec<u8>, Report> {
    match (given, file) {
        (Some(text), _) => Ok(text.into_bytes()),
        (None, Some(file)) => read_file(&file),
        (None, None) => Err(Report::usage(format!("`{option}` is missing"))
            .next(format!("give `{option} TEXT` or `{option}-file FILE`"))
            .next("or apply a patch with `--patch FILE`")),
    }
}
