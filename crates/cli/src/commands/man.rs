//! `backout man`

use std::path::PathBuf;

use backout_engine::Report;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::session::Session;

/// Print the manual page, or write all pages into a directory.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this directory.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    dir: Option<PathBuf>,
}

impl ManArgs {
    /// Tells whether it writes files by itself, and not to standard output.
    pub(crate) const fn writes(&self) -> bool {
        self.dir.is_some()
    }
}

/// Prints or writes manual pages.
pub(crate) fn cmd_man(session: &mut Session, args: &ManArgs) -> Result<(), Failure> {
    let command = crate::command();
    let Some(directory) = &args.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Report::refused("the manual page could not be made").because(error))?;
        session.ui.print(&String::from_utf8_lossy(&page));
        return Ok(());
    };
    clap_mangen::generate_to(command, directory).map_err(|error| {
        Report::refused(format!(
            "the manual pages could not be written into `{}`",
            directory.display()
        ))
        .because(error)
        .next("name a directory that exists and that you may write")
    })?;
    let place = session.here.show(directory);
    session
        .ui
        .done(&format!("wrote the manual pages into {place}\n"));
    Ok(())
}
