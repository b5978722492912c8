//! What a store keeps of facts that are no operation's.

use backout_model::ports::Durability;
use backout_model::{Event, Lsn, Note, NoteFilter, Retention, Timestamp, Topic};
use serde_json::json;

use super::World;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn note(topic: Topic, subject: &str, body: u32) -> Event {
    Event::Noted(Box::new(Note {
        topic,
        subject: subject.to_owned(),
        lsn: Lsn(0),
        at: Timestamp(0),
        agent: None,
        task: None,
        body: json!(body),
    }))
}

/// The subjects and bodies that a filter finds.
fn found(world: &World, filter: &NoteFilter) -> Vec<(String, u64)> {
    let notes = world.store.notes(filter).expect("listed");
    let told = notes.into_iter().map(|it| (it.subject, it.body.as_u64()));
    told.map(|(subject, body)| (subject, body.expect("a number")))
        .collect()
}

fn pairs(all: &[(&str, u64)]) -> Vec<(String, u64)> {
    let all = all.iter();
    all.map(|(subject, body)| ((*subject).to_owned(), *body))
        .collect()
}

/// Newest first, by topic, subject and place; another topic's subjects are others.
pub fn notes_are_found_by_topic_subject_and_place(world: &World) {
    let first = world.append(vec![note(Topic::Graph, "a", 1)]);
    let second = world.append(vec![
        note(Topic::Drift, "a", 2),
        note(Topic::Graph, "b", 3),
        note(Topic::Graph, "a", 4),
    ]);
    let all = NoteFilter::all(Topic::Graph);
    assert_eq!(found(world, &all), pairs(&[("a", 4), ("b", 3), ("a", 1)]));
    let newest = NoteFilter::newest(Topic::Graph);
    assert_eq!(found(world, &newest), pairs(&[("a", 4), ("b", 3)]));
    let about = NoteFilter::about(Topic::Graph, "a");
    assert_eq!(found(world, &about), pairs(&[("a", 4), ("a", 1)]));
    let then = NoteFilter {
        up_to: Some(first),
        ..newest.clone()
    };
    assert_eq!(found(world, &then), pairs(&[("a", 1)]));
    let since = NoteFilter {
        after: Some(first),
        limit: Some(1),
        ..all
    };
    assert_eq!(found(world, &since), pairs(&[("a", 4)]));
    assert_eq!(found(world, &NoteFilter::newest(Topic::Stage)), pairs(&[]));
    let placed = world.store.notes(&newest).expect("listed");
    assert_eq!(placed.first().map(|it| it.lsn), Some(second));
}

/// When old records are cut, how each subject stands is still known.
pub fn the_newest_note_of_a_subject_outlives_its_record(world: &World) {
    world.append(vec![
        note(Topic::Graph, "a", 1),
        note(Topic::Graph, "b", 2),
        note(Topic::Graph, "a", 3),
    ]);
    world.clock.pass(30 * DAY_MS);
    let hasty = Retention {
        audit_ms: 0,
        ..Retention::standard()
    };
    world.store.cut_audit(&hasty).expect("cut").expect("a file");
    let all = NoteFilter::all(Topic::Graph);
    assert_eq!(found(world, &all), pairs(&[("a", 3), ("b", 2)]));
    let append = &backout_model::ports::Entry::of(vec![note(Topic::Graph, "a", 4)]);
    world
        .store
        .append(append, Durability::Power)
        .expect("appended");
    let newest = NoteFilter::newest(Topic::Graph);
    assert_eq!(found(world, &newest), pairs(&[("a", 4), ("b", 2)]));
    assert_eq!(super::verify::check(world).findings, []);
    // How all of it stood at the next cut is still known when something newer is there.
    let cut = world.store.cut_audit(&hasty).expect("cut");
    assert!(cut.is_some());
    let last = world.append(vec![note(Topic::Graph, "a", 5)]);
    let then = NoteFilter {
        up_to: Some(backout_model::Lsn(last.0 - 1)),
        ..NoteFilter::newest(Topic::Graph)
    };
    assert_eq!(found(world, &then), pairs(&[("a", 4), ("b", 2)]));
    assert_eq!(super::verify::check(world).findings, []);
}
