//! The tables of the journal's database, and how an older store becomes a newer one.
//!
//! `record` is the truth: append-only, guarded by triggers, hash-chained. Everything else is either derived
//! from it in the same transaction (`operation`, `target`, `edge`, `task`, `checkpoint`, `prompt`, `note`), storage of contents
//! (`content`, `chunk`, `pack`, `reference`), or short-lived (`lease`). Layout in words: `docs/format.md`.

/// The format this program writes. It reads this one and every older one.
pub const FORMAT: i64 = 7;

/// What a new store is made of.
pub(crate) const CREATE: &str = "
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE record (
    lsn       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    operation INTEGER,
    body      BLOB NOT NULL,
    hash      BLOB NOT NULL
) STRICT;
CREATE INDEX record_operation ON record (operation) WHERE operation IS NOT NULL;

CREATE TRIGGER record_is_append_only BEFORE UPDATE ON record
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
CREATE TRIGGER record_is_cut_at_the_anchor BEFORE DELETE ON record
WHEN old.lsn > coalesce((SELECT value FROM meta WHERE key = 'cut-lsn'), 0)
BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;

CREATE TABLE operation (
    id         INTEGER PRIMARY KEY,
    lsn        INTEGER NOT NULL UNIQUE,
    at         INTEGER NOT NULL,
    verb       TEXT NOT NULL,
    summary    TEXT NOT NULL,
    status     TEXT NOT NULL,
    agent      TEXT,
    task       TEXT,
    owner      TEXT NOT NULL,
    decision   TEXT NOT NULL,
    notes      TEXT NOT NULL,
    undoes     INTEGER,
    undo_group INTEGER,
    undone_by  INTEGER,
    redone_by  INTEGER,
    retained   INTEGER NOT NULL,
    finished   INTEGER NOT NULL,
    completion BLOB,
    place      INTEGER NOT NULL DEFAULT 0,
    asked      TEXT,
    call_key   TEXT,
    set_off    TEXT,
    undo_failed INTEGER,
    prompt     TEXT
) STRICT;
CREATE UNIQUE INDEX operation_call ON operation (call_key) WHERE call_key IS NOT NULL;
CREATE INDEX operation_undo_failed ON operation (lsn) WHERE undo_failed IS NOT NULL;
CREATE INDEX operation_unfinished ON operation (lsn)
    WHERE status IN ('armed', 'in-doubt', 'failed', 'interrupted');
CREATE INDEX operation_undoes ON operation (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX operation_prompt ON operation (prompt) WHERE prompt IS NOT NULL;
CREATE INDEX operation_task ON operation (task) WHERE task IS NOT NULL;
CREATE INDEX operation_group ON operation (undo_group) WHERE undo_group IS NOT NULL;
-- by status, so that operations are counted without visiting their rows; then by time, so that new ones stand together
CREATE INDEX operation_retained ON operation (status, finished) WHERE retained = 1;
CREATE INDEX operation_expired ON operation (status) WHERE retained = 0;

-- ordered by lsn within a path, so that the newest writer is found without looking at the others
-- undone_by: the undo that took this target back; held_by: the redo that brought it back
CREATE TABLE target (
    path      BLOB NOT NULL,
    lsn       INTEGER NOT NULL,
    operation INTEGER NOT NULL,
    reach     TEXT NOT NULL,
    undone_by INTEGER,
    held_by   INTEGER,
    PRIMARY KEY (path, lsn, operation, reach)
) STRICT, WITHOUT ROWID;
CREATE INDEX target_operation ON target (operation);

CREATE TABLE edge (
    dependent INTEGER NOT NULL,
    dependency INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    PRIMARY KEY (dependent, dependency, reason)
) STRICT, WITHOUT ROWID;
CREATE INDEX edge_dependency ON edge (dependency);

CREATE TABLE task (
    id     TEXT PRIMARY KEY,
    status TEXT NOT NULL,
    began  INTEGER NOT NULL,
    agent  TEXT,
    owner  TEXT,
    was    TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
    name TEXT PRIMARY KEY,
    lsn  INTEGER NOT NULL,
    body TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE prompt (
    id      TEXT PRIMARY KEY,
    lsn     INTEGER NOT NULL,
    agent   TEXT NOT NULL,
    session TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX prompt_session ON prompt (agent, session, lsn);

CREATE TABLE note (
    topic   TEXT NOT NULL,
    subject TEXT NOT NULL,
    lsn     INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (topic, subject, lsn)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_order ON note (topic, lsn);

CREATE TABLE lease (
    operation INTEGER NOT NULL,
    target    TEXT NOT NULL,
    owner     TEXT NOT NULL,
    PRIMARY KEY (operation, target)
) STRICT, WITHOUT ROWID;

-- form: 0 as it is, 1 zstd, 2 zstd against `base`, 3 chunks, 4 pieces of `base`, which may be outside of the store
CREATE TABLE content (
    digest BLOB PRIMARY KEY,
    size   INTEGER NOT NULL,
    form   INTEGER NOT NULL,
    base   BLOB,
    bytes  BLOB NOT NULL
) STRICT;
CREATE INDEX content_base ON content (base) WHERE base IS NOT NULL;

CREATE TABLE pack (
    id    INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE chunk (
    digest BLOB PRIMARY KEY,
    pack   INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    size   INTEGER NOT NULL
) STRICT;
CREATE INDEX chunk_pack ON chunk (pack);

-- which operation needs which content; `path` orders the versions of one file for compaction
CREATE TABLE reference (
    operation INTEGER NOT NULL,
    digest    BLOB NOT NULL,
    PRIMARY KEY (operation, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX reference_digest ON reference (digest);

-- bytes: the space it takes; none until somebody looked, since it is parked after its operation is armed
CREATE TABLE slot (
    operation INTEGER NOT NULL,
    depot     BLOB NOT NULL,
    name      TEXT NOT NULL,
    bytes     INTEGER,
    PRIMARY KEY (depot, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX slot_operation ON slot (operation);
CREATE INDEX slot_unmeasured ON slot (operation) WHERE bytes IS NULL;

CREATE TABLE depot (
    path BLOB PRIMARY KEY
) STRICT, WITHOUT ROWID;
";

/// Says, in `meta`, which program gave the store its format: who finds it too new is told which one reads it.
pub(crate) const NOTE_READER: &str = concat!(
    "INSERT OR REPLACE INTO meta (key, value) VALUES ('reader', '",
    env!("CARGO_PKG_VERSION"),
    "');"
);

/// Says, in `meta`, that the tables still have to be brought over from an older format.
pub(crate) const REBUILD: &str = "rebuild";

/// What makes a store of one format one of the next, the first from format 1. Each is one transaction.
pub(crate) const MIGRATIONS: [&str; 6] = [TO_2, TO_3, TO_4, TO_5, TO_6, TO_7];

/// Each target stands by itself.
const TO_2: &str = "
ALTER TABLE operation ADD COLUMN place INTEGER NOT NULL DEFAULT 0;
ALTER TABLE operation ADD COLUMN asked TEXT;
UPDATE operation SET place = coalesce(
    (SELECT max(lsn) FROM record WHERE record.operation = operation.id AND record.kind = 'redone'), lsn);
DROP INDEX operation_unfinished;
CREATE INDEX operation_unfinished ON operation (lsn)
    WHERE status IN ('armed', 'in-doubt', 'failed', 'interrupted');
CREATE INDEX operation_undoes ON operation (undoes) WHERE undoes IS NOT NULL;
ALTER TABLE target ADD COLUMN undone_by INTEGER;
ALTER TABLE target ADD COLUMN held_by INTEGER;
UPDATE target SET (undone_by, held_by) =
    (SELECT undone_by, redone_by FROM operation WHERE operation.id = target.operation);
ALTER TABLE task ADD COLUMN was TEXT;
INSERT OR REPLACE INTO meta (key, value) VALUES ('rebuild', 1);
";

/// Proposals, which are records of a new kind, and keys of calls.
const TO_3: &str = "
ALTER TABLE operation ADD COLUMN call_key TEXT;
CREATE UNIQUE INDEX operation_call ON operation (call_key) WHERE call_key IS NOT NULL;
";

/// Contents that are pieces of another one (form 4): a program that does not know them must not take them for damage. And
/// decisions with what was asked for, which the tables tell as the records do.
const TO_4: &str = "
INSERT OR REPLACE INTO meta (key, value) VALUES ('rebuild', 1);
";

/// What set an undo off, and undos that failed: `escalated` is a record of a new kind.
const TO_5: &str = "
ALTER TABLE operation ADD COLUMN set_off TEXT;
ALTER TABLE operation ADD COLUMN undo_failed INTEGER;
CREATE INDEX operation_undo_failed ON operation (lsn) WHERE undo_failed IS NOT NULL;
";

/// Prompts, which are records of a new kind, and the operations that answered them.
const TO_6: &str = "
ALTER TABLE operation ADD COLUMN prompt TEXT;
CREATE INDEX operation_prompt ON operation (prompt) WHERE prompt IS NOT NULL;
CREATE TABLE prompt (
    id      TEXT PRIMARY KEY,
    lsn     INTEGER NOT NULL,
    agent   TEXT NOT NULL,
    session TEXT NOT NULL,
    body    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX prompt_session ON prompt (agent, session, lsn);
";

/// Notes, which are records of a new kind.
const TO_7: &str = "
CREATE TABLE note (
    topic   TEXT NOT NULL,
    subject TEXT NOT NULL,
    lsn     INTEGER NOT NULL,
    body    TEXT NOT NULL,
    PRIMARY KEY (topic, subject, lsn)
) STRICT, WITHOUT ROWID;
CREATE INDEX note_order ON note (topic, lsn);
";
