//! Images, by their digest.

use std::io::Read as _;

use backout_model::Digest;
use backout_model::ports::ContentsError;

use super::{World, id, node};

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
