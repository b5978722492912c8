//! What is good and what is wrong in JSON.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 15] = [
    "{}",
    "[]",
    "null",
    "\"x\"",
    "-0.5e+10",
    " {\"a\": 1, \"b\": [true, false, null]}\n",
    "{\"a\": {\"a\": 1}, \"b\": {\"a\": 2}}",
    "\"\\u00e9\\n\\/\"",
    "{\"a\":\"é😀\"}",
    "[[[[[[]]]]]]",
    "{\r\n  \"a\": 1\r\n}\r\n",
    "{\"\": 1}",
    "[1,2.0,3e5,0]",
    "{\"a\": \"// no comment\"}",
    "\"\\ud800\"",
];

#[rustfmt::skip]
const BAD: [Bad; 34] = [
    ("", 1, 1, "is empty, and JSON needs a value"),
    ("  \n", 2, 1, "is empty, and JSON needs a value"),
    ("{\"a\": 1,}", 1, 8, "a comma stands before `}`"),
    ("[1, 2,]", 1, 6, "a comma stands before `]`"),
    ("{\"a\": 1 \"b\": 2}", 1, 9, "`,` or `}` is needed here, not `\"`"),
    ("{a: 1}", 1, 2, "a key in double quotes is needed, not `a`"),
    ("{'a': 1}", 1, 2, "a key in double quotes is needed, not `'`"),
    ("{\"a\": NaN}", 1, 7, "`NaN` is no value in JSON"),
    ("{\"a\": 01}", 1, 7, "`01` is no number in JSON"),
    ("{\"a\": .5}", 1, 7, "`.5` is no value in JSON"),
    ("{\"a\": True}", 1, 7, "`True` is no value in JSON"),
    ("{\"a\": 1} x", 1, 10, "`x` stands behind the end of the value"),
    ("{\"a\" 1}", 1, 6, "a colon is needed behind the key, not `1`"),
    ("{\"a\": }", 1, 7, "a value is needed here, not `}`"),
    ("[1 2]", 1, 4, "`,` or `]` is needed here, not `2`"),
    ("{\"a\": \"x", 1, 7, "a string is not closed on its line"),
    ("{\"a\": \"x\ny\"}", 1, 7, "a string is not closed on its line"),
    ("\"\\x\"", 1, 2, "`\\x` is no escape in JSON"),
    ("\"\\u12g4\"", 1, 2, "`\\u` needs four hexadecimal digits"),
    ("{\"a\": 1", 1, 8, "the text ends, but `{` of line 1, column 1 is not closed"),
    ("[1, [2, 3]", 1, 11, "the text ends, but `[` of line 1, column 1 is not closed"),
    ("{\"a\": 1, \"b\": 2, \"a\": 3}", 1, 18, "the key `a` stands twice: both on line 1"),
    ("{\n \"x\": {\n  \"a\": 1,\n  \"a\": 2\n }\n}", 4, 3, "the key `x.a` stands twice: line 3 and line 4"),
    ("// c\n{}", 1, 1, "a comment stands here, and JSON has none"),
    ("{\"a\": 1]", 1, 8, "`,` or `}` is needed here, not `]`"),
    ("[1, , 2]", 1, 5, "a value is needed here, not `,`"),
    ("{\"a\": +1}", 1, 7, "`+1` is no value in JSON"),
    ("{\"a\": 1.}", 1, 7, "`1.` is no number in JSON"),
    ("{\"a\": -Infinity}", 1, 7, "`-Infinity` is no number in JSON"),
    ("{\"a\": \"\u{1}\"}", 1, 8, "a control character (0x01) stands in a string"),
    ("{\"a\\u0062\": 1, \"ab\": 2}", 1, 16, "the key `ab` stands twice: both on line 1"),
    ("undefined", 1, 1, "`undefined` is no value in JSON"),
    ("{\"a\": 0x1f}", 1, 7, "`0x1f` is no number in JSON"),
    ("[1}", 1, 3, "`,` or `]` is needed here, not `}`"),
];

#[test]
fn good_texts_pass() {
    good(Format::Json, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Json, &BAD);
}
