//! What is good and what is wrong in JSON with comments.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 13] = [
    "{}",
    "// c\n{}",
    "{ \"a\": 1, }",
    "[1, 2, ]",
    "/* a */ [1] // b",
    "{\"a\": /* x */ 1}",
    "{\n  // c\n  \"a\": 1, // d\n}\n",
    "{\"u\": \"http://x\"}",
    "null",
    "[]",
    "{\"a\": [1,],}",
    "{\"a\": \"/* */\"}",
    "/**/{}",
];

#[rustfmt::skip]
const BAD: [Bad; 21] = [
    ("", 1, 1, "is empty, and JSON needs a value"),
    ("// only", 1, 8, "is empty, and JSON needs a value"),
    ("{ \"a\": 1,, }", 1, 10, "a key in double quotes is needed, not `,`"),
    ("[,]", 1, 2, "a value is needed here, not `,`"),
    ("{,}", 1, 2, "a key in double quotes is needed, not `,`"),
    ("/* x", 1, 5, "the text ends, but the comment of line 1, column 1 is not closed"),
    ("{\"a\": 1 /* b }", 1, 15, "the text ends, but the comment of line 1, column 9 is not closed"),
    ("{\"a\": 1, \"a\": 2}", 1, 10, "the key `a` stands twice: both on line 1"),
    ("{a: 1}", 1, 2, "a key in double quotes is needed, not `a`"),
    ("{\"a\": 1", 1, 8, "the text ends, but `{` of line 1, column 1 is not closed"),
    ("[1", 1, 3, "the text ends, but `[` of line 1, column 1 is not closed"),
    ("{\"a\": \"x", 1, 7, "a string is not closed on its line"),
    ("{\"a\": NaN}", 1, 7, "`NaN` is no value in JSON"),
    ("{} {}", 1, 4, "`{` stands behind the end of the value"),
    ("{\"a\" 1}", 1, 6, "a colon is needed behind the key, not `1`"),
    ("{\"a\": 1 \"b\": 2}", 1, 9, "`,` or `}` is needed here, not `\"`"),
    ("# c\n{}", 1, 1, "a value is needed here, not `#`"),
    ("{\"a\": 'x'}", 1, 7, "a value is needed here, not `'`"),
    ("{\"a\": 01}", 1, 7, "`01` is no number in JSON"),
    ("[1}", 1, 3, "`,` or `]` is needed here, not `}`"),
    ("\"\\q\"", 1, 2, "`\\q` is no escape in JSON"),
];

#[test]
fn good_texts_pass() {
    good(Format::JsonWithComments, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::JsonWithComments, &BAD);
}
