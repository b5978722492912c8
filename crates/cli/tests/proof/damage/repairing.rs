//! A repair that is itself interrupted, at every point.

use super::story::Story;

const POINTS: [&str; 5] = [
    "repair.evidence-kept",
    "repair.built",
    "repair.waiting",
    "repair.log-gone",
    "repair.swapped",
];

#[test]
fn a_repair_that_dies_anywhere_is_repeated_or_finished() {
    for point in POINTS {
        let story = Story::new();
        let raw = rusqlite::Connection::open(story.world.state().join("journal.sqlite")).unwrap();
        raw.execute("UPDATE operation SET status = 'aborted'", [])
            .unwrap();
        drop(raw);
        let mut dying = story.world.command(&["doctor", "--repair"]);
        let output = dying.env("BACKOUT_CRASH_AT", point).output().unwrap();
        assert_eq!(output.status.code(), None, "{point} is reached");
        story.world.ok(&["doctor", "--repair"]);
        let verified = story.world.ok(&["verify"]);
        assert!(
            verified.contains("no record was lost"),
            "{point}: {verified}"
        );
        assert!(story.world.state().join("journal.damaged-1").exists());
        assert!(
            !story.world.state().join("journal.damaged-2").exists(),
            "{point}"
        );
        // Everything comes back, newest first.
        for told in story.told.iter().rev() {
            story
                .world
                .ok(&["undo", "--committed", &told.id.to_string()]);
        }
        let (now, before) = (story.world.tree(), story.told[0].before.clone());
        let (now, before) = (
            now.without_directory_times(),
            before.without_directory_times(),
        );
        assert_eq!(now, before, "{point}: {}", now.difference(&before));
    }
}
