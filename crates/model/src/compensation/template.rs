//! Texts with holes: what a call that answers another one is made of.
//!
//! The language is tiny and total. `{request.body.name}` is a hole, filled from what is known of the call; `${env:NAME}` is a
//! variable of whoever sends it, looked up when it is sent and never kept. A brace that begins neither is itself, so JSON can stand
//! as it is. What fills a hole is only ever text: nothing in it is read as a hole or a variable again.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where holes are filled from, beside the names of the pattern.
pub const ROOTS: [&str; 3] = ["request", "response", "before"];

/// What can be known of a request, an answer, or what was there before. A word that is none of these means a field of the body.
const FACTS: [&str; 5] = ["method", "url", "status", "header", "body"];

/// A text with holes.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Hole(Hole),
    Variable(String),
}

/// A hole: the way to what fills it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hole {
    /// As it was written.
    pub text: String,
    /// The way, from the root.
    pub way: Vec<String>,
}

impl Hole {
    /// Tells whether it is of the answer.
    pub fn is_of_answer(&self) -> bool {
        self.way.first().is_some_and(|root| root == "response")
    }

    /// A URL as a whole is not encoded again.
    fn is_url(&self) -> bool {
        let way: Vec<&str> = self.way.iter().map(String::as_str).collect();
        matches!(way.as_slice(), [_, "url"] | [_, "header", "location"])
    }
}

/// Says why a text is no template, or could not be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The name of a variable is no name.
    #[error("`${{env:` needs the name of a variable and `}}`, like `${{env:API_TOKEN}}`")]
    BadVariable,
    /// Nothing is known that would fill a hole.
    #[error("nothing fills `{{{hole}}}`")]
    Empty {
        /// As it stands between the braces.
        hole: String,
    },
    /// A variable is not set.
    #[error("the environment variable {name} is not set")]
    NoVariable {
        /// As it stands in the environment.
        name: String,
    },
}

/// How what fills a hole is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Letter by letter.
    Plain,
    /// As a part of a URL.
    Url,
}

/// Looks a variable of the environment up.
pub type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

impl Template {
    /// Reads a text with holes and variables.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::read(text, true)
    }

    /// Reads a text in which only variables mean something.
    pub fn with_variables(text: &str) -> Result<Self, TemplateError> {
        Self::read(text, false)
    }

    fn read(text: &str, has_holes: bool) -> Result<Self, TemplateError> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(first) = rest.chars().next() {
            let found = match variable(rest)? {
                None if has_holes && !rest.starts_with("${") => hole(rest),
                found => found,
            };
            if let Some((piece, after)) = found {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
                rest = after;
            } else {
                // A brace behind a dollar is somebody else's, and no hole.
                let end = if rest.starts_with("${") {
                    2
                } else {
                    first.len_utf8()
                };
                let (taken, after) = rest.split_at(end);
                plain.push_str(taken);
                rest = after;
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        let text = text.to_owned();
        Ok(Self { text, pieces })
    }

    /// Gives it as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Lists the holes.
    pub fn holes(&self) -> impl Iterator<Item = &Hole> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(hole),
            Piece::Text(_) | Piece::Variable(_) => None,
        })
    }

    /// Tells whether it has a variable: then it is no secret itself.
    pub fn has_variable(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Variable(_)))
    }

    /// Puts what is known into all holes.
    pub fn fill(
        &self,
        facts: &Value,
        variables: Variables<'_>,
        encoding: Encoding,
    ) -> Result<String, TemplateError> {
        let mut out = String::new();
        for (at, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Hole(hole) => {
                    let filled = text_of(filling(facts, hole)?);
                    match encoding {
                        Encoding::Url if !hole.is_url() => out.push_str(&encoded(&filled)),
                        Encoding::Url | Encoding::Plain => out.push_str(&filled),
                    }
                }
                Piece::Variable(name) => {
                    let missing = || TemplateError::NoVariable { name: name.clone() };
                    let value = variables(name).ok_or_else(missing)?;
                    // At the beginning it is the address of the service.
                    match encoding {
                        Encoding::Url if at > 0 => out.push_str(&encoded(&value)),
                        Encoding::Url | Encoding::Plain => out.push_str(&value),
                    }
                }
            }
        }
        Ok(out)
    }

    /// Fills it as a value of JSON: a hole that is all of it keeps its type.
    pub fn fill_value(
        &self,
        facts: &Value,
        variables: Variables<'_>,
    ) -> Result<Value, TemplateError> {
        match self.pieces.as_slice() {
            [Piece::Hole(hole)] => filling(facts, hole).cloned(),
            _ => self
                .fill(facts, variables, Encoding::Plain)
                .map(Value::String),
        }
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.text)
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

/// Finds a value by its way through objects and lists.
pub fn at<'v>(value: &'v Value, way: &[String]) -> Option<&'v Value> {
    way.iter().try_fold(value, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Gives a value as text: a text as it is, all else as JSON.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Writes a text as a part of a URL.
pub fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    });
    each.collect()
}

fn filling<'v>(facts: &'v Value, hole: &Hole) -> Result<&'v Value, TemplateError> {
    let found = at(facts, &hole.way).filter(|value| !value.is_null());
    found.ok_or_else(|| TemplateError::Empty {
        hole: hole.text.clone(),
    })
}

fn variable(rest: &str) -> Result<Option<(Piece, &str)>, TemplateError> {
    let Some(after) = rest.strip_prefix("${env:") else {
        return Ok(None);
    };
    let (name, after) = after.split_once('}').ok_or(TemplateError::BadVariable)?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(TemplateError::BadVariable);
    }
    Ok(Some((Piece::Variable(name.to_owned()), after)))
}

fn hole(rest: &str) -> Option<(Piece, &str)> {
    let (inside, after) = rest.strip_prefix('{')?.split_once('}')?;
    let is_word = |word: &str| {
        let is_good = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        !word.is_empty() && word.chars().all(is_good)
    };
    let begins = inside.chars().next()?;
    if !(begins.is_ascii_lowercase() || begins == '_') || !inside.split('.').all(is_word) {
        return None;
    }
    let text = inside.to_owned();
    let way = way_of(inside);
    Some((Piece::Hole(Hole { text, way }), after))
}

/// Reads the way to a fact. `response.id` is short for `response.body.id`.
fn way_of(text: &str) -> Vec<String> {
    let mut way: Vec<String> = text.split('.').map(str::to_owned).collect();
    let is_root = way
        .first()
        .is_some_and(|root| ROOTS.contains(&root.as_str()));
    if is_root {
        let is_fact = way
            .get(1)
            .is_some_and(|word| FACTS.contains(&word.as_str()));
        if !is_fact {
            way.insert(1, "body".to_owned());
        }
        if way.get(1).is_some_and(|word| word == "header")
            && let Some(name) = way.get_mut(2)
        {
            name.make_ascii_lowercase();
        }
    }
    way
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(text: &str, encoding: Encoding) -> Result<String, TemplateError> {
        let facts = json!({
            "zone": "a b",
            "request": {"url": "http://h/x", "body": {"name": "ann/${env:KEY}", "items": [1, 2]}},
            "response": {"body": {"id": 7}, "header": {"location": "http://h/x/7"}},
        });
        let variables = |name: &str| (name == "KEY").then(|| "secret".to_owned());
        Template::parse(text)?.fill(&facts, &variables, encoding)
    }

    #[test]
    fn holes_are_filled_and_other_braces_stay() {
        let plain = |text| filled(text, Encoding::Plain).expect("it is filled");
        assert_eq!(plain("{response.id}/{response.body.id}"), "7/7");
        assert_eq!(plain("{request.items.1}"), "2");
        assert_eq!(
            plain(r#"{"id": {response.id}, "o": {}}"#),
            r#"{"id": 7, "o": {}}"#
        );
        assert_eq!(
            plain("Bearer ${env:KEY} ${other}"),
            "Bearer secret ${other}"
        );
    }

    #[test]
    fn what_fills_a_hole_is_encoded_in_a_url_and_never_read_again() {
        let url = |text| filled(text, Encoding::Url).expect("it is filled");
        assert_eq!(url("{request.url}/{zone}"), "http://h/x/a%20b");
        assert_eq!(url("{response.header.Location}"), "http://h/x/7");
        assert_eq!(url("/{request.name}"), "/ann%2F%24%7Benv%3AKEY%7D");
        assert_eq!(
            filled("{request.name}", Encoding::Plain).expect("it is filled"),
            "ann/${env:KEY}"
        );
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let empty = |hole: &str| {
            let hole = hole.to_owned();
            Err(TemplateError::Empty { hole })
        };
        assert_eq!(
            filled("{response.name}", Encoding::Plain),
            empty("response.name")
        );
        assert_eq!(filled("{other}", Encoding::Plain), empty("other"));
        assert_eq!(
            filled("${env:}", Encoding::Plain),
            Err(TemplateError::BadVariable)
        );
        let name = "NO".to_owned();
        assert_eq!(
            filled("${env:NO}", Encoding::Plain),
            Err(TemplateError::NoVariable { name })
        );
    }

    #[test]
    fn a_hole_that_is_all_of_a_value_keeps_its_type() {
        let facts = json!({"response": {"body": {"id": 7}}});
        let value = |text: &str| {
            let template = Template::parse(text).expect("it is read");
            template
                .fill_value(&facts, &|_| None)
                .expect("it is filled")
        };
        assert_eq!(value("{response.id}"), json!(7));
        assert_eq!(value("no. {response.id}"), json!("no. 7"));
    }
}
