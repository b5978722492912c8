//! Where a target is: a space, a chain of names in it, and a chain of parts inside of what the names lead to.
//!
//! ```text
//! file system      /etc/app.toml            names: etc, app.toml
//! a key in it      /etc/app.toml:server.port   parts: server, port
//! a row elsewhere  db:shop/public/orders:7  names: public, orders; parts: 7
//! ```
//!
//! - A *name* is something of its own in what holds it: a file in a directory. Writing the directory is not writing the file.
//! - A *part* is a piece of what holds it: a key of a config file, a row of a table. Whoever writes the whole writes every part.
//! - As bytes (`to_bytes`) every key below another one begins with it, followed by `/` for a name or by a zero byte for
//!   a part: so a store finds them by range. The bytes of a plain file are its path.

use serde::{Deserialize, Serialize};

use crate::{PathError, Target, TargetPath};

#[path = "key_text.rs"]
mod text;

/// What stands between the bytes of a name and those of a part, and between two parts.
const PART: u8 = 0;

/// What stands before each name.
const NAME: u8 = b'/';

/// Says why something cannot be a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A space has to have a word for a name.
    #[error(
        "`{space}` cannot name a space of targets: it must begin with a letter and hold letters, digits, `-`, `_`, `.`, `:` or `@` only"
    )]
    Space {
        /// What was given.
        space: String,
    },
    /// A name or a part is empty or holds a NUL byte.
    #[error("`{segment}` cannot be a name or a part of a target: it is empty or holds a NUL byte")]
    Segment {
        /// What was given.
        segment: String,
    },
    /// The stored bytes are no key.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Where a target is. In JSON it looks like the target that reaches all below it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Target", into = "Target")]
pub struct Key {
    place: Names,
    parts: Box<[String]>,
}

/// The chain of names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Names {
    /// In the file system of this machine, whose names are any bytes.
    File(TargetPath),
    /// In another space, whose names are text.
    Other(Box<Elsewhere>),
}

/// A chain of names in a space that is not the file system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Elsewhere {
    space: String,
    names: Vec<String>,
}

/// How one key lies below another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// As something of its own, like a file in a directory.
    Name,
    /// As a part of it, like a key in a config file.
    Part,
}

impl From<TargetPath> for Key {
    fn from(path: TargetPath) -> Self {
        Self {
            place: Names::File(path),
            parts: Box::default(),
        }
    }
}

impl Key {
    /// Makes a key in a space that is not the file system. `names` may be empty: then the whole space is meant.
    pub fn in_space(space: &str, names: &[&str]) -> Result<Self, KeyError> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
        let is_space = space.starts_with(|first: char| first.is_ascii_alphabetic())
            && space.bytes().all(is_word);
        if !is_space {
            let space = space.to_owned();
            return Err(KeyError::Space { space });
        }
        let names = names.iter().map(|name| segment(name));
        Ok(Self {
            place: Names::Other(Box::new(Elsewhere {
                space: space.to_owned(),
                names: names.collect::<Result<_, _>>()?,
            })),
            parts: Box::default(),
        })
    }

    /// Goes on to a part.
    pub fn part(&self, part: &str) -> Result<Self, KeyError> {
        let mut parts = self.parts.to_vec();
        parts.push(segment(part)?);
        Ok(Self {
            place: self.place.clone(),
            parts: parts.into(),
        })
    }

    /// Gives the file that is meant, or in which the part lies that is meant; none in another space.
    pub const fn file(&self) -> Option<&TargetPath> {
        match &self.place {
            Names::File(path) => Some(path),
            Names::Other(_) => None,
        }
    }

    /// Names the space; none for the file system.
    pub fn space(&self) -> Option<&str> {
        match &self.place {
            Names::File(_) => None,
            Names::Other(other) => Some(&other.space),
        }
    }

    /// Lists the names in a space that is not the file system.
    pub fn names(&self) -> &[String] {
        match &self.place {
            Names::File(_) => &[],
            Names::Other(other) => &other.names,
        }
    }

    /// Lists the parts, outermost first.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Tells whether this key lies below another (and is not it), and how.
    pub fn below(&self, above: &Self) -> Option<Below> {
        if self.place == above.place {
            let is_longer = self.parts.len() > above.parts.len();
            return (is_longer && self.parts.starts_with(&above.parts)).then_some(Below::Part);
        }
        let is_inside = match (&self.place, &above.place) {
            (Names::File(path), Names::File(above)) => path.is_below(above),
            (Names::Other(it), Names::Other(above)) => {
                it.space == above.space && it.names.starts_with(&above.names)
            }
            (Names::File(_), Names::Other(_)) | (Names::Other(_), Names::File(_)) => false,
        };
        (is_inside && above.parts.is_empty()).then_some(Below::Name)
    }

    /// Tells whether this key is another, or lies below it.
    pub fn is_at_or_below(&self, above: &Self) -> bool {
        self == above || self.below(above).is_some()
    }

    /// Lists the keys above, nearest first.
    pub fn ancestors(&self) -> Vec<Self> {
        let with = |place: &Names, parts: &[String]| Self {
            place: place.clone(),
            parts: parts.into(),
        };
        let mut above: Vec<Self> = (0..self.parts.len())
            .rev()
            .map(|length| with(&self.place, self.parts.get(..length).unwrap_or_default()))
            .collect();
        match &self.place {
            Names::File(path) => above.extend(path.ancestors().map(Self::from)),
            Names::Other(it) => above.extend((0..it.names.len()).rev().map(|length| {
                let place = Elsewhere {
                    space: it.space.clone(),
                    names: it.names.get(..length).unwrap_or_default().to_vec(),
                };
                with(&Names::Other(Box::new(place)), &[])
            })),
        }
        above
    }

    /// Gives the bytes that a store orders and finds it by.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = match &self.place {
            Names::File(path) => path.as_bytes().to_vec(),
            Names::Other(it) => {
                let mut bytes = it.space.as_bytes().to_vec();
                for name in &it.names {
                    bytes.push(NAME);
                    bytes.extend(escaped(name).bytes());
                }
                bytes
            }
        };
        for part in &self.parts {
            bytes.push(PART);
            bytes.extend(part.bytes());
        }
        bytes
    }

    /// Reads it from those bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        let mut pieces = bytes.split(|byte| *byte == PART);
        let place = pieces.next().unwrap_or_default();
        let key = if place.starts_with(&[NAME]) {
            Self::from(TargetPath::from_bytes(place)?)
        } else {
            let place = text_of(place)?;
            let (space, names) = place.split_once('/').unwrap_or((&place, ""));
            let names = names.split('/').filter(|name| !name.is_empty());
            let names: Vec<String> = names.map(unescaped).collect();
            Self::in_space(space, &names.iter().map(String::as_str).collect::<Vec<_>>())?
        };
        pieces.try_fold(key, |key, part| key.part(&text_of(part)?))
    }

    /// Gives the ranges of bytes, each from its first to before its last, in which every key below lies and no other:
    /// names, and parts.
    pub fn ranges_below(&self) -> [(Vec<u8>, Vec<u8>); 2] {
        let bytes = self.to_bytes();
        let range = |separator: u8| {
            let with = |byte: u8| {
                let mut bound = bytes.clone();
                if bound.last() == Some(&NAME) && separator == NAME {
                    // The root directory ends in its own separator.
                    bound.pop();
                }
                bound.push(byte);
                bound
            };
            (with(separator), with(separator + 1))
        };
        // In a part there are no names, and a slash in its name is nothing but that.
        let names = if self.parts.is_empty() {
            range(NAME)
        } else {
            (bytes.clone(), bytes.clone())
        };
        [names, range(PART)]
    }
}

fn segment(text: &str) -> Result<String, KeyError> {
    if text.is_empty() || text.contains('\0') {
        let segment = text.to_owned();
        return Err(KeyError::Segment { segment });
    }
    Ok(text.to_owned())
}

fn text_of(bytes: &[u8]) -> Result<String, KeyError> {
    String::from_utf8(bytes.to_vec()).map_err(|error| KeyError::Segment {
        segment: String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// A slash in a name is not one between two.
fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

fn unescaped(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(path: &str) -> Key {
        TargetPath::new(path).unwrap().into()
    }

    fn parts(key: Key, parts: &[&str]) -> Key {
        parts.iter().fold(key, |key, part| key.part(part).unwrap())
    }

    #[test]
    fn a_part_lies_in_its_file_and_a_file_in_its_directory() {
        let port = parts(file("/etc/app.toml"), &["server", "port"]);
        assert_eq!(port.below(&file("/etc/app.toml")), Some(Below::Part));
        assert_eq!(port.below(&file("/etc")), Some(Below::Name));
        assert_eq!(port.below(&file("/")), Some(Below::Name));
        assert_eq!(
            port.below(&parts(file("/etc/app.toml"), &["server"])),
            Some(Below::Part)
        );
        assert_eq!(port.below(&parts(file("/etc/app.toml"), &["serve"])), None);
        assert_eq!(port.below(&port), None);
        assert_eq!(file("/etc/app.toml").below(&port), None);
        assert_eq!(file("/etc/b").below(&parts(file("/etc"), &["x"])), None);
    }

    #[test]
    fn keys_read_as_people_write_them() {
        let port = parts(file("/etc/app.toml"), &["server", "port"]);
        assert_eq!(port.to_string(), "/etc/app.toml:server.port");
        let row = parts(
            Key::in_space("db:shop", &["public", "a/b"]).unwrap(),
            &["7"],
        );
        assert_eq!(row.to_string(), "db:shop/public/a%2Fb:7");
        let above: Vec<String> = row.ancestors().iter().map(ToString::to_string).collect();
        assert_eq!(above, ["db:shop/public/a%2Fb", "db:shop/public", "db:shop"]);
        let above: Vec<String> = port.ancestors().iter().map(ToString::to_string).collect();
        assert_eq!(
            above,
            ["/etc/app.toml:server", "/etc/app.toml", "/etc", "/"]
        );
    }

    #[test]
    fn a_key_with_a_slash_in_its_name_is_not_below_another() {
        for (one, other) in [("/a", "/"), ("a/b", "a"), ("a/", "a")] {
            let one = parts(file("/api.json"), &[one]).to_bytes();
            let ranges = parts(file("/api.json"), &[other]).ranges_below();
            let is_in = |(first, last): &(Vec<u8>, Vec<u8>)| *first <= one && one < *last;
            assert!(!ranges.iter().any(is_in), "{other}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for space in ["", "/x", "1a", "a b", "a/b", "a\0b"] {
            assert!(Key::in_space(space, &[]).is_err(), "{space:?}");
        }
        assert!(Key::in_space("db", &[""]).is_err());
        assert!(file("/a").part("").is_err());
        assert!(file("/a").part("a\0b").is_err());
    }

    fn any_key() -> impl Strategy<Value = Key> {
        let word = "[a-c/%.]{1,3}";
        let names = prop::collection::vec(word, 0..3);
        let path = prop::collection::vec("[a-c\u{e9}]{1,2}", 0..4);
        let path = path.prop_map(|names| file(&format!("/{}", names.join("/"))));
        let other = names.prop_map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Key::in_space("db:shop", &names).unwrap()
        });
        let place = prop_oneof![path, other];
        (place, prop::collection::vec(word, 0..3)).prop_map(|(key, inside)| {
            let inside: Vec<&str> = inside.iter().map(String::as_str).collect();
            parts(key, &inside)
        })
    }

    proptest! {
        #[test]
        fn bytes_read_back_to_the_same_key(key in any_key()) {
            prop_assert_eq!(Key::from_bytes(&key.to_bytes()), Ok(key));
        }

        #[test]
        fn below_is_a_matter_of_bytes(one in any_key(), other in any_key()) {
            let bytes = one.to_bytes();
            let is_in = |(first, last): &(Vec<u8>, Vec<u8>)| *first <= bytes && bytes < *last;
            let is_found = other.ranges_below().iter().any(is_in) && one != other;
            prop_assert_eq!(one.below(&other).is_some(), is_found);
            prop_assert_eq!(one.ancestors().contains(&other), is_found);
        }
    }
}
