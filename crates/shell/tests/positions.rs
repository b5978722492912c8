//! A command that writes is found wherever the grammar lets one stand, and any text at all gets a verdict.

use backout_shell::{Class, classify, classify_words};
use proptest::prelude::*;

/// Places where a command can stand; `@` is the place.
const COMMANDS: [&str; 58] = [
    "@",
    "ls; @",
    "@; ls",
    "ls\n@",
    "ls & @",
    "@ & ls",
    "ls && @",
    "ls || @",
    "ls | @",
    "@ | ls",
    "ls |& @",
    "! @",
    "time @",
    "(@)",
    "( ( @ ) )",
    "((ls); (@))",
    "{ @; }",
    "if @; then ls; fi",
    "if ls; then @; fi",
    "if ls; then ls; else @; fi",
    "if ls; then ls; elif @; then ls; fi",
    "while @; do ls; done",
    "while ls; do @; done",
    "until ls; do @; done",
    "for x in a; do @; done",
    "for x; do @; done",
    "for ((;1;)); do @; done",
    "case x in a) @;; esac",
    "case x in (a) ls;; b) @ ;; esac",
    "case x in a) ls ;& b) @ ;; esac",
    "f() { @; }",
    "function f { @; }",
    "f() ( @ )",
    "coproc @",
    "coproc x { @; }",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo \"a $(ls; echo $(@)) b\"",
    "echo `@`",
    "echo \"`@`\"",
    "echo ${x:-$(@)}",
    "echo \"${x:+`@`}\"",
    "echo $(( 1 + $(@) ))",
    "(( x = $(@) ))",
    "for ((i = $(@);1;)); do ls; done",
    "x=$(@)",
    "x=$(@) ls",
    "x=(a $(@))",
    "x[$(@)]=1",
    "export x=$(@)",
    "cat < $(@)",
    "ls > /dev/null 2>&1 $(@)",
    "cat <<E\n$(@)\nE",
    "cat <<< $(@)",
    "diff <(ls) <(@)",
    "ls > >(@)",
    "[[ -n $(@) && a == b ]]",
    "case $(@) in $(ls)) ls;; esac",
];

/// Places where a command stands in quotes that a program or the shell opens.
const QUOTED: [&str; 13] = [
    "bash -c '@'",
    "sh -c '@'",
    "sudo -u x bash -c '@'",
    "env A=1 bash -euc '@'",
    "eval '@'",
    "trap '@' EXIT",
    "watch '@'",
    "bash <<'E'\n@\nE",
    "bash <<< '@'",
    "x='@'; eval \"$x\"",
    "find . -exec sh -c '@' \\;",
    "ls | xargs -I% bash -c '@'",
    "echo '@' | bash",
];

/// Commands that write, with no quotes in them.
const WRITERS: [&str; 8] = [
    "rm y",
    "ls | tee y",
    "ls > y",
    "sort -o y z",
    "sed -i p y",
    "find . -delete",
    "env A=1 rm y",
    "frobnicate y",
];

fn places() -> impl Iterator<Item = &'static str> {
    COMMANDS.into_iter().chain(QUOTED)
}

#[test]
fn a_command_that_writes_is_found_in_every_place() {
    for place in places() {
        for writer in WRITERS {
            let line = place.replace('@', writer);
            let verdict = classify(&line);
            assert_ne!(verdict.class, Class::ReadOnly, "{line}");
        }
    }
}

#[test]
fn a_command_that_writes_is_found_in_every_place_within_every_other() {
    for outer in COMMANDS {
        for inner in places() {
            let mut inner = inner.replace('@', "rm y");
            if outer.contains('`') {
                // Backticks inside of backticks are escaped.
                inner = inner.replace('\\', "\\\\").replace('`', "\\`");
            }
            let line = outer.replace('@', &inner);
            let verdict = classify(&line);
            assert_ne!(verdict.class, Class::ReadOnly, "{line}");
        }
    }
}

#[test]
fn a_command_that_reads_does_so_in_most_places() {
    let doubted: Vec<&str> = places()
        .filter(|place| classify(&place.replace('@', "ls")).class != Class::ReadOnly)
        .collect();
    // Parentheses that look like arithmetic, a variable that is run, a pipe into a shell.
    assert_eq!(
        doubted,
        ["( ( @ ) )", "x='@'; eval \"$x\"", "echo '@' | bash"]
    );
}

/// Pieces of shell that make more trouble together than random text.
fn piece() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "ls",
        "rm y",
        "echo",
        "sort",
        "$(",
        ")",
        "`",
        "\"",
        "'",
        "${x:-",
        "}",
        "((",
        "))",
        "$((",
        "(",
        "{ ",
        "; }",
        "<<E\n",
        "\nE\n",
        "<<'E'\n",
        " # ",
        "\n",
        ";",
        "&&",
        "|",
        "&",
        ">",
        ">>",
        "<",
        "<(",
        ">(",
        "2>&1",
        "[[ ",
        " ]]",
        "case x in ",
        " a) ",
        ";;",
        " esac",
        "if ",
        "; then ",
        "; fi",
        "while ",
        "; do ",
        "; done",
        "for x in ",
        "\\",
        "$'",
        "$X",
        "*",
        "{a,b}",
        " ",
        "=",
        "x=",
        "f() ",
        "bash -c ",
        "eval ",
        "-o",
        "--",
        "é",
        "\t",
        "!",
        "=~",
        "1",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_gets_a_verdict(text in "\\PC*") {
        let verdict = classify(&text);
        prop_assert!(!verdict.because.is_empty());
    }

    #[test]
    fn any_mixture_of_shell_gets_a_verdict(pieces in prop::collection::vec(piece(), 0..40)) {
        let verdict = classify(&pieces.concat());
        prop_assert!(!verdict.because.is_empty());
    }

    #[test]
    fn any_words_get_a_verdict(words in prop::collection::vec(piece(), 0..8)) {
        let verdict = classify_words(&words);
        prop_assert!(!verdict.because.is_empty());
    }

    /// What stands on a line of its own behind anything is found, unless it is quoted by what stands before.
    #[test]
    fn a_line_behind_a_line_that_reads_is_found(pieces in prop::collection::vec(piece(), 0..12)) {
        let before = pieces.concat();
        if classify(&before).class == Class::ReadOnly {
            let line = format!("{before}\nrm y");
            prop_assert_ne!(classify(&line).class, Class::ReadOnly, "{}", line);
        }
    }
}
