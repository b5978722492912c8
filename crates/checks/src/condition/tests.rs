//! Conditions: what they answer, which mistakes are told where, and that they end.

use proptest::prelude::*;

use super::*;

fn facts() -> OperationFacts {
    OperationFacts {
        kind: "remove".into(),
        verb: "rm".into(),
        summary: "rm -r build".into(),
        agent: "a".into(),
        files: 21,
        bytes: 1 << 40,
        removed: 3,
        shrunk: 0,
        paths: vec!["/srv/a.yaml".into(), "/srv/ä.yaml".into()],
        targets: vec!["/srv".into()],
        ..OperationFacts::default()
    }
}

fn holds(text: &str) -> Result<bool, String> {
    Condition::compile(text)
        .unwrap()
        .holds(&facts().to_json())
        .map_err(|finding| finding.found)
}

#[test]
fn the_fields_are_the_documented_ones() {
    let json = facts().to_json();
    let mut names: Vec<&String> = json.as_object().unwrap().keys().collect();
    let mut fields = OperationFacts::FIELDS;
    names.sort();
    fields.sort_unstable();
    assert_eq!(names, fields);
}

#[test]
fn conditions_are_answered() {
    for (text, expected) in [
        ("operation.kind == \"remove\" && operation.files > 20", true),
        ("operation.files > 21", false),
        (
            "operation.files == 21 && operation.bytes > 1000000000",
            true,
        ),
        ("operation.paths.exists(p, p.endsWith('.yaml'))", true),
        ("operation.paths.all(p, p.startsWith('/etc'))", false),
        (
            "size(operation.paths) == 2 && operation.paths.size() == 2",
            true,
        ),
        (
            "operation.paths.filter(p, p.contains('ä')).size() == 1",
            true,
        ),
        ("operation.paths.map(p, p + '!')[0] == '/srv/a.yaml!'", true),
        (
            "operation.paths.exists_one(p, p.matches('a[.]yaml$'))",
            true,
        ),
        ("'/srv' in operation.targets", true),
        ("has(operation.task) && operation.task == ''", true),
        (
            "operation.removed * 100 / operation.files > 10 ? true : false",
            true,
        ),
        ("!(operation.agent in ['x', 'y'])", true),
        ("true", true),
    ] {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_mistake_is_told_with_its_place() {
    #[rustfmt::skip]
    let table = [
        ("operation.kindd == 'a'", 1, 11, "`operation` has no field `kindd`", "did you mean `kind`?"),
        ("'ä' == 'ä' &&\n operation.pths == []", 2, 12, "`operation` has no field `pths`", "did you mean `paths`?"),
        ("has(operation.owner)", 1, 4, "`operation` has no field `owner`", "its fields are kind, verb, summary, agent, task, files, bytes, removed, shrunk, paths, targets"),
        ("operatoin.kind == 'a'", 1, 1, "there is no variable `operatoin`", "did you mean `operation`?"),
        ("files > 3", 1, 1, "there is no variable `files`", "write `operation.files`"),
        ("operation.kind == remove", 1, 19, "there is no variable `remove`", "the only variable is `operation`; texts stand in quotes"),
        ("operation.paths.all(p, q == 'a')", 1, 24, "there is no variable `q`", "did you mean `p`?"),
        ("operation.kind.startswith('a')", 1, 26, "there is no function `startswith`", "did you mean `startsWith`?"),
        ("operation.paths.all(p)", 1, 20, "`all` is not called like this", "there are size, contains, startsWith, endsWith, matches, string, int, uint, double, bytes, type, dyn, has, all, exists, exists_one, map, filter"),
        ("operation.kind.matches('(')", 1, 23, "the pattern `(` is no regular expression", "write a simpler one"),
        ("operation.kind.matches('(a{100}){100}')", 1, 23, "the pattern `(a{100}){100}` is too large", "write a simpler one"),
        ("operation.kind.matches(operation.verb)", 1, 23, "the pattern of `matches` is not written out", "write it as a text in quotes"),
    ];
    for (text, line, column, found, remedy) in table {
        let finding = Condition::compile(text).unwrap_err();
        assert_eq!(finding.found, found, "{text}");
        assert_eq!(finding.remedy.as_deref(), Some(remedy), "{text}");
        assert_eq!(finding.place, Some(Place { line, column }), "{text}");
    }
}

#[test]
fn what_is_no_cel_is_told_with_its_place() {
    for (text, line, column) in [
        ("operation.files >", 1, 18),
        ("operation.files > 1 &&\n )", 2, 2),
        ("", 1, 1),
        ("'abc", 1, 1),
    ] {
        let finding = Condition::compile(text).unwrap_err();
        assert!(
            finding.found.starts_with("the condition cannot be read: "),
            "{finding:?}"
        );
        assert_eq!(
            finding.place,
            Some(Place { line, column }),
            "{text}: {finding:?}"
        );
    }
    let long = format!("true{}", " && true".repeat(1000));
    assert_eq!(
        Condition::compile(&long).unwrap_err().found,
        "the condition is longer than 4096 bytes"
    );
}

#[test]
fn what_cannot_be_answered_is_an_error() {
    for (text, found) in [
        (
            "operation.files",
            "the condition gives int, and has to give true or false",
        ),
        (
            "'true'",
            "the condition gives string, and has to give true or false",
        ),
        (
            "1 / (operation.files - 21) > 0",
            "the condition cannot be answered: Division by zero",
        ),
        (
            "operation.paths[7] == ''",
            "the condition cannot be answered: ",
        ),
        ("operation.kind > 3", "the condition cannot be answered: "),
        (
            "operation.paths.exists(p, p.x == 1)",
            "the condition cannot be answered: ",
        ),
    ] {
        let error = holds(text).unwrap_err();
        assert!(error.starts_with(found), "{text}: {error}");
    }
    let condition = Condition::compile("operation.kind == 'a'").unwrap();
    assert!(condition.holds(&serde_json::json!({})).is_err());
    assert!(condition.holds(&serde_json::json!(null)).is_err());
}

fn many(count: usize) -> serde_json::Value {
    let paths = (0..count)
        .map(|at| format!("/srv/data/{at}/file.yaml"))
        .collect();
    OperationFacts { paths, ..facts() }.to_json()
}

#[test]
fn one_walk_through_many_paths_is_allowed() {
    let condition =
        Condition::compile("operation.paths.all(p, p.startsWith('/srv/') && !p.contains('..'))")
            .unwrap();
    assert_eq!(condition.holds(&many(100_000)), Ok(true));
    let condition =
        Condition::compile("operation.paths.all(p, operation.paths.exists(q, q == p))").unwrap();
    assert_eq!(condition.holds(&many(100)), Ok(true));
}

#[test]
fn a_condition_that_would_take_too_long_is_refused() {
    for text in [
        "operation.paths.all(p, operation.paths.all(q, operation.paths.all(r, p != q || q != r)))",
        "operation.paths.all(p, operation.paths.all(q, p != q))",
        "operation.paths.map(p, operation.paths).all(l, l.all(q, q != ''))",
        "operation.paths.map(p, operation.paths + operation.paths).size() > 0",
        "operation.paths.all(p, p.matches('^/srv/[a-z]+/[0-9]+/file.yaml$'))",
    ] {
        let error = Condition::compile(text)
            .unwrap()
            .holds(&many(20_000))
            .unwrap_err();
        assert!(
            error.found.starts_with("the condition may take "),
            "{text}: {error:?}"
        );
    }
    let doubled = format!("['a']{}[0] == ''", ".map(s, s + s)".repeat(60));
    if let Ok(condition) = Condition::compile(&doubled) {
        assert!(condition.holds(&many(1)).is_err());
    }
    let doubled = format!("[['a']]{}[0] == []", ".map(l, l + l)".repeat(25));
    if let Ok(condition) = Condition::compile(&doubled) {
        assert!(condition.holds(&many(1)).is_err());
    }
}

#[test]
fn towers_are_no_danger() {
    for text in [
        format!("{}true{}", "(".repeat(2000), ")".repeat(2000)),
        format!("{}true", "!".repeat(2001)),
        format!("1{} > 0", " + 1".repeat(1000)),
        format!("1{} > 0", "-1".repeat(2000)),
        format!("{}1{}[0] == 1", "[".repeat(1000), "]".repeat(1000)),
        format!("operation{} == 1", ".kind".repeat(700)),
        format!("true{}", " ? true : false".repeat(200)),
        format!("true{}", " && true".repeat(500)),
    ] {
        if let Ok(condition) = Condition::compile(&text) {
            drop(condition.holds(&facts().to_json()));
        }
    }
    let sum = format!("1{} > 0", " + 1".repeat(100));
    assert_eq!(
        Condition::compile(&sum).unwrap_err().found,
        "the condition is nested deeper than 64 levels"
    );
    let long = format!("true{}", " && operation.files > 1".repeat(150));
    assert_eq!(
        Condition::compile(&long).unwrap().holds(&facts().to_json()),
        Ok(true)
    );
}

proptest! {
    #[test]
    fn any_text_is_compiled_or_refused(text in "(operation|[.]kind|[.]paths|[.]all\\(|p, |[()\\[\\]{}'\"!<>=&|+*?:, 0-9a-z\n-]|ä){0,20}") {
        if let Ok(condition) = Condition::compile(&text) {
            drop(condition.holds(&facts().to_json()));
        }
    }

    #[test]
    fn any_number_is_compared(files in any::<u64>(), limit in any::<u32>()) {
        let condition = Condition::compile(&format!("operation.files > {limit}")).unwrap();
        let json = OperationFacts { files, ..facts() }.to_json();
        prop_assert_eq!(condition.holds(&json), Ok(files > u64::from(limit)));
    }
}

#[test]
fn a_condition_that_does_not_end_is_not_tried_and_not_asked() {
    let long = "[1,2,3,4,5,6,7,8,9,10].all(a, ".repeat(12) + "true" + &")".repeat(12);
    let condition = Condition::compile(&long).unwrap().tried().unwrap();
    assert!(condition.holds(&facts().to_json()).is_err());
}
