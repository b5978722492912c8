//! Reports of what can be wrong with our own state.

use backout_storage::StorageError;

use super::{Call, Next, Report};

pub(super) fn report(error: &StorageError) -> Report {
    match error {
        StorageError::StateDir { .. }
        | StorageError::NotOurs { .. }
        | StorageError::AnotherHost { .. }
        | StorageError::InTrial { .. } => directory(error),
        StorageError::ContentGone { digest } => {
            Report::refused("nothing was written: a kept content is gone")
                .because(format!(
                    "the content {} is not in the store, or not any more",
                    digest.short()
                ))
                .next_call("try again; if it stays so, see {}", [Call::of("verify")])
        }
        StorageError::NewerFormat { .. }
        | StorageError::Damaged { .. }
        | StorageError::NotWhole { .. }
        | StorageError::LostRecords { .. }
        | StorageError::InUse { .. } => journal(error),
        StorageError::Gone { path } => Report::broken(format!(
            "the state directory `{}` was deleted while in use",
            path.display()
        ))
        .because("without it nothing can be undone, so nothing is written")
        .next("put it back from a copy, or run the command again to begin with an empty one"),
        StorageError::DiskFull { .. }
        | StorageError::ReadOnly { .. }
        | StorageError::OverCap { .. } => room(error),
        StorageError::Poisoned => {
            Report::broken("the journal takes no more writes in this process")
                .because(
                    "a sync failed, so what is on the disk is unknown until it is opened again",
                )
                .next_call(
                    "check the disk (`dmesg`), then start again and run {}",
                    [Call::of("recover")],
                )
        }
        StorageError::DuplicateId { id } => {
            Report::refused(format!("operation {id} exists already")).next("try again")
        }
        StorageError::Record(error) => Report::broken("the journal's chain is broken")
            .because(error)
            .next_call("see all of the damage with {}", [Call::of("verify")])
            .next_call(
                "save what can be saved with {}",
                [Call::of("doctor").option("repair")],
            ),
        StorageError::Inconsistent { at, detail } => {
            Report::broken(format!("the journal contradicts itself at {at}"))
                .because(detail)
                .next_call("see all of the damage with {}", [Call::of("verify")])
                .next_call(
                    "save what can be saved with {}",
                    [Call::of("doctor").option("repair")],
                )
        }
        StorageError::Database(error) => Report::refused("the journal could not be used")
            .because(error)
            .next_call(
                "try again; if it stays so, {} checks the store",
                [Call::of("doctor")],
            ),
    }
}

fn repair() -> Next {
    Next::naming(
        "save what can be saved with {}; it keeps the damaged files",
        [Call::of("doctor").option("repair")],
    )
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has listed the others"
)]
fn journal(error: &StorageError) -> Report {
    match error {
        StorageError::NewerFormat {
            found,
            supported,
            reader,
        } => Report::broken("the store was written by a newer version of Backout")
            .because(format!(
                "it has format {found}, this program reads up to {supported}"
            ))
            .next(match reader {
                Some(version) => format!("use Backout {version} or newer; nothing was changed"),
                None => "use the newer program; nothing was changed".to_owned(),
            }),
        StorageError::Damaged { path, source } => {
            Report::broken(format!("the journal `{}` is damaged", path.display()))
                .because(source)
                .next(repair())
        }
        StorageError::NotWhole { path, detail } => {
            Report::broken(format!("the journal `{}` is damaged", path.display()))
                .because(*detail)
                .next("put it back from a copy, if there is one")
                .next(repair())
        }
        StorageError::LostRecords { last, had } => {
            Report::broken("the journal has lost its newest records")
                .because(format!(
                    "it ends at record {last}, but it had come to {had}"
                ))
                .next("put `journal.sqlite-wal` back, if it was moved away")
                .next(repair())
        }
        StorageError::InUse { pid } => {
            Report::refused("nothing was repaired: the store is being used")
                .because(if *pid == 0 {
                    "another process has it open".to_owned()
                } else {
                    format!("process {pid} is writing through it")
                })
                .next("try again when it is done")
        }
        other => Report::refused(other.to_string()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has listed the others"
)]
fn directory(error: &StorageError) -> Report {
    match error {
        StorageError::StateDir { path, action, source } => {
            Report::refused(format!("could not {action} `{}`", path.display()))
                .because(source)
                .next("check the path, its permissions and the disk, or choose another with `--state-dir`")
        }
        StorageError::InTrial { path } => Report::refused("`backout` cannot be used inside of a trial")
            .because(format!(
                "`{}` is hidden there, so that what is tried changes nothing",
                path.display()
            ))
            .next("try the command itself, without `backout`: `try` shows what it changes, and applies it as an operation"),
        StorageError::NotOurs { path, uid } => {
            Report::refused(format!("the state directory `{}` is not ours", path.display()))
                .because(format!("it belongs to user {uid}; images are private to one user"))
                .next("choose another with `--state-dir`, or run as that user")
        }
        StorageError::AnotherHost { path, host, is_shared } => {
            let file = path.join("host");
            Report::refused(format!("the state directory `{}` is used by the host `{host}`", path.display()))
                .because(if *is_shared {
                    "it is on a file system that several machines share, and a store serves one machine at a time"
                } else {
                    "that host wrote to it less than a minute ago, and a store serves one machine at a time"
                })
                .next("choose a directory on a disk of this machine with `--state-dir`")
                .next(format!("if `{host}` does not use it any more, remove `{}`", file.display()))
        }
        other => Report::refused(other.to_string()),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the caller has listed the others"
)]
fn room(error: &StorageError) -> Report {
    match error {
        StorageError::DiskFull { path } => Report::refused(format!(
            "no space left for the journal in `{}`",
            path.display()
        ))
        .because("a write whose undo cannot be kept does not happen")
        .next_call(
            "make room on that disk; then {} can let old images go",
            [Call::of("gc")],
        ),
        StorageError::ReadOnly { path } => Report::refused(format!(
            "the state directory `{}` is read-only",
            path.display()
        ))
        .because("a write whose undo cannot be kept does not happen")
        .next("mount it writable, or choose another with `--state-dir`"),
        StorageError::OverCap {
            stored,
            adding,
            cap,
        } => {
            let report = if stored > cap {
                Report::refused("nothing was written: the store is full")
                    .because(format!("it holds {stored} bytes, its cap is {cap}"))
            } else {
                Report::refused("nothing was written: the store has no room for what this replaces")
                    .because(format!("it holds {stored} bytes, and up to {adding} would be kept; its cap is {cap}"))
            };
            report
                .because("nothing in it may be let go yet: it is uncommitted or not an hour old")
                .next_call(
                    "commit or roll back open tasks ({}), then {}",
                    [Call::of("status"), Call::of("gc")],
                )
                .next("raise the cap with `--cap` or BACKOUT_CAP_BYTES")
        }
        other => Report::refused(other.to_string()),
    }
}
