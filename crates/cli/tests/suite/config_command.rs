//! `backout config`: what rules say, and what is wrong with them.

use crate::world::World;

#[test]
fn a_first_file_is_written_once_and_can_be_undone() {
    let world = World::new();
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    no backout.toml counts here; write a first one with `backout config init`
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "a.json"]), @"
    no backout.toml counts for a.json: every write passes
    ");
    world.did(["config", "init"]);
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    backout.toml: can be read
    ");
    insta::assert_snapshot!(world.cli(["config", "init"]), @"
    error: nothing was written
      why: there is a `backout.toml` here already
      next: see what it says with `backout config show`
    [exit code 1]
    ");
    world.did(["undo"]);
    assert!(!world.has("backout.toml"));
}

#[test]
fn every_mistake_is_told_as_compilers_do() {
    let world = World::new().file(
        "backout.toml",
        "[protect]\ndny = []\n[policy]\nsecrets = 'dney'\n[[watch]]\ntries = 0\n",
    );
    insta::assert_snapshot!(world.cli(["config", "check"]), @r#"
    backout.toml:2:1: `protect.dny` is not known; did you mean `deny`?
    backout.toml:4:11: `policy.secrets` must be one of "deny", "ask", "warn", "off": did you mean `deny`?
    backout.toml:5:1: a [[watch]] needs a `name`
    backout.toml:6:9: `watch.tries` must be a whole number from 1 to 1000
    [exit code 1]
    "#);
    insta::assert_snapshot!(world.cli(["config", "check", "other.toml"]), @"
    other.toml: there is no such file
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "a"]), @"
    backout.toml
      it has mistakes, so every write that it might be about is refused
    ");
    insta::assert_snapshot!(world.unmoved(["write", "a", "--text", "1"]), @r#"
    error: nothing was written
      why: `backout.toml` cannot be understood: line 2, column 1: `protect.dny` is not known; did you mean `deny`? (rules must be readable)
      why: `backout.toml` cannot be understood: line 4, column 11: `policy.secrets` must be one of "deny", "ask", "warn", "off": did you mean `deny`? (rules must be readable)
      why: `backout.toml` cannot be understood: line 5, column 1: a [[watch]] needs a `name` (rules must be readable)
      why: `backout.toml` cannot be understood: line 6, column 9: `watch.tries` must be a whole number from 1 to 1000 (rules must be readable)
      next: mend `backout.toml`
      next: the journal has it as 9e3779b9
    [exit code 1]
    "#);
}

#[test]
fn a_file_that_is_named_and_not_there_is_told_and_stops_only_what_needs_it() {
    let rules = "[[check]]\nname = 's'\npaths = ['*.json']\nschema = 'schemas/app.json'\n\
        [notify]\nwebhook = 'http://127.0.0.1:9/'\nwebhook-secret-file = 'key'\ntimeout = '1s'\n\
        [[rule]]\nname = 'r'\nwhen = 'operation.files > 20'\n";
    let world = World::new().file("backout.toml", rules).file("key", "\n");
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    backout.toml:4:10: the schema `$WORLD/work/schemas/app.json` cannot be used: No such file or directory (os error 2)
    backout.toml:7:23: the key file `$WORLD/work/key` cannot be used, so nothing is sent: it is empty
    [exit code 1]
    ");
    // It can still be written, or nobody could put it right.
    world.did([
        "write",
        "--parents",
        "schemas/app.json",
        "--text",
        "{\"type\": 1}\n",
    ]);
    world.did(["write", "key", "--text", "sesame\n"]);
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    backout.toml:4:10: the schema `$WORLD/work/schemas/app.json` cannot be used: line 1, column 10: the schema is wrong: `1` fits none of the ways that the schema allows
    [exit code 1]
    ");
    world.did(["write", "schemas/app.json", "--text", "{}\n"]);
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    backout.toml: can be read
    ");
    world.did(["write", "backout.toml", "--text", "[[rule]]\nname = 'r'\nwhen = 'operation.paths'\n[[watch]]\nname = 'w'\npaths = ['a']\ncommand = ['true']\ntimeout = '0s'\nwindow = '0s'\n"]);
    insta::assert_snapshot!(world.cli(["config", "check"]), @r#"
    backout.toml:3:8: the condition is wrong: the condition gives list, and has to give true or false; compare it with something
    backout.toml:8:11: `watch.timeout` must be more than nothing, like "500ms" or "30s"
    [exit code 1]
    "#);
}

#[test]
fn what_holds_for_a_path_is_told_with_the_file_that_says_so() {
    let rules = "[protect]\ndeny = ['secrets/**']\nask = ['deploy/**']\n[syntax]\nformats = { '*.tmpl' = 'yaml' }\n\
        [policy]\nsecrets = 'deny'\npermissions = 'off'\nfiles-max = 3\n\
        [[check]]\nname = 'app'\npaths = ['*.json']\nstructure = true\non-failure = 'warn'\n\
        [[rule]]\nname = 'few'\nwhen = 'operation.files > 9'\nthen = 'ask'\n\
        [[watch]]\nname = 'up'\npaths = ['*.json']\nhttp = 'http://127.0.0.1:1/'\n\
        [[watch]]\nname = 'well'\npaths = ['*.json']\ncommand = ['true', 'yes']\n\
        [[watch]]\nname = 'new'\npaths = ['*.json']\nreload = ['true']\n\
        [risk]\nhigh-paths = ['secrets/**']\nmedium-paths = ['deploy/**']\n";
    let world = World::new().file("backout.toml", rules);
    insta::assert_snapshot!(world.cli(["config", "show", "a.json"]), @"
    backout.toml
      syntax            it is parsed as json; if something is found, it is refused
      policy.secrets    it is searched for secrets; if something is found, it is refused
      policy.files-max  more than 3 files at once have to be approved
      check `app`       it is checked; what is found is told
      rule `few`        if operation.files > 9, somebody has to approve it
      watch `up`        after a write http://127.0.0.1:1/ has to answer, or it is taken back
      watch `well`      after a write `true yes` has to pass, or it is taken back
      watch `new`       after a write its reload has to work, or it is taken back
      risk              a write of it is of low risk if it is small and alone
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "secrets/key"]), @"
    backout.toml
      protect.deny `secrets/**`  nobody writes it
      policy.secrets             it is searched for secrets; if something is found, it is refused
      policy.files-max           more than 3 files at once have to be approved
      rule `few`                 if operation.files > 9, somebody has to approve it
      risk                       a write of it is of high risk
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "deploy/x.tmpl"]), @"
    backout.toml
      protect.ask `deploy/**`  somebody has to approve it
      policy.secrets           it is searched for secrets; if something is found, it is refused
      policy.files-max         more than 3 files at once have to be approved
      rule `few`               if operation.files > 9, somebody has to approve it
      risk                     a write of it is of medium risk
    ");
    let world = World::new().file("backout.toml", "");
    insta::assert_snapshot!(world.cli(["config", "show", "a"]), @"
    backout.toml
      says nothing about it
    ");
}

#[test]
fn the_schema_is_in_the_documents() {
    let world = World::new();
    let printed: serde_json::Value =
        serde_json::from_str(&world.cli(["config", "schema"]).out).unwrap();
    let kept = include_str!("../../../../docs/schema/backout-toml.json");
    let kept: serde_json::Value = serde_json::from_str(kept).unwrap();
    assert_eq!(
        printed, kept,
        "docs/schema/backout-toml.json is to be what `backout config schema` prints"
    );
}

#[test]
fn what_a_command_wrote_is_taken_back_if_a_rule_says_no() {
    let world = World::new().file("backout.toml", "[syntax]\n");
    let script = "echo '{' > a.json; echo '{}' > b.json";
    insta::assert_snapshot!(world.cli(["run", "--", "/bin/sh", "-c", script]), @"
    error: what the command wrote was taken back, as daa66d2c
      why: `a.json`, line 2, column 1: the text ends, but `{` of line 1, column 1 is not closed (syntax in backout.toml)
      next: close it with `}`
      next: what it wrote comes back with `backout redo daa66d2c`, and no gate looks at it then
    [exit code 1]
    ");
    assert!(!world.has("a.json") && !world.has("b.json"));
    world.did(["redo"]);
    assert!(world.has("a.json") && world.has("b.json"));
}

#[test]
fn what_somebody_else_changed_meanwhile_stays_and_is_told() {
    let watch = "[[watch]]\nname = 'well'\npaths = ['b']\ntries = 1\n\
        command = ['/bin/sh', '-c', 'echo other >> b; exit 1']\n";
    let world = World::new().file("backout.toml", watch);
    let script = "echo 1 > a; echo 1 > b";
    insta::assert_snapshot!(world.cli(["run", "--", "/bin/sh", "-c", script]), @r"
    error: what the command wrote was taken back in part, as daa66d2c
      why: `/bin/sh` ended with 1 (watch `well` in backout.toml)
      next: mend what was written, and write it again
      next: what it wrote comes back with `backout redo daa66d2c`, and no gate looks at it then
      next: see what stays with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert!(!world.has("a"));
    assert_eq!(world.text("b"), "1\nother\n");
    let world = World::new().file("backout.toml", watch).file("b", "0\n");
    let script = "echo 1 >> b";
    insta::assert_snapshot!(world.cli(["run", "--", "/bin/sh", "-c", script]), @r"
    error: what the command wrote must not stay, and could not be taken back
      why: `/bin/sh` ended with 1 (watch `well` in backout.toml)
      next: mend what was written, and write it again
      next: see what stays with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert_eq!(world.text("b"), "0\n1\nother\n");
    assert!(world.cli(["status"]).out.contains("interrupted"));
}

#[test]
fn a_write_that_must_not_stay_and_stays_is_told_until_it_is_settled() {
    let watch = "[[watch]]\nname = 'well'\npaths = ['b']\ntries = 1\n\
        command = ['/bin/sh', '-c', 'echo other >> b; exit 1']\n";
    for way in [
        ["undo", "9e3779b9", "--force"],
        ["failed", "--accept", "9e3779b9"],
    ] {
        let world = World::new().file("backout.toml", watch).file("b", "0\n");
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.cli(["write", "b", "--text", "1\n"]), @"
            error: the check after the write said no, but operation 9e3779b9 stays
              why: `/bin/sh` ended with 1 (watch `well` in backout.toml)
              why: operation 9e3779b9 was not undone
              why: `b`: content changed since (2 -> 8 bytes)
              next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
              next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
              next: until it is settled `backout failed` lists it, with what to do
            [exit code 1]
            ");
            assert_eq!(world.text("b"), "1\nother\n");
            insta::assert_snapshot!(world.cli(["failed"]), @"
            9e3779b9  write b  the undo failed
              b  conflict: content changed since (2 -> 8 bytes)
              by snapshot; set off: policy-violation by the rule verification, critical: the write did not hold: `/bin/sh` ended with 1 (watch `well` in $WORLD/work/backout.toml)
              tried: telling a person: not possible: there is no way to tell a person
              last just now
              next: put right what stands in the way, then `backout undo 9e3779b9`, or climb again with `backout failed --retry 9e3779b9`
              next: or take it back over what somebody else made of it with `backout undo 9e3779b9 --force`, which keeps that
              next: see which other versions there are with `backout log b`
              next: or leave it as it is with `backout failed --accept 9e3779b9 --why TEXT`
            ");
            insta::assert_snapshot!(world.cli(["status"]), @"
            undos that failed and wait for a person:
              9e3779b9
            newest:
            ●  9e3779b9  just now  applied  write b
            store:
              journal    1 operation: 1 applied; 293.7 KiB
              images     4 B of 2.0 GiB
              directory  $WORLD/state
            hint: see why, and what to do about it, with `backout failed`
            ");
        }
        world.did(way);
        insta::allow_duplicates! {
            insta::assert_snapshot!(world.cli(["failed"]), @"
            no undo waits for a person
            ");
        }
    }
}
