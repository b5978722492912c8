//! No text, however broken, brings a check down, and every place lies inside of the text.

use backout_checks::syntax::{Format, check};
use proptest::prelude::*;

/// A good text of each format, to be broken.
const GOOD: [(Format, &str); 18] = [
    (
        Format::Json,
        "{\"a\": [1, -2.5e3, \"x\\u00e9\\n\"], \"b\": {\"c\": null, \"d\": true}}\n",
    ),
    (
        Format::JsonWithComments,
        "// c\n{\"a\": [1, /* d */ 2,], \"b\": {},}\n",
    ),
    (
        Format::Yaml,
        "a: &x [1, {b: c}]\nd:\n  - *x\n  - \"e: f\"\n  - |\n    text\n---\n!t g: 'h'\n",
    ),
    (
        Format::Toml,
        "a = [1, 'b', \"c\"]\n[d.e]\nf = { g = 1979-05-27 }\n[[h]]\ni = \"\"\"\nx\"\"\"\n",
    ),
    (
        Format::Xml,
        "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY e \"x\">]><a b='c'><!-- d -->&e;<![CDATA[f]]><g/></a>\n",
    ),
    (Format::Ini, "; c\n[a \"b\"]\nc = d \\\n e\n[f]\ng\n"),
    (Format::Env, "export A=\"b\\\"c\"\nD='e'\n# f\nG=h # i\n"),
    (
        Format::Shell,
        "f() { if [[ $a =~ ^(b|c)$ ]]; then cat <<E | d \"${g:-$(h 'i')}\"; fi\nj\nE\n}\ncase k in l) m=(n o);; esac; ((p++)); `q`\n",
    ),
    (
        Format::Sql,
        "-- c\nCREATE TABLE a (b int); /* d */ INSERT INTO a VALUES ('e''f', $$g$$);\nSELECT (1 + 2) FROM a;\n",
    ),
    (
        Format::Hcl,
        "a \"b\" {\n  c = [for d in e : \"f ${g.h[0]} %{ if i }j%{ endif }\"]\n  k = <<-L\n  m ${n}\n  L\n}\n",
    ),
    (
        Format::Dockerfile,
        "# escape=\\\nARG A=1\nFROM b:$A AS c\nRUN d \\\n  # e\n  f\nCOPY <<G /h\ni\nG\nCMD [\"j\", \"k\"]\nENV L=\"m n\"\n",
    ),
    (
        Format::Python,
        "@a\ndef b(c, *d):\n    return [f\"{e!r}\" for e in d if (g := e)]\n\nclass H: x = '''i'''\n",
    ),
    (
        Format::JavaScript,
        "import a from \"b\";\nconst c = async ({d}) => `e ${d?.f ?? /g/i}`;\nclass H { #i = [1, 2] }\n",
    ),
    (
        Format::TypeScript,
        "interface A<T> { b?: T[] }\nenum C { D = 1 }\nlet e = f as unknown as g;\n",
    ),
    (Format::Tsx, "const a = (b: C) => <d e={b}>{f} g</d>;\n"),
    (
        Format::Rust,
        "impl<'a> A for B<'a> { fn c(&self) -> Option<()> { vec![1]; let d = r#\"e\"#; None } }\n",
    ),
    (
        Format::Go,
        "package a\nimport \"b\"\nfunc c[T any](d []T) (e error) { for i := range d { defer f(i) }; return }\n",
    ),
    (
        Format::C,
        "#include <a.h>\n#ifdef B\nint c(void) {\n#else\nint d(void) {\n#endif\n  return e[0] + \"f\"[1];\n}\n",
    ),
];

/// Pieces that mean something somewhere.
const PIECES: [&str; 30] = [
    "{", "}", "[", "]", "(", ")", "\"", "'", "`", "<", ">", "\\", "\n", "\r\n", "\t", "#", "/*",
    "*/", "<<E\n", "${", "$(", "((", "&", ";", ":", "=", ",", "\0", "é", "\u{feff}",
];

/// Checks a text, and that each place is in it.
fn look(format: Format, content: &[u8]) -> Result<(), TestCaseError> {
    let text = String::from_utf8_lossy(content);
    let lines: Vec<&str> = text.split('\n').collect();
    for finding in check(format, content) {
        prop_assert!(!finding.found.is_empty());
        prop_assert!(!finding.found.contains('\n'), "{}", finding.found);
        let Some(place) = finding.place else { continue };
        let line = lines.get(place.line as usize - 1);
        let width = line.map(|line| line.chars().count() + 1);
        let is_inside =
            place.column > 0 && width.is_some_and(|width| place.column as usize <= width);
        prop_assert!(
            is_inside,
            "{format}: {place} of {content:?}: {}",
            finding.found
        );
    }
    Ok(())
}

#[test]
fn the_texts_to_be_broken_are_good() {
    for (format, text) in GOOD {
        if cfg!(feature = "code") || !format.is_code() {
            assert_eq!(check(format, text.as_bytes()), Vec::new(), "{format}");
        }
    }
    let formats: Vec<Format> = GOOD.iter().map(|(format, _)| *format).collect();
    assert_eq!(formats, Format::ALL);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_are_read(content in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in Format::ALL {
            look(format, &content)?;
        }
    }

    #[test]
    fn any_pieces_are_read(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.iter().map(|piece| PIECES[*piece]).collect();
        for format in Format::ALL {
            look(format, text.as_bytes())?;
        }
    }

    #[test]
    fn good_texts_that_are_broken_are_read(
        at in any::<prop::sample::Index>(),
        remove in 0..4_usize,
        piece in 0..PIECES.len(),
        cut in any::<bool>(),
    ) {
        for (format, text) in GOOD {
            let start = at.index(text.len());
            let end = (start + remove).min(text.len());
            let mut content = text.as_bytes()[..start].to_vec();
            content.extend(PIECES[piece].as_bytes());
            if !cut {
                content.extend(&text.as_bytes()[end..]);
            }
            look(format, &content)?;
        }
    }
}
