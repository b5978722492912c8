//! `backout ln`

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backout_drivers::file::FileRequest;
use clap::{Args, ValueHint};

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;
use crate::words::Words;

/// Make a symbolic link, or give a file a second name.
///
/// If LINK is a directory, the link is made in it under the name of TARGET.
#[derive(Debug, Args)]
pub(crate) struct LnArgs {
    /// Where a symbolic link points, as it is written; or the file that gets a second name.
    #[arg(value_hint = ValueHint::AnyPath)]
    target: OsString,

    /// The link to make.
    #[arg(value_hint = ValueHint::AnyPath)]
    link: PathBuf,

    /// Make a symbolic link instead of a second name.
    #[arg(long, short)]
    symbolic: bool,

    /// Replace a file that has the name of the symbolic link; it is kept for the undo.
    #[arg(long, short = 'f', visible_alias = "force", requires = "symbolic")]
    replace: bool,
}

/// Links.
pub(crate) fn cmd_ln(session: &mut Session, args: LnArgs) -> Result<(), Failure> {
    let words = Words::of("ln")
        .option("-s", args.symbolic)
        .option("-f", args.replace)
        .and(&args.target)
        .paths([args.link.as_path()]);
    if session.is_answered(&words)? {
        return Ok(());
    }
    let mut path = absolute(&args.link)?;
    let is_directory = path.symlink_metadata().is_ok_and(|found| found.is_dir());
    if let Some(name) = Path::new(&args.target).file_name().filter(|_| is_directory) {
        path.push(name);
    }
    session.write(if args.symbolic {
        FileRequest::Symlink {
            path,
            to: args.target,
            replace: args.replace,
        }
    } else {
        FileRequest::HardLink {
            path,
            to: absolute(Path::new(&args.target))?,
        }
    })
}
