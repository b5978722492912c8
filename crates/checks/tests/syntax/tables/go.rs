//! What is good and what is wrong in Go.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 14] = [
    "package a\n",
    "package a\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"x\") }\n",
    "package a\ntype A struct { X int `json:\"x\"` }\n",
    "package a\nfunc F[T any, U ~int | string](x T) (y U, err error) { return }\n",
    "package a\nvar x = map[string][]int{\"a\": {1}}\n",
    "package a\nfunc f() { for i := range 10 { _ = i } }\n",
    "package a\nfunc f() { switch x := y.(type) { case int: default: } }\n",
    "package a\nfunc f() { select { case <-c: } ; go g(); defer h() }\n",
    "package a\nconst ( A = iota; B )\n",
    "package a\ntype I interface { M(); ~int }\n",
    "package a\nfunc (r *R[T]) M() {}\n",
    "package a\nfunc f() { if x := g(); x > 1 { } else { } }\n",
    "package a\nvar s = `a\nb`\r\n",
    "// c\npackage a\n",
];

#[rustfmt::skip]
const BAD: [Bad; 21] = [
    ("package\n", 1, 1, "`package` cannot be read here"),
    ("package a\nfunc f( {}\n", 2, 7, "the `(` of line 2 is not closed"),
    ("package a\nfunc f() {\n", 2, 10, "the `{` of line 2 is not closed"),
    ("package a\nfunc f() {}\n}\n", 3, 1, "`}` closes nothing that is open here"),
    ("package a\nvar x = \n", 2, 1, "`var x =` cannot be read here"),
    ("package a\nfunc f() { x := }\n", 2, 16, "identifier is missing"),
    ("package a\nfunc f() { (1 + 2 }\n", 2, 19, "`}` stands here, but the `(` of line 2 is not closed"),
    ("package a\nvar x = []int{1, 2\n", 2, 14, "the `{` of line 2 is not closed"),
    ("package a\nvar s = \"abc\n", 2, 1, "`var s = \"abc` cannot be read here"),
    ("package a\nvar s = `abc\n", 2, 1, "`var s = `abc` cannot be read here"),
    ("package a\ntype A struct { X }}\n", 2, 20, "`}` closes nothing that is open here"),
    ("package a\nimport fmt\n", 2, 1, "`import fmt` cannot be read here"),
    ("package a\nfunc f() { if { } }\n", 2, 12, "`if` cannot be read here"),
    ("package a\nfunc f() { a b }\n", 2, 14, "`b` cannot be read here"),
    ("package a\ntype A\n", 2, 1, "`type A` cannot be read here"),
    ("package a\nvar x int = = 1\n", 2, 13, "`=` cannot be read here"),
    ("package a\nfunc f() { for i := 0; i < 1 i++ {} }\n", 2, 16, "`i := 0; i < 1 i++` cannot be read here"),
    ("package a\nfunc f() int string {}\n", 2, 10, "`int` cannot be read here"),
    ("package a\n/* c\n", 2, 1, "`/` cannot be read here"),
    ("package a\nfunc f(a int b int) {}\n", 2, 14, "`b int` cannot be read here"),
    ("package a\nfunc f() { return ] }\n", 2, 19, "`]` stands here, but the `{` of line 2 is not closed"),
];

#[test]
fn good_texts_pass() {
    good(Format::Go, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Go, &BAD);
}
