//! What is told of what can be wrong with keys of config files. Nothing was written.

use backout_config::ConfigError;
use backout_model::report::{Call, ErrorCode, Report};

use super::error::ConfigFault;
use crate::file::report::report as report_of_file;

/// Tells an error, with the word that programs know it by.
pub(super) fn report(error: &ConfigFault) -> Report {
    told(error).code(code(error))
}

fn told(error: &ConfigFault) -> Report {
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
        ConfigFault::File(error) => report_of_file(error),
    }
}

fn code(error: &ConfigFault) -> ErrorCode {
    match error {
        ConfigFault::NoFormat { .. } => ErrorCode::ConfigFormat,
        ConfigFault::Config { cause, .. } => match cause {
            ConfigError::Syntax { .. }
            | ConfigError::NotUtf8 { .. }
            | ConfigError::OverLimit { .. } => ErrorCode::ConfigSyntax,
            ConfigError::Unclear { .. }
            | ConfigError::TypeChange { .. }
            | ConfigError::BadValue { .. }
            | ConfigError::NotATable { .. }
            | ConfigError::Unwritable { .. } => ErrorCode::ConfigValue,
            ConfigError::KeySyntax { .. }
            | ConfigError::NoSuchKeys { .. }
            | ConfigError::Duplicate { .. }
            | ConfigError::Ambiguous { .. }
            | ConfigError::WrongKind { .. }
            | ConfigError::NoIndex { .. }
            | ConfigError::Missing { .. }
            | ConfigError::Shared { .. }
            | ConfigError::Unsupported { .. }
            | ConfigError::Disturbs { .. }
            | ConfigError::Conflict { .. }
            | ConfigError::Remarked { .. }
            | ConfigError::Moved { .. } => ErrorCode::ConfigKey,
        },
        ConfigFault::Recipe { .. } => ErrorCode::NewerRecipe,
        ConfigFault::Unreadable(_) | ConfigFault::Contents(_) => ErrorCode::Damaged,
        ConfigFault::File(error) => report_of_file(error).code,
    }
}
