//! Removing chunks that no content needs, and packs that hold none, or too few.
//!
//! Chunks and files go only while no process reads or writes packs (the lock on `contents/`, taken alone): one
//! that stores a content may just have found one of these chunks. Rows go first, durably, and then files, so
//! that no row ever points to a file that is gone.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::PathBuf;

use backout_crashpoint::crash_point;
use backout_model::Digest;
use backout_model::ports::Durability;
use rusqlite::{Transaction, params};

use crate::contents::codec::Form;
use crate::contents::pack::{
    self, ChunkAt, FRAME_BYTES, HEADER_BYTES, NewPack, decode_list, path_of, read_frame,
};
use crate::contents::rows::to_digest;
use crate::contents::{Kept, add_stored};
use crate::state_dir::CONTENTS;
use crate::{GcReport, LeftBehind, StorageError, Store};

/// So many chunks are removed in one transaction.
const REMOVED_AT_ONCE_MAX: usize = 1000;

impl Store {
    /// Removes dead chunks and packs, and writes packs anew of which less than `live_percent_min` is needed.
    pub(super) fn sweep_packs(
        &self,
        live_percent_min: u64,
        report: &mut GcReport,
    ) -> Result<(), StorageError> {
        if self.is_without_packs()? {
            return Ok(());
        }
        let Some(alone) = pack::lock_alone(self)? else {
            report.is_busy = true;
            return Ok(());
        };
        self.sweep_chunks(report)?;
        self.sweep_files(report)?;
        drop(alone);
        let sparse = self.read(|transaction| self.sparse_packs(transaction, live_percent_min))?;
        if sparse.is_empty() {
            return Ok(());
        }
        for id in sparse {
            self.repack(id, report)?;
        }
        // The old files are leftovers now.
        let Some(_alone) = pack::lock_alone(self)? else {
            report.is_busy = true;
            return Ok(());
        };
        self.sweep_files(report)
    }

    /// Most stores have no pack at all: then there is nothing to lock.
    fn is_without_packs(&self) -> Result<bool, StorageError> {
        let rows: i64 = self.read(|transaction| {
            transaction
                .query_row("SELECT count(*) FROM pack", [], |row| row.get(0))
                .map_err(|error| self.named(error))
        })?;
        Ok(rows == 0 && self.pack_files()?.is_empty())
    }

    /// Removes the rows of chunks that no content needs and of packs without chunks. What is dead stays dead,
    /// since nobody can store a content by chunks meanwhile.
    fn sweep_chunks(&self, report: &mut GcReport) -> Result<(), StorageError> {
        let dead = self.read(|transaction| self.dead_chunks(transaction))?;
        for chunks in dead.chunks(REMOVED_AT_ONCE_MAX) {
            self.write(Durability::Process, |transaction| {
                let mut remove = transaction
                    .prepare_cached("DELETE FROM chunk WHERE digest = ?1")
                    .map_err(|error| self.named(error))?;
                for chunk in chunks {
                    remove
                        .execute([chunk.as_bytes().as_slice()])
                        .map_err(|error| self.named(error))?;
                }
                Ok(())
            })?;
            report.chunks += chunks.len() as u64;
        }
        crash_point("gc.chunks-removed");
        // Durable before the first file goes.
        self.write(Durability::Power, |transaction| {
            let named = |error| self.named(error);
            let empty =
                "FROM pack WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.pack = pack.id)";
            let bytes: i64 = transaction
                .query_row(
                    &format!("SELECT coalesce(sum(bytes), 0) {empty}"),
                    [],
                    |row| row.get(0),
                )
                .map_err(named)?;
            transaction
                .execute(&format!("DELETE {empty}"), [])
                .map_err(named)?;
            add_stored(self, transaction, Kept::Packs, -bytes)
        })?;
        crash_point("gc.packs-forgotten");
        Ok(())
    }

    /// Removes the files that no row knows. Under the lock nobody is writing one.
    fn sweep_files(&self, report: &mut GcReport) -> Result<(), StorageError> {
        let files = self.pack_files()?;
        let known: HashSet<i64> = self.read(|transaction| {
            let named = |error| self.named(error);
            let mut statement = transaction.prepare("SELECT id FROM pack").map_err(named)?;
            let rows = statement.query_map([], |row| row.get(0)).map_err(named)?;
            rows.map(|id| id.map_err(named)).collect()
        })?;
        for (id, path) in files {
            if known.contains(&id) {
                continue;
            }
            match fs::remove_file(&path) {
                Ok(()) => report.packs += 1,
                Err(error) => report.left.push(LeftBehind {
                    path,
                    why: error.to_string(),
                }),
            }
            crash_point("gc.pack-removed");
        }
        Ok(())
    }

    /// Lists the packs that are there, oldest first.
    pub(crate) fn pack_files(&self) -> Result<Vec<(i64, PathBuf)>, StorageError> {
        let directory = self.directory.path().join(CONTENTS);
        let failed = |source| pack::failed(&directory, "list", source);
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let id = name
                .to_str()
                .and_then(|name| name.strip_suffix(".pack")?.parse().ok());
            files.extend(id.map(|id| (id, entry.path())));
        }
        files.sort();
        Ok(files)
    }

    fn dead_chunks(&self, transaction: &Transaction<'_>) -> Result<Vec<Digest>, StorageError> {
        let named = |error| self.named(error);
        let mut live = HashSet::new();
        let mut lists = transaction
            .prepare("SELECT bytes, size, digest FROM content WHERE form = ?1")
            .map_err(named)?;
        let mut rows = lists.query([Form::Chunks.to_sql()]).map_err(named)?;
        while let Some(row) = rows.next().map_err(named)? {
            let list: Vec<u8> = row.get(0).map_err(named)?;
            let size: i64 = row.get(1).map_err(named)?;
            // Which chunks a damaged list needs nobody knows, so then none may go.
            let Ok(chunks) = decode_list(&list, u64::try_from(size).unwrap_or(0)) else {
                return Ok(Vec::new());
            };
            live.extend(chunks);
        }
        let mut statement = transaction
            .prepare("SELECT digest FROM chunk")
            .map_err(named)?;
        let rows = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .map_err(named)?;
        let mut dead = Vec::new();
        for row in rows {
            let digest = to_digest(&row.map_err(named)?)?;
            if !live.contains(&digest) {
                dead.push(digest);
            }
        }
        Ok(dead)
    }

    fn sparse_packs(
        &self,
        transaction: &Transaction<'_>,
        live_percent_min: u64,
    ) -> Result<Vec<i64>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare(
                "SELECT pack.id FROM pack JOIN chunk ON chunk.pack = pack.id
                 GROUP BY pack.id
                 HAVING 100 * (?1 + sum(chunk.stored + ?2)) < ?3 * pack.bytes",
            )
            .map_err(named)?;
        let sizes = [HEADER_BYTES, FRAME_BYTES, live_percent_min].map(u64::cast_signed);
        let rows = statement
            .query_map(sizes, |row| row.get(0))
            .map_err(named)?;
        rows.map(|id| id.map_err(named)).collect()
    }

    /// Copies the living chunks of a pack into a new one. A pack with a damaged chunk is left as it is: what can
    /// be saved of it should not be lost by tidying.
    fn repack(&self, id: i64, report: &mut GcReport) -> Result<(), StorageError> {
        let _lock = pack::share(self)?;
        let places = self.read(|transaction| self.places_in(transaction, id))?;
        let path = path_of(self, id);
        let old = File::open(&path).map_err(|source| pack::failed(&path, "open", source))?;
        let mut new = NewPack::create(self)?;
        let mut moved = Vec::with_capacity(places.len());
        for place in &places {
            let Ok((encoded, bytes)) = read_frame(&old, place) else {
                let why = format!("its chunk {} is damaged", place.digest);
                report.left.push(LeftBehind { path, why });
                return Ok(());
            };
            moved.push(new.append(&place.digest, bytes.len(), &encoded)?);
        }
        new.seal()?;
        let recorded = self.write(Durability::Power, |transaction| {
            self.move_chunks(transaction, id, &new, &moved)
        });
        crash_point("gc.repacked");
        new.keep_or_drop(recorded)?;
        report.repacked += 1;
        Ok(())
    }

    fn places_in(
        &self,
        transaction: &Transaction<'_>,
        id: i64,
    ) -> Result<Vec<ChunkAt>, StorageError> {
        let named = |error| self.named(error);
        let mut statement = transaction
            .prepare(
                "SELECT digest, offset, stored, size FROM chunk WHERE pack = ?1 ORDER BY offset",
            )
            .map_err(named)?;
        let rows = statement
            .query_map([id], |row| {
                Ok((
                    row.get::<_, Vec<u8>>(0)?,
                    [row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?],
                ))
            })
            .map_err(named)?;
        rows.map(|row| {
            let (digest, [offset, stored, size]) = row.map_err(named)?;
            // An impossible number becomes one that no frame has, so that reading it fails.
            let small = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
            let offset = u64::try_from(offset).unwrap_or(u64::MAX);
            let (stored, size) = (small(stored), small(size));
            Ok(ChunkAt {
                digest: to_digest(&digest)?,
                pack: id,
                offset,
                stored,
                size,
            })
        })
        .collect()
    }

    fn move_chunks(
        &self,
        transaction: &Transaction<'_>,
        from: i64,
        to: &NewPack,
        moved: &[ChunkAt],
    ) -> Result<(), StorageError> {
        let named = |error| self.named(error);
        // Somebody may have stored a chunk anew meanwhile: that one stays where it is.
        let mut update = transaction
            .prepare_cached(
                "UPDATE chunk SET pack = ?3, offset = ?4 WHERE digest = ?1 AND pack = ?2",
            )
            .map_err(named)?;
        for place in moved {
            let digest = place.digest.as_bytes().as_slice();
            update
                .execute(params![digest, from, to.id, place.offset.cast_signed()])
                .map_err(named)?;
        }
        let old: i64 = transaction
            .query_row("SELECT bytes FROM pack WHERE id = ?1", [from], |row| {
                row.get(0)
            })
            .map_err(named)?;
        let new = to.length.cast_signed();
        transaction
            .execute("DELETE FROM pack WHERE id = ?1", [from])
            .map_err(named)?;
        transaction
            .execute(
                "INSERT INTO pack (id, bytes) VALUES (?1, ?2)",
                params![to.id, new],
            )
            .map_err(named)?;
        add_stored(self, transaction, Kept::Packs, new - old)
    }
}
