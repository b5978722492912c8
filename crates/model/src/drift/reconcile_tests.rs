//! What is noted, and what is not.

use super::*;
use crate::drift::{Choice, DriftKind, Expected, Found, Seen, Since, Who};
use crate::{Severity, TargetPath, Timestamp};

fn drift(path: &str, mark: &str) -> Drift {
    Drift {
        target: Target::node(TargetPath::new(path).unwrap()),
        kind: DriftKind::Changed,
        count: 1,
        examples: Vec::new(),
        expected: Expected {
            what: "a file of 3 bytes".to_owned(),
            by: "00000000000000a1".parse().unwrap(),
            agent: None,
            task: None,
            lsn: Lsn(1),
        },
        found: Found {
            what: "a file of 4 bytes".to_owned(),
            mark: Digest::of(mark.as_bytes()),
        },
        since: Since {
            right: Timestamp(1),
            seen: Timestamp(9),
            changed: None,
        },
        who: Who::Unknown,
        severity: Severity::Medium,
        seen: Seen::Active,
        choices: vec![Choice::Accept],
    }
}

fn several(path: &str, mark: &str, count: u64) -> Drift {
    Drift {
        target: Target::tree(TargetPath::new(path).unwrap()),
        count,
        ..drift(path, mark)
    }
}

fn open(all: Vec<Drift>) -> BTreeMap<String, OpenDrift> {
    let each = all.into_iter().map(|drift| {
        let subject = subject_of(&drift.target);
        let lsn = Lsn(5);
        (subject, OpenDrift { drift, lsn })
    });
    each.collect()
}

fn looked(open: &BTreeMap<String, OpenDrift>, found: Vec<Drift>) -> Vec<String> {
    let news = reconcile(open, found, &|_| true, &|_, _| None);
    let line = |it: &News| match &it.note {
        DriftNote::Detected(_) => format!("{} detected", it.subject),
        DriftNote::Resolved(end) => format!("{} {}", it.subject, end.how.as_str()),
        DriftNote::Ignoring { .. } | DriftNote::Heeding { .. } => it.subject.clone(),
    };
    news.iter().map(line).collect()
}

#[test]
fn the_same_drift_is_noted_once_and_again_when_it_changes() {
    assert_eq!(
        looked(&open(vec![]), vec![drift("/a", "x")]),
        ["/a detected"]
    );
    let known = open(vec![drift("/a", "x")]);
    assert!(looked(&known, vec![drift("/a", "x")]).is_empty());
    let changed = reconcile(&known, vec![drift("/a", "y")], &|_| true, &|_, _| None);
    let [
        News {
            note: DriftNote::Detected(told),
            ..
        },
    ] = changed.as_slice()
    else {
        panic!("{changed:?}");
    };
    assert_eq!(told.since.seen, Timestamp(9));
}

#[test]
fn what_is_as_recorded_again_went_away_or_was_written() {
    let known = open(vec![drift("/a", "x")]);
    assert_eq!(looked(&known, vec![]), ["/a went-away"]);
    let by: OperationId = "00000000000000b2".parse().unwrap();
    let news = reconcile(&known, vec![], &|_| true, &|_, _| Some(by));
    assert!(
        matches!(&news[0].note, DriftNote::Resolved(end) if end.how == HowResolved::Recorded { by })
    );
    let narrow = reconcile(&known, vec![], &|_| false, &|_, _| None);
    assert!(narrow.is_empty(), "who did not look says nothing");
}

#[test]
fn a_directory_takes_in_what_was_told_by_itself_and_covers_it() {
    let known = open(vec![drift("/w/a", "x")]);
    let found = vec![several("/w", "z", 9)];
    assert_eq!(looked(&known, found), ["/w detected", "/w/a joined"]);
    let known = open(vec![several("/w", "z", 9)]);
    let narrow = reconcile(&known, vec![drift("/w/a", "x")], &|_| false, &|_, _| None);
    assert!(narrow.is_empty(), "it is told with its directory");
}

#[test]
fn what_is_left_of_a_directory_that_is_over_is_told_by_itself() {
    let known = open(vec![several("/w", "z", 9)]);
    assert_eq!(
        looked(&known, vec![drift("/w/a", "x")]),
        ["/w/a detected", "/w went-away"]
    );
}
