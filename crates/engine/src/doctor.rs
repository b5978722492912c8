//! Checking the machine and the store by behaviour: what works is found out by doing it.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use backout_capture::{live, overlay};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::lifecycle::with_causes;
use crate::{DoctorReport, Engine, EngineError, Finding};

/// Below this much free space on the state directory's disk, somebody should know.
const FREE_BYTES_MIN: u64 = 256 * 1024 * 1024;

impl Engine {
    /// Checks the store and the file system that holds `directory`; with `repair`, notes which
    /// images are gone and settles what dead processes left. A damaged journal is repaired by [`Engine::repair`].
    pub fn doctor(&self, directory: &Path, repair: bool) -> Result<DoctorReport, EngineError> {
        let repair = repair.then(|| self.repair_images()).transpose()?;
        let mut findings = vec![
            self.check_format(),
            self.check_privacy(),
            self.check_space(),
        ];
        findings.push(self.check_chain()?);
        findings.push(self.check_unfinished()?);
        findings.push(self.check_stuck()?);
        findings.push(self.check_failed()?);
        findings.extend(self.check_sandboxes()?);
        findings.extend(self.check_workspaces()?);
        findings.extend(check_file_system(directory));
        findings.push(check_live());
        findings.push(self.check_overlay());
        Ok(DoctorReport { findings, repair })
    }

    /// Tries a command in layers: it makes a file that nobody outside may see.
    fn check_overlay(&self) -> Finding {
        let id = self.next_id();
        let state = Some(self.store.directory()).filter(|state| state.exists());
        let home = state.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let probe = home.join(format!("probe-{id}"));
        let task = overlay::Invocation {
            program: "true".into(),
            arguments: Vec::new(),
            directory: "/".into(),
            environment: None,
            has_no_network: false,
            streams: overlay::Streams::OursOnStderr,
            time_max: None,
            survivors: overlay::Survivors::End,
        };
        let masks: Vec<PathBuf> = state.map(Path::to_path_buf).into_iter().collect();
        let ran = overlay::run(&task, std::slice::from_ref(&probe), &masks);
        let _gone = overlay::remove(&probe);
        match ran {
            Ok(_) => good(
                "layers",
                "`try` works: commands can run in layers".to_owned(),
            ),
            Err(error) => bad(
                "layers",
                format!("`try` does not work here: {}", with_causes(&error)),
                "use `backout run`, or allow user namespaces and overlays to this user (inside of a container: to the \
                 container)",
            ),
        }
    }

    fn check_format(&self) -> Finding {
        good(
            "store",
            format!(
                "{} in `{}`",
                self.store.form(),
                self.store.directory().display()
            ),
        )
    }

    fn check_privacy(&self) -> Finding {
        let mode = fs::metadata(self.store.directory()).map(|found| found.mode() & 0o777);
        match mode {
            Ok(0o700) => good(
                "privacy",
                "the state directory is closed to others".to_owned(),
            ),
            Ok(mode) => bad(
                "privacy",
                format!("the state directory has mode {mode:04o}"),
                "chmod 700 it: images hold secrets",
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => good(
                "privacy",
                "there is no state directory yet; it is made closed to others".to_owned(),
            ),
            Err(error) => bad(
                "privacy",
                error.to_string(),
                "check that the state directory is there",
            ),
        }
    }

    /// Tells how many bytes are free for the store; none if the disk does not say.
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        free_at(self.store.directory()).ok()
    }

    fn check_space(&self) -> Finding {
        match free_at(self.store.directory()) {
            Ok(free) => {
                let text = format!("{} MiB free for the store", free / (1024 * 1024));
                if free >= FREE_BYTES_MIN {
                    good("space", text)
                } else {
                    bad(
                        "space",
                        text,
                        "make room: a write whose undo cannot be kept is refused",
                    )
                }
            }
            Err(errno) => bad("space", errno.to_string(), "check the disk"),
        }
    }

    fn check_chain(&self) -> Result<Finding, EngineError> {
        let report = self.verify()?;
        let counts = format!(
            "{} records, {} contents, {} kept inodes",
            report.records, report.contents, report.slots
        );
        if !report.findings.is_empty() {
            let number = report.findings.len();
            return Ok(bad(
                "journal",
                format!("{counts}: {number} are not as they must be"),
                "see which, and what can still be undone, with `backout verify`; save what can be saved with \
                 `backout doctor --repair`",
            ));
        }
        Ok(match (report.out_of_reach.first(), report.changed.len()) {
            (Some(first), _) => {
                let text = format!("{counts}: {} out of reach", report.out_of_reach.len());
                bad("journal", text, &format!("`{}`: {}", first.path, first.why))
            }
            (None, 0) => good("journal", format!("{counts}: all as they must be")),
            (None, number) => bad(
                "journal",
                format!("{counts}: {number} changed after being kept"),
                "nothing is given up: it comes back as it is now with `--force`; see which with `backout verify`",
            ),
        })
    }

    fn check_unfinished(&self) -> Result<Finding, EngineError> {
        let armed = self.store.armed()?;
        let dead = armed
            .iter()
            .filter(|op| !self.store.is_alive(&op.owner))
            .count();
        Ok(if dead == 0 {
            good(
                "unfinished",
                format!("{} operations under way, none abandoned", armed.len()),
            )
        } else {
            let text = match dead {
                1 => "1 operation was left behind by a dead process".to_owned(),
                dead => format!("{dead} operations were left behind by dead processes"),
            };
            bad("unfinished", text, "run `backout recover`")
        })
    }

    fn check_failed(&self) -> Result<Finding, EngineError> {
        let failed = self.failed_undos()?;
        Ok(match failed.len() {
            0 => good("failed undos", "none waits for a person".to_owned()),
            number => {
                let text = match number {
                    1 => "1 undo failed and waits for a person".to_owned(),
                    number => format!("{number} undos failed and wait for a person"),
                };
                bad("failed undos", text, "see them with `backout failed`")
            }
        })
    }

    fn check_stuck(&self) -> Result<Finding, EngineError> {
        let stuck = self.store.stuck()?;
        Ok(match stuck.first() {
            None => good("stuck", "nothing waits for a person".to_owned()),
            Some(first) => bad(
                "stuck",
                match stuck.len() {
                    1 => format!(
                        "an operation waits for a decision: {}, {}",
                        first.id.short(),
                        first.status
                    ),
                    number => format!(
                        "{number} operations wait for a decision; the newest is {}, {}",
                        first.id.short(),
                        first.status
                    ),
                },
                &format!(
                    "keep what is there with `backout recover --keep {0}`, or take it back with `backout recover --rollback {0}`; \
                     that needs `--force` where something was done on top of it",
                    first.id.short()
                ),
            ),
        })
    }
}

/// Tries what the file driver relies on, in a directory of the user's choice.
/// Asks the disk that a directory is on, or is going to be on.
fn free_at(directory: &Path) -> Result<u64, rustix::io::Errno> {
    let mut above = directory.ancestors();
    let place = above.find(|place| place.exists());
    let found = rustix::fs::statvfs(place.unwrap_or(Path::new("/")))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn check_file_system(directory: &Path) -> Vec<Finding> {
    let place = directory.display();
    if let Err(error) = fs::read_dir(directory) {
        let text = format!("`{place}` cannot be looked at: {error}");
        return vec![bad(
            "file system",
            text,
            "name a directory that is there and open to you",
        )];
    }
    let nameless = rustix::fs::openat(
        CWD,
        directory,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o600),
    );
    let beneath = rustix::fs::openat2(
        CWD,
        directory,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_MAGICLINKS,
    );
    let mut findings = Vec::new();
    findings.push(match &nameless {
        Ok(_) => good("staging", format!("nameless files work in `{place}`")),
        Err(errno) => bad(
            "staging",
            format!("nameless files do not work in `{place}` ({errno})"),
            "nothing to do: large files are staged in the state directory",
        ),
    });
    findings.push(match beneath {
        Ok(_) => good("resolution", "openat2 works".to_owned()),
        Err(errno) => bad(
            "resolution",
            format!("openat2 does not work ({errno})"),
            "nothing to do: paths are walked step by step",
        ),
    });
    if let Ok(file) = nameless {
        findings.push(check_reflink(directory, &File::from(file)));
    }
    findings
}

fn check_reflink(directory: &Path, source: &File) -> Finding {
    let copy = rustix::fs::openat(
        CWD,
        directory,
        OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
        Mode::from_raw_mode(0o600),
    );
    let cloned = copy.and_then(|copy| rustix::fs::ioctl_ficlone(&copy, source));
    match cloned {
        Ok(()) => good("reflink", "copies share their blocks".to_owned()),
        Err(_) => good(
            "reflink",
            "not on this file system: large files are kept by link".to_owned(),
        ),
    }
}

fn good(check: &str, detail: String) -> Finding {
    Finding {
        check: check.to_owned(),
        is_good: true,
        detail,
        advice: None,
    }
}

fn bad(check: &str, detail: String, advice: &str) -> Finding {
    Finding {
        check: check.to_owned(),
        is_good: false,
        detail,
        advice: Some(advice.to_owned()),
    }
}

/// Tries to be asked before calls, in a process of its own.
fn check_live() -> Finding {
    match live::probe() {
        Ok(()) => good(
            "live capture",
            "`run` works: commands can be watched".to_owned(),
        ),
        Err(error) => bad(
            "live capture",
            format!("`run` cannot watch commands here: {error}"),
            "it needs seccomp user notification (Linux 5.9 or newer, and a container that allows it), and no other \
             watcher; `backout run --roots DIR` compares directories instead",
        ),
    }
}
