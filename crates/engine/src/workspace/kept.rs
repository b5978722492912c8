//! The files and trees of all checkpoints: a store of its own, behind the port that a walk wants.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use backout_files::Objects;
use backout_model::ports::{
    Clock, ContentsError, NewContent, ReadContents as _, WriteContents as _,
};
use backout_model::{Digest, OperationId};
use backout_storage::Store;

use crate::EngineError;

/// Who refers to all of them.
const WORKSPACES: OperationId = OperationId::from_bits(1);

/// Up to this size a file is one row; a larger one is chunks.
const WHOLE_BYTES_MAX: u64 = 512 * 1024;

/// So many bytes, and so many contents, wait to be stored together.
const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
const WAITING_MAX: usize = 4096;

/// The open store.
pub(super) struct Kept {
    pub(super) store: Store,
    waiting: HashMap<Digest, Vec<u8>>,
    waiting_bytes: usize,
}

impl Kept {
    pub(super) fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, EngineError> {
        Ok(Self {
            store: Store::open(path, clock)?,
            waiting: HashMap::new(),
            waiting_bytes: 0,
        })
    }

    /// Tells how much it holds.
    pub(super) fn bytes(&self) -> Result<u64, EngineError> {
        Ok(self.store.stored_bytes()?.total)
    }

    /// Reads a content to its end: whether it is what its digest says.
    pub(super) fn is_sound(&self, digest: &Digest) -> bool {
        let read = |mut from: Box<dyn std::io::Read + Send>| {
            std::io::copy(&mut from, &mut std::io::sink())
        };
        self.store.open(digest).is_ok_and(|from| read(from).is_ok())
    }

    /// Makes all of it durable.
    pub(super) fn settle(&mut self) -> Result<(), EngineError> {
        self.flush()?;
        Ok(self.store.settle(WORKSPACES)?)
    }

    /// Lets go of what is not needed. What nobody refers to is removed by its next collection.
    pub(super) fn let_go_of_others(&self, needed: &BTreeSet<Digest>) -> Result<u64, EngineError> {
        self.store.settle(WORKSPACES)?;
        Ok(self.store.let_go_of(WORKSPACES, needed)?)
    }

    fn flush(&mut self) -> Result<(), EngineError> {
        let contents: Vec<NewContent> = self
            .waiting
            .drain()
            .map(|(digest, bytes)| NewContent {
                digest,
                bytes,
                over: None,
            })
            .collect();
        self.waiting_bytes = 0;
        Ok(self.store.stash_many(WORKSPACES, &contents)?)
    }

    fn wait(&mut self, bytes: Vec<u8>) -> Result<Digest, ContentsError> {
        let digest = Digest::of(&bytes);
        self.waiting_bytes += bytes.len();
        self.waiting.insert(digest, bytes);
        if self.waiting_bytes > WAITING_BYTES_MAX || self.waiting.len() > WAITING_MAX {
            self.flush()
                .map_err(|error| ContentsError::Store(Box::new(error)))?;
        }
        Ok(digest)
    }
}

impl Objects for Kept {
    fn put_file(&mut self, file: &mut File) -> Result<(Digest, u64), ContentsError> {
        let failed = |error: std::io::Error| ContentsError::Store(Box::new(error));
        let size = file.metadata().map_err(failed)?.len();
        if size > WHOLE_BYTES_MAX {
            return self.store.stash(WORKSPACES, file);
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let size = bytes.len() as u64;
        Ok((self.wait(bytes)?, size))
    }

    fn put_tree(&mut self, bytes: Vec<u8>) -> Result<Digest, ContentsError> {
        self.wait(bytes)
    }

    fn tree(&self, digest: &Digest) -> Result<Vec<u8>, ContentsError> {
        match self.waiting.get(digest) {
            Some(bytes) => Ok(bytes.clone()),
            None => self.store.read(digest),
        }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, ContentsError> {
        self.store.open(digest)
    }
}
