//! Calls of services: taken back, put back, lost on the way, and cut off at every step, against a service that fails as it is told.

mod crash;
mod faults;
mod localstripe;
mod others;
mod outbox;
mod powerdns;
pub(crate) mod service;

use std::process::Output;

use crate::world::{World, said};
use service::{Fault, Service};

/// How a service of the tests is made known.
struct Known {
    world: World,
    service: Service,
}

/// Everything that the service can do.
const KEY: &str = r#"idempotency = { window = "1h" }"#;
const LOOKUP: &str = r#"lookup = { url = "$S/things?name={request.name}", item = "data.*" }"#;
const VERIFY: &str =
    r#"verify = { url = "$S/things/{response.id}", interval = "10ms", limit = "3s" }"#;

impl Known {
    /// A world with a rule for what is made, and one for what is changed.
    fn with(more: &[&str]) -> Self {
        Self::answered_by(r#"{ url = "$S/things/{response.id}" }"#, more)
    }

    /// The same, with another call that answers what is made.
    fn answered_by(inverse: &str, more: &[&str]) -> Self {
        let (world, service) = (World::new(), Service::start());
        let rules = format!(
            r#"
[[compensation]]
match = "POST $S/things"
ignore = ["version"]
inverse = {inverse}
{}

[[compensation]]
match = "PUT|PATCH|DELETE $S/things/{{id}}"
capture = true
ignore = ["version"]

[[compensation]]
match = "POST $S/mail"
reversibility = "irreversible"
"#,
            more.join("\n")
        );
        world.file("backout.toml", &rules.replace("$S", &service.url("")));
        Self { world, service }
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Output {
        let url = self.service.url(path);
        let mut words = vec!["http", method, &url, "--timeout", "1"];
        if !body.is_empty() {
            words.extend(["--json-body", "--data", body]);
        }
        self.world.run(&words)
    }

    fn makes(&self, name: &str) {
        let output = self.call("POST", "/things", &format!(r#"{{"name": "{name}"}}"#));
        assert!(output.status.success(), "{}", said(&output));
    }

    /// Tells how the newest operation ended.
    fn status(&self) -> String {
        self.world.operations()[0].1.clone()
    }
}

#[test]
fn what_a_post_made_is_taken_away_and_brought_again() {
    let it = Known::with(&[KEY, VERIFY]);
    it.makes("ann");
    assert_eq!(it.service.names(), ["ann"]);
    let plan = it.world.ok(&["undo", "--everywhere", "-n"]);
    assert_eq!(it.service.names(), ["ann"], "{plan}");
    let undone = it.world.json(&["undo", "--everywhere"]);
    assert!(undone.to_string().contains("compensated"), "{undone}");
    assert!(it.service.names().is_empty());
    it.world.ok(&["redo", "--everywhere"]);
    assert_eq!(it.service.names(), ["ann"]);
    it.world.ok(&["undo", "--everywhere"]);
    assert!(it.service.names().is_empty());
    let keys: std::collections::BTreeSet<_> = it
        .service
        .held()
        .writes
        .iter()
        .map(|(_, _, key)| key.clone())
        .collect();
    // Two calls and two answers, each with a key of its own.
    assert_eq!(keys.len(), 4);
    it.world.check_store();
}

#[test]
fn what_is_changed_or_deleted_is_put_back_as_it_was() {
    let it = Known::with(&[]);
    it.service.put("7", "ann");
    for (method, body, now) in [
        ("PUT", r#"{"name": "bob"}"#, vec!["bob"]),
        ("PATCH", r#"{"name": "cid"}"#, vec!["cid"]),
        ("DELETE", "", vec![]),
    ] {
        let output = it.call(method, "/things/7", body);
        assert!(output.status.success(), "{method}: {}", said(&output));
        assert_eq!(it.service.names(), now, "{method}");
        let undone = it.world.json(&["undo", "--everywhere"]);
        assert!(
            undone.to_string().contains("restored"),
            "{method}: {undone}"
        );
        assert_eq!(it.service.names(), ["ann"], "{method}");
        it.world.ok(&["redo", "--everywhere"]);
        assert_eq!(it.service.names(), now, "{method}");
        it.world.ok(&["undo", "--everywhere"]);
        assert_eq!(it.service.names(), ["ann"], "{method}");
    }
    // What was not there goes again.
    let output = it.call("PUT", "/things/8", r#"{"name": "new"}"#);
    assert!(output.status.success(), "{}", said(&output));
    it.world.ok(&["undo", "--everywhere"]);
    assert_eq!(it.service.names(), ["ann"]);
    it.world.check_store();
}

#[test]
fn what_a_service_makes_something_else_of_is_not_called_restored() {
    let it = Known::with(&[]);
    it.service.put("7", "ann");
    let output = it.call("PUT", "/things/7", r#"{"name": "bob"}"#);
    assert!(output.status.success(), "{}", said(&output));
    it.service.held().shouts = true;
    let plan = it.world.ok(&["undo", "--everywhere", "-n"]);
    assert!(plan.contains("whoever uses the service"), "{plan}");
    let undone = said(&it.world.run(&["undo", "--everywhere"]));
    assert_eq!(it.service.names(), ["ANN"]);
    let why = "the service made something else of it than it was";
    assert!(undone.contains(why), "{undone}");
}

#[test]
fn what_somebody_else_changed_since_is_a_conflict_and_force_keeps_it() {
    let it = Known::with(&[]);
    it.service.put("7", "ann");
    it.call("PUT", "/things/7", r#"{"name": "bob"}"#);
    it.service.put("7", "somebody's");
    let said = it.world.fails(1, &["undo", "--everywhere"]);
    assert!(
        said.contains("it is not what the call left there"),
        "{said}"
    );
    assert_eq!(it.service.names(), ["somebody's"]);
    it.world.ok(&["undo", "--everywhere", "--force"]);
    assert_eq!(it.service.names(), ["ann"]);
    it.world.ok(&["redo", "--everywhere"]);
    assert_eq!(it.service.names(), ["somebody's"]);
}

#[test]
fn a_write_without_a_way_back_is_not_sent() {
    let it = Known::with(&[]);
    let output = it.call("POST", "/other", "{}");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for word in [
        "nothing is known that takes it back",
        "[[compensation]]",
        "--irreversible",
    ] {
        assert!(said.contains(word), "{said}");
    }
    assert!(it.service.held().writes.is_empty());
    it.service.put("7", "ann");
    let seen = it.call("GET", "/things/7", "");
    assert!(String::from_utf8_lossy(&seen.stdout).contains("ann"));
    assert!(it.world.operations().is_empty());
    assert_eq!(it.call("GET", "/things/9", "").status.code(), Some(1));
}

#[test]
fn no_secret_is_kept_or_shown() {
    let it = Known::with(&[KEY, VERIFY]);
    let url = it.service.url("/things");
    for (header, url) in [
        ("Authorization: Bearer abc", url.as_str()),
        ("Cookie: a=b", &url),
        ("X-Api-Key: abc", &url),
        (
            "Accept: */*",
            &url.replace("http://", "http://user:hunter2@"),
        ),
        ("Accept: */*", &format!("{url}?token=hunter2")),
    ] {
        let said = it
            .world
            .fails(1, &["http", "POST", url, "-H", header, "--data", "{}"]);
        assert!(said.contains("${env:NAME}"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
    assert!(it.service.held().writes.is_empty());
    let words = [
        "--json",
        "http",
        "POST",
        &url,
        "-H",
        "Authorization: Bearer ${env:API_TOKEN}",
        "--data",
        r#"{"name": "ann"}"#,
    ];
    let output = it
        .world
        .command(&words)
        .env("API_TOKEN", "sekrit-4711")
        .output()
        .unwrap();
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(!told.contains("session=abc"), "a cookie is shown: {told}");
    it.world.ok(&["undo", "--everywhere"]);
    assert_eq!(it.service.held().authorizations, ["Bearer sekrit-4711"]);
    for secret in [
        "sekrit-4711",
        "sk_live_from_the_service_4242",
        "session=abc",
    ] {
        let output = std::process::Command::new("grep")
            .args(["-rlaF", secret])
            .arg(it.world.state())
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "",
            "{secret} is kept"
        );
    }
}

#[test]
fn a_file_a_key_and_a_call_go_back_together() {
    let it = Known::with(&[KEY, VERIFY]);
    it.world.file("app.toml", "port = 1\n");
    it.world.ok(&["task", "begin", "t"]);
    it.world
        .ok(&["--task", "t", "write", "new.txt", "--text", "new"]);
    it.world
        .ok(&["--task", "t", "set", "app.toml", "port", "2"]);
    let url = it.service.url("/things");
    it.world.ok(&[
        "--task",
        "t",
        "http",
        "POST",
        &url,
        "--data",
        r#"{"name": "ann"}"#,
    ]);
    it.world.ok(&["rollback", "--task", "t"]);
    assert!(it.service.names().is_empty());
    assert_eq!(it.world.read("app.toml"), "port = 1\n");
    assert!(!it.world.path("new.txt").exists());
    it.world.check_store();
}
