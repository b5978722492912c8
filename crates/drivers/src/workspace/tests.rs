//! The index of a walk, and what is told of two states.

use std::collections::HashMap;
use std::fs;
use std::io::Read;

use backout_files::{NextIndex as _, Objects};
use backout_model::ports::ContentsError;
use backout_model::{Digest, TargetPath};

use super::index::{Known, Last, Next};
use super::objects::needed;
use crate::file::recipe::Kind;

fn known(name: &str, kind: Kind) -> Known {
    Known {
        name: name.into(),
        kind,
        ino: 7,
        size: 8,
        mtime: -9,
        ctime: 10,
        is_trusted: true,
        is_entered: kind == Kind::Directory,
    }
}

#[test]
fn an_index_is_read_as_it_was_written_and_a_hurt_one_is_none() {
    let world = tempfile::tempdir().unwrap();
    let path = world.path().join("index");
    let top = [known("a", Kind::Directory), known("f", Kind::File)];
    let inner = [known("g", Kind::Symlink)];
    let mut next = Next::begin(&path).unwrap();
    let (one, two) = (next.record(&top).unwrap(), next.record(&inner).unwrap());
    next.tree(one, Digest::of(b"one"));
    next.tree(two, Digest::of(b"two"));
    Box::new(next).finish().unwrap();
    let mut last = Last::open(&path).unwrap();
    assert_eq!(last.record().unwrap(), (Digest::of(b"one"), top.to_vec()));
    assert_eq!(last.record().unwrap(), (Digest::of(b"two"), inner.to_vec()));
    assert!(last.record().is_err());
    let mut last = Last::open(&path).unwrap();
    last.skip().unwrap();
    assert!(last.record().is_err(), "what is below goes with it");
    let whole = fs::read(&path).unwrap();
    for at in [0, 20, whole.len() - 1] {
        let mut hurt = whole.clone();
        hurt[at] ^= 1;
        fs::write(&path, &hurt).unwrap();
        assert!(Last::open(&path).is_none(), "byte {at}");
    }
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    assert!(Last::open(&path).is_none());
}

/// Contents in memory.
#[derive(Default)]
struct Memory(HashMap<Digest, Vec<u8>>);

impl Objects for Memory {
    fn put_file(&mut self, _file: &mut fs::File) -> Result<(Digest, u64), ContentsError> {
        unreachable!("no file is put here")
    }

    fn put_tree(&mut self, bytes: Vec<u8>) -> Result<Digest, ContentsError> {
        let digest = Digest::of(&bytes);
        self.0.insert(digest, bytes);
        Ok(digest)
    }

    fn tree(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        let found = self.0.get(digest).cloned();
        found.ok_or(ContentsError::Missing { digest: *digest })
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        Ok(Box::new(std::io::Cursor::new(self.tree(digest)?)))
    }
}

#[test]
fn a_tree_that_is_not_there_is_an_error_and_not_an_empty_directory() {
    let mut all = std::collections::BTreeSet::new();
    let lost = needed(&Memory::default(), &Digest::of(b"lost"), &mut all);
    assert!(lost.is_err());
    let mut memory = Memory::default();
    let odd = memory.put_tree(b"[{]".to_vec()).unwrap();
    let root = TargetPath::new("/r").unwrap();
    let told = super::differ::Differ::new(&memory, false).compare(&root, &odd, None);
    assert!(told.is_err());
}
