//! `backout export`

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use backout_engine::{Command, ExportTarget, Report};
use backout_model::Lsn;
use clap::{Args, ValueEnum, ValueHint};

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Write the journal as JSON, one record a line.
///
/// Each record carries its hash and that of the one before, so that the chain can be checked by anybody. Contents of
/// files are not part of it. With `--json` and without `-o`, the reply is left out: the records are it.
///
/// With `--format mplp` it writes evidence into a directory that is not there yet: the records, the same told as MPLP events and as a trace, the state graph and what it was
/// when each rollback began, and the sums of all of it. `backout verify --evidence DIR` checks it against the journal, and says if anything was deleted since.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Write to this file, which must not exist, instead of standard output.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// What to write.
    #[arg(long, value_name = "FORMAT", default_value = "jsonl")]
    format: FormatArg,

    /// With `--format mplp`: the directory to write to, which must not exist.
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required_if_eq("format", "mplp"), conflicts_with = "output")]
    directory: Option<PathBuf>,

    /// Only records after this one.
    #[arg(long, value_name = "LSN", default_value_t = 0)]
    from: u64,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// The records, one a line.
    Jsonl,
    /// Evidence that follows the MPLP v1.0.0 schemas, as a directory.
    Mplp,
}

impl ExportArgs {
    /// Tells whether it writes a file by itself, and not to standard output.
    pub(crate) const fn writes(&self) -> bool {
        self.output.is_some() || self.directory.is_some()
    }
}

pub(crate) fn cmd_export(session: &mut Session, args: &ExportArgs) -> Result<(), Failure> {
    if let Some(directory) = &args.directory {
        if args.format != FormatArg::Mplp {
            let report = Report::usage("a directory goes with `--format mplp` only");
            return Err(report.next("give a file with `-o FILE`").into());
        }
        return session.run(Command::Export {
            to: ExportTarget::Evidence(absolute(directory)?),
            from: Lsn(args.from),
        });
    }
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
