//! The port of commands, as the recorder of this crate is it.
//!
//! What a command did becomes a recipe of the file driver, so nothing here takes anything back.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use backout_capture::live::{Answer, Touch};
use backout_files::{
    Ask, Claim, CommandLog, Commands, Database, Forbids, Limits, Looked, Part, Past, Reading,
    Settled, Share, Since,
};
use backout_model::ports::{DriverError, Fault};
use backout_model::{Armed, JsonText, OperationId, Target, TargetPath};

use super::looked;
use super::recorder::{Recorder, RecorderError};
use super::scan::scan;
use super::settle::{settle, settle_log};
use crate::file::{FileDriver, FileError};
use crate::sqlite::{SqliteDriver, SqliteFilesDriver, with_beside};

/// Records what commands do to files.
#[derive(Debug, Clone)]
pub struct CommandDriver {
    files: Arc<FileDriver>,
    /// Tells what commands did to databases in rows.
    databases: Arc<SqliteFilesDriver>,
}

impl CommandDriver {
    /// Takes the driver whose recipes tell what a command did.
    pub fn new(files: Arc<FileDriver>) -> Self {
        let rows = SqliteDriver::new(Arc::clone(&files));
        let databases = Arc::new(SqliteFilesDriver::new(rows));
        Self { files, databases }
    }
}

impl Fault for RecorderError {}

impl Commands for CommandDriver {
    fn record(
        &self,
        armed: Armed<CommandLog>,
        limits: Limits,
    ) -> Result<Box<dyn backout_files::Recorder>, DriverError> {
        let (id, _, CommandLog(log)) = armed.into_parts();
        match Recorder::new(id, &log, Arc::clone(&self.files), limits) {
            Ok(recorder) => Ok(Box::new(recorder)),
            Err(error) => Err(DriverError::new(error)),
        }
    }

    fn settle_log(
        &self,
        id: OperationId,
        log: &Path,
        is_recorded: &dyn Fn(OperationId) -> bool,
        reading: Reading,
    ) -> Result<Settled, DriverError> {
        Ok(settle_log(
            self.files.context(),
            id,
            log,
            is_recorded,
            reading,
        )?)
    }

    fn names(&self, given: &Path) -> Result<Vec<TargetPath>, DriverError> {
        Ok(looked::names(self.files.context(), given)?)
    }

    fn look(&self, id: OperationId, paths: &[TargetPath]) -> Result<Looked, DriverError> {
        Ok(looked::look(self.files.context(), id, paths)?)
    }

    fn settle_looked(&self, id: OperationId, found: &JsonText) -> Result<Settled, DriverError> {
        Ok(looked::settle_looked(self.files.context(), id, found)?)
    }

    fn believe(&self, names: &[Past]) -> Result<JsonText, DriverError> {
        Ok(looked::believe(self.files.context(), names)?)
    }

    fn names_looked_at(&self, found: &JsonText) -> Result<Vec<TargetPath>, DriverError> {
        Ok(looked::names_in(found)?)
    }

    fn found_since(&self, found: &JsonText, since: &[Since]) -> Result<JsonText, DriverError> {
        Ok(looked::brought_up(self.files.context(), found, since)?)
    }

    fn in_rows(
        &self,
        id: OperationId,
        main: &Path,
        settled: &Settled,
    ) -> Result<Option<Settled>, DriverError> {
        self.databases.in_rows(id, main, settled)
    }
}

impl backout_files::Recorder for Recorder {
    fn ask(&mut self, ask: Ask) {
        self.ask = Some(ask);
    }

    fn forbid_by(&mut self, forbids: Forbids) {
        self.forbids = Some(forbids);
    }

    fn forbid(&mut self, dir: &Path) {
        self.forbid(dir);
    }

    fn forbid_link(&mut self, link: &Path) {
        self.forbid_link(link);
    }

    fn opened_before(&mut self, path: &Path) {
        self.opened_before(path);
    }

    fn scan(&mut self, roots: &[TargetPath], index: &Path) -> Result<u64, DriverError> {
        let scanned = scan(self.files.context(), self.id, roots, index)?;
        self.split.extend(scanned.linked);
        let noted = self.scanned(scanned.notes);
        noted.map_err(|source| FileError::Io {
            path: index.display().to_string(),
            action: "write the capture log beside",
            source,
        })?;
        Ok(scanned.read)
    }

    fn prepare(&mut self, touch: &mut Touch) -> Option<Answer> {
        self.prepare(touch)
    }

    fn proceed(&mut self, touch: &mut Touch) -> Answer {
        self.proceed(touch)
    }

    fn split(&self) -> &BTreeSet<TargetPath> {
        self.split()
    }

    fn taken_from_others(&mut self, touch: &Touch) -> Option<Target> {
        self.taken_from_others(touch)
    }

    fn beat(&self) {
        self.beat();
    }

    fn keep_notes(&mut self) {
        self.keep_notes();
    }

    fn notes(&self) -> Vec<String> {
        self.notes()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync()
    }

    fn hear_of_neighbours(&mut self, logs: &Path) {
        self.hear_of_neighbours(logs);
    }

    fn has_new_neighbours(&mut self) -> bool {
        self.has_new_neighbours()
    }

    fn claim(&self, touch: &Touch) -> Claim {
        self.claim(touch)
    }

    fn touched_number(&self, number: (u64, u64)) -> Option<TargetPath> {
        self.touched_number(number)
    }

    fn has_part_left(&self) -> bool {
        self.has_part_left()
    }

    fn count_part(&mut self) {
        self.count_part();
    }

    fn shares(&mut self, targets: &[Target]) {
        self.shares(targets);
    }

    fn spares(&mut self, targets: &[Target]) {
        self.spares(targets);
    }

    fn share(&self, targets: &[Target]) -> Share {
        self.share(targets)
    }

    fn settle_part(
        &mut self,
        id: OperationId,
        part: Part,
        open: &[PathBuf],
    ) -> Result<Settled, DriverError> {
        let unwritten = |source| FileError::Io {
            path: "the capture log".to_owned(),
            action: "write",
            source,
        };
        let mut part = self.cut(id, part).map_err(unwritten)?;
        self.go_on_writing(&mut part, open);
        Ok(settle(self.files.context(), id, part)?)
    }

    fn uncut(&mut self, id: OperationId) {
        self.uncut(id);
    }

    fn ends_where_begins(&mut self, next: &dyn backout_files::Recorder) {
        let next: &dyn std::any::Any = next;
        if let Some(next) = next.downcast_ref() {
            self.ends_where_begins(next);
        }
    }

    fn databases(&self) -> Vec<Database> {
        let database = |main: PathBuf| Database {
            files: with_beside(&main),
            main,
        };
        self.databases().into_iter().map(database).collect()
    }

    fn leave_out(&mut self, paths: &[PathBuf]) {
        self.leave_out(paths);
    }

    fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        self.through()
    }

    fn settle(mut self: Box<Self>) -> Result<Settled, DriverError> {
        // What is seen is known, also when the log has no room for it.
        let _noted = self.look_around();
        let (files, lasting) = (Arc::clone(&self.files), std::mem::take(&mut self.lasting));
        let settled = settle(files.context(), self.id, self.into_ledger())?;
        Ok(Settled { lasting, ..settled })
    }
}
