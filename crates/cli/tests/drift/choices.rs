//! What is offered can be done, what was done is told, and names are taken as they are listed.

use std::fs;
use std::os::unix::fs::symlink;

use crate::world::{Drifted, World, texts};

fn read(world: &World, name: &str) -> String {
    fs::read_to_string(world.path(name)).unwrap()
}

fn said(world: &World, words: &[&str]) -> String {
    let (out, err) = texts(&world.run(words));
    out + &err
}

fn only(found: &[Drifted]) -> Vec<&str> {
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].choices.iter().map(String::as_str).collect()
}

#[test]
fn a_text_that_others_changed_on_top_of_the_record_is_accepted_by_a_merge() {
    let world = World::new();
    let text = |third: &str, last: &str| format!("1\n2\n{third}\n4\n5\n6\n7\n8\n{last}\n10\n");
    world.put("g", &text("3", "9"));
    world.write("g", &text("three", "9"));
    world.put("g", &text("three", "nine"));
    assert_eq!(
        only(&world.sweep()),
        ["accept", "restore", "merge", "ignore"]
    );
    let told = said(&world, &["drift", "merge", "g"]);
    assert!(told.contains("g  accepted as it is ("), "{told}");
    assert!(
        told.contains(
            "what others made of `g` has all that was recorded in it: it was accepted as it is"
        ),
        "{told}"
    );
    assert_eq!(world.sweep(), []);
    assert!(said(&world, &["log"]).contains("accept what others made of g"));
}

#[test]
fn links_and_what_is_no_text_are_not_merged() {
    let world = World::new();
    world.put("f", "1\n");
    world.does(&["ln", "-s", "f", "l"]);
    fs::remove_file(world.path("l")).unwrap();
    symlink("zz", world.path("l")).unwrap();
    assert_eq!(only(&world.sweep()), ["accept", "restore", "ignore"]);
    let listed = said(&world, &["drift"]);
    assert!(
        listed.contains("recorded: a symbolic link to `f` ("),
        "{listed}"
    );
    assert!(
        listed.contains("found:    a symbolic link to `zz`"),
        "{listed}"
    );
    let told = world.refuses(&["drift", "merge", "l"]);
    assert!(
        told.contains("only what is in files can be merged"),
        "{told}"
    );
    world.does(&["drift", "restore", "l"]);
    assert_eq!(fs::read_link(world.path("l")).unwrap().to_str(), Some("f"));
    world.put("b", "\0\u{1}one\n");
    world.write("b", "\u{0}\u{1}two\n".trim_start_matches('\0'));
    fs::write(world.path("b"), b"\0\x01\xff").unwrap();
    assert_eq!(only(&world.sweep()), ["accept", "restore", "ignore"]);
}

#[test]
fn what_was_restored_is_told_beside_what_could_not_be() {
    for json in [false, true] {
        let world = World::new();
        world.write("a1", "1\n");
        world.does(&["run", "--", "sh", "-c", "echo z > b2; echo z > c3"]);
        for name in ["a1", "b2", "c3"] {
            world.put(name, "H\n");
        }
        assert_eq!(world.sweep().len(), 3);
        let words: &[&str] = if json { &["--json"] } else { &[] };
        let output = world.run(&[words, &["drift", "restore", "."]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(read(&world, "a1"), "1\n");
        let by = world.newest();
        let (out, err) = texts(&output);
        if json {
            assert!(out.contains(&format!("\"by\":\"{by}\"")), "{out}");
            assert!(out.contains("\"reply\":\"drift-decided\""), "{out}");
        } else {
            let named = format!("a1  made what was recorded ({})", &by[..8]);
            assert!(out.contains(&named), "{by}: {out}");
            assert!(err.contains("2 drifts were left as they are"), "{err}");
            assert!(
                err.contains("`b2` was not made what was recorded: "),
                "{err}"
            );
        }
        let one = said(&world, &["drift", "restore", "b2", "c3"]);
        assert!(one.contains("2 drifts were left as they are"), "{one}");
        world.put("a1", "H\n");
        world.sweep();
        world.does(&["drift", "accept", "c3"]);
        let one = said(&world, &["drift", "restore", "."]);
        assert!(one.contains("1 drift was left as it is"), "{one}");
    }
}

#[test]
fn bytes_that_an_earlier_operation_has_are_kept() {
    let world = World::new();
    fs::create_dir(world.path("w")).unwrap();
    world.write("w/f1", "1\n");
    world.does(&["rm", "-r", "w"]);
    world.does(&["undo"]);
    world.put("w/f1", "hand\n");
    let found = world.sweep();
    assert!(only(&found).contains(&"restore"), "{found:?}");
    world.does(&["drift", "restore", "w/f1"]);
    assert_eq!(read(&world, "w/f1"), "1\n");
    assert_eq!(world.sweep(), []);
}

#[test]
fn only_what_can_be_done_is_offered_and_advised() {
    let world = World::new();
    let script = "mkdir c; echo C > c/w; echo K > k";
    world.does(&["run", "--", "sh", "-c", script]);
    fs::remove_dir_all(world.path("c")).unwrap();
    world.put("k", "H\n");
    for it in world.sweep() {
        assert_eq!(it.choices, ["accept", "ignore"], "{it:?}");
    }
    let told = world.refuses(&["drift", "merge", "k"]);
    assert!(told.contains("accept what is there with"), "{told}");
    assert!(!told.contains("drift restore"), "{told}");
    let told = world.refuses(&["drift", "restore", "c"]);
    assert!(told.contains("`c/w`: "), "{told}");
    let other = World::new();
    fs::create_dir(other.path("p")).unwrap();
    other.does(&["mv", "p", "p2"]);
    fs::remove_dir(other.path("p2")).unwrap();
    assert_eq!(only(&other.sweep()), ["accept", "ignore"]);
}

#[test]
fn what_lies_behind_a_link_is_named_as_it_is_listed() {
    let world = World::new();
    fs::create_dir(world.path("d")).unwrap();
    world.write("d/g", "1\n");
    world.write("h", "1\n");
    world.put("h", "H\n");
    fs::rename(world.path("d"), world.path("d2")).unwrap();
    symlink("d2", world.path("d")).unwrap();
    let listed = said(&world, &["watch", "--once"]);
    assert!(
        listed.contains("found:    `d` is a symbolic link now"),
        "{listed}"
    );
    let found = world.open();
    assert_eq!(found[0].choices, ["accept", "ignore"], "{found:?}");
    let told = world.refuses(&["drift", "restore", "d/g"]);
    assert!(
        told.contains("`d/g` was not made what was recorded"),
        "{told}"
    );
    assert!(told.contains("why: `d` is a symbolic link now"), "{told}");
    world.does(&["drift", "accept", "."]);
    assert_eq!(world.sweep(), []);
    assert_eq!(read(&world, "d2/g"), "1\n");
    fs::remove_file(world.path("d")).unwrap();
    assert_eq!(world.sweep().len(), 1, "it did not stay so");
}

#[test]
fn a_recorded_directory_that_became_a_link_is_accepted_with_what_was_in_it() {
    let world = World::new();
    world.does(&["mkdir", "d"]);
    world.write("d/g", "1\n");
    fs::rename(world.path("d"), world.path("d2")).unwrap();
    symlink("d2", world.path("d")).unwrap();
    assert_eq!(only(&world.sweep()), ["accept", "ignore"]);
    world.does(&["drift", "accept", "d"]);
    assert_eq!(world.sweep(), []);
}

#[test]
fn a_part_whose_file_is_gone_is_gone_and_the_advice_brings_it_back() {
    let world = World::new();
    world.put("c.json", "{\"port\": 1}\n");
    world.does(&["set", "c.json", "port", "2"]);
    let left = read(&world, "c.json");
    fs::remove_file(world.path("c.json")).unwrap();
    crate::meddler::shop(&world, "shop.db");
    fs::remove_file(world.path("shop.db")).unwrap();
    for it in world.sweep() {
        assert_eq!(it.kind, "gone", "{it:?}");
        assert_eq!(it.choices, ["accept", "ignore"], "{it:?}");
    }
    let listed = said(&world, &["drift"]);
    assert!(
        listed.contains("found:    nothing: the file is gone"),
        "{listed}"
    );
    let told = world.refuses(&["drift", "restore", "c.json:port"]);
    assert!(told.contains("why: the file is gone"), "{told}");
    let advised = told.split('`').find(|it| it.starts_with("backout restore"));
    let Some(advised) = advised else {
        assert!(told.contains("accept what is there with"), "{told}");
        return;
    };
    let words: Vec<&str> = advised.split(' ').skip(1).collect();
    assert!(words.contains(&"--after"), "{advised}");
    world.does(&words);
    assert_eq!(read(&world, "c.json"), left);
}

#[test]
fn a_pattern_without_a_slash_matches_below_and_dots_lead_out() {
    let world = World::new();
    world.write("sub/x.log", "1\n");
    world.write("o/y", "1\n");
    world.write("z", "1\n");
    for name in ["sub/x.log", "o/y", "z"] {
        world.put(name, "H\n");
    }
    assert_eq!(world.sweep().len(), 3);
    let told = world.does(&["drift", "ignore", "*.log"]);
    assert!(told.contains("sub/x.log  left alone by"), "{told}");
    let mut command = world.command(&["drift", "ignore", "../o/*"]);
    let output = command.current_dir(world.path("sub")).output().unwrap();
    let told = texts(&output).0;
    let pattern = format!("what {}/o/* matches is left alone", world.root.display());
    assert!(told.contains(&pattern), "{told}");
    assert_eq!(world.sweep().len(), 1);
    world.does(&["drift", "ignore", "--off", "*.log"]);
    assert_eq!(world.sweep().len(), 2);
}

#[test]
fn what_is_named_is_looked_at() {
    let world = World::new();
    world.write("f", "1\n");
    world.put("f", "2\n");
    let told = said(&world, &["drift"]);
    assert!(told.contains("nothing was noticed"), "{told}");
    let told = said(&world, &["drift", "f"]);
    assert!(told.contains("f  changed  medium"), "{told}");
    assert_eq!(world.open().len(), 1);
}

#[test]
fn a_part_of_a_drift_that_is_restored_is_named_with_its_operation() {
    let world = World::new();
    for number in 0..10 {
        world.write(&format!("out/{number}"), &format!("{number}\n"));
    }
    for number in 0..10 {
        world.put(&format!("out/{number}"), "rebuilt\n");
    }
    assert_eq!(world.sweep().len(), 1);
    let told = said(&world, &["drift", "restore", "out/3"]);
    let by = world.newest();
    assert!(
        told.contains("out/3` was made what was recorded by "),
        "{told}"
    );
    assert!(told.contains(&by[..8]), "{by}: {told}");
    assert!(told.contains("holds more that has drifted"), "{told}");
    assert_eq!(read(&world, "out/3"), "3\n");
    world.does(&["drift", "restore", "out"]);
    assert_eq!(world.sweep(), []);
    world.does(&["undo"]);
    assert_eq!(read(&world, "out/4"), "rebuilt\n");
    assert_eq!(read(&world, "out/9"), "rebuilt\n");
}

#[test]
fn each_operation_that_a_decision_took_is_named() {
    let world = World::new();
    let text = |third: &str, last: &str| format!("1\n2\n{third}\n4\n5\n6\n7\n8\n{last}\n10\n");
    for number in 0..10 {
        world.put(&format!("out/{number}"), &text("3", "9"));
        world.write(&format!("out/{number}"), &text("three", "9"));
    }
    for number in 0..10 {
        let third = if number == 9 { "three" } else { "3" };
        world.put(&format!("out/{number}"), &text(third, "nine"));
    }
    assert_eq!(world.sweep().len(), 1);
    let told = said(&world, &["drift", "merge", "out"]);
    let accepted = world.newest();
    let words = format!(
        "`out` took {} as well, which is undone by itself",
        &accepted[..8]
    );
    assert!(told.contains(&words), "{words}: {told}");
    assert!(
        told.contains("out  merged with what was recorded ("),
        "{told}"
    );
    assert_eq!(read(&world, "out/0"), text("three", "nine"));
    assert_eq!(world.sweep(), []);
}
