//! `[[check]]`: schema, values, structure, and programs of the user's own.

use std::fs;
use std::path::{Path, PathBuf};

use backout_checks::Finding;
use backout_model::ports::{Reason, Ruling, StagedChange};

use super::file::{Looked, Seen};
use super::{Content, builtin, reason_of, ruled, texts};
use crate::program::{End, Rest, Shell, filled, run, run_in_layers};
use crate::rules::Rules;
use crate::rules::kinds::{Check, Program};

/// A program is run for each file. More are not checked one by one, and that is a finding.
const RUNS_MAX: usize = 100;

impl Content {
    /// Carries out the checks of one file of rules.
    pub(super) fn checks(
        &self,
        rules: &Rules,
        change: &StagedChange<'_>,
        seen: &Seen<'_>,
    ) -> Ruling {
        let mut ruling = Ruling::Allow;
        for check in &rules.checks {
            let fits = |file: &&Looked<'_>| {
                file.has_new()
                    && file.names().any(|path| check.scope.fits(path, change.verb))
                    && builtin::fits_format(rules, file, &check.scope)
            };
            let files = seen.files.iter().chain(&seen.led);
            let meant: Vec<&Looked<'_>> = files.filter(fits).collect();
            let mut reasons: Vec<Reason> = Vec::new();
            for file in &meant {
                let found = texts::look(rules, check, file);
                let name = format!("check `{}`", check.name);
                reasons.extend(
                    found
                        .into_iter()
                        .map(|it| reason_of(rules, &name, file, it)),
                );
            }
            if let Some(program) = check.command.as_ref().filter(|_| reasons.is_empty()) {
                reasons.extend(self.programs(rules, check, program, &meant, seen));
            }
            ruling = ruling.and(ruled(rules, check.on_failure, reasons));
        }
        ruling
    }

    /// Runs a program for each file that is meant.
    fn programs(
        &self,
        rules: &Rules,
        check: &Check,
        program: &Program,
        meant: &[&Looked<'_>],
        seen: &Seen<'_>,
    ) -> Vec<Reason> {
        let name = format!("check `{}`", check.name);
        if meant.is_empty() {
            return Vec::new();
        }
        if meant.len() > RUNS_MAX {
            let count = meant.len();
            let found = format!("{count} files are too many to check one by one with a program");
            return vec![
                Reason::new(super::rule_in(rules, &name), found).mended_by("write fewer at once"),
            ];
        }
        let staged = match Staging::of(seen) {
            Ok(staged) => staged,
            Err(error) => {
                let found = format!("the new content could not be laid out for a check: {error}");
                return vec![Reason::new(super::rule_in(rules, &name), found)];
            }
        };
        let each = meant.iter().filter_map(|file| {
            let path = file.path.as_path();
            let at = staged.place_of(path)?;
            let said = self.run(&filled(program, at, path), &staged).told()?;
            let finding = Finding::new(staged.unstaged(&said))
                .mended_by("mend what it names, and write it again");
            Some(reason_of(rules, &name, file, finding))
        });
        each.collect()
    }

    /// Runs a program in layers; where there are none, with nothing but the copy of the new content.
    fn run(&self, program: &Program, staged: &Staging) -> End {
        let places = [self.layers.join(std::process::id().to_string())];
        match run_in_layers(program, &staged.shell, &places, &self.masks) {
            Ok(end) => end,
            Err(_no_layers) => run(program, &[], "", Rest::Ends),
        }
    }
}

/// Copies of all new content, each under its own name in a directory of its own.
#[derive(Debug)]
struct Staging {
    directory: tempfile::TempDir,
    shell: Shell,
}

impl Staging {
    fn of(seen: &Seen<'_>) -> std::io::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("backout-check-")
            .tempdir()?;
        let mut shell = Shell::default();
        for (number, file) in seen.files.iter().chain(&seen.led).enumerate() {
            let path = file.path.as_path();
            // A link to a directory goes: what it leads to is laid out in its place.
            if file.after.is_none() || file.leads_to.is_some() {
                shell.removes.push(path.to_owned());
            }
            if !file.has_new() {
                continue;
            }
            let own = directory.path().join(number.to_string());
            fs::create_dir(&own)?;
            let copy = own.join(path.file_name().unwrap_or_default());
            file.copy_to(&copy)?;
            shell.puts.push((copy, path.to_owned()));
        }
        Ok(Self { directory, shell })
    }

    fn place_of(&self, path: &Path) -> Option<&PathBuf> {
        let mut puts = self.shell.puts.iter();
        puts.find(|(_, to)| to == path).map(|(from, _)| from)
    }

    /// Words of a program with the names that people know.
    fn unstaged(&self, said: &str) -> String {
        let mut said = said.to_owned();
        for (from, to) in &self.shell.puts {
            said = said.replace(&*from.to_string_lossy(), &to.to_string_lossy());
        }
        said.replace(&*self.directory.path().to_string_lossy(), "")
    }
}
