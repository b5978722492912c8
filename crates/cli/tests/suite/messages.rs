//! Every sentence that the program says comes up in a test, or is listed here with the reason why it does not.
//!
//! The reports and replies, what is said inside of a command, what the doctor finds, what is noted of commands, and what a
//! report passes on from below: of files, of keys, of the store, of the kernel. Not here: those of the verdicts of
//! `classify`, which `crates/shell` tests by themselves.

use std::fs;
use std::path::Path;

use crate::sentences::{files, is_test, literals, sentences, tests_of};

/// Where the sentences are.
const SOURCES: [&str; 9] = [
    "crates/cli/src",
    "crates/gates/src",
    "crates/engine/src",
    "crates/drivers/src",
    "crates/files/src",
    "crates/model/src/report",
    "crates/config/src",
    "crates/capture/src",
    "crates/storage/src",
];

/// What programs read, not people (the schema has a test of its own), and errors that the report puts into its own words.
const NOT_SAID: [&str; 14] = [
    "engine/src/graph/error.rs",
    "rules/schema.rs",
    "rules/spec.rs",
    "rules/spec_calls.rs",
    "report/code.rs",
    "engine/src/error.rs",
    "engine/src/gate_error.rs",
    "engine/src/drift/error.rs",
    "engine/src/ladder/error.rs",
    "engine/src/resume/error.rs",
    "engine/src/stage/error.rs",
    "engine/src/trial/error.rs",
    "engine/src/rollout/error.rs",
    "engine/src/workspace/error.rs",
];

/// What no test can bring about here, and why.
const EXCUSED: [(&str, &[&str]); 28] = [
    (
        "a recipe of `act` that nobody wrote",
        &["the recipe cannot be read: {error}"],
    ),
    (
        "not told by a test of the program yet: rare ends of `resume`, `stage` and `checkpoint`",
        &[
            "its value is no text",
            "give the state as `--state JSON`",
            "not as before:",
            "at record {} it has another digest than was noted",
            "nobody in particular",
            "another record is in its place",
            "something is there that was not",
            "nobody could look at it: {why}",
            "the agent goes on from the checkpoint {name}",
            "it was under way when the checkpoint was taken",
            "the stage still has it in effect",
        ],
    ),
    (
        "not told by a test of the program yet: `crates/mplp` and `proof::graph` have most of their causes",
        &[
            "give a file with `-o FILE`",
            "name a file with objects",
            "{} was not there then and stays: a trace, a confirmation or a dialog tells of it",
            "; {} cut from the journal since",
            "the objects of the graph were not compared: the journal does not reach back to where the pack begins",
            "the pack is too large",
            "see what such a file looks like with {}",
            "declare what it is bound to first, or in the same update",
            "make a new node; a rollback brings an old state back as a new version",
            "change the object that says so; edges follow from objects, but for PRODUCES",
        ],
    ),
    (
        "a damaged store, which is told before; and names of columns",
        &[
            "the graph's note {lsn}",
            "the graph is not what it was after record {place}",
            "what was noted and what was there have other digests",
            "a record is no object",
            "topic, subject, lsn, body",
        ],
    ),
    (
        "drift of what is too large, not listed, of no text or at a server that is away; who did it is known only after an accident",
        &[
            "it is no text",
            "what {short} wrote could not be looked at: {why}",
            ", perhaps by {} of {agent}",
            ", perhaps by {}",
            "the bytes of `{path}` are not kept: they are too many",
            "the bytes of {path}",
            "nobody told what was in it",
            "it is too large to be merged",
            "nothing was left there",
            "its driver restores nothing but by an undo",
            "only its name was recorded",
            "nobody noted where the link led",
            "a directory with all that was in it",
        ],
    ),
    (
        "every driver here tells values; only one of another program does not",
        &[
            "what operation {id} changed is not told value by value",
            "see its targets with `backout show {id}`",
        ],
    ),
    (
        "nobody asks for what commands do to databases, and how a database begins is no sentence",
        &[
            "only a command changes a database so",
            "what it did is told in rows when it is over",
            "run the command with `backout run`",
            "SQLite format 3",
        ],
    ),
    (
        "a call of the system fails that does not fail here; `proof/errno` lets each fail",
        &[
            "check the file system, then try again",
            "become two processes",
            "wait for the command",
            "read the recipe",
            "watch the command",
            "record the command",
            "it has no record",
            "watch what the command left running",
            "write the recipe",
            "sync what was kept",
            "begin the record of the command",
            "see what the command left running",
            "find the current directory",
            "write down what the command changed",
            "remove the layers of the trial",
            "look at what the command changed",
            "write the export",
            "read the link",
            "make a copy",
            "sync the copy",
            "keep a copy of",
            "was refused: could not",
            "a directory cannot be watched:",
            "the disk would not keep the capture log:",
            "write the capture log beside",
            "the capture log",
            "the manual page could not be made",
            "the answer could not be read",
            "gave up with code",
            "record what it did with",
            "read the source for",
            "read the attributes of",
            "change the mode of",
            "change the owner of",
            "set the attributes of",
            "set the times of",
            "read the kept content of",
            "what it has open cannot be looked at",
            "its path cannot be resolved",
            "its path cannot be told",
            "its root directory cannot be looked at",
            "the new process ended before it began",
            "fork gave no process",
            "the listener did not arrive",
            "the process that tried was ended",
            "mount an overlay over `{at}`",
            "mount a process file system",
            "read the paths",
            "make a pipe",
            "hold signals back",
            "wait for the processes that it left",
            "move to the new root",
            "make a mount namespace",
            "its new content cannot be read: {error}",
        ],
    ),
    (
        "the program does not do this: it asks at once, is there to be started, and takes a stranger's relay for none",
        &[
            "this is no process of the command",
            "it took too long to say what is wanted",
            "the program could not be started outside",
            "see whether the directory is there, and try again",
            "the engine gave no trial",
            "a process of several threads cannot be split",
            "spawn.rs: the command could not be started",
            "the content is not staged",
        ],
    ),
    (
        "another machine: an older kernel, a file system without modes, a core dump, a restart",
        &[
            "the state directory has mode",
            "this build knows no Rego: build it with `--features rego`",
            "what was asked is damaged, or of a newer version of this program",
            "a request that was kept cannot be read",
            "chmod 700 it: images hold secrets",
            "check that the state directory is there",
            "openat2 does not work (",
            "nothing to do: paths are walked step by step",
            "the kernel wrote a core dump of it; that file is not undone",
            "the machine went down while it ran; what it did in the last moments",
            "there is no depot on its file system",
            "the kernel does not let this process watch its children",
            "a command's memory cannot be read",
            "the listener cannot be handed over (socketpair, pidfd_getfd)",
            "attributes cannot be set ({errno})",
        ],
    ),
    (
        "a process that no signal ends: one that waits for a file system that does not answer",
        &[
            "it could not be ended:",
            "its processes could not be ended, and nobody watches them:",
            "a process that is in no list",
            "the command waits, and its watcher too: a large file is being kept",
            "a rename took longer than ten seconds",
        ],
    ),
    (
        "a store that an older program made: `proof/formats.rs` has it",
        &[
            "the key `{key}` stands for {name}, of an older program, and what was asked then cannot be compared",
        ],
    ),
    (
        "a moment that cannot be met on purpose: thousands of events at once, a file that changes whenever it is read",
        &[
            "it was written to while it was read",
            "it was replaced while it was looked at",
            "is not as it was at the checkpoint",
            "it keeps changing while it is read",
            "more happened at once than could be looked at",
            "was written, and somebody else changed it at once",
            "nothing was decided about {}",
            "somebody else is deciding about it",
            "see what came of it with {}",
            "something else has its name",
            "it has another size",
            "it went away while it was needed",
        ],
    ),
    (
        "a way into another view of the file system that `proof/attacks` goes, and does not quote",
        &[
            "writing was refused by a path that nobody else can follow",
            "its path keeps changing while it is looked at",
            "its path changes while it is looked at",
            "its path is in memory that only itself can read (`memfd_secret`)",
            "it came by a path that nobody else can follow",
        ],
    ),
    (
        "a note of an operation that cannot be recorded then: the disk is full (`proof/commands/full_log.rs`)",
        &[
            "the capture log could not be written:",
            "writing was refused:",
        ],
    ),
    (
        "stays in the journal; `export` gives it to programs",
        &[
            "somebody asked for it",
            "its process died, and it cannot be taken back",
            "its process died, and nothing is as it was to make it",
        ],
    ),
    (
        "asked whether it differs, and nobody says how",
        &["nobody kept what it was", "there is no such process"],
    ),
    (
        "a second look at what the reader of the format, or the first look, has refused",
        &[
            "it is the whole text",
            "the text around it would be read differently afterwards",
            "this array is not closed",
            "this inline table is not closed",
            "the text ends too early",
            "it is gone, or no file any more",
        ],
    ),
    (
        "where a store was damaged: `proof/damage` hurts each page, and does not quote",
        &[
            "a digest in the table of contents",
            "not a private directory",
            "a record to be stored",
            "the anchor of the journal",
            "the lease of operation {by}",
            "a value to be stored",
        ],
    ),
    (
        "names of columns",
        &[
            "operation, path, lsn, reach, undone_by, held_by",
            "dependent, dependency, reason",
            "operation, depot, name",
            "id, status, began, agent, owner, was",
            "name, lsn, body",
            "id, lsn, at, verb, summary, status",
        ],
    ),
    (
        "statements for the database",
        &[
            "ROLLBACK TO backout_tried; RELEASE backout_tried",
            "DROP TABLE IF EXISTS main.{}",
            "DROP {kind} IF EXISTS main.{}",
            "schema.rs: too many rows",
        ],
    ),
    (
        "a database of hundreds of MiB, one that root may not write, a race of two programs, statements that roll dice over their schema",
        &[
            "check who may write the file and its directory",
            "what a row was has to be kept until it is in the store",
            "the statements change too much at once: more than",
            "the statements change other tables each time they run",
            "what they change has to be known before it happens",
            "run the changes of the schema one by one",
            "it could not be looked at again: {error}",
            "was changed meanwhile",
        ],
    ),
    ("for tests", &["a test made this step fail"]),
    (
        "what a shell reads",
        &[
            "n=$1; shift",
            "command -p env -0",
            ":?set it first}",
            "\\\"$@\\\" || true",
        ],
    ),
    (
        "a sandbox: failing system calls, a machine that was started anew, hundreds of layers that cannot be merged",
        &[
            "lost when the machine was started anew; let it go with {end}",
            "was lost when the machine was started anew",
            "it was lost when the machine was started anew",
            ", lost when the machine was started anew",
            "the engine gave no command",
            "write down who waits for the files",
            "write down which checkpoints there are",
            "it could not be read",
            "nothing of the sandbox `{name}` is to be applied",
            "put one more layer above so many that cannot be merged",
            "exec.rs: prepare the command",
            "what it changed cannot all be told: {why}",
            "read the variables of the sandbox",
            "write down how the sandbox stands",
            "remove a layer of the sandbox",
            "it was layered before, and cannot be any more",
        ],
    ),
    (
        "a rule that was read has it, and so has what a command did; nobody has a tree of a hundred thousand names in a test",
        &[
            "there is no such hook",
            "nothing was looked at",
            "names, too many to look through",
            "has other names, and not all of them could be found and checked",
            "names to look through: whether one of them is protected cannot be told",
        ],
    ),
    (
        "it happens in the moment between two looks, or the system does not say where this program is; columns of a table",
        &[
            "following it could write somewhere else than was looked at",
            "put the directory back, or name the real path",
            "Backout could not take this write back, although a rule says no:",
            "it is not clear where this program is",
            "somebody changed it a moment ago",
            "the trust could not be noted",
            "looked.rs: what was found",
            "id, lsn, agent, session, body",
        ],
    ),
    (
        "on the screen of `log -i`, whose tests look for other words of the same line; a server that cannot be started; two threads at one moment",
        &[
            "undo all that answered {}",
            "{}: this would happen",
            "{}: not, or not wholly, done",
            "there is nothing here",
            "type / and what you look for",
            "one line down, up",
            "operations of prompt {prompt}",
            "q back  j k scroll  u undo  r redo",
            "a part of what it needs is missing, or is of another version",
            "the agent is no longer served",
            "the server could not be started",
            "the program does not know where it is",
            "open the page with `backout ui`",
            "ui.rs: open it in a browser",
            "no server could be started",
            "start one with `backout serve`",
            "the operation did not change that file",
            "there was no file",
            "ROLLBACK TO one",
        ],
    ),
];

#[test]
fn every_sentence_is_in_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // What is listed here is not thereby in a test.
    let tests = tests_of(&root, "suite/messages.rs");
    let mut missing = Vec::new();
    for file in SOURCES.iter().flat_map(|source| files(&root.join(source))) {
        if is_test(&file) || NOT_SAID.iter().any(|it| file.ends_with(it)) {
            continue;
        }
        for literal in literals(&fs::read_to_string(&file).unwrap()) {
            let parts = sentences(&literal);
            let is_told = parts.is_empty() || parts.iter().any(|part| tests.contains(part));
            if !is_told {
                missing.push(format!("{}: {literal}", file.display()));
            }
        }
    }
    let excused = || EXCUSED.iter().flat_map(|(_, sentences)| *sentences);
    let is_there = |sentence: &&&str| missing.iter().any(|it| it.contains(**sentence));
    let over: Vec<_> = excused().filter(|it| !is_there(it)).collect();
    missing.retain(|it| !excused().any(|sentence| it.contains(sentence)));
    assert!(missing.is_empty(), "in no test:\n{}", missing.join("\n"));
    assert!(over.is_empty(), "excused, and told or gone: {over:?}");
}
