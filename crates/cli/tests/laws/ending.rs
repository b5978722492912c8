//! How things end: recovery, decisions, and what must hold when a story is over.

use std::collections::BTreeSet;

use backout_engine::{Command, Decide, RecoverWhat, Reply};
use backout_model::ports::OnConflict;
use backout_model::{Operation, Status};

use crate::keys::KeyEdit;
use crate::oracle::May;
use crate::scene::{Scene, named, unchanged};
use crate::snapshot::TEMPORARY;

impl Scene {
    pub(crate) fn recover(&mut self) -> Result<(), String> {
        self.engine(0)
            .recover(None)
            .map(drop)
            .map_err(|error| format!("recovery failed: {error}"))
    }

    /// Names what waits for a decision.
    pub(crate) fn doubtful(&self) -> BTreeSet<String> {
        let operations = self.operations();
        let waiting = operations
            .values()
            .filter(|op| op.status == Status::InDoubt);
        let targets = waiting.flat_map(|op| &op.targets);
        targets
            .filter_map(|standing| crate::oracle::name_of(&self.root, &standing.target))
            .map(|(name, _)| name)
            .collect()
    }

    /// Every doubt has a way out.
    pub(crate) fn decide(&mut self, keeps: bool) -> Result<(), String> {
        let stuck = |op: &Operation| {
            matches!(
                op.status,
                Status::Interrupted | Status::InDoubt | Status::Failed
            )
        };
        let all = self.operations();
        let Some(operation) = all.values().find(|op| stuck(op)) else {
            return Ok(());
        };
        let id = operation.id;
        let decide = if keeps {
            Decide::Keep
        } else {
            Decide::Rollback {
                on_conflict: OnConflict::Force,
            }
        };
        let before = self.look();
        let what = RecoverWhat::ByHand {
            operations: vec![named(id)],
            decide,
        };
        let result = self.engine(0).execute(Command::Recover(what));
        let now = self.look();
        if let Err(error) = result {
            return Err(format!(
                "nothing ends the doubt about {}: {error}",
                id.short()
            ));
        }
        if stuck(&self.operations()[&id]) {
            return Err(format!("{} is stuck still", id.short()));
        }
        let may = May {
            overwrite: true,
            merge: false,
            ..May::default()
        };
        self.follow((&before, &now), may)?;
        if keeps {
            unchanged(&before, &now, "keeping")
        } else {
            Ok(())
        }
    }

    /// Removes temporary names that a process which died left, as a person would.
    pub(crate) fn sweep(&self) {
        let mut find = std::process::Command::new("find");
        find.arg(&self.root)
            .args(["-name", &format!("{TEMPORARY}*"), "-delete"]);
        assert!(find.status().unwrap().success());
    }

    /// The store is whole, and nothing is left lying about.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        let Ok(Reply::Verified(report)) = self.engine(0).execute(Command::Verify) else {
            return Err("the store cannot be checked".to_owned());
        };
        if !report.findings.is_empty() {
            return Err(format!("the store is not whole: {:?}", report.findings));
        }
        let left = std::process::Command::new("find")
            .arg(&self.root)
            .output()
            .unwrap();
        let left = String::from_utf8_lossy(&left.stdout).into_owned();
        match left.lines().find(|name| name.contains(TEMPORARY)) {
            Some(name) => Err(format!("a temporary name stayed: {name}")),
            None => Ok(()),
        }
    }

    /// Loses everything that is kept for a later undo.
    pub(crate) fn lose_what_is_kept(&self) {
        for entry in std::fs::read_dir(self.state().join("depot"))
            .into_iter()
            .flatten()
        {
            let _gone = std::fs::remove_file(entry.unwrap().path());
        }
        let journal = rusqlite::Connection::open(self.state().join("journal.sqlite")).unwrap();
        let _gone = journal.execute_batch("UPDATE content SET bytes = zeroblob(1)");
    }

    /// Does what an undo has no business to do.
    pub(crate) fn change_something_after_an_act(&self) {
        for name in ["a", "b", "d/x"] {
            let path = self.root.join(name);
            if path.is_file() {
                return std::fs::write(path, "not so\n").unwrap();
            }
        }
    }

    /// The same in a key that nobody spoke of.
    pub(crate) fn change_a_key_after_an_act(&self) {
        let (at, key, tag) = ("k.toml", "one", 1);
        KeyEdit::Set { at, key, tag }.by_somebody(&self.root);
    }
}
