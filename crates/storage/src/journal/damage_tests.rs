//! What is said of a journal that somebody changed behind our back: which record or operation, and how.

use std::fs;

use backout_model::ports::{Append as _, Durability, Entry};
use backout_model::{Event, OperationId};

use super::tests::{World, id, node};
use crate::VerifyFinding;
use crate::{StorageError, Store};

/// Two writes, and a journal that no longer guards its records.
fn open_world() -> World {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    world.commit(2, &[node("/b")]);
    world
        .raw()
        .execute_batch(
            "DROP TRIGGER record_is_append_only; DROP TRIGGER record_is_cut_at_the_anchor;",
        )
        .unwrap();
    world
}

fn hurt(world: &World, sql: &str) {
    world.raw().execute_batch(sql).unwrap();
}

/// What `verify` says of a damage.
fn found(damage: &str) -> Vec<String> {
    let world = open_world();
    hurt(&world, damage);
    let findings = world.store.verify(&mut |_, _| {}).unwrap().findings;
    let detail = |finding: VerifyFinding| match finding {
        VerifyFinding::Record { lsn, detail } => format!("record {lsn}: {detail}"),
        VerifyFinding::Operation { id, detail } => format!("{}: {detail}", id.short()),
        other @ (VerifyFinding::Database { .. }
        | VerifyFinding::Content { .. }
        | VerifyFinding::Slot { .. }) => format!("{other:?}"),
    };
    findings.into_iter().map(detail).collect()
}

#[test]
fn verify_says_what_does_not_fit() {
    let (one, two) = (id(1).short(), id(2).short());
    for (damage, said) in [
        (
            "DELETE FROM record WHERE lsn = 2",
            "record 3: record 2 is missing before it".to_owned(),
        ),
        (
            "UPDATE record SET kind = 'abort' WHERE lsn = 3",
            "record 3: it is filed as something else than it says".to_owned(),
        ),
        (
            "DELETE FROM target WHERE operation = (SELECT id FROM operation WHERE lsn = 4);
             DELETE FROM operation WHERE lsn = 4",
            format!("{two}: it has records, but is not listed"),
        ),
        (
            "INSERT INTO operation SELECT * FROM operation WHERE 0; \
             UPDATE operation SET id = id + 7 WHERE lsn = 1",
            format!("{one}: it has records, but is not listed"),
        ),
    ] {
        let found = found(damage);
        assert!(found.contains(&said), "{damage}: {found:?}");
    }
    let found = found("DELETE FROM target WHERE lsn = 4");
    assert!(
        found.iter().any(|it| it.contains("lacks a row")),
        "{found:?}"
    );
}

/// What is said when the recipe of an operation is asked for.
fn asked(damage: &str, id: OperationId) -> String {
    let world = open_world();
    hurt(&world, damage);
    world.store.effect(id).unwrap_err().to_string()
}

#[test]
fn a_recipe_that_is_not_what_the_chain_says_is_not_used() {
    let of = |id: OperationId, said: &str| {
        format!("the journal contradicts itself at operation {id}: {said}")
    };
    assert_eq!(asked("", id(9)), of(id(9), "it is not in the journal"));
    assert_eq!(
        asked("UPDATE operation SET lsn = 99 WHERE lsn = 1", id(1)),
        of(id(1), "its record is gone")
    );
    assert_eq!(
        asked("UPDATE operation SET lsn = 2 WHERE lsn = 1", id(1)),
        of(
            id(1),
            "its record tells of no write: missing field `recipe` at line 1 column 61"
        )
    );
    assert_eq!(
        asked(
            "UPDATE operation SET lsn = 99 WHERE lsn = 4; UPDATE operation SET lsn = 4 WHERE lsn = 1",
            id(1)
        ),
        of(id(1), "its record is another operation's")
    );
    let world = open_world();
    let error = world.store.first_owner(id(9)).unwrap_err();
    assert_eq!(error.to_string(), of(id(9), "its record is gone"));
}

#[test]
fn a_history_that_cannot_be_says_of_which_operation() {
    let world = World::new();
    world.commit(1, &[node("/a")]);
    let append = |event: Event| {
        let entry = Entry::of(vec![event]);
        let appended = world.store.append(&entry, Durability::Process);
        appended.unwrap_err().to_string()
    };
    assert_eq!(
        append(Event::Commit { id: id(9) }),
        format!(
            "the journal contradicts itself at operation {}: it was never armed",
            id(9)
        )
    );
    let again = super::tests::intent(1, &[]);
    assert_eq!(
        append(Event::Intent(Box::new(again))),
        format!("there already is an operation {}", id(1))
    );
}

#[test]
fn a_store_says_what_is_wrong_with_its_format() {
    let world = World::new();
    let open = || Store::open(world.store.directory(), world.clock.clone());
    let said = |error: StorageError| {
        let journal = world.store.directory().join("journal.sqlite");
        let begin = format!("the journal `{}` is damaged: ", journal.display());
        error.to_string().strip_prefix(&begin).unwrap().to_owned()
    };
    world.raw().pragma_update(None, "user_version", 99).unwrap();
    assert_eq!(
        said(open().unwrap_err()),
        "it says another format than the store was made with"
    );
    world.raw().pragma_update(None, "user_version", 0).unwrap();
    assert_eq!(said(open().unwrap_err()), "it has tables, but no format");
    fs::remove_file(world.store.directory().join("journal.sqlite")).unwrap();
    assert_eq!(
        said(open().unwrap_err()),
        "it is gone, but what belongs to it is not"
    );
}

#[test]
fn what_only_a_bad_disk_or_a_full_store_says() {
    for (error, said) in [
        (
            StorageError::Poisoned,
            "an earlier write to the journal failed, so it takes no more until it is opened again",
        ),
        (
            StorageError::OverCap {
                stored: 7,
                adding: 5,
                cap: 9,
            },
            "the store holds 7 bytes and would get 5 more; its cap is 9",
        ),
        (
            StorageError::InUse { pid: 3 },
            "the store is being used by process 3",
        ),
        (
            StorageError::Database(rusqlite::Error::InvalidQuery.into()),
            "the journal's database failed",
        ),
    ] {
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let append = |world: &World| {
        let entry = Entry::of(vec![Event::Intent(Box::new(super::tests::intent(3, &[])))]);
        let appended = world.store.append(&entry, Durability::Process);
        appended.unwrap_err().to_string()
    };
    let world = open_world();
    hurt(&world, "UPDATE record SET hash = x'00' WHERE lsn = 6");
    let said = append(&world);
    assert!(
        said.starts_with("the journal contradicts itself at the last record: "),
        "{said}"
    );
    let world = open_world();
    hurt(&world, "UPDATE target SET reach = 'far'");
    let said = world.store.operation(id(1)).unwrap_err().to_string();
    let begin = format!(
        "the journal contradicts itself at a target of operation {}: ",
        id(1)
    );
    assert!(said.starts_with(&begin), "{said}");
}
