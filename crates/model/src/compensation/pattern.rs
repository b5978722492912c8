//! Which calls a rule is for: methods and a URL with holes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Methods and a URL with holes: `POST https://api.example/v1/zones/{zone}/records`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CallPattern {
    text: String,
    methods: Vec<String>,
    /// Plain text and holes in turn, plain text first.
    pieces: Vec<String>,
}

/// Says why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It has no method, or no URL.
    #[error("it must be a method and a URL, like `POST https://api.example/v1/users/{{user}}`")]
    NotACall,
    /// A brace is not closed, or a hole has no name.
    #[error("a hole is a name in braces, like `{{user}}`")]
    BadHole,
}

/// The methods that write.
pub const WRITES: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

impl CallPattern {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let (methods, url) = text.split_once(' ').ok_or(PatternError::NotACall)?;
        let methods: Vec<String> = methods.split('|').map(str::to_owned).collect();
        let is_write = |method: &String| WRITES.contains(&method.as_str());
        let url = url.trim();
        if !methods.iter().all(is_write)
            || !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return Err(PatternError::NotACall);
        }
        let (mut pieces, mut rest) = (Vec::new(), url);
        while let Some((plain, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(PatternError::BadHole)?;
            let is_good = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            let begins = name.chars().next().is_some_and(|c| c.is_ascii_lowercase());
            if !begins || !name.chars().all(is_good) {
                return Err(PatternError::BadHole);
            }
            pieces.extend([plain.to_owned(), name.to_owned()]);
            rest = after;
        }
        pieces.push(rest.to_owned());
        let text = text.to_owned();
        Ok(Self {
            text,
            methods,
            pieces,
        })
    }

    /// Gives it as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Names the methods.
    pub fn methods(&self) -> &[String] {
        &self.methods
    }

    /// Names the holes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().skip(1).step_by(2).map(String::as_str)
    }

    /// Gives what fills the holes if a call is meant. The query counts only if the pattern has one.
    pub fn matched(&self, method: &str, url: &str) -> Option<BTreeMap<String, String>> {
        let is_meant = self.methods.iter().any(|it| it == method);
        let has_query = self.pieces.iter().any(|piece| piece.contains('?'));
        let url = match url.split_once('?') {
            Some((before, _)) if !has_query => before,
            _ => url,
        };
        let mut found = BTreeMap::new();
        (is_meant && fits(&self.pieces, url, &mut found)).then_some(found)
    }
}

/// Matches plain text and holes in turn. A hole takes as little as it can, at least one character, and never a slash.
fn fits(pieces: &[String], rest: &str, found: &mut BTreeMap<String, String>) -> bool {
    let [plain, holes @ ..] = pieces else {
        return rest.is_empty();
    };
    let Some(rest) = rest.strip_prefix(plain.as_str()) else {
        return false;
    };
    let [name, after @ ..] = holes else {
        return rest.is_empty();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
    for end in ends.take_while(|at| *at <= end) {
        let (value, after_value) = rest.split_at(end);
        if fits(after, after_value, found) {
            found.insert(name.clone(), value.to_owned());
            return true;
        }
    }
    false
}

impl TryFrom<String> for CallPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<CallPattern> for String {
    fn from(pattern: CallPattern) -> Self {
        pattern.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_what_is_in_its_holes() {
        let pattern = CallPattern::parse("PUT|DELETE http://h/a/{zone}/r-{id}").expect("it is one");
        let found = pattern
            .matched("PUT", "http://h/a/z.org/r-7?x=1")
            .expect("it fits");
        assert_eq!(found["zone"], "z.org");
        assert_eq!(found["id"], "7");
        for (method, url) in [
            ("POST", "http://h/a/z/r-7"),
            ("PUT", "http://h/a/z/y/r-7"),
            ("PUT", "http://h/a/z/r-"),
            ("PUT", "http://h/a/z/r-7/more"),
            ("PUT", "http://other/a/z/r-7"),
        ] {
            assert_eq!(pattern.matched(method, url), None, "{method} {url}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for text in [
            "POST",
            "GET http://h/",
            "POST /v1",
            "http://h/",
            "POST|GET http://h/",
        ] {
            assert_eq!(
                CallPattern::parse(text),
                Err(PatternError::NotACall),
                "{text}"
            );
        }
        for text in ["POST http://h/{", "POST http://h/{}", "POST http://h/{A b}"] {
            assert_eq!(
                CallPattern::parse(text),
                Err(PatternError::BadHole),
                "{text}"
            );
        }
    }
}
