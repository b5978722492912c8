//! The plan's table: a small history, a goal, and what goes, what stays, what needs a word.

use super::*;
use crate::{Decision, Dependency, Owner, Timestamp, Traits, Verb, choose};

/// Builds a history from lines such as `3 committed on=1,2 task=t`.
fn history(lines: &str) -> History {
    History::new(
        lines
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .map(operation),
    )
}

fn operation(line: &str) -> Operation {
    let mut words = line.split_whitespace();
    let number: u64 = words.next().unwrap().parse().unwrap();
    let status = words.next().unwrap();
    let mut op = blank(number);
    op.status = Status::ALL
        .into_iter()
        .find(|s| s.as_str() == status)
        .unwrap();
    for word in words {
        match word.split_once('=') {
            Some(("on", ids)) => op.depends_on = ids.split(',').map(dependency).collect(),
            Some(("task", task)) => op.task = Some(task.parse().unwrap()),
            Some(("agent", agent)) => op.agent = Some(agent.parse().unwrap()),
            Some(("redone", by)) => op.redone_by = Some(id(by.parse().unwrap())),
            None if word == "expired" => op.retained = false,
            None if word == "undo" => op.verb = Verb::Undo,
            None if word == "irreversible" => op.decision.strategy = Strategy::Irreversible,
            _ => panic!("{word}"),
        }
    }
    op
}

fn blank(number: u64) -> Operation {
    let decision: Decision = choose(&Traits::of(crate::OperationKind::FileWrite));
    Operation {
        id: id(number),
        lsn: Lsn(number),
        at: Timestamp(0),
        verb: Verb::Write,
        summary: String::new(),
        status: Status::Committed,
        agent: None,
        task: None,
        owner: Owner {
            pid: 1,
            started: 1,
            boot: String::new(),
            pid_namespace: 1,
        },
        decision,
        targets: vec![],
        depends_on: vec![],
        undoes: None,
        group: None,
        undone_by: None,
        redone_by: None,
        retained: true,
        notes: vec![],
    }
}

fn dependency(number: &str) -> Dependency {
    Dependency {
        on: id(number.parse().unwrap()),
        reason: DependencyReason::SameTarget,
    }
}

fn id(number: u64) -> OperationId {
    OperationId::from_bits(number)
}

fn ops(numbers: &[u64]) -> Goal {
    Goal::Operations {
        ids: numbers.iter().copied().map(id).collect(),
        dependencies: false,
    }
}

fn permitted() -> Permission {
    Permission {
        committed: true,
        ..Permission::default()
    }
}

fn steps(plan: &UndoPlan) -> Vec<u64> {
    plan.steps.iter().map(|step| step.id.bits()).collect()
}

const CHAIN: &str = "
    1 applied
    2 applied on=1
    3 applied
    4 applied on=2
    5 applied on=3
";

#[test]
fn an_undo_takes_its_dependents_newest_first_and_leaves_the_rest() {
    let plan = plan_undo(&history(CHAIN), &ops(&[1]), &Permission::default()).unwrap();
    assert_eq!(steps(&plan), [4, 2, 1]);
    assert_eq!(
        plan.left_alone,
        [
            LeftAlone::Independent { id: id(5) },
            LeftAlone::Independent { id: id(3) }
        ]
    );
    assert_eq!(plan.steps[2].chosen, Chosen::Named);
    let reason = DependencyReason::SameTarget;
    assert_eq!(
        plan.steps[0].chosen,
        Chosen::DependsOn { on: id(2), reason }
    );
}

#[test]
fn the_backward_closure_takes_the_chain_it_was_built_on() {
    // The article's own example: 91 depends on 90, 90 on 88, and 89 stays.
    let history = history("88 applied\n89 applied\n90 applied on=88\n91 applied on=90");
    let goal = Goal::Operations {
        ids: vec![id(91)],
        dependencies: true,
    };
    let plan = plan_undo(&history, &goal, &Permission::default()).unwrap();
    assert_eq!(steps(&plan), [91, 90, 88]);
    assert_eq!(plan.left_alone, [LeftAlone::Independent { id: id(89) }]);
}

#[test]
fn the_backward_closure_also_takes_what_else_was_built_on_the_chain() {
    let history = history("1 applied\n2 applied on=1\n3 applied on=1");
    let goal = Goal::Operations {
        ids: vec![id(2)],
        dependencies: true,
    };
    assert_eq!(
        steps(&plan_undo(&history, &goal, &Permission::default()).unwrap()),
        [3, 2, 1]
    );
}

#[test]
fn committed_dependents_need_a_word() {
    let history = history("1 committed\n2 committed on=1\n3 applied on=2");
    let plan = plan_undo(&history, &ops(&[1]), &Permission::default()).unwrap();
    assert_eq!(steps(&plan), [3, 2, 1]);
    assert_eq!(
        plan.needs_committed
            .iter()
            .map(|s| s.id.bits())
            .collect::<Vec<_>>(),
        [2]
    );
    assert_eq!(
        plan_undo(&history, &ops(&[1]), &permitted())
            .unwrap()
            .needs_committed,
        []
    );
    assert_eq!(
        plan_undo(&history, &ops(&[1, 2]), &Permission::default())
            .unwrap()
            .needs_committed,
        []
    );
}

#[test]
fn what_is_undone_already_neither_goes_nor_passes_the_undo_on() {
    let history = history("1 committed\n2 undone on=1\n3 committed on=2");
    let plan = plan_undo(&history, &ops(&[1]), &permitted()).unwrap();
    assert_eq!(steps(&plan), [1]);
    let status = Status::Undone;
    assert!(
        plan.left_alone
            .contains(&LeftAlone::NotInEffect { id: id(2), status })
    );
}

#[test]
fn a_clean_merge_excuses_a_dependent() {
    let mut permission = permitted();
    permission.excused.insert((id(2), id(1)));
    let plan = plan_undo(
        &history("1 committed\n2 committed on=1"),
        &ops(&[1]),
        &permission,
    )
    .unwrap();
    assert_eq!(steps(&plan), [1]);
    assert_eq!(plan.left_alone, [LeftAlone::Merges { id: id(2) }]);
}

#[test]
fn a_redone_operation_is_taken_back_by_the_redo() {
    let plan = plan_undo(&history("1 committed redone=3"), &ops(&[1]), &permitted()).unwrap();
    assert_eq!(plan.steps[0].with, id(3));
}

#[test]
fn a_task_goes_whole_and_alone() {
    let history = history("1 applied task=a\n2 applied task=b\n3 applied task=a\n4 undone task=a");
    let goal = Goal::Task("a".parse().unwrap());
    assert_eq!(
        steps(&plan_undo(&history, &goal, &Permission::default()).unwrap()),
        [3, 1]
    );
}

#[test]
fn a_checkpoint_takes_back_what_came_after_it_and_only_the_agents_own() {
    let history =
        history("1 committed agent=a\n2 committed agent=a\n3 committed agent=b\n4 committed undo");
    let since = |agent: Option<&str>| Goal::Since {
        lsn: Lsn(1),
        task: None,
        agent: agent.map(|a| a.parse().unwrap()),
    };
    let plan = |goal| plan_undo(&history, &goal, &Permission::default()).map(|plan| steps(&plan));
    assert_eq!(plan(since(None)), Ok(vec![3, 2]));
    assert_eq!(plan(since(Some("a"))), Ok(vec![2]));
    assert_eq!(plan(since(Some("nobody"))), Err(PlanError::Nothing));
}

#[test]
fn what_cannot_be_undone_says_why() {
    let history = history(
        "1 undone\n2 aborted\n3 armed\n4 committed expired\n5 committed irreversible\n6 refused
         7 committed\n8 committed expired on=7",
    );
    let error = |n: u64| plan_undo(&history, &ops(&[n]), &permitted()).unwrap_err();
    assert_eq!(
        error(1),
        PlanError::AlreadyUndone {
            id: id(1),
            by: None
        }
    );
    assert_eq!(
        error(2),
        PlanError::NeverHappened {
            id: id(2),
            status: Status::Aborted
        }
    );
    assert_eq!(error(3), PlanError::Unfinished { id: id(3) });
    assert_eq!(
        error(4),
        PlanError::Expired {
            id: id(4),
            for_sake_of: None
        }
    );
    assert_eq!(error(5), PlanError::Irreversible { id: id(5) });
    assert_eq!(
        error(6),
        PlanError::NeverHappened {
            id: id(6),
            status: Status::Refused
        }
    );
    assert_eq!(
        error(7),
        PlanError::Expired {
            id: id(8),
            for_sake_of: Some(id(7))
        }
    );
    assert_eq!(error(9), PlanError::Unknown { id: id(9) });
}

#[test]
fn cycles_in_declared_dependencies_do_not_hang() {
    let history = history("1 applied on=2\n2 applied on=1");
    assert_eq!(
        steps(&plan_undo(&history, &ops(&[1]), &Permission::default()).unwrap()),
        [2, 1]
    );
}
