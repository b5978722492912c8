//! How many steps a condition takes at most, from the sizes of what it is asked about.
//!
//! Every expression gets an upper bound of its steps and of the size of its value. A walk (`all`, `map`, …) takes as many rounds as its list may have
//! items. Loops are only made by these, so the bound holds: a condition that would double a text forty times is known before it is asked.

use std::collections::HashMap;
use std::rc::Rc;

use cel::IdedExpr;
use cel::common::ast::{EntryExpr, Expr, LiteralValue, operators};
use serde_json::Value;

/// What `matches` costs beside the length of its text: its pattern is compiled each time.
const PATTERN_STEPS: u64 = 2000;

/// How large a value may be.
#[derive(Debug, Clone)]
struct Size {
    /// How many items a walk through it has.
    count: u64,
    /// All that is in it, in bytes and items.
    weight: u64,
    /// The largest of its items.
    item: Option<Rc<Self>>,
    /// Its fields, if they are known.
    fields: Option<Rc<HashMap<String, Self>>>,
}

impl Size {
    fn scalar(weight: u64) -> Self {
        Self {
            count: 0,
            weight: weight.max(1),
            item: None,
            fields: None,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::scalar(1),
            Value::String(text) => Self::scalar(text.len() as u64),
            Value::Array(items) => Self::list(items.iter().map(Self::of)),
            Value::Object(members) => {
                let fields: HashMap<String, Self> = members
                    .iter()
                    .map(|(name, member)| (name.clone(), Self::of(member)))
                    .collect();
                let names = Self::list(fields.keys().map(|name| Self::scalar(name.len() as u64)));
                let weight = fields
                    .values()
                    .fold(names.weight, |sum, field| sum.saturating_add(field.weight));
                Self {
                    weight,
                    fields: Some(Rc::new(fields)),
                    ..names
                }
            }
        }
    }

    fn list(items: impl Iterator<Item = Self>) -> Self {
        items.fold(Self::scalar(1), |list, item| Self {
            count: list.count.saturating_add(1),
            weight: list.weight.saturating_add(item.weight).saturating_add(1),
            item: Self::larger(list.item.as_deref(), Some(&item)),
            fields: None,
        })
    }

    /// The larger of two in every respect.
    fn join(&self, other: &Self) -> Self {
        Self {
            count: self.count.max(other.count),
            weight: self.weight.max(other.weight),
            item: Self::larger(self.item.as_deref(), other.item.as_deref()),
            fields: None,
        }
    }

    fn larger(one: Option<&Self>, two: Option<&Self>) -> Option<Rc<Self>> {
        match (one, two) {
            (Some(one), Some(two)) => Some(Rc::new(one.join(two))),
            (Some(only), None) | (None, Some(only)) => Some(Rc::new(only.clone())),
            (None, None) => None,
        }
    }

    /// Two behind one another.
    fn with(&self, other: &Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            weight: self.weight.saturating_add(other.weight),
            ..self.join(other)
        }
    }

    fn item(&self) -> Self {
        self.item
            .as_deref()
            .cloned()
            .unwrap_or_else(|| Self::scalar(self.weight))
    }
}

/// The most steps that an expression takes for an operation.
pub(super) fn steps(expression: &IdedExpr, operation: &Value) -> u64 {
    let mut cost = Cost {
        known: vec![("operation".to_owned(), Size::of(operation))],
        steps: 0,
        times: 1,
    };
    cost.expression(expression);
    cost.steps
}

struct Cost {
    known: Vec<(String, Size)>,
    steps: u64,
    /// How often the expression that is looked at is evaluated.
    times: u64,
}

impl Cost {
    fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps.saturating_mul(self.times));
    }

    fn expression(&mut self, here: &IdedExpr) -> Size {
        self.spend(1);
        match &here.expr {
            Expr::Literal(literal) => match literal {
                LiteralValue::String(text) => Size::scalar(text.inner().len() as u64),
                LiteralValue::Bytes(bytes) => Size::scalar(bytes.inner().len() as u64),
                _ => Size::scalar(1),
            },
            Expr::Ident(name) => {
                let known = self.known.iter().rev().find(|(known, _)| known == name);
                known.map_or_else(|| Size::scalar(1), |(_, size)| size.clone())
            }
            Expr::Select(select) => {
                let operand = self.expression(&select.operand);
                let field = operand
                    .fields
                    .as_ref()
                    .and_then(|fields| fields.get(&select.field))
                    .cloned();
                field.unwrap_or_else(|| operand.item())
            }
            Expr::Call(call) => {
                let all = call.target.iter().map(AsRef::as_ref).chain(&call.args);
                let sizes: Vec<Size> = all.map(|argument| self.expression(argument)).collect();
                self.call(&call.func_name, &sizes)
            }
            Expr::List(list) => {
                let items: Vec<Size> = list
                    .elements
                    .iter()
                    .map(|element| self.expression(element))
                    .collect();
                let list = Size::list(items.into_iter());
                self.spend(list.weight);
                list
            }
            Expr::Map(map) => {
                let mut parts = Vec::new();
                for entry in &map.entries {
                    match &entry.expr {
                        EntryExpr::MapEntry(entry) => parts
                            .extend([self.expression(&entry.key), self.expression(&entry.value)]),
                        EntryExpr::StructField(field) => parts.push(self.expression(&field.value)),
                    }
                }
                let map = Size::list(parts.into_iter());
                self.spend(map.weight);
                map
            }
            Expr::Comprehension(walk) => self.walk(walk),
            // Refused when the condition was compiled.
            Expr::Struct(_) | Expr::Unspecified => {
                self.spend(u64::MAX);
                Size::scalar(1)
            }
        }
    }

    fn call(&mut self, name: &str, sizes: &[Size]) -> Size {
        let weight = sizes
            .iter()
            .fold(0_u64, |sum, size| sum.saturating_add(size.weight));
        match (name, sizes) {
            (operators::ADD, [one, two]) => {
                self.spend(weight);
                one.with(two)
            }
            (operators::INDEX, [list, ..]) => list.item(),
            (operators::CONDITIONAL, [_, one, two]) => one.join(two),
            (
                operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::NOT_STRICTLY_FALSE,
                _,
            ) => Size::scalar(1),
            ("matches", _) => {
                self.spend(weight.saturating_add(PATTERN_STEPS));
                Size::scalar(1)
            }
            ("string" | "bytes" | "dyn" | "type", _) => {
                self.spend(weight);
                Size {
                    weight: weight.saturating_add(32),
                    ..sizes.first().cloned().unwrap_or_else(|| Size::scalar(1))
                }
            }
            _ => {
                self.spend(weight / 8);
                Size::scalar(1)
            }
        }
    }

    fn walk(&mut self, walk: &cel::common::ast::ComprehensionExpr) -> Size {
        let range = self.expression(&walk.iter_range);
        let init = self.expression(&walk.accu_init);
        let before = (self.known.len(), self.times);
        let item = range.item();
        self.known.push((walk.iter_var.clone(), item.clone()));
        if let Some(second) = &walk.iter_var2 {
            self.known.push((second.clone(), item));
        }
        // A round adds to what the rounds before it left. One round from nothing tells how much it adds.
        self.known.push((walk.accu_var.clone(), init.clone()));
        let seat = self.known.len() - 1;
        let counted = self.steps;
        let round = self.expression(&walk.loop_step);
        self.steps = counted;
        let grown = Size {
            count: init
                .count
                .saturating_add(round.count.saturating_mul(range.count)),
            weight: init
                .weight
                .saturating_add(round.weight.saturating_mul(range.count)),
            ..round.join(&init)
        };
        self.times = before.1.saturating_mul(range.count.max(1));
        // The list that grows is not copied in each round.
        self.expression(&walk.loop_step);
        self.expression(&walk.loop_cond);
        self.times = before.1;
        if let Some((_, size)) = self.known.get_mut(seat) {
            *size = grown;
        }
        let result = self.expression(&walk.result);
        self.known.truncate(before.0);
        result
    }
}
