//! What is good and what is wrong in TypeScript.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 25] = [
    "",
    "// c\n",
    "let x = 1;\n",
    "const f = async (a, {b}) => { await a; };\n",
    "class A extends B { #x = 1; static y() {} get z() { return 1 } }\n",
    "import a, {b as c} from \"d\";\nexport default a;\n",
    "for (const x of y) { continue; }\n",
    "x = a ?? b?.c?.[0];\n",
    "`a ${b + `c`} d`;\n",
    "/a[/]b/g.test(x)\n",
    "switch (x) { case 1: break; default: y(); }\n",
    "try { a() } catch { b() } finally { c() }\n",
    "function* g() { yield* x; }\n",
    "let a = 1\nlet b = 2\n",
    "label: while (true) { break label }\n",
    "x = {a, b: 1, [c]: 2, ...d}\r\n",
    "interface A<T> extends B { x?: T; readonly y: string[] }\n",
    "type A = { [k in K]: V } | undefined;\n",
    "enum E { A = 1, B }\n",
    "function f(this: A, x?: number): x is string { return x as any }\n",
    "abstract class A { private constructor(public x: number) {} }\n",
    "declare module \"x\" { export const y: number }\n",
    "let x = <any>y;\n",
    "const a = b!;\n",
    "@d() class A {}\n",
];

#[rustfmt::skip]
const BAD: [Bad; 28] = [
    ("let x = ;\n", 1, 7, "`=` cannot be read here"),
    ("function f( {\n}\n", 1, 11, "the `(` of line 1 is not closed"),
    ("if (a {\n}\n", 1, 4, "the `(` of line 1 is not closed"),
    ("{ a();\n", 1, 1, "the `{` of line 1 is not closed"),
    ("a();\n}\n", 2, 1, "`}` closes nothing that is open here"),
    ("let x = [1, 2;\n", 1, 9, "the `[` of line 1 is not closed"),
    ("x = (1 + 2;\n", 1, 5, "the `(` of line 1 is not closed"),
    ("\"abc\n", 1, 1, "`\"abc` cannot be read here"),
    ("`abc\n", 1, 1, "``` cannot be read here"),
    ("const = 1;\n", 1, 1, "`const =` cannot be read here"),
    ("for (let i = 0; i < 1 {\n}\n", 1, 5, "the `(` of line 1 is not closed"),
    ("class { x = }\n", 1, 9, "`x =` cannot be read here"),
    ("import from;\n", 1, 1, "`import from` cannot be read here"),
    ("x = {a: };\n", 1, 8, "identifier is missing"),
    ("return }\n", 1, 8, "`}` closes nothing that is open here"),
    ("let 1x = 2;\n", 1, 5, "`1` cannot be read here"),
    ("switch (x) { case: }\n", 1, 18, "identifier is missing"),
    ("a b c;\n", 1, 1, "`a b` cannot be read here"),
    ("x = a ? b;\n", 1, 7, "`? b` cannot be read here"),
    ("var a = function( { };\n", 1, 17, "the `(` of line 1 is not closed"),
    ("/* c\n", 1, 1, "`/* c` cannot be read here"),
    ("[1, 2}\n", 1, 6, "`}` stands here, but the `[` of line 1 is not closed"),
    ("interface A { x: \n", 1, 13, "the `{` of line 1 is not closed"),
    ("type A = ;\n", 1, 9, "type identifier is missing"),
    ("enum E { A = }\n", 1, 12, "`=` cannot be read here"),
    ("let x: = 1;\n", 1, 6, "`:` cannot be read here"),
    ("function f(x: number: string) {}\n", 1, 13, "`: number` cannot be read here"),
    ("interface { }\n", 1, 1, "`interface` cannot be read here"),
];

#[test]
fn good_texts_pass() {
    good(Format::TypeScript, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::TypeScript, &BAD);
}
