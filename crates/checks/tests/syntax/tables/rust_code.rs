//! What is good and what is wrong in Rust.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 18] = [
    "",
    "// c\n",
    "fn main() {}\n",
    "struct A<T: B> where T: C { x: T }\n",
    "enum E { A(i32), B { x: u8 }, C = 1 }\n",
    "impl<'a> A for B<'a> { fn f(&self) -> Option<()> { None } }\n",
    "fn f() { let x = if a { 1 } else { 2 }; match x { 1 => (), _ => {} } }\n",
    "macro_rules! m { ($x:expr) => { $x + 1 }; }\n",
    "fn f() { println!(\"{}\", a); vec![1, 2]; }\n",
    "use a::{b, c as d};\nmod x;\n",
    "const fn f<const N: usize>() -> [u8; N] { [0; N] }\n",
    "async fn f() -> Result<(), E> { a().await?; Ok(()) }\n",
    "#[derive(Debug)]\npub(crate) struct A;\n",
    "fn f() { let c = |x: i32| -> i32 { x }; let r = r#\"a\"b\"#; }\n",
    "trait A { type B; fn c(); }\r\n",
    "fn f() { 'a: loop { break 'a; } }\n",
    "fn f() { let Some(x) = y else { return }; }\n",
    "unsafe extern \"C\" { fn a(); }\n",
];

#[rustfmt::skip]
const BAD: [Bad; 24] = [
    ("fn main( {}\n", 1, 8, "the `(` of line 1 is not closed"),
    ("fn main() {\n", 1, 11, "the `{` of line 1 is not closed"),
    ("fn main() {}\n}\n", 2, 1, "`}` closes nothing that is open here"),
    ("let = 1;\n", 1, 5, "`=` cannot be read here"),
    ("fn f() { let x = ; }\n", 1, 16, "`=` cannot be read here"),
    ("struct A { x: }\n", 1, 14, "type identifier is missing"),
    ("fn f() { (1 + 2; }\n", 1, 18, "`}` stands here, but the `(` of line 1 is not closed"),
    ("fn f() { [1, 2; }\n", 1, 17, "`}` stands here, but the `[` of line 1 is not closed"),
    ("fn f() -> { }\n", 1, 8, "`->` cannot be read here"),
    ("enum { A }\n", 1, 1, "`enum` cannot be read here"),
    ("fn () {}\n", 1, 1, "`fn ()` cannot be read here"),
    ("fn f() { if { } else }\n", 1, 10, "`if { } else` cannot be read here"),
    ("use a::{b;\n", 1, 8, "the `{` of line 1 is not closed"),
    ("impl { }\n", 1, 1, "`impl` cannot be read here"),
    ("fn f() { \"abc }\n", 1, 10, "`\"` cannot be read here"),
    ("/* c\n", 1, 1, "`/* c` cannot be read here"),
    ("fn f() { match x { 1 => } }\n", 1, 24, "identifier is missing"),
    ("struct A x: i32 }\n", 1, 17, "`}` closes nothing that is open here"),
    ("fn f() { a b c }\n", 1, 12, "`b c` cannot be read here"),
    ("pub pub fn f() {}\n", 1, 1, "`pub` cannot be read here"),
    ("fn f() { x = = 1; }\n", 1, 14, "`=` cannot be read here"),
    ("const X: = 1;\n", 1, 9, "type identifier is missing"),
    ("fn f(a: i32 b: i32) {}\n", 1, 13, "`b: i32` cannot be read here"),
    ("fnn f() {}\n", 1, 1, "`fnn f()` cannot be read here"),
];

#[test]
fn good_texts_pass() {
    good(Format::Rust, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Rust, &BAD);
}
