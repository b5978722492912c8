//! Reverse changes, by property and by example.

use std::collections::HashMap;
use std::io::Read as _;

use proptest::prelude::*;

use super::*;

fn read(pieces: Pieces, newer: &[u8], digest: Digest) -> io::Result<Vec<u8>> {
    let mut older = Vec::new();
    pieces.reader(newer, digest).read_to_end(&mut older)?;
    Ok(older)
}

fn pieces(older: &[u8], newer: &[u8]) -> Pieces {
    let found = Pieces::between(older, newer, u64::MAX).expect("memory is read");
    found.expect("nothing is too much")
}

/// Two versions that have something in common: parts are taken out, put in or changed.
fn versions() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let base = prop::collection::vec(any::<u8>(), 0..2000);
    let edits = prop::collection::vec(
        (
            any::<u16>(),
            0..40_usize,
            prop::collection::vec(any::<u8>(), 0..40),
        ),
        0..5,
    );
    (base, edits).prop_map(|(older, edits)| {
        let mut newer = older.clone();
        for (at, gone, new) in edits {
            let at = usize::from(at) % (newer.len() + 1);
            let end = (at + gone).min(newer.len());
            newer.splice(at..end, new);
        }
        (older, newer)
    })
}

proptest! {
    #[test]
    fn the_older_version_comes_back_to_the_bit((older, newer) in versions()) {
        let found = pieces(&older, &newer);
        prop_assert_eq!(found.size(), older.len() as u64);
        let digest = Digest::of(&older);
        prop_assert_eq!(&read(found.clone(), &newer, digest).expect("it fits"), &older);
        let decoded = Pieces::decode(&found.encode(), older.len() as u64).expect("it was encoded");
        prop_assert_eq!(decoded, found);
    }

    #[test]
    fn a_change_of_a_change_is_a_change((first, second) in versions(), (_, third) in versions()) {
        let through = pieces(&first, &second).over(&pieces(&second, &third)).expect("they fit");
        prop_assert_eq!(read(through, &third, Digest::of(&first)).expect("it fits"), first);
    }

    #[test]
    fn what_it_is_made_from_must_be_what_it_was((older, newer) in versions(), at in any::<prop::sample::Index>()) {
        let found = pieces(&older, &newer);
        let mut other = newer;
        if other.is_empty() { return Ok(()); }
        let at = at.index(other.len());
        other[at] ^= 1;
        match read(found, &other, Digest::of(&older)) {
            Ok(back) => prop_assert_eq!(back, older, "a byte that no piece is of"),
            Err(error) => prop_assert_eq!(error.kind(), io::ErrorKind::InvalidData),
        }
    }

    #[test]
    fn garbage_is_an_error_or_pieces_of_the_right_size(bytes in prop::collection::vec(any::<u8>(), 0..64), size in 0..1000_u64) {
        if let Ok(pieces) = Pieces::decode(&bytes, size) {
            prop_assert_eq!(pieces.size(), size);
        }
    }
}

#[test]
fn a_large_file_that_changed_at_two_places_is_a_few_bytes() {
    let older: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut newer = older.clone();
    newer[70_000] ^= 0xff;
    newer[3_000_000] ^= 0xff;
    let found = pieces(&older, &newer);
    assert_eq!(found.own_bytes(), 2);
    assert!(found.encode().len() < 40, "{found:?}");
    assert!(
        Pieces::between(&*older, &*newer, 1)
            .expect("read")
            .is_none()
    );
}

#[test]
fn of_two_that_are_told_by_each_other_one_must_be_at_hand() {
    let (one, other) = (b"one line\nmore\n".to_vec(), b"other line\nmore\n".to_vec());
    let names = (Digest::of(&one), Digest::of(&other));
    let forms = HashMap::from([
        (names.0, (names.1, pieces(&one, &other))),
        (names.1, (names.0, pieces(&other, &one))),
    ]);
    let made = |digest: &Digest, outside: Option<&Digest>| {
        let form = |at: &Digest| {
            let form = forms.get(at).cloned();
            Ok::<_, ()>(form.map_or(Form::Absent, |(base, pieces)| Form::Over(base, pieces)))
        };
        follow(digest, outside, form)
            .expect("no store fails")
            .expect("they fit")
    };
    assert_eq!(made(&names.0, None), Made::Outside(vec![names.1]));
    let Made::Of {
        pieces,
        base,
        is_outside,
    } = made(&names.0, Some(&names.1))
    else {
        panic!("it is made of the other");
    };
    assert_eq!((base, is_outside), (names.1, true));
    assert_eq!(read(pieces, &other, names.0).expect("it fits"), one);
    assert_eq!(made(&Digest::of(b"x"), None), Made::Missing);
}
