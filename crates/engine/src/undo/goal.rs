//! From what somebody wants taken back to a pure plan.

use std::collections::{BTreeMap, BTreeSet};

use backout_model::ports::OnConflict;
use backout_model::{
    DependencyReason, Goal, History, Key, Lsn, Operation, OperationId, Permission, PlanError,
    Standing, Status, Target, Timestamp, UndoPlan, Verb, plan_undo,
};
use backout_storage::{Filter, OperationRef};

use super::carriers::Carriers;
use super::preview::Planned;
use super::work::Told;
use crate::calls::is_to_go;
use crate::{Engine, EngineError, UndoOptions, UndoWhat};

/// How many later operations that stay a plan names.
const LATER_MAX: usize = 50;

/// How many moves of the directories above a path are followed back.
const MOVES_MAX: usize = 16;

/// A goal, the operations it begins with, and the places it is restricted to.
pub(super) struct Aim {
    pub(super) goal: Goal,
    pub(super) roots: Vec<OperationId>,
    pub(super) keys: Vec<Key>,
    /// The redos that were named, by what they brought back: their own recipes know what was there before them.
    pub(super) redos: BTreeMap<OperationId, Vec<Operation>>,
    /// The part of an operation that is meant, where it is not all of it.
    pub(super) parts: BTreeMap<OperationId, BTreeSet<Key>>,
    /// The name that means the same, where the names of the operations would mean more.
    pub(super) named: Vec<OperationId>,
}

impl Engine {
    pub(super) fn plan(
        &self,
        what: &UndoWhat,
        options: &UndoOptions,
    ) -> Result<Planned, EngineError> {
        self.plan_aimed(what, None, options)
    }

    /// The same, where the newest act was found before.
    pub(super) fn plan_aimed(
        &self,
        what: &UndoWhat,
        newest: Option<&Aim>,
        options: &UndoOptions,
    ) -> Result<Planned, EngineError> {
        let found;
        let aim = if let Some(newest) = newest {
            newest
        } else {
            found = match self.aim(what, options) {
                Err(error @ EngineError::NothingOnPath { .. }) => {
                    return Err(self.nothing_since(what, error)?);
                }
                aim => aim?,
            };
            &found
        };
        let named = match what {
            UndoWhat::Operations(references) => self.resolved(references)?,
            UndoWhat::Newest { .. }
            | UndoWhat::Paths { .. }
            | UndoWhat::Task(_)
            | UndoWhat::Prompt(_)
            | UndoWhat::ToCheckpoint(_)
            | UndoWhat::ToPlace { .. } => aim.named.clone(),
        };
        let planned = self.plan_aim(aim, options);
        if let Err(EngineError::Plan(PlanError::Nothing)) = planned
            && let Some(command) = self.at_work_on(&aim.goal)?
        {
            return Err(self.unfinished(&command));
        }
        let (history, mut plan) = match planned {
            Err(error @ EngineError::Plan(PlanError::Nothing)) => {
                return Err(self.nothing_since(what, error)?);
            }
            Err(EngineError::Plan(PlanError::ChangedNothing { id })) => {
                return Err(self.only_called(id)?);
            }
            planned => planned?,
        };
        let mut undone = self.undone_since(what)?;
        undone.retain(|left| !plan.left_alone.contains(left));
        plan.left_alone.extend(undone);
        Ok(Planned {
            history,
            plan,
            named,
            task: if let UndoWhat::Task(task) = what {
                Some(task.clone())
            } else {
                None
            },
        })
    }

    /// Finds what names lead to, each once.
    pub(crate) fn resolved(
        &self,
        references: &[OperationRef],
    ) -> Result<Vec<OperationId>, EngineError> {
        let mut ids = Vec::with_capacity(references.len());
        for reference in references {
            let id = self.store.resolve(reference)?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }

    pub(super) fn plan_aim(
        &self,
        aim: &Aim,
        options: &UndoOptions,
    ) -> Result<(History, UndoPlan), EngineError> {
        let mut operations = self.neighbours(&aim.roots)?;
        let roots = aim.roots.iter().filter_map(|id| operations.get(id));
        if let Some(oldest) = roots.map(|op| op.lsn).min() {
            // Later work that is not connected stays; the plan says so.
            let filter = Filter {
                after: Some(oldest),
                limit: Some(LATER_MAX),
                ..Filter::default()
            };
            for later in self.store.operations(&filter)? {
                operations.entry(later.id).or_insert(later);
            }
        }
        let history = History::new(operations.into_values());
        let mut permission = Permission {
            committed: options.committed,
            agent: self.context.agent.clone(),
            others: options.others,
            apart: self.begun(&aim.redos)?,
            ..Permission::default()
        };
        if options.on_conflict == OnConflict::Merge {
            permission.excused = self.excused(&history, &aim.roots)?;
        }
        let is_named = |target: &Target| {
            let is_there = |at: &Key| target.key().is_at_or_below(at);
            (aim.keys.is_empty() || aim.keys.iter().any(is_there))
                && options.selection.has_target(target)
        };
        let is_restricted = !aim.keys.is_empty() || !options.selection.is_everything();
        // What moved has two names and goes by either: whatever was built on the other one goes, too.
        let mut along: BTreeSet<Key> = BTreeSet::new();
        // So does whatever moved a directory that it is in.
        let mut carriers = Carriers::default();
        // Reads count when a plan shows that they change.
        let mut reads = self.may_reads(&history)?;
        loop {
            permission.same_reads = reads.edges();
            let is_wanted = |target: &Target| is_along(&along, target) || is_named(target);
            let is_meant = |target: &Target| carriers.have(target) || is_wanted(target);
            let goal = with_homes(&aim.goal, &history, &carriers);
            let scope = is_restricted.then_some(&is_meant as &dyn Fn(&Target) -> bool);
            let mut plan = match plan_undo(&history, &goal, scope, &permission) {
                Ok(plan) => plan,
                Err(error) => {
                    let error = self.undone_for_good(error)?;
                    return Err(self.chosen_in_tree(error.into(), options)?);
                }
            };
            carriers.hold(&mut plan, is_wanted);
            self.hold(aim, &mut plan, &carriers)?;
            let known = (along.len(), carriers.len());
            if is_restricted {
                self.add_moved(&plan, &mut along)?;
                self.add_carriers(&history, &plan, &mut carriers)?;
                self.add_successors(&history, &plan, &mut carriers)?;
                self.add_homes(&history, &plan, &mut carriers)?;
            }
            let is_as_before = (along.len(), carriers.len()) == known;
            if is_as_before && !self.count_reads(&mut reads, &plan)? {
                self.put_in_order(&history, &mut plan)?;
                self.refuse_moved(&history, &plan, options)?;
                self.refuse_split(&history, &plan, options)?;
                self.keep_homes(&history, &mut plan, options)?;
                return Ok((history, plan));
            }
        }
    }

    /// Gives the places in the journal where the acts of some redos began.
    fn begun(
        &self,
        redos: &BTreeMap<OperationId, Vec<Operation>>,
    ) -> Result<BTreeMap<OperationId, Lsn>, EngineError> {
        let mut begun = BTreeMap::new();
        for (subject, redos) in redos {
            for redo in redos {
                let first = self.store.operation(redo.group.unwrap_or(redo.id))?;
                let at = first.map_or(redo.lsn, |first| first.lsn);
                begun.insert(*subject, at);
            }
        }
        Ok(begun)
    }

    /// Restricts a plan to the parts that are meant, each with the recipe that knows what was there before it.
    fn hold(&self, aim: &Aim, plan: &mut UndoPlan, carriers: &Carriers) -> Result<(), EngineError> {
        plan.steps.retain_mut(|step| {
            let id = step.id;
            if let Some(part) = aim.parts.get(&id) {
                let is_part = |key: &Key| part.contains(key) || carriers.have_of(id, key);
                step.targets.retain(|target| is_part(target.key()));
            }
            !step.targets.is_empty()
        });
        for step in &mut plan.steps {
            let redos = aim.redos.get(&step.id).map_or(&[][..], Vec::as_slice);
            let is_only = redos.len() == 1;
            let brought = |redo: &&Operation| is_only || brought(redo, &step.targets);
            for redo in redos.iter().filter(brought) {
                let effect = self.store.effect(redo.id)?;
                let held = self.driver_of(&effect)?.outline(&effect)?;
                if covers(&held.targets, &step.targets) {
                    step.with = redo.id;
                }
            }
        }
        Ok(())
    }

    /// Adds the other names of what the steps of a plan move.
    fn add_moved(&self, plan: &UndoPlan, along: &mut BTreeSet<Key>) -> Result<(), EngineError> {
        for step in &plan.steps {
            let names: BTreeSet<_> = step.targets.iter().map(|t| t.key().clone()).collect();
            let effect = self.store.effect(step.with)?;
            let all = self.driver_of(&effect)?.with_moved(&effect, &names)?;
            along.extend(all.difference(&names).cloned());
        }
        Ok(())
    }

    pub(super) fn aim(&self, what: &UndoWhat, options: &UndoOptions) -> Result<Aim, EngineError> {
        let dependencies = options.with_dependencies;
        match what {
            UndoWhat::Newest { below } => {
                self.aim_at_newest(self.newest_act(below.as_ref())?, options)
            }
            UndoWhat::Operations(references) => {
                let mut ids = Vec::with_capacity(references.len());
                for id in self.resolved(references)? {
                    ids.extend(self.chosen(self.whole_act(id)?, options)?);
                }
                self.aim_at(ids, dependencies)
            }
            UndoWhat::Paths { paths, since } => {
                let (ids, paths) = self.on_paths(paths, *since)?;
                let ids = self.chosen(ids, options)?;
                Ok(Aim {
                    keys: paths,
                    ..self.aim_at(ids, false)?
                })
            }
            UndoWhat::Task(task) => {
                if self.store.task(task)?.is_none() {
                    return Err(EngineError::NoTask { id: task.clone() });
                }
                let filter = Filter {
                    task: Some(task.clone()),
                    ..Filter::default()
                };
                Ok(Aim {
                    goal: Goal::Task(task.clone()),
                    roots: self.ids_of(&filter)?,
                    keys: Vec::new(),
                    redos: BTreeMap::new(),
                    parts: BTreeMap::new(),
                    named: Vec::new(),
                })
            }
            UndoWhat::Prompt(prompt) => {
                self.settle_those_written(&self.operations_of(prompt)?)?;
                let mut ids = self.operations_of(prompt)?;
                let is_running =
                    |it: &&Operation| it.verb == Verb::Run && it.status == Status::Armed;
                if let Some(running) = ids.iter().find(is_running) {
                    return Err(self.unfinished(running));
                }
                ids.retain(is_to_go);
                let ids = ids.into_iter().map(|operation| operation.id).collect();
                self.aim_at(ids, dependencies)
            }
            UndoWhat::ToCheckpoint(name) => self.aim_at_checkpoint(name),
            UndoWhat::ToPlace {
                lsn,
                task,
                agent,
                known,
            } => self.aim_at_place(*lsn, task.clone(), agent.clone(), known),
        }
    }

    /// Aims at operations. Of a redo, what it brought back is meant, as far as that is still there by its doing.
    pub(super) fn aim_at(
        &self,
        ids: Vec<OperationId>,
        dependencies: bool,
    ) -> Result<Aim, EngineError> {
        let mut roots = Vec::with_capacity(ids.len());
        let mut keys = Vec::new();
        let mut redos: BTreeMap<_, Vec<Operation>> = BTreeMap::new();
        let mut parts: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut wholes = BTreeMap::new();
        for id in ids {
            self.refuse_put_back(id)?;
            let (subject, held) = match self.store.operation(id)? {
                Some(redo) if redo.verb == Verb::Redo && redo.status == Status::Committed => {
                    let subject = self.subject_of(&redo)?;
                    redos.entry(subject.id).or_default().push(redo.clone());
                    let mut held = subject.clone();
                    let brought: BTreeSet<_> = redo.in_effect().map(|s| s.target.key()).collect();
                    let is_of_it = |key: &Key| brought.contains(key);
                    held.targets
                        .retain(|standing| is_of_it(standing.target.key()));
                    (subject, Some(held).filter(|held| !held.targets.is_empty()))
                }
                Some(operation) => (operation, None),
                // The plan says so.
                None => {
                    roots.push(id);
                    continue;
                }
            };
            let meant = held.as_ref().unwrap_or(&subject);
            let named = || meant.in_effect().map(|s| s.target.key().clone());
            // Two redos of one act may have brought back a part each.
            parts.entry(subject.id).or_default().extend(named());
            wholes.insert(subject.id, subject.in_effect().count());
            keys.extend(named());
            roots.push(subject.id);
        }
        parts.retain(|id, part| wholes.get(id).is_some_and(|whole| part.len() < *whole));
        Ok(Aim {
            goal: Goal::Operations {
                ids: roots.clone(),
                dependencies,
            },
            roots,
            keys: if parts.is_empty() { Vec::new() } else { keys },
            redos,
            parts,
            named: Vec::new(),
        })
    }

    /// An undo or a redo that died and was put back is not brought back half done: it is done again.
    fn refuse_put_back(&self, id: OperationId) -> Result<(), EngineError> {
        let Some(recovery) = self.store.operation(id)? else {
            return Ok(());
        };
        let (Verb::Recover, Some(died)) = (recovery.verb, recovery.undoes) else {
            return Ok(());
        };
        match self.store.operation(died)? {
            Some(died) if died.verb.is_reversal() => Err(EngineError::PutBack {
                id: died.id,
                again: self.do_again(&died)?,
            }),
            _ => Ok(()),
        }
    }

    fn ids_of(&self, filter: &Filter) -> Result<Vec<OperationId>, EngineError> {
        Ok(self
            .store
            .operations(filter)?
            .into_iter()
            .map(|operation| operation.id)
            .collect())
    }

    /// Gives the names under which paths were written: a directory above them may have got another since.
    pub fn written_names(
        &self,
        paths: &[Key],
        since: Option<Timestamp>,
    ) -> Result<Vec<Key>, EngineError> {
        Ok(self.on_paths(paths, since)?.1)
    }

    /// Gives what was done to paths and is in effect: the last of it, or all since a moment. Gives the paths, too, by the names
    /// under which that was done.
    fn on_paths(
        &self,
        paths: &[Key],
        since: Option<Timestamp>,
    ) -> Result<(Vec<OperationId>, Vec<Key>), EngineError> {
        let mut ids = BTreeSet::new();
        let mut names = Vec::with_capacity(paths.len());
        for path in paths {
            let mut name = path.clone();
            let mut here = self.on_path(&name, since)?;
            for _ in 0..MOVES_MAX {
                match self.name_before(&name)? {
                    Some(older) if here.is_empty() => name = older,
                    _ => break,
                }
                here = self.on_path(&name, since)?;
            }
            // A path that was named and is not meant by anything is no matter for silence.
            if here.is_empty() {
                return Err(self.nothing_on(path, since)?);
            }
            ids.extend(here);
            names.push(name);
        }
        Ok((ids.into_iter().collect(), names))
    }

    fn on_path(
        &self,
        key: &Key,
        since: Option<Timestamp>,
    ) -> Result<Vec<OperationId>, EngineError> {
        let filter = Filter {
            at: Some(key.clone()),
            ..Filter::default()
        };
        let is_act = |operation: &Operation| {
            !operation.verb.is_reversal() && operation.status != Status::Armed
        };
        let Some(since) = since else {
            let newest = self.newest(&filter, |operation| Ok(is_act(operation)))?;
            return Ok(newest.map(|operation| operation.id).into_iter().collect());
        };
        let mut here = Vec::new();
        let stood = self.stood_when(since)?;
        for operation in self.store.operations(&filter)? {
            let stands = operation.status.is_in_effect() && is_act(&operation);
            let there = operation.in_effect();
            let mut new = there.filter(|it| !stood.has(operation.id, it));
            let touches = new.any(|it| it.target.key().is_at_or_below(key));
            if stands && touches && self.store.moment_of(operation.place)? > since {
                here.push(operation.id);
            }
        }
        Ok(here)
    }

    /// Gives the name that a path had before a directory above it got the name that it has; none if none did.
    fn name_before(&self, key: &Key) -> Result<Option<Key>, EngineError> {
        let Some(path) = key.file() else {
            return Ok(None);
        };
        for edge in self.store.dependencies(&[Target::node(path.clone())])? {
            if edge.reason != DependencyReason::InsideDirectory {
                continue;
            }
            let Some(effect) = self.as_files(&self.store.effect(edge.on)?)? else {
                continue;
            };
            for change in self.files.changes(&effect)? {
                let older = change
                    .from
                    .and_then(|from| path.rebase(&change.path, &from));
                if let Some(older) = older {
                    let mut parts = key.parts().iter();
                    return Ok(parts
                        .try_fold(Key::from(older), |key, part| key.part(part))
                        .ok());
                }
            }
        }
        Ok(None)
    }

    /// Leaves those out of several operations that one name stands for, of which nothing is chosen. If that is all of them, the
    /// plan says so.
    pub(super) fn chosen(
        &self,
        ids: Vec<OperationId>,
        options: &UndoOptions,
    ) -> Result<Vec<OperationId>, EngineError> {
        if ids.len() < 2 || options.selection.is_everything() {
            return Ok(ids);
        }
        let mut chosen = Vec::with_capacity(ids.len());
        for id in &ids {
            let operation = self.store.operation(*id)?;
            let is_chosen = |it: &Standing| options.selection.has_target(&it.target);
            if operation.is_some_and(|it| it.in_effect().any(is_chosen)) {
                chosen.push(*id);
            }
        }
        Ok(if chosen.is_empty() { ids } else { chosen })
    }

    /// An undo or a redo that was the first of several stands for all of them.
    pub(super) fn whole_act(&self, id: OperationId) -> Result<Vec<OperationId>, EngineError> {
        match self.store.operation(id)? {
            Some(operation) if operation.verb.is_reversal() && operation.group == Some(id) => {
                let members = self.members(&operation)?;
                Ok(if members.is_empty() {
                    vec![id]
                } else {
                    members
                })
            }
            _ => Ok(vec![id]),
        }
    }

    /// Lists the operations of the same act that still hold.
    pub(crate) fn members(&self, operation: &Operation) -> Result<Vec<OperationId>, EngineError> {
        let Some(group) = operation.group else {
            return Ok(vec![operation.id]);
        };
        let filter = Filter {
            group: Some(group),
            ..Filter::default()
        };
        let holds = |member: &Operation| member.status == Status::Committed;
        let members = self.store.operations(&filter)?.into_iter();
        Ok(members.filter(holds).map(|member| member.id).collect())
    }

    /// Finds the operation that an undo or a redo is about.
    pub(crate) fn subject(&self, operation: Operation) -> Result<Option<OperationId>, EngineError> {
        let mut at = operation;
        while let Some(next) = at.undoes {
            match self.store.operation(next)? {
                Some(operation) => at = operation,
                None => return Ok(None),
            }
        }
        Ok(Some(at.id))
    }
}

/// Adds the undos that took a directory which another undo needs when it is redone.
fn with_homes(goal: &Goal, history: &History, carriers: &Carriers) -> Goal {
    let mut goal = goal.clone();
    if let Goal::Operations { ids, .. } = &mut goal {
        let is_undo = |id: &OperationId| history.get(*id).is_some_and(|it| it.undoes.is_some());
        for id in carriers.ids().filter(is_undo) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    goal
}

/// Tells whether a target is, or is in, what goes by another name.
fn is_along(along: &BTreeSet<Key>, target: &Target) -> bool {
    let key = target.key();
    along.contains(key) || key.ancestors().iter().any(|above| along.contains(above))
}

/// Tells whether it was this redo that brought something back, where it is one of several of an act.
fn brought(redo: &Operation, targets: &[Target]) -> bool {
    let brought: BTreeSet<&Key> = redo.targets.iter().map(|it| it.target.key()).collect();
    targets.iter().all(|target| brought.contains(target.key()))
}

/// Tells whether a recipe speaks of each of some targets.
fn covers(held: &[Target], targets: &[Target]) -> bool {
    let told = Told::new(held.iter().map(|target| (target, target)));
    targets.iter().all(|target| told.of(target).is_some())
}
