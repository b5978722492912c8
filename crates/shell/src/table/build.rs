//! Build tools and package managers, by their subcommand.

use super::{Answer, Call, Rule, no_hidden_flags};
use crate::flags::{self, Options, Parsed};
use crate::verdict::Finding;

/// The verbs of a tool: those that only read, and those that surely write. The rest is unknown.
#[derive(Debug)]
struct Verbs {
    reads: &'static [&'static str],
    writes: &'static [&'static str],
}

static CARGO: Verbs = Verbs {
    reads: &["version", "help", "locate-project", "read-manifest"],
    writes: &[
        "build",
        "b",
        "check",
        "c",
        "clippy",
        "test",
        "t",
        "bench",
        "run",
        "r",
        "doc",
        "d",
        "fmt",
        "fix",
        "add",
        "remove",
        "rm",
        "update",
        "install",
        "uninstall",
        "clean",
        "new",
        "init",
        "publish",
        "package",
        "vendor",
        "yank",
        "fetch",
        "generate-lockfile",
        "nextest",
        "rustc",
        "rustdoc",
        "login",
        "logout",
        "owner",
    ],
};

// It writes a log on every run.
static NPM: Verbs = Verbs {
    reads: &[],
    writes: &[
        "install",
        "i",
        "ci",
        "add",
        "uninstall",
        "remove",
        "rm",
        "un",
        "update",
        "up",
        "upgrade",
        "publish",
        "unpublish",
        "init",
        "create",
        "link",
        "unlink",
        "prune",
        "dedupe",
        "rebuild",
        "pack",
        "version",
        "cache",
        "login",
        "logout",
        "shrinkwrap",
        "set",
        "pkg",
    ],
};

static PIP: Verbs = Verbs {
    reads: &[
        "list", "show", "freeze", "check", "help", "debug", "inspect",
    ],
    writes: &["install", "uninstall", "download", "wheel", "cache", "lock"],
};

static UV: Verbs = Verbs {
    reads: &["help"],
    writes: &[
        "add", "remove", "sync", "lock", "init", "venv", "build", "publish", "cache", "pip",
        "tool", "python", "run",
    ],
};

static GO: Verbs = Verbs {
    reads: &["version", "help", "doc"],
    writes: &[
        "build", "install", "get", "mod", "generate", "fmt", "clean", "test", "run", "work",
    ],
};

/// Finds a tool.
pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(Rule::Ask(match name {
        "cargo" => |call| by_verb(call, &CARGO),
        "npm" | "pnpm" | "yarn" => |call| by_verb(call, &NPM),
        "pip" | "pip3" => |call| by_verb(call, &PIP),
        "uv" => |call| by_verb(call, &UV),
        "go" => |call| by_verb(call, &GO),
        "npx" | "uvx" => |call| {
            Finding::unknown(
                format!("`{}` runs a program that is not read", call.name),
                call.raw,
            )
            .into()
        },
        _ => return None,
    }))
}

fn by_verb(call: &Call<'_>, verbs: &Verbs) -> Answer {
    let options = Options {
        ends_at_operand: true,
        ..Options::default()
    };
    let parsed = flags::read(call.words, &options);
    finding(call, verbs, &parsed).into()
}

fn finding(call: &Call<'_>, verbs: &Verbs, parsed: &Parsed<'_>) -> Finding {
    let Some(verb) = parsed
        .operands
        .iter()
        .find(|word| !word.lead.starts_with('+'))
    else {
        let is_about_itself = parsed
            .flags
            .iter()
            .all(|flag| flag.is('V', "version") || flag.is('h', "help") || flag.is('v', "list"));
        return if is_about_itself {
            Finding::reads(format!("`{}` only tells about itself", call.name), call.raw)
        } else {
            Finding::unknown(
                format!("`{}` has no verb that is known", call.name),
                call.raw,
            )
        };
    };
    // A flag in front of the verb may take the next word as its value.
    if let Some(flag) = parsed.flags.first() {
        return Finding::unknown(
            format!("`{} {}` is not read", call.name, flag.word.raw),
            call.raw,
        )
        .and(&flag.word.raw);
    }
    match verb.text() {
        Some(text) if verbs.reads.contains(&text) => {
            no_hidden_flags(call, parsed).unwrap_or_else(|| {
                Finding::reads(format!("`{} {text}` only reads", call.name), call.raw).and(text)
            })
        }
        Some(text) if verbs.writes.contains(&text) => {
            Finding::writes(format!("`{} {text}` writes files", call.name), call.raw).and(text)
        }
        _ => Finding::unknown(
            format!("`{} {}` is not known", call.name, verb.raw),
            call.raw,
        )
        .and(&verb.raw),
    }
}
