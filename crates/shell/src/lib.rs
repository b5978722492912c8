//! Reads a shell command and tells whether it writes: a verdict with its reason.
