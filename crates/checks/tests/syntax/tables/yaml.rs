//! What is good and what is wrong in YAML.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 20] = [
    "",
    "# c\n",
    "a: 1\n",
    "- a\n- b\n",
    "a: [1, 2, {b: c}]\n",
    "a: &x 1\nb: *x\n",
    "a: !Ref B\nb: !Sub \"${A}-x\"\nc: !GetAtt [A, B]\n",
    "--- a\n--- b\n...\n",
    "a: |\n  text\n  more\nb: >-\n  x\n",
    "\"a\": 'b'\n",
    "a:\r\n  b: 1\r\n",
    "base: &b {x: 1}\nd:\n  <<: *b\n  <<: *b\n",
    "1: a\n\"1\": b\n",
    "a: \"x: y\"\n",
    "%YAML 1.2\n---\na: 1\n",
    "? [a, b]\n: c\n",
    "a:\n- b\n- c\n",
    "{a: 1, b: 2}\n",
    "\u{feff}a: 1\n",
    "a: {{ x }}\n",
];

#[rustfmt::skip]
const BAD: [Bad; 29] = [
    ("a: 1\na: 2\n", 2, 1, "the key `a` stands twice: line 1 and line 2"),
    ("a:\n  b: 1\n  c: 2\n  b: 3\n", 4, 3, "the key `a.b` stands twice: line 2 and line 4"),
    ("a:\n\tb: 1\n", 2, 2, "a tab stands where only spaces may be"),
    ("a: [1, 2\n", 1, 4, "`[` is not closed"),
    ("a: {b: 1\n", 1, 4, "`{` is not closed"),
    ("a: b: c\n", 1, 5, "a colon stands where no key can begin"),
    ("a: \"x\n", 2, 1, "a quote is not closed, or its lines are not indented"),
    ("a: 'x\n", 2, 1, "a quote is not closed, or its lines are not indented"),
    ("a: *x\n", 1, 4, "`*x` has no anchor before it"),
    ("a: 1\n b: 2\n", 2, 3, "a colon stands where no key can begin"),
    ("a:\n  b: 1\n c: 2\n", 3, 2, "a key is needed here"),
    ("- a\nb: 1\n", 2, 1, "`- ` is needed here"),
    ("a: 1\n- b\n", 2, 3, "a key is needed here"),
    ("a: ]\n", 1, 4, "a bracket is closed that was not opened"),
    ("a: [1}\n", 1, 4, "`[` is closed by `}`"),
    ("a: !e!x 1\n", 1, 4, "a tag has a handle that no `%TAG` declares"),
    ("key\nother: 1\n", 2, 6, "a colon stands where no key can begin"),
    ("a: \"\\q\"\n", 1, 4, "while parsing a quoted scalar, found unknown escape character"),
    ("%YAML 3.0\n---\na\n", 1, 1, "unsupported YAML major version"),
    ("a: @x\n", 1, 4, "`@` cannot begin a text"),
    ("a: `x`\n", 1, 4, "``` cannot begin a text"),
    ("x:\n  - a: 1\n    a: 2\n", 3, 5, "the key `x[0].a` stands twice: line 2 and line 3"),
    ("{a: 1, a: 2}\n", 1, 8, "the key `a` stands twice: both on line 1"),
    ("a: 1\n---\nb: 1\nb: 2\n", 4, 1, "the key `b` stands twice: line 3 and line 4"),
    ("a: &x\n  b: *y\n", 2, 6, "`*y` has no anchor before it"),
    ("\"a\" \"b\"\n", 1, 5, "invalid trailing content after double-quoted scalar"),
    ("a: [b, c]]\n", 1, 10, "a bracket is closed that was not opened"),
    ("a: |x\n  y\n", 1, 4, "while scanning a block scalar, did not find expected comment or line break"),
    ("true: 1\ntrue: 2\n", 2, 1, "the key `true` stands twice: line 1 and line 2"),
];

#[test]
fn good_texts_pass() {
    good(Format::Yaml, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Yaml, &BAD);
}
