//! From what differs to what is told: one drift for one target, or for a directory in which much differs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::UNIX_EPOCH;

use backout_capture::witness::{Process, Witness};
use backout_model::drift::{
    Choice, Drift, DriftKind, EXAMPLES_MAX, Expected, Found, Gathered, Member, Seen, Since, Who,
    gather, subject_of,
};
use backout_model::{Digest, Key, Operation, Status, Target, TargetPath, TaskStatus};
use backout_storage::Filter;

use super::notes::Standing;
use super::sweep::{Candidate, Swept};
use crate::{Engine, EngineError};

/// Of more than these in one look, nobody asks who did it and what can be done: that costs a question each.
const ASKED_MAX: usize = 64;

/// One drift with all that it is about.
#[derive(Debug, Clone)]
pub(super) struct ToldDrift {
    pub(super) drift: Drift,
    pub(super) members: Vec<Candidate>,
}

impl Engine {
    /// Makes drift of what a look found.
    pub(super) fn told_drift(
        &self,
        swept: &Swept,
        standing: &Standing,
        (seen, witness): (Seen, Option<&Witness>),
    ) -> Result<Vec<ToldDrift>, EngineError> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for it in &swept.candidates {
            let key = it.differing.target.key();
            if standing.ignored_by(key).is_none() && !is_accepted(standing, it) {
                candidates.push(it.clone());
            }
        }
        // Of two differences of one target the graver one comes first.
        candidates.sort_by(|one, other| {
            let (one, other) = (&one.differing, &other.differing);
            let by_key = one.target.key().cmp(other.target.key());
            by_key.then(other.kind.cmp(&one.kind))
        });
        let groups = folded(candidates);
        let members: Vec<Member> = groups
            .iter()
            .map(|group| Member {
                target: group.head().differing.target.clone(),
                mark: group.mark(),
            })
            .collect();
        let recorded = |path: &TargetPath| swept.claims.count(&Key::from(path.clone()));
        let gathered = gather(&members, &recorded, &standing.several());
        let is_asked = gathered.len() <= ASKED_MAX;
        let mut told = Vec::with_capacity(gathered.len());
        let mut open_tasks = BTreeMap::new();
        for it in gathered {
            let (directory, group) = match it {
                Gathered::One(number) => (None, groups.get(number).cloned()),
                Gathered::Several {
                    directory, members, ..
                } => {
                    let each = members.iter().filter_map(|number| groups.get(*number));
                    let all: Vec<Candidate> = each.flat_map(|it| it.0.clone()).collect();
                    (Some(directory), Some(Group(all)))
                }
            };
            let Some(group) = group.filter(|group| !group.0.is_empty()) else {
                continue;
            };
            let process = witness.and_then(|witness| group.seen_by(witness));
            let mut one =
                self.told_group(group, directory, (swept, seen, is_asked), &mut open_tasks)?;
            if let (Who::Unknown, Some(process)) = (&one.drift.who, process) {
                one.drift.who = process;
            }
            told.push(one);
        }
        Ok(told)
    }

    fn told_group(
        &self,
        group: Group,
        directory: Option<TargetPath>,
        (swept, seen, is_asked): (&Swept, Seen, bool),
        open_tasks: &mut BTreeMap<backout_model::TaskId, bool>,
    ) -> Result<ToldDrift, EngineError> {
        let head = group.head().clone();
        let count = group.count();
        let operation = swept.operations.get(&head.by);
        let task = operation.and_then(|it| it.task.clone());
        let is_under_way = match &task {
            Some(task) => {
                if !open_tasks.contains_key(task) {
                    let found = self.store.task(task)?;
                    let is_open = found.is_some_and(|it| it.status == TaskStatus::Open);
                    open_tasks.insert(task.clone(), is_open);
                }
                open_tasks.get(task).copied().unwrap_or(false)
            }
            None => false,
        };
        let is_one = count == 1;
        let (target, kind) = match directory {
            Some(directory) => (Target::tree(directory), DriftKind::Several),
            None => (head.differing.target.clone(), head.differing.kind),
        };
        let examples = if is_one {
            Vec::new()
        } else {
            let each = group.0.iter().map(|it| it.differing.target.clone());
            each.take(EXAMPLES_MAX).collect()
        };
        let one = &head.differing;
        let (found, expected) = if kind == DriftKind::Several {
            let found = format!("{count} names that differ");
            (found, "what was recorded in it".to_owned())
        } else {
            (one.found.clone(), one.expected.clone())
        };
        let changed = group.0.iter().filter_map(|it| it.differing.changed).max();
        let drift = Drift {
            kind,
            count,
            examples,
            expected: Expected {
                what: expected,
                by: head.by,
                agent: operation.and_then(|it| it.agent.clone()),
                task,
                lsn: head.lsn,
            },
            found: Found {
                what: found,
                mark: group.mark(),
            },
            since: Since {
                right: head.at,
                seen: self.now(),
                changed,
            },
            who: if is_asked {
                self.who_did(target.key(), &head)?
            } else {
                Who::Unknown
            },
            severity: kind.severity(is_under_way),
            seen,
            choices: self.choices(&group, is_asked),
            target,
        };
        let members = group.0;
        Ok(ToldDrift { drift, members })
    }

    /// Finds an operation that wrote the target after what is believed, and that is not in effect or not finished.
    fn who_did(&self, key: &Key, head: &Candidate) -> Result<Who, EngineError> {
        let newer = self.store.operations(&Filter {
            at: Some(key.clone()),
            after: Some(head.lsn),
            limit: Some(8),
            ..Filter::default()
        })?;
        let is_it = |it: &&Operation| {
            matches!(
                it.status,
                Status::Armed
                    | Status::Interrupted
                    | Status::InDoubt
                    | Status::Failed
                    | Status::Aborted
            )
        };
        Ok(newer
            .iter()
            .find(is_it)
            .map_or(Who::Unknown, |it| Who::Operation {
                id: it.id,
                agent: it.agent.clone(),
            }))
    }

    /// Says what can be done about it, as far as that is asked.
    fn choices(&self, group: &Group, is_asked: bool) -> Vec<Choice> {
        let mut choices = vec![Choice::Accept];
        if !is_asked || self.can_restore(&group.0) {
            choices.push(Choice::Restore);
        }
        if is_asked && group.count() == 1 && self.can_merge(&group.0) {
            choices.push(Choice::Merge);
        }
        choices.push(Choice::Ignore);
        choices
    }
}

/// What stands and falls together: a directory that is gone or is something else, with what was in it.
#[derive(Debug, Clone)]
struct Group(Vec<Candidate>);

impl Group {
    #[expect(clippy::indexing_slicing, reason = "a group is never empty")]
    fn head(&self) -> &Candidate {
        &self.0[0]
    }

    /// Counts the targets: one may differ in two ways, from what two operations left.
    fn count(&self) -> u64 {
        let keys: BTreeSet<&Key> = self.0.iter().map(|it| it.differing.target.key()).collect();
        u64::try_from(keys.len()).unwrap_or(u64::MAX)
    }

    /// Names the process that made all of the differences of which anybody was seen, if it is one and nobody came after it.
    fn seen_by(&self, witness: &Witness) -> Option<Who> {
        let mut only: Option<Process> = None;
        for it in &self.0 {
            let path = it.differing.target.file()?;
            let process = witness.last_at(path.as_path())?;
            let at = process.at.duration_since(UNIX_EPOCH).ok()?;
            let at = i64::try_from(at.as_millis()).ok()?;
            let is_older = it.differing.changed.is_some_and(|changed| changed.0 > at);
            let is_other = only.as_ref().is_some_and(|only| only.pid != process.pid);
            if is_older || is_other {
                return None;
            }
            only = Some(process);
        }
        only.map(|process| Who::Process {
            pid: process.pid,
            name: process.name.unwrap_or_default(),
        })
    }

    fn mark(&self) -> Digest {
        if let [only] = self.0.as_slice() {
            return only.differing.mark;
        }
        let mut marks = Vec::new();
        for it in &self.0 {
            marks.extend(it.differing.target.key().to_bytes());
            marks.push(0);
            marks.extend(it.differing.mark.as_bytes());
        }
        Digest::of(&marks)
    }
}

/// Puts what was in a directory that is not there any more with the directory. They come in the order of their names.
fn folded(candidates: Vec<Candidate>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for it in candidates {
        let takes = |group: &Group| {
            let head = &group.head().differing;
            let is_away = matches!(head.kind, DriftKind::Gone | DriftKind::Replaced);
            let key = it.differing.target.key();
            key == head.target.key() || is_away && key.is_at_or_below(head.target.key())
        };
        match groups.last_mut().filter(|group| takes(group)) {
            Some(group) => group.0.push(it),
            None => groups.push(Group(vec![it])),
        }
    }
    groups
}

/// Tells whether somebody accepted just this, and nobody wrote it since.
fn is_accepted(standing: &Standing, it: &Candidate) -> bool {
    let accepted = standing.accepted.get(&subject_of(&it.differing.target));
    accepted.is_some_and(|(mark, lsn)| *mark == it.differing.mark && *lsn > it.lsn)
}
