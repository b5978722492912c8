//! One source that holds all of its changes at once, each behind a switch.
//!
//! So the program is compiled once, and not once for each change. `a == b` becomes
//! `(if is_on(7) { a != b } else { a == b })`; a function begins with `if is_on(8) { return value; }`; a match arm gets a
//! guard. The changes of an expression see the others' places as they were, so nothing is written more than once for each
//! change around it.
//!
//! Marks of a private plane of Unicode stand around what a change wrote, until [`plain`] takes them out and tells which
//! bytes belong to which change: the compiler's complaints are about bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::list::{COMPILE_TIME, Genre, Mutant, offset};

const BEGIN: char = '\u{E000}';
const NUMBERED: char = '\u{E001}';
const END: char = '\u{E002}';

/// The path of the function that tells whether a change is switched on.
const IS_ON: &str = "crate::mutant_switch::is_on";

/// Puts the changes of one file into its source. The second list holds those that have no switch.
pub(crate) fn splice(source: &str, mutants: &[Mutant]) -> Result<(String, Vec<usize>), String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut places = Places {
        source,
        hosts: Vec::new(),
        arms: Vec::new(),
        constant_words: Vec::new(),
    };
    places.visit_file(&file);
    let mut edits = BTreeMap::<Order, Edit<'_>>::new();
    let mut without = Vec::new();
    for mutant in mutants {
        let place = match (mutant.is_constant, mutant.genre) {
            (true, _) => None,
            // It would give unique references for shared ones.
            (false, Genre::Body)
                if mutant.gives_iterator && mutant.replacement.contains("leak(") =>
            {
                None
            }
            (false, Genre::Body) => Some((mutant.span.clone(), Kind::Body)),
            (false, Genre::Guard) => Some((mutant.span.clone(), Kind::Guard)),
            (false, Genre::Expression) => places.host_of(&mutant.span).map(|it| (it, Kind::Host)),
            (false, Genre::Arm) => places.arm_of(&mutant.span),
        };
        let Some((range, kind)) = place else {
            without.push(mutant.id);
            continue;
        };
        let edit = edits.entry(order(&range, kind)).or_insert(Edit {
            range,
            kind,
            mutants: Vec::new(),
        });
        edit.mutants.push(mutant);
    }
    // A switch is not known when the program is compiled.
    for range in places.constant_words {
        let kind = Kind::Nothing;
        let (key, mutants) = (order(&range, kind), Vec::new());
        edits.insert(
            key,
            Edit {
                range,
                kind,
                mutants,
            },
        );
    }
    let edits: Vec<Edit<'_>> = edits.into_values().collect();
    let mut text = String::new();
    write_range(source, 0..source.len(), &edits, &mut text);
    Ok((text, without))
}

/// Takes the marks out. Tells which bytes each change wrote.
pub(crate) fn plain(marked: &str) -> (String, Vec<(usize, Range<usize>)>) {
    let mut text = String::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut ranges = Vec::new();
    let mut rest = marked;
    while let Some(at) = rest.find([BEGIN, END]) {
        let (before, mark) = rest.split_at(at);
        text.push_str(before);
        if let Some(numbered) = mark.strip_prefix(BEGIN) {
            let (number, after) = numbered.split_once(NUMBERED).unwrap_or(("0", numbered));
            open.push((number.parse().unwrap_or(0), text.len()));
            rest = after;
        } else {
            let (id, start) = open.pop().unwrap_or_default();
            ranges.push((id, start..text.len()));
            rest = mark.strip_prefix(END).unwrap_or_default();
        }
    }
    text.push_str(rest);
    (text, ranges)
}

/// A place of the source and the changes that are made there.
struct Edit<'m> {
    range: Range<usize>,
    kind: Kind,
    mutants: Vec<&'m Mutant>,
}

/// Outer places come before those within them.
type Order = (usize, Reverse<usize>, bool);

fn order(range: &Range<usize>, kind: Kind) -> Order {
    (range.start, Reverse(range.end), kind == Kind::Host)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Body,
    Host,
    Guard,
    /// An arm without a guard: its place is the empty one behind the pattern.
    BareArm,
    /// The word `const` before a function: it goes.
    Nothing,
}

/// Writes a range of the source with the edits that lie in it.
fn write_range(source: &str, range: Range<usize>, edits: &[Edit<'_>], text: &mut String) {
    let mut at = range.start;
    let mut rest = edits;
    while let Some((edit, after)) = rest.split_first() {
        if edit.range.start < at || edit.range.end > range.end {
            rest = after;
            continue;
        }
        text.push_str(&source[at..edit.range.start]);
        at = edit.range.end;
        let (within, behind) = after.split_at(after.partition_point(|it| it.range.start < at));
        write_edit(source, edit, within, text);
        rest = behind;
    }
    text.push_str(&source[at..range.end]);
}

fn write_edit(source: &str, edit: &Edit<'_>, within: &[Edit<'_>], text: &mut String) {
    let same = |text: &mut String| write_range(source, edit.range.clone(), within, text);
    match edit.kind {
        Kind::Nothing => {}
        Kind::Body if edit.mutants.iter().any(|it| it.gives_iterator) => {
            for mutant in &edit.mutants {
                let (id, value) = (mutant.id, marked(mutant.id, &mutant.replacement));
                let _ = write!(
                    text,
                    "crate::mutant_switch::either(if {IS_ON}({id}) {{ Some({value}) }} else {{ None }}, "
                );
            }
            text.push_str("{ ");
            same(text);
            text.push_str(" }");
            text.extend(edit.mutants.iter().map(|_| ')'));
        }
        Kind::Body => {
            for mutant in &edit.mutants {
                let (id, value) = (mutant.id, &mutant.replacement);
                let value = marked(id, &format!("return {value};"));
                let _ = write!(text, "if {IS_ON}({id}) {{ {value} }} ");
            }
            same(text);
        }
        Kind::Host => {
            text.push('(');
            for mutant in &edit.mutants {
                let changed = [
                    &source[edit.range.start..mutant.span.start],
                    " ",
                    mutant.replacement.as_str(),
                    " ",
                    &source[mutant.span.end..edit.range.end],
                ];
                let changed = marked(mutant.id, &changed.concat());
                let _ = write!(text, "if {IS_ON}({}) {{ {changed} }} else ", mutant.id);
            }
            text.push_str("{ ");
            same(text);
            text.push_str(" })");
        }
        Kind::Guard => {
            // An arm that is left out, and a guard that never holds, are the same.
            for mutant in &edit.mutants {
                let (id, is_true) = (mutant.id, mutant.replacement == "true");
                let (not, or) = if is_true { ("", "||") } else { ("!", "&&") };
                let word = marked(id, &format!("{not}{IS_ON}({id})"));
                let _ = write!(text, "{word} {or} (");
            }
            same(text);
            text.extend(edit.mutants.iter().map(|_| ')'));
        }
        Kind::BareArm => {
            for mutant in &edit.mutants {
                let word = marked(mutant.id, &format!("!{IS_ON}({})", mutant.id));
                let _ = write!(text, " if {word}");
            }
        }
    }
}

fn marked(id: usize, text: &str) -> String {
    format!("{BEGIN}{id}{NUMBERED}{text}{END}")
}

/// The places of a file where a change may be.
struct Places<'s> {
    source: &'s str,
    /// Expressions that hold an operator or a field: the part, and the whole.
    hosts: Vec<(Range<usize>, Range<usize>)>,
    /// Match arms: the whole, where the pattern ends, and the guard.
    arms: Vec<(Range<usize>, usize, Option<Range<usize>>)>,
    /// The word `const` of each function that could run in the compiler.
    constant_words: Vec<Range<usize>>,
}

impl Places<'_> {
    fn range(&self, span: Span) -> Range<usize> {
        let at = |place: proc_macro2::LineColumn| offset(self.source, place.line, place.column);
        at(span.start()).unwrap_or(0)..at(span.end()).unwrap_or(0)
    }

    fn host_of(&self, part: &Range<usize>) -> Option<Range<usize>> {
        let mut hosts = self.hosts.iter();
        let found = hosts.find(|(it, _)| it.start == part.start);
        found.map(|(_, host)| host.clone())
    }

    fn arm_of(&self, arm: &Range<usize>) -> Option<(Range<usize>, Kind)> {
        let mut arms = self.arms.iter();
        let (_, end, guard) = arms.find(|(it, _, _)| it.start == arm.start)?;
        let place = guard.clone().map(|guard| (guard, Kind::Guard));
        Some(place.unwrap_or((*end..*end, Kind::BareArm)))
    }

    fn note_constant(&mut self, signature: &syn::Signature) {
        let is_needed = COMPILE_TIME.iter().any(|name| signature.ident == name);
        if let Some(word) = signature.constness.as_ref().filter(|_| !is_needed) {
            let range = self.range(word.span);
            self.constant_words.push(range);
        }
    }
}

/// Tells whether an operand of a chain of `&&` binds names.
fn has_let(operand: &syn::Expr) -> bool {
    match operand {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(chain) => has_let(&chain.left) || has_let(&chain.right),
        _ => false,
    }
}

impl<'a> Visit<'a> for Places<'_> {
    fn visit_expr_binary(&mut self, node: &'a syn::ExprBinary) {
        // With `||` in place of `&&` a chain with `let` does not compile.
        if !has_let(&node.left) && !has_let(&node.right) {
            let host = (self.range(node.op.span()), self.range(node.span()));
            self.hosts.push(host);
        }
        visit::visit_expr_binary(self, node);
    }

    fn visit_expr_unary(&mut self, node: &'a syn::ExprUnary) {
        let host = (self.range(node.op.span()), self.range(node.span()));
        self.hosts.push(host);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'a syn::ExprStruct) {
        for field in &node.fields {
            let host = (self.range(field.span()), self.range(node.span()));
            self.hosts.push(host);
        }
        visit::visit_expr_struct(self, node);
    }

    fn visit_arm(&mut self, node: &'a syn::Arm) {
        let guard = node
            .guard
            .as_ref()
            .map(|(_, guard)| self.range(guard.span()));
        let end = self.range(node.pat.span()).end;
        self.arms.push((self.range(node.span()), end, guard));
        visit::visit_arm(self, node);
    }

    fn visit_item_fn(&mut self, node: &'a syn::ItemFn) {
        self.note_constant(&node.sig);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'a syn::ImplItemFn) {
        self.note_constant(&node.sig);
        visit::visit_impl_item_fn(self, node);
    }
}
