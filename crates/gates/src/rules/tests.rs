//! What is read, and how mistakes are told.

use super::*;

fn read(text: &str) -> Result<Rules, Vec<Mistake>> {
    let roots = Roots {
        base: Path::new("/p"),
        home: Some(Path::new("/home/u")),
        is_own: false,
    };
    Rules::read(Path::new("/p/backout.toml"), text, &roots)
}

/// A file, a part of what is told of it, and where.
type Wrong = (&'static str, &'static str, (u32, u32));

const WRONG: &[Wrong] = &[
    ("[protect]\ndeny = 'x'", "a list of patterns", (2, 8)),
    ("[protect]\ndeny = [1]", "a list of patterns", (2, 8)),
    (
        "[protect]\n  dny = []",
        "`protect.dny` is not known; did you mean `deny`?",
        (2, 3),
    ),
    (
        "[other]\n",
        "`other` is not known; known are version, protect",
        (1, 2),
    ),
    (
        "protect = 1",
        "`protect` must be a table, like [protect]",
        (1, 11),
    ),
    (
        "[protect]\nexpires = 'soon'",
        "a time, or \"never\"",
        (2, 11),
    ),
    (
        "[protect]\nexpires = '-1h'",
        "a time, or \"never\"",
        (2, 11),
    ),
    (
        "[protect]\nexpires = '0s'",
        "`protect.expires` must be more than nothing",
        (2, 11),
    ),
    (
        "[[check]]\nname = 'a'\ncommand = ['x']\ntimeout = '0ms'",
        "`check.timeout` must be more than nothing",
        (4, 11),
    ),
    (
        "[[rule]]\nname = 'a'\nwhen = 'operation.files'",
        "the condition gives int, and has to give true or false",
        (3, 8),
    ),
    (
        "[protect]\ndeny = ['a[']",
        "unclosed character class",
        (2, 8),
    ),
    ("[protect]\ndeny = ['']", "must not be empty", (2, 8)),
    ("[protect]\ndeny = ['../q']", "can match nothing", (2, 8)),
    ("[protect\n", "", (1, 9)),
    ("version = 2", "update Backout", (1, 11)),
    ("version = 'x'", "a whole number", (1, 11)),
    (
        "[policy]\nsecrets = 'dney'",
        "did you mean `deny`?",
        (2, 11),
    ),
    (
        "[policy]\nbytes-max = '10 bananas'",
        "must be a size",
        (2, 13),
    ),
    (
        "[policy]\nremoved-percent-max = 101",
        "from 0 to 100",
        (2, 23),
    ),
    ("[[check]]\nname = 'a'", "it checks nothing", (1, 1)),
    ("[[check]]\nstructure = true", "needs a `name`", (1, 1)),
    (
        "[[check]]\nname = 'a'\ncommand = []",
        "a program and its arguments",
        (3, 11),
    ),
    (
        "[[check]]\nname = 'a'\nformats = ['jsn']\nstructure = true",
        "did you mean `json`?",
        (3, 11),
    ),
    (
        "[[check]]\nname = 'a'\nvalues = [{ min = 1 }]",
        "needs a `key`",
        (3, 11),
    ),
    (
        "[[check]]\nname = 'a'\nvalues = [{ key = 'a', mni = 1 }]",
        "did you mean `min`?",
        (3, 30),
    ),
    ("[[rule]]\nname = 'a'", "needs a condition", (1, 1)),
    (
        "[[watch]]\nname = 'a'\nreload = ['x']",
        "needs `paths`",
        (1, 1),
    ),
    (
        "[[watch]]\nname = 'a'\npaths = ['x']",
        "it looks at nothing",
        (1, 1),
    ),
    (
        "[[watch]]\nname = 'a'\npaths = ['x']\nhttp = 'https://x'",
        "curl",
        (4, 8),
    ),
    (
        "[watch]\nname = 'a'",
        "a list of tables, like [[watch]]",
        (1, 1),
    ),
    ("[ladder.hgih]", "did you mean `high`?", (1, 9)),
    (
        "[syntax]\nformats = { '*.x' = 'jsno' }",
        "did you mean `json`?",
        (2, 21),
    ),
    ("[notify]\ndesktop = 1", "true or false", (2, 11)),
];

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (text, what, at) in WRONG {
        let mistakes = read(text).unwrap_err();
        let [mistake] = mistakes.as_slice() else {
            panic!("{text}: {mistakes:?}");
        };
        assert!(mistake.what.contains(what), "{text}: {mistake:?}");
        let (line, column) = *at;
        let place = Some(Place { line, column });
        assert_eq!(mistake.place, place, "{text}: {mistake:?}");
    }
}

#[test]
fn all_mistakes_are_found_in_one_look() {
    let text = "[protect]\ndny = []\n[policy]\nsecrets = 1\n[[watch]]\ntries = 0\n";
    let mistakes = read(text).unwrap_err();
    let lines: Vec<u32> = mistakes
        .iter()
        .map(|mistake| mistake.place.unwrap().line)
        .collect();
    assert_eq!(lines, [2, 4, 5, 6], "{mistakes:?}");
}

#[test]
fn a_time_is_a_day_unless_somebody_says_otherwise() {
    assert_eq!(read("").unwrap().expires, Some(EXPIRES));
    let rules = read("[protect]\nexpires = '7d'").unwrap();
    assert_eq!(rules.expires, Some(7 * EXPIRES));
    let rules = read("[protect]\nexpires = 'never'").unwrap();
    assert_eq!(rules.expires, None);
}

/// The example of the design, which people copy.
#[test]
fn the_file_of_the_design_is_read() {
    let design = include_str!("../../../../docs/design/checks.md");
    let example = design.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let example = example.replace("/etc/**", "etc/**");
    let rules = read(&example).unwrap();
    assert_eq!(rules.checks.len(), 2);
    assert_eq!(rules.watches.len(), 1);
    assert!(rules.risk.is_some() && rules.syntax.is_some());
    assert!(rules.ladder.contains_key("high"));
}

#[test]
fn the_schema_has_every_key_and_no_other() {
    let schema = schema::schema();
    let properties = schema["properties"].as_object().unwrap();
    assert_eq!(properties.len(), spec::FILE.len());
    let check = &schema["properties"]["check"]["items"];
    assert_eq!(check["additionalProperties"], false);
    assert!(check["properties"]["on-failure"]["enum"].is_array());
}

#[test]
fn the_formats_are_those_that_are_read() {
    let read = backout_checks::syntax::Format::ALL.map(backout_checks::syntax::Format::name);
    assert_eq!(spec::FORMATS, read);
}

#[cfg(feature = "rego")]
#[test]
fn a_policy_in_rego_is_read_and_asked_and_its_mistakes_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("backout.toml");
    let read = |policy: &str| {
        std::fs::write(directory.path().join("p.rego"), policy).unwrap();
        let roots = Roots {
            base: directory.path(),
            home: None,
            is_own: false,
        };
        Rules::read(&file, "[[rule]]\nname = 'r'\nrego = 'p.rego'\n", &roots)
    };
    let rules = read(
        "package backout\ndeny contains why if {\n  input.files > 2\n  why := sprintf(\"%d files\", [input.files])\n}\n",
    );
    let rules = rules.unwrap();
    let [rule] = rules.conditions.as_slice() else {
        panic!("{rules:?}");
    };
    let kinds::Test::Rego(_, policy) = &rule.test else {
        panic!("{rule:?}");
    };
    let asked = |files: u64| policy.deny(&serde_json::json!({ "files": files })).unwrap();
    assert_eq!(asked(3), ["3 files"]);
    assert!(asked(2).is_empty());
    let wrong = |read: Result<Rules, Vec<Mistake>>| read.unwrap_err()[0].what.clone();
    let told = wrong(read("package backout\ndeny contains if"));
    assert!(told.contains("the policy"), "{told}");
    std::fs::remove_file(directory.path().join("p.rego")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        directory.path().join("p.rego"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let roots = Roots {
        base: directory.path(),
        home: None,
        is_own: false,
    };
    let told = wrong(Rules::read(
        &file,
        "[[rule]]\nname = 'r'\nrego = 'p.rego'\n",
        &roots,
    ));
    assert!(told.ends_with("p.rego` is not a file"), "{told}");
}
