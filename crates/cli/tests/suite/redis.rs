//! `backout redis`, against a real server.

use std::fs;

use backout_testkit::world::{RedisServer, Reply};

use crate::schema::Schema;
use crate::world::{Ran, World};

/// A world with a server in it.
struct Shop {
    world: World,
    server: RedisServer,
    url: String,
}

impl Shop {
    fn new() -> Self {
        let world = World::new();
        let place = world.place("redis");
        fs::create_dir(&place).unwrap();
        let server = RedisServer::at(&place, &[]);
        let url = server.url();
        Self { world, server, url }
    }

    fn redis<const N: usize>(&self, words: [&str; N]) -> Ran {
        let mut all = vec!["redis", "--url", &self.url];
        all.extend(words);
        self.world.run(&mut self.world.command(&all))
    }

    fn piped(&self, text: &str) -> Ran {
        self.world
            .piped(text.as_bytes(), ["redis", "--url", &self.url])
    }

    fn value(&self, key: &str) -> Option<String> {
        match self.server.ask(&["GET", key]) {
            Reply::Bytes(bytes) => Some(String::from_utf8(bytes).unwrap()),
            Reply::Nil | Reply::Int(_) | Reply::Error(_) | Reply::List(_) => None,
        }
    }
}

#[test]
fn a_command_is_answered_and_taken_back_and_brought_again() {
    let shop = Shop::new();
    shop.server
        .ask(&["SET", "visits", "41", "PXAT", "4102444800000"]);
    let before = shop.server.snapshot();
    let ran = shop.redis(["INCR", "visits"]);
    insta::assert_snapshot!(ran, @r#"
    (integer) 42
    ran redis INCR visits  (9e3779b9, undo with `backout undo 9e3779b9`)
    "#);
    let after = shop.server.snapshot();
    let log = shop.world.cli(["log"]);
    assert!(log.out.contains("redis INCR visits"), "{log}");
    let shown = shop.world.cli(["show", "@"]);
    assert!(shown.out.contains("/0/visits"), "{shown}");
    let diff = shop.world.cli(["diff", "@"]);
    let told = r#""41", goes at 4102444800000  "42", goes at 4102444800000  as after"#;
    assert!(diff.out.contains(told), "{diff}");
    let undone = shop.world.cli(["undo", "@"]);
    assert_eq!(undone.code, 0, "{undone}");
    assert_eq!(shop.server.snapshot(), before);
    shop.world.did(["redo", "@"]);
    assert_eq!(shop.server.snapshot(), after);
    shop.world.did(["undo", "@"]);
    assert_eq!(shop.server.snapshot(), before);
}

#[test]
fn what_only_reads_is_answered_and_not_recorded() {
    let shop = Shop::new();
    shop.server.ask(&["RPUSH", "queue", "a", "b \"c\""]);
    let ran = shop.redis(["LRANGE", "queue", "0", "-1"]);
    insta::assert_snapshot!(ran, @r#"
    1) "a"
    2) "b \"c\""
    "#);
    let ran = shop.redis(["--json", "MGET", "a", "b"]);
    Schema::read().check("reply", &serde_json::from_str(&ran.out).unwrap());
    insta::assert_snapshot!(ran, @r#"
    {"reply":"redis","answers":[[null,null]]}
    "#);
    assert!(!shop.world.place("state").exists());
}

#[test]
fn programs_get_the_answers_and_the_operation() {
    let shop = Shop::new();
    let ran = shop.redis(["--json", "SET", "a", "1"]);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["reply"], "redis");
    assert_eq!(json["answers"], serde_json::json!(["OK"]));
    Schema::read().check("reply", &json);
    let id = json["write"]["id"].as_str().unwrap();
    assert_eq!(json["write"]["status"], "committed");
    shop.world.did(["undo", id]);
    assert_eq!(shop.value("a"), None);
}

#[test]
fn commands_from_a_file_are_all_or_nothing() {
    let shop = Shop::new();
    shop.world.put(
        "commands",
        "# two of them\nSET a 1\nHSET h field 'two words'\n",
    );
    let ran = shop.redis(["--file", "commands"]);
    insta::assert_snapshot!(ran, @r#"
    OK
    (integer) 1
    ran redis SET and 1 more  (9e3779b9, undo with `backout undo 9e3779b9`)
    "#);
    let before = shop.server.snapshot();
    insta::assert_snapshot!(shop.piped("SET a 2\nINCR h\nSET b 3\n"), @r#"
    error: command 2, `INCR`, failed: the server said: WRONGTYPE Operation against a key holding the wrong kind of value
      why: operation 3c6ef372 was put back: nothing of it stays
    [exit code 1]
    "#);
    assert_eq!(shop.server.snapshot(), before);
    insta::assert_snapshot!(shop.piped("SET a 2\nSET \"b 3\n"), @r#"
    error: the quotes of line 2 do not match
      next: write one command per line, quoted as for `redis-cli`
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.piped("\n"), @r#"
    error: there is no command to run
      next: give a command, or `--file FILE`
    [exit code 1]
    "#);
    shop.world.did(["undo", "@"]);
    assert!(shop.server.snapshot().is_empty());
}

#[test]
fn what_cannot_be_taken_back_is_refused() {
    let shop = Shop::new();
    insta::assert_snapshot!(shop.redis(["FLUSHALL"]), @r#"
    error: `FLUSHALL` was not run: it writes every key at once
      next: remove the keys by name, with `DEL` or `UNLINK`
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.redis(["EVAL", "return 1", "0"]), @r#"
    error: `EVAL` was not run: a script may write keys that it does not name
      next: run the commands of the script themselves, from a file they are one transaction; or `EVAL_RO`, if it only reads
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.redis(["NOSUCH", "a"]), @r#"
    error: `NOSUCH` was not run: the server does not know it
      next: check the name of the command
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.redis(["SET", "a"]), @r#"
    error: the server said: ERR Invalid number of arguments specified for command
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.world.cli(["redis", "--url", "rediss://h", "GET", "a"]), @r#"
    error: this program has no TLS for Redis
      next: connect to a local end of a tunnel, such as `stunnel` makes
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.world.cli(["redis", "--url", "redis://h/x", "GET", "a"]), @r#"
    error: the URL of the server cannot be read: invalid client config
      next: give `redis://HOST:PORT/DB` or `unix:///PATH?db=DB`
    [exit code 1]
    "#);
    insta::assert_snapshot!(shop.world.cli(["redis", "--strategy", "snapshot", "--url", &shop.url, "SET", "a", "1"]), @r#"
    error: keys of a server are kept one by one
      next: leave `--strategy` out
    [exit code 1]
    "#);
}

#[test]
fn a_key_that_somebody_wrote_since_is_a_conflict() {
    let shop = Shop::new();
    shop.server.ask(&["SET", "a", "1"]);
    shop.redis(["SET", "a", "2"]);
    shop.server.ask(&["SET", "a", "theirs"]);
    let undone = shop.world.cli(["undo", "@"]);
    assert_eq!(undone.code, 1, "{undone}");
    assert!(undone.err.contains("somebody else changed it"), "{undone}");
    assert_eq!(shop.value("a").as_deref(), Some("theirs"));
    shop.world.did(["undo", "@", "--force"]);
    assert_eq!(shop.value("a").as_deref(), Some("1"));
    shop.world.did(["redo", "@"]);
    assert_eq!(shop.value("a").as_deref(), Some("theirs"));
}

#[test]
fn files_and_keys_of_one_task_go_back_together() {
    let shop = Shop::new();
    shop.world.put("app.toml", "port = 1\n");
    shop.server.ask(&["SET", "port", "1"]);
    shop.world.did(["task", "begin", "move"]);
    shop.world.did([
        "--task",
        "move",
        "write",
        "app.toml",
        "--text",
        "port = 2\n",
    ]);
    let ran = shop.redis(["--task", "move", "SET", "port", "2"]);
    assert_eq!(ran.code, 0, "{ran}");
    let rolled = shop.world.cli(["rollback", "move"]);
    assert_eq!(rolled.code, 0, "{rolled}");
    assert_eq!(shop.value("port").as_deref(), Some("1"));
    assert_eq!(shop.world.text("app.toml"), "port = 1\n");
}

#[test]
fn a_password_is_used_and_never_kept() {
    let shop = Shop::new();
    shop.server
        .ask(&["ACL", "SETUSER", "default", "on", ">hushhush"]);
    insta::assert_snapshot!(shop.redis(["SET", "a", "1"]), @r#"
    error: the server said: NOAUTH Authentication required.
      next: set `REDISCLI_AUTH`, or name a variable in the URL: `redis://USER:${env:NAME}@HOST`
    [exit code 1]
    "#);
    let open = format!("{}?pass=hushhush", shop.url);
    let ran = shop.world.cli(["redis", "--url", &open, "SET", "a", "1"]);
    assert_eq!(ran.code, 0, "{ran}");
    // The undo has no password, and says so.
    let undone = shop.world.cli(["undo", "@"]);
    assert!(
        undone.code == 1 && undone.err.contains("REDISCLI_AUTH"),
        "{undone}"
    );
    let mut command = shop.world.command(&["undo", "@"]);
    let undone = shop.world.run(command.env("REDISCLI_AUTH", "hushhush"));
    assert_eq!(undone.code, 0, "{undone}");
    let named = format!("{}?pass=${{env:SHOP_PASSWORD}}", shop.url);
    for words in [
        &["redis", "--url", &named, "SET", "a", "2"][..],
        &["undo", "@"],
    ] {
        let mut command = shop.world.command(words);
        let ran = shop.world.run(command.env("SHOP_PASSWORD", "hushhush"));
        assert_eq!(ran.code, 0, "{ran}");
    }
    let mut files = vec![shop.world.place("state")];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let bytes = fs::read(&path).unwrap();
            let is_in = bytes.windows(8).any(|window| window == b"hushhush");
            assert!(!is_in, "{} holds the password", path.display());
        }
    }
}

#[test]
fn a_server_that_is_away_is_said_and_nothing_is_lost() {
    let mut shop = Shop::new();
    shop.server.ask(&["SET", "a", "1"]);
    shop.redis(["SET", "a", "2"]);
    shop.server.stop();
    insta::assert_snapshot!(shop.redis(["SET", "a", "3"]), @r#"
    error: unix://$WORLD/redis/socket?db=0 does not answer
      why: Connection refused (os error 111)
      next: see whether the server is there, and that `--url` names it
    [exit code 1]
    "#);
    let undone = shop.world.cli(["undo", "@"]);
    assert!(
        undone.code != 0 && undone.err.contains("does not answer"),
        "{undone}"
    );
    // It forgot all: what is there is not what the operation left.
    shop.server.restart();
    let undone = shop.world.cli(["undo", "@"]);
    assert_eq!(undone.code, 1, "{undone}");
    shop.world.did(["undo", "@", "--force"]);
    assert_eq!(shop.value("a").as_deref(), Some("1"));
}

#[test]
fn a_command_that_changes_nothing_is_no_operation() {
    let shop = Shop::new();
    shop.world
        .did(["redis", "--url", &shop.url, "SET", "k", "v"]);
    for words in [["DEL", "nothere"], ["PERSIST", "k"]] {
        let ran = shop.redis(words);
        assert!(ran.out.contains("(integer) 0"), "{ran}");
        assert!(
            ran.to_string()
                .contains("nothing to do: everything is already as asked"),
            "{ran}"
        );
    }
    let ran = shop.redis(["SET", "k", "v"]);
    assert_eq!(ran.code, 0, "{ran}");
    let undone = shop.world.cli(["undo"]);
    assert_eq!(undone.code, 0, "{undone}");
    assert_eq!(shop.value("k"), None);
}
