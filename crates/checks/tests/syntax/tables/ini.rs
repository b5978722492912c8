//! What is good and what is wrong in INI.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 16] = [
    "",
    "; c\n# c\n",
    "[a]\nb = c\n",
    "b=c\n",
    "[a]\nk\n",
    "[a \"b\"]\n\tc = d\n",
    "[Unit]\nAfter=a\nAfter=b\n",
    "[Service]\nExecStart=/bin/x \\\n  --y\n",
    "[*.{js,py}]\nindent_style = space\n",
    "[[a]]\nb = 1\n",
    "[a]\r\nb: c\r\n",
    "[mysqld]\nskip-name-resolve\n!includedir /etc/mysql/conf.d/\n",
    "[a]\nb = 1\n  2\n  3\n",
    "[a]\nb=[x\n",
    "root = true\n[*]\nx = y\n",
    "[a] ; c\n",
];

#[rustfmt::skip]
const BAD: [Bad; 20] = [
    ("[a\n", 1, 1, "the section `[a` is not closed"),
    ("[a\nb = c\n", 1, 1, "the section `[a` is not closed"),
    ("[]\n", 1, 1, "a section has no name"),
    ("[ ]\nb = c\n", 1, 1, "a section has no name"),
    ("= x\n", 1, 1, "a key is needed before `=`"),
    (": x\n", 1, 1, "a key is needed before `=`"),
    ("[a]\n= x\n", 2, 1, "a key is needed before `=`"),
    ("a b c\n", 1, 1, "`a b c` is neither a section nor `key = value`"),
    ("[a]\nsome words here\n", 2, 1, "`some words here` is neither a section nor `key = value`"),
    ("a]\nb = c\n", 1, 1, "`a]` is neither a section nor `key = value`"),
    ("[a]\n]\n", 2, 1, "`]` is neither a section nor `key = value`"),
    ("[a]\n}\n", 2, 1, "`}` is neither a section nor `key = value`"),
    ("[a]]\n", 1, 4, "`]` stands behind the section"),
    ("[a] ]\n", 1, 4, "` ]` stands behind the section"),
    ("[Unit]\nAfter x y\n", 2, 1, "`After x y` is neither a section nor `key = value`"),
    ("<a>\n", 1, 1, "`<a>` is neither a section nor `key = value`"),
    ("[a]\nb = 1\n[c\nd = 2\n", 3, 1, "the section `[c` is not closed"),
    ("\n\n[x\n", 3, 1, "the section `[x` is not closed"),
    ("\"quoted line\"\n", 1, 1, "`\"quoted line\"` is neither a section nor `key = value`"),
    ("[a]\nok = 1\n>>>>>>> theirs\n", 3, 1, "`>>>>>>> theirs` is neither a section nor `key = value`"),
];

#[test]
fn good_texts_pass() {
    good(Format::Ini, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Ini, &BAD);
}
