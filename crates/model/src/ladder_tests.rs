//! The ladder as a table: what comes next, given what was tried.

use super::*;

const ALL: Rungs = Rungs {
    retries: 2,
    backoff_ms: 10,
    backoff_max_ms: 1000,
    fallback: true,
    restore: true,
    alert: true,
    accept_partial: true,
};

const NONE: Rungs = Rungs {
    retries: 0,
    fallback: false,
    restore: false,
    alert: false,
    accept_partial: false,
    ..ALL
};

fn next(rungs: &Rungs, may_pass: bool, retried: u32, tried: &[Rung]) -> NextRung {
    rungs.next(Height {
        may_pass,
        retried,
        tried,
    })
}

#[test]
fn rungs_are_climbed_in_order() {
    use NextRung::{Climb, Person, Retry};
    use Rung::{Accept, Alert, Fallback, Restore};
    for (may_pass, retried, tried, expected) in [
        (true, 0, &[][..], Retry { pause_ms: 10 }),
        (true, 1, &[], Retry { pause_ms: 40 }),
        (true, 2, &[], Climb(Fallback)),
        (false, 0, &[], Climb(Fallback)),
        (false, 0, &[Fallback], Climb(Restore)),
        (false, 0, &[Fallback, Restore], Climb(Alert)),
        (false, 0, &[Fallback, Restore, Alert], Climb(Accept)),
        (false, 0, &[Fallback, Restore, Alert, Accept], Person),
        // What may pass is not gone back to once something else was tried.
        (true, 0, &[Fallback], Climb(Restore)),
    ] {
        let found = next(&ALL, may_pass, retried, tried);
        assert_eq!(found, expected, "{may_pass} {retried} {tried:?}");
    }
}

#[test]
fn a_rung_that_is_not_there_is_passed_over() {
    assert_eq!(next(&NONE, true, 0, &[]), NextRung::Person);
    for rung in [Rung::Fallback, Rung::Restore, Rung::Alert, Rung::Accept] {
        let only = Rungs {
            fallback: rung == Rung::Fallback,
            restore: rung == Rung::Restore,
            alert: rung == Rung::Alert,
            accept_partial: rung == Rung::Accept,
            ..NONE
        };
        assert_eq!(next(&only, false, 0, &[]), NextRung::Climb(rung));
        assert_eq!(next(&only, false, 0, &[rung]), NextRung::Person);
    }
}

#[test]
fn every_climb_ends() {
    for bits in 0..32_u32 {
        let rungs = Rungs {
            retries: bits & 1,
            fallback: bits & 2 > 0,
            restore: bits & 4 > 0,
            alert: bits & 8 > 0,
            accept_partial: bits & 16 > 0,
            ..ALL
        };
        let (mut retried, mut tried) = (0, Vec::new());
        for _ in 0..10 {
            match next(&rungs, true, retried, &tried) {
                NextRung::Retry { .. } => retried += 1,
                NextRung::Climb(rung) => {
                    assert!(tried.iter().all(|before| *before < rung), "{rung} again");
                    tried.push(rung);
                }
                NextRung::Person => break,
            }
        }
        assert_eq!(next(&rungs, true, retried, &tried), NextRung::Person);
        let steps = u32::try_from(tried.len()).unwrap() + retried;
        assert_eq!(steps, bits.count_ones());
    }
}

#[test]
fn pauses_grow_up_to_their_limit() {
    let pauses: Vec<u64> = (0..6).map(|retried| ALL.pause_ms(retried)).collect();
    assert_eq!(pauses, [10, 40, 160, 640, 1000, 1000]);
    assert_eq!(ALL.pause_ms(u32::MAX), 1000);
}

#[test]
fn each_severity_has_rungs_of_its_own_and_none_accepts_by_itself() {
    let ladder = Ladder::default();
    for severity in Severity::ALL {
        assert!(!ladder.rungs(severity).accept_partial, "{severity}");
        assert!(ladder.rungs(severity).fallback, "{severity}");
    }
    assert!(ladder.critical.retries > ladder.medium.retries);
    let custom = Ladder { low: ALL, ..ladder };
    assert!(custom.rungs(Severity::Low).accept_partial);
}

#[test]
fn only_what_helped_or_was_accepted_is_closed() {
    let rungs = |rung, climbed| Escalated {
        id: OperationId::from_bits(1),
        rung,
        climbed,
        times: 0,
        is_first: false,
        strategy: Strategy::Snapshot,
        trigger: Trigger::asked_for(),
        outcomes: Vec::new(),
        owner: Owner {
            pid: 1,
            started: 1,
            boot: String::new(),
            pid_namespace: 1,
            host: String::new(),
        },
        decided: None,
    };
    for rung in Rung::ALL {
        let why = || "no".to_owned();
        assert!(rungs(rung, Climbed::Began).is_open());
        assert!(rungs(rung, Climbed::DidNotHelp { why: why() }).is_open());
        assert!(rungs(rung, Climbed::NotPossible { why: why() }).is_open());
        let is_open = rungs(rung, Climbed::Helped).is_open();
        assert_eq!(is_open, rung == Rung::Alert, "{rung}");
    }
}
