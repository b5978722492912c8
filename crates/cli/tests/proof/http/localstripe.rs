//! A service that nobody here wrote: `localstripe` from `PyPI`. A subscription is answered by its cancellation, which stays to be seen.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use backout_testkit::python_with;

use super::World;
use crate::world::said;

/// What is installed.
const PACKAGE: &str = "localstripe";

struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Installs it once, below the target directory.
fn installed() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("localstripe");
    python_with(&home, &[PACKAGE]).join("localstripe")
}

impl Server {
    fn start() -> Self {
        let program = installed();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let child = Command::new(program)
            .args(["--from-scratch", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        for _ in 0..600 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("localstripe does not listen");
    }
}

const RULES: &str = r#"
[[compensation]]
name = "subscription"
match = "POST $S/subscriptions"
inverse = { url = "$S/subscriptions/{response.id}", headers = { Authorization = "Bearer ${env:STRIPE_KEY}" } }
verify = { url = "$S/subscriptions/{response.id}", headers = { Authorization = "Bearer ${env:STRIPE_KEY}" }, field = "status", equals = "canceled", interval = "50ms", limit = "10s" }

[[compensation]]
name = "rest"
match = "POST $S/{what}"
inverse = { url = "$S/{what}/{response.id}", headers = { Authorization = "Bearer ${env:STRIPE_KEY}" } }
"#;

struct Stripe {
    world: World,
    server: Server,
}

impl Stripe {
    fn run(&self, words: &[&str]) -> serde_json::Value {
        let mut all = vec!["--json"];
        all.extend(words);
        let output = self.command(&all);
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn command(&self, words: &[&str]) -> std::process::Output {
        let mut command = self.world.command(words);
        command.env("STRIPE_KEY", "sk_test_12345").output().unwrap()
    }

    fn call(&self, method: &str, path: &str, form: &str) -> serde_json::Value {
        let url = format!("http://127.0.0.1:{}/v1{path}", self.server.port);
        let mut words = vec!["http", method, url.as_str()];
        words.extend(["-H", "Authorization: Bearer ${env:STRIPE_KEY}"]);
        if !form.is_empty() {
            words.extend(["-H", "Content-Type: application/x-www-form-urlencoded"]);
            words.extend(["--data", form]);
        }
        let called = self.run(&words);
        serde_json::from_str(called["body"].as_str().unwrap()).unwrap()
    }
}

#[test]
fn a_subscription_is_cancelled_by_the_undo_and_not_over_what_somebody_changed() {
    let server = Server::start();
    let world = World::new();
    let base = format!("http://127.0.0.1:{}/v1", server.port);
    world.file("backout.toml", &RULES.replace("$S", &base));
    let it = Stripe { world, server };
    let card = "source[object]=card&source[number]=4242424242424242&source[exp_month]=12&source[exp_year]=2040&source[cvc]=123";
    let customer = it.call(
        "POST",
        "/customers",
        &format!("email=ann@example.org&{card}"),
    );
    let customer = customer["id"].as_str().unwrap().to_owned();
    let plan = "id=gold&amount=1000&currency=eur&interval=month&product[name]=Gold";
    it.call("POST", "/plans", plan);
    let form = format!("customer={customer}&items[0][plan]=gold");
    let subscription = it.call("POST", "/subscriptions", &form);
    assert_eq!(subscription["status"], "active");
    let place = format!("/subscriptions/{}", subscription["id"].as_str().unwrap());
    let undone = it.run(&["undo", "--everywhere"]);
    assert!(undone.to_string().contains("compensated"), "{undone}");
    assert_eq!(it.call("GET", &place, "")["status"], "canceled");
    it.run(&["redo", "--everywhere"]);
    let active = it.call("GET", "/subscriptions", "");
    let mut active = active["data"].as_array().unwrap().iter();
    assert!(active.any(|it| it["status"] == "active"));
    // Somebody else changes a customer: that is seen before it is removed, and comes back with it.
    let customer = it.call("POST", "/customers", "email=bob@example.org");
    let place = format!("/customers/{}", customer["id"].as_str().unwrap());
    let changed = Command::new("python3")
        .args(["-c", "import sys, urllib.request as r; r.urlopen(r.Request(sys.argv[1], b'description=theirs', {'Authorization': 'Bearer sk_test_12345'}))"])
        .arg(format!("{base}{place}"))
        .output()
        .unwrap();
    assert!(changed.status.success(), "{}", said(&changed));
    let refused = it.command(&["undo", "--everywhere"]);
    assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
    assert!(
        said(&refused).contains("`description`"),
        "{}",
        said(&refused)
    );
    assert_eq!(it.call("GET", &place, "")["description"], "theirs");
    let undone = it.run(&["undo", "--everywhere", "--force"]);
    let kept = it.run(&["diff", undone["act"].as_str().unwrap()]);
    assert!(kept.to_string().contains("theirs"), "{kept}");
}
