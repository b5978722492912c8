//! What gates see of a change of files: each name with what it was and what it comes to be, and the bytes of both.
//!
//! - Of what is staged the new bytes wait beside their target, and the old ones are still in it.
//! - Of what a command did the new bytes are in place, and the old ones are where the recipe keeps them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use backout_files::Files as _;
use backout_model::ports::{self, ChangedFile, FileBytes, NodeFacts, ReadContents};
use backout_model::{Digest, Effect, TargetPath};

use super::driver::FileDriver;
use super::error::FileError;
use super::past::{FileChange, Shown, Was};
use super::recipe::{Change, Image, Kind, Meta};
use super::stage::{Material, Staged};

/// More old bytes of one file are not read for a gate.
const OLD_BYTES_MAX: u64 = 64 << 20;

/// Bytes that can be had at a path.
#[derive(Debug)]
struct AtPath(TargetPath);

impl FileBytes for AtPath {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(self.0.as_path())?))
    }
}

/// Bytes that are staged.
#[derive(Debug)]
struct Waiting<'s>(&'s Material);

impl FileBytes for Waiting<'_> {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        self.0.open()
    }
}

/// Bytes in the content store.
#[derive(Debug)]
struct Stored<'s>(&'s dyn ReadContents, Digest);

impl FileBytes for Stored<'_> {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        let opened = self.0.open(&self.1).map_err(io::Error::other)?;
        Ok(opened)
    }
}

/// Bytes that a recipe has.
#[derive(Debug)]
struct Kept<'s>(&'s FileDriver, &'s Was);

impl FileBytes for Kept<'_> {
    fn open(&self) -> io::Result<Box<dyn Read + '_>> {
        match self.0.read(self.1, OLD_BYTES_MAX) {
            Ok(Shown::Bytes(bytes)) => Ok(Box::new(Cursor::new(bytes))),
            Ok(_) => Err(io::ErrorKind::Unsupported.into()),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

const fn facts(kind: Kind, size: u64, meta: Option<&Meta>) -> NodeFacts {
    NodeFacts {
        is_file: matches!(kind, Kind::File),
        is_directory: matches!(kind, Kind::Directory),
        size,
        mode: match meta {
            Some(meta) => Some(meta.mode),
            None => None,
        },
    }
}

fn size_at(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |found| found.len())
}

/// Says what an image is; `path` is where it is, or will be.
fn facts_of(image: &Image, path: &TargetPath) -> Option<NodeFacts> {
    let here = || size_at(path.as_path());
    match image {
        Image::Absent => None,
        Image::File { size, meta, .. } => Some(facts(Kind::File, *size, Some(meta))),
        Image::Symlink { meta, .. } => Some(facts(Kind::Symlink, 0, Some(meta))),
        Image::Directory { meta } => Some(facts(Kind::Directory, 0, Some(meta))),
        Image::Special { node, meta, .. } => Some(facts(*node, 0, Some(meta))),
        Image::Linked { to, .. } => Some(facts(Kind::File, size_at(to.as_path()), None)),
        Image::Kept { node, meta, .. } => Some(facts(*node, here(), Some(meta))),
        Image::Unkept { node, .. } => Some(facts(*node, here(), None)),
    }
}

/// Gives what a new link leads to, if that is there.
fn led_to(path: &TargetPath, link: &Image) -> Option<TargetPath> {
    let Image::Symlink { to, .. } = link else {
        return None;
    };
    let to = Path::new(OsStr::from_bytes(&to.0));
    let to = path.as_path().parent()?.join(to);
    TargetPath::new(to.canonicalize().ok()?).ok()
}

fn was_file(facts: Option<NodeFacts>) -> bool {
    facts.is_some_and(|facts| facts.is_file)
}

impl Staged {
    /// Lists the names that come to stand for something else.
    pub(crate) fn changed_names(&self) -> Vec<ChangedFile<'_>> {
        let mut changed = Vec::new();
        for step in &self.steps {
            match &step.change {
                Change::Set {
                    path,
                    before,
                    after,
                } => changed.push(self.set(path, (before, after), &step.material)),
                Change::Move {
                    from,
                    to,
                    node,
                    replaced,
                    ..
                } => {
                    let moved = facts(*node, size_at(from.as_path()), None);
                    let before = facts_of(replaced, to);
                    changed.push(ChangedFile {
                        path: from.clone(),
                        before: Some(moved),
                        after: None,
                        old: None,
                        new: None,
                        leads_to: None,
                    });
                    changed.push(ChangedFile {
                        path: to.clone(),
                        before,
                        after: Some(moved),
                        old: was_file(before).then(|| Box::new(AtPath(to.clone())) as _),
                        new: moved.is_file.then(|| Box::new(AtPath(from.clone())) as _),
                        leads_to: None,
                    });
                }
                Change::Retouch {
                    path,
                    before,
                    after,
                    node,
                } => {
                    let kind = node.unwrap_or(Kind::File);
                    let of = |meta| Some(facts(kind, size_at(path.as_path()), Some(meta)));
                    changed.push(ChangedFile {
                        path: path.clone(),
                        before: of(before),
                        after: of(after),
                        old: None,
                        new: None,
                        leads_to: None,
                    });
                }
                // Only what takes a command back writes in place, and that passes no gate.
                Change::Rewrite { .. } => {}
            }
        }
        changed
    }

    fn set<'s>(
        &'s self,
        path: &TargetPath,
        (before, after): (&Image, &'s Image),
        material: &'s Material,
    ) -> ChangedFile<'s> {
        let (was, is) = (facts_of(before, path), facts_of(after, path));
        let led_to = led_to(path, after);
        let new: Option<Box<dyn FileBytes + 's>> = match (after, material) {
            (Image::Linked { to, .. }, _) => Some(Box::new(AtPath(to.clone()))),
            (Image::File { digest, .. }, Material::Stored | Material::Image) => {
                Some(Box::new(Stored(&*self.contents, *digest)))
            }
            (Image::File { .. }, material) => Some(Box::new(Waiting(material))),
            // Whoever reads the name reads what it leads to.
            (Image::Symlink { .. }, _) => {
                let file = led_to.clone().filter(|it| it.as_path().is_file());
                file.map(|it| Box::new(AtPath(it)) as _)
            }
            (_, _) => None,
        };
        ChangedFile {
            path: path.clone(),
            before: was,
            after: is,
            old: was_file(was).then(|| Box::new(AtPath(path.clone())) as _),
            new,
            leads_to: led_to.filter(|it| it.as_path().is_dir()),
        }
    }
}

/// What a command did to files, as gates see it.
#[derive(Debug)]
pub(crate) struct Happened {
    driver: Arc<FileDriver>,
    sides: Vec<FileChange>,
    /// Links by which files were written, each with what it led to.
    through: Vec<(TargetPath, TargetPath)>,
}

impl Happened {
    /// Reads what an effect did; `through` are the links that led to what was written.
    pub(crate) fn of(
        driver: Arc<FileDriver>,
        effect: &Effect,
        through: Vec<(TargetPath, TargetPath)>,
    ) -> Result<Self, FileError> {
        let sides = super::past::sides_with_moved(driver.context(), effect)?;
        Ok(Self {
            driver,
            sides,
            through,
        })
    }
}

impl ports::Staged for Happened {
    fn changed(&self) -> Vec<ChangedFile<'_>> {
        let facts = |was: &Option<Was>| {
            let was = was.as_ref()?;
            Some(facts(was.kind, was.size().unwrap_or(0), was.meta.as_ref()))
        };
        let sides = self.sides.iter().map(|side| {
            let (before, after) = (facts(&side.before), facts(&side.after));
            let old = side.before.as_ref().filter(|was| was.is_file());
            let is_link = after.is_some_and(|it| !it.is_file && !it.is_directory);
            let leads = is_link && side.path.as_path().is_file();
            let leads_to = is_link.then(|| side.path.as_path().canonicalize().ok());
            let leads_to = leads_to.flatten().filter(|real| real.is_dir());
            let is_new = (was_file(after) || leads)
                && side.after.as_ref().is_some_and(|was| !was.is_dress());
            ChangedFile {
                path: side.path.clone(),
                before,
                after,
                old: old.map(|was| Box::new(Kept(&self.driver, was)) as _),
                new: is_new.then(|| Box::new(AtPath(side.path.clone())) as _),
                leads_to: leads_to.and_then(|real| TargetPath::new(real).ok()),
            }
        });
        sides.collect()
    }

    fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        self.through.clone()
    }
}
