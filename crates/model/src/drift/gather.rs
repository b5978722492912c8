//! Telling what differs in a directory as one, so that a rebuilt directory is no storm.
//!
//! A directory is one drift if at least [`SEVERAL_MIN`] of its own names differ, and at least half of what was recorded in it; or if [`STORM_MIN`]
//! names in it do. One that was one drift stays so while anything in it differs: otherwise each look would tell the same in another way.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Digest, Key, Target, TargetPath};

/// Fewer than these are told one by one.
const SEVERAL_MIN: u64 = 8;

/// More than these in one directory, however much else is in it, are told as one.
const STORM_MIN: u64 = 64;

/// Something that differs, with what tells it from another finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What differs.
    pub target: Target,
    /// What is there.
    pub mark: Digest,
}

/// One or several that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gathered {
    /// This one; its place in the list that was given.
    One(usize),
    /// Several in this directory; their places.
    Several {
        /// The nearest that holds them all.
        directory: TargetPath,
        /// Which, in their order.
        members: Vec<usize>,
        /// Tells this finding from another.
        mark: Digest,
    },
}

/// How many differ in each directory, by all that is in it.
type Counts = BTreeMap<TargetPath, u64>;

/// Decides what is told by itself and what with its directory. `recorded` counts what was recorded at or below a directory; `open` are the
/// directories that are one drift already.
pub fn gather(
    members: &[Member],
    recorded: &dyn Fn(&TargetPath) -> u64,
    open: &BTreeSet<Key>,
) -> Vec<Gathered> {
    let (mut all, mut direct) = (Counts::new(), Counts::new());
    for path in members.iter().filter_map(|member| home_of(&member.target)) {
        *direct.entry(path.clone()).or_default() += 1;
        for above in directories_of(&path) {
            *all.entry(above).or_default() += 1;
        }
    }
    let mut chosen: BTreeSet<TargetPath> = BTreeSet::new();
    // What is in a directory comes before it: one that was rebuilt itself counts as one of the names of the one above.
    for (path, differ) in all.iter().rev() {
        let is_open = open.contains(&Key::from(path.clone()));
        let own = direct.get(path).copied().unwrap_or_default();
        let is_rebuilt =
            || own >= SEVERAL_MIN && differ.saturating_mul(2) >= recorded(path) && has_name(path);
        if is_open || is_rebuilt() {
            chosen.insert(path.clone());
            if let Some(above) = path.parent() {
                *direct.entry(above).or_default() += 1;
            }
        }
    }
    let is_inside = |path: &TargetPath| path.ancestors().any(|above| chosen.contains(&above));
    let mut chosen: BTreeSet<TargetPath> = chosen
        .iter()
        .filter(|path| !is_inside(path))
        .cloned()
        .collect();
    let mut rest = Counts::new();
    for path in members.iter().filter_map(|member| home_of(&member.target)) {
        if !directories_of(&path).any(|above| chosen.contains(&above)) {
            for above in directories_of(&path) {
                *rest.entry(above).or_default() += 1;
            }
        }
    }
    for (path, differ) in &rest {
        let is_inside = path.ancestors().any(|above| chosen.contains(&above));
        if !is_inside && *differ >= STORM_MIN {
            chosen.insert(narrowest(path, &rest));
        }
    }
    told(members, &chosen)
}

/// Gives the directory that something is in; of a part, what it is a part of.
fn home_of(target: &Target) -> Option<TargetPath> {
    let path = target.file()?;
    if target.key().parts().is_empty() {
        path.parent()
    } else {
        Some(path.clone())
    }
}

fn has_name(path: &TargetPath) -> bool {
    path.parent().is_some()
}

/// Gives the deepest directory that holds all that differs in another: a storm is told where it is.
fn narrowest(path: &TargetPath, counts: &Counts) -> TargetPath {
    let all = counts.get(path).copied().unwrap_or_default();
    let inside = counts.range(path.clone()..);
    let inside = inside.take_while(|(below, _)| *below == path || below.is_below(path));
    let holding = inside.filter(|(_, differ)| **differ == all);
    holding
        .last()
        .map_or_else(|| path.clone(), |(below, _)| below.clone())
}

fn told(members: &[Member], chosen: &BTreeSet<TargetPath>) -> Vec<Gathered> {
    let mut all = Vec::new();
    let mut several: BTreeMap<&TargetPath, Vec<usize>> = BTreeMap::new();
    for (number, member) in members.iter().enumerate() {
        // A directory that differs itself is told with what is in it.
        let own = member.target.file().cloned();
        let home = own.and_then(|own| directories_of(&own).find_map(|it| chosen.get(&it)));
        match home {
            Some(home) => several.entry(home).or_default().push(number),
            None => all.push(Gathered::One(number)),
        }
    }
    all.extend(several.into_iter().map(|(directory, numbers)| {
        let mut marks = Vec::new();
        for member in numbers.iter().filter_map(|number| members.get(*number)) {
            marks.extend(member.target.key().to_bytes());
            marks.push(0);
            marks.extend(member.mark.as_bytes());
        }
        Gathered::Several {
            directory: directory.clone(),
            members: numbers,
            mark: Digest::of(&marks),
        }
    }));
    all
}

/// Lists a directory and all that hold it.
fn directories_of(path: &TargetPath) -> impl Iterator<Item = TargetPath> + '_ {
    std::iter::once(path.clone()).chain(path.ancestors())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(names: &[String]) -> Vec<Member> {
        let member = |name: &String| Member {
            target: Target::node(TargetPath::new(name).unwrap()),
            mark: Digest::of(b"x"),
        };
        names.iter().map(member).collect()
    }

    fn told_as(members: &[Member], recorded: u64, open: &[&str]) -> Vec<String> {
        let open = open.iter().map(|it| Key::from(path(it))).collect();
        let gathered = gather(members, &|_| recorded, &open);
        let line = |it: &Gathered| match it {
            Gathered::One(number) => members[*number].target.to_string(),
            Gathered::Several {
                directory, members, ..
            } => format!("{directory} {}", members.len()),
        };
        gathered.iter().map(line).collect()
    }

    fn path(name: &str) -> TargetPath {
        TargetPath::new(name).unwrap()
    }

    #[test]
    fn a_rebuilt_directory_is_one_and_what_is_beside_it_is_told_by_itself() {
        let mut names: Vec<String> = (0..20).map(|n| format!("/w/target/{n}")).collect();
        names.push("/w/README".to_owned());
        let all = members(&names);
        let recorded = |path: &TargetPath| if path.to_string() == "/w" { 90 } else { 20 };
        let gathered = gather(&all, &recorded, &BTreeSet::new());
        assert_eq!(gathered.len(), 2);
        assert!(matches!(gathered[0], Gathered::One(20)));
        assert!(
            matches!(&gathered[1], Gathered::Several { directory, members, .. }
            if directory.to_string() == "/w/target" && members.len() == 20)
        );
    }

    #[test]
    fn a_directory_whose_directories_were_rebuilt_is_one_too() {
        let names: Vec<String> = (0..100).map(|n| format!("/w/t/{}/{n}", n / 10)).collect();
        assert_eq!(told_as(&members(&names), 100, &[]), ["/w/t 100"]);
    }

    #[test]
    fn a_few_are_told_one_by_one_unless_their_directory_is_one_already() {
        let all = members(&["/w/a".to_owned(), "/w/b".to_owned()]);
        assert_eq!(told_as(&all, 2, &[]), ["/w/a", "/w/b"]);
        assert_eq!(told_as(&all, 2, &["/w"]), ["/w 2"]);
    }

    #[test]
    fn many_in_a_large_directory_are_one_and_told_where_they_are() {
        let names: Vec<String> = (0..70).map(|n| format!("/a/b/c/{n}/x")).collect();
        assert_eq!(told_as(&members(&names), 10_000, &[]), ["/a/b/c 70"]);
    }

    #[test]
    fn the_mark_of_several_is_that_of_all_of_them() {
        let names: Vec<String> = (0..9).map(|n| format!("/w/{n}")).collect();
        let one = gather(&members(&names), &|_| 9, &BTreeSet::new());
        let mut other = members(&names);
        other[3].mark = Digest::of(b"y");
        assert_ne!(one, gather(&other, &|_| 9, &BTreeSet::new()));
    }
}
