//! What is good and what is wrong in TypeScript with JSX.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 12] = [
    "",
    "const x = <a b={c}>{d}</a>;\n",
    "const f = <T,>(x: T) => x;\n",
    "export const A = () => <><B /></>;\n",
    "type P = { a: string };\n",
    "const x: number = 1;\n",
    "<a>text</a>;\n",
    "const x = <A.B c d=\"e\" {...f} />;\n",
    "interface A { b(): void }\n",
    "let a = b as c;\n",
    "const x = a ? <b/> : null;\n",
    "// c\n",
];

#[rustfmt::skip]
const BAD: [Bad; 22] = [
    ("const x = <a>;\n", 1, 1, "`const x = <a>;` cannot be read here"),
    ("const x = <a b={c}>{d</a>;\n", 1, 20, "the `{` of line 1 is not closed"),
    ("const x = (<a/>;\n", 1, 11, "the `(` of line 1 is not closed"),
    ("let x = ;\n", 1, 7, "`=` cannot be read here"),
    ("const x = <a b=>c</a>;\n", 1, 15, "`=` cannot be read here"),
    ("type A = ;\n", 1, 9, "type identifier is missing"),
    ("function f( {\n}\n", 1, 11, "the `(` of line 1 is not closed"),
    ("{ a();\n", 1, 1, "the `{` of line 1 is not closed"),
    ("a();\n}\n", 2, 1, "`}` closes nothing that is open here"),
    ("let x: = 1;\n", 1, 6, "`:` cannot be read here"),
    ("\"abc\n", 1, 1, "`\"abc` cannot be read here"),
    ("`abc\n", 1, 1, "``` cannot be read here"),
    ("class { x = }\n", 1, 9, "`x =` cannot be read here"),
    ("enum E { A = }\n", 1, 12, "`=` cannot be read here"),
    ("x = {a: };\n", 1, 8, "identifier is missing"),
    ("[1, 2}\n", 1, 6, "`}` stands here, but the `[` of line 1 is not closed"),
    ("let x = [1, 2;\n", 1, 9, "the `[` of line 1 is not closed"),
    ("const = 1;\n", 1, 1, "`const =` cannot be read here"),
    ("interface { }\n", 1, 1, "`interface` cannot be read here"),
    ("x = (1 + 2;\n", 1, 5, "the `(` of line 1 is not closed"),
    ("if (a {\n}\n", 1, 4, "the `(` of line 1 is not closed"),
    ("const x = <a\n", 1, 1, "`const x = <a` cannot be read here"),
];

#[test]
fn good_texts_pass() {
    good(Format::Tsx, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Tsx, &BAD);
}
