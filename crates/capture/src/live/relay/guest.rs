//! The program that the front runs for somebody inside.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};

use super::ASKED;
use super::request::{decode_environment, encode_environment};
use crate::live::sys;

/// What a program knows that was asked for through the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The caller's environment: for the command that it wants run, and for nothing else.
    pub environment: Vec<(OsString, OsString)>,
}

/// Tells whether this program was asked for through the relay. To be called once, before anything is opened.
pub fn asked() -> Option<Guest> {
    let number = std::env::var(ASKED).ok()?;
    let environment = number.parse().ok().and_then(sys::inherited).and_then(read);
    // Whoever sets the variable by hand has less permitted, not more.
    let environment = environment.unwrap_or_default();
    Some(Guest { environment })
}

fn read(from: OwnedFd) -> Option<Vec<(OsString, OsString)>> {
    let mut bytes = Vec::new();
    File::from(from).read_to_end(&mut bytes).ok()?;
    decode_environment(&bytes).ok()
}

/// Puts an environment where a child finds it. Gives what the child must inherit, and the variable's value.
pub(super) fn hand_over(environment: &[(OsString, OsString)]) -> io::Result<(OwnedFd, String)> {
    let memory = memfd_create(c"environment", MemfdFlags::empty())?;
    let mut file = File::from(memory);
    io::Write::write_all(&mut file, &encode_environment(environment))?;
    io::Seek::rewind(&mut file)?;
    let number = file.as_raw_fd().to_string();
    Ok((file.into(), number))
}
