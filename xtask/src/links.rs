//! `cargo xtask links`: random lines on files with several names, on five file systems.

use crate::apt;
use crate::run::{Step, cargo, run_all, say};

const USAGE: &str = "usage: cargo xtask links [STORIES] [SEED]";

/// Where the stories are told.
const KINDS: [&str; 5] = ["ext4", "xfs", "btrfs", "tmpfs", "overlay"];

/// Tells so many stories on each file system. One that goes wrong does not end the others; all are named at the end.
pub(crate) fn links(arguments: &[String]) -> Result<(), String> {
    let [stories, seed] = match arguments {
        [] => ["2000", "1"],
        [stories] => [stories.as_str(), "1"],
        [stories, seed] => [stories.as_str(), seed.as_str()],
        _ => return Err(USAGE.to_owned()),
    };
    for number in [stories, seed] {
        let number = number.parse::<u64>();
        number.map_err(|error| format!("{error}\n\n{USAGE}"))?;
    }
    apt::install_what_tests_need()?;
    let mut wrong = Vec::new();
    for kind in KINDS {
        say(&format!("== {stories} stories on {kind}"));
        let mut tell = cargo();
        tell.args(["test", "--release", "-p", "backout-cli"])
            .args(["--features", "testing", "--test", "proof"])
            .args(["--", "random_commands_on_linked", "--nocapture"])
            .env("BACKOUT_LINK_DISK", kind)
            .env("BACKOUT_LINK_STORIES", stories)
            .env("BACKOUT_LINK_SEED", seed);
        wrong.extend(run_all(vec![Step::new(kind, &mut tell)]).err());
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
