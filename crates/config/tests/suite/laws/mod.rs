//! What must hold for every text, every edit, and whatever others edit in between.
//!
//! `PROPTEST_CASES=10000` makes a long run of it.

#![expect(
    clippy::indexing_slicing,
    clippy::format_push_string,
    reason = "short and plain matters more than speed here"
)]

mod anything;
mod dice;
mod pairs;
mod story;
mod texts;
mod texts_json;
mod texts_toml;
mod texts_yaml;
