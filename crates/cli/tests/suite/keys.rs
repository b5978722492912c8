//! `set`, `unset`, `merge`: what people read, and what is there afterwards.

use crate::world::World;

const TOML: &str = "# app\nhost = \"a\"\n\n[server]\nport = 80 # public\n";

fn world() -> World {
    World::new().file("app.toml", TOML)
}

#[test]
fn a_key_is_set_and_taken_out_and_comes_back() {
    let world = world();
    insta::assert_snapshot!(world.cli(["set", "app.toml", "server.port", "8080"]), @"set server.port in app.toml  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(world.text("app.toml"), TOML.replace("80", "8080"));
    insta::assert_snapshot!(world.cli(["unset", "app.toml", "host"]), @"took host out of app.toml  (3c6ef372, undo with `backout undo 3c6ef372`)");
    insta::assert_snapshot!(world.cli(["set", "app.toml", "server.port", "8080"]), @"nothing to do: everything is already as asked");
    insta::assert_snapshot!(world.cli(["diff", "@-1"]), @r"
    changed app.toml:server.port
    @@ -1 +1 @@
    -80
    +8080
    ");
    insta::assert_snapshot!(world.cli(["diff", "@-1", "--name-only"]), @"app.toml:server.port");
    insta::assert_snapshot!(world.cli(["diff", "@", "--stat"]), @r"
    app.toml:host  | 1 -
    1 name changed, 0 lines added, 1 line removed
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "@-1", "-n", "--diff"]), @r"
    would undo 1 operation:
      9e3779b9  set server.port in app.toml
                app.toml:server.port  will be as before
    1 later operation would stay:
      3c6ef372  unset host in app.toml  independent

    would change back:
    changed app.toml:server.port
    @@ -1 +1 @@
    -8080
    +80
    hint: do it with `backout undo 9e3779b9`
    ");
    insta::assert_snapshot!(world.cli(["undo", "@-1"]), @r"
    undid 9e3779b9  set server.port in app.toml
      app.toml:server.port  restored
    1 later operation stayed:
      3c6ef372  unset host in app.toml  independent
    hint: take this back with `backout redo b54cda58`
    ");
    assert_eq!(world.text("app.toml"), TOML.replace("host = \"a\"\n", ""));
    insta::assert_snapshot!(world.cli(["undo"]), @r"
    undid 3c6ef372  unset host in app.toml  (the newest below .)
      app.toml:host  restored
      note: `app.toml` has the text back that it had first, but not the time
    hint: take this back with `backout redo f1bbcdcb`
    ");
    assert_eq!(world.text("app.toml"), TOML);
    insta::assert_snapshot!(world.cli(["log", "app.toml"]), @r"
    ╭◇      f1bbcdcb  just now  committed  undo of unset host in app.toml
    │  ╭◇   b54cda58  just now  committed  undo of set server.port in app.toml
    ╰○ │    3c6ef372  just now  undone     unset host in app.toml
       ╰○   9e3779b9  just now  undone     set server.port in app.toml
    ");
}

#[test]
fn several_keys_are_merged_at_once() {
    let world = world();
    insta::assert_snapshot!(world.cli(["merge", "app.toml", r#"{"host": null, "server": {"port": 1, "tls": true}}"#]), @"merged keys into app.toml  (9e3779b9, undo with `backout undo 9e3779b9`)");
    assert_eq!(
        world.text("app.toml"),
        "# app\n\n[server]\nport = 1 # public\ntls = true\n"
    );
    insta::assert_snapshot!(world.cli(["show", "@"]), @"
    9e3779b9  merge keys into app.toml
      id        9e3779b97f4a7c15
      status    committed
      when      2027-01-15 08:00:00 UTC (just now)
      target    app.toml:host  as this operation left it
      target    app.toml:server.port  as this operation left it
      target    app.toml:server.tls  as this operation left it
      strategy  transaction  a configuration is logged key by key
      cost      975 B stored
      journal   1 intent, 2 applied, 3 commit
    hint: see what it changed with `backout diff 9e3779b9`
    hint: see what an undo would do with `backout undo 9e3779b9 --dry-run`
    ");
}

#[test]
fn of_several_keys_only_the_one_that_somebody_changed_is_in_conflict() {
    let world = world();
    world.did([
        "merge",
        "app.toml",
        r#"{"host": null, "server": {"port": 1, "tls": true}}"#,
    ]);
    world.put(
        "app.toml",
        &world.text("app.toml").replace("tls = true", "tls = false"),
    );
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `app.toml:server.tls`: somebody else gave it another value
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do the rest with `backout undo 9e3779b9 --partial`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["undo", "-n", "--diff", "--force"]), @r#"
    would undo 1 operation:  (the newest below .)
      9e3779b9  merge keys into app.toml
                app.toml:host         will be as before
                app.toml:server.port  will be as before
                app.toml:server.tls   will be removed: somebody else gave it another value

    would change back:
    created app.toml:host
    @@ -0,0 +1 @@
    +"a"
    changed app.toml:server.port
    @@ -1 +1 @@
    -1
    +80
    removed app.toml:server.tls
    @@ -1 +0,0 @@
    -false

    somebody else changed since:
    changed app.toml:server.tls
    @@ -1 +1 @@
    -true
    +false
    hint: do it with `backout undo 9e3779b9 --force`
    "#);
    insta::assert_snapshot!(world.cli(["undo", "--partial"]), @r"
    undid 9e3779b9  merge keys into app.toml  (the newest below .)
      app.toml:host         restored
      app.toml:server.port  restored
      app.toml:server.tls   conflict: somebody else gave it another value
    error: 1 of 3 targets was left as it is
      why: 9e3779b9 `app.toml:server.tls`: conflict: somebody else gave it another value
      next: put right what stands in the way, then `backout undo 9e3779b9` again
      next: take back what was done with `backout redo cc623af8`
    [exit code 1]
    ");
    assert_eq!(world.text("app.toml"), TOML.to_owned() + "tls = false\n");
}

#[test]
fn a_merge_takes_its_patch_from_a_file_or_standard_input() {
    let world = world().file("patch.json", r#"{"host": "b"}"#);
    world.did(["merge", "app.toml", "@patch.json"]);
    assert_eq!(world.text("app.toml"), TOML.replace("\"a\"", "\"b\""));
    let ran = world.piped(br#"{"host": "c"}"#, ["merge", "app.toml", "-"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(world.text("app.toml"), TOML.replace("\"a\"", "\"c\""));
    insta::assert_snapshot!(world.unmoved(["merge", "app.toml", "{"]), @r#"
    error: this is not JSON: line 1, column 2: a name in double quotes is needed here
      next: JSON is like `8080`, `"text"`, `[1, 2]` or `{"a": 1}`
    [exit code 2]
    "#);
}

#[test]
fn what_is_not_clear_is_refused_with_the_way_out() {
    let world = world()
        .file("app.yaml", "tls: true\nport: 80\n")
        .file("bad.json", "{\"a\": 1,\n \"b\": }\n")
        .file("twice.json", "{\"a\": 1, \"a\": 2}\n")
        .file("notes", "a = 1\n");
    insta::assert_snapshot!(world.unmoved(["set", "app.yaml", "tls", "no"]), @r"
    error: `app.yaml`: `no` is unclear: it is a boolean to some readers of YAML and a text to others
      next: say `--string` for a text, `--value-json` with the value as JSON, or `--raw` to write `no` as it is
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "app.yaml", "port", "many"]), @r"
    error: `app.yaml`: `port` is a number (line 2, column 7), and `many` would make it a text
      next: say `--string` to make `many` a text, or `--value-json` to change the type
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "bad.json", "a", "2"]), @r"
    error: `bad.json`: line 2, column 7: a value is needed here: a text in double quotes, a number, true, false, null, [ or {
      next: mend the file, or say with `--format` how it is written
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "twice.json", "a", "3"]), @r"
    error: `twice.json`: `a` stands twice: line 1, column 2, and line 1, column 10
      next: remove one of the two
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "notes", "a", "2"]), @r"
    error: the name of `notes` does not tell how it is written
      next: say it with `--format json`, `jsonc`, `yaml`, `toml`, `ini` or `env`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "gone.toml", "a", "2"]), @r"
    error: `gone.toml` does not exist
      next: check the name; `backout write FILE` makes a new file
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["unset", "app.toml", "server.name"]), @r"
    error: `app.toml`: `server.name` is not there
      next: check how the key is written in the file
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "app.toml", "a..b", "2"]), @r"
    error: invalid value 'a..b' for '<KEY>': column 3 of the key `a..b`: a name is needed here; put such a name in double quotes

    For more information, try '--help'.
    [exit code 2]
    ");
    insta::assert_snapshot!(world.unmoved(["set", "notes", "a", "2", "--format", "xml"]), @r"
    error: invalid value 'xml' for '--format <FORMAT>': a format is json, jsonc, yaml, toml, ini or env

    For more information, try '--help'.
    [exit code 2]
    ");
    let not_text = world.still(|| world.piped(b"{\"a\": \"\xff\"}", ["merge", "app.toml", "-"]));
    insta::assert_snapshot!(not_text, @r"
    error: the patch is not UTF-8
    [exit code 2]
    ");
    world.did(["set", "app.yaml", "tls", "no", "--string"]);
    world.did(["set", "app.yaml", "port", "[1, 2]", "--value-json"]);
    world.did(["set", "notes", "a", "2", "--format", "ini"]);
    assert_eq!(world.text("app.yaml"), "tls: \"no\"\nport: [1, 2]\n");
    assert_eq!(world.text("notes"), "a = 2\n");
}

#[test]
fn a_key_in_json() {
    let world = world();
    insta::assert_snapshot!(world.cli(["--json", "set", "app.toml", "server.port", "1"]), @r#"{"reply":"finished","id":"9e3779b97f4a7c15","summary":"set server.port in $WORLD/work/app.toml","status":"committed","strategy":"transaction","decision":{"strategy":"transaction","asked":"transaction","reason":"a configuration is logged key by key","cost":{"stored_bytes":305,"kept_bytes":0,"prepared_ms":0}},"notes":[]}"#);
    insta::assert_snapshot!(world.cli(["--json", "diff", "@"]), @r#"{"reply":"diff","id":"9e3779b97f4a7c15","files":[{"path":"$WORLD/work/app.toml","key":"server.port","change":"changed","added":1,"removed":1,"text":"@@ -1 +1 @@\n-80\n+1\n"}]}"#);
    insta::assert_snapshot!(world.cli(["--json", "set", "app.toml", "host", "1"]), @r#"
    {"code":"config-value","severity":"refused","what":"`$WORLD/work/app.toml`: `host` is a text (line 2, column 8), and `1` would make it a number","why":[],"next":[{"text":"say `--string` to make `1` a text, or `--value-json` to change the type"}]}
    [exit code 1]
    "#);
}

#[test]
fn a_key_is_named_as_it_is_printed() {
    let world = world();
    world.did(["set", "app.toml", "server.port", "1"]);
    world.did(["set", "app.toml", "host", "b"]);
    world.did(["set", "app.toml", "server.port", "2"]);
    insta::assert_snapshot!(world.cli(["log", "app.toml:host"]), @"●  3c6ef372  just now  committed  set host in app.toml");
    insta::assert_snapshot!(world.cli(["log", "app.toml:server"]), @"
    ╭●   daa66d2c  just now  committed  set server.port in app.toml
    ╰●   9e3779b9  just now  committed  set server.port in app.toml
    ");
    insta::assert_snapshot!(world.cli(["undo", "app.toml:host"]), @"
    undid 3c6ef372  set host in app.toml
      app.toml:host  restored
    1 later operation stayed:
      daa66d2c  set server.port in app.toml  independent
    hint: take this back with `backout redo 1715609f`
    ");
    assert_eq!(world.text("app.toml"), TOML.replace("80", "2"));
    // All that lies in it is meant, by whoever it was done last.
    world.did(["undo", "app.toml:server"]);
    assert_eq!(world.text("app.toml"), TOML.replace("80", "1"));
    insta::assert_snapshot!(world.cli(["undo", "app.toml:host"]), @"
    error: there is nothing to undo at `app.toml:host`
      next: see what was done to it with `backout log app.toml`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["undo", "app.toml:nothing"]), @"
    error: there is nothing to undo at `app.toml:nothing`
      why: it is no operation, no path that is there or was written, and no other target that was written
      next: name an operation or a target as `backout log` shows it, or a path
    [exit code 1]
    ");
    world.did([
        "merge",
        "app.toml",
        r#"{"host": "c", "server": {"port": 5}}"#,
    ]);
    world.did(["undo", "@", "--only", "app.toml:server"]);
    assert_eq!(
        world.text("app.toml"),
        TOML.replace("80", "1").replace("\"a\"", "\"c\"")
    );
    // A file of that name goes before the key, while it is there; afterwards nobody can tell.
    world.did(["write", "app.toml:host", "--text", "x"]);
    world.did(["undo", "app.toml:host"]);
    assert!(!world.has("app.toml:host"));
    insta::assert_snapshot!(world.unmoved(["undo", "app.toml:host"]), @"
    error: `app.toml:host` is the name of a file and a key
      next: name the operation instead; see which wrote it with `backout log app.toml`
    [exit code 2]
    ");
}

#[test]
fn a_name_that_two_keys_have_is_none() {
    let world = World::new()
        .file("f.json", r#"{"x": {"json:b": 1}}"#)
        .file("f.json:x.json", r#"{"b": 1}"#);
    world.did(["set", "f.json", "x.json:b", "2"]);
    world.did(["set", "f.json:x.json", "b", "2"]);
    insta::assert_snapshot!(world.cli(["log", "f.json:x.json:b"]), @"
    error: `f.json:x.json:b` is the name of more than one key
      next: name the operation instead; see which wrote it with `backout log f.json`
    [exit code 2]
    ");
}

#[test]
fn a_key_is_restored_whatever_it_is_now_and_the_rest_stays() {
    let world = world();
    world.did(["set", "app.toml", "server.port", "8080"]);
    world.did(["unset", "app.toml", "host"]);
    world.did(["set", "app.toml", "server.port", "9"]);
    let mine = world.text("app.toml").replace("# app", "# mine");
    let world = world.file("app.toml", &mine);
    insta::assert_snapshot!(world.cli(["restore", "app.toml:server.port", "--from", "9e3779b9"]), @"restored app.toml:server.port to what it was before 9e3779b9  (78dde6e5, undo with `backout undo 78dde6e5`)");
    assert_eq!(
        world.text("app.toml"),
        mine.replace("port = 9", "port = 80")
    );
    world.did([
        "restore",
        "app.toml:server.port",
        "--from",
        "9e3779b9",
        "--after",
    ]);
    assert_eq!(
        world.text("app.toml"),
        mine.replace("port = 9", "port = 8080")
    );
    // A key that was taken out comes back, and one that was not there goes.
    world.did(["restore", "app.toml:host", "--from", "3c6ef372"]);
    assert!(
        world.text("app.toml").contains("host = \"a\""),
        "{}",
        world.text("app.toml")
    );
    world.did(["restore", "app.toml:host", "--from", "3c6ef372", "--after"]);
    assert!(!world.text("app.toml").contains("host"));
    // It is a write like any other.
    world.did(["undo"]);
    assert!(
        world.text("app.toml").contains("host = \"a\""),
        "{}",
        world.text("app.toml")
    );
    assert_eq!(world.text("app.toml").lines().next(), Some("# mine"));
}

#[test]
fn a_key_that_an_operation_did_not_touch_is_not_restored_from_it() {
    let world = world().file("f", "1");
    world.did(["set", "app.toml", "server.port", "8080"]);
    world.did(["unset", "app.toml", "host"]);
    insta::assert_snapshot!(world.unmoved(["restore", "app.toml:host", "--from", "9e3779b9"]), @r"
    error: `app.toml:host` was not restored
      why: operation 9e3779b9 did not touch it
      next: see which operations did with `backout log app.toml:host`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.unmoved(["restore", "app.toml:host", "f", "--from", "@"]), @r"
    error: files and parts of them are not restored in one call
      next: restore them one after the other
    [exit code 2]
    ");
}
