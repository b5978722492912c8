//! Whether brackets match, by the tokens that a grammar found: those in strings and comments are none.

use tree_sitter::Tree;

use crate::Place;
use crate::syntax::fault::Fault;

/// Finds the first bracket that has no partner.
pub(super) fn mismatch(text: &str, tree: &Tree) -> Option<Fault> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.child_count() == 0 && node.is_missing() {
            // A bracket that the grammar invented is not in the text.
        } else if node.child_count() == 0 {
            let at = node.start_byte();
            match node.kind() {
                "(" => open.push((')', at)),
                "[" => open.push((']', at)),
                "{" | "${" => open.push(('}', at)),
                closer @ (")" | "]" | "}") => match open.pop() {
                    Some((wanted, _)) if closer.starts_with(wanted) => {}
                    opener => return Some(misplaced(text, closer, at, opener.map(|(_, at)| at))),
                },
                _ => {}
            }
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return open.last().map(|(closer, at)| unclosed(text, *at, *closer));
            }
        }
    }
}

fn unclosed(text: &str, at: usize, closer: char) -> Fault {
    let opener = text.get(at..=at).unwrap_or_default();
    let line = Place::of(text, at).line;
    Fault::new(at, format!("the `{opener}` of line {line} is not closed"))
        .mended_by(format!("close it with `{closer}`"))
}

/// A closing bracket that is not the one which is needed.
pub(super) fn misplaced(text: &str, closer: &str, at: usize, opener: Option<usize>) -> Fault {
    let Some(opener) = opener else {
        return Fault::new(at, format!("`{closer}` closes nothing that is open here"))
            .mended_by("remove it, or open its bracket before");
    };
    let line = Place::of(text, opener).line;
    let opener = text.get(opener..=opener).unwrap_or_default();
    let found = format!("`{closer}` stands here, but the `{opener}` of line {line} is not closed");
    Fault::new(at, found)
}
