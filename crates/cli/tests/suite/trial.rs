//! `backout try`: what people and programs read. What it does to the world is in `tests/proof`.

use crate::world::World;

/// A little of everything.
const SCRIPT: &str =
    "echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2";

fn world() -> World {
    World::new()
        .file("a", "one\n")
        .file("a2", "two\n")
        .file("b", "gone\n")
        .file("tree/leaf", "leaf\n")
}

#[test]
fn without_a_verdict_the_trial_is_kept_and_says_how_to_go_on() {
    let world = world();
    insta::assert_snapshot!(world.cli(["try", "--", "/bin/sh", "-c", SCRIPT]), @r"
    said
    /bin/sh -c 'echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2' succeeded: 2 created, 1 changed, 1 with other mode, owner or attributes, 1 moved, 1 deleted
      ~ a (4 B -> 9 B)
      ~ a2 (mode, owner or attributes)
      - b (5 B)
      + d
      + d/c (4 B)
      > moved (was tree)
    hint: nothing was changed; apply it with `backout try --apply 9e3779b9`, look with `backout try --diff 9e3779b9`, or let it go with `backout try --discard 9e3779b9`
    ");
    insta::assert_snapshot!(world.minutes(5).cli(["try", "--list"]), @"9e3779b9  5 min ago  /bin/sh -c 'echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2'  6 changes");
    insta::assert_snapshot!(world.cli(["try", "--show", "--only", "d"]), @r"
    /bin/sh -c 'echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2' succeeded: 2 created
      + d
      + d/c (4 B)
    ");
    insta::assert_snapshot!(world.cli(["try", "--diff"]), @"
    changed a
    --- a/a
    +++ b/a
    @@ -1 +1,2 @@
     one
    +more
    changed a2
      mode 0644 -> 0700
    removed b
      file, mode 0644, owner root:root, 5 B
    --- a/b
    +++ /dev/null
    @@ -1 +0,0 @@
    -gone
    created d/
      directory, mode 0755, owner root:root
    created d/c
      file, mode 0644, owner root:root, 4 B
    --- /dev/null
    +++ b/d/c
    @@ -0,0 +1 @@
    +new
    moved tree -> moved/
    ");
    insta::assert_snapshot!(world.cli(["try", "--apply"]), @"try: /bin/sh -c 'echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2'  (3c6ef372, undo with `backout undo 3c6ef372`)");
    insta::assert_snapshot!(world.cli(["try", "--list"]), @"no trial waits for a decision");
    insta::assert_snapshot!(world.cli(["log"]), @"●  3c6ef372  just now  committed  try: /bin/sh -c 'echo said; echo more >> a; rm b; mkdir d; echo new > d/c; mv tree moved; chmod 700 a2'");
}

#[test]
fn a_verdict_can_be_given_with_the_command() {
    let world = world();
    insta::assert_snapshot!(world.cli(["try", "--apply", "--", "/bin/sh", "-c", "echo x > new"]), @"
    /bin/sh -c 'echo x > new' succeeded: 1 created
      + new (2 B)
    applied  (3c6ef372, undo with `backout undo 3c6ef372`)
    ");
    insta::assert_snapshot!(world.cli(["try", "--discard", "--diff", "--", "/bin/sh", "-c", "echo y > new"]), @"
    changed new
    --- a/new
    +++ b/new
    @@ -1 +1 @@
    -x
    +y
    /bin/sh -c 'echo y > new' succeeded: 1 changed
      ~ new (2 B)
    discarded; nothing was changed
    ");
    insta::assert_snapshot!(world.cli(["try", "--apply", "--", "/bin/sh", "-c", "rm new; exit 2"]), @r"
    /bin/sh -c 'rm new; exit 2' failed with 2: 1 deleted
      - new (2 B)
    note: nothing was applied, since the command failed
    hint: nothing was changed; apply it with `backout try --apply 78dde6e5`, look with `backout try --diff 78dde6e5`, or let it go with `backout try --discard 78dde6e5`
    [exit code 2]
    ");
    insta::assert_snapshot!(world.cli(["try", "--", "/bin/true"]), @"/bin/true succeeded: nothing changed");
    insta::assert_snapshot!(world.cli(["-q", "try", "--apply", "--", "/bin/sh", "-c", "echo z > new"]), @"");
}

#[test]
fn a_person_is_asked() {
    let world = world();
    let typed = "what\nd\ns\nd b\ny\n";
    let ran = world.typed(
        typed,
        [
            "--color",
            "never",
            "try",
            "--",
            "/bin/sh",
            "-c",
            "echo x > b; echo y > a",
        ],
    );
    insta::assert_snapshot!(ran, @"
    /bin/sh -c 'echo x > b; echo y > a' succeeded: 2 changed
      ~ a (4 B -> 2 B)
      ~ b (5 B -> 2 B)
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] y - yes, apply them
    n - no, throw them away
    d - show them line by line
    s - select a part by globs
    q - quit, and keep them for later
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] changed a
    --- a/a
    +++ b/a
    @@ -1 +1 @@
    -one
    +y
    changed b
    --- a/b
    +++ b/b
    @@ -1 +1 @@
    -gone
    +x
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] only what matches (globs, separated by blanks): /bin/sh -c 'echo x > b; echo y > a' succeeded: 1 changed
      ~ b (5 B -> 2 B)
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] applied  (3c6ef372, undo with `backout undo 3c6ef372`)
    note: 1 change left out and still waiting; apply with `backout try --apply 9e3779b9`, look with `backout try --diff 9e3779b9`, or let go with `backout try --discard 9e3779b9`
    ");
    assert_eq!(
        (world.text("b"), world.text("a")),
        ("x\n".to_owned(), "one\n".to_owned())
    );
    let ran = world.typed(
        "n\nno\nn\ny\n",
        ["--color", "never", "try", "--", "/bin/sh", "-c", "rm b"],
    );
    insta::assert_snapshot!(ran, @"
    /bin/sh -c 'rm b' succeeded: 1 deleted
      - b (2 B)
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] Throw them away (1 deleted)? Nothing brings them back. [y/N] Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] Throw them away (1 deleted)? Nothing brings them back. [y/N] discarded; nothing was changed
    ");
    let ran = world.typed(
        "q\n",
        ["--color", "never", "try", "--", "/bin/sh", "-c", "rm b"],
    );
    insta::assert_snapshot!(ran, @"
    /bin/sh -c 'rm b' succeeded: 1 deleted
      - b (2 B)
    Apply these changes? [y]es, [n]o, [d]iff, [s]elect, [q]uit, [?] hint: nothing was changed; apply it with `backout try --apply 78dde6e5`, look with `backout try --diff 78dde6e5`, or let it go with `backout try --discard 78dde6e5`
    ");
}

#[test]
fn programs_get_one_object() {
    let world = world();
    let ran = world.cli([
        "--json",
        "try",
        "--apply",
        "--",
        "/bin/sh",
        "-c",
        "echo said; rm b",
    ]);
    assert_eq!(ran.err, "said\n");
    let value: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&value).unwrap(), @r#"
    {
      "applied": {
        "decision": {
          "asked": "snapshot",
          "cost": {
            "kept_bytes": 0,
            "prepared_ms": 0,
            "stored_bytes": 5
          },
          "fallbacks": [
            "transaction"
          ],
          "reason": "small enough to keep whole (size 5)",
          "strategy": "snapshot"
        },
        "id": "3c6ef372fe94f82a",
        "notes": [],
        "status": "committed",
        "strategy": "snapshot",
        "summary": "try: /bin/sh -c 'echo said; rm b'"
      },
      "changes": [
        {
          "change": "removed",
          "path": "$WORLD/work/b",
          "size_before": 5
        }
      ],
      "command": [
        "/bin/sh",
        "-c",
        "echo said; rm b"
      ],
      "directory": "$WORLD/work",
      "end": {
        "exit_code": 0
      },
      "id": "9e3779b97f4a7c15",
      "made": 1800000000000,
      "notes": [],
      "reply": "trial",
      "standing": "applied"
    }
    "#);
}

#[test]
fn errors_say_what_to_do() {
    let world = world();
    insta::assert_snapshot!(world.cli(["try"]), @r"
    error: there is nothing to try
      why: no command was given, and no verdict about a trial
      next: put two dashes before the command: `backout try -- COMMAND`
      next: see the trials that wait with `backout try --list`
    [exit code 2]
    ");
    insta::assert_snapshot!(world.cli(["try", "--apply"]), @r"
    error: no trial waits for a decision
      next: try a command with `backout try -- COMMAND`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["try", "--", "no-such-command"]), @"
    error: `no-such-command` was not run
      why: there is no such program
      next: check the name and `PATH`, and the first line if it is a script
      next: a shell's own words need a shell: `sh -c '...'`
    [exit code 127]
    ");
    insta::assert_snapshot!(world.cli(["try", "--", "./a"]), @"
    error: `./a` was not run
      why: it is not executable, or not for you
      next: check that it is a program, and its permissions
    [exit code 126]
    ");
    world.cli(["try", "--", "/bin/sh", "-c", "echo x > a; rm b; rm -r tree"]);
    insta::assert_snapshot!(world.cli(["try", "--apply", "ffff"]), @r"
    error: there is no trial `ffff`
      next: see them with `backout try --list`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["try", "--apply", "--only", "nothing"]), @r"
    error: nothing was applied
      why: no change matches what was chosen
      next: see what there is with `backout try --show daa66d2c`
    [exit code 1]
    ");
    world.put("a", "somebody else\n");
    world.put("tree/new", "somebody else\n");
    insta::assert_snapshot!(world.cli(["try", "--apply"]), @r"
    error: nothing was applied: what the layer was made over changed
      why: `a` changed since the command began
      why: `tree` changed since the command began
      next: apply the rest with `--exclude PATH`, or a part with `--only GLOB`
      next: or run the command again over what is there now: discard the trial, or go back in the sandbox, first
    [exit code 1]
    ");
    world.cli(["try", "--", "/bin/sh", "-c", "rm b"]);
    insta::assert_snapshot!(world.cli(["try", "--discard"]), @r"
    error: it is not clear which trial is meant
      why: 2 trials wait for a decision
      next: see them with `backout try --list`
    [exit code 2]
    ");
}
