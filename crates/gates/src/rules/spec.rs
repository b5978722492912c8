//! Which keys a `backout.toml` may have, what each holds, and what it is for.
//!
//! One table for all: mistakes are found by it, the JSON Schema is made from it, and `config show` words it.

use super::spec_calls::COMPENSATION;

/// What a key holds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// True or false.
    Bool,
    /// No one checks what it says.
    Text,
    /// A length of time, or "never" if that is allowed.
    Time {
        /// Whether "never" is.
        never: bool,
        /// Whether nothing is: a limit of nothing lets nobody pass.
        nothing: bool,
    },
    /// A number of bytes: "10KB", "1MiB", or a number.
    Size,
    /// A whole number in a range.
    Count {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// One of some words.
    Word(&'static [&'static str]),
    /// A list of some words.
    Words(&'static [&'static str]),
    /// Patterns of paths.
    Patterns,
    /// A program and its arguments.
    Command,
    /// Formats of texts, by pattern.
    Formats,
    /// Texts, by any name.
    Texts,
    /// Any value.
    Any,
    /// A list of rules about values.
    Values,
    /// With these keys and no other.
    Table(&'static [Key]),
    /// Any number of tables.
    Tables(&'static [Key]),
    /// Tables by the name of a severity.
    BySeverity(&'static [Key]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it is for, in one line.
    pub(crate) about: &'static str,
}

pub(super) const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, kind, about }
}

/// What follows from a finding.
pub(crate) const OUTCOMES: &[&str] = &["deny", "ask", "warn", "off"];

/// What follows where nothing can be switched off.
const OUTCOMES_ON: &[&str] = &["deny", "ask", "warn"];

/// How bad a rollback is, by what set it off.
pub(crate) const SEVERITIES: &[&str] = &["low", "medium", "high", "critical"];

/// The operations that rules may name.
pub(crate) const OPERATIONS: &[&str] = &[
    "write", "edit", "append", "remove", "move", "copy", "mkdir", "link", "chmod", "chown",
    "restore", "batch", "run",
];

/// The version of the file that this program reads.
pub(crate) const VERSION: i64 = 1;

const MOST: i64 = 1 << 53;

/// The whole file.
pub(crate) const FILE: &[Key] = &[
    key(
        "version",
        Kind::Count { min: 1, max: MOST },
        "The version of this file's form: 1.",
    ),
    key(
        "protect",
        Kind::Table(PROTECT),
        "Which paths nobody writes, and which somebody must approve.",
    ),
    key(
        "syntax",
        Kind::Table(SYNTAX),
        "Files in a known format are parsed before they are written.",
    ),
    key("policy", Kind::Table(POLICY), "Rules that are built in."),
    key(
        "check",
        Kind::Tables(CHECK),
        "A check of new content, before it is written.",
    ),
    key(
        "rule",
        Kind::Tables(RULE),
        "A condition on a whole operation, in CEL.",
    ),
    key(
        "watch",
        Kind::Tables(WATCH),
        "A look at the world after a write; if it fails, the write is taken back.",
    ),
    key(
        "compensation",
        Kind::Tables(COMPENSATION),
        "Which call takes back which call of a service.",
    ),
    key("risk", Kind::Table(RISK), "Which writes wait for a person."),
    key(
        "notify",
        Kind::Table(NOTIFY),
        "Who is told when something waits, or an undo fails for good.",
    ),
    key(
        "ladder",
        Kind::BySeverity(LADDER),
        "What follows an undo that fails.",
    ),
    key(
        "triggers",
        Kind::Table(TRIGGERS),
        "What becomes of a stage that fails, and of work that a dead agent left.",
    ),
    key(
        "checkpoints",
        Kind::Table(CHECKPOINTS),
        "When an agent's state is kept.",
    ),
    key(
        "agents",
        Kind::Table(AGENTS),
        "The coding agents whose hooks call Backout.",
    ),
];

/// What follows when a hook of ours fails.
pub(crate) const ON_HOOK_FAILURE: &[&str] = &["refuse", "pass"];

const AGENTS: &[Key] = &[key(
    "on-failure",
    Kind::Word(ON_HOOK_FAILURE),
    "What a hook does when it fails itself: \"refuse\" unless you say otherwise. Only your own file counts.",
)];

/// What a trigger does.
pub(crate) const ACTIONS: &[&str] = &["rollback", "keep", "ask"];

const TRIGGERS: &[Key] = &[
    key(
        "plan-failure",
        Kind::Word(ACTIONS),
        "A step failed, and there is no way on; \"rollback\" unless you say otherwise.",
    ),
    key(
        "user-rejection",
        Kind::Word(ACTIONS),
        "A person looked at the outcome and said no; \"rollback\" unless you say otherwise.",
    ),
    key(
        "policy-violation",
        Kind::Word(ACTIONS),
        "A rule was broken; \"rollback\" unless you say otherwise. If you say so here, an invariant of severity high that an update of the graph breaks does it, too.",
    ),
    key(
        "manual-abort",
        Kind::Word(ACTIONS),
        "Somebody stopped it; \"rollback\" unless you say otherwise.",
    ),
    key(
        "transaction-abort",
        Kind::Word(ACTIONS),
        "What a dead agent did after its checkpoint; \"rollback\" unless you say otherwise.",
    ),
    key(
        "user-request",
        Kind::Word(ACTIONS),
        "Somebody asked for it; \"rollback\" unless you say otherwise.",
    ),
];

const CHECKPOINTS: &[Key] = &[key(
    "every",
    Kind::Count {
        min: 1,
        max: 1_000_000,
    },
    "After how many operations another checkpoint is due; 10 unless you say otherwise.",
)];

const PROTECT: &[Key] = &[
    key("deny", Kind::Patterns, "Paths that nobody writes."),
    key(
        "ask",
        Kind::Patterns,
        "Paths that are written when somebody approves.",
    ),
    key(
        "expires",
        Kind::Time {
            never: true,
            nothing: false,
        },
        "How long a proposal waits; 24h unless you say otherwise.",
    ),
];

const SYNTAX: &[Key] = &[
    key("skip", Kind::Patterns, "Paths that are not parsed."),
    key(
        "formats",
        Kind::Formats,
        "The format of files whose name does not tell it.",
    ),
    key(
        "on-failure",
        Kind::Word(OUTCOMES),
        "What follows from a mistake; \"deny\" unless you say otherwise.",
    ),
];

const POLICY: &[Key] = &[
    key(
        "secrets",
        Kind::Word(OUTCOMES),
        "Tokens, private keys and passwords in new content.",
    ),
    key(
        "permissions",
        Kind::Word(OUTCOMES),
        "Modes that let everybody write, or that lend rights.",
    ),
    key(
        "wildcard-iam",
        Kind::Word(OUTCOMES),
        "Access policies that allow everything.",
    ),
    key(
        "files-max",
        Kind::Count { min: 0, max: MOST },
        "How many files one operation may change without consent.",
    ),
    key(
        "bytes-max",
        Kind::Size,
        "How many bytes one operation may write or remove without consent.",
    ),
    key(
        "removed-percent-max",
        Kind::Count { min: 0, max: 100 },
        "How much of a directory's files one operation may remove without consent.",
    ),
];

const CHECK: &[Key] = &[
    key(
        "name",
        Kind::Text,
        "What the check is called when it fails.",
    ),
    key(
        "paths",
        Kind::Patterns,
        "Which files it is for; all, if this is not given.",
    ),
    key(
        "formats",
        Kind::Words(FORMATS),
        "Only files in one of these formats.",
    ),
    key(
        "operations",
        Kind::Words(OPERATIONS),
        "Only these operations.",
    ),
    key(
        "schema",
        Kind::Text,
        "A file with a JSON Schema, beside this one.",
    ),
    key("values", Kind::Values, "Rules about values of keys."),
    key(
        "structure",
        Kind::Bool,
        "Whether an edit may move more keys than its lines suggest.",
    ),
    key(
        "command",
        Kind::Command,
        "A program that checks {staged}; exit code 0 is a pass.",
    ),
    key(
        "timeout",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long the program may take; 10s unless you say otherwise.",
    ),
    key(
        "output-max",
        Kind::Size,
        "How much of the program's words is kept; 16KiB unless you say otherwise.",
    ),
    key(
        "on-failure",
        Kind::Word(OUTCOMES_ON),
        "What follows if it fails; \"deny\" unless you say otherwise.",
    ),
];

const RULE: &[Key] = &[
    key("name", Kind::Text, "What the rule is called."),
    key("when", Kind::Text, "A condition in CEL over `operation`."),
    key(
        "rego",
        Kind::Text,
        "A file with a policy in Rego, instead; in builds that know it.",
    ),
    key(
        "then",
        Kind::Word(OUTCOMES_ON),
        "What follows if it holds; \"deny\" unless you say otherwise.",
    ),
    key("because", Kind::Text, "What is told then."),
    key("remedy", Kind::Text, "What would make it pass."),
];

const WATCH: &[Key] = &[
    key(
        "name",
        Kind::Text,
        "What the check is called when it fails.",
    ),
    key("paths", Kind::Patterns, "Which writes it is for."),
    key(
        "operations",
        Kind::Words(OPERATIONS),
        "Only these operations.",
    ),
    key(
        "reload",
        Kind::Command,
        "A program to run after the write, and again if it is taken back.",
    ),
    key(
        "command",
        Kind::Command,
        "A program that tells by exit code 0 that all is well.",
    ),
    key("http", Kind::Text, "A URL that answers if all is well."),
    key(
        "status",
        Kind::Count { min: 100, max: 599 },
        "The status that it answers with; 200 unless you say otherwise.",
    ),
    key("contains", Kind::Text, "A text that is in the answer."),
    key(
        "window",
        Kind::Time {
            never: false,
            nothing: true,
        },
        "How long it has to stay well; one look is enough unless you say otherwise.",
    ),
    key(
        "tries",
        Kind::Count { min: 1, max: 1000 },
        "How often it may fail in a row; 3 unless you say otherwise.",
    ),
    key(
        "pause",
        Kind::Time {
            never: false,
            nothing: true,
        },
        "How long to wait between two looks; 1s unless you say otherwise.",
    ),
    key(
        "timeout",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long one try may take; 10s unless you say otherwise.",
    ),
];

const RISK: &[Key] = &[
    key(
        "low-bytes-max",
        Kind::Size,
        "One file up to this size is low risk; 10KB unless you say otherwise.",
    ),
    key(
        "medium-paths",
        Kind::Patterns,
        "Writes here are at least of medium risk.",
    ),
    key(
        "high-paths",
        Kind::Patterns,
        "Writes here are of high risk.",
    ),
    key(
        "high-operations",
        Kind::Words(OPERATIONS),
        "These operations are of high risk.",
    ),
    key(
        "medium",
        Kind::Word(RISK_OUTCOMES),
        "What becomes of medium risk; \"ask\" unless you say otherwise.",
    ),
    key(
        "high",
        Kind::Word(RISK_OUTCOMES),
        "What becomes of high risk; \"ask\" unless you say otherwise.",
    ),
    key(
        "medium-waits",
        Kind::Time {
            never: true,
            nothing: false,
        },
        "How long medium risk waits until it is refused; 1h unless you say otherwise.",
    ),
];

/// What becomes of a risk.
pub(crate) const RISK_OUTCOMES: &[&str] = &["allow", "ask", "deny"];

const NOTIFY: &[Key] = &[
    key(
        "command",
        Kind::Command,
        "A program that is told, as JSON on its standard input.",
    ),
    key(
        "webhook",
        Kind::Text,
        "An http:// URL that is told, as JSON.",
    ),
    key(
        "webhook-secret-file",
        Kind::Text,
        "A file with the key that signs what the webhook gets.",
    ),
    key("desktop", Kind::Bool, "Whether the desktop shows it."),
    key(
        "timeout",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long each of them may take; 10s unless you say otherwise.",
    ),
];

const LADDER: &[Key] = &[
    key(
        "retries",
        Kind::Count { min: 0, max: 100 },
        "How often an undo is tried again.",
    ),
    key(
        "backoff",
        Kind::Time {
            never: false,
            nothing: true,
        },
        "The pause before the first retry; it doubles.",
    ),
    key(
        "fallback",
        Kind::Bool,
        "Whether another way to bring it back is tried.",
    ),
    key(
        "restore",
        Kind::Command,
        "A program that restores the environment.",
    ),
    key(
        "timeout",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long the program may take; 10s unless you say otherwise.",
    ),
    key(
        "accept-partial",
        Kind::Bool,
        "Whether what stays is accepted without a person.",
    ),
];

/// The formats that are built in, by name.
pub(crate) const FORMATS: &[&str] = &[
    "json",
    "jsonc",
    "yaml",
    "toml",
    "xml",
    "ini",
    "env",
    "shell",
    "sql",
    "hcl",
    "dockerfile",
    "python",
    "javascript",
    "typescript",
    "tsx",
    "rust",
    "go",
    "c",
];

/// What a rule about values may say.
pub(crate) const VALUE: &[Key] = &[
    key("key", Kind::Text, "The key; `*` for any one level."),
    key("required", Kind::Bool, "Whether it must be there."),
    key("min", Kind::Text, "The smallest number."),
    key("max", Kind::Text, "The largest number."),
    key(
        "pattern",
        Kind::Text,
        "A regular expression that it matches.",
    ),
    key("one-of", Kind::Text, "The values that it may have."),
    key("type", Kind::Text, "The type that it has."),
    key("exists", Kind::Bool, "Whether it is a path that exists."),
    key("unique", Kind::Bool, "Whether no two are the same."),
    key(
        "refers-to",
        Kind::Text,
        "A key whose values it must be one of.",
    ),
];
