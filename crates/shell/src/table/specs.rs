//! Programs that only read, but for some of their flags.

use super::{Rule, Spec, hides, writes};
use crate::flags::Options;

const NONE: Options = Options {
    values: "",
    optional: "",
    long_values: &[],
    ends_at_operand: false,
};

static SORT: Spec = Spec {
    options: Options {
        values: "koStT",
        long_values: &[
            "key",
            "output",
            "field-separator",
            "buffer-size",
            "temporary-directory",
            "batch-size",
            "parallel",
            "compress-program",
            "files0-from",
            "random-source",
            "sort",
        ],
        ..NONE
    },
    bad: &[
        writes('o', "output", "writes its output to a file"),
        hides(' ', "compress-program", "runs a program"),
    ],
};

static SHUF: Spec = Spec {
    options: Options {
        values: "ino",
        long_values: &["input-range", "head-count", "output", "random-source"],
        ..NONE
    },
    bad: &[writes('o', "output", "writes its output to a file")],
};

static TREE: Spec = Spec {
    options: Options {
        values: "LPIHTo",
        long_values: &["filelimit", "charset", "timefmt", "sort"],
        ..NONE
    },
    bad: &[
        writes('o', "", "writes its output to a file"),
        writes('R', "", "writes a file in every directory"),
    ],
};

static FILE: Spec = Spec {
    options: Options {
        values: "feFmPM",
        long_values: &[
            "exclude",
            "separator",
            "magic-file",
            "files-from",
            "parameter",
        ],
        ..NONE
    },
    bad: &[writes('C', "compile", "writes a magic file")],
};

static RIPGREP: Spec = Spec {
    options: Options {
        values: "ABCEMTegfjmrtd",
        long_values: &[
            "after-context",
            "before-context",
            "context",
            "regexp",
            "glob",
            "iglob",
            "file",
            "threads",
            "max-count",
            "replace",
            "type",
            "type-not",
            "max-depth",
            "encoding",
            "max-columns",
            "color",
            "colors",
            "sort",
            "sortr",
            "type-add",
            "type-clear",
            "path-separator",
            "engine",
            "max-filesize",
            "context-separator",
            "field-context-separator",
            "field-match-separator",
            "ignore-file",
            "dfa-size-limit",
            "regex-size-limit",
            "pre-glob",
            "pre",
            "hostname-bin",
            "hyperlink-format",
            "generate",
        ],
        ..NONE
    },
    bad: &[
        hides(' ', "pre", "runs a program"),
        hides(' ', "hostname-bin", "runs a program"),
    ],
};

static FD: Spec = Spec {
    options: Options {
        values: "EdtejcSoxX",
        long_values: &[
            "exclude",
            "max-depth",
            "min-depth",
            "exact-depth",
            "type",
            "extension",
            "threads",
            "size",
            "owner",
            "color",
        ],
        ..NONE
    },
    bad: &[
        hides('x', "exec", "runs a program"),
        hides('X', "exec-batch", "runs a program"),
    ],
};

static YQ: Spec = Spec {
    options: Options {
        values: "poIs",
        long_values: &[
            "input-format",
            "output-format",
            "indent",
            "split-exp",
            "from-file",
            "front-matter",
        ],
        ..NONE
    },
    bad: &[
        writes('i', "inplace", "changes the file"),
        writes(' ', "in-place", "changes the file"),
        writes('s', "split-exp", "writes files"),
    ],
};

static SOCKETS: Spec = Spec {
    options: NONE,
    bad: &[
        writes('K', "kill", "closes connections"),
        writes('D', "diag", "writes its output to a file"),
    ],
};

static KERNEL_LOG: Spec = Spec {
    options: Options {
        values: "fFlns",
        long_values: &[
            "facility",
            "file",
            "level",
            "console-level",
            "buffer-size",
            "since",
            "until",
            "time-format",
        ],
        ..NONE
    },
    bad: &[
        writes('c', "read-clear", "clears the log"),
        writes('C', "clear", "clears the log"),
        writes('D', "console-off", "changes the console"),
        writes('E', "console-on", "changes the console"),
        writes('n', "console-level", "changes the console"),
    ],
};

static JOURNAL: Spec = Spec {
    options: Options {
        values: "nuUtpgoScFMD",
        long_values: &[
            "lines",
            "unit",
            "user-unit",
            "identifier",
            "priority",
            "grep",
            "output",
            "since",
            "until",
            "cursor",
        ],
        ..NONE
    },
    bad: &[
        writes(' ', "vacuum-size", "removes logs"),
        writes(' ', "vacuum-time", "removes logs"),
        writes(' ', "vacuum-files", "removes logs"),
        writes(' ', "rotate", "moves logs"),
        writes(' ', "flush", "moves logs"),
        writes(' ', "sync", "writes logs"),
        writes(' ', "relinquish-var", "moves logs"),
        writes(' ', "setup-keys", "writes keys"),
        writes(' ', "update-catalog", "writes a catalog"),
        writes(' ', "cursor-file", "writes a cursor"),
    ],
};

static SDIFF: Spec = Spec {
    options: Options {
        values: "oIw",
        long_values: &[
            "output",
            "ignore-matching-lines",
            "width",
            "diff-program",
            "tabsize",
        ],
        ..NONE
    },
    bad: &[
        writes('o', "output", "writes its output to a file"),
        hides(' ', "diff-program", "runs a program"),
    ],
};

static LSOF: Spec = Spec {
    options: Options {
        values: "cdDFgikmopPrsSTuxz",
        ..NONE
    },
    bad: &[writes('D', "", "may write a cache")],
};

static BINARIES: Spec = Spec {
    options: NONE,
    bad: &[hides(' ', "plugin", "loads code")],
};

/// Finds a program.
pub(super) fn rule(name: &str) -> Option<Rule> {
    Some(Rule::Flags(match name {
        "sort" => &SORT,
        "shuf" => &SHUF,
        "tree" => &TREE,
        "file" => &FILE,
        "rg" => &RIPGREP,
        "fd" | "fdfind" => &FD,
        "yq" => &YQ,
        "ss" => &SOCKETS,
        "dmesg" => &KERNEL_LOG,
        "journalctl" => &JOURNAL,
        "sdiff" => &SDIFF,
        "lsof" => &LSOF,
        "nm" | "objdump" | "size" => &BINARIES,
        "jq" | "gojq" | "netstat" | "tokei" | "bc" => return Some(Rule::Reads),
        _ => return None,
    }))
}
