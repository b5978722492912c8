//! `git`, by its subcommand.
//!
//! What the configuration of a repository makes git run (a pager, a filter, a file-system monitor) is not seen.
//! `status` and `diff` refresh the index on the way, so nobody can tell beforehand whether they write.

use super::text::only_version;
use super::{Answer, Bad, Call, by_flags, hides, no_hidden_flags, writes};
use crate::flags::{self, Options, Parsed};
use crate::verdict::{Class, Finding};
use crate::word::Word;

const GLOBAL: Options = Options {
    values: "Cc",
    optional: "",
    long_values: &[
        "git-dir",
        "work-tree",
        "namespace",
        "super-prefix",
        "config-env",
        "attr-source",
    ],
    ends_at_operand: true,
};

const GLOBAL_BAD: [Bad; 4] = [
    hides('c', "config-env", "sets what git runs"),
    hides(' ', "exec-path", "sets what git runs"),
    hides('p', "paginate", "runs a pager"),
    hides(' ', "super-prefix", "is not known"),
];

/// Flags with which a reader of history no longer only reads.
const READER_BAD: [Bad; 6] = [
    writes(' ', "output", "writes its output to a file"),
    hides(' ', "open-files-in-pager", "runs a program"),
    hides(' ', "ext-diff", "runs a program"),
    hides(' ', "textconv", "runs a program"),
    hides(' ', "filters", "runs a program"),
    hides(' ', "dirty", "may refresh the index"),
];

const READERS: [&str; 35] = [
    "log",
    "show",
    "blame",
    "annotate",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "cat-file",
    "grep",
    "shortlog",
    "describe",
    "name-rev",
    "merge-base",
    "rev-list",
    "for-each-ref",
    "show-ref",
    "diff-tree",
    "diff-index",
    "diff-files",
    "var",
    "count-objects",
    "version",
    "check-ignore",
    "check-attr",
    "check-mailmap",
    "check-ref-format",
    "show-branch",
    "whatchanged",
    "cherry",
    "range-diff",
    "get-tar-commit-id",
    "patch-id",
    "stripspace",
    "verify-pack",
    "column",
];

const WRITERS: [&str; 58] = [
    "add",
    "am",
    "apply",
    "archive",
    "bundle",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "clone",
    "commit",
    "commit-graph",
    "commit-tree",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "format-patch",
    "gc",
    "hash-object",
    "index-pack",
    "init",
    "init-db",
    "maintenance",
    "merge",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "mv",
    "pack-objects",
    "pack-refs",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "read-tree",
    "rebase",
    "receive-pack",
    "repack",
    "replace",
    "rerere",
    "reset",
    "restore",
    "revert",
    "rm",
    "send-email",
    "sparse-checkout",
    "switch",
    "symbolic-ref",
    "unpack-objects",
    "update-index",
    "update-ref",
    "update-server-info",
    "write-tree",
    "lfs",
];

/// Judges a `git`.
pub(super) fn judge(call: &Call<'_>) -> Answer {
    if let Some(finding) = only_version(call) {
        return finding.into();
    }
    let global = flags::read(call.words, &GLOBAL);
    let before = by_flags(call, &global, &GLOBAL_BAD);
    let Some((verb, words)) = global.rest.split_first() else {
        return before.into();
    };
    let Some(name) = verb.text() else {
        return Finding::unknown("its subcommand is not known", call.raw)
            .and(&verb.raw)
            .into();
    };
    let is_quiet = global.has(' ', "no-optional-locks");
    let finding = subcommand(call, name, words, is_quiet).and(name);
    if finding.class >= before.class {
        finding.into()
    } else {
        before.into()
    }
}

fn subcommand(call: &Call<'_>, name: &str, words: &[Word], is_quiet: bool) -> Finding {
    let inner = Call { words, ..*call };
    let options = Options {
        values: if name == "grep" { "efABCmO" } else { "nGSLlO" },
        long_values: &[
            "format",
            "sort",
            "author",
            "grep",
            "since",
            "until",
            "max-count",
            "output",
        ],
        ..Options::default()
    };
    let parsed = flags::read(words, &options);
    let mut reads = by_flags(&inner, &parsed, &READER_BAD);
    if reads.class == Class::ReadOnly {
        reads.because = format!("`git {name}` only reads");
    }
    match name {
        "grep" if parsed.flags.iter().any(|flag| flag.short == Some('O')) => {
            Finding::unknown("`git grep -O` runs a program", call.raw).and("-O")
        }
        "diff"
            if ["cached", "staged", "no-index"]
                .iter()
                .any(|long| parsed.has(' ', long)) =>
        {
            reads
        }
        "diff" => reads.or_worse(refreshes(call, name)),
        "status" if is_quiet => reads,
        "status" => refreshes(call, name),
        _ if READERS.contains(&name) => reads,
        _ if WRITERS.contains(&name) => writes_it(call, name),
        "branch" | "tag" => names(&inner, name, &parsed),
        "remote" => by_verb(&inner, name, &parsed, &["get-url"], &["show"]),
        "stash" => by_verb_only(&inner, name, &parsed, &["list", "show"]),
        "reflog" => by_verb(&inner, name, &parsed, &["show", "exists"], &[]),
        "worktree" => by_verb_only(&inner, name, &parsed, &["list"]),
        "notes" => by_verb(&inner, name, &parsed, &["list", "show"], &[]),
        "submodule" => by_verb(
            &inner,
            name,
            &parsed,
            &[],
            &["status", "summary", "foreach"],
        ),
        "bisect" => by_verb_only(&inner, name, &parsed, &["log"]),
        "config" => config(&inner, &parsed),
        "ls-remote" => Finding::unknown("`git ls-remote` talks to the network", call.raw),
        _ => Finding::unknown(
            format!("`git {name}` may be an alias or an extension"),
            call.raw,
        ),
    }
}

fn refreshes(call: &Call<'_>, name: &str) -> Finding {
    Finding::unknown(format!("`git {name}` may refresh the index"), call.raw)
}

fn writes_it(call: &Call<'_>, name: &str) -> Finding {
    Finding::writes(format!("`git {name}` writes"), call.raw)
}

fn reads_it(call: &Call<'_>, name: &str, parsed: &Parsed<'_>) -> Finding {
    no_hidden_flags(call, parsed)
        .unwrap_or_else(|| Finding::reads(format!("`git {name}` only lists"), call.raw))
}

/// Judges `branch` and `tag`: they list, unless a name or another flag is given.
fn names(call: &Call<'_>, name: &str, parsed: &Parsed<'_>) -> Finding {
    let lists = [
        "list",
        "show-current",
        "contains",
        "no-contains",
        "merged",
        "no-merged",
        "points-at",
    ];
    let harmless = [
        "all",
        "remotes",
        "verbose",
        "no-color",
        "color",
        "format",
        "sort",
        "column",
        "no-column",
        "ignore-case",
        "no-abbrev",
        "abbrev",
    ];
    let letters = if name == "branch" { "arvqli" } else { "li" };
    let is_known = parsed
        .flags
        .iter()
        .all(|flag| match (flag.short, flag.long) {
            (Some(short), _) => {
                letters.contains(short)
                    || (name == "tag" && (short == 'n' || short.is_ascii_digit()))
            }
            (None, Some(long)) => lists.contains(&long) || harmless.contains(&long),
            (None, None) => false,
        });
    let is_list = parsed.flags.iter().any(|flag| {
        flag.short == Some('l')
            || (name == "tag" && flag.short == Some('n'))
            || flag.long.is_some_and(|long| lists.contains(&long))
    });
    if is_known && (is_list || parsed.operands.is_empty()) {
        reads_it(call, name, parsed)
    } else {
        writes_it(call, name)
    }
}

/// Judges a subcommand with verbs of its own, which lists without one.
fn by_verb(
    call: &Call<'_>,
    name: &str,
    parsed: &Parsed<'_>,
    reads: &[&str],
    hidden: &[&str],
) -> Finding {
    match parsed.operands.first().map(|verb| verb.text()) {
        None if name != "submodule" => reads_it(call, name, parsed),
        None => refreshes(call, name),
        Some(Some(verb)) if reads.contains(&verb) => reads_it(call, name, parsed),
        Some(Some(verb)) if hidden.contains(&verb) => {
            Finding::unknown(format!("`git {name} {verb}` asks others"), call.raw)
        }
        Some(Some(_)) => writes_it(call, name),
        Some(None) => Finding::unknown("its verb is not known", call.raw),
    }
}

/// Judges a subcommand with verbs of its own, which writes without one.
fn by_verb_only(call: &Call<'_>, name: &str, parsed: &Parsed<'_>, reads: &[&str]) -> Finding {
    if parsed.operands.is_empty() && parsed.opens.is_empty() {
        return writes_it(call, name);
    }
    by_verb(call, name, parsed, reads, &[])
}

fn config(call: &Call<'_>, parsed: &Parsed<'_>) -> Finding {
    let lists = [
        "list",
        "get",
        "get-all",
        "get-regexp",
        "get-urlmatch",
        "get-color",
        "get-colorbool",
    ];
    let sets = [
        "unset",
        "unset-all",
        "add",
        "replace-all",
        "rename-section",
        "remove-section",
        "edit",
    ];
    let has = |names: &[&str], short: char| {
        parsed.flags.iter().any(|flag| {
            flag.short == Some(short) || flag.long.is_some_and(|long| names.contains(&long))
        })
    };
    let verb = parsed.operands.first().and_then(|word| word.text());
    let asks = has(&lists, 'l') || verb.is_some_and(|verb| verb == "list" || verb == "get");
    let is_one_key = parsed.operands.len() == 1 && verb.is_some_and(|verb| verb.contains('.'));
    if !has(&sets, 'e') && (asks || is_one_key) {
        reads_it(call, "config", parsed)
    } else {
        writes_it(call, "config")
    }
}
