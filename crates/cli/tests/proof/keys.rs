//! Keys of config files, by the real program: exactly the own keys go back, in every format, whatever others do to the rest.

use crate::world::{World, said};

/// A format: a file with three keys of a value each that stands nowhere else, and how others write a remark and a new key.
struct Format {
    name: &'static str,
    text: &'static str,
    keys: [&'static str; 3],
    remark: &'static str,
    new: Option<&'static str>,
}

const FORMATS: [Format; 6] = [
    Format {
        name: "app.toml",
        text: "# top\r\nhost = 11 # one\r\n\n[web]\nport = 12\ntls.level = 13 # three\n",
        keys: ["host", "web.port", "web.tls.level"],
        remark: "# by a person\n",
        new: Some("\n[more]\nx = 1\n"),
    },
    Format {
        name: "app.yaml",
        text: "# top\nhost: 11   # one\nweb:\n    port: 12\n    tls: {level: 13}\n",
        keys: ["host", "web.port", "web.tls.level"],
        remark: "# by a person\n",
        new: Some("more: 1\n"),
    },
    Format {
        name: "app.json",
        text: "{\n\t\"host\": 11,\n\t\"web\": {\"port\": 12, \"tls\": {\"level\": 13}}\n}",
        keys: ["host", "web.port", "web.tls.level"],
        remark: "\n",
        new: None,
    },
    Format {
        name: "tsconfig.json",
        text: "\u{feff}{ // top\n  \"host\": 11,\n  \"web\": {\"port\": 12, \"tls\": {\"level\": 13,},},\n}\n",
        keys: ["host", "web.port", "web.tls.level"],
        remark: "// by a person\n",
        new: None,
    },
    Format {
        name: "app.ini",
        text: "; top\n[web]\nhost = 11 ; one\nport=12\n\n[tls]\nlevel = 13",
        keys: ["web.host", "web.port", "tls.level"],
        remark: "\n; by a person\n",
        new: Some("\n[more]\nx = 1\n"),
    },
    Format {
        name: ".env",
        text: "# top\nexport HOST=11\nPORT='12' # two\nLEVEL=13\n",
        keys: ["HOST", "PORT", "LEVEL"],
        remark: "# by a person\n",
        new: Some("MORE=1\n"),
    },
];

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        usize::try_from((self.0 >> 33) % sides).unwrap()
    }
}

/// What somebody else does to the file: another value for a key that is not `own`, a remark, a new key, another mode.
fn edited(world: &World, format: &Format, own: &str, dice: &mut Dice, number: usize) {
    let text = world.read(format.name);
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let others: Vec<String> = numbers
        .filter(|number| number.len() > 1 && *number != own)
        .map(str::to_owned)
        .collect();
    let text = match (dice.roll(4), format.new) {
        (0, Some(new)) if !text.contains(new) => text + new,
        (1, _) => text + format.remark,
        _ => {
            let other = &others[dice.roll(others.len() as u64)];
            text.replacen(other.as_str(), &(500 + number).to_string(), 1)
        }
    };
    world.file(format.name, &text);
}

#[test]
fn exactly_the_own_key_goes_back_and_comes_again_under_edits_of_everything_else() {
    for format in &FORMATS {
        for seed in 0..6 {
            let world = World::in_memory();
            let mut dice = Dice(seed * 77 + 5);
            world.file(format.name, format.text);
            let at = dice.roll(3);
            let (key, old, new) = (format.keys[at], (11 + at).to_string(), "9999");
            world.ok(&["set", format.name, key, new]);
            assert_eq!(world.read(format.name), format.text.replace(&old, new));
            for (number, word, from, to) in [
                (1, "undo", new, &*old),
                (2, "redo", &*old, new),
                (3, "undo", new, &*old),
            ] {
                edited(&world, format, from, &mut dice, number);
                let before = world.read(format.name);
                world.ok(&[word]);
                let told = format!("{} {key}, seed {seed}, {word}:\n{before}", format.name);
                assert_eq!(
                    world.read(format.name),
                    before.replacen(from, to, 1),
                    "{told}"
                );
            }
            world.check_store();
        }
    }
}

#[test]
fn two_keys_of_one_file_are_independent_and_the_same_key_is_a_conflict() {
    for format in &FORMATS {
        let world = World::in_memory();
        world.file(format.name, format.text);
        let [first, second, _] = format.keys;
        world.ok(&["set", format.name, first, "8001"]);
        world.ok(&["set", format.name, second, "8002"]);
        // The older one goes, the younger stays.
        world.ok(&["undo", "@-1"]);
        assert_eq!(world.read(format.name), format.text.replace("12", "8002"));
        world.ok(&["redo"]);
        let both = world.read(format.name);
        world.file(format.name, &both.replace("8002", "8003"));
        let refused = world.fails(1, &["undo", "@"]);
        assert!(refused.contains("gave it another value"), "{refused}");
        assert_eq!(world.read(format.name), both.replace("8002", "8003"));
        // The other key is not held up by that.
        world.ok(&["undo", "@-1"]);
        assert_eq!(world.read(format.name), format.text.replace("12", "8003"));
        world.ok(&["undo", "@", "--force"]);
        assert_eq!(world.read(format.name), format.text);
        world.ok(&["redo"]);
        assert_eq!(
            world.read(format.name),
            format.text.replace("12", "8003"),
            "{}",
            format.name
        );
        world.check_store();
    }
}

#[test]
fn a_key_and_its_whole_file_see_each_other() {
    let world = World::in_memory().with_project();
    world.ok(&["set", "app.toml", "port", "1"]);
    world.ok(&["write", "app.toml", "--text", "port = 2\nnew = 3\n"]);
    // Whoever wrote the whole file built on the key.
    let told = world.ok(&["undo", "@-1"]);
    assert!(told.contains("app.toml:port"), "{told}");
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.ok(&["redo"]);
    assert_eq!(world.read("app.toml"), "port = 2\nnew = 3\n");
    // And whoever set a key built on the file.
    world.ok(&["set", "app.toml", "new", "4"]);
    let log = world.json(&["log", "app.toml"]);
    assert_eq!(log["operations"].as_array().unwrap().len(), 7, "{log}");
    world.ok(&["undo", "app.toml"]);
    assert_eq!(world.read("app.toml"), "port = 2\nnew = 3\n");
    world.ok(&["redo"]);
    world.ok(&["undo", "@-1"]);
    assert_eq!(world.read("app.toml"), "port = 1\n");
    world.check_store();
}

#[test]
fn a_key_that_a_command_sets_meanwhile_is_a_part_of_what_it_did() {
    let world = World::in_memory().with_project();
    let program = env!("CARGO_BIN_EXE_backout");
    let line = format!("{program} set app.toml port 1; echo x > made");
    world.ok(&["run", "--", "sh", "-c", &line]);
    assert_eq!(world.read("app.toml"), "port = 1\n");
    world.ok(&["undo"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    assert!(!world.path("made").exists());
    world.check_store();
}

#[test]
fn the_whole_file_as_it_was_can_be_had_whatever_became_of_it() {
    let world = World::in_memory().with_project();
    world.ok(&["set", "app.toml", "port", "1"]);
    world.file("app.toml", "port = [broken\n");
    let refused = world.fails(1, &["undo"]);
    assert!(
        refused.contains("line 1") && !refused.contains("--force"),
        "{refused}"
    );
    world.ok(&["restore", "app.toml", "--from", "@"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.check_store();
}

#[test]
fn two_programs_set_keys_of_one_file_at_once_and_none_is_lost() {
    let world = World::in_memory().with_project();
    world.ok(&["status"]);
    let children: Vec<_> = (0..6)
        .map(|number| {
            let key = format!("k{number}");
            world.spawn(&["set", "app.toml", &key, "1"])
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
    let text = world.read("app.toml");
    for number in 0..6 {
        assert!(text.contains(&format!("k{number} = 1\n")), "{text}");
    }
    world.ok(&["undo", "app.toml", "--at", "1h"]);
    assert_eq!(world.read("app.toml"), "port = 8080\n");
    world.check_store();
}

#[test]
fn a_value_is_in_no_export_and_no_reply_but_the_diff() {
    let world = World::in_memory();
    world.file(".env", "TOKEN=old-secret\n");
    world.ok(&["set", ".env", "TOKEN", "new-secret"]);
    world.file(".env", "TOKEN=their-secret\n");
    let told = [
        world.ok(&["export"]),
        world.ok(&["--json", "show", "@"]),
        world.ok(&["show", "@"]),
        world.fails(1, &["undo"]),
        world.ok(&["undo", "--force"]),
        world.ok(&["export"]),
    ];
    for told in told {
        assert!(!told.contains("secret"), "{told}");
    }
    assert!(world.ok(&["diff", "@"]).contains("new-secret"));
}

#[test]
fn a_config_of_50_mb_with_a_mark_and_mixed_line_ends_is_edited_and_put_back() {
    let world = World::new();
    let long = "x".repeat(1 << 20);
    let mut text = "\u{feff}{\r\n".to_owned();
    for number in 0..50 {
        let end = if number % 2 == 0 { "\r\n" } else { "\n" };
        let number = number.to_string();
        text.push_str(&["  \"k", &number, "\": \"", &long, "\",", end].concat());
    }
    text.push_str("  \"port\": 80\r\n}\n");
    world.file("big.json", &text);
    let is = |wanted: &str| std::fs::read(world.path("big.json")).unwrap() == wanted.as_bytes();
    world.ok(&["set", "big.json", "port", "8080"]);
    assert!(is(&text.replace("80\r", "8080\r")));
    world.ok(&["undo"]);
    assert!(is(&text));
    // A key that is there twice could be either.
    let twice = text.replace("\"k49\"", "\"port\"");
    world.file("big.json", &twice);
    let refused = world
        .command(&["set", "big.json", "port", "1"])
        .output()
        .unwrap();
    assert!(
        !refused.status.success() && is(&twice),
        "{}",
        said(&refused)
    );
    assert!(said(&refused).contains("big.json"), "{}", said(&refused));
}

#[test]
fn who_removed_the_file_or_the_table_of_a_key_is_named_if_it_was_one_of_us() {
    for removal in [&["unset", "a.toml", "s"][..], &["rm", "a.toml"]] {
        let world = World::new();
        world.file("a.toml", "[s]\nport = 1\nx = 1\n");
        world.ok(&["set", "a.toml", "s.port", "2"]);
        let set = crate::trust::newest(&world, "edit");
        world.ok(removal);
        let verb = if removal[0] == "rm" { "remove" } else { "edit" };
        let gone = crate::trust::newest(&world, verb);
        for undo in [
            &["undo", "a.toml:s.port"][..],
            &["undo", &set, "--only", "a.toml:s.port"],
        ] {
            let plan = said(&world.run(&[undo, &["-n"]].concat()));
            let why = format!("conflict: {gone} (");
            assert!(plan.contains(&why), "{removal:?}: {plan}");
            assert!(
                plan.contains(") wrote or removed the whole of it since"),
                "{plan}"
            );
            assert!(!plan.contains("somebody else"), "{plan}");
            assert!(!plan.contains("independent"), "{plan}");
            let told = world.fails(1, undo);
            let first = format!("next: take that back first with `backout undo {gone}`");
            assert!(told.contains(&first), "{told}");
            assert!(!told.contains("stands in the way"), "{told}");
        }
        // What it advises does it.
        world.ok(&["undo", &gone]);
        world.ok(&["undo", "a.toml:s.port"]);
        assert_eq!(world.read("a.toml"), "[s]\nport = 1\nx = 1\n");
        world.ok(&["redo", &set]);
        world.ok(&["redo", &gone]);
        // Together they go.
        world.ok(&["undo", &set]);
        assert_eq!(world.read("a.toml"), "[s]\nport = 1\nx = 1\n");
        world.check_store();
    }
}
