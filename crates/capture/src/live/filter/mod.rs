//! The filter: which calls the kernel stops at.

use libc::{sock_filter, sock_fprog};

use super::calls::{Kind, Shape};
use super::table::{ABSENT, COMMON, NEWEST, OLDER, REQUESTS};

/// The architecture that this program runs on, as the kernel names it.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// Calls from here on belong to the 32-bit form of this architecture.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const ERRNO: u32 = 0x0005_0000;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_ABOVE: u16 = 0x35;
const JUMP_ANY: u16 = 0x45;
const RETURN: u16 = 0x06;

const NUMBER_AT: u32 = 0;
const ARCHITECTURE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

/// A file without a name changes nothing that anybody can see; a path handle cannot be written through.
const HARMLESS: u32 = 0o20_000_000 | 0o10_000_000;

/// Access mode, creation, truncation.
const WRITES: u32 = 0o3 | 0o100 | 0o1000;

/// What is to be asked about.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wanted {
    /// Opens for reading as well.
    pub(crate) reads: bool,
}

/// A program for the kernel.
#[derive(Debug)]
pub(crate) struct Filter {
    code: Vec<sock_filter>,
}

impl Filter {
    /// Writes the program.
    pub(crate) fn new(wanted: Wanted) -> Self {
        let mut code = vec![
            load(ARCHITECTURE_AT),
            jump(JUMP_EQUAL, ARCHITECTURE, 1, 0),
            give(ERRNO | enosys()),
            load(NUMBER_AT),
            jump(JUMP_ABOVE, X32, 0, 1),
            give(ERRNO | enosys()),
            // What is not known yet is said, and does not exist.
            jump(JUMP_ABOVE, low(NEWEST + 1), 0, 1),
            give(NOTIFY),
        ];
        // What depends on arguments comes first: the kernel remembers which calls are always allowed, but runs the
        // program for each of these.
        let (opens, others): (Vec<&Shape>, Vec<&Shape>) = COMMON
            .iter()
            .chain(OLDER)
            .partition(|shape| matches!(shape.kind, Kind::Open(Some(_))));
        for shape in opens {
            if let Kind::Open(Some(flags)) = shape.kind {
                code.extend(open(shape, flags, wanted.reads));
            }
        }
        code.extend(ioctl());
        for number in ABSENT {
            code.extend([jump(JUMP_EQUAL, low(*number), 0, 1), give(ERRNO | enosys())]);
        }
        for shape in others {
            code.extend([jump(JUMP_EQUAL, low(shape.number), 0, 1), give(NOTIFY)]);
        }
        code.push(give(ALLOW));
        Self { code }
    }

    /// Lends the program to the kernel. The pointer is good as long as the filter is.
    pub(crate) fn program(&self) -> sock_fprog {
        sock_fprog {
            len: u16::try_from(self.code.len()).unwrap_or(u16::MAX),
            filter: self.code.as_ptr().cast_mut(),
        }
    }
}

/// An open is asked about if its flags say that it writes.
fn open(shape: &Shape, flags: usize, reads: bool) -> [sock_filter; 6] {
    let argument = ARGUMENTS_AT + 8 * u32::try_from(flags).unwrap_or(0);
    [
        jump(JUMP_EQUAL, low(shape.number), 0, 5),
        load(argument),
        jump(JUMP_ANY, HARMLESS, 2, 0),
        jump(JUMP_ANY, WRITES, 0, u8::from(!reads)),
        give(NOTIFY),
        give(ALLOW),
    ]
}

/// Of what is asked of descriptors, only what changes files is asked about.
fn ioctl() -> Vec<sock_filter> {
    let over = u8::try_from(REQUESTS.len() * 2 + 2).unwrap_or(u8::MAX);
    let mut code = vec![
        jump(JUMP_EQUAL, low(libc::SYS_ioctl), 0, over),
        load(ARGUMENTS_AT + 8),
    ];
    for (request, _) in REQUESTS {
        code.extend([jump(JUMP_EQUAL, *request, 0, 1), give(NOTIFY)]);
    }
    code.push(give(ALLOW));
    code
}

fn enosys() -> u32 {
    libc::ENOSYS.unsigned_abs()
}

fn low(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

const fn load(at: u32) -> sock_filter {
    sock_filter {
        code: LOAD,
        jt: 0,
        jf: 0,
        k: at,
    }
}

const fn jump(how: u16, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        code: how,
        jt: if_so,
        jf: if_not,
        k: value,
    }
}

const fn give(what: u32) -> sock_filter {
    sock_filter {
        code: RETURN,
        jt: 0,
        jf: 0,
        k: what,
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod every_call;

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) use super::ARCHITECTURE;

    /// Runs a program as the kernel would.
    pub(super) fn answer(
        filter: &Filter,
        number: i64,
        arguments: [u64; 6],
        architecture: u32,
    ) -> u32 {
        let mut data = Vec::new();
        data.extend(u32::try_from(number).unwrap().to_le_bytes());
        data.extend(architecture.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        for argument in arguments {
            data.extend(argument.to_le_bytes());
        }
        let word = |at: u32| {
            let at = usize::try_from(at).unwrap();
            u32::from_le_bytes(data[at..at + 4].try_into().unwrap())
        };
        let (mut at, mut value) = (0, 0);
        loop {
            let step = &filter.code[at];
            let is_so = match step.code {
                LOAD => {
                    value = word(step.k);
                    at += 1;
                    continue;
                }
                RETURN => return step.k,
                JUMP_EQUAL => value == step.k,
                JUMP_ABOVE => value >= step.k,
                _ => value & step.k != 0,
            };
            at += 1 + usize::from(if is_so { step.jt } else { step.jf });
        }
    }

    fn opened(flags: i32, reads: bool) -> u32 {
        let filter = Filter::new(Wanted { reads });
        let flags = u64::from(flags.cast_unsigned());
        answer(
            &filter,
            libc::SYS_openat,
            [0, 0, flags, 0, 0, 0],
            ARCHITECTURE,
        )
    }

    #[test]
    fn only_opens_that_write_are_asked_about() {
        for (flags, expected) in [
            (libc::O_RDONLY, ALLOW),
            (libc::O_RDONLY | libc::O_DIRECTORY, ALLOW),
            (libc::O_WRONLY, NOTIFY),
            (libc::O_RDWR, NOTIFY),
            (libc::O_RDONLY | libc::O_CREAT, NOTIFY),
            (libc::O_RDONLY | libc::O_TRUNC, NOTIFY),
            (libc::O_TMPFILE | libc::O_RDWR, ALLOW),
            (libc::O_PATH, ALLOW),
        ] {
            assert_eq!(opened(flags, false), expected, "{flags:o}");
        }
        assert_eq!(opened(libc::O_RDONLY, true), NOTIFY);
        assert_eq!(opened(libc::O_PATH, true), ALLOW);
    }

    #[test]
    fn what_cannot_be_seen_does_not_exist() {
        let filter = Filter::new(Wanted::default());
        let nothing = [0; 6];
        for number in ABSENT {
            let answered = answer(&filter, *number, nothing, ARCHITECTURE);
            assert_eq!(answered, ERRNO | enosys());
        }
        let other = answer(&filter, libc::SYS_read, nothing, ARCHITECTURE ^ 1);
        assert_eq!(other, ERRNO | enosys(), "another architecture");
        let x32 = answer(&filter, i64::from(X32), nothing, ARCHITECTURE);
        assert_eq!(x32, ERRNO | enosys());
    }

    #[test]
    fn reads_and_processes_are_left_alone() {
        let filter = Filter::new(Wanted::default());
        for number in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_close,
            libc::SYS_clone,
            libc::SYS_ioctl,
            libc::SYS_dup,
            libc::SYS_pipe2,
        ] {
            assert_eq!(answer(&filter, number, [0; 6], ARCHITECTURE), ALLOW);
        }
        for (request, expected) in [
            (0x5401, ALLOW),
            (0x4008_6602, NOTIFY),
            (0x5000_940f, NOTIFY),
        ] {
            let arguments = [0, request, 0, 0, 0, 0];
            let answered = answer(&filter, libc::SYS_ioctl, arguments, ARCHITECTURE);
            assert_eq!(answered, expected, "{request:x}");
        }
        for number in [
            libc::SYS_unlinkat,
            libc::SYS_renameat2,
            libc::SYS_fchmod,
            NEWEST + 1,
        ] {
            assert_eq!(answer(&filter, number, [0; 6], ARCHITECTURE), NOTIFY);
        }
    }
}
