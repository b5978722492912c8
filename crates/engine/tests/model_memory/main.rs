//! The same stories as in `tests/model`, with a store in memory. What a process that dies left there, the others find in a file.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../model/death.rs"]
mod death;
#[path = "../model/dice.rs"]
mod dice;
#[path = "../model/foreign.rs"]
mod foreign;
#[path = "../model/foresee.rs"]
mod foresee;
#[path = "../model/mixed.rs"]
mod mixed;
#[path = "../model/names.rs"]
mod names;
#[path = "../model/oracle.rs"]
mod oracle;
#[path = "../model/request.rs"]
mod request;
#[path = "../model/runner.rs"]
mod runner;
#[path = "../model/seen.rs"]
mod seen;
mod shelf;
#[path = "../model/shrink.rs"]
mod shrink;
#[path = "../model/story.rs"]
mod story;
#[path = "../model/telling.rs"]
mod telling;
#[path = "../model/tree.rs"]
mod tree;
#[path = "../model/verdict.rs"]
mod verdict;

#[test]
fn the_child_of_a_story() {
    death::be_a_child();
}
