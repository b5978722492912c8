//! The words and numbers that the journal, JSON and people know: each is written down here once more, so that none
//! changes by accident.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use backout_model::text::{parse, stat, unified};
use backout_model::{
    CaptureLevel, CaptureMode, Checkpoint, DependencyReason, Digest, ExpiryReason, LeftAlone, Lsn,
    OperationId, OutcomeKind, Retention, Status, Strategy, TargetPath, Timestamp, Verb,
    wide::is_none_or_wide,
};
use serde::Serialize;

/// What JSON calls it.
fn in_json(value: impl Serialize) -> String {
    let text = serde_json::to_string(&value).unwrap();
    text.trim_matches('"').to_owned()
}

#[test]
fn every_word_is_the_one_in_json() {
    for level in [CaptureLevel::Process, CaptureLevel::Power] {
        assert_eq!(level.as_str(), in_json(level));
    }
    let verbs = [
        Verb::Write,
        Verb::Edit,
        Verb::Append,
        Verb::Remove,
        Verb::Move,
        Verb::Copy,
        Verb::Mkdir,
        Verb::Link,
        Verb::Chmod,
        Verb::Chown,
        Verb::Restore,
        Verb::Batch,
        Verb::Run,
        Verb::Undo,
        Verb::Redo,
        Verb::Recover,
    ];
    for verb in verbs {
        assert_eq!(verb.as_str(), in_json(verb));
        assert_eq!(verb.to_string(), verb.as_str());
        let is_reversal = matches!(verb.as_str(), "undo" | "redo" | "recover");
        assert_eq!(verb.is_reversal(), is_reversal, "{verb}");
    }
    for status in Status::ALL {
        assert_eq!(status.as_str(), in_json(status));
        assert_eq!(status.to_string(), status.as_str());
    }
}

#[test]
fn what_is_in_effect_and_what_must_be_kept_by_status() {
    let in_effect = [
        "armed",
        "applied",
        "committed",
        "interrupted",
        "in-doubt",
        "failed",
    ];
    let uncommitted = [
        "proposed",
        "armed",
        "applied",
        "interrupted",
        "in-doubt",
        "failed",
    ];
    for status in Status::ALL {
        let word = status.as_str();
        assert_eq!(status.is_in_effect(), in_effect.contains(&word), "{word}");
        assert_eq!(
            status.is_uncommitted(),
            uncommitted.contains(&word),
            "{word}"
        );
    }
}

#[test]
fn each_outcome_says_what_it_is_and_whether_it_is_taken_back() {
    let why = || "so".to_owned();
    let all = [
        (OutcomeKind::Restored, "restored", true),
        (OutcomeKind::Compensated, "compensated", true),
        (OutcomeKind::Merged, "merged", true),
        (
            OutcomeKind::Overwritten { why: why() },
            "restored over a later change: so",
            true,
        ),
        (
            OutcomeKind::Incomplete { why: why() },
            "restored but for one thing: so",
            true,
        ),
        (OutcomeKind::Overtaken { why: why() }, "overtaken: so", true),
        (OutcomeKind::AlreadyGone, "already as before", true),
        (OutcomeKind::Left { why: why() }, "left as it is: so", true),
        (OutcomeKind::Skipped { why: why() }, "skipped: so", false),
        (OutcomeKind::Conflict { why: why() }, "conflict: so", false),
        (OutcomeKind::Failed { why: why() }, "failed: so", false),
        (OutcomeKind::InDoubt { why: why() }, "in doubt: so", false),
    ];
    for (kind, said, is_taken_back) in all {
        assert_eq!(kind.to_string(), said);
        assert_eq!(kind.is_taken_back(), is_taken_back, "{said}");
        let is_incomplete = matches!(
            kind,
            OutcomeKind::Incomplete { .. } | OutcomeKind::Overtaken { .. }
        );
        assert_eq!(
            kind.is_complete(),
            is_taken_back && !is_incomplete,
            "{said}"
        );
    }
}

#[test]
fn the_numbers_of_retention() {
    let standard = Retention::standard();
    assert_eq!(standard, Retention::default());
    assert_eq!(standard.committed_ms_min, 3_600_000);
    assert_eq!(standard.committed_ms_max, 2_592_000_000);
    assert_eq!(standard.versions_per_file_max, 50);
    assert_eq!(standard.store_bytes_max, 2_147_483_648);
    assert_eq!(standard.audit_ms, 604_800_000);
    let article = Retention::article();
    assert_eq!(article.committed_ms_max, 3_600_000);
    assert_eq!(article.committed_ms_min, 3_600_000);
    assert_eq!(article.store_bytes_max, 524_288_000);
    assert_eq!(article.audit_ms, 604_800_000);
    let words = [
        ExpiryReason::TooOld,
        ExpiryReason::TooManyVersions,
        ExpiryReason::OverCap,
    ];
    assert!(words.iter().all(|verdict| verdict.as_str().len() > 10));
}

#[test]
fn numbers_that_javascript_reads_are_plain() {
    assert!(is_none_or_wide(&None));
    assert!(!is_none_or_wide(&Some(9_007_199_254_740_991)));
    assert!(is_none_or_wide(&Some(9_007_199_254_740_992)));
}

#[test]
fn a_path_knows_its_parts() {
    let path = TargetPath::new("/a/b").unwrap();
    assert_eq!(path.file_name().unwrap(), "b");
    assert_eq!(TargetPath::new("/").unwrap().file_name(), None);
    for (given, normal) in [
        ("/a//b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/b/", "/a/b"),
        ("/.", "/"),
        ("//", "/"),
    ] {
        assert_eq!(
            TargetPath::new(given).unwrap().as_bytes(),
            normal.as_bytes()
        );
    }
}

#[test]
fn paths_do_not_share_a_place_in_a_map() {
    let hash = |path: &str| {
        let mut hasher = DefaultHasher::new();
        TargetPath::new(path).unwrap().hash(&mut hasher);
        hasher.finish()
    };
    assert_ne!(hash("/a"), hash("/b"));
    assert_eq!(hash("/a/"), hash("/a"));
}

#[test]
fn an_event_leaves_out_the_place_and_the_time_that_its_record_has() {
    let checkpoint = Checkpoint {
        name: "here".parse().unwrap(),
        lsn: Lsn::default(),
        at: Timestamp::default(),
        agent: None,
        task: None,
        state: serde_json::Value::Null,
        files: None,
        resume: None,
    };
    let told = serde_json::to_string(&checkpoint).unwrap();
    assert_eq!(told, r#"{"name":"here"}"#);
}

#[test]
fn what_people_read_is_never_empty_and_never_another_word() {
    let modes = ["live", "scan"];
    let all = [CaptureMode::Live, CaptureMode::Scan];
    assert_eq!(all.map(CaptureMode::as_str), modes);
    assert_eq!(all.map(in_json), modes);
    assert_eq!(Strategy::Snapshot.to_string(), "snapshot");
    assert_eq!(Strategy::Irreversible.to_string(), "irreversible");
    assert_eq!(DependencyReason::Copied.to_string(), "copied what it wrote");
    assert_eq!(Lsn(7).to_string(), "7");
    let id = OperationId::from_bits(0xa1);
    assert_eq!(LeftAlone::Independent { id }.to_string(), "independent");
    let undone = LeftAlone::UndoneSince { id, by: id };
    assert_eq!(
        undone.to_string(),
        format!("undone since by {}", id.short())
    );
    assert_eq!(undone.id(), id);
    assert_eq!(format!("{id:?}"), id.to_string());
    let digest = Digest::from_bytes([0xab; 32]);
    assert_eq!(digest.short(), "abababababab");
    assert_eq!(format!("{digest:?}"), "abababababab");
    let path = TargetPath::new("/a").unwrap();
    assert!(format!("{path:?}").contains("/a"));
}

#[test]
fn only_some_reasons_are_about_the_same_files() {
    use DependencyReason as Reason;
    let of_targets = [
        Reason::SameTarget,
        Reason::InsideDirectory,
        Reason::HoldsTarget,
        Reason::PartOfTarget,
        Reason::WholeOfTarget,
    ];
    let others = [
        Reason::Declared,
        Reason::Copied,
        Reason::Within,
        Reason::Read,
    ];
    assert!(of_targets.into_iter().all(Reason::is_of_targets));
    assert!(!others.into_iter().any(Reason::is_of_targets));
}

#[test]
fn a_patch_tells_programs_links_and_files_apart() {
    for (mode, is_executable, is_symlink) in [
        ("100644", false, false),
        ("100755", true, false),
        ("120000", false, true),
        ("120755", false, true),
        ("040755", false, false),
    ] {
        let text = format!("diff --git a/x b/x\nold mode 100600\nnew mode {mode}\n");
        let patch = parse(text.as_bytes()).unwrap();
        let mode = patch.files.first().unwrap().new_mode.unwrap();
        assert_eq!(mode.is_executable(), is_executable, "{text}");
        assert_eq!(mode.is_symlink(), is_symlink, "{text}");
    }
}

#[test]
fn no_time_has_passed_since_what_comes_later() {
    let (early, late) = (Timestamp(1), Timestamp(5));
    assert_eq!((late.millis_since(early), early.millis_since(late)), (4, 0));
}

#[test]
fn a_text_and_what_is_none_are_not_compared_by_line() {
    for (before, after) in [(&b"a\n"[..], &b"\0"[..]), (b"\0", b"a\n")] {
        let told = unified(before, after, "a", "b", 3);
        assert!(told.starts_with("Binary files differ"), "{told}");
        assert_eq!(stat(before, after), None);
    }
}

#[test]
fn as_many_lines_and_bytes_as_allowed_are_compared_and_no_more() {
    const LINES: usize = 200_000;
    const BYTES: usize = 20_000_000;
    let lines = |count: usize| "x\n".repeat(count).into_bytes();
    let (half, more) = (lines(LINES / 2), lines(LINES / 2 + 1));
    let mut other = half.clone();
    other.splice(..1, *b"y");
    assert_eq!(stat(&half, &other).map(|stat| stat.added), Some(1));
    assert_eq!(stat(&half, &more), None);
    let long = |byte: u8, count: usize| vec![byte; count];
    let (half, other) = (long(b'x', BYTES / 2), long(b'y', BYTES / 2));
    assert_eq!(stat(&half, &other).map(|stat| stat.added), Some(1));
    assert_eq!(stat(&half, &long(b'y', BYTES / 2 + 1)), None);
}
