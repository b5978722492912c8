//! Changes as data: the keys in which two texts differ, and what a recipe keeps.

use backout_config::{
    Applied, ConfigError, Document, Format, KeyChange, NewValue, Value, apply, diff, read, revert,
};

use crate::steps::{key, means};

/// The keys in which two texts differ, with the texts of their values.
fn told(format: Format, before: &str, after: &str) -> Vec<String> {
    let changes = diff(format, before, after).unwrap();
    let side = |piece: Option<backout_config::Piece>| piece.map_or("-".into(), |piece| piece.raw);
    let line = |change: KeyChange| {
        format!(
            "{}: {} > {}",
            change.key,
            side(change.before),
            side(change.after)
        )
    };
    changes.into_iter().map(line).collect()
}

#[test]
fn a_diff_names_the_keys_that_mean_something_else() {
    let before = "# old\na: 1\nb:\n  c: x\n  d: [1, 2]\ne: {f: 1}\n";
    let after = "a: 1 # new remark\ne:\n  f: 2\nb: {c: 'x', d: [1, 3], g: 4}\n";
    assert_eq!(
        told(Format::Yaml, before, after),
        ["b.d[1]: 2 > 3", "b.g: - > 4", "e.f: 1 > 2"]
    );
    assert_eq!(
        told(Format::Json, r#"{"l": [1]}"#, r#"{"l": [1, 2]}"#),
        ["l: [1] > [1, 2]"]
    );
    assert_eq!(
        told(Format::Toml, "[a]\nx = 1\n", "[b]\ny = 1\n"),
        ["a.x: 1 > -", "b.y: - > 1"]
    );
    assert_eq!(
        told(Format::Ini, "[a]\nx = 1\n", "[a]\nx: 1 ; same\n"),
        Vec::<String>::new()
    );
    assert_eq!(told(Format::Env, "A=1\n", "A='1'\nB=2\n"), ["B: - > 2"]);
    assert_eq!(
        told(Format::Json, "{\"a\": 1}", "[]"),
        [": {\"a\": 1} > []"]
    );
}

#[test]
fn a_difference_can_be_taken_back_key_by_key() {
    let before = "[web]\nport = 80\n\n[db]\nhost = a\n";
    let after = "[web]\nport = 81\n\n[db]\nhost = b\nuser = c\n";
    let changes = diff(Format::Ini, before, after).unwrap();
    let Applied::Done(text) = revert(Format::Ini, after, &changes[0]).unwrap() else {
        panic!("not done");
    };
    assert_eq!(text, after.replace("81", "80"));
    // A difference does not know where the key stood.
    let Applied::Nearly { text, .. } = apply(Format::Ini, before, &changes[2]).unwrap() else {
        panic!("not done");
    };
    assert_eq!(text, "[web]\nport = 80\n\n[db]\nhost = a\nuser = c\n");
}

#[test]
fn a_text_with_a_key_twice_has_no_diff_by_key() {
    let twice = "A=1\nA=2\n";
    assert!(matches!(
        diff(Format::Env, twice, "A=1\n"),
        Err(ConfigError::Duplicate { .. })
    ));
    assert!(matches!(
        read(Format::Env, twice),
        Err(ConfigError::Duplicate { .. })
    ));
}

#[test]
fn a_change_is_kept_as_json_and_read_again() {
    let text = "{\n  \"l\": [{\"name\": \"x\", \"p\": 1}],\n  \"a.b\": null\n}\n";
    for (format, text, at) in [
        (Format::Json, text, "l[0].q"),
        (Format::Json, text, "\"a.b\""),
        (Format::Yaml, "a:\n  b: 1\n", "c.d"),
        (Format::Toml, "a = 2024-01-01\n", "b.c"),
    ] {
        let document = Document::parse(format, text).unwrap();
        let edited = document
            .set(&key(at), &NewValue::Typed(Value::Bool(true)))
            .unwrap();
        let kept = serde_json::to_string(&edited.changes[0]).unwrap();
        let change: KeyChange = serde_json::from_str(&kept).unwrap();
        assert_eq!(change, edited.changes[0]);
        assert_eq!(
            revert(format, &edited.text, &change).unwrap(),
            Applied::Done(text.to_owned())
        );
    }
}

#[test]
fn the_shape_of_a_kept_change_stays() {
    let edited = Document::parse(Format::Env, "A=1\n")
        .unwrap()
        .unset(&key("A"))
        .unwrap();
    assert_eq!(
        serde_json::to_string(&edited.changes[0]).unwrap(),
        r#"{"key":"A","before":{"raw":"1","tail":"=1","value":{"text":"1"}},"after":null,"patch":{"before":"A=1\n","after":"","left":{"key":"","edge":true,"gap":""},"right":{"key":"","edge":true,"gap":""}},"slip":{"body":"A=1","indent":"","behind":"","in_lines":true},"made":0}"#
    );
}

#[test]
fn leaves_are_told_in_order_with_their_places() {
    let document = Document::parse(Format::Yaml, "a: 1\nb:\n  - x\n  - {c: d}\ne: {}\n").unwrap();
    let keys = document.keys().unwrap();
    let told: Vec<String> = keys
        .iter()
        .map(|(key, found)| format!("{key} = {} at {}", found.raw, found.at))
        .collect();
    assert_eq!(
        told,
        [
            "a = 1 at line 1, column 4",
            "b[0] = x at line 3, column 5",
            "b[1].c = d at line 4, column 9",
            "e = {} at line 5, column 4"
        ]
    );
    assert_eq!(means(Format::Yaml, "a: 1\n", "b"), None);
}
