//! Hard links of what a command wrote in place: who wrote one of the names wrote all of them.

use std::path::Path;

use backout_model::TargetPath;
use backout_model::ports::Ruling;

use super::file::Looked;
use super::{Reason, Target, rule_in};
use crate::other_names::{Shared, several};
use crate::paths::Paths;

/// Gives each file the other names that it has where rules count: below the file of rules nearest to it, and where the command
/// was started. Where there are too many names to look through, that is told.
pub(super) fn find_other_names(paths: &Paths, files: &mut [Looked<'_>]) -> Ruling {
    let mut ruling = Ruling::Allow;
    let mut looked: Vec<(std::path::PathBuf, Shared)> = Vec::new();
    for file in files.iter_mut().filter(|file| file.has_new()) {
        let path = file.path.as_path().to_owned();
        let Some(found) = several(&path) else {
            continue;
        };
        for rules in paths.rules_near(&path) {
            if rules.syntax.is_none() && rules.checks.is_empty() {
                continue;
            }
            // The user's own speak of places anywhere.
            let base = rules.file.parent().filter(|_| !paths.is_own(&rules.file));
            let Some(base) = base.map(Path::to_owned) else {
                continue;
            };
            if !looked.iter().any(|(known, _)| *known == base) {
                let shared = Shared::below([base.as_path()]);
                looked.push((base.clone(), shared));
            }
            let Some((_, shared)) = looked.iter().find(|(known, _)| *known == base) else {
                continue;
            };
            for name in shared.of(&found).iter().filter(|name| **name != path) {
                let name = TargetPath::new(name).ok();
                file.also
                    .extend(name.filter(|name| !file.also.contains(name)));
            }
            if shared.may_lack(&found) {
                let what = format!(
                    "`{}` has other names, and not all of them could be found and checked",
                    path.display()
                );
                let reason = Reason::new(rule_in(&rules, "checks"), what);
                let reasons = vec![reason.about(Target::node(file.path.clone()))];
                ruling = ruling.and(Ruling::Warn { reasons });
            }
        }
    }
    ruling
}
