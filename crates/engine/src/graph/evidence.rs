//! Evidence: a pack is made from the journal, and looked at against it.
//!
//! That a rollback deleted nothing is seen so: whatever record a pack has, the journal has with the same hash at the same place, however much came after it.
//! Records that were cut out of the journal on purpose are bound by the anchor that the cut left.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backout_model::{Digest, Event, GENESIS, Lsn, Record};
use backout_mplp::{
    About, EvidenceFlaw, EvidenceParts, Graph, NodeKind, Pack, check_pack, first_of_pack, uuid_of,
};
use backout_storage::StorageError;

use super::{EvidenceView, GraphError};
use crate::{Engine, EngineError, Reply};

/// How many records are read at once.
const PAGE: usize = 1000;

/// The most bytes of a pack that are read to look at it.
const PACK_BYTES_MAX: u64 = 4 << 30;

impl Engine {
    /// Writes a pack into a directory that is not there yet.
    pub(crate) fn write_evidence(&self, directory: &Path, from: Lsn) -> Result<Reply, EngineError> {
        match self.check_place(from) {
            // A journal that was cut begins where it begins.
            Ok(()) | Err(EngineError::Graph(GraphError::Cut { .. })) => {}
            Err(error) => return Err(error),
        }
        let mut journal = Vec::new();
        self.store.export(from, &mut journal)?;
        let records = read_lines(&journal)?;
        let first = records.first().map_or(from.next(), |record| record.lsn);
        let before = self.hash_before(first)?;
        let graph = self.graph_up_to(Some(Lsn(first.0.saturating_sub(1))))?;
        let parts = EvidenceParts {
            about: self.story_about(&records)?,
            records: &records,
            journal,
            before,
            graph,
            made: self.now(),
        };
        let pack = Pack::of(&parts);
        make_directory(directory)?;
        for file in &pack.files {
            write_file(&directory.join(&file.path), &file.bytes)?;
        }
        let last = records.last();
        Ok(Reply::Evidence(Box::new(EvidenceView {
            records: pack.records,
            events: pack.events,
            first,
            last: last.map_or(Lsn(first.0.saturating_sub(1)), |record| record.lsn),
            head: last.map_or(before, |record| record.hash),
            cut: 0,
            is_graph_unknown: false,
            flaws: Vec::new(),
        })))
    }

    /// Gives the graph as it was before the first record of a pack; none if the journal does not reach back so far.
    fn graph_before(
        &self,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> Result<Option<Graph>, EngineError> {
        let Some(first) = first_of_pack(files) else {
            return Ok(Some(Graph::default()));
        };
        let place = Lsn(first.0.saturating_sub(1));
        if place == Lsn(0) {
            return Ok(Some(Graph::default()));
        }
        match self.check_place(place) {
            Ok(()) => self.graph_up_to(Some(place)).map(Some),
            Err(EngineError::Graph(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at a pack: by itself, then against the journal.
    pub(crate) fn check_evidence(&self, directory: &Path) -> Result<Reply, EngineError> {
        let mut files = BTreeMap::new();
        let mut left = PACK_BYTES_MAX;
        read_files(directory, directory, &mut files, &mut left)?;
        let mut view = EvidenceView {
            records: 0,
            events: 0,
            first: Lsn(0),
            last: Lsn(0),
            head: GENESIS,
            cut: 0,
            is_graph_unknown: false,
            flaws: Vec::new(),
        };
        let start = self.graph_before(&files)?;
        view.is_graph_unknown = start.is_none();
        match check_pack(&files, start.as_ref()) {
            Err(flaws) => view.flaws = flaws,
            Ok(integrity) => {
                let place = |record: Option<&Record>| record.map_or(Lsn(0), |record| record.lsn);
                view.first = place(integrity.records.first());
                view.last = place(integrity.records.last());
                view.records = u64::try_from(integrity.records.len()).unwrap_or(u64::MAX);
                view.events = integrity.events;
                view.head = integrity.head;
                self.compare_evidence(&integrity.records, &mut view)?;
            }
        }
        Ok(Reply::Evidence(Box::new(view)))
    }

    /// Compares records with those of the journal.
    fn compare_evidence(
        &self,
        records: &[Record],
        view: &mut EvidenceView,
    ) -> Result<(), EngineError> {
        let Some(first) = records.first() else {
            return Ok(());
        };
        let own = self.all_records(Lsn(first.lsn.0.saturating_sub(1)))?;
        let own: BTreeMap<Lsn, Digest> = own.iter().map(|it| (it.lsn, it.hash)).collect();
        let cut = self.newest_cut()?;
        for record in records {
            match (own.get(&record.lsn), cut) {
                (Some(hash), _) if *hash == record.hash => {}
                (Some(_), _) => view.flaws.push(EvidenceFlaw::Other { lsn: record.lsn.0 }),
                (None, Some((up_to, _))) if record.lsn < up_to => view.cut += 1,
                (None, Some((up_to, anchor))) if record.lsn == up_to => {
                    view.cut += 1;
                    if anchor != record.hash {
                        view.flaws.push(EvidenceFlaw::Other { lsn: record.lsn.0 });
                    }
                }
                (None, _) => view.flaws.push(EvidenceFlaw::Gone { lsn: record.lsn.0 }),
            }
        }
        Ok(())
    }

    fn all_records(&self, from: Lsn) -> Result<Vec<Record>, EngineError> {
        let mut all = Vec::new();
        let mut last = from;
        loop {
            let page = self.store.records_after(last, PAGE)?;
            let Some(newest) = page.last() else {
                return Ok(all);
            };
            last = newest.lsn;
            all.extend(page);
        }
    }

    /// Gives the hash that a record follows: that of the one before, or the anchor of a cut.
    fn hash_before(&self, first: Lsn) -> Result<Digest, EngineError> {
        if first.0 <= 1 {
            return Ok(GENESIS);
        }
        let place = Lsn(first.0 - 1);
        let before = self.store.records_after(Lsn(place.0 - 1), 1)?;
        if let Some(record) = before.first().filter(|record| record.lsn == place) {
            return Ok(record.hash);
        }
        let cut = self.newest_cut()?.filter(|(up_to, _)| *up_to == place);
        Ok(cut.map_or(GENESIS, |(_, anchor)| anchor))
    }

    fn newest_cut(&self) -> Result<Option<(Lsn, Digest)>, EngineError> {
        let records = self.all_records(Lsn(0))?;
        let mut cuts = records.iter().rev();
        Ok(cuts.find_map(|record| {
            if let Event::Cut { up_to, anchor } = &record.event {
                Some((*up_to, *anchor))
            } else {
                None
            }
        }))
    }

    /// Says what the story is about: the graph's context and plan if there are some, else names that stand for the journal.
    fn story_about(&self, records: &[Record]) -> Result<About, EngineError> {
        let graph = self.graph_up_to(None)?;
        let journal = records.first().map(|record| record.hash.to_string());
        let journal = journal.unwrap_or_default();
        let newest = |kind: NodeKind| newest_of(&graph, kind);
        let context = newest(NodeKind::Context);
        Ok(About {
            project: graph
                .id()
                .map_or_else(|| uuid_of("project", &journal), str::to_owned),
            context: context.unwrap_or_else(|| uuid_of("context", &journal)),
            plan: newest(NodeKind::Plan),
        })
    }
}

/// Reads what an export wrote.
fn read_lines(journal: &[u8]) -> Result<Vec<Record>, EngineError> {
    let lines = journal.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    let read = lines.map(|line| {
        serde_json::from_slice(line)
            .map_err(|error| StorageError::inconsistent("the export".to_owned(), &error).into())
    });
    read.collect()
}

/// Finds the node of a kind that was written last.
fn newest_of(graph: &Graph, kind: NodeKind) -> Option<String> {
    let of_kind = graph.objects().filter(|(_, node, _)| node.kind == kind);
    let newest = of_kind.max_by_key(|(_, node, _)| node.lsn)?;
    Some(newest.0.to_owned())
}

fn make_directory(path: &Path) -> Result<(), GraphError> {
    // What is in it names files and says who did what: it is for nobody else.
    let made = DirBuilder::new().mode(0o700).create(path);
    made.map_err(|source| failed("make", path, source))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), GraphError> {
    if let Some(parent) = path.parent() {
        let made = DirBuilder::new().mode(0o700).recursive(true).create(parent);
        made.map_err(|source| failed("make", parent, source))?;
    }
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let written = file.and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|source| failed("write", path, source))
}

fn read_files(
    root: &Path,
    directory: &Path,
    files: &mut BTreeMap<String, Vec<u8>>,
    left: &mut u64,
) -> Result<(), GraphError> {
    let unreadable = |source| failed("read", directory, source);
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let kind = fs::symlink_metadata(&path).map_err(|source| failed("read", &path, source))?;
        if kind.is_dir() {
            read_files(root, &path, files, left)?;
            continue;
        }
        *left = left.checked_sub(kind.len()).ok_or_else(|| {
            let too_large = io::Error::new(io::ErrorKind::FileTooLarge, "the pack is too large");
            failed("read", &path, too_large)
        })?;
        let name = path.strip_prefix(root).unwrap_or(&path);
        let name = name.to_string_lossy().into_owned();
        // A link leads out of the pack: it belongs to nothing.
        let bytes = if kind.is_file() {
            fs::read(&path).map_err(|source| failed("read", &path, source))?
        } else {
            Vec::new()
        };
        files.insert(name, bytes);
    }
    Ok(())
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> GraphError {
    GraphError::Pack {
        action,
        path: PathBuf::from(path),
        source,
    }
}
