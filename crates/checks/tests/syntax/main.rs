//! The syntax checks: tables of texts for each format, limits, encodings, and texts that nobody thought of.

mod anything;
mod detection;
mod limits;
mod tables;
mod texts;
