//! What is good and what is wrong in Python.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 23] = [
    "def f(a, b=1, *c, d, e=2, **g):\n    pass\ndef h(a=1, *, b):\n    pass\n",
    "",
    "# c\n",
    "x = 1\n",
    "def f(a, *b, c=1, **d):\n    return a\n",
    "class A(B):\n    \"\"\"doc\"\"\"\n    x: int = 1\n",
    "if a:\n    pass\nelif b:\n    pass\nelse:\n    pass\n",
    "async def f():\n    async with a as b:\n        await c\n",
    "x = [i for i in y if i]\n",
    "print \"hello\"\nexec \"x\"\n",
    "match x:\n    case [1, *r]:\n        pass\n",
    "f\"{a!r:>{w}}\"\n",
    "with (a as b, c as d):\n    pass\n",
    "try:\n    pass\nexcept (A, B) as e:\n    raise X from e\nfinally:\n    pass\n",
    "lambda x: (yield)\n",
    "@d\ndef f(): ...\n",
    "x = {**a, \"b\": 1}\nif (n := 1): pass\n",
    "def f(a, /, b): pass\r\n",
    "type X[T] = list[T]\n",
    "if a:\r\n\tx = b + \\\r\n  c\r\n",
    "try:\n    a\nexcept: b\nelse:\n    c\n",
    "def f():\n  \"\"\"a\nb\"\"\"\n  # c\n# d\n  return 1\n",
    "if a: b\nelse: c\n",
];

#[rustfmt::skip]
const BAD: [Bad; 37] = [
    (
        "def f(a=1, b):\n    pass\n",
        1,
        12,
        "`b` has no default, and one before it has",
    ),
    (
        "f = lambda a=1, b: a\n",
        1,
        17,
        "`b` has no default, and one before it has",
    ),
    ("def f(:\n    pass\n", 1, 6, "the `(` of line 1 is not closed"),
    ("def f()\n    pass\n", 1, 1, "`def f()` cannot be read here"),
    ("x = (1\n", 1, 5, "the `(` of line 1 is not closed"),
    ("x = [1, 2\n", 1, 5, "the `[` of line 1 is not closed"),
    ("x = {1: 2\n", 1, 5, "the `{` of line 1 is not closed"),
    ("x = 1)\n", 1, 6, "`)` closes nothing that is open here"),
    ("x = ]\n", 1, 5, "`]` closes nothing that is open here"),
    ("\"abc\n", 1, 1, "`\"` cannot be read here"),
    ("x = \"\"\"abc\n", 1, 5, "`\"\"\"` cannot be read here"),
    ("if a\n    b\n", 1, 1, "`if a` cannot be read here"),
    ("class A\n    pass\n", 1, 1, "`class A` cannot be read here"),
    ("x = \n", 1, 1, "`x =` cannot be read here"),
    ("for x y:\n    pass\n", 1, 1, "`for x y:` cannot be read here"),
    ("def 1f():\n    pass\n", 1, 5, "`1` cannot be read here"),
    ("return = 1\n", 1, 8, "`=` cannot be read here"),
    ("x = 1 +\n", 1, 1, "`x = 1 +` cannot be read here"),
    ("import\n", 1, 1, "`import` cannot be read here"),
    ("from x import\n", 1, 1, "`from x import` cannot be read here"),
    ("a b\n", 1, 1, "`a` cannot be read here"),
    ("while:\n    pass\n", 1, 6, "identifier is missing"),
    ("x = {1, 2]\n", 1, 10, "`]` stands here, but the `{` of line 1 is not closed"),
    ("f(a, , b)\n", 1, 4, "`,` cannot be read here"),
    ("@\ndef f(): pass\n", 1, 1, "`@` cannot be read here"),
    ("x ==== 1\n", 1, 3, "`==` cannot be read here"),
    ("if a:\nb\n", 2, 1, "an indented line is needed behind `if a:`"),
    ("def f():\n    a\n  b\n", 3, 3, "the indentation fits no line above"),
    ("a\n  b\n", 2, 3, "the line is indented, and the one before opens no block"),
    (
        "def f(a=1):\n    x = 1\n\nclass A:\n    def g(\n        self,\n        b=(1, 2),  # )\n        c,\n    ):\n        pass\n",
        8,
        9,
        "`c` has no default, and one before it has",
    ),
    (
        "x = [\n    f(a, key=lambda a, b=1: b),\n    lambda a=':', b: a,\n]\n",
        3,
        19,
        "`b` has no default, and one before it has",
    ),
    ("try:\n    a\nb\n", 1, 1, "`try` has neither `except` nor `finally`"),
    ("if a:\n    try:\n        b\n", 2, 5, "`try` has neither `except` nor `finally`"),
    ("class A:\n", 2, 1, "an indented line is needed behind `class A:`"),
    ("x = 'a\n", 1, 5, "`'` cannot be read here"),
    ("f(\"a)\n", 1, 3, "`\"` cannot be read here"),
    ("f<om .graph import Graph\n", 1, 13, "a line end is needed before `import Graph`"),
];

#[test]
fn good_texts_pass() {
    good(Format::Python, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Python, &BAD);
}
