//! Planning copies: everything but the inode number is kept, hard links inside a tree included.

use std::collections::HashMap;
use std::io::Read as _;

use backout_model::TargetPath;

use super::content::Wanted;
use super::{Planner, View};
use crate::file::before_image::{INLINE_BYTES_MAX, digest_of, link_target};
use crate::file::error::{FileError, Naming as _};
use crate::file::recipe::{Holes, Image, Kind};
use crate::file::stage::{Incoming, Material};
use crate::file::sys::{Node, Place};

/// The first copy of each shared inode, by its number.
type FirstNames = HashMap<(u64, u64), TargetPath>;

impl Planner<'_> {
    pub(super) fn copy(
        &mut self,
        from: &TargetPath,
        to: &TargetPath,
        recursive: bool,
        replace: bool,
    ) -> Result<(), FileError> {
        if from == to {
            return Err(FileError::AlreadyExists {
                path: to.to_string(),
            });
        }
        if to.is_below(from) {
            return Err(FileError::IntoItself {
                from: from.to_string(),
                to: to.to_string(),
            });
        }
        let (place, node) = match self.view(from)? {
            View::Absent => {
                return Err(FileError::NotFound {
                    path: from.to_string(),
                });
            }
            View::Planned(index) => return self.copy_planned(index, from, to, replace),
            View::Real(place, node) => (place, node),
        };
        let is_directory = node.kind == Kind::Directory;
        if is_directory && !recursive {
            return Err(FileError::IsADirectory {
                path: from.to_string(),
            });
        }
        let touched = self.sets.keys();
        let mut touched = touched
            .chain(self.moved_from.keys())
            .chain(self.moved_to.keys());
        if touched.any(|other| other.is_below(from)) {
            return Err(FileError::Entangled {
                path: from.to_string(),
            });
        }
        self.refuse_taken(to, replace, is_directory)?;
        self.need_parent(to, false)?;
        self.copy_node(&place, &node, to, &mut HashMap::new())
    }

    /// Copies what is only planned: its bytes are planned once more.
    fn copy_planned(
        &mut self,
        index: usize,
        from: &TargetPath,
        to: &TargetPath,
        replace: bool,
    ) -> Result<(), FileError> {
        let entangled = || FileError::Entangled {
            path: from.to_string(),
        };
        if let Some(Image::Symlink { to: pointed, meta }) = self.after(index) {
            let (pointed, meta) = (pointed.clone(), meta.clone());
            self.refuse_taken(to, replace, false)?;
            self.need_parent(to, false)?;
            let after = Image::Symlink { to: pointed, meta };
            return self.set_unless_already(to, after, Material::Image);
        }
        let meta = self.file_meta(from).ok().flatten().ok_or_else(entangled)?;
        self.refuse_taken(to, replace, false)?;
        self.need_parent(to, false)?;
        let content = self.content(from)?;
        self.put_file(to, Incoming::Bytes(content), Wanted::Like(meta))
    }

    fn copy_node(
        &mut self,
        place: &Place,
        node: &Node,
        to: &TargetPath,
        first_names: &mut FirstNames,
    ) -> Result<(), FileError> {
        let key = (node.identity.dev, node.identity.ino);
        if node.is_shared {
            if let Some(first) = first_names.get(&key) {
                let after = Image::Linked {
                    to: first.clone(),
                    identity: None,
                    copy: None,
                };
                return self.set(to, after, Material::Image);
            }
            first_names.insert(key, to.clone());
        }
        match node.kind {
            Kind::File => self.copy_file(place, node, to),
            Kind::Symlink => {
                let meta = self.meta_for_copy(to, place, node)?;
                let after = Image::Symlink {
                    to: link_target(place)?,
                    meta,
                };
                self.set_unless_already(to, after, Material::Image)
            }
            Kind::Fifo | Kind::Socket | Kind::BlockDevice | Kind::CharacterDevice => {
                let meta = self.meta_for_copy(to, place, node)?;
                let after = Image::Special {
                    node: node.kind,
                    device: node.device,
                    meta,
                };
                self.set(to, after, Material::Image)
            }
            Kind::Directory => {
                let meta = self.meta_for_copy(to, place, node)?;
                self.set(to, Image::Directory { meta }, Material::Image)?;
                let dir = place.enter()?;
                let from = place.path();
                for name in self.others_in(&from, dir.names()?) {
                    let place = dir.place(&name);
                    if let Some(node) = place.node()? {
                        self.copy_node(&place, &node, &to.join(&name), first_names)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn copy_file(&mut self, place: &Place, node: &Node, to: &TargetPath) -> Result<(), FileError> {
        let meta = self.meta_for_copy(to, place, node)?;
        if node.identity.size <= INLINE_BYTES_MAX {
            let mut content = Vec::new();
            place
                .read()?
                .read_to_end(&mut content)
                .naming(&place.path(), "read")?;
            let (after, material) =
                self.stage_file(to, Incoming::Bytes(content), Wanted::Like(meta))?;
            return self.set_unless_already(to, after, material);
        }
        // Many bytes are copied once, when it is time; only their digest is needed now.
        let (digest, size) = digest_of(place)?;
        let after = Image::File {
            digest,
            size,
            stored: false,
            meta,
            without: None,
            holes: Holes::new(),
        };
        self.set_unless_already(to, after, Material::CopyOf(place.path(), node.identity))
    }
}
