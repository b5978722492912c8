//! What is said when a key of a config file cannot be changed. Each time the file is looked at, and nothing was recorded.

use std::fs;

use crate::world::World;

/// A file, what is in it, what is asked of it, and what is said.
type Row<'r> = (&'r str, &'r str, &'r [&'r str], &'r str);

fn refused(rows: &[Row<'_>]) {
    for (name, text, asked, said) in rows {
        let world = World::new().file(name, text);
        let (command, rest) = asked.split_first().unwrap();
        let arguments: Vec<&str> = [*command, *name]
            .into_iter()
            .chain(rest.iter().copied())
            .collect();
        let ran = world.still(|| world.run(&mut world.command(&arguments)));
        assert_eq!(
            ran.err.trim_end(),
            format!("error: `{name}`: {said}"),
            "{arguments:?}"
        );
        assert_eq!(ran.code, 1, "{arguments:?}");
        assert_eq!(world.text(name), *text);
        assert_eq!(world.in_effect(), [""; 0], "{arguments:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_place_where_reading_stopped() {
    const NEXT: &str = "\n  next: mend the file, or say with `--format` how it is written";
    let rows = [
        (
            "a.env",
            "A=\"x\ny\" z\n",
            "line 2, column 3: something follows the closing quote",
        ),
        (
            "a.json",
            "{\"a\": ",
            "line 1, column 7: the text ends where a value is needed",
        ),
        (
            "a.json",
            "{\"a\": \"\\q\"}",
            "line 1, column 7: this text in quotes has an escape that JSON does not know",
        ),
        (
            "a.jsonc",
            "{\"a\": /x}",
            "line 1, column 7: a value or a name is needed here",
        ),
    ];
    for (name, text, said) in rows {
        refused(&[(name, text, &["set", "a", "2"], &format!("{said}{NEXT}"))]);
    }
}

#[test]
fn a_key_that_the_format_cannot_have_is_told_whole() {
    const NEXT: &str =
        "\n  next: choose another key; a name that holds dots stands in double quotes";
    const NAME: &str =
        "cannot be a key here: a name in a .env file is made of letters, digits and `_`";
    let rows = [
        (
            "a.env",
            "A=1\n",
            "a.b",
            "`a.b` cannot be a key here: a .env file has single names",
        ),
        ("a.env", "A=1\n", "\"a b\"", &format!("`\"a b\"` {NAME}")),
        (
            "a.ini",
            "[s]\na = 1\n",
            "\"s]x\".a",
            "`\"s]x\".a` cannot be a key here: no reader would find a section of this name",
        ),
        (
            "a.ini",
            "[s]\na = 1\n",
            "s.\"a=b\"",
            "`s.\"a=b\"` cannot be a key here: no reader would find a key of this name",
        ),
        (
            "a.ini",
            "[s]\na = 1\n",
            "s.b.c",
            "`s.b.c` cannot be a key here: INI has sections and keys in them, no deeper",
        ),
    ];
    for (name, text, key, said) in rows {
        refused(&[(name, text, &["set", key, "2"], &format!("{said}{NEXT}"))]);
    }
}

#[test]
fn a_value_that_the_format_cannot_hold_says_why() {
    const NEXT: &str = "\n  next: `--raw` takes the format's own syntax";
    let rows: [(&str, &str, &[&str], &str); 4] = [
        (
            "a.env",
            "A=1\n",
            &["set", "A", "[1]", "--value-json"],
            "env cannot hold this value: all values are texts",
        ),
        (
            "a.ini",
            "[s]\na = 1\n",
            &["set", "s.a", "[1]", "--value-json"],
            "ini cannot hold this value: all values are texts of one line",
        ),
        (
            "a.ini",
            "[s]\na = 1\n",
            &["set", "s.a", " x"],
            "ini cannot hold this value: it would need quotes, and readers disagree about them",
        ),
        (
            "a.toml",
            "a = 1\n",
            &["set", "a", "null", "--value-json"],
            "toml cannot hold this value: TOML has no null; unset the key instead",
        ),
    ];
    for (name, text, asked, said) in rows {
        refused(&[(name, text, asked, &format!("{said}{NEXT}"))]);
    }
}

#[test]
fn a_value_that_may_mean_two_things_is_asked_about() {
    let rows = [
        ("0x10", "it may be a number or a text"),
        ("none", "it may be a boolean, nothing at all, or a text"),
        ("2020-01-01", "it may be a date or a text"),
    ];
    for (value, why) in rows {
        let said = format!(
            "`{value}` is unclear: {why}\n  next: say `--string` for a text, `--value-json` with the value as JSON, or `--raw` to write `{value}` as it is"
        );
        refused(&[("a.toml", "a = 1\n", &["set", "a", value], &said)]);
    }
    refused(&[(
        "a.toml",
        "a = 1979-05-27\n",
        &["set", "a", "3"],
        "`a` is a value that only this format has (line 1, column 5), and `3` would make it a number
  next: say `--string` to make `3` a text, or `--value-json` to change the type",
    )]);
}

#[test]
fn what_is_no_value_or_no_table_is_refused() {
    refused(&[
        (
            "a.toml",
            "a = 1\n",
            &["set", "a", "1 x", "--raw"],
            "the value cannot be read: `1 x` is not one value of this format
  next: `--string` takes any text as it is",
        ),
        (
            "a.toml",
            "a = 1\n",
            &["merge", "[1]"],
            "keys are merged from a table, and this is a list
  next: write it like `{\"server\": {\"port\": 8080}}`",
        ),
    ]);
}

#[test]
fn a_key_that_leads_nowhere_is_refused() {
    refused(&[
        (
            "a.toml",
            "a = 1\n",
            &["set", "a.b", "2"],
            "`a.b` cannot be: a single value stands there (line 1, column 5), not a table
  next: check the key, or set what is above it as a whole with `set --value-json`",
        ),
        (
            "a.toml",
            "a = [1]\n",
            &["set", "a[5]", "2"],
            "`a[5]` is out of range: the list has 1 item
  next: count from 0; `[+]` appends",
        ),
        (
            "a.ini",
            "[S]\na = 1\n",
            &["set", "s.a", "2"],
            "`s.a` is not there, but `S.a` is (line 1, column 2)
  next: say `S.a` if you mean that one",
        ),
    ]);
}

#[test]
fn what_is_written_in_a_way_that_is_not_edited_is_left_to_people() {
    const NEXT: &str = "\n  next: change it by hand, or its keys one by one";
    const LIST: &str = "[[l]]\na = 1\n";
    let removed = "`l[0]` cannot be edited here (line 1, column 1): tables of a list are not removed one by one";
    let added = "`l[+].a` cannot be edited here (line 1, column 1): tables of a list are not added one by one";
    refused(&[
        ("a.toml", LIST, &["unset", "l[0]"], &format!("{removed}{NEXT}")),
        ("a.toml", LIST, &["set", "l[+].a", "2"], &format!("{added}{NEXT}")),
        (
            "a.yaml",
            "a: &x 1\nb: *x\n",
            &["set", "a", "2"],
            "`a` cannot be changed alone (line 1, column 4): others have this value through its anchor
  next: change it where it is defined, by hand",
        ),
    ]);
}

#[test]
fn a_key_that_is_not_understood_is_refused_before_anything_is_read() {
    let world = World::new().file("a.toml", "a = 1\n");
    for (key, said) in [
        (
            "a[99999999999999999999]",
            "column 2 of the key `a[99999999999999999999]`: this index is too large",
        ),
        (
            "a[x]",
            "an index is a number from 0, or `+`; put a name in double quotes",
        ),
        ("a.\"\\q\"", "this is no text in double quotes"),
    ] {
        let ran = world.unmoved(["set", "a.toml", key, "2"]);
        assert_eq!(ran.code, 2, "{ran}");
        assert!(ran.err.contains(said), "{ran}");
    }
}

#[test]
fn a_key_that_somebody_set_again_stays() {
    let world = World::new().file("a.toml", "a = 1\nb = 2\n");
    world.did(["unset", "a.toml", "a"]);
    world.put("a.toml", "b = 2\na = 9\n");
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `a.toml:a`: somebody else set it again
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: do it anyway with `backout undo 9e3779b9 --force` (what is there now is kept)
    [exit code 1]
    ");
}

#[test]
fn keys_of_a_file_that_somebody_broke_stay() {
    let world = World::new().file("a.toml", "a = 1\n");
    world.did(["set", "a.toml", "a", "2"]);
    world.put("a.toml", "a = [2\n");
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `a.toml:a`: the file cannot be read any more: line 1, column 7: unclosed array
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn a_key_in_a_list_that_somebody_changed_stays() {
    let world = World::new().file("a.json", "{\"l\": [{\"a\": 1}]}\n");
    world.did(["set", "a.json", "l[0].a", "2"]);
    world.put("a.json", "{\"l\": [{\"a\": 7}, {\"a\": 2}]}\n");
    insta::assert_snapshot!(world.unmoved(["undo"]), @r"
    error: nothing was undone
      why: `a.json:l[0].a`: the list `l` was changed since, and `l[0].a` may mean another item
      next: see what would change back, and what others changed, with `backout undo 9e3779b9 --dry-run --diff`
      next: put right what stands in the way, then `backout undo 9e3779b9` again
    [exit code 1]
    ");
}

#[test]
fn what_came_back_beside_others_says_what_is_not_as_it_was() {
    let world = World::new().file("i.yaml", "z: 1\n");
    world.did(["set", "i.yaml", "a", "2"]);
    world.put("i.yaml", "z: 1\na: 2 # a person's\n");
    let told = world.unmoved(["undo"]).to_string();
    let why = "why: `i.yaml:a`: somebody else wrote a comment on it";
    assert!(told.contains(why), "{told}");
    let world = World::new().file("f.json", "{\"a\":1,\"b\":2}\n");
    fs::hard_link(world.path("f.json"), world.path("h.json")).unwrap();
    world.did(["set", "f.json", "a", "7"]);
    world.did(["set", "f.json", "b", "8"]);
    let told = world.cli(["undo", "@-1"]).to_string();
    let note = "`f.json` has the key back, but does not share its bytes with its other names again";
    assert!(told.contains(note), "{told}");
    let world = World::new().file("o.json", "{\"a\":1,\"b\":2}\n");
    fs::hard_link(world.path("o.json"), world.path("h.json")).unwrap();
    world.did(["set", "o.json", "a", "7"]);
    world.did(["set", "o.json", "b", "8"]);
    std::os::unix::fs::chown(world.path("o.json"), Some(1), Some(1)).unwrap();
    let told = world.cli(["undo", "@-1"]).to_string();
    let note = "`o.json` has the key back, but not the owner and group that it had";
    assert!(told.contains(note), "{told}");
    let world = World::new().file("f.jsonc", "{\n  \"a\": 1, // ca\n  \"b\": 2 // cb\n}\n");
    world.did(["unset", "f.jsonc", "b"]);
    world.put("f.jsonc", "{\n  \"a\": 1, // ca\n  \"c\": 2 // cc\n}\n");
    let plan = world.cli(["undo", "-n"]).to_string();
    assert!(plan.contains("f.jsonc:b  merges"), "{plan}");
    let told = world.cli(["undo"]).to_string();
    assert!(told.contains("f.jsonc:b  merged"), "{told}");
    let note = "note: `f.jsonc:b` is as it was, but keys or lines came or went around it, so its place among them may not be the one it had";
    assert!(told.contains(note), "{told}");
    assert!(world.text("f.jsonc").contains("\"b\": 2, // cb"));
}

#[test]
fn a_key_that_is_unclear_or_too_deep_is_refused() {
    let world = World::new().file("m.ini", "[user]\nname = X\n  email = y@z\n");
    let told = world
        .unmoved(["set", "m.ini", "user.name", "NEW"])
        .to_string();
    let why = "a deeper line follows it, which is a part of its value to some readers and a key to others";
    assert!(told.contains(why), "{told}");
    let deep = vec!["a"; 200].join(".");
    let told = world.unmoved(["set", "m.ini", &deep, "1"]).to_string();
    assert!(told.contains("a key has no more than 128 steps"), "{told}");
}

/// Sets or unsets a key, lets somebody change the file, and gives what the undo notes.
fn noted<const N: usize>(name: &str, texts: [&str; 2], change: [&str; N]) -> String {
    let world = World::new().file(name, texts[0]);
    world.did(change);
    world.put(name, texts[1]);
    world.cli(["undo"]).to_string()
}

#[test]
fn what_is_not_as_it_was_around_a_key_is_noted() {
    let block = "m:\n  a: 1 # ca\n  b: 2\n";
    let told = noted("a.yaml", [block, "m: {b: 2}\n"], ["unset", "a.yaml", "m.a"]);
    let note = "note: `a.yaml:m.a` is as it was, but the text around it is not what it was, so blanks and line ends around it may differ";
    assert!(told.contains(note), "{told}");
    let texts = ["{\"a\": {\"x\": 1}}\n", "{\"a\": {\"y\": 2}}\n"];
    let told = noted("c.json", texts, ["set", "c.json", "a.y", "2"]);
    let note =
        "`c.json:a.y` is as it was, but what held it had other keys then and is left empty now";
    assert!(told.contains(note), "{told}");
}

#[test]
fn a_file_that_has_its_first_text_again_says_that_its_time_is_another() {
    let note = "note: `f.json` has the text back that it had first, but not the time";
    let (first, second) = ("9e3779b9", "3c6ef372");
    for (order, is_noted) in [([first, second], true), ([second, first], false)] {
        let world = World::new().file("f.json", "{\"a\":1,\"b\":2}\n");
        world.did(["set", "f.json", "a", "7"]);
        world.did(["set", "f.json", "b", "8"]);
        let told = world.cli(["undo", order[0]]).to_string();
        assert!(!told.contains(note), "{told}");
        let told = world.cli(["undo", order[1]]).to_string();
        assert_eq!(world.text("f.json"), "{\"a\":1,\"b\":2}\n");
        assert_eq!(told.contains(note), is_noted, "{told}");
    }
}
