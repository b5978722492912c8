//! `backout restore`

use std::path::PathBuf;

use backout_drivers::file::FileError;
use backout_engine::{Call, Command, EngineError, Next, Reply, Report, Typed};
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::named_targets::named_target;
use crate::paths::real;
use crate::session::{Session, reference};
use crate::show;
use crate::words::Words;

/// Make a path, a key or a row what it was before an operation
///
/// This is a write of its own: the operation stays as it is, and what is there now is kept, so you can
/// undo the restore. Of a directory, everything that the operation touched is restored, and nothing
/// else. You can also take one file out of a tree that was removed as a whole.
///
/// Examples:
///   backout restore src/main.rs --from 3f2a           as it was before operation 3f2a
///   backout restore src/main.rs --from 3f2a --after   as operation 3f2a left it
///   backout restore app.toml:server.port --from 3f2a  one key, whatever it is now
///   backout restore shop.db:orders.7 --from 3f2a      one row
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RestoreArgs {
    /// The paths, or other targets as `log` shows them.
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
    let (mut paths, mut targets) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let key = named_target(&engine, path)?;
        if key.file().is_none() || !key.parts().is_empty() {
            if !targets.contains(&key) {
                targets.push(key);
            }
            continue;
        }
        let path = real(path)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if !paths.is_empty() && !targets.is_empty() {
        let report = Report::usage("files and parts of them are not restored in one call");
        return Err(report.next("restore them one after the other").into());
    }
    let command = Command::Restore {
        paths,
        targets,
        from: reference(&args.from)?,
        is_after: args.after,
    };
    let restored = session.execute(&engine, command);
    match restored.map_err(|failure| with_its_directory(session, failure, args))? {
        Reply::Finished(finished) if !session.ui.is_json() => {
            let said = finished.summary.replacen("restore", "restored", 1);
            show::write::finished(session, &finished, &said);
            Ok(())
        }
        reply => session.show(&engine, &reply),
    }
}

/// Names the restore of a directory in whose place a file is, where something in it was asked for.
fn with_its_directory(session: &Session, failure: Failure, args: &RestoreArgs) -> Failure {
    let Failure::Engine(EngineError::Driver(error)) = failure else {
        return failure;
    };
    let Some(FileError::NotADirectory { path }) = error.as_a() else {
        return Failure::Engine(EngineError::Driver(error));
    };
    let path = session.here.shorten(path);
    let mut words = vec![path.as_str(), "--from", &args.from];
    words.extend(args.after.then_some("--after"));
    let directory = Typed::default().and(&words);
    let back = Next::naming(
        "bring back the directory with {}; what is there now is kept",
        [Call::of("restore").typed(directory)],
    );
    Failure::from(Report {
        next: vec![back],
        ..Report::from(EngineError::Driver(error))
    })
}
