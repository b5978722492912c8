//! The paths of a call: as they are in the memory of the process, and where they lead.

use std::os::fd::AsFd as _;

use rustix::io::Errno;

use super::calls::{Act, Operand, Shape, as_int};
use super::memory::{read_exactly, read_path, read_two_paths};
use super::order::Path;
use super::process_info::Scene;
use super::resolve::{Base, Dots, Gone, Held, Last, Lost, Place, lost, of_base, resolve};
use super::sys::Notice;
use super::walk::{Lead, Walk, split};

/// The longest address of a socket in the file system.
const ADDRESS_BYTES_MAX: usize = 110;

/// The paths of a call, as they are in the memory of the process.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Operands {
    first: Option<Where>,
    second: Option<Where>,
}

#[derive(Debug, PartialEq, Eq)]
enum Where {
    Path(Base, Vec<u8>, Last),
    /// What a descriptor is open on, or the current directory.
    Base(Base),
    /// Nothing in the file system.
    Nowhere,
}

impl Where {
    fn path(operand: Option<&Self>) -> Option<Path<'_>> {
        match operand? {
            Self::Path(base, bytes, last) => Some(Path {
                base: *base,
                bytes,
                last: *last,
            }),
            Self::Base(_) | Self::Nowhere => None,
        }
    }
}

/// Where the paths of a call lead.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) first: Option<Place>,
    pub(super) second: Option<Place>,
    /// What the first is about, if that lost its name and has others.
    pub(super) gone: Option<Gone>,
    /// What the call changes and no undo takes back.
    pub(super) lasts: Option<&'static str>,
}

impl Operands {
    pub(super) fn read(notice: &Notice, shape: &Shape) -> Result<Self, Errno> {
        let both = match (shape.first, shape.second) {
            (Some(Operand::Path { path: one, .. }), Some(Operand::Path { path: other, .. })) => {
                let argument = |index: usize| notice.arguments.get(index).copied();
                let addresses = [one, other].map(|index| argument(index).unwrap_or_default());
                read_two_paths(notice.thread, addresses)
            }
            _ => None,
        };
        let [one, other] = both.map_or([None, None], |both| both.map(Some));
        let read = |operand: Option<Operand>, known: Option<Vec<u8>>| {
            let read = operand.map(|operand| read_operand(notice, operand, known));
            read.transpose()
        };
        Ok(Self {
            first: read(shape.first, one)?,
            second: read(shape.second, other)?,
        })
    }

    /// Gives the paths, where they are paths.
    pub(super) fn paths(&self) -> [Option<Path<'_>>; 2] {
        [
            Where::path(self.first.as_ref()),
            Where::path(self.second.as_ref()),
        ]
    }

    /// Tells whether what it is about is named, and not open.
    pub(super) const fn are_names(&self) -> bool {
        matches!(self.first, Some(Where::Path(..)))
    }

    /// Gives the second name, if both paths are names in one directory by their words.
    fn beside(&self) -> Option<&[u8]> {
        let (Some(Where::Path(one, from, Last::Name)), Some(Where::Path(other, to, Last::Name))) =
            (&self.first, &self.second)
        else {
            return None;
        };
        let ((above, name), (beside, second)) = (split(from), split(to));
        let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/');
        (one == other && above == beside && is_name(name) && is_name(second)).then_some(second)
    }

    /// Finds where the paths lead. What must fail fails as it does without us.
    pub(super) fn resolve(&self, notice: &Notice, act: Act, scene: Scene) -> Result<Places, Lost> {
        let place = |operand: &Option<Where>| match operand {
            None | Some(Where::Nowhere) => Ok(None),
            Some(Where::Path(base, path, last)) => {
                resolve(notice.thread, scene, *base, path, *last).map(Some)
            }
            Some(Where::Base(base)) => of_base(notice.thread, scene, *base).map(Some),
        };
        let (mut lasts, mut gone) = (None, None);
        let first = match place(&self.first) {
            Err(Lost::Root) if matches!(act, Act::Flags { .. }) => Err(Lost::Blind(
                Errno::PERM,
                "the flags of `/` could not be brought back",
            )),
            Err(Lost::Root) => {
                if matches!(act, Act::Attributes | Act::Times) {
                    lasts = Some(
                        "it changed mode, owner, attributes or times of `/`; that is not undone",
                    );
                }
                Ok(None)
            }
            Err(Lost::Nameless { has_others }) => {
                if has_others {
                    gone = self.first.as_ref().and_then(|it| it.gone(notice, scene));
                }
                Ok(None)
            }
            other => other,
        };
        let second = match (&first, self.beside()) {
            (Ok(Some(first)), Some(name)) => {
                Ok(Some(first.beside(name).map_err(|e| lost(e, scene))?))
            }
            _ => place(&self.second),
        };
        // The kernel finds both directories first, and looks at the names then.
        for found in [&first, &second] {
            if let Err(lost) = found
                && !matches!(lost, Lost::Dots(_))
            {
                return Err(*lost);
            }
        }
        let named = |found: Result<Option<Place>, Lost>, is_first: bool| {
            found.map_err(|lost| match lost {
                Lost::Dots(_) if notice.number == libc::SYS_bind => Lost::Fails(Errno::ADDRINUSE),
                Lost::Dots(dots) => Lost::Fails(without_name(act, dots, is_first)),
                Lost::Fails(_) | Lost::Blind(..) | Lost::Nameless { .. } | Lost::Root => lost,
            })
        };
        Ok(Places {
            first: named(first, true)?,
            second: named(second, false)?,
            gone,
            lasts,
        })
    }
}

impl Where {
    /// Tells which file it is that has no name here.
    fn gone(&self, notice: &Notice, scene: Scene) -> Option<Gone> {
        let opened = match self {
            Self::Path(base, path, last) => {
                match Walk::new(notice.thread, scene).lead(*base, path, *last) {
                    Ok(Lead::Itself(opened)) => opened,
                    Ok(Lead::Name { .. } | Lead::Dots(_)) | Err(_) => return None,
                }
            }
            Self::Base(base) => Held::new(base.open(notice.thread).ok()?),
            Self::Nowhere => return None,
        };
        Gone::of(opened.as_fd())
    }
}

/// How a call fails that wants a name and is given none.
fn without_name(act: Act, dots: Dots, is_first: bool) -> Errno {
    const NOREPLACE: u32 = 1;
    match (act, dots) {
        (Act::Unlink, _) => Errno::ISDIR,
        (Act::Rmdir, Dots::One) => Errno::INVAL,
        (Act::Rmdir, Dots::Two) => Errno::NOTEMPTY,
        (Act::Rename { flags }, _) if flags & NOREPLACE != 0 && !is_first => Errno::EXIST,
        (Act::Rmdir, Dots::Root) | (Act::Rename { .. }, _) => Errno::BUSY,
        _ => Errno::EXIST,
    }
}

/// Reads what a call is about, if it is not `known` what stands at its path.
fn read_operand(notice: &Notice, operand: Operand, known: Option<Vec<u8>>) -> Result<Where, Errno> {
    let argument = |index: usize| notice.arguments.get(index).copied().unwrap_or_default();
    match operand {
        Operand::Fd(index) => Ok(Where::Base(Base::Descriptor(as_int(argument(index))))),
        Operand::Address(index, length) => {
            let size = usize::try_from(as_int(argument(length))).unwrap_or(0);
            let mut bytes = vec![0_u8; size.min(ADDRESS_BYTES_MAX)];
            read_exactly(notice.thread, argument(index), &mut bytes)?;
            Ok(match bytes.as_slice() {
                [1, 0, first, ..] if *first != 0 => {
                    let path = bytes.iter().skip(2).copied().take_while(|byte| *byte != 0);
                    Where::Path(Base::Here, path.collect(), Last::Name)
                }
                _ => Where::Nowhere,
            })
        }
        Operand::Path {
            at,
            path,
            follow,
            without,
        } => {
            let base = match at.map(|at| as_int(argument(at))) {
                None | Some(libc::AT_FDCWD) => Base::Here,
                Some(number) => Base::Descriptor(number),
            };
            let address = argument(path);
            if address == 0 && without.means_descriptor(true, &notice.arguments) {
                return Ok(Where::Base(base));
            }
            let bytes = known.map_or_else(|| read_path(notice.thread, address), Ok)?;
            if bytes.is_empty() && without.means_descriptor(false, &notice.arguments) {
                return Ok(Where::Base(base));
            }
            Ok(Where::Path(base, bytes, follow.last(&notice.arguments)))
        }
    }
}
