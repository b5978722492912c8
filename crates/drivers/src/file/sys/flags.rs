//! Inode flags, as `chattr` sets them: two lock a file, the others only have to stay with it.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, IFlags, StatxAttributes, StatxFlags, ioctl_getflags, ioctl_setflags};

use super::Place;

/// The flags that people set and that a file made anew does not have by itself, each with its name.
const SET_BY_PEOPLE: [(IFlags, &str); 11] = [
    (IFlags::COMPRESSED, "compressed"),
    (IFlags::DIRSYNC, "dirsync"),
    (IFlags::JOURNALING, "journaled"),
    (IFlags::NOATIME, "noatime"),
    (IFlags::NOCOW, "nocow"),
    (IFlags::NODUMP, "nodump"),
    (IFlags::NOTAIL, "notail"),
    (IFlags::PROJECT_INHERIT, "project"),
    (IFlags::SECURE_REMOVAL, "secure-removal"),
    (IFlags::SYNC, "sync"),
    (IFlags::UNRM, "undeletable"),
];

/// Names the flag that keeps everybody, root included, from changing what is there; none if it has none.
pub(crate) fn lock(place: &Place) -> Option<&'static str> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    // A system that cannot say has no such flags.
    let found = rustix::fs::statx(&place.dir, &place.name, flags, StatxFlags::TYPE).ok()?;
    locks(found.stx_attributes)
}

/// The same for an open directory.
pub(crate) fn lock_of(dir: impl AsFd) -> Option<&'static str> {
    let found = rustix::fs::statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE).ok()?;
    locks(found.stx_attributes)
}

fn locks(attributes: StatxAttributes) -> Option<&'static str> {
    if attributes.contains(StatxAttributes::IMMUTABLE) {
        Some("immutable")
    } else if attributes.contains(StatxAttributes::APPEND) {
        Some("append-only")
    } else {
        None
    }
}

/// Gives the letter that `chattr` has for a flag that locks.
pub(crate) fn letter(lock: &str) -> char {
    if lock == "immutable" { 'i' } else { 'a' }
}

/// Reads the flags that people set. Where there are none, there is nothing to lose.
pub(crate) fn read(file: impl AsFd) -> IFlags {
    ioctl_getflags(file).unwrap_or(IFlags::empty()) & of_people()
}

/// Tells whether a change of all flags of an inode is one that we can take back: only of those that people set, and of none
/// that locks it.
pub(crate) fn is_undoable(from: u32, to: u32) -> bool {
    let locks = (IFlags::IMMUTABLE | IFlags::APPEND).bits();
    (from | to) & locks == 0 && (from ^ to) & !of_people().bits() == 0
}

/// Reads all flags of an open file or directory.
pub(crate) fn all(file: impl AsFd) -> Option<u32> {
    ioctl_getflags(file).ok().map(|flags| flags.bits())
}

/// Gives an inode these of the flags that people set, and no other of them. Tells whether it has them.
pub(crate) fn give(wanted: u32, to: impl AsFd) -> bool {
    let to = to.as_fd();
    let wanted = IFlags::from_bits_retain(wanted) & of_people();
    if let Ok(all) = ioctl_getflags(to)
        && all & of_people() != wanted
    {
        let _looked_at_below = ioctl_setflags(to, (all - of_people()) | wanted);
    }
    read(to) == wanted
}

fn of_people() -> IFlags {
    let flags = SET_BY_PEOPLE.iter();
    flags.fold(IFlags::empty(), |all, (flag, _)| all | *flag)
}

/// Gives a new file the flags of the old one. Returns, by name, those that it could not give.
pub(crate) fn carry(old: IFlags, new: impl AsFd) -> Vec<&'static str> {
    let new = new.as_fd();
    let has = read(new);
    if has == old {
        return Vec::new();
    }
    if let Ok(all) = ioctl_getflags(new) {
        let _looked_at_below = ioctl_setflags(new, (all - has) | old);
    }
    let missing = old - read(new);
    let names = SET_BY_PEOPLE.iter();
    let names = names.filter(|(flag, _)| missing.contains(*flag));
    names.map(|(_, name)| *name).collect()
}
