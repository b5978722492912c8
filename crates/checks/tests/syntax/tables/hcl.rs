//! What is good and what is wrong in HCL.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 25] = [
    "",
    "# c\n",
    "a = 1\n",
    "b \"x\" \"y\" {\n  c = \"d\"\n}\n",
    "a = [1, 2,]\n",
    "a = { b = 1, \"c\" : 2 }\n",
    "a = \"x ${b.c[0]} y\"\n",
    "a = <<EOT\nx ${y}\nEOT\n",
    "a = <<-EOT\n  x\n  EOT\n",
    "a = b ? c : d\n",
    "a = [for x in y : x.z if x != \"\"]\n",
    "a = { for k, v in y : k => v... }\n",
    "a = f(b, c...)\n",
    "a = x[*].y\nb = x.*.y\n",
    "terraform {\n  required_version = \">= 1.0\"\n}\n",
    "a = !b && (c || d)\n",
    "/* c */ a = 1 // d\n",
    "a = \"$${x} %%{y}\"\n",
    "a = \"%{ if x }y%{ else }z%{ endif }\"\n",
    "a = 1.5e-3\n",
    "variable \"x\" {}\n",
    "a = provider::x::f(1)\n",
    "a {\r\n  b = 1\r\n}\r\n",
    "a = (\n  1 +\n  2\n)\n",
    "a = -1\n",
];

#[rustfmt::skip]
const BAD: [Bad; 32] = [
    ("a = \n", 1, 5, "a value is needed here, not the end of the line"),
    ("a = \"x\n", 1, 5, "a string is not closed on its line"),
    ("a = [1, 2\n", 2, 1, "the text ends, but `[` of line 1, column 5 is not closed"),
    ("a = {b = 1\n", 2, 1, "the text ends, but `{` of line 1, column 5 is not closed"),
    ("b \"x\" {\n  c = 1\n", 3, 1, "the text ends, but `{` of line 1, column 7 is not closed"),
    ("}\n", 1, 1, "`}` closes nothing"),
    ("b {\n}\n}\n", 3, 1, "`}` closes nothing"),
    ("a = 1 b = 2\n", 1, 7, "the end of the line is needed here, not `b`"),
    ("a b\n", 1, 4, "`=` or `{` behind `a` is needed here, not the end of the line"),
    ("= 1\n", 1, 1, "the name of an attribute or a block is needed here, not `=`"),
    ("a = \"${b\"\n", 1, 9, "`}` is needed here, not `\"`"),
    ("a = \"${}\"\n", 1, 8, "a value is needed here, not `}`"),
    ("a = <<EOT\nx\n", 3, 1, "the text ends, but `<<EOT` of line 1, column 5 is not closed"),
    ("a = f(1\n", 2, 1, "the text ends, but `(` of line 1, column 6 is not closed"),
    ("a = (1\n", 2, 1, "the text ends, but `(` of line 1, column 5 is not closed"),
    ("a = b ? c\n", 1, 10, "`:` is needed here, not the end of the line"),
    ("a = [for x y : z]\n", 1, 13, "`in` is needed here, not ` `"),
    ("a = 1 +\n", 1, 8, "a value is needed here, not the end of the line"),
    ("a = \"\\q\"\n", 1, 6, "`\\q` is no escape in HCL"),
    ("a = 1\na = 2\n", 2, 1, "the key `a` stands twice: line 1 and line 2"),
    ("/* c\n", 2, 1, "the text ends, but the comment of line 1, column 1 is not closed"),
    ("a = [1 2]\n", 1, 8, "`]` for the `[` of line 1, column 5 is needed here, not `2`"),
    ("a = {b c}\n", 1, 8, "`=` is needed here, not `c`"),
    ("b { c = 1 d = 2 }\n", 1, 11, "the end of the line is needed here, not `d`"),
    ("a = x.\n", 1, 7, "the name of an attribute is needed here, not the end of the line"),
    ("1 = 2\n", 1, 1, "the name of an attribute or a block is needed here, not `1`"),
    ("a = 1x\n", 1, 5, "`1x` is no number"),
    ("a == 1\n", 1, 3, "`=` or `{` behind `a` is needed here, not `=`"),
    ("b \"x {\n}\n", 1, 3, "a string is not closed on its line"),
    ("a = 'x'\n", 1, 5, "a value is needed here, not `'`"),
    ("a = \"%{ foo }\"\n", 1, 6, "`%{` begins no directive"),
    ("a = << EOT\n", 1, 7, "the word that ends the here-document is needed here, not ` `"),
];

#[test]
fn good_texts_pass() {
    good(Format::Hcl, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Hcl, &BAD);
}
