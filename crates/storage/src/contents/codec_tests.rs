//! Round trips of every form, and what garbage, wrong bases and wrong sizes come to.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Text as programs have it: few words, many lines.
fn text() -> impl Strategy<Value = Vec<u8>> {
    vec("[a-z]{1,6}( = [0-9]{1,4};)?", 0..400).prop_map(|lines| lines.join("\n").into_bytes())
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        text(),
        vec(any::<u8>(), 0..20_000),
        vec(Just(0_u8), 0..100_000)
    ]
}

/// An older version: some bytes elsewhere, some gone.
fn older(newer: &[u8], cuts: &[(prop::sample::Index, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = newer.to_vec();
    for (at, put) in cuts {
        let at = if bytes.is_empty() {
            0
        } else {
            at.index(bytes.len())
        };
        let end = (at + put.len() / 2).min(bytes.len());
        bytes.splice(at..end, put.iter().copied());
    }
    bytes
}

proptest! {
    #[test]
    fn a_whole_content_comes_back(bytes in content(), effort in 0..3) {
        let effort = [Effort::Quick, Effort::Normal, Effort::Best][usize::try_from(effort).unwrap()];
        let encoded = encode(&bytes, effort);
        prop_assert!(encoded.bytes.len() <= bytes.len());
        let size = bytes.len() as u64;
        let back = decode(encoded.form, &encoded.bytes, size, &Digest::of(&bytes));
        prop_assert_eq!(back, Ok(bytes));
    }

    #[test]
    fn an_older_version_comes_back_from_a_newer_one(
        newer in content(),
        cuts in vec((any::<prop::sample::Index>(), vec(any::<u8>(), 0..40)), 0..8),
    ) {
        let old = older(&newer, &cuts);
        let (size, digest) = (old.len() as u64, Digest::of(&old));
        let delta = encode_delta(&old, &newer).unwrap();
        prop_assert_eq!(decode_delta(&delta, &newer, size, &digest), Ok(old));
    }

    #[test]
    fn a_wrong_base_never_gives_wrong_bytes(
        newer in text(), other in content(), cut in (any::<prop::sample::Index>(), vec(any::<u8>(), 0..9)),
    ) {
        let old = older(&newer, &[cut]);
        let delta = encode_delta(&old, &newer).unwrap();
        if let Ok(bytes) = decode_delta(&delta, &other, old.len() as u64, &Digest::of(&old)) {
            prop_assert_eq!(bytes, old);
        }
    }

    #[test]
    fn garbage_is_an_error_and_never_a_panic(
        stored in vec(any::<u8>(), 0..300), base in vec(any::<u8>(), 0..300), size in any::<u64>(),
    ) {
        let digest = Digest::of(b"something else");
        prop_assert!(decode(Form::Raw, &stored, size, &digest).is_err());
        prop_assert!(decode(Form::Zstd, &stored, size, &digest).is_err());
        prop_assert!(decode(Form::Chunks, &stored, size, &digest).is_err());
        prop_assert!(decode_delta(&stored, &base, size % 100_000, &digest).is_err());
    }

    #[test]
    fn a_flipped_bit_never_gives_wrong_bytes(
        newer in text(), at in any::<prop::sample::Index>(), bit in 0..8_u32,
    ) {
        let old = [newer.as_slice(), b"\nthe last line of the older version"].concat();
        let (size, digest) = (old.len() as u64, Digest::of(&old));
        let mut delta = encode_delta(&old, &newer).unwrap();
        let mut whole = encode(&old, Effort::Normal);
        for bytes in [&mut delta, &mut whole.bytes] {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
        }
        // A flip in a place that zstd does not look at changes nothing; any other is found.
        let read = [
            decode_delta(&delta, &newer, size, &digest),
            decode(whole.form, &whole.bytes, size, &digest),
        ];
        for bytes in read.into_iter().flatten() {
            prop_assert_eq!(&bytes, &old);
        }
    }
}

#[test]
fn another_content_under_the_same_name_is_refused() {
    let encoded = encode(b"what was asked for", Effort::Normal);
    let read = decode(
        encoded.form,
        &encoded.bytes,
        18,
        &Digest::of(b"something else"),
    );
    assert_eq!(read, Err(Flaw::Digest));
}

#[test]
fn a_wrong_size_is_refused_before_anything_grows() {
    let zeros = vec![0; 1 << 20];
    let encoded = encode(&zeros, Effort::Normal);
    let digest = Digest::of(&zeros);
    let read = |size| decode(encoded.form, &encoded.bytes, size, &digest);
    assert!(matches!(read(1 << 19), Err(Flaw::Frame { .. })));
    assert_eq!(
        read(1 << 21),
        Err(Flaw::Length {
            expected: 1 << 21,
            found: 1 << 20
        })
    );
    assert_eq!(read(u64::MAX), Err(Flaw::Size { size: u64::MAX }));
    assert!(read(1 << 20).is_ok());
}

#[test]
fn a_large_binary_is_a_small_delta() {
    // Long-distance matching: without it the older half of such a file is stored again.
    let newer = noise(24 << 20);
    let mut old = newer.clone();
    old[9 << 20..(9 << 20) + 100].fill(7);
    old.splice(1000..1000, *b"inserted");
    let delta = encode_delta(&old, &newer).unwrap();
    assert!(delta.len() < 60_000, "{} bytes", delta.len());
    let (size, digest) = (old.len() as u64, Digest::of(&old));
    assert!(decode_delta(&delta, &newer, size, &digest).is_ok_and(|bytes| bytes == old));
}

#[test]
fn a_delta_is_readable_for_the_zstd_library_as_a_plain_patch() {
    let newer = b"one\ntwo\nthree\n".repeat(40);
    let old = [newer.as_slice(), b"four\n"].concat();
    let delta = encode_delta(&old, &newer).unwrap();
    let frame = [[0x28, 0xb5, 0x2f, 0xfd].as_slice(), &delta].concat();
    let mut plain = zstd::Decoder::with_ref_prefix(frame.as_slice(), &newer).unwrap();
    let mut back = Vec::new();
    std::io::Read::read_to_end(&mut plain, &mut back).unwrap();
    assert_eq!(back, old);
}

fn noise(size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    blake3::Hasher::new()
        .update(b"noise")
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}
