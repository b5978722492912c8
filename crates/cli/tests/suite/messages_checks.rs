//! What is said of rules, of checks before a write, of watches after it, and of commands that are taken back.

use crate::world::World;

const RULES: &str = "[protect]
deny = ['secrets/**']
ask = ['deploy/**']
[syntax]
[policy]
secrets = 'deny'
permissions = 'ask'
wildcard-iam = 'warn'
files-max = 200
bytes-max = '100MB'
removed-percent-max = 50
[[check]]
name = 'app'
paths = ['*.json']
schema = 'schema.json'
values = [{ key = 'port', max = 9 }]
structure = true
command = ['true', '{staged}']
[[rule]]
name = 'night'
when = 'operation.removed > 20'
because = 'many files would go'
[[watch]]
name = 'answers'
paths = ['app.json']
reload = ['true']
http = 'http://127.0.0.1:1/health'
[risk]
medium-paths = ['*.json']
[notify]
desktop = false
";

#[test]
fn what_holds_for_a_path() {
    let world = World::new().file("backout.toml", RULES);
    insta::assert_snapshot!(world.cli(["config", "show", "app.json"]), @"
    backout.toml
      syntax                      it is parsed as json; if something is found, it is refused
      policy.secrets              it is searched for secrets; if something is found, it is refused
      policy.permissions          its mode is looked at; if something is found, somebody has to approve it
      policy.wildcard-iam         what it allows is looked at; what is found is told
      policy.files-max            more than 200 files at once have to be approved
      policy.bytes-max            more than 100000000 bytes at once have to be approved
      policy.removed-percent-max  more than 50 percent of the files removed at once have to be approved
      check `app`                 it is checked; if something is found, it is refused
      rule `night`                if operation.removed > 20, it is refused
      watch `answers`             after a write http://127.0.0.1:1/health has to answer, or it is taken back
      risk                        a write of it is of medium risk
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "deploy/x"]), @"
    backout.toml
      protect.ask `deploy/**`     somebody has to approve it
      policy.secrets              it is searched for secrets; if something is found, it is refused
      policy.permissions          its mode is looked at; if something is found, somebody has to approve it
      policy.wildcard-iam         what it allows is looked at; what is found is told
      policy.files-max            more than 200 files at once have to be approved
      policy.bytes-max            more than 100000000 bytes at once have to be approved
      policy.removed-percent-max  more than 50 percent of the files removed at once have to be approved
      rule `night`                if operation.removed > 20, it is refused
      risk                        a write of it is of low risk if it is small and alone
    ");
    insta::assert_snapshot!(world.cli(["config", "show", "secrets/x"]), @"
    backout.toml
      protect.deny `secrets/**`   nobody writes it
      policy.secrets              it is searched for secrets; if something is found, it is refused
      policy.permissions          its mode is looked at; if something is found, somebody has to approve it
      policy.wildcard-iam         what it allows is looked at; what is found is told
      policy.files-max            more than 200 files at once have to be approved
      policy.bytes-max            more than 100000000 bytes at once have to be approved
      policy.removed-percent-max  more than 50 percent of the files removed at once have to be approved
      rule `night`                if operation.removed > 20, it is refused
      risk                        a write of it is of low risk if it is small and alone
    ");
    let world = World::new().file("backout.toml", "[protect]\ndeny = ['x']\n");
    insta::assert_snapshot!(world.cli(["config", "show", "a"]), @"
    backout.toml
      says nothing about it
    ");
}

/// Something wrong in each of its tables.
const WRONG: &str = "version = 1
surprise = 1
[protect]
deny = ['../out', '']
expires = 'soon'
[syntax]
formats = { '*.x' = 'jsn' }
[policy]
secrets = 'maybe'
files-max = -1
bytes-max = 'big'
[[check]]
paths = ['a']
[[check]]
name = 'values'
values = [{ kez = 'a' }, { key = 'a', min = 'x' }, 3]
command = 'true'
[[rule]]
name = 'none'
[[rule]]
name = 'wrong'
when = 'operation.fils > 1'
[[watch]]
name = 'nothing'
[[watch]]
name = 'both'
paths = ['a']
http = 'http://a/'
command = ['true']
[[watch]]
name = 'tls'
paths = ['a']
http = 'https://a/'
status = 99
[risk]
high = 'warn'
[notify]
webhook = 'http://u:p@a/'
[ladder.grave]
retries = 1
";

#[test]
fn every_mistake_with_its_place() {
    let world = World::new().file("backout.toml", WRONG);
    insta::assert_snapshot!(world.cli(["config", "check"]), @r#"
    backout.toml:2:1: `surprise` is not known; known are version, protect, syntax, policy, check, rule, watch, compensation, risk, notify, ladder, triggers, checkpoints, agents
    backout.toml:4:8: `../out` can match nothing: this file counts for what is in `$WORLD/work`
    backout.toml:5:11: `protect.expires` must be a time, or "never", like "30s", "24h" or "7d"
    backout.toml:7:21: `jsn` is no format; did you mean `json`?
    backout.toml:9:11: `policy.secrets` must be one of "deny", "ask", "warn", "off", not "maybe"
    backout.toml:10:13: `policy.files-max` must be a whole number from 0 to 9007199254740992
    backout.toml:11:13: `policy.bytes-max` must be a size, like "10KB" or "1MiB"
    backout.toml:12:1: a [[check]] needs a `name`
    backout.toml:16:11: a rule in `check.values` needs a `key`
    backout.toml:16:19: `check.values.kez` is not known; did you mean `key`?
    backout.toml:16:45: `check.values.min` must be a number
    backout.toml:16:52: `check.values` holds tables only
    backout.toml:17:11: `check.command` must be a program and its arguments, like ["nginx", "-t"]
    backout.toml:18:1: a [[rule]] needs a condition in `when`, or a policy in `rego`
    backout.toml:22:8: the condition is wrong at line 1, column 11 of it: `operation` has no field `fils`; did you mean `files`?
    backout.toml:23:1: a [[watch]] needs `paths`: which writes is it for?
    backout.toml:25:1: a [[watch]] has a `command` or `http`, not both
    backout.toml:33:8: https is not spoken here: use a `command` with curl
    backout.toml:34:10: `watch.status` must be a whole number from 100 to 599
    backout.toml:36:8: `risk.high` must be one of "allow", "ask", "deny", not "warn"
    backout.toml:38:11: a URL here has no user and no password
    backout.toml:39:9: `ladder.grave` is not known; known are low, medium, high, critical
    [exit code 1]
    "#);
    insta::assert_snapshot!(world.cli(["config", "show", "a"]), @"
    backout.toml
      it has mistakes, so every write that it might be about is refused
    ");
    world.put("backout.toml", "version = 2\n");
    insta::assert_snapshot!(world.cli(["write", "a", "--text", "x"]), @"
    error: nothing was written
      why: `backout.toml` cannot be understood: line 1, column 11: the file is of version 2, and this program reads version 1; update Backout (rules must be readable)
      next: mend `backout.toml`
      next: the journal has it as 9e3779b9
    [exit code 1]
    ");
}

#[test]
fn more_mistakes_with_their_places() {
    let world = World::new().file(
        "backout.toml",
        "[syntax]
formats = ['x']
[[check]]
name = 'nothing'
[[check]]
name = 'list'
values = 1
operations = ['wrte']
timeout = 'soon'
[[watch]]
name = 'nothing'
paths = ['a']
[notify]
webhook = 'ftp://a/'
",
    );
    insta::assert_snapshot!(world.cli(["config", "check"]), @r#"
    backout.toml:2:11: `syntax.formats` must be a table of formats, like { "*.tmpl" = "yaml" }
    backout.toml:3:1: it checks nothing: give it a `schema`, `values`, `structure` or a `command`
    backout.toml:7:10: `check.values` must be a list of rules, like [{ key = "port", min = 1 }]
    backout.toml:8:14: `check.operations` must be a list of known names, and `wrte` is none: did you mean `write`?
    backout.toml:9:11: `check.timeout` must be a time, like "500ms", "30s" or "1h"
    backout.toml:10:1: it looks at nothing: give it a `command`, `http` or a `reload`
    backout.toml:14:11: `ftp://a/` is no URL like "http://127.0.0.1:8080/health"
    [exit code 1]
    "#);
    std::fs::remove_file(world.path("backout.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere", world.path("backout.toml")).unwrap();
    insta::assert_snapshot!(world.cli(["config", "check"]), @"
    backout.toml: it is a link that leads nowhere
    [exit code 1]
    ");
}

#[test]
fn an_agent_that_wants_to_change_the_rules() {
    let world = World::new().file("d/backout.toml", "[syntax]\n");
    insta::assert_snapshot!(world.cli(["--agent", "bob", "write", "d/backout.toml", "--text", ""]), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: `d/backout.toml` says what may be written, and an agent wants to change it (rules are changed by people)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["--agent", "bob", "mv", "d", "e"]), @"
    error: nothing was written yet: it waits for a decision as 3c6ef372
      why: `d/backout.toml` says what may be written, and an agent wants to change what leads to it (rules are changed by people)
      why: `e/backout.toml` says what may be written, and an agent wants to change what leads to it (rules are changed by people)
      next: go on with other work; `backout show 3c6ef372` says what was decided
      next: a person decides with `backout approve 3c6ef372` or `backout reject 3c6ef372`
    [exit code 1]
    ");
    let world = World::new().file("rules", "[syntax]\n");
    std::os::unix::fs::symlink("rules", world.path("backout.toml")).unwrap();
    insta::assert_snapshot!(world.cli(["--agent", "bob", "write", "rules", "--text", ""]), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: `backout.toml` says what may be written, and an agent wants to change what leads to it (rules are changed by people)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
}

#[test]
fn what_more_holds_for_a_path() {
    let world = World::new().file(
        "backout.toml",
        "[[watch]]\nname = 'one'\npaths = ['a']\nreload = ['true']\n[[watch]]\nname = 'two'\npaths = ['a']\ncommand = ['test', '-s', 'a']\n[[rule]]\nname = 'three'\nwhen = 'true'\nthen = 'warn'\n[[rule]]\nname = 'four'\nwhen = 'true'\nthen = 'ask'\n",
    );
    insta::assert_snapshot!(world.cli(["config", "show", "a"]), @"
    backout.toml
      rule `three`  if true, it is told
      rule `four`   if true, somebody has to approve it
      watch `one`   after a write its reload has to work, or it is taken back
      watch `two`   after a write `test -s a` has to pass, or it is taken back
    ");
}

#[test]
fn what_checks_say() {
    let world = World::new()
        .file("backout.toml", "[syntax]\n[[check]]\nname = 'app'\npaths = ['*.json', 'odd']\nschema = 'schema.json'\nvalues = [{ key = 'port', max = 9 }]\n[[check]]\nname = 'own'\npaths = ['*.conf']\ncommand = ['sh', '-c', 'echo $0: line 3: bad; exit 4', '{staged}']\n")
        .file("schema.json", r#"{"required": ["host"]}"#);
    insta::assert_snapshot!(world.cli(["write", "a.json", "--text", "{\"port\": 10}"]), @"
    error: nothing was written
      why: `a.json`, line 1, column 1: the key `host` is missing (check `app` in backout.toml)
      why: `a.json`, line 1, column 10: it is `10`, and has to be 9 or less (check `app` in backout.toml)
      next: add `host`
      next: choose 9 or less
      next: the journal has it as 9e3779b9
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "a.json", "--text", "{\"port\": "]), @"
    error: nothing was written
      why: `a.json`, line 1, column 10: the text ends, but `{` of line 1, column 1 is not closed (syntax in backout.toml)
      next: close it with `}`
      next: the journal has it as 3c6ef372
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "odd", "--text", "x"]), @"
    error: nothing was written
      why: `odd`: its name does not tell a format with keys, so nothing in it can be checked (check `app` in backout.toml)
      next: name its format in `syntax.formats`, or narrow the `paths` of the check
      next: the journal has it as daa66d2c
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "a.conf", "--text", "x"]), @"
    error: nothing was written
      why: `a.conf`: `sh` ended with 4: a.conf: line 3: bad (check `own` in backout.toml)
      next: mend what it names, and write it again
      next: the journal has it as 78dde6e5
    [exit code 1]
    ");
    world.put("schema.json", "{");
    insta::assert_snapshot!(world.cli(["write", "a.json", "--text", "{}"]), @"
    error: nothing was written
      why: `a.json`: its schema `schema.json` cannot be used: line 1, column 2: it cannot be read: a name in double quotes is needed here (check `app` in backout.toml)
      next: the journal has it as 1715609f
    [exit code 1]
    ");
}

#[test]
fn what_policies_say() {
    let world = World::new().file(
        "backout.toml",
        "[policy]\nsecrets = 'deny'\npermissions = 'deny'\nwildcard-iam = 'deny'\nfiles-max = 1\nbytes-max = 10\n",
    );
    let token = format!("t = 'ghp_{}'", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    insta::assert_snapshot!(world.cli(["write", "a", "--text", &token]), @"
    error: nothing was written
      why: `a`, line 1, column 6: this looks like a GitHub personal access token: `ghp_…` (40 characters) (policy.secrets in backout.toml)
      next: take it out, read it from the environment or a secret store, and revoke it if it was real
      next: the journal has it as 9e3779b9
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "a", "--text", "x", "--mode", "6777"]), @"
    error: nothing was written
      why: `a`: its mode 6777 is more than the umask 0022 gives (policy.permissions in backout.toml)
      why: `a`: its mode 6777 lends the rights of its owner to whoever runs it (policy.permissions in backout.toml)
      why: `a`: its mode 6777 lends the rights of its group to whoever runs it (policy.permissions in backout.toml)
      next: give it mode 0755
      next: the journal has it as 3c6ef372
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "p.json", "--text", r#"{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}"#]), @"
    error: nothing was written
      why: `p.json`, line 1, column 46: `Allow` of `*` on every resource (`*`) (policy.wildcard-iam in backout.toml)
      next: list the actions and the resources that are needed
      next: the journal has it as daa66d2c
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "b", "--text", "0123456789a"]), @"
    error: nothing was written yet: it waits for a decision as 78dde6e5
      why: it writes or removes 11 bytes, and more than 10 have to be approved (policy.bytes-max in backout.toml)
      next: do it in smaller steps, or ask a person to approve it
      next: go on with other work; `backout show 78dde6e5` says what was decided
      next: a person decides with `backout approve 78dde6e5` or `backout reject 78dde6e5`
    [exit code 1]
    ");
    world.put("t/a", "1");
    world.put("t/b", "2");
    insta::assert_snapshot!(world.cli(["rm", "-r", "t"]), @"
    error: nothing was written yet: it waits for a decision as 1715609f
      why: it changes 2 files, and more than 1 have to be approved (policy.files-max in backout.toml)
      next: do it in smaller steps, or ask a person to approve it
      next: go on with other work; `backout show 1715609f` says what was decided
      next: a person decides with `backout approve 1715609f` or `backout reject 1715609f`
    [exit code 1]
    ");
}

#[test]
fn what_risk_and_conditions_say() {
    let world = World::new().file(
        "backout.toml",
        "[[rule]]\nname = 'one'\nwhen = 'operation.kind == \"remove\"'\nthen = 'ask'\n[risk]\nhigh-paths = ['prod']\nlow-bytes-max = 3\nhigh-operations = ['chmod']\n",
    );
    world.put("prod", "x");
    world.put("a", "x");
    insta::assert_snapshot!(world.cli(["rm", "a"]), @r#"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: its condition holds: operation.kind == "remove" (rule `one` in backout.toml)
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    "#);
    insta::assert_snapshot!(world.cli(["write", "prod", "--text", "y"]), @"
    error: nothing was written yet: it waits for a decision as 3c6ef372
      why: it is of high risk: `prod` is among the high-paths (risk in backout.toml)
      next: ask a person to approve it
      next: go on with other work; `backout show 3c6ef372` says what was decided
      next: a person decides with `backout approve 3c6ef372` or `backout reject 3c6ef372`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "a", "--text", "long"]), @"
    error: nothing was written yet: it waits for a decision as daa66d2c
      why: it is of medium risk: it is about 4 bytes, more than 3 (risk in backout.toml)
      next: ask a person to approve it
      next: go on with other work; `backout show daa66d2c` says what was decided
      next: a person decides with `backout approve daa66d2c` or `backout reject daa66d2c`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["chmod", "0600", "a"]), @"
    error: nothing was written yet: it waits for a decision as 78dde6e5
      why: it is of high risk: `chmod` is among the high-operations (risk in backout.toml)
      next: ask a person to approve it
      next: go on with other work; `backout show 78dde6e5` says what was decided
      next: a person decides with `backout approve 78dde6e5` or `backout reject 78dde6e5`
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["run", "--", "sh", "-c", "echo x > prod"]), @"
    sh: 1: cannot create prod: Operation not permitted
    note: a write of `prod` has to be approved (risk `prod` in backout.toml); the command was refused
    [exit code 2]
    ");
    world.put(
        "backout.toml",
        "[[rule]]\nname = 'odd'\nwhen = '1 / operation.removed > 5'\n",
    );
    insta::assert_snapshot!(world.cli(["write", "a", "--text", "z"]), @"
    error: nothing was written
      why: it cannot be told whether it holds: the condition cannot be answered: Division by zero of Int(1) (rule `odd` in backout.toml)
      next: the journal has it as b54cda58
    [exit code 1]
    ");
}

#[test]
fn what_is_of_medium_risk_and_what_removes_too_much() {
    let world = World::new().file(
        "backout.toml",
        "[policy]\nremoved-percent-max = 50\n[risk]\nmedium-paths = ['m']\n",
    );
    insta::assert_snapshot!(world.cli(["write", "m", "--text", "x"]), @"
    error: nothing was written yet: it waits for a decision as 9e3779b9
      why: it is of medium risk: `m` is among the medium-paths (risk in backout.toml)
      next: ask a person to approve it
      next: go on with other work; `backout show 9e3779b9` says what was decided
      next: a person decides with `backout approve 9e3779b9` or `backout reject 9e3779b9`
    [exit code 1]
    ");
    for number in 0..10 {
        world.put(&format!("t/{number}"), "x");
    }
    world.put("backout.toml", "[policy]\nremoved-percent-max = 50\n");
    insta::assert_snapshot!(world.cli(["rm", "-r", "t"]), @"
    error: nothing was written yet: it waits for a decision as 3c6ef372
      why: it removes 90 % of the files in `.`, and more than 50 % has to be approved (policy.removed-percent-max in backout.toml)
      next: remove less at once, or ask a person to approve it
      next: go on with other work; `backout show 3c6ef372` says what was decided
      next: a person decides with `backout approve 3c6ef372` or `backout reject 3c6ef372`
    [exit code 1]
    ");
}

#[test]
fn a_watch_that_fails() {
    let world = World::new().file(
        "backout.toml",
        "[[watch]]\nname = 'app'\npaths = ['a']\nreload = ['sh', '-c', 'echo cannot; exit 3']\n[[watch]]\nname = 'look'\npaths = ['b']\ncommand = ['false']\ntries = 2\npause = '1ms'\n",
    );
    insta::assert_snapshot!(world.cli(["write", "a", "--text", "x"]), @"
    error: the check after the write said no
      why: it did not reload: `sh` ended with 3: cannot (watch `app` in backout.toml)
      why: `app` did not reload what is there again: `sh` ended with 3: cannot (after it was taken back)
      why: operation 9e3779b9 was put back: nothing of it stays
      next: mend what was written, and write it again
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["write", "b", "--text", "x"]), @"
    error: the check after the write said no
      why: `false` ended with 1 in 2 tries (watch `look` in backout.toml)
      why: operation daa66d2c was put back: nothing of it stays
      next: mend what was written, and write it again
    [exit code 1]
    ");
    insta::assert_snapshot!(world.cli(["log"]), @"
    ╭◇   78dde6e5  just now  committed  undo of write b  (policy-violation)
    ╰○   daa66d2c  just now  undone     write b
    ╭◇   3c6ef372  just now  committed  undo of write a  (policy-violation)
    ╰○   9e3779b9  just now  undone     write a
    ");
}

#[test]
fn a_command_whose_work_may_not_stay() {
    let world = World::new().file("backout.toml", "[syntax]\n");
    insta::assert_snapshot!(world.cli(["run", "--", "sh", "-c", "echo { > a.json"]), @"
    error: what the command wrote was taken back, as daa66d2c
      why: `a.json`, line 2, column 1: the text ends, but `{` of line 1, column 1 is not closed (syntax in backout.toml)
      next: close it with `}`
      next: what it wrote comes back with `backout redo daa66d2c`, and no gate looks at it then
    [exit code 1]
    ");
    // The journal says why.
    let shown = world.cli(["show", "@"]).out;
    let note = "note         `a.json`, line 2, column 1: the text ends";
    assert!(shown.contains(note), "{shown}");
    // Somebody changes what it wrote before it is taken back: here, who looks.
    let world = World::new().file(
        "backout.toml",
        "[[watch]]\nname = 'look'\npaths = ['a']\ncommand = ['sh', '-c', 'echo more >> a; false']\ntries = 1\n",
    );
    insta::assert_snapshot!(world.cli(["run", "--", "sh", "-c", "echo 1 > a; echo 2 > b"]), @"
    error: what the command wrote was taken back in part, as daa66d2c
      why: `sh` ended with 1 (watch `look` in backout.toml)
      next: mend what was written, and write it again
      next: what it wrote comes back with `backout redo daa66d2c`, and no gate looks at it then
      next: see what stays with `backout show 9e3779b9`
    [exit code 1]
    ");
    assert!(!world.has("b"));
    assert_eq!(world.text("a"), "1\nmore\n");
    insta::assert_snapshot!(world.cli(["run", "--", "sh", "-c", "echo 3 > a"]), @"
    error: what the command wrote must not stay, and could not be taken back
      why: `sh` ended with 1 (watch `look` in backout.toml)
      next: mend what was written, and write it again
      next: see what stays with `backout show 78dde6e5`
    [exit code 1]
    ");
}
