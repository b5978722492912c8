//! `backout restore`

use std::path::PathBuf;

use backout_engine::{Command, Reply, Report, quoted};
use backout_model::Key;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::paths::real;
use crate::place::place;
use crate::session::{Session, reference};
use crate::show;
use crate::words::Words;

/// Make a path what it was before an operation
///
/// This is a write of its own: the operation stays as it is, and what is there now is kept, so you can
/// undo the restore. Of a directory, everything that the operation touched is restored, and nothing
/// else. You can also take one file out of a tree that was removed as a whole.
///
/// Examples:
///   backout restore src/main.rs --from 3f2a           as it was before operation 3f2a
///   backout restore src/main.rs --from 3f2a --after   as operation 3f2a left it
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RestoreArgs {
    /// The paths.
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,

    /// The operation.
    #[arg(long, value_name = "REF")]
    from: String,

    /// Not what they were before the operation, but what it made of them.
    #[arg(long)]
    after: bool,
}

/// Restores paths.
pub(crate) fn cmd_restore(session: &mut Session, args: &RestoreArgs) -> Result<(), Failure> {
    let words = Words::of("restore")
        .and(&args.from)
        .option("--after", args.after)
        .paths(args.paths.iter().map(PathBuf::as_path));
    if session.is_answered(&words)? {
        return Ok(());
    }
    let engine = session.engine()?;
    let mut paths = Vec::with_capacity(args.paths.len());
    for path in &args.paths {
        let key = place(&engine, path)?;
        if key.file().is_none() || !key.parts().is_empty() {
            return Err(in_no_file(&key, &args.from).into());
        }
        let path = real(path)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let command = Command::Restore {
        paths,
        from: reference(&args.from)?,
        is_after: args.after,
    };
    match session.execute(&engine, command)? {
        Reply::Finished(finished) if !session.ui.is_json() => {
            let said = finished.summary.replacen("restore", "restored", 1);
            show::write::finished(session, &finished, &said);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}

/// Says that only whole files are restored, and how to take back what was done to something else.
fn in_no_file(key: &Key, from: &str) -> Report {
    let (shown, from) = (quoted(key.to_string().as_ref()), quoted(from.as_ref()));
    let command = show::command_line(&format!("undo {from} --only {shown}"));
    Report::usage(format!("`{key}` is no file of its own"))
        .because("only files and directories are restored")
        .next(format!(
            "take back what the operation did to it with `{command}`"
        ))
}
