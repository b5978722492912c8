//! A look at a text as a tree of values with their places, for those who check and do not edit.
//!
//! A view borrows what was read: it costs nothing until somebody asks. Places are byte offsets.

use crate::dialect::meaning;
use crate::document::Document;
use crate::tree::{Form, Kind, Node};
use crate::value::Value;

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct View<'d> {
    document: &'d Document<'d>,
    node: &'d Node,
}

/// What a value is.
#[derive(Debug)]
pub enum Shape<'d> {
    /// A table or section: names, where they stand, and values, in the order of the text. A name may stand twice.
    Map(Vec<(&'d str, usize, View<'d>)>),
    /// What stands in it, in its order.
    List(Vec<View<'d>>),
    /// Anything that has nothing below it.
    Scalar(Value),
}

impl<'d> View<'d> {
    /// Where the value begins.
    pub fn start(&self) -> usize {
        self.node.span.start()
    }

    /// Whether it is a section with a header of its own.
    pub fn is_section(&self) -> bool {
        self.node.form == Form::Section
    }

    /// What it is, one level deep.
    pub fn shape(&self) -> Shape<'d> {
        let below = |node| View {
            document: self.document,
            node,
        };
        match &self.node.kind {
            Kind::Map(members) => {
                let member = |member: &'d crate::tree::Member| {
                    (&*member.name, member.name_at.start(), below(&member.node))
                };
                Shape::Map(members.iter().map(member).collect())
            }
            Kind::List(items) => Shape::List(items.iter().map(|item| below(&item.node)).collect()),
            Kind::Scalar(_) | Kind::Alias => Shape::Scalar(meaning(
                self.document.dialect(),
                self.document.text(),
                self.node,
            )),
        }
    }
}

impl Document<'_> {
    /// A look at the whole text.
    pub fn view(&self) -> View<'_> {
        View {
            document: self,
            node: self.root(),
        }
    }
}

/// What a plain scalar of YAML means by the core schema of YAML 1.2: `no` is a text.
pub fn yaml_scalar(raw: &str) -> Value {
    crate::yaml::resolved(raw)
}
