//! What this process was born with and its command must be born with too: signals that are blocked or ignored, limits.

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The signals that were blocked, one bit each.
static BLOCKED: AtomicU64 = AtomicU64::new(0);

/// Whether nobody wanted to hear of a broken pipe. The library's own start changes that, so it is looked at before.
static IGNORES_PIPE: AtomicBool = AtomicBool::new(false);

/// Whether nobody wanted to hear of files that grow too large.
static IGNORES_SIZE: AtomicBool = AtomicBool::new(false);

/// The limits that this process lifted for itself, as they were.
static LIMITS: OnceLock<Vec<(Resource, libc::rlimit)>> = OnceLock::new();

#[cfg(target_env = "musl")]
type Resource = c_int;
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

/// What a command may be limited in, and its watcher should not be.
const LIFTED: [Resource; 5] = [
    libc::RLIMIT_FSIZE,
    libc::RLIMIT_CPU,
    libc::RLIMIT_AS,
    libc::RLIMIT_DATA,
    libc::RLIMIT_NOFILE,
];

const SIGNALS_MAX: c_int = 64;

// SAFETY: the loader calls what it finds here once, before anything else of the program.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Looks at how this process was born.
extern "C" fn look() {
    // SAFETY: sets and actions of our own are filled; nothing is changed.
    unsafe {
        let mut blocked: libc::sigset_t = zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, ptr::null(), &raw mut blocked);
        let is_in = |signal: &c_int| libc::sigismember(&raw const blocked, *signal) == 1;
        let bits = (1..=SIGNALS_MAX)
            .filter(is_in)
            .map(|signal| 1_u64 << (signal - 1));
        BLOCKED.store(bits.fold(0, |all, one| all | one), Ordering::Relaxed);
        for (signal, ignores) in [
            (libc::SIGPIPE, &IGNORES_PIPE),
            (libc::SIGXFSZ, &IGNORES_SIZE),
        ] {
            let mut action: libc::sigaction = zeroed();
            libc::sigaction(signal, ptr::null(), &raw mut action);
            ignores.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
        }
    }
}

/// Takes limits off this process that are meant for the command, as far as it may. The command gets them back.
pub fn lift_limits() {
    LIMITS.get_or_init(|| {
        // Where a limit stays, what cannot be written is an error, and not the end.
        // SAFETY: a plain call.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        LIFTED.into_iter().filter_map(lift).collect()
    });
}

fn lift(resource: Resource) -> Option<(Resource, libc::rlimit)> {
    // SAFETY: the kernel fills and reads structures of our own.
    unsafe {
        let mut was: libc::rlimit = zeroed();
        if libc::getrlimit(resource, &raw mut was) != 0 {
            return None;
        }
        let none = libc::rlimit {
            rlim_cur: libc::RLIM_INFINITY,
            rlim_max: libc::RLIM_INFINITY,
        };
        let is_lifted =
            resource != libc::RLIMIT_NOFILE && libc::setrlimit(resource, &raw const none) == 0;
        if !is_lifted {
            let most = libc::rlimit {
                rlim_cur: was.rlim_max,
                ..was
            };
            libc::setrlimit(resource, &raw const most);
        }
        Some((resource, was))
    }
}

/// Makes a new process as this one was born.
///
/// # Safety
///
/// Only in a child right after `fork`.
pub(super) unsafe fn as_born() {
    // SAFETY: plain calls on our own memory.
    unsafe {
        for (resource, was) in LIMITS.get().into_iter().flatten() {
            libc::setrlimit(*resource, &raw const *was);
        }
        for (signal, ignores) in [
            (libc::SIGPIPE, &IGNORES_PIPE),
            (libc::SIGXFSZ, &IGNORES_SIZE),
        ] {
            if !ignores.load(Ordering::Relaxed) {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
        let mut blocked: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut blocked);
        let bits = BLOCKED.load(Ordering::Relaxed);
        for signal in (1..=SIGNALS_MAX).filter(|signal| bits & (1 << (signal - 1)) != 0) {
            libc::sigaddset(&raw mut blocked, signal);
        }
        libc::sigprocmask(libc::SIG_SETMASK, &raw const blocked, ptr::null_mut());
    }
}
