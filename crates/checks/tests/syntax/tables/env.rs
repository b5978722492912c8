//! What is good and what is wrong in `.env` files.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 17] = [
    "",
    "# c\n",
    "A=1\n",
    "export A=1\n",
    "A=\"x y\"\n",
    "A='x'\n",
    "A=\n",
    "A=\"x\ny\"\n",
    "A = 1\n",
    "A=x # c\n",
    "A=\"a \\\" b\"\n",
    "FOO.BAR=1\n",
    "A=1\r\nB=2\r\n",
    "export A\n",
    "A=\"$B\"\n",
    "A=a=b\n",
    "  A=1\n",
];

#[rustfmt::skip]
const BAD: [Bad; 21] = [
    ("A=\"x\n", 1, 3, "a quote is not closed"),
    ("A='x\n", 1, 3, "a quote is not closed"),
    ("=x\n", 1, 1, "a name is needed before `=`"),
    ("1A=x\n", 1, 1, "`1A` is no name of a variable"),
    ("A B=x\n", 1, 3, "`=` is needed behind `A`"),
    ("A x\n", 1, 3, "`=` is needed behind `A`"),
    ("- a\n", 1, 1, "`-` is no name of a variable"),
    ("A=1\nB\\C=2\n", 2, 1, "`B\\C` is no name of a variable"),
    ("export =1\n", 1, 8, "a name is needed before `=`"),
    ("A=\"x\nB=1\n", 1, 3, "a quote is not closed"),
    ("{\"a\": 1}\n", 1, 1, "`{\"a\"` is no name of a variable"),
    ("[a]\n", 1, 1, "`[a]` is no name of a variable"),
    ("A·B=1\n", 1, 1, "`A·B` is no name of a variable"),
    ("A$=1\n", 1, 1, "`A$` is no name of a variable"),
    ("A=\"x\\\"\n", 1, 3, "a quote is not closed"),
    ("A=`x\n", 1, 3, "a quote is not closed"),
    ("just some words\n", 1, 6, "`=` is needed behind `just`"),
    ("A=1\nexport 2=3\n", 2, 8, "`2` is no name of a variable"),
    ("!A=1\n", 1, 1, "`!A` is no name of a variable"),
    ("A=1\n\n\"B\"=2\n", 3, 1, "`\"B\"` is no name of a variable"),
    ("export A B=1\n", 1, 10, "`=` is needed behind `A`"),
];

#[test]
fn good_texts_pass() {
    good(Format::Env, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Env, &BAD);
}
