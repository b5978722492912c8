//! What is good and what is wrong in TOML.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 15] = [
    "",
    "# c\n",
    "a = 1\n",
    "[a]\nb = \"c\"\n",
    "[[x]]\na = 1\n[[x]]\na = 2\n",
    "a.b.c = 1\n",
    "a = [1, 2,\n 3]\n",
    "a = { b = 1, c = 2 }\n",
    "d = 1979-05-27T07:32:00Z\n",
    "a = '''x\ny'''\n",
    "a = \"\"\"x\ny\"\"\"\n",
    "\"a b\" = 1\n",
    "a = 0xff\nb = 1_000\nc = inf\n",
    "a = 1\r\nb = 2\r\n",
    "\u{feff}a = 1\n",
];

#[rustfmt::skip]
const BAD: [Bad; 26] = [
    ("a = 1\na = 2\n", 2, 1, "the key `a` stands twice"),
    ("[a]\n[a]\n", 2, 2, "the key `a` stands twice"),
    ("a = \n", 1, 5, "a value is missing"),
    ("a 1\n", 1, 3, "key with no value, expected `=`"),
    ("a = b\n", 1, 5, "string values must be quoted, expected literal string: `b`"),
    ("a = \"x\n", 1, 7, "invalid basic string, expected `\"`"),
    ("a = [1, 2\n", 1, 10, "unclosed array, expected `]`"),
    ("[a\nb = 1\n", 1, 3, "unclosed table, expected `]`"),
    ("a = {b = 1\n", 1, 11, "unclosed inline table, expected `}`"),
    ("= 1\n", 1, 1, "unquoted keys cannot be empty, expected letters, numbers, `-`, `_`"),
    ("a = 01\n", 1, 5, "unexpected leading zero: `0`"),
    ("a = 1 b = 2\n", 1, 9, "unexpected key or value, expected newline, `#`"),
    ("a = \"\\q\"\n", 1, 7, "missing escaped value, expected `b`, `e`, `f`, `n`, `r`, `\\`, `\"`, `x`, `u`, `U`"),
    ("a.b = 1\na = 2\n", 2, 1, "the key `a` stands twice"),
    ("[[a]]\n[a]\nb = 1\n", 2, 2, "the key `a` stands twice"),
    ("a = 1979-13-01\n", 1, 5, "invalid date, expected month between 01 and 12: `1979-13-01`"),
    ("a = 'x\n", 1, 7, "invalid literal string, expected `'`"),
    ("a = tru\n", 1, 5, "invalid boolean, expected `true`: `tru`"),
    ("[]\n", 1, 2, "unquoted keys cannot be empty, expected letters, numbers, `-`, `_`"),
    ("a = 1__0\n", 1, 6, "`_` may only go between digits: `_`"),
    ("[a] x\n", 1, 5, "unexpected key or value, expected newline, `#`"),
    ("a = [1 2]\n", 1, 6, "string values must be quoted, expected literal string: `1 2`"),
    ("a = \"\"\"x\n", 2, 1, "invalid multi-line basic string, expected `\"`"),
    ("a = { b = 1, b = 2 }\n", 1, 14, "the key `b` stands twice"),
    ("!a = 1\n", 1, 1, "invalid unquoted key, expected letters, numbers, `-`, `_`: `!`"),
    ("a = 0xg\n", 1, 7, "invalid hexadecimal number"),
];

#[test]
fn good_texts_pass() {
    good(Format::Toml, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Toml, &BAD);
}
