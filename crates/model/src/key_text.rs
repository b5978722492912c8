//! Keys as people read and type them.
//!
//! ```text
//! postgres:shop/public/orders:7     space, names, parts
//! app.toml:server.hosts[0]          a file and the parts in it
//! redis:localhost:6379/0/a%3Ab      a name with a colon in it
//! ```
//!
//! - The space ends at the first `/`, so its own colons mean nothing. Parts begin at the first `:` of the last name.
//! - What would be taken for a sign, and what nobody can type, is written as `%` and two hexadecimal digits a byte. A part in
//!   double quotes, as config files have it, needs none of that.
//! - What is printed reads back as the same key. Of a file only the parts do: a path is shown as it is, colons and all, so who
//!   reads `a:b` has to look what there is.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use super::{Key, KeyError, Names};
use crate::TargetPath;

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written(f, escape)
    }
}

impl Key {
    /// Writes the names as they are, without a sign for what is odd in them. Two keys may look the same so.
    pub fn plainly(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _written = self.written(&mut text, |f, name, _| f.write_str(name));
        text
    }

    fn written<W: fmt::Write>(
        &self,
        f: &mut W,
        write: impl Fn(&mut W, &str, &[char]) -> fmt::Result,
    ) -> fmt::Result {
        let mut odd: &[char] = &['%', '.', '['];
        match &self.place {
            Names::File(path) => write!(f, "{path}")?,
            Names::Other(it) => {
                odd = &['%', '.', '[', '/'];
                f.write_str(&it.space)?;
                for (index, name) in it.names.iter().enumerate() {
                    let is_last = index + 1 == it.names.len();
                    let odd: &[char] = if is_last {
                        &['%', '/', ':']
                    } else {
                        &['%', '/']
                    };
                    f.write_char('/')?;
                    write(f, name, odd)?;
                }
                if it.names.is_empty() && !self.parts.is_empty() {
                    f.write_char('/')?;
                }
            }
        }
        for (index, part) in self.parts.iter().enumerate() {
            let is_item = item(part) == Some(part.len());
            match (index, is_item) {
                (0, _) => f.write_char(':')?,
                // An item of a list: `list[0]`.
                (_, true) => {}
                (_, false) => f.write_char('.')?,
            }
            let stands_out = |c: char| c.is_control() || odd.contains(&'/') && c == '/';
            let is_quoted = quoted(part) == Some(part.len()) && !part.contains(stands_out);
            match part.strip_prefix('"') {
                _ if is_item || is_quoted => f.write_str(part)?,
                Some(rest) => {
                    write(f, "\"", &['"'])?;
                    write(f, rest, odd)?;
                }
                None => write(f, part, odd)?,
            }
        }
        Ok(())
    }

    /// Goes on to parts that are written as they are printed, like `server.hosts[0]`.
    pub fn inside(&self, parts: &str) -> Result<Self, KeyError> {
        let mut key = self.clone();
        let mut rest = parts;
        while !rest.is_empty() || key.parts.len() == self.parts.len() {
            let whole = item(rest).or_else(|| quoted(rest));
            let end = whole.unwrap_or_else(|| rest.find(['.', '[']).unwrap_or(rest.len()));
            let part = rest.get(..end).unwrap_or_default();
            key = match whole {
                Some(_) => key.part(part)?,
                None => key.part(&unescaped(part)?)?,
            };
            rest = rest.get(end..).unwrap_or_default();
            rest = match rest.strip_prefix('.') {
                Some(after) if !after.is_empty() => after,
                None if rest.is_empty() || item(rest).is_some() => rest,
                _ => return Err(no_key(parts)),
            };
        }
        Ok(key)
    }
}

/// Reads a key: a path from the root, or a space with names and parts in it.
impl FromStr for Key {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        if text.starts_with('/') {
            return Ok(TargetPath::new(text)?.into());
        }
        let Some((space, below)) = text.split_once('/') else {
            return Self::in_space(text, &[]);
        };
        let (above, last) = match below.rsplit_once('/') {
            Some((above, last)) => (Some(above), last),
            None => (None, below),
        };
        let (last, parts) = match last.split_once(':') {
            Some((last, parts)) => (last, Some(parts)),
            None => (last, None),
        };
        let above = above.into_iter().flat_map(|above| above.split('/'));
        let last = Some(last).filter(|last| !last.is_empty());
        let names = above.chain(last).map(unescaped);
        let names: Vec<String> = names.collect::<Result<_, _>>()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let key = Self::in_space(space, &names)?;
        parts.map_or_else(|| Ok(key.clone()), |parts| key.inside(parts))
    }
}

fn no_key(text: &str) -> KeyError {
    let segment = text.to_owned();
    KeyError::Segment { segment }
}

fn escape<W: fmt::Write>(f: &mut W, name: &str, odd: &[char]) -> fmt::Result {
    for c in name.chars() {
        if odd.contains(&c) || c.is_control() {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                write!(f, "%{byte:02X}")?;
            }
        } else {
            f.write_char(c)?;
        }
    }
    Ok(())
}

/// Reads what `%` and two digits stand for; a `%` without them is one.
fn unescaped(name: &str) -> Result<String, KeyError> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let digits = after
            .get(..2)
            .filter(|it| it.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(b'%'));
        rest = after.get(byte.map_or(0, |_| 2)..).unwrap_or_default();
    }
    bytes.extend(rest.bytes());
    String::from_utf8(bytes).map_err(|_| no_key(name))
}

/// Tells how long the item of a list is that a text begins with: `[0]`, or `[+]` for the place behind the last.
fn item(text: &str) -> Option<usize> {
    let (index, _) = text.strip_prefix('[')?.split_once(']')?;
    let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    (is_number || index == "+").then_some(index.len() + 2)
}

/// Tells how long the text in double quotes is that a text begins with.
fn quoted(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let inside = text.strip_prefix('"')?;
    let end = inside.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map(|end| end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(path: &str) -> Key {
        TargetPath::new(path).unwrap().into()
    }

    fn parts(key: Key, parts: &[String]) -> Key {
        parts.iter().fold(key, |key, part| key.part(part).unwrap())
    }

    #[test]
    fn keys_are_read_as_they_are_shown() {
        for (text, space, names, inside) in [
            (
                "postgres:shop/public/orders:7",
                "postgres:shop",
                &["public", "orders"][..],
                &["7"][..],
            ),
            (
                "redis:localhost:6379/0/session",
                "redis:localhost:6379",
                &["0", "session"],
                &[],
            ),
            (
                "redis:localhost:6379/0/user%3A7",
                "redis:localhost:6379",
                &["0", "user:7"],
                &[],
            ),
            (
                "http:api.local:80/v1/customers/7",
                "http:api.local:80",
                &["v1", "customers", "7"],
                &[],
            ),
            ("rows", "rows", &[], &[]),
            ("rows/a:b", "rows", &["a"], &["b"]),
            ("rows/:b", "rows", &[], &["b"]),
            ("rows/a:b.c[0].d", "rows", &["a"], &["b", "c", "[0]", "d"]),
            ("db:x/t:a%2Fb.c%2Ed", "db:x", &["t"], &["a/b", "c.d"]),
            ("db:x/t:\"a.b\".c", "db:x", &["t"], &["\"a.b\"", "c"]),
            ("db:x/t%0A", "db:x", &["t\n"], &[]),
        ] {
            let key = Key::in_space(space, names).unwrap();
            let key = inside.iter().fold(key, |key, part| key.part(part).unwrap());
            assert_eq!(text.parse(), Ok(key.clone()), "{text}");
            assert_eq!(key.to_string(), text);
        }
        assert_eq!("/w/a:b".parse(), Ok(file("/w/a:b")));
        assert_eq!(
            file("/w/a").inside("b[0]"),
            Ok(parts(file("/w/a"), &["b".into(), "[0]".into()]))
        );
    }

    #[test]
    fn what_is_no_key_is_refused_and_what_is_nearly_one_is_not() {
        for text in [
            "",
            "1a/b",
            "a b",
            "a//b",
            "rows/a:",
            "rows/a:b.",
            "rows/a:b..c",
            "rows/a:\"b\"c",
            "rows/%FF",
        ] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
        let same = |typed: &str, text: &str| {
            assert_eq!(typed.parse::<Key>().unwrap().to_string(), text);
        };
        same("rows/a/", "rows/a");
        same("rows/50%", "rows/50%25");
        same("rows/100%zz", "rows/100%25zz");
        let key: Key = "redis:h:1/0/a%3Ab%2Fc".parse().unwrap();
        assert_eq!(key.plainly(), "redis:h:1/0/a:b/c");
    }

    fn any_part() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-c/%.:\\[\\]\"\\\\\u{e9}\n ]{1,5}",
            "\\[[0-9]{1,3}\\]",
            "\"[a-c./\\[]{0,4}\"",
            Just("[+]".to_owned()),
            "%[0-9A-F]{2}",
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_of_another_space_reads_back(
            names in prop::collection::vec("[a-c/%.:\\[\"\u{e9}\n ]{1,4}", 0..3),
            inside in prop::collection::vec(any_part(), 0..4),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let key = parts(Key::in_space("db:shop", &names).unwrap(), &inside);
            prop_assert_eq!(key.to_string().parse(), Ok(key));
        }

        #[test]
        fn what_is_printed_of_the_parts_of_a_file_reads_back(
            inside in prop::collection::vec(any_part(), 1..4),
        ) {
            let (whole, key) = (file("/w/app.toml"), parts(file("/w/app.toml"), &inside));
            let text = key.to_string();
            prop_assert_eq!(whole.inside(text.strip_prefix("/w/app.toml:").unwrap()), Ok(key));
        }

        #[test]
        fn no_text_is_too_odd_to_be_read(text in ".{0,12}") {
            if let Ok(key) = text.parse::<Key>() {
                prop_assert_eq!(key.to_string().parse(), Ok(key));
            }
        }
    }
}
