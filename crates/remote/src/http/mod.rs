//! Calls of web services, with the calls that answer them.
