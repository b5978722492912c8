//! Patterns of keys: `users.*.name`, `**.image`.

use std::fmt;

use backout_config::{KeyPath, Segment};
use serde::Deserialize;

use crate::finding::Place;
use crate::nearest::nearest;
use crate::value::{Node, Tree, key_of};

/// The most keys that one pattern gives.
const MATCHES_MAX: usize = 1_000_000;

/// One step of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// This name or index.
    Is(Segment),
    /// Any one step.
    Any,
    /// Any number of steps.
    Deep,
}

/// A key, in which `*` stands for any one step and `**` for any number of them. A name in double quotes is that name, stars included.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct KeyPattern {
    text: String,
    steps: Vec<Step>,
}

impl TryFrom<String> for KeyPattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let spelled = text.replace("[*]", ".*");
        let spelled = spelled.strip_prefix('.').unwrap_or(&spelled);
        let key: KeyPath = spelled
            .parse()
            .map_err(|error: backout_config::ConfigError| error.to_string())?;
        let quoted = spelled.contains('"');
        let mut steps: Vec<Step> = Vec::new();
        for segment in key.segments() {
            let step = match segment {
                Segment::Name(name) if name == "*" && !quoted => Step::Any,
                Segment::Name(name) if name == "**" && !quoted => Step::Deep,
                Segment::Append => {
                    return Err(format!(
                        "the key `{text}` is no pattern: `[+]` is no item that is there"
                    ));
                }
                segment @ (Segment::Name(_) | Segment::Index(_)) => Step::Is(segment.clone()),
            };
            // `**.**` is `**`, and would only cost time.
            if step != Step::Deep || steps.last() != Some(&Step::Deep) {
                steps.push(step);
            }
        }
        Ok(Self { text, steps })
    }
}

impl fmt::Display for KeyPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl KeyPattern {
    /// All values whose keys match, in the order of the text. In a text of several documents each of them is searched.
    pub(crate) fn all<'n>(&self, tree: &'n Tree<'_>) -> Vec<(Vec<Segment>, &'n Node)> {
        let mut found = Vec::new();
        for (mut way, node) in tree.documents() {
            // States of the pattern are sets of positions: `**.**` in any disguise stays linear.
            let mut states = vec![0];
            self.close(&mut states);
            self.walk(node, &mut way, &states, &mut found);
        }
        found
    }

    /// Adds the positions that are reached without a step.
    fn close(&self, states: &mut Vec<usize>) {
        let mut at = 0;
        while let Some(state) = states.get(at).copied() {
            if self.steps.get(state) == Some(&Step::Deep) && !states.contains(&(state + 1)) {
                states.push(state + 1);
            }
            at += 1;
        }
    }

    fn walk<'n>(
        &self,
        node: &'n Node,
        way: &mut Vec<Segment>,
        states: &[usize],
        found: &mut Vec<(Vec<Segment>, &'n Node)>,
    ) {
        if states.contains(&self.steps.len()) && found.len() < MATCHES_MAX {
            found.push((way.clone(), node));
        }
        for (segment, child) in node.children() {
            let mut next: Vec<usize> = Vec::new();
            for state in states {
                let to = match self.steps.get(*state) {
                    Some(Step::Is(wanted)) if *wanted == segment => state + 1,
                    Some(Step::Any) => state + 1,
                    Some(Step::Deep) => *state,
                    Some(Step::Is(_)) | None => continue,
                };
                if !next.contains(&to) {
                    next.push(to);
                }
            }
            if next.is_empty() {
                continue;
            }
            self.close(&mut next);
            way.push(segment);
            self.walk(child, way, &next, found);
            way.pop();
        }
    }

    /// A key that was probably meant, if the pattern is a plain key of which only the last name is not there.
    pub(crate) fn likely(&self, tree: &Tree<'_>) -> Option<(String, Place)> {
        let (last, above) = self.steps.split_last()?;
        let Step::Is(Segment::Name(name)) = last else {
            return None;
        };
        let parent = Self {
            text: String::new(),
            steps: above.to_vec(),
        };
        parent.all(tree).into_iter().find_map(|(mut way, node)| {
            let children = node.children();
            let names = children.iter().filter_map(|(segment, _)| match segment {
                Segment::Name(name) => Some(name.as_str()),
                Segment::Index(_) | Segment::Append => None,
            });
            let near = nearest(name, names)?.to_owned();
            let place = tree.place_of_name(node.named(&near)?);
            way.push(Segment::Name(near));
            Some((key_of(&way), place))
        })
    }
}
