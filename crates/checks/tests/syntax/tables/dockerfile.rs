//! What is good and what is wrong in Dockerfiles.

use backout_checks::syntax::Format;

use super::{Bad, bad, good};

const GOOD: [&str; 17] = [
    "FROM a\n",
    "FROM a AS b\nRUN x\n",
    "ARG V=1\nFROM a:$V\n",
    "# syntax=docker/dockerfile:1\nFROM a\n",
    "# escape=`\nFROM a\nRUN x `\n  y\n",
    "FROM a\nRUN x \\\n  # c\n  y \\\n\n  && z\n",
    "FROM a\nRUN <<EOF\nx\nEOF\n",
    "FROM a\nCOPY <<EOF /x\nFOO bar\nEOF\n",
    "FROM a\nCMD [\"x\", \"y\"]\n",
    "FROM a\nRUN [ -f x ] && y\n",
    "FROM a\nENV A=1 B=\"x y\"\nENV C d e\n",
    "FROM a\nEXPOSE 80 443/tcp 8000-8010 $P\n",
    "FROM --platform=linux/amd64 a\nCOPY --from=b x y z/\n",
    "FROM a\nHEALTHCHECK --interval=5s CMD x\nONBUILD RUN y\n",
    "from a\nrun x\n",
    "FROM a\r\nRUN x \\\r\n  y\r\n",
    "FROM a\nSHELL [\"/bin/sh\", \"-c\"]\nVOLUME /a\nUSER u\nWORKDIR /w\nSTOPSIGNAL 9\nLABEL a=b\nMAINTAINER m\nENTRYPOINT x\n",
];

#[rustfmt::skip]
const BAD: [Bad; 26] = [
    ("", 1, 1, "has no `FROM`"),
    ("# c\n", 2, 1, "has no `FROM`"),
    ("RUN x\n", 1, 1, "`RUN` stands before the first `FROM`"),
    ("FROM\n", 1, 1, "`FROM` needs an argument"),
    ("FROM a b\n", 1, 1, "`FROM` does not take `a b`"),
    ("FROM a AS\n", 1, 1, "`FROM` does not take `a AS`"),
    ("FROM a b c\n", 1, 1, "`FROM` does not take `a b c`"),
    ("FROM a\nRUNN x\n", 2, 1, "`RUNN` is no instruction"),
    ("FROM a\nRUN\n", 2, 1, "`RUN` needs an argument"),
    ("FROM a\nCOPY x\n", 2, 1, "`COPY` needs a source and a destination"),
    ("FROM a\nADD\n", 2, 1, "`ADD` needs a source and a destination"),
    ("FROM a\nENV A\n", 2, 1, "`A` has no value"),
    ("FROM a\nENV A=\"x\n", 2, 1, "the quote `\"` is not closed"),
    ("FROM a\nEXPOSE http\n", 2, 1, "`http` is no port"),
    ("FROM a\nEXPOSE 99999\n", 2, 1, "`99999` is no port"),
    ("FROM a\nCMD [\"x\", 'y']\n", 2, 5, "`[\"x\", 'y']` is no list in JSON"),
    ("FROM a\nCMD [\"x\"\n", 2, 5, "`[\"x\"` is no list in JSON"),
    ("FROM a\nSHELL sh\n", 2, 7, "`sh` is no list in JSON"),
    ("FROM a\nHEALTHCHECK x\n", 2, 1, "`HEALTHCHECK` does not take `x`"),
    ("FROM a\nONBUILD FROM b\n", 2, 1, "`ONBUILD` does not take `FROM`"),
    ("FROM a\nRUN <<EOF\nx\n", 2, 1, "the here-document `EOF` is not closed"),
    ("FROM a\nRUN x\n  && y\n", 3, 3, "`&&` is no instruction"),
    ("# escape=x\nFROM a\n", 1, 1, "`x` cannot be the escape character"),
    ("ARG A\n", 2, 1, "has no `FROM`"),
    ("FROM a\nENTRYPOINT ['x']\n", 2, 12, "`['x']` is no list in JSON"),
    ("FROM a\nLABEL a='x\n", 2, 1, "the quote `'` is not closed"),
];

#[test]
fn good_texts_pass() {
    good(Format::Dockerfile, &GOOD);
}

#[test]
fn bad_texts_are_refused_at_their_place() {
    bad(Format::Dockerfile, &BAD);
}
