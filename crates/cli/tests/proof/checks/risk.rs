//! Risk: what is small passes, what is not waits for a person, and who decides is bound to what he saw.

use super::{ruled, waits};
use crate::trust::json;
use crate::world::{World, said};

fn risky(more: &str) -> World {
    let world = ruled(&format!(
        "[risk]\nlow-bytes-max = 100\nhigh-paths = ['prod/**']\nmedium-paths = ['staging/**']\nhigh-operations = ['chmod']\n{more}\n"
    ));
    world.file("prod/app.conf", "old\n");
    world.file("staging/app.conf", "old\n");
    world.file("notes", "old\n");
    world
}

fn proposal(world: &World, id: &str) -> serde_json::Value {
    let all = world.json(&["pending"]);
    let all = all["proposals"].as_array().unwrap().clone();
    let found = all
        .into_iter()
        .find(|it| it["id"].as_str().unwrap().starts_with(id));
    found.unwrap()
}

#[test]
fn low_passes_medium_waits_an_hour_and_high_for_ever() {
    let world = risky("");
    world.ok(&["write", "notes", "--text", "small"]);
    let large = "x".repeat(101);
    for (arguments, word, expires) in [
        (
            &["write", "notes", "--text", &large][..],
            "medium risk: it is about 101 bytes",
            true,
        ),
        (
            &["write", "staging/app.conf", "--text", "x"],
            "medium risk: `",
            true,
        ),
        (
            &["write", "prod/app.conf", "--text", "x"],
            "high risk: `",
            false,
        ),
        (
            &["chmod", "0600", "notes"],
            "high risk: `chmod` is among the high-operations",
            false,
        ),
        (&["rm", "-r", "prod"], "high risk", false),
    ] {
        let id = waits(&world, arguments);
        let waiting = proposal(&world, &id);
        let found = waiting["reasons"].to_string();
        assert!(found.contains(word), "{arguments:?}: {found}");
        assert_eq!(
            waiting["expires"].is_null(),
            !expires,
            "{arguments:?}: {waiting:#}"
        );
        world.ok(&["approve", &id]);
    }
    assert!(!world.path("prod").exists());
}

#[test]
fn what_nobody_decides_in_time_is_refused() {
    let world = risky("medium-waits = '1ms'");
    let id = waits(&world, &["write", "staging/app.conf", "--text", "new\n"]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let report = json(&world, 1, &["approve", &id]);
    assert_eq!(report["code"], "proposal-expired", "{report}");
    assert_eq!(world.read("staging/app.conf"), "old\n");
    let shown = world.json(&["show", &id]);
    assert_eq!(shown["operation"]["status"], "refused");
}

#[test]
fn a_clock_that_jumps_never_lets_anything_pass() {
    let world = risky("medium-waits = '1h'");
    let seed = world.scratch("seed");
    std::fs::create_dir(&seed).unwrap();
    let (now, hour) = (1_800_000_000_000_i64, 3_600_000);
    let at = |millis: i64, arguments: &[&str]| {
        std::fs::write(seed.join("now"), millis.to_string()).unwrap();
        let mut command = world.command(&[&["--json"], arguments].concat());
        let output = command.env("BACKOUT_TEST_SEED", &seed).output().unwrap();
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        serde_json::from_slice::<serde_json::Value>(&text).unwrap()
    };
    let ask = ["write", "staging/app.conf", "--text", "new\n"];
    let id_of = |report: serde_json::Value| {
        assert_eq!(report["code"], "waits", "{report}");
        report["operation"].as_str().unwrap().to_owned()
    };
    // It goes back by a year: the hour is not over, and it waits.
    let id = id_of(at(now, &ask));
    let pending = at(now - 24 * 365 * hour, &["pending"]);
    assert_eq!(pending["proposals"][0]["id"], id.as_str(), "{pending}");
    assert_eq!(world.read("staging/app.conf"), "old\n");
    // It goes on by a year: the hour is over. What was refused then stays refused when the clock is set right.
    let report = at(now + 24 * 365 * hour, &["approve", &id]);
    assert_eq!(report["code"], "proposal-expired", "{report}");
    let report = at(now, &["approve", &id]);
    assert_ne!(report["code"], serde_json::Value::Null, "{report}");
    assert_eq!(world.read("staging/app.conf"), "old\n");
    // What is of high risk waits whatever the clock says.
    let id = id_of(at(now, &["write", "prod/app.conf", "--text", "new\n"]));
    let pending = at(now + 24 * 365 * hour, &["pending"]);
    assert_eq!(pending["proposals"][0]["id"], id.as_str(), "{pending}");
    world.check_store();
}

#[test]
fn outcomes_can_be_chosen() {
    let world = risky("medium = 'allow'\nhigh = 'deny'");
    world.ok(&["write", "staging/app.conf", "--text", "x"]);
    super::denied(&world, &["write", "prod/app.conf", "--text", "x"]);
    assert_eq!(world.read("prod/app.conf"), "old\n");
}

#[test]
fn a_command_may_not_write_what_a_person_has_to_approve() {
    let world = risky("");
    let output = world.run(&["run", "--", "sh", "-c", "echo x > prod/app.conf"]);
    let text = said(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("Operation not permitted"), "{text}");
    assert!(text.contains("risk `prod/**` in"), "{text}");
    assert_eq!(world.read("prod/app.conf"), "old\n");
    for line in [
        "rm prod/app.conf",
        "mv prod other",
        "mv notes prod/notes",
        "chmod 600 prod/app.conf",
        "ln prod/app.conf out",
    ] {
        let output = world.run(&["run", "--", "sh", "-c", line]);
        assert!(!output.status.success(), "{line}: {}", said(&output));
        assert_eq!(world.read("prod/app.conf"), "old\n", "{line}");
    }
    world.ok(&["run", "--", "sh", "-c", "echo x > notes"]);
}

#[test]
fn who_decides_is_another_and_decides_what_he_saw() {
    let world = risky("");
    let id = waits(
        &world,
        &[
            "--agent",
            "bob",
            "write",
            "prod/app.conf",
            "--text",
            "new\n",
        ],
    );
    assert_eq!(
        json(&world, 1, &["--agent", "bob", "approve", &id])["code"],
        "own-proposal"
    );
    world.file("prod/app.conf", "a person's\n");
    assert_eq!(json(&world, 1, &["approve", &id])["code"], "proposal-stale");
    world.ok(&["reject", &id]);
    let id = waits(
        &world,
        &[
            "--agent",
            "bob",
            "write",
            "prod/app.conf",
            "--text",
            "new\n",
        ],
    );
    let rules = world.read("backout.toml") + "high = 'deny'\n";
    world.file("backout.toml", &rules);
    assert_eq!(json(&world, 1, &["approve", &id])["code"], "gate");
    assert_eq!(world.read("prod/app.conf"), "a person's\n");
    world.check_store();
}

#[test]
fn what_a_command_did_is_told_if_it_is_of_medium_risk_and_taken_back_if_that_is_denied() {
    let world = risky("");
    let ran = world.run(&["run", "--", "sh", "-c", "echo 1 > a; echo 1 > b"]);
    assert!(ran.status.success(), "{}", said(&ran));
    assert!(
        said(&ran).contains("it is of medium risk: it changes 2 files"),
        "{}",
        said(&ran)
    );
    world.file(
        "backout.toml",
        "[risk]\nmedium = 'deny'\nhigh-operations = ['run']\nhigh = 'off'\n"
            .replace("'off'", "'allow'")
            .as_str(),
    );
    world.ok(&["run", "--", "sh", "-c", "echo 2 > a; echo 2 > b"]);
    world.file("backout.toml", "[risk]\nmedium = 'deny'\n");
    let ran = world.run(&["run", "--", "sh", "-c", "echo 3 > a; echo 3 > b"]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert_eq!(
        (world.read("a"), world.read("b")),
        ("2\n".to_owned(), "2\n".to_owned())
    );
    world.file("backout.toml", "[risk]\nhigh-operations = ['run']\n");
    let ran = world.run(&["run", "--", "sh", "-c", "echo 4 > a"]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert!(
        said(&ran).contains("run it with `try`: what that did can wait for a person"),
        "{}",
        said(&ran)
    );
    assert_eq!(world.read("a"), "2\n");
    world.check_store();
}

#[test]
fn a_truncation_counts_by_what_it_takes_away() {
    for rules in [
        "[policy]\nbytes-max = 100\n",
        "[risk]\nlow-bytes-max = 100\n",
    ] {
        let world = ruled(rules);
        world.file("big", &"x".repeat(1000));
        waits(&world, &["write", "big", "--text", "x"]);
        // What shrinks by less passes.
        world.file("small", &"x".repeat(90));
        world.ok(&["write", "small", "--text", "x"]);
    }
    let world = ruled("[policy]\nbytes-max = 100\n");
    world.file("big", &"x".repeat(1000));
    let ran = world.run(&["run", "--", "truncate", "-s", "0", "big"]);
    assert_eq!(ran.status.code(), Some(1), "{}", said(&ran));
    assert_eq!(world.read("big").len(), 1000);
}
