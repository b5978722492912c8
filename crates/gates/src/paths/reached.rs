//! What is reached by another name: hard links, links to directories, and files of rules that are links themselves.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use backout_model::Target;
use backout_model::ports::{Ruling, StagedChange};

use super::{FILE, Paths, ask, judge};
use crate::other_names::{NAMES_MAX, Shared, several};
use crate::rules::{Mistake, Rules};

impl Paths {
    /// Says what is wrong with a file of rules that is a link: who changes what it leads to changes the rules, and nobody looks
    /// there unless that is protected, or lies below the same directory.
    pub(crate) fn astray(&self, file: &Path) -> Option<Mistake> {
        let is_link = file.symlink_metadata().is_ok_and(|it| it.is_symlink());
        if self.own.as_deref() == Some(file) || !is_link {
            return None;
        }
        let known = self.astray.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(file) {
            return found.clone();
        }
        drop(known);
        let way = self.way_to(file);
        // Directories above that are links lead to it and to what it is about alike.
        let base = file.parent().map(|at| self.way_to(at).end.clone());
        let base = base.unwrap_or_default();
        let mut names = way.links.iter().chain([&way.end]);
        let open = names.find(|name| {
            let is_above = base.starts_with(name) || file.starts_with(name);
            !name.starts_with(&base) && !is_above && !self.is_protected(name)
        });
        let found = open.map(|name| {
            let name = name.display();
            Mistake {
                what: format!(
                    "it is a link, and who writes `{name}` changes the rules without being asked: put a copy in its place, or protect `{name}` by a `backout.toml` above it or by your own"
                ),
                place: None,
            }
        });
        let mut known = self.astray.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(file.to_owned(), found.clone());
        found
    }

    /// Tells whether a rule above a path, or one of the user's own, protects it.
    fn is_protected(&self, path: &Path) -> bool {
        let above = path.ancestors().skip(1).map(|above| above.join(FILE));
        let mut rules = above
            .chain(self.own.clone())
            .filter_map(|file| self.rules_in(&file)?.ok());
        rules.any(|rules| rules.denies(path).is_some() || rules.asks(path).is_some())
    }

    /// Says what the rules say of giving a file one more name: what they say of the names that it has.
    pub(super) fn rule_on_more_names(&self, path: &Path, target: &Target) -> Ruling {
        let ruling = self.rule_on(path, target);
        ruling.and(self.rule_on_other_name(path, target))
    }

    /// Says what the rules say of other names of the same file, for what changes the file itself and not its name: those above
    /// it, those where we are, and the user's own.
    pub(super) fn rule_on_other_name(&self, path: &Path, target: &Target) -> Ruling {
        let Some(found) = several(path) else {
            return Ruling::Allow;
        };
        self.rules_near(path)
            .iter()
            .fold(Ruling::Allow, |ruling, rules| {
                let tops = rules.protected_tops();
                if tops.is_empty() {
                    return ruling;
                }
                let shared = self.shared(tops);
                let others = shared.of(&found).iter().filter(|name| *name != path);
                let ruling = others.fold(ruling, |ruling, name| {
                    ruling.and(judge(rules, name, target))
                });
                if shared.may_lack(&found) {
                    ruling.and(unknown_names(path, target))
                } else {
                    ruling
                }
            })
    }

    fn shared(&self, tops: Vec<PathBuf>) -> Arc<Shared> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shared.entry(tops);
        let below = |tops: &Vec<PathBuf>| Shared::below(tops.iter().map(PathBuf::as_path));
        Arc::clone(known.or_insert_with_key(|tops| Arc::new(below(tops))))
    }

    /// Lists the rules above a path, those where we are, and the user's own, each once.
    pub(crate) fn rules_near(&self, path: &Path) -> Vec<Arc<Rules>> {
        let here = self.here.iter().flat_map(|here| here.ancestors());
        let above = path.ancestors().skip(1).chain(here);
        let mut files: Vec<PathBuf> = above.map(|at| at.join(FILE)).collect();
        files.extend(self.own.clone());
        let mut near: Vec<Arc<Rules>> = Vec::new();
        for rules in files.iter().filter_map(|file| self.rules_in(file)?.ok()) {
            if !near.iter().any(|known| known.file == rules.file) {
                near.push(rules);
            }
        }
        near
    }

    /// Says what the rules say of all that can be had by the name of a new link to a directory.
    pub(super) fn rule_on_led_to(&self, change: &StagedChange<'_>, is_agents: bool) -> Ruling {
        let changed = change.staged.changed();
        changed.iter().fold(Ruling::Allow, |ruling, file| {
            let Some(real) = &file.leads_to else {
                return ruling;
            };
            let path = file.path.as_path();
            let rules = self.rules_for(path);
            if !rules.iter().any(|rules| rules.protects_below(path)) {
                return ruling;
            }
            let target = Target::tree(file.path.clone());
            ruling.and(self.rule_below(real.as_path(), path, &target, is_agents))
        })
    }
}

/// Has somebody decide about a file of which not all names are known.
fn unknown_names(path: &Path, target: &Target) -> Ruling {
    let found = format!(
        "`{}` has other names, and there are more than {NAMES_MAX} names to look through: whether one of them is protected cannot be told",
        path.display()
    );
    ask("protected paths", target, found)
}
