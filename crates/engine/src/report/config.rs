//! Reports of what can be wrong with keys of config files. Nothing was written.

use backout_drivers::config::ConfigFault;

use super::{Call, Report};

pub(super) fn report(error: &ConfigFault) -> Report {
    let report = Report::refused(error.to_string()).because_of_causes(error);
    match error {
        ConfigFault::NoFormat { .. } => {
            report.next("say it with `--format json`, `jsonc`, `yaml`, `toml`, `ini` or `env`")
        }
        ConfigFault::Config { cause, .. } => report.next(cause.next()),
        ConfigFault::Recipe { .. } => report.next("use the newer program"),
        ConfigFault::Unreadable(_) | ConfigFault::Contents(_) => {
            report.next_call("see what else is damaged with {}", [Call::of("verify")])
        }
        ConfigFault::File(error) => super::file::report(error),
    }
}
