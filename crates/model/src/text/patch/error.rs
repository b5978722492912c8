//! Why a patch cannot be read or applied.

use super::PatchPath;

/// Says why a patch was refused. `line` counts lines of the patch when reading and lines of the file
/// when applying, both from 1; hunks count from 1 in their file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum PatchError {
    /// The text changes no file.
    #[error("the text holds no patch of any file")]
    Empty,
    /// A file header is incomplete, contradicts itself or has a broken quoted name.
    #[error("line {line} of the patch is a broken file header")]
    BadHeader {
        /// Where the header is.
        line: usize,
    },
    /// Binary contents can be neither checked nor merged here.
    #[error("line {line} of the patch changes a binary file{}", named(file.as_ref()))]
    Binary {
        /// The file, where the patch names it.
        file: Option<PatchPath>,
        /// Where the patch says so.
        line: usize,
    },
    /// A hunk stands before any file header.
    #[error("the hunk in line {line} of the patch belongs to no file")]
    StrayHunk {
        /// Where the hunk begins.
        line: usize,
    },
    /// A header that changes nothing by itself is followed by no hunk.
    #[error("`{file}` has a header but no hunks")]
    NoHunks { file: PatchPath },
    /// The `@@` line is not like `@@ -1,2 +3,4 @@`.
    #[error("hunk {hunk} of `{file}` has a broken header in line {line} of the patch")]
    BadHunk {
        file: PatchPath,
        hunk: usize,
        /// Where the header is.
        line: usize,
    },
    /// A hunk does not hold the lines its header promises.
    #[error(
        "hunk {hunk} of `{file}` promises {} old and {} new lines but has {} and {}",
        expected.0, expected.1, found.0, found.1
    )]
    WrongCount {
        file: PatchPath,
        hunk: usize,
        /// The promised old and new lines.
        expected: (usize, usize),
        /// The old and new lines up to where the hunk ends or goes astray.
        found: (usize, usize),
    },
    /// The lines of a hunk are nowhere in the file.
    #[error(
        "hunk {hunk} of `{file}` does not apply: line {line} should be `{expected}` but {}",
        actual(found.as_deref())
    )]
    Mismatch {
        file: PatchPath,
        hunk: usize,
        /// The first line that differs, at the place where the hunk was expected.
        line: usize,
        /// What the hunk has there: the beginning of the line, control characters escaped.
        expected: String,
        /// What the file has there, likewise; `None` beyond its end.
        found: Option<String>,
    },
    /// Two places match equally well.
    #[error("hunk {hunk} of `{file}` fits line {first} as well as line {second}")]
    Ambiguous {
        file: PatchPath,
        hunk: usize,
        /// The place before the expected one.
        first: usize,
        /// The place after it.
        second: usize,
    },
    /// Something would follow a line without a line end.
    #[error("hunk {hunk} of `{file}` fits only at the end of the file, but line {line} follows")]
    NotAtEnd {
        file: PatchPath,
        /// The hunk, or the one after it, or the last.
        hunk: usize,
        /// The line of the result that would be glued to the one before.
        line: usize,
    },
    /// The patch creates a file that has content already.
    #[error("the patch creates `{file}`, which is there and not empty")]
    NotEmpty { file: PatchPath },
    /// The patch deletes a file but not all of its lines.
    #[error("the patch deletes `{file}` but not all of its content")]
    LeavesContent { file: PatchPath },
}

fn named(file: Option<&PatchPath>) -> String {
    file.map(|file| format!(", `{file}`")).unwrap_or_default()
}

fn actual(found: Option<&str>) -> String {
    found.map_or_else(
        || "the file ends before it".to_owned(),
        |line| format!("is `{line}`"),
    )
}
