//! `backout doctor`

use std::path::PathBuf;

use backout_engine::{Command, Reply};
use clap::{Args, ValueHint};

use crate::agents::doctor;
use crate::failure::Failure;
use crate::session::Session;

/// Check the store, the file system and the agents here.
///
/// It says whether the store is healthy, what the file system here can do, and whether each agent on this machine is protected.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A directory of the file system to check.
    #[arg(default_value = ".", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Save what can be saved of a damaged store, and settle what dead processes left.
    ///
    /// A damaged journal is put together again from every record that can be trusted; the damaged files are kept. What is
    /// lost is said here and in every later `verify`.
    #[arg(long)]
    repair: bool,
}

impl DoctorArgs {
    /// Tells whether it only looks.
    pub(crate) const fn only_looks(&self) -> bool {
        !self.repair
    }
}

/// Checks.
pub(crate) fn cmd_doctor(session: &mut Session, args: DoctorArgs) -> Result<(), Failure> {
    let command = Command::Doctor {
        directory: args.directory,
        repair: false,
    };
    if args.repair {
        return session.repair(command);
    }
    let engine = session.engine()?;
    let mut reply = session.execute(&engine, command)?;
    if let Reply::Doctor(report) = &mut reply {
        report.findings.extend(doctor::findings(session));
    }
    session.show(&engine, &reply)
}
