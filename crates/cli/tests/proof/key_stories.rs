//! Two operations on keys of one file, taken back in the order in which they were made: the file is what it was, byte for byte, in
//! every format. And people who write in it meanwhile.

use crate::world::{World, said};

/// A file, two commands on it, and nothing else that could be read from the outside.
struct Pair {
    name: &'static str,
    text: &'static str,
    first: &'static [&'static str],
    second: &'static [&'static str],
}

const PAIRS: &[Pair] = &[
    // Neighbours go one after the other.
    Pair {
        name: ".env",
        text: "A=1\nB=2 # two\nC=3\n",
        first: &["unset", ".env", "A"],
        second: &["unset", ".env", "B"],
    },
    Pair {
        name: ".env",
        text: "A=1\nB=2 # two\nC=3\n",
        first: &["unset", ".env", "B"],
        second: &["unset", ".env", "A"],
    },
    Pair {
        name: "f.json",
        text: "{\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3\n}\n",
        first: &["unset", "f.json", "a"],
        second: &["unset", "f.json", "b"],
    },
    Pair {
        name: "f.toml",
        text: "[t]\na = 1 # one\nb = 2 # two\nc = 3\n",
        first: &["unset", "f.toml", "t.b"],
        second: &["unset", "f.toml", "t.a"],
    },
    Pair {
        name: "f.ini",
        text: "[t]\n\na = 1 ; one\n\nb = 2 ; two\n",
        first: &["unset", "f.ini", "t.a"],
        second: &["unset", "f.ini", "t.b"],
    },
    // All keys go, and the table that was in lines is so again.
    Pair {
        name: "f.yaml",
        text: "x: 1  # why\ny: 2\n",
        first: &["unset", "f.yaml", "x"],
        second: &["unset", "f.yaml", "y"],
    },
    // A table that both made goes with the second.
    Pair {
        name: "f.yaml",
        text: "a: 1\n",
        first: &["set", "f.yaml", "n.x", "1"],
        second: &["set", "f.yaml", "n.y", "2"],
    },
    Pair {
        name: "f.json",
        text: "{\"a\":1}\n",
        first: &["set", "f.json", "n.x", "1"],
        second: &["set", "f.json", "n.y", "2"],
    },
    Pair {
        name: "f.toml",
        text: "a = 1\n",
        first: &["set", "f.toml", "n.x", "1"],
        second: &["set", "f.toml", "n.y", "2"],
    },
    Pair {
        name: "f.ini",
        text: "a = 1\n",
        first: &["set", "f.ini", "n.x", "1"],
        second: &["set", "f.ini", "n.y", "2"],
    },
    // The last key has a comment.
    Pair {
        name: "f.jsonc",
        text: "{\n  \"a\": 1,\n  \"z\": 9 // why nine\n}\n",
        first: &["set", "f.jsonc", "n", "7"],
        second: &["unset", "f.jsonc", "z"],
    },
    // Indents and brackets in one line.
    Pair {
        name: "f.json",
        text: "{\n    \"a\": 1\n}\n",
        first: &["unset", "f.json", "a"],
        second: &["set", "f.json", "n", "1"],
    },
    Pair {
        name: "f.json",
        text: "{ \"zeta\": \"w1\" }",
        first: &["unset", "f.json", "zeta"],
        second: &["set", "f.json", "n", "1"],
    },
];

#[test]
fn two_operations_on_keys_of_one_file_go_back_in_any_order_to_the_same_bytes() {
    for pair in PAIRS {
        for order in [["@-1", "@"], ["@", "@-1"]] {
            let world = World::in_memory();
            world.file(pair.name, pair.text);
            world.ok(pair.first);
            world.ok(pair.second);
            let both = world.read(pair.name);
            world.ok(&["undo", order[0]]);
            world.ok(&["undo"]);
            let told = format!("{:?} {:?} {order:?}", pair.first, pair.second);
            assert_eq!(world.read(pair.name), pair.text, "{told}");
            world.ok(&["redo"]);
            world.ok(&["redo"]);
            if order[0] == "@" {
                assert_eq!(world.read(pair.name), both, "{told}");
            }
            world.check_store();
        }
    }
}

#[test]
fn a_comment_that_somebody_wrote_on_a_new_key_is_a_conflict_and_comes_back_after_force() {
    let world = World::in_memory();
    world.file("i.yaml", "z: 1\n");
    world.ok(&["set", "i.yaml", "a", "2"]);
    world.file("i.yaml", "z: 1\na: 2 # PERSON\n");
    world.fails(1, &["undo", "-n"]);
    let refused = world.fails(1, &["undo"]);
    assert!(refused.contains("wrote a comment on it"), "{refused}");
    assert_eq!(world.read("i.yaml"), "z: 1\na: 2 # PERSON\n");
    world.ok(&["undo", "--force"]);
    assert_eq!(world.read("i.yaml"), "z: 1\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("i.yaml"), "z: 1\na: 2 # PERSON\n");
}

#[test]
fn the_undo_of_an_append_keeps_the_comments_of_the_items_that_others_wrote_below() {
    let world = World::in_memory();
    world.file("f.yaml", "l:\n  - p  # cp\n");
    world.ok(&["set", "f.yaml", "l[+]", "r"]);
    world.file("f.yaml", "l:\n  - p  # cp\n  - r\nk: 1\n");
    let told = world.ok(&["undo"]);
    assert!(told.contains("restored"), "{told}");
    assert_eq!(world.read("f.yaml"), "l:\n  - p  # cp\nk: 1\n");
}

#[test]
fn a_key_whose_place_is_not_known_any_more_is_not_called_restored() {
    let world = World::in_memory();
    world.file(".env", "A=1\nB=2\nC=3\n");
    world.ok(&["unset", ".env", "B"]);
    world.file(".env", "A=1\nNEW=9 # mine\nC=3\n");
    let output = world.run(&["undo"]);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(!told.contains("restored"), "{told}");
    assert!(told.contains("its place among them may not be"), "{told}");
    let text = world.read(".env");
    assert!(
        text.contains("NEW=9 # mine\n") && text.contains("B=2\n"),
        "{text}"
    );
}

#[test]
fn what_a_key_undo_does_not_give_back_to_the_file_itself_is_said() {
    let world = World::in_memory();
    world.file("f.json", "{\"a\":1,\"b\":2}\n");
    std::fs::hard_link(world.path("f.json"), world.path("h.json")).unwrap();
    world.ok(&["set", "f.json", "a", "7"]);
    world.ok(&["set", "f.json", "b", "8"]);
    let told = world.ok(&["undo", "@-1"]);
    assert!(told.contains("its other names"), "{told}");
    world.ok(&["undo"]);
    assert_eq!(world.read("f.json"), "{\"a\":1,\"b\":2}\n");
}

#[test]
fn a_key_of_thousands_of_steps_and_a_key_that_hides_another_are_refused() {
    let world = World::in_memory();
    world.file("m.json", "{}");
    let long = vec!["a"; 20_000].join(".");
    world.fails(2, &["set", "m.json", &long, "1"]);
    world.file("m.ini", "[user]\nname = X\n  email = y@z\n");
    let refused = world.fails(1, &["set", "m.ini", "user.name", "NEW"]);
    assert!(refused.contains("a deeper line follows it"), "{refused}");
    assert_eq!(world.read("m.ini"), "[user]\nname = X\n  email = y@z\n");
}

#[test]
fn an_appended_item_is_merged_out_of_a_list_to_which_somebody_appended_too() {
    let world = World::in_memory();
    world.file("f.yaml", "l:\n  - p # cp\n");
    world.ok(&["set", "f.yaml", "l[+]", "ours"]);
    let theirs = "l:\n  - p # cp\n  - ours\n  - theirs # ct\n";
    world.file("f.yaml", theirs);
    world.fails(1, &["undo"]);
    world.ok(&["undo", "--merge"]);
    assert_eq!(world.read("f.yaml"), "l:\n  - p # cp\n  - theirs # ct\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("f.yaml"), theirs);
}
