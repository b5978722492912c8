//! Images, by their digest.

use std::io::Read as _;

use backout_model::Digest;
use backout_model::Retention;
use backout_model::ports::{ContentsError, NewContent, Over};
use backout_model::reversal::Pieces;

use super::{World, id, node};

/// Lines, of which one is `own`.
fn version(own: &str) -> Vec<u8> {
    let mut text = "a line of a file\n".repeat(200);
    text.insert_str(900, own);
    text.into_bytes()
}

/// A content as the change of another.
fn over(older: &[u8], newer: &[u8]) -> NewContent {
    let pieces = Pieces::between(older, newer, u64::MAX).expect("memory is read");
    NewContent {
        digest: Digest::of(older),
        bytes: pieces.expect("nothing is too much").encode(),
        over: Some(Over {
            base: Digest::of(newer),
            size: older.len() as u64,
        }),
    }
}

fn read_over(world: &World, older: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let from = Box::new(std::io::Cursor::new(base.to_vec()));
    let (older, base) = (Digest::of(older), Digest::of(base));
    let mut opened = world
        .again()
        .open_over(&older, &base, from)
        .expect("opened");
    let mut all = Vec::new();
    opened.read_to_end(&mut all).ok().map(|_| all)
}

/// However it came in, and whoever asks.
pub fn what_is_kept_is_read_back_by_its_digest(world: &World) {
    world.arm_with(1, &[node("/a")], &[b"with the record", b""]);
    let (digest, size) = world
        .store
        .stash(id(2), &mut &b"before it"[..])
        .expect("kept");
    assert_eq!((digest, size), (Digest::of(b"before it"), 9));
    let other = world.again();
    for bytes in [&b"with the record"[..], b"", b"before it"] {
        let digest = Digest::of(bytes);
        assert!(other.has(&digest).expect("asked"));
        assert_eq!(other.read(&digest).expect("read"), bytes);
    }
    // Twice is once.
    let before = world.store.stored_bytes().expect("known");
    world.arm_with(3, &[node("/a")], &[b"with the record"]);
    assert_eq!(world.store.stored_bytes().expect("known"), before);
}

/// For the first that needs it, so that the parts and the rest are the whole.
pub fn what_is_kept_is_held_by_somebody(world: &World) {
    world.arm_with(1, &[node("/a")], &[b"one", b"and two"]);
    world.arm_with(2, &[node("/b")], &[b"one", b"three of them"]);
    let (_stashed, _size) = world
        .store
        .stash(id(9), &mut &b"of nobody yet"[..])
        .expect("kept");
    let total = world.store.stored_bytes().expect("known").total;
    let by = world.store.stored_by().expect("counted");
    let sum = |sums: &std::collections::BTreeMap<String, u64>| sums.values().sum::<u64>();
    assert_eq!(sum(&by.by_agent) + by.rest, total);
    assert_eq!(sum(&by.by_task) + by.rest, total);
    assert!(by.rest > 0, "what no operation needs is the rest");
    let of = |number: u64| {
        let held = by.largest.iter().find(|held| held.id == id(number));
        held.map_or(0, |held| held.bytes)
    };
    assert!(of(2) > 0 && of(1) > 0);
    assert_eq!(of(1) + of(2) + by.rest, total);
}

/// And is called that.
pub fn what_is_not_there_is_missing(world: &World) {
    let digest = Digest::of(b"never kept");
    assert!(!world.store.has(&digest).expect("asked"));
    let missing = |error: &ContentsError| matches!(error, ContentsError::Missing { digest: it } if *it == digest);
    assert!(missing(
        &world.store.read(&digest).expect_err("it is not there")
    ));
    let opened = world.store.open(&digest).err();
    assert!(opened.as_ref().is_some_and(missing));
}

/// Every read is checked.
pub fn what_is_something_else_is_damaged(world: &World) {
    let bytes = b"what somebody needs back".repeat(9);
    world.arm_with(1, &[node("/a")], &[&bytes]);
    let digest = Digest::of(&bytes);
    world.kit.hurt(digest);
    let read = world.again().read(&digest);
    assert!(
        matches!(read, Err(ContentsError::Damaged { digest: it, .. }) if it == digest),
        "{read:?}"
    );
}

/// So that nobody has to hold it.
pub fn a_large_content_is_read_piece_by_piece(world: &World) {
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 251) as u8).collect();
    let (digest, size) = world.store.stash(id(1), &mut &*bytes).expect("kept");
    assert_eq!((digest, size), (Digest::of(&bytes), bytes.len() as u64));
    let mut opened = world.again().open(&digest).expect("opened");
    let mut first = [0; 1000];
    opened.read_exact(&mut first).expect("read");
    assert_eq!(first[..], bytes[..1000]);
    let mut rest = Vec::new();
    opened.read_to_end(&mut rest).expect("read");
    assert_eq!(rest, bytes[1000..]);
}

/// Whole, or as a change itself.
pub fn a_change_is_read_through_what_it_is_made_from(world: &World) {
    let versions: Vec<_> = ["one", "two", "three"].map(version).into_iter().collect();
    let [one, two, three] = &versions[..] else {
        return;
    };
    let whole = || NewContent::of(two.clone());
    world.arm_keeping(1, &[node("/a")], vec![over(one, two), whole()]);
    let last = NewContent::of(three.clone());
    world.arm_keeping(2, &[node("/a")], vec![over(two, three), last]);
    for bytes in &versions {
        let digest = Digest::of(bytes);
        assert_eq!(&world.again().read(&digest).expect("read"), bytes);
        assert_eq!(world.store.outside(&digest).expect("asked"), []);
    }
    let [one, two] = [Digest::of(one), Digest::of(two)];
    let may = |newer| world.store.may_be_over(&two, &newer, 9).expect("asked");
    assert!(may(Digest::of(b"new")) && !may(one), "no circle");
}

/// And is made of what is at hand, if that is right.
pub fn what_is_made_from_something_outside_says_so(world: &World) {
    let [one, two, three] = ["one", "two", "three"].map(version);
    world.arm_keeping(1, &[node("/a")], vec![over(&one, &two)]);
    world.arm_keeping(2, &[node("/a")], vec![over(&two, &three)]);
    let digest = Digest::of(&one);
    assert!(world.store.has(&digest).expect("asked"));
    let read = world.store.read(&digest);
    assert!(
        matches!(read, Err(ContentsError::Outside { .. })),
        "{read:?}"
    );
    let any = world.store.outside(&digest).expect("asked");
    assert_eq!(any, [&one, &two, &three].map(|bytes| Digest::of(bytes)));
    assert_eq!(read_over(world, &one, &three), Some(one.clone()));
    assert_eq!(read_over(world, &one, &two), Some(one.clone()));
    let from = Box::new(std::io::Cursor::new(vec![b'x'; 9000]));
    let (store, base) = (world.again(), Digest::of(&three));
    let mut wrong = store.open_over(&digest, &base, from).expect("opened");
    assert!(wrong.read_to_end(&mut Vec::new()).is_err(), "it is checked");
    let report = super::verify::check(world);
    assert_eq!(report.findings, []);
    assert_eq!(report.outside.len(), 2);
    // A file that went there and back: either is told by the other.
    world.arm_keeping(3, &[node("/a")], vec![over(&three, &one)]);
    assert_eq!(read_over(world, &three, &one), Some(three.clone()));
    assert_eq!(read_over(world, &one, &three), Some(one.clone()));
    // What comes whole is whole from then on.
    world.arm_with(4, &[node("/b")], &[&three]);
    assert_eq!(world.again().read(&digest).expect("read"), one);
    world.arm_keeping(5, &[node("/a")], vec![over(&three, &version("four"))]);
    assert_eq!(world.again().read(&digest).expect("read"), one);
}

/// Whoever stored it.
pub fn what_a_change_is_made_from_stays_as_long_as_the_change(world: &World) {
    let [one, two] = ["one", "two"].map(version);
    world.arm_keeping(1, &[node("/a")], vec![over(&one, &two)]);
    // The first is in nobody's way and never finished, so it stays; the second goes.
    let second = world.arm_with(2, &[node("/b")], &[&two]);
    world.finish(second);
    world.clock.pass(40 * 24 * 60 * 60 * 1000);
    let report = world.gc(&Retention::standard(), false);
    assert_eq!(report.expired.len(), 1, "{report:?}");
    assert_eq!(world.again().read(&Digest::of(&one)).expect("read"), one);
}
