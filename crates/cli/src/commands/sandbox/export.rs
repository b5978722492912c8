//! `backout sandbox export`

use std::path::PathBuf;

use backout_engine::{Command, Reply, SandboxCommand, SandboxExport};
use clap::Args;

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// Take the sandbox elsewhere: its successful commands, or what it changed
///
/// The script and the Dockerfile are printed. The tar is a layer as OCI images have them: what is new or other, and
/// `.wh.NAME` for what is gone. Variables that look like secrets are left out and named, unless you say `--secrets`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The sandbox; by default the only one.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    how: How,

    /// Let variables that look like secrets go along.
    #[arg(long)]
    secrets: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct How {
    /// Print its successful commands as a shell script.
    #[arg(long)]
    script: bool,

    /// Print its successful commands as a Dockerfile.
    #[arg(long)]
    dockerfile: bool,

    /// Write what it changed as a tar.
    #[arg(long, value_name = "FILE")]
    tar: Option<PathBuf>,

    /// Write what it changed as an OCI image layout: a directory, or a file if its name ends in `.tar`.
    #[arg(long, value_name = "PATH")]
    oci: Option<PathBuf>,
}

pub(super) fn export(session: &mut Session, args: ExportArgs) -> Result<(), Failure> {
    let how = match (args.how.tar, args.how.oci) {
        (Some(path), _) => SandboxExport::Tar(absolute(&path)?),
        (None, Some(path)) => SandboxExport::Oci(absolute(&path)?),
        (None, None) if args.how.dockerfile => SandboxExport::Dockerfile,
        (None, None) => SandboxExport::Script,
    };
    let command = Command::Sandbox(SandboxCommand::Export {
        name: args.name,
        how,
        has_secrets: args.secrets,
    });
    let engine = session.engine()?;
    let reply: Reply = session.execute(&engine, command)?;
    session.show(&engine, &reply)
}
