//! Names by which a file is read that are not the name by which it is known: links, hard links, directories that are links.

use std::fs;
use std::os::unix::fs::symlink;

use super::{denied, denied_once, ruled};
use crate::ruled::{code, waits};
use crate::world::{World, said};

/// A check that only lets good content pass.
const GOOD: &str = "[[check]]\nname = 'good'\npaths = ['config/*.conf', 'app.conf']\ncommand = ['grep', '-q', 'good', '{staged}']\n";

/// A command that must be refused and taken back whole.
#[track_caller]
fn taken_back(world: &World, line: &str) -> String {
    let before = world.tree();
    let output = world.run(&["run", "--", "sh", "-c", line]);
    assert_eq!(output.status.code(), Some(1), "{line}: {}", said(&output));
    assert!(
        world.tree().without_times() == before.without_times(),
        "{line}: {}",
        said(&output)
    );
    said(&output)
}

#[test]
fn a_file_is_parsed_by_the_name_that_is_used_and_by_the_one_that_it_leads_to() {
    let world = ruled("[syntax]\n");
    world.file("j.txt", "{}\n");
    world.file("y.yaml", "{}\n");
    symlink("j.txt", world.path("j.json")).unwrap();
    symlink("y.yaml", world.path("m.json")).unwrap();
    for name in ["j.json", "m.json"] {
        let found = denied(&world, &["write", name, "--text", "a: 1\n"]);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        taken_back(&world, &format!("echo 'a: 1' > {name}"));
        taken_back(&world, &format!("echo 'a: 1' >> {name}"));
    }
    denied(&world, &["set", "m.json", "a", "1", "--format", "yaml"]);
    world.ok(&["write", "j.json", "--text", "[1]\n"]);
    world.ok(&["run", "--", "sh", "-c", "echo '[2]' > m.json"]);
    assert_eq!(world.read("j.txt"), "[1]\n");
    assert_eq!(world.read("y.yaml"), "[2]\n");
    world.check_store();
}

#[test]
fn a_link_is_held_by_the_rules_of_the_name_that_is_used() {
    let world = ruled("[protect]\ndeny = ['**/secrets']\n");
    world.file("plain", "1\n");
    fs::create_dir(world.path("d")).unwrap();
    symlink("../plain", world.path("d/secrets")).unwrap();
    assert_eq!(code(&world, &["write", "d/secrets", "--text", "x"]), "gate");
    let output = world.run(&["run", "--", "sh", "-c", "echo x > d/secrets"]);
    assert!(!output.status.success(), "{}", said(&output));
    assert_eq!(world.read("plain"), "1\n");
    // By its own name it is no secret; `config check` says so.
    let told = world.run(&["config", "check"]);
    assert_eq!(told.status.code(), Some(1), "{}", said(&told));
    assert!(
        said(&told).contains("links behind a `**` are not followed; name that as well"),
        "{}",
        said(&told)
    );
    world.ok(&["write", "plain", "--text", "2\n"]);
    world.file(
        "backout.toml",
        "[protect]\ndeny = ['**/secrets', 'plain']\n",
    );
    world.ok(&["config", "check"]);
}

#[test]
fn a_directory_that_a_link_takes_the_place_of_is_looked_through() {
    let world = ruled(&format!("[syntax]\n{GOOD}"));
    world.file("evil/a.conf", "bad\n");
    world.file("fine/a.conf", "good\n");
    fs::create_dir(world.scratch("outside")).unwrap();
    fs::write(world.scratch("outside/b.json"), "{\n").unwrap();
    world.file("data/b.json", "{}\n");
    let found = denied_once(&world, &["ln", "-s", "evil", "config"]);
    assert!(found.contains("`grep`"), "{found}");
    taken_back(&world, "ln -s evil config");
    taken_back(&world, "rm -r data; ln -s ../outside data");
    world.ok(&["ln", "-s", "fine", "config"]);
    world.ok(&["run", "--", "ln", "-s", "../outside", "elsewhere"]);
    world.check_store();
}

#[test]
fn a_link_brings_no_protected_names_to_where_they_are_protected() {
    let world = ruled("[protect]\ndeny = ['**/*.pem']\n");
    fs::create_dir(world.scratch("outside")).unwrap();
    fs::write(world.scratch("outside/k.pem"), "1").unwrap();
    assert_eq!(code(&world, &["ln", "-s", "../outside", "d"]), "gate");
    fs::remove_file(world.scratch("outside/k.pem")).unwrap();
    world.ok(&["ln", "-s", "../outside", "d"]);
}

#[test]
fn what_a_command_writes_by_another_hard_link_is_checked() {
    let world = ruled(&format!("[syntax]\n{GOOD}"));
    world.file("app.conf", "good\n");
    world.file("a.json", "{}\n");
    fs::create_dir(world.scratch("outside")).unwrap();
    for (name, other) in [
        ("app.conf", world.path("deep/other")),
        ("a.json", world.path("plain")),
        ("a.json", world.scratch("outside/far")),
    ] {
        fs::create_dir_all(other.parent().unwrap()).unwrap();
        fs::hard_link(world.path(name), other).unwrap();
    }
    taken_back(&world, "echo bad > deep/other");
    taken_back(&world, "echo '{' > plain");
    taken_back(&world, "echo '{' > ../outside/far");
    world.ok(&["run", "--", "sh", "-c", "echo 'good too' > deep/other"]);
    assert_eq!(world.read("app.conf"), "good too\n");
    world.check_store();
}

#[test]
fn no_other_name_of_what_lies_below_a_protected_directory_is_a_way_in() {
    let world = ruled("[protect]\ndeny = ['secrets', '**/*.pem']\n");
    world.file("secrets/deep/k", "1\n");
    world.file("x.pem", "1\n");
    fs::create_dir(world.scratch("outside")).unwrap();
    fs::hard_link(world.path("secrets/deep/k"), world.path("pub")).unwrap();
    fs::hard_link(world.path("secrets/deep/k"), world.scratch("outside/far")).unwrap();
    fs::hard_link(world.path("x.pem"), world.path("y")).unwrap();
    let before = world.tree();
    for name in ["pub", "y", "../outside/far"] {
        for line in [
            format!("echo x > {name}"),
            format!("chmod 600 {name}"),
            format!("ln {name} more"),
            format!("truncate -s 0 {name}"),
        ] {
            let output = world.run(&["run", "--", "sh", "-c", &line]);
            assert!(!output.status.success(), "{line}: {}", said(&output));
            assert!(said(&output).contains("is protected"), "{}", said(&output));
        }
        assert_eq!(code(&world, &["chmod", "600", name]), "gate", "{name}");
        assert_eq!(code(&world, &["ln", name, "more"]), "gate", "{name}");
    }
    assert!(world.tree() == before);
    // A name goes, or comes to stand for something else: what is protected stays as it is.
    world.ok(&["write", "pub", "--text", "2\n"]);
    world.ok(&["run", "--", "rm", "y"]);
    assert_eq!(world.read("secrets/deep/k"), "1\n");
    assert_eq!(world.read("x.pem"), "1\n");
}

#[test]
fn rules_that_are_a_link_outside_count_if_nobody_changes_them_unseen() {
    let world = World::in_memory();
    world.file("shared/rules.toml", "[protect]\ndeny = ['s']\n");
    fs::create_dir(world.path("p")).unwrap();
    symlink("../shared/rules.toml", world.path("p/backout.toml")).unwrap();
    let found = denied_once(&world, &["write", "p/free", "--text", "x"]);
    assert!(found.contains("it is a link, and who writes `"), "{found}");
    assert!(
        found
            .contains("changes the rules without being asked: put a copy in its place, or protect"),
        "{found}"
    );
    let output = world.run(&["run", "--", "sh", "-c", "echo x > p/free"]);
    assert!(!output.status.success(), "{}", said(&output));
    let told = world.run(&["config", "check", "p/backout.toml"]);
    assert_eq!(told.status.code(), Some(1), "{}", said(&told));
    // Who protects what it leads to may have it so.
    world.file("shared/backout.toml", "[protect]\nask = ['rules.toml']\n");
    world.ok(&["write", "p/free", "--text", "x"]);
    assert_eq!(code(&world, &["write", "p/s", "--text", "x"]), "gate");
    waits(
        &world,
        &["--agent", "bob", "write", "shared/rules.toml", "--text", ""],
    );
}

#[test]
fn a_tree_that_is_too_large_to_be_looked_through_does_not_pass() {
    let world = ruled("[syntax]\n");
    let big = world.scratch("big");
    fs::create_dir(&big).unwrap();
    for number in 0..10_001 {
        fs::write(big.join(format!("{number}.json")), "{}").unwrap();
    }
    let report = super::json(&world, 1, &["mv", "../big", "big"]);
    assert_eq!(report["code"], "waits", "{report}");
    let why = report["why"].to_string();
    assert!(
        why.contains("holds more names than can be looked at one by one"),
        "{report}"
    );
}
