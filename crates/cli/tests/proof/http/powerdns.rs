//! A real service: `PowerDNS` and its REST API. A record is made, and taken back.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::world::{World, said};

/// A name server, until it goes.
struct Server {
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _ended = self.child.wait();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";

impl Server {
    /// None if it is not installed; that is said.
    fn start(world: &World) -> Option<Self> {
        let program = ["/usr/sbin/pdns_server"]
            .into_iter()
            .find(|it| std::path::Path::new(it).exists());
        let schema = std::fs::read_to_string(SCHEMA).ok();
        let (Some(program), Some(schema)) = (program, schema) else {
            eprintln!(
                "pdns-server and pdns-backend-sqlite3 are not installed: PowerDNS is not tried"
            );
            return None;
        };
        let file = world.scratch("pdns.sqlite3");
        rusqlite::Connection::open(&file)
            .unwrap()
            .execute_batch(&schema)
            .unwrap();
        let (port, dns) = (free_port(), free_port());
        let directory = world.scratch("pdns");
        std::fs::create_dir(&directory).unwrap();
        let child = Command::new(program)
            .arg(format!("--config-dir={}", directory.display()))
            .arg(format!("--socket-dir={}", directory.display()))
            .arg("--launch=gsqlite3")
            .arg(format!("--gsqlite3-database={}", file.display()))
            .args([
                "--api=yes",
                "--api-key=letmein",
                "--webserver=yes",
                "--webserver-address=127.0.0.1",
            ])
            .arg(format!("--webserver-port={port}"))
            .args([
                "--local-address=127.0.0.1",
                "--daemon=no",
                "--guardian=no",
                "--setuid=",
                "--setgid=",
            ])
            .arg(format!("--local-port={dns}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, port };
        let until = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "PowerDNS does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }
}

const RULES: &str = r#"
[[compensation]]
name = "zone"
match = "POST $S/zones"
inverse = { url = "$S/zones/{response.id}", headers = { X-API-Key = "${env:PDNS_KEY}" } }
lookup = { url = "$S/zones/{request.name}", headers = { X-API-Key = "${env:PDNS_KEY}" } }
verify = { url = "$S/zones/{response.id}", headers = { X-API-Key = "${env:PDNS_KEY}" }, interval = "50ms", limit = "5s" }
ignore = ["serial", "edited_serial", "rrsets.*.records"]

[[compensation]]
name = "record"
match = "PATCH $S/zones/{zone}"
verify = { url = "$S/zones/{zone}?rrset_name={request.rrsets.0.name}", headers = { X-API-Key = "${env:PDNS_KEY}" }, absent = "rrsets.0" }

[compensation.inverse]
method = "PATCH"
url = "$S/zones/{zone}"
headers = { X-API-Key = "${env:PDNS_KEY}" }

[[compensation.inverse.json.rrsets]]
name = "{request.rrsets.0.name}"
type = "{request.rrsets.0.type}"
changetype = "DELETE"
"#;

#[test]
fn a_zone_and_a_record_of_powerdns_are_made_and_taken_back() {
    let world = World::new();
    let Some(server) = Server::start(&world) else {
        return;
    };
    let base = format!("http://127.0.0.1:{}/api/v1/servers/localhost", server.port);
    world.file("backout.toml", &RULES.replace("$S", &base));
    let run = |words: &[&str]| {
        let output = world
            .command(words)
            .env("PDNS_KEY", "letmein")
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let key = ["-H", "X-API-Key: ${env:PDNS_KEY}"];
    let call = |method: &str, path: &str, data: &str| {
        let url = format!("{base}{path}");
        let mut words = vec!["http", method, url.as_str()];
        words.extend(key);
        if !data.is_empty() {
            words.extend(["--json-body", "--data", data]);
        }
        run(&words)
    };
    let zone =
        r#"{"name": "shop.example.", "kind": "Native", "nameservers": ["ns.shop.example."]}"#;
    call("POST", "/zones", zone);
    let record = r#"{"rrsets": [{"name": "www.shop.example.", "type": "A", "ttl": 60, "changetype": "REPLACE",
        "records": [{"content": "192.0.2.1", "disabled": false}]}]}"#;
    call("PATCH", "/zones/shop.example.", record);
    assert!(call("GET", "/zones/shop.example.", "").contains("192.0.2.1"));
    run(&["undo", "--everywhere"]);
    let left = call("GET", "/zones/shop.example.", "");
    assert!(
        !left.contains("192.0.2.1") && left.contains("ns.shop.example."),
        "{left}"
    );
    run(&["undo", "--everywhere"]);
    assert!(
        !call("GET", "/zones", "").contains("shop.example"),
        "the zone is still there"
    );
    let found = Command::new("grep")
        .args(["-rlaF", "letmein"])
        .arg(world.state())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&found.stdout),
        "",
        "the key is kept"
    );
}
