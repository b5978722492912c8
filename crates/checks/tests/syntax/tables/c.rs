//! What is good and what is wrong in C.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 17] = [
    "",
    "// c\n",
    "int x;\n",
    "int main(void) { return 0; }\n",
    "#include <stdio.h>\n#define A(x) ((x) + 1)\n",
    "struct a { int b : 3; struct { int c; }; };\n",
    "typedef int (*f)(int, ...);\n",
    "#ifdef A\nint f(int a) {\n#else\nint f(void) {\n#endif\n  return 1;\n}\n",
    "FOO(bar)\nint x;\n",
    "static inline __attribute__((always_inline)) int f(void) { return 1; }\n",
    "int a[] = { [0] = 1, [1] = 2 };\n",
    "void f() { for (int i = 0; i < 1; i++) { switch (i) { case 1: break; default: ; } } }\n",
    "#define X {\n#define Y }\nint f(void) X return 1; Y\n",
    "char *s = \"a\\\"b\" \"c\";\nchar c = '{';\n",
    "MODULE_LICENSE(\"GPL\")\nlist_for_each(a, b) {\n}\n",
    "#if 1\nint a;\r\n#endif\r\n",
    "enum e { A, B = 1 };\n",
];

#[rustfmt::skip]
const BAD: [Bad; 20] = [
    ("int main(void) {\n", 2, 1, "the text ends, but `{` of line 1, column 16 is not closed"),
    ("int main(void {\n}\n", 3, 1, "the text ends, but `(` of line 1, column 9 is not closed"),
    ("int f(void) {}\n}\n", 2, 1, "`}` closes nothing that is open here"),
    ("int a[3;\n", 2, 1, "the text ends, but `[` of line 1, column 6 is not closed"),
    ("int x = (1 + 2;\n", 2, 1, "the text ends, but `(` of line 1, column 9 is not closed"),
    ("int main(void) { return 0 }\n", 1, 26, "`;` is missing"),
    ("char *s = \"abc;\n", 1, 11, "a string is not closed on its line"),
    ("/* c\n", 2, 1, "the text ends, but the comment of line 1, column 1 is not closed"),
    ("int f(void) { if (a { } }\n", 1, 25, "`}` stands here, but the `(` of line 1 is not closed"),
    ("int f(void) { a[1); }\n", 1, 18, "`)` stands here, but the `[` of line 1 is not closed"),
    ("int f(void) { char *s = \"a\" }\n", 1, 28, "`;` is missing"),
    ("struct a { int b;\n", 2, 1, "the text ends, but `{` of line 1, column 10 is not closed"),
    ("int x = 1};\n", 1, 10, "`}` closes nothing that is open here"),
    ("int f(void) { return (1; }\n", 1, 26, "`}` stands here, but the `(` of line 1 is not closed"),
    ("int a[] = { 1, 2 ;\n", 2, 1, "the text ends, but `{` of line 1, column 11 is not closed"),
    ("void f(int a)) { }\n", 1, 14, "`)` closes nothing that is open here"),
    ("#include <a>\nint f(void) {\n  g(1;\n}\n", 4, 1, "`}` stands here, but the `(` of line 3 is not closed"),
    ("#ifdef A\nint x;\n#endif\nint f(void) {\n", 5, 1, "the text ends, but `{` of line 4, column 13 is not closed"),
    ("void f(void) { while (1) { }\n", 2, 1, "the text ends, but `{` of line 1, column 14 is not closed"),
    ("int x = 5 };\n", 1, 11, "`}` closes nothing that is open here"),
];

#[test]
fn good_texts_pass() {
    good(Format::C, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::C, &BAD);
}
