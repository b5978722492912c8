//! Reading a patch: finding the files in it and what their headers say.
//!
//! Text around the files (a mail, a commit message, `Index:` lines) is skipped. What looks like a part
//! of a patch but is broken is an error, never skipped.

use super::{FileMode, FilePatch, Moved, Patch, PatchError, PatchPath, hunk, name};

/// Reads a patch of one or more files.
pub fn parse(text: &[u8]) -> Result<Patch, PatchError> {
    let mut lines = Lines::new(text);
    let mut files = Vec::new();
    while let Some(line) = lines.peek() {
        if line.starts_with(b"diff --git ") || lines.is_at_names() {
            files.push(read_file(&mut lines)?);
        } else if is_binary(line) {
            return Err(PatchError::Binary {
                file: None,
                line: lines.number(),
            });
        } else if hunk::is_header(line) {
            return Err(PatchError::StrayHunk {
                line: lines.number(),
            });
        } else {
            lines.next();
        }
    }
    if files.is_empty() {
        Err(PatchError::Empty)
    } else {
        Ok(Patch { files })
    }
}

fn is_binary(line: &[u8]) -> bool {
    line == b"GIT binary patch"
        || (line.starts_with(b"Binary files ")
            && (line.ends_with(b" differ") || line.starts_with(b"Binary files differ ")))
}

fn read_file(lines: &mut Lines<'_>) -> Result<FilePatch, PatchError> {
    let first_line = lines.number();
    let broken = || PatchError::BadHeader { line: first_line };
    let header = Header::read(lines)?;
    let (old, new) = header.sides().ok_or_else(broken)?;
    let file = new.as_ref().or(old.as_ref()).ok_or_else(broken)?.clone();
    if lines.peek().is_some_and(is_binary) {
        return Err(PatchError::Binary {
            file: Some(file),
            line: lines.number(),
        });
    }
    let hunks = hunk::read_all(lines, &file)?;
    if hunks.is_empty() && !header.is_whole_without_hunks() {
        return Err(PatchError::NoHunks { file });
    }
    let Header {
        moved,
        old_mode,
        new_mode,
        ..
    } = header;
    Ok(FilePatch {
        old,
        new,
        moved: moved.map(|(how, ..)| how),
        old_mode,
        new_mode,
        hunks,
    })
}

type Names = (Vec<u8>, Vec<u8>);

/// What stands above the hunks of one file.
#[derive(Debug, Default)]
struct Header {
    /// From the `diff --git` line.
    git_names: Option<Names>,
    /// From the `---` and `+++` lines.
    names: Option<Names>,
    from: Option<Vec<u8>>,
    moved: Option<(Moved, Vec<u8>, Vec<u8>)>,
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
    is_created: bool,
    is_deleted: bool,
}

impl Header {
    fn read(lines: &mut Lines<'_>) -> Result<Self, PatchError> {
        let mut header = Self::default();
        if let Some(rest) = lines
            .peek()
            .and_then(|line| line.strip_prefix(b"diff --git "))
        {
            header.git_names = name::read_pair(rest);
            lines.next();
            while let Some(line) = lines.peek() {
                let broken = PatchError::BadHeader {
                    line: lines.number(),
                };
                match header.extend(line) {
                    Some(Extended::Taken) => lines.next(),
                    Some(Extended::Foreign) => break,
                    None => return Err(broken),
                };
            }
        }
        if lines.is_at_names() {
            let broken = PatchError::BadHeader {
                line: lines.number(),
            };
            header.names = read_names(lines);
            if header.names.is_none() {
                return Err(broken);
            }
        }
        Ok(header)
    }

    /// Takes one of git's extended header lines; `None` if it is broken.
    fn extend(&mut self, line: &[u8]) -> Option<Extended> {
        if let Some(mode) = line.strip_prefix(b"old mode ") {
            self.old_mode = Some(read_mode(mode)?);
        } else if let Some(mode) = line.strip_prefix(b"new mode ") {
            self.new_mode = Some(read_mode(mode)?);
        } else if let Some(mode) = line.strip_prefix(b"new file mode ") {
            (self.is_created, self.new_mode) = (true, Some(read_mode(mode)?));
        } else if let Some(mode) = line.strip_prefix(b"deleted file mode ") {
            (self.is_deleted, self.old_mode) = (true, Some(read_mode(mode)?));
        } else if let Some(rest) = line
            .strip_prefix(b"rename from ")
            .or_else(|| line.strip_prefix(b"copy from "))
        {
            self.from = Some(name::read(rest)?);
        } else if let Some(rest) = line.strip_prefix(b"rename to ") {
            self.moved = Some((Moved::Renamed, self.from.take()?, name::read(rest)?));
        } else if let Some(rest) = line.strip_prefix(b"copy to ") {
            self.moved = Some((Moved::Copied, self.from.take()?, name::read(rest)?));
        } else if let Some(modes) = line.strip_prefix(b"index ") {
            self.extend_unchanged_mode(modes)?;
        } else if !line.starts_with(b"similarity index ")
            && !line.starts_with(b"dissimilarity index ")
        {
            return Some(Extended::Foreign);
        }
        Some(Extended::Taken)
    }

    /// Takes the mode of `index 1234..5678 100644`, which git writes when it stays the same.
    fn extend_unchanged_mode(&mut self, rest: &[u8]) -> Option<()> {
        if let Some(mode) = rest.split(|byte| *byte == b' ').nth(1) {
            let mode = read_mode(mode)?;
            (self.old_mode, self.new_mode) = (Some(mode), Some(mode));
        }
        Some(())
    }

    /// Tells whether the header alone changes something, so that no hunks need follow.
    fn is_whole_without_hunks(&self) -> bool {
        let changes_mode = self.old_mode != self.new_mode;
        self.names.is_none() && (changes_mode || self.moved.is_some())
    }

    /// Says which names the file has; `None` if the header does not tell or contradicts itself.
    fn sides(&self) -> Option<(Option<PatchPath>, Option<PatchPath>)> {
        if let Some((_, from, to)) = &self.moved {
            let path = |name: &Vec<u8>| Some(PatchPath::from_bytes(name.clone()));
            return Some((path(from), path(to)));
        }
        let (mut old, mut new) = match (&self.names, &self.git_names) {
            // With `diff --git x x` nothing is prefixed, even if a directory is called `b`.
            (Some((old, new)), Some((git_old, git_new))) if git_old == git_new => {
                let path =
                    |name: &Vec<u8>| (name == git_old).then(|| PatchPath::from_bytes(name.clone()));
                (path(old), path(new))
            }
            (Some((old, new)), _) | (None, Some((old, new))) => name::sides(old, new),
            (None, None) => return None,
        };
        let is_odd = (self.is_created && old.is_some()) || (self.is_deleted && new.is_some());
        if self.names.is_some() && is_odd {
            return None;
        }
        old = old.filter(|_| !self.is_created);
        new = new.filter(|_| !self.is_deleted);
        Some((old, new))
    }
}

#[derive(Debug, Clone, Copy)]
enum Extended {
    Taken,
    Foreign,
}

fn read_names(lines: &mut Lines<'_>) -> Option<Names> {
    let old = name::read(lines.next()?.strip_prefix(b"--- ")?)?;
    let new = name::read(lines.next()?.strip_prefix(b"+++ ")?)?;
    Some((old, new))
}

fn read_mode(digits: &[u8]) -> Option<FileMode> {
    let digits = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(digits, 8).ok().map(FileMode)
}

/// A walk over the lines of a patch.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    number: usize,
}

impl<'a> Lines<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            rest: text,
            number: 1,
        }
    }

    /// Gives the number of the line that comes next, from 1.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Gives the next line without its line end.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        self.peek_whole().map(bare)
    }

    /// Gives the next line as it is.
    pub(super) fn peek_whole(&self) -> Option<&'a [u8]> {
        self.whole().next()
    }

    /// Takes the next line, without its line end.
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.peek_whole()?;
        self.rest = self.rest.get(line.len()..).unwrap_or_default();
        self.number += 1;
        Some(bare(line))
    }

    /// Gives the lines ahead that look like lines of a hunk. A file header does not, nor does the
    /// `-- ` that ends a mail of `git format-patch`.
    pub(super) fn rest_of_hunk(&self) -> impl Iterator<Item = &'a [u8]> {
        let is_end = self.is_at_names() || self.peek().is_some_and(|line| line == b"-- ");
        let marks: &[u8] = if is_end { b"" } else { b" +-" };
        self.whole()
            .take_while(|line| line.first().is_some_and(|mark| marks.contains(mark)))
    }

    /// Tells whether the next two lines are `---` and `+++`.
    fn is_at_names(&self) -> bool {
        let mut whole = self.whole();
        whole.next().is_some_and(|line| line.starts_with(b"--- "))
            && whole.next().is_some_and(|line| line.starts_with(b"+++ "))
    }

    fn whole(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.rest.split_inclusive(|byte| *byte == b'\n')
    }
}

fn bare(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
