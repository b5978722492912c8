//! What names were: before or after an effect, or now. Whoever keeps files says it; nothing is read until somebody asks for
//! bytes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use backout_model::{Digest, TargetPath};
use serde::{Deserialize, Serialize};

use crate::AnyBytes;
use crate::inode::{
    Identity, Kind, Meta, differs_in_meta, differs_where_changed, is_overlay_note, put_back_changed,
};

/// A name with what it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Past {
    /// The name.
    pub path: TargetPath,
    /// What it was; none if nothing was there.
    pub was: Option<Was>,
}

/// What a name stood for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Was {
    /// What kind of thing.
    pub kind: Kind,
    /// Everything but the bytes; of what shares an inode with another name, or was not kept, nothing is known.
    pub meta: Option<Meta>,
    /// How many bytes, where that is known.
    pub size: Option<u64>,
    /// Where a symbolic link points.
    pub link: Option<AnyBytes>,
    /// The number of a device.
    pub device: u64,
    /// Where its bytes can be had.
    pub body: Body,
    /// Which inode it was, where that is known.
    pub identity: Option<Identity>,
    /// Another name of the same file.
    pub shares: Option<TargetPath>,
    /// Whether only mode, owner, attributes or times were changed: the bytes are told by nobody.
    pub is_dress: bool,
    /// Where the file is that stored bytes may be told as a change of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_at: Option<TargetPath>,
    /// What else stored bytes can be made from, where that file is not what they are told as a change of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<Box<Base>>,
}

/// What somebody wrote down of a name, apart from any operation.
#[derive(Debug, Clone)]
pub struct WrittenDown {
    /// What kind of thing.
    pub kind: Kind,
    /// Everything but the bytes.
    pub meta: Meta,
    /// How many bytes a file has.
    pub size: u64,
    /// Where a symbolic link points.
    pub link: Option<AnyBytes>,
    /// The number of a device.
    pub device: u64,
    /// What the bytes of a file are called.
    pub digest: Option<Digest>,
}

/// Bytes that others are told as a change of, and what has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// What they are called.
    pub digest: Digest,
    /// What has them.
    pub was: Was,
}

/// Where the bytes of a file can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// It has none, since it is no file.
    None,
    /// In the content store.
    Stored(Digest),
    /// In the file at one of these paths, if it is that one or has these bytes.
    Somewhere {
        /// The paths, the likeliest first.
        at: Vec<TargetPath>,
        /// Which inode it is.
        identity: Option<Identity>,
        /// What its bytes are called.
        digest: Option<Digest>,
    },
    /// In whatever this other name stands for.
    SameAs(TargetPath),
    /// In memory.
    Bytes(Vec<u8>),
    /// Nowhere, and why.
    Lost(String),
}

impl Body {
    /// Bytes known by name only, which may be in the file at this path.
    pub fn named(path: TargetPath, digest: Digest) -> Self {
        Self::Somewhere {
            at: vec![path],
            identity: None,
            digest: Some(digest),
        }
    }
}

impl Was {
    /// Describes what was written down. The bytes of a file are in the file at `bytes`; `shares` is another name of it.
    pub fn written_down(
        parts: WrittenDown,
        bytes: Option<TargetPath>,
        shares: Option<TargetPath>,
    ) -> Self {
        let is_file = parts.kind == Kind::File;
        Self {
            kind: parts.kind,
            meta: Some(parts.meta),
            size: is_file.then_some(parts.size),
            link: parts.link,
            device: parts.device,
            body: if is_file {
                Body::Somewhere {
                    at: bytes.into_iter().collect(),
                    identity: None,
                    digest: parts.digest,
                }
            } else {
                Body::None
            },
            identity: None,
            shares,
            is_dress: false,
            made_at: None,
            made_from: None,
        }
    }

    /// Says what it is: a file, a directory, a symbolic link, and so on.
    pub fn word(&self) -> &'static str {
        self.kind.word()
    }

    /// Tells whether it is a directory.
    pub const fn is_directory(&self) -> bool {
        matches!(self.kind, Kind::Directory)
    }

    /// Tells whether it has bytes.
    pub const fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File)
    }

    /// Gives the permission bits, which a symbolic link has none of.
    pub fn mode(&self) -> Option<u32> {
        let meta = self.meta.as_ref().filter(|_| self.kind != Kind::Symlink);
        meta.map(|meta| meta.mode)
    }

    /// Gives user and group.
    pub fn owner(&self) -> Option<(u32, u32)> {
        self.meta.as_ref().map(|meta| (meta.uid, meta.gid))
    }

    /// Gives the number of bytes of a file.
    pub fn size(&self) -> Option<u64> {
        self.size.filter(|_| self.is_file())
    }

    /// Names the bytes, if they are known by name.
    pub const fn digest(&self) -> Option<Digest> {
        match &self.body {
            Body::Stored(digest) => Some(*digest),
            Body::Somewhere { digest, .. } => *digest,
            Body::None | Body::SameAs(_) | Body::Bytes(_) | Body::Lost(_) => None,
        }
    }

    /// Gives when it was last changed, in nanoseconds since 1970.
    pub fn modified(&self) -> Option<i64> {
        let times = self.meta.as_ref().and_then(|meta| meta.times);
        times.and_then(|times| i64::try_from(times.mtime).ok())
    }

    /// Gives where a symbolic link points.
    pub fn points_to(&self) -> Option<&OsStr> {
        self.link.as_ref().map(|to| OsStr::from_bytes(&to.0))
    }

    /// Gives the other name of a file that has two.
    pub const fn same_as(&self) -> Option<&TargetPath> {
        self.shares.as_ref()
    }

    /// Tells whether only mode, owner, attributes or times were changed.
    pub const fn is_dress(&self) -> bool {
        self.is_dress
    }

    /// Lists the names that it may be found under, `path` first.
    pub fn names<'w>(&'w self, path: &'w TargetPath) -> Vec<&'w TargetPath> {
        let at = match &self.body {
            Body::Somewhere { at, .. } => at.as_slice(),
            Body::None | Body::Stored(_) | Body::SameAs(_) | Body::Bytes(_) | Body::Lost(_) => &[],
        };
        let mut names = vec![path];
        for name in at.iter().chain(&self.shares) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Adds a name that the bytes may be found under.
    pub fn also_at(&mut self, name: &TargetPath) {
        if let Body::Somewhere { at, .. } = &mut self.body
            && !at.contains(name)
        {
            at.push(name.clone());
        }
    }

    /// Gives what is kept of the same file, with the mode, owner and attributes that are known of this one.
    #[must_use]
    pub fn kept_as(&self, kept: Self) -> Self {
        let times = kept.meta.as_ref().and_then(|meta| meta.times);
        let meta = self.meta.clone().map(|meta| Meta {
            times: meta.times.or(times),
            ..meta
        });
        Self {
            meta: meta.or(kept.meta),
            shares: self.shares.clone(),
            is_dress: false,
            ..kept
        }
    }

    /// Gives the same, with another place where what its bytes are a change of can be had.
    #[must_use]
    pub fn made_from(&self, digest: Digest, was: Self) -> Self {
        Self {
            made_from: Some(Box::new(Base { digest, was })),
            ..self.clone()
        }
    }

    /// Gives the same with other bytes.
    #[must_use]
    pub fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self {
            size: u64::try_from(bytes.len()).ok(),
            body: Body::Bytes(bytes),
            ..self
        }
    }

    /// Lists extended attributes and ACLs: names with their values. What an overlay notes for itself is none of them.
    pub fn attributes(&self) -> Vec<(String, Vec<u8>)> {
        let all = self.meta.iter().flat_map(|meta| &meta.xattrs);
        let all = all.filter(|(name, _)| !is_overlay_note(&name.0));
        all.map(|(name, value)| {
            let name = String::from_utf8_lossy(&name.0).into_owned();
            (name, value.0.clone())
        })
        .collect()
    }
}

/// A name with what it was before and after an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The name; of what was moved, the new one.
    pub path: TargetPath,
    /// The old name of what was moved.
    pub from: Option<TargetPath>,
    /// What it was; none if nothing was there.
    pub before: Option<Was>,
    /// What it became; none if nothing is left.
    pub after: Option<Was>,
    /// Whether nobody noted what it became: it came with a tree, and was looked for in that as the tree is now.
    pub is_as_now: bool,
}

impl FileChange {
    /// Of a name that was not moved.
    pub const fn new(path: TargetPath, before: Option<Was>, after: Option<Was>) -> Self {
        Self {
            path,
            from: None,
            before,
            after,
            is_as_now: false,
        }
    }

    /// Says how mode, owner or attributes differ from what the effect left, as far as an undo of it looks at them. Of what it
    /// only gave another mode or owner, that is what it changed.
    pub fn differs_in_looks(&self, found: &Was) -> Option<String> {
        let after = self.after.as_ref()?;
        let (left, now) = after.meta.as_ref().zip(found.meta.as_ref())?;
        match self.before.as_ref().filter(|before| before.is_dress) {
            Some(before) => differs_where_changed(now, left, before.meta.as_ref()?),
            None => differs_in_meta(now, left, after.kind),
        }
    }

    /// Gives what a name is when the mode and owner that the effect changed are put back.
    #[must_use]
    pub fn put_back_looks(&self, found: Was) -> Was {
        let side = |side: &Option<Was>| side.as_ref().and_then(|was| was.meta.clone());
        let meta = found.meta.as_ref();
        let sides = side(&self.before).zip(side(&self.after));
        let back = meta.zip(sides.as_ref());
        let meta = back.map(|(now, (before, after))| put_back_changed(now, before, after));
        Was {
            meta: meta.or(found.meta),
            ..found
        }
    }
}

/// The bytes of a file, or why they are not here.
#[derive(Clone, PartialEq, Eq)]
pub enum Shown {
    /// All of them.
    Bytes(Vec<u8>),
    /// There are more than were asked for.
    TooMany,
    /// They are nowhere, and why.
    Lost(String),
}

impl std::fmt::Debug for Shown {
    // Contents may be secrets: only their size is ever shown.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(content) => write!(f, "Bytes({} bytes)", content.len()),
            Self::TooMany => f.write_str("TooMany"),
            Self::Lost(why) => write!(f, "Lost({why:?})"),
        }
    }
}
