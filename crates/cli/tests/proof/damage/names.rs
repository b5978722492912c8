//! Damages that once went unnoticed, each with its story.

use std::fs;

use super::story::{Story, undo};

fn raw(story: &Story) -> rusqlite::Connection {
    rusqlite::Connection::open(story.world.state().join("journal.sqlite")).unwrap()
}

#[test]
fn a_deleted_log_was_a_shorter_history_that_nobody_noticed() {
    let story = Story::new();
    fs::remove_file(story.world.state().join("journal.sqlite-wal")).unwrap();
    let told = story.world.fails(3, &["log"]);
    assert!(told.contains("lost its newest records"), "{told}");
    story.world.fails(3, &["write", "app.toml", "--text", "x"]);
    let told = story.world.ok(&["doctor", "--repair"]);
    assert!(told.contains("records 22–43 are lost"), "{told}");
    let verified = story.world.ok(&["verify"]);
    assert!(verified.contains("was repaired at record"), "{verified}");
    story.world.ok(&["write", "app.toml", "--text", "x"]);
    story.world.ok(&["undo"]);
}

#[test]
fn an_empty_journal_beside_kept_inodes_was_taken_for_a_new_store() {
    let story = Story::new();
    fs::write(story.world.state().join("journal.sqlite"), "").unwrap();
    let told = story.world.fails(3, &["log"]);
    assert!(told.contains("what belongs to it is not"), "{told}");
    assert!(story.world.state().join("journal.sqlite-wal").exists());
    story.world.ok(&["doctor", "--repair"]);
    story.world.ok(&["verify"]);
}

#[test]
fn an_operation_that_points_at_another_ones_record_was_undone_with_that_ones_recipe() {
    let story = Story::new();
    let (one, other) = (&story.told[4], &story.told[5]);
    let bits = |id: &str| u64::from_str_radix(id, 16).unwrap().cast_signed();
    let raw = raw(&story);
    let of = |id: i64| {
        raw.query_row("SELECT lsn FROM operation WHERE id = ?1", [id], |row| {
            row.get::<_, i64>(0)
        })
        .unwrap()
    };
    let (a, b) = (bits(&one.id.to_string()), bits(&other.id.to_string()));
    let (lsn_a, lsn_b) = (of(a), of(b));
    for (id, lsn) in [(a, -1), (b, lsn_a), (a, lsn_b)] {
        raw.execute("UPDATE operation SET lsn = ?2 WHERE id = ?1", [id, lsn])
            .unwrap();
    }
    let engine = story.engine().unwrap();
    engine.recover(None).unwrap();
    let before = story.world.tree();
    assert!(undo(&engine, one.id).is_err());
    let now = story.world.tree();
    assert_eq!(now, before, "{}", now.difference(&before));
}

#[test]
fn a_recipe_with_one_bit_changed_was_carried_out() {
    let story = Story::new();
    let raw = raw(&story);
    raw.execute_batch("DROP TRIGGER record_is_append_only")
        .unwrap();
    let changed = raw
        .execute(
            "UPDATE record SET body = cast(replace(body, '\"mode\":420', '\"mode\":421') AS BLOB)
             WHERE lsn = 1",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    let engine = story.engine().unwrap();
    for told in story
        .told
        .iter()
        .rev()
        .filter(|told| told.names == ["versions.txt"])
    {
        let _undone = undo(&engine, told.id);
    }
    let mode = |tree: &crate::world::Tree| tree.mode_of("versions.txt");
    assert_eq!(mode(&story.world.tree()), mode(&story.told[0].before));
}
