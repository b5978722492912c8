//! `cargo xtask crash`: the long forms of the tests that kill processes, cut the power and let calls fail.

use crate::apt;
use crate::run::{Step, cargo, run_all};

const USAGE: &str = "usage: cargo xtask crash [--pairs | --images N | --bites N | --errors | --storm ROUNDS]

  --pairs         every pair of crash points: a crash, and a crash of the recovery (the default)
  --images N      N images of power cuts on each of ext4, xfs and btrfs
  --bites N       the same with one kind of sync left out at a time: how many images then show a loss
  --errors        every file-system call of every workload fails with every error
  --storm ROUNDS  sixteen processes killed at random, each starting so many commands";

/// Runs what was asked for.
pub(crate) fn crash(arguments: &[String]) -> Result<(), String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (name, filter, variables): (_, _, Vec<(&str, &str)>) = match words.as_slice() {
        [] | ["--pairs"] => (
            "every pair of crash points",
            "crash",
            vec![("BACKOUT_EVERY_PAIR", "1")],
        ),
        ["--images", count] => (
            "power cuts",
            "after_power_cuts",
            vec![("BACKOUT_IMAGES", count)],
        ),
        ["--bites", count] => (
            "power cuts without a sync",
            "power::without",
            vec![("BACKOUT_IMAGES", count), ("BACKOUT_VIOLATIONS", "1000000")],
        ),
        ["--errors"] => (
            "every error at every call",
            "errno::",
            vec![("BACKOUT_EVERY_ERROR", "1")],
        ),
        ["--storm", rounds] => ("storm", "storm::", vec![("BACKOUT_STORM_ROUNDS", rounds)]),
        _ => return Err(USAGE.to_owned()),
    };
    if let [option, count] = words.as_slice()
        && !count.parse::<usize>().is_ok_and(|count| count > 0)
    {
        return Err(format!(
            "{option} wants a number above 0, not `{count}`\n\n{USAGE}"
        ));
    }
    apt::install_what_tests_need()?;
    let mut tests = cargo();
    tests
        .args(["test", "--package", "backout-cli", "--features", "testing"])
        .args(["--test", "proof", filter, "--", "--nocapture"])
        .envs(variables);
    run_all(vec![Step::new(name, &mut tests)])
}
