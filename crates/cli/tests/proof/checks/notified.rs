//! Who is told that something waits: a program, a webhook. What goes wrong there stops nothing.

use serde_json::Value;

use super::{Service, json, ruled, script, waits};
use crate::world::World;

const WRITE: [&str; 6] = ["--agent", "bob", "write", "d/a", "--text", "new\n"];

fn notified(more: &str) -> World {
    let world = ruled(&format!("[protect]\nask = ['d']\n[notify]\n{more}\n"));
    world.file("d/a", "old\n");
    world
}

#[test]
fn a_program_gets_json_and_a_line() {
    let world = notified("");
    let (input, line) = (world.scratch("input"), world.scratch("line"));
    let program = script(
        &world,
        "tell",
        &format!(
            "cat > {}; printf %s \"$1\" > {}",
            input.display(),
            line.display()
        ),
    );
    world.file(
        "backout.toml",
        &format!("[protect]\nask = ['d']\n[notify]\ncommand = ['{program}', '{{summary}}']\n"),
    );
    let id = waits(&world, &WRITE);
    let told: Value = serde_json::from_slice(&std::fs::read(input).unwrap()).unwrap();
    assert_eq!(told["event"], "waits");
    assert!(told["id"].as_str().unwrap().starts_with(&id), "{told}");
    assert_eq!(told["agent"], "bob");
    assert!(
        told["reasons"][0]["rule"]
            .as_str()
            .unwrap()
            .starts_with("ask `d` in"),
        "{told}"
    );
    let line = std::fs::read_to_string(line).unwrap();
    assert!(
        line.starts_with("backout: waits for a decision: write "),
        "{line}"
    );
    // What passes tells nobody.
    std::fs::remove_file(world.scratch("line")).unwrap();
    world.ok(&["write", "free", "--text", "x"]);
    assert!(!world.scratch("line").exists());
}

#[test]
fn a_webhook_is_told_and_can_tell_who_tells_it() {
    let service = Service::new("");
    let world = notified(&format!(
        "webhook = '{}'\nwebhook-secret-file = '../key'",
        service.url("/hook")
    ));
    std::fs::write(world.scratch("key"), "sesame\n").unwrap();
    let id = waits(&world, &WRITE);
    let asked = service.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert!(asked.starts_with("POST /hook HTTP/1."), "{asked}");
    let (head, body) = asked.split_once("\r\n\r\n").unwrap();
    let told: Value = serde_json::from_str(body).unwrap();
    assert!(told["id"].as_str().unwrap().starts_with(&id), "{told}");
    let signature = head
        .lines()
        .find_map(|it| it.strip_prefix("X-Backout-Signature: sha256="));
    std::fs::write(world.scratch("body"), body).unwrap();
    let mut openssl = std::process::Command::new("python3");
    let line = "import hmac,sys; print(hmac.new(b'sesame', open(sys.argv[1],'rb').read(), 'sha256').hexdigest())";
    let output = openssl
        .args(["-c", line])
        .arg(world.scratch("body"))
        .output()
        .unwrap();
    assert_eq!(
        signature,
        Some(String::from_utf8_lossy(&output.stdout).trim())
    );
    // Without its key nothing is sent: nobody could tell who did.
    std::fs::remove_file(world.scratch("key")).unwrap();
    waits(&world, &WRITE);
    assert_eq!(service.asked().len(), 1);
}

#[test]
fn one_that_hangs_fails_or_is_not_there_stops_nothing() {
    for line in [
        "exec sleep 1000",
        "exit 3",
        "kill -9 $$",
        "setsid sleep 3 & exit 0",
    ] {
        let world = notified("");
        let program = script(&world, "tell", line);
        world.file(
            "backout.toml",
            &format!(
                "[protect]\nask = ['d']\n[notify]\ncommand = ['{program}']\ntimeout = '200ms'\n"
            ),
        );
        let id = waits(&world, &WRITE);
        world.ok(&["approve", &id]);
        assert_eq!(world.read("d/a"), "new\n");
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    for more in [
        "command = ['no-such-program']".to_owned(),
        format!("webhook = 'http://127.0.0.1:{port}/'"),
    ] {
        waits(&notified(&more), &WRITE);
    }
}

/// What `pending` says of notices that went wrong, as soon as it says something.
fn untold(world: &World, id: &str) -> String {
    for _ in 0..3000 {
        let pending = world.json(&["pending"]);
        if let Some(untold) = pending.get("untold") {
            let shown = world.json(&["pending", id]);
            let said = shown["untold"][0].as_str().unwrap().to_owned();
            assert!(untold.to_string().contains(id), "{pending}");
            assert!(
                world
                    .ok(&["pending"])
                    .contains("nobody may have heard that it waits")
            );
            return said;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing is told");
}

#[test]
fn what_comes_of_a_notice_that_takes_long_is_told_later() {
    let world = notified("");
    let go = world.scratch("go");
    let line = format!(
        "until test -e {}; do sleep 0.01; done; echo no; exit 7",
        go.display()
    );
    let program = script(&world, "tell", &line);
    world.file(
        "backout.toml",
        &format!("[protect]\nask = ['d']\n[notify]\ncommand = ['{program}']\ntimeout = '1m'\n"),
    );
    let report = json(&world, 1, &WRITE);
    let why = report["why"].to_string();
    assert!(
        why.contains("people are being told, and that takes longer"),
        "{report}"
    );
    let id = report["operation"].as_str().unwrap()[..8].to_owned();
    assert!(world.json(&["pending"]).get("untold").is_none());
    std::fs::write(go, "").unwrap();
    let said = untold(&world, &id);
    assert!(said.ends_with("` ended with 7: no"), "{said}");
    // It is about what waits, and goes with that.
    world.ok(&["reject", &id]);
    assert!(world.json(&["pending"]).get("untold").is_none());
    world.check_store();
}

#[test]
fn a_notice_that_hangs_is_ended_when_its_time_is_up_and_that_is_told() {
    let world = notified("");
    let pids = world.scratch("pids");
    let line = format!(
        "echo $$ > {0}; setsid sleep 1000 & echo $! >> {0}; wait",
        pids.display()
    );
    let program = script(&world, "tell", &line);
    world.file(
        "backout.toml",
        &format!("[protect]\nask = ['d']\n[notify]\ncommand = ['{program}']\ntimeout = '4s'\n"),
    );
    let id = waits(&world, &WRITE);
    let said = untold(&world, &id);
    assert!(said.ends_with("` took longer than 4s"), "{said}");
    for pid in std::fs::read_to_string(pids).unwrap().lines() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
    }
}

#[test]
fn who_was_to_tell_people_and_was_killed_is_told_of() {
    let world = notified("");
    let (go, keeper) = (world.scratch("go"), world.scratch("keeper"));
    let line = format!(
        "echo $PPID > {}; until test -e {}; do sleep 0.01; done",
        keeper.display(),
        go.display()
    );
    let program = script(&world, "tell", &line);
    world.file(
        "backout.toml",
        &format!("[protect]\nask = ['d']\n[notify]\ncommand = ['{program}']\ntimeout = '1m'\n"),
    );
    let id = waits(&world, &WRITE);
    // As long as it lives nothing is known to be wrong.
    assert!(world.json(&["pending"]).get("untold").is_none());
    let keeper = std::fs::read_to_string(keeper).unwrap();
    let keeper = rustix::process::Pid::from_raw(keeper.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    let said = untold(&world, &id);
    assert_eq!(
        said,
        "who was to tell people died, and nobody knows whether they were told"
    );
    std::fs::write(go, "").unwrap();
    world.ok(&["reject", &id]);
    assert!(world.json(&["pending"]).get("untold").is_none());
    // Whoever tells people next forgets it.
    let id = waits(&world, &WRITE);
    let left: Vec<_> = std::fs::read_dir(world.state().join("notices"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
    world.ok(&["reject", &id]);
}
