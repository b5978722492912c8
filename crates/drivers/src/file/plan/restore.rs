//! Planning that names become what they were. It is a write like any other: what keeps the past stays as it is, and what
//! is restored is a copy.

use backout_model::TargetPath;

use super::content::Wanted;
use super::{Planner, View, number_of};
use crate::file::error::{FileError, Naming as _};
use crate::file::past::{Body, Past, Source, Was, is_at, made, source};
use crate::file::recipe::{Holes, Image, Kind, Meta};
use crate::file::stage::{Incoming, Material};

impl Planner<'_> {
    /// Plans it for names that come in their order, so that what lies in a directory follows it.
    pub(super) fn restore(&mut self, names: &[Past]) -> Result<(), FileError> {
        self.is_restoring = true;
        for past in names.iter().filter(|past| past.was.is_none()) {
            match self.view(&past.path) {
                // Behind a link or a file there is nothing of that name.
                Ok(View::Absent)
                | Err(FileError::NotADirectory { .. } | FileError::ThroughSymlink { .. }) => {}
                Ok(View::Real(..) | View::Planned(_)) => self.remove(&past.path, true)?,
                Err(error) => return Err(error),
            }
        }
        // A second name comes after the first.
        for is_second in [false, true] {
            for past in names {
                if let Some(was) = &past.was
                    && was.shares.is_some() == is_second
                {
                    self.bring_back(&past.path, was)?;
                }
            }
        }
        Ok(())
    }

    fn bring_back(&mut self, path: &TargetPath, was: &Was) -> Result<(), FileError> {
        let lost = |why: &str| FileError::Lost {
            path: path.to_string(),
            why: why.to_owned(),
        };
        if let Body::Lost(why) = &was.body {
            return Err(lost(why));
        }
        if was.is_dress && was.kind != Kind::Directory {
            return self.redress(path, was);
        }
        self.need_parent(path, true)?;
        if let Some(first) = &was.shares
            && self.is_first_name(first, was)?
        {
            return self.second_name(path, first);
        }
        let meta = match &was.meta {
            Some(meta) => self.permitted(path, meta.clone()),
            None => self.meta_elsewhere(path, was)?,
        };
        self.make_way(path, was.kind)?;
        match was.kind {
            Kind::Directory => self.directory_like(path, meta),
            Kind::File => match source(was, self.context)? {
                Source::Stored(digest) => {
                    let after = Image::File {
                        digest,
                        size: was.size.unwrap_or_default(),
                        stored: true,
                        meta,
                        without: None,
                        holes: Holes::new(),
                    };
                    self.set_unless_already(path, after, Material::Stored)
                }
                Source::File(place, node) => self.file_like(path, &place, &node, meta),
                Source::Made(digest, base) => {
                    let mut from = made(self.context, &digest, &base)?;
                    let incoming = Incoming::of(&mut from).naming(path, "read the source for")?;
                    self.put_file(path, incoming, Wanted::Like(meta))
                }
                Source::Nowhere(why) => Err(lost(&why)),
            },
            Kind::Symlink => {
                let to = was.link.clone().ok_or_else(|| lost("it was not kept"))?;
                self.set_looks(path, Image::Symlink { to, meta })
            }
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                let after = Image::Special {
                    node: was.kind,
                    device: was.device,
                    meta,
                };
                self.set_looks(path, after)
            }
        }
    }

    /// Plans what has no bytes; what looks so already may still have another time.
    fn set_looks(&mut self, path: &TargetPath, after: Image) -> Result<(), FileError> {
        let meta = after.meta().cloned();
        if let (true, Some(meta)) = (self.is_already(path, &after)?, meta) {
            return self.retouch_whole(path, &meta);
        }
        self.set_unless_already(path, after, Material::Image)
    }

    /// Plans that mode, owner and attributes become what they were.
    fn redress(&mut self, path: &TargetPath, was: &Was) -> Result<(), FileError> {
        match (self.view(path)?, &was.meta) {
            (View::Real(_, node), Some(meta)) if node.kind == was.kind => {
                self.retouch_to(path, meta)
            }
            (View::Real(..) | View::Planned(_) | View::Absent, _) => Err(FileError::Lost {
                path: path.to_string(),
                why: "only its mode, owner or attributes were changed, and the rest of it is not kept"
                    .to_owned(),
            }),
        }
    }

    /// Tells whether the first name of a file stands for it, or will.
    fn is_first_name(&self, first: &TargetPath, was: &Was) -> Result<bool, FileError> {
        match self.view(first)? {
            View::Planned(_) => Ok(true),
            View::Real(place, node) => is_at(was, &place, &node),
            View::Absent => Ok(false),
        }
    }

    fn second_name(&mut self, path: &TargetPath, first: &TargetPath) -> Result<(), FileError> {
        if let (View::Real(_, one), View::Real(_, other)) = (self.view(path)?, self.view(first)?)
            && number_of(&one) == number_of(&other)
        {
            return Ok(());
        }
        self.linked(path, first)
    }

    /// Reads the metadata of something that was moved away, where it is now.
    fn meta_elsewhere(&mut self, path: &TargetPath, was: &Was) -> Result<Meta, FileError> {
        match source(was, self.context)? {
            Source::File(place, node) => {
                let meta = crate::file::before_image::meta_of(&place, &node)?;
                Ok(self.permitted(path, meta))
            }
            Source::Stored(_) | Source::Made(..) | Source::Nowhere(_) => Err(FileError::Lost {
                path: path.to_string(),
                why: if let Body::Lost(why) = &was.body {
                    why.clone()
                } else if was.shares.is_some() {
                    "what was in the file that it was a name of is not kept".to_owned()
                } else {
                    format!(
                        "only its name was changed, and the {} is not where it was left",
                        was.word()
                    )
                },
            }),
        }
    }
}
