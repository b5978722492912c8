//! The race with who is always there, on a small tree: it must not rot between two real runs.

use super::race::{Course, Race, Work};
use super::{plot, table};
use crate::process;

#[test]
fn a_small_race_is_run_to_its_end_and_everybody_brings_everything_back() {
    let place = tempfile::tempdir().unwrap();
    let mut race = Race::new(place.path(), &process::backout().unwrap());
    race.courses = vec![Course {
        files: 200,
        rounds: 1,
        big_rounds: 1,
    }];
    race.only = vec!["bare", table::OURS, "`cp -a`", "shadow git"];
    let standings = race.run().unwrap();

    let ours = standings
        .iter()
        .find(|one| one.name == table::OURS)
        .unwrap();
    for name in [table::OURS, "`cp -a`", "shadow git"] {
        let standing = standings.iter().find(|one| one.name == name).unwrap();
        for work in [
            Work::UndoOne,
            Work::UndoForty,
            Work::UndoMany,
            Work::UndoRemoval,
        ] {
            let time = &standing.times[&(200, work)];
            assert!(time.is_ok(), "{name}, {work:?}: {time:?}");
        }
    }
    let lost = ours.lost.clone().unwrap();
    assert_eq!((lost.by_removal, lost.by_write), (vec![], vec![]));
    let foreign = ours.foreign.clone().unwrap();
    assert_eq!(foreign.same, "kept, conflict reported");
    assert_eq!((foreign.other, foreign.new), ("kept", "kept"));

    let git = standings
        .iter()
        .find(|one| one.name == "shadow git")
        .unwrap();
    assert!(
        git.lost
            .clone()
            .unwrap()
            .by_removal
            .contains(&"setuid mode")
    );
    assert!(table::to_markdown(&standings).contains("| shadow git |"));
    assert!(plot::draw(&standings).ends_with("</svg>\n"));
}
