//! Ways around the rules that lead through what the rules hang on: directories, links, other names, and how a pattern is written.

use crate::ruled::{code, ruled, waits};
use crate::world::World;

#[test]
fn a_protected_file_gets_no_other_name_by_which_it_could_be_written() {
    let world = ruled("[protect]\ndeny = ['key', 'd']\nask = ['maybe']\n");
    for name in ["key", "d/k", "maybe", "free"] {
        world.file(name, "k\n");
    }
    let before = world.tree();
    for name in ["key", "d/k"] {
        assert_eq!(code(&world, &["ln", name, "second"]), "gate", "{name}");
        let script = format!("ln {name} second");
        let output = world.run(&["run", "--", "sh", "-c", &script]);
        assert!(!output.status.success(), "{name}");
    }
    assert_eq!(code(&world, &["ln", "maybe", "second"]), "waits");
    assert!(world.tree() == before);
    // Nor by a name that it has already.
    std::fs::hard_link(world.path("key"), world.path("other")).unwrap();
    assert_eq!(code(&world, &["ln", "other", "second"]), "gate");
    world.ok(&["ln", "free", "second"]);
    world.ok(&["ln", "-s", "key", "link"]);
    assert_eq!(code(&world, &["write", "link", "--text", "x"]), "gate");
}

#[test]
fn an_agent_does_not_take_the_rules_from_where_they_count() {
    let world = World::in_memory();
    world.file("up/p/backout.toml", "[protect]\ndeny = ['s']\n");
    world.file("up/p/free", "1\n");
    world.file("up/linked/rules/real.toml", "[protect]\ndeny = ['s']\n");
    std::os::unix::fs::symlink("middle.toml", world.path("up/linked/backout.toml")).unwrap();
    std::os::unix::fs::symlink("rules/real.toml", world.path("up/linked/middle.toml")).unwrap();
    world.file("up/linked/f", "1\n");
    world.file("other/f", "1\n");
    let before = world.tree();
    for arguments in [
        &["rm", "-r", "up/p"][..],
        &["rm", "-r", "up"],
        &["mv", "up/p", "q"],
        &["mv", "up", "q"],
        &["rm", "up/linked/middle.toml"],
        &["write", "up/linked/middle.toml", "--text", ""],
        &["write", "up/linked/rules/real.toml", "--text", ""],
        &["rm", "-r", "up/linked/rules"],
    ] {
        let arguments = [&["--agent", "bob"], arguments].concat();
        let id = waits(&world, &arguments);
        world.ok(&["reject", &id]);
        assert!(world.tree() == before, "{arguments:?}");
    }
    for script in [
        "mv up/p q",
        "mv up q",
        "rm up/linked/middle.toml",
        "mv other/f up/linked/middle.toml",
        "echo > up/linked/backout.toml",
        "mv up/linked/rules q",
        "cd up && mv p ../q",
    ] {
        let output = world.run(&["--agent", "bob", "run", "--", "sh", "-c", script]);
        let told = crate::world::said(&output);
        assert!(!output.status.success(), "{script}: {told}");
        assert!(
            told.contains("says what may be written"),
            "{script}: {told}"
        );
        assert!(world.tree() == before, "{script}");
    }
    // What has no rules in it may be moved, and who has no name may do what he wants.
    world.ok(&["--agent", "bob", "mv", "other", "another"]);
    world.ok(&["--agent", "bob", "run", "--", "mv", "another", "other"]);
    world.ok(&["run", "--", "mv", "up/p", "q"]);
    world.ok(&["rm", "-r", "q"]);
}

#[test]
fn an_agent_does_not_move_the_way_to_the_users_own_rules() {
    let world = World::in_memory();
    let home = world.scratch("");
    std::fs::create_dir_all(home.join("dotfiles/backout")).unwrap();
    std::os::unix::fs::symlink("dotfiles", home.join(".config")).unwrap();
    let rules = "[protect]\ndeny = ['~/s']\n";
    std::fs::write(home.join("dotfiles/backout/backout.toml"), rules).unwrap();
    for place in [".config", "dotfiles", "dotfiles/backout"] {
        let place = home.join(place);
        let place = place.to_str().unwrap();
        let moved = format!("{place}-moved");
        let id = waits(&world, &["--agent", "bob", "mv", place, &moved]);
        world.ok(&["reject", &id]);
        let output = world.run(&["--agent", "bob", "run", "--", "mv", place, &moved]);
        assert!(!output.status.success(), "{place}");
    }
    let link = home.join(".config");
    let link = link.to_str().unwrap();
    let output = world.run(&["--agent", "bob", "run", "--", "rm", link]);
    assert!(!output.status.success());
    assert!(home.join(".config/backout/backout.toml").exists());
}

#[test]
fn every_link_on_the_way_of_a_rule_is_held() {
    let world = ruled("[protect]\ndeny = ['secrets', 'later', 'l*k', '{./a,b}', 'sec{rets,}/x']\n");
    world.file("shared/k", "1\n");
    world.file("far/k", "1\n");
    world.file("a", "1\n");
    for (to, name) in [
        ("middle", "secrets"),
        ("shared", "middle"),
        ("nowhere", "later"),
        ("far", "link"),
    ] {
        std::os::unix::fs::symlink(to, world.path(name)).unwrap();
    }
    let before = world.tree();
    for arguments in [
        &["rm", "middle"][..],
        &["write", "nowhere", "--text", "x"],
        &["write", "later", "--text", "x"],
        &["rm", "later"],
        &["write", "far/k", "--text", "x"],
        &["rm", "-r", "far"],
        &["write", "a", "--text", "x"],
        &["write", "shared/x", "--text", "x"],
    ] {
        assert_eq!(code(&world, arguments), "gate", "{arguments:?}");
        let output = match arguments {
            ["rm", rest @ ..] => world.run(&[&["run", "--", "rm"], rest].concat()),
            ["write", name, ..] => {
                let script = format!("echo > {name}");
                world.run(&["run", "--", "sh", "-c", &script])
            }
            _ => continue,
        };
        assert!(!output.status.success(), "{arguments:?}");
        assert!(world.tree() == before, "{arguments:?}");
    }
}
