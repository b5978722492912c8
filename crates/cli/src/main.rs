//! The command `backout`. Everything is in the library, where tests reach it.

use std::process::ExitCode;

fn main() -> ExitCode {
    backout_cli::main(std::env::args_os())
}
