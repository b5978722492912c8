//! What is good and what is wrong in shell scripts.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 29] = [
    "",
    "#!/bin/sh\n",
    "echo a\n",
    "if a; then b; elif c; then d; else e; fi\n",
    "for i in a b; do echo \"$i\"; done\n",
    "for ((i=0; i<3; i++)); do :; done\n",
    "while read -r x; do :; done < f\n",
    "case $x in a|b) c;; *) d;; esac\n",
    "f() { a; }\nfunction g { b; }\n",
    "cat <<EOF\n$(x \"\nEOF\n",
    "cat <<-'E'\n\ta\n\tE\n",
    "a=(1 2 \"x y\")\na[1 + 1]=x\n",
    "[[ -f x && ! -z $y || $a < b ]]\n",
    "[[ -n\n a\n && b -nt c ]]\n",
    "[[ $a == b* && ( -f x || $c =~ ^(a|b)$ ) ]]\n",
    "x=$(case a in a) b;; esac)\n",
    "echo \"${a:-$(b \"c\")}\" ${x%%'}'*} \"${y:-it's}\"\n",
    "(a; b) | { c; } && d || ! e &\n",
    "((x = 1 << 2))\n( (a) )\n",
    "a && \\\n  b # c\n",
    "diff <(a) <(b) > c 2>&1\n",
    "select x in a; do break; done\n",
    "echo $((1 + (2 * 3))) $#\n",
    "coproc a { b; }\ntime a\n",
    "echo a;\n",
    "echo $'a\\'b'\n",
    "shopt -s extglob\nrm !(a|b)\n",
    "exec {fd}>x 3<&0\n",
    "x=`a \"b\"`\n",
];

#[rustfmt::skip]
const BAD: [Bad; 44] = [
    ("echo \"a\n", 1, 6, "the quote `\"` is not closed"),
    ("echo 'a\n", 1, 6, "the quote `'` is not closed"),
    ("if a; then b\n", 2, 1, "the text ends, but the `if` of line 1, column 1 is not closed"),
    ("if a; then; fi\n", 1, 11, "a command is needed in the `if` of line 1, column 1, not `;`"),
    ("if a then b; fi\n", 1, 14, "`then` is needed for the `if` of line 1, column 1, not `fi`"),
    ("fi\n", 1, 1, "`fi` belongs to nothing that was begun"),
    ("for i in a; do b\n", 2, 1, "the text ends, but the `for` of line 1, column 1 is not closed"),
    ("for i in a; b; done\n", 1, 13, "`do` is needed for the `for` of line 1, column 1, not `b`"),
    ("for; do a; done\n", 1, 4, "a name is needed behind `for`, not `;`"),
    ("while a; do done\n", 1, 13, "a command is needed in the `while` of line 1, column 1, not `d`"),
    ("case x in a) b;;\n", 2, 1, "the text ends, but the `case` of line 1, column 1 is not closed"),
    ("case x in a b;; esac\n", 1, 13, "`)` is needed here, not `b`"),
    ("{ a; \n", 2, 1, "the text ends, but the `{` of line 1, column 1 is not closed"),
    ("}\n", 1, 1, "`}` belongs to nothing that was begun"),
    ("(a\n", 2, 1, "the text ends, but `(` of line 1, column 1 is not closed"),
    ("a)\n", 1, 2, "`)` stands where no command can begin"),
    ("a && \n", 2, 1, "a command is needed behind `&&`, not the end of the text"),
    ("a | ; b\n", 1, 5, "a command is needed behind `|`, not `;`"),
    ("&& a\n", 1, 1, "`&` stands where no command can begin"),
    ("a ;; b\n", 1, 3, "`;` stands where no command can begin"),
    ("echo $(a\n", 2, 1, "the text ends, but `(` of line 1, column 7 is not closed"),
    ("echo ${a\n", 2, 1, "the text ends, but `${` of line 1, column 6 is not closed"),
    ("echo `a\n", 1, 6, "a backtick is not closed"),
    ("cat <<EOF\nx\n", 1, 5, "the here-document `EOF` is not closed"),
    ("cat <\n", 1, 6, "a file is needed behind `<`, not the end of the line"),
    ("f() a\n", 1, 5, "the body of a function is needed here, not `a`"),
    ("a (b)\n", 1, 3, "`(` stands behind `a`"),
    ("[[ a\n", 2, 1, "the text ends, but `[[` of line 1, column 1 is not closed"),
    ("[[ ( a ]]\n", 1, 10, "`(` is not closed inside of `[[`"),
    ("x=(a\n", 2, 1, "the text ends, but `(` of line 1, column 3 is not closed"),
    ("if a; then b; done\n", 1, 15, "`fi` is needed for the `if` of line 1, column 1, not `done`"),
    ("done\n", 1, 1, "`done` belongs to nothing that was begun"),
    ("echo a\r\nb\r\n", 1, 7, "the line ends with a carriage return, which a shell takes for a part of it"),
    ("cat <<\n", 1, 7, "a here-document has no word that ends it"),
    ("a & && b\n", 1, 5, "`&` stands where no command can begin"),
    ("if a; then b; fi c\n", 1, 18, "`c` stands behind the end of a command"),
    ("echo $(if a)\n", 1, 12, "`then` is needed for the `if` of line 1, column 8, not `)`"),
    ("[[ a b ]]\n", 1, 6, "`b` stands inside of `[[` where an operator is needed"),
    ("[[ a == ]]\n", 1, 9, "a word is needed inside of `[[`, not `]`"),
    ("[[ -f x y ]]\n", 1, 9, "`y` stands inside of `[[` where an operator is needed"),
    ("[[ ]]\n", 1, 4, "a word is needed inside of `[[`, not `]`"),
    ("()\n", 1, 2, "a command is needed in the `(` of line 1, column 1, not `)`"),
    ("if\n", 2, 1, "the text ends, but the `if` of line 1, column 1 is not closed"),
    ("( \n", 2, 1, "the text ends, but the `(` of line 1, column 1 is not closed"),
];

#[test]
fn good_texts_pass() {
    good(Format::Shell, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Shell, &BAD);
}
