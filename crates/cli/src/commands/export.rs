//! `backout export`

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use backout_engine::{Command, ExportTarget, Report};
use backout_model::Lsn;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::session::Session;

/// Write the journal as JSON, one record a line.
///
/// Each record carries its hash and that of the one before, so that the chain can be checked by anybody. Contents of
/// files are not part of it. With `--json` and without `-o`, the reply is left out: the records are it.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Write to this file, which must not exist, instead of standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Only records after this one.
    #[arg(long, value_name = "LSN", default_value_t = 0)]
    from: u64,
}

impl ExportArgs {
    /// Tells whether it writes a file by itself, and not to standard output.
    pub(crate) const fn writes(&self) -> bool {
        self.output.is_some()
    }
}

/// Exports.
pub(crate) fn cmd_export(session: &mut Session, args: &ExportArgs) -> Result<(), Failure> {
    let engine = session.engine()?;
    let out: Box<dyn Write + Send> = match &args.output {
        Some(path) => Box::new(create(path)?),
        None => Box::new(BufWriter::new(session.ui.stream())),
    };
    let command = Command::Export {
        to: ExportTarget::Stream(out),
        from: Lsn(args.from),
    };
    let reply = session.execute(&engine, command)?;
    if args.output.is_some() {
        return session.show(&engine, &reply);
    }
    Ok(())
}

/// What is exported names files and says who did what: it is for nobody else.
fn create(path: &Path) -> Result<impl Write + Send + use<>, Report> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    file.map(BufWriter::new).map_err(|error| {
        Report::refused(format!("`{}` could not be made", path.display()))
            .because(error)
            .next("choose another name")
    })
}
