//! The plan's table: a small history, a goal, and what goes, what stays, what needs a word.

#[path = "redone_tests.rs"]
mod redone;

use super::*;
use crate::touched::Touched;
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
            Some(("on", ids)) => op.depends_on.extend(ids.split(',').map(dependency)),
            Some(("declared", on)) => op.depends_on.push(edge(on, DependencyReason::Declared)),
            Some(("read", on)) => op.depends_on.push(edge(on, DependencyReason::Read)),
            Some(("within", on)) => op.depends_on.push(edge(on, DependencyReason::Within)),
            Some(("of", undone)) => op.undoes = Some(id(undone.parse().unwrap())),
            Some(("group", first)) => op.group = Some(id(first.parse().unwrap())),
            Some(("task", task)) => op.task = Some(task.parse().unwrap()),
            Some(("agent", agent)) => op.agent = Some(agent.parse().unwrap()),
            Some(("held", by)) => op.targets[0].held_by = Some(id(by.parse().unwrap())),
            Some(("at", place)) => op.place = Lsn(place.parse().unwrap()),
            Some(("paths", names)) => op.targets = names.split(',').map(standing).collect(),
            None if word == "expired" => op.retained = false,
            None if word == "undo" => op.verb = Verb::Undo,
            None if word == "interrupted" => op.status = Status::Interrupted,
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
        place: Lsn(number),
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
            host: String::new(),
        },
        decision,
        targets: vec![standing("t")],
        depends_on: vec![],
        undoes: None,
        group: None,
        asked: None,
        prompt: None,
        trigger: None,
        retained: true,
        notes: vec![],
    }
}

/// Reads a target such as `a`, `a!7` (taken back by 7), `a+7` (held by 7) or `d/` (a tree).
fn standing(text: &str) -> Standing {
    let (name, undone_by, held_by) = match (text.split_once('!'), text.split_once('+')) {
        (Some((name, by)), _) => (name, Some(id(by.parse().unwrap())), None),
        (_, Some((name, by))) => (name, None, Some(id(by.parse().unwrap()))),
        (None, None) => (text, None, None),
    };
    let path = crate::TargetPath::new(format!("/{name}")).unwrap();
    let target = if name.ends_with('/') {
        Target::tree(path)
    } else {
        Target::node(path)
    };
    Standing {
        target,
        undone_by,
        held_by,
    }
}

fn dependency(number: &str) -> Dependency {
    edge(number, DependencyReason::SameTarget)
}

fn edge(number: &str, reason: DependencyReason) -> Dependency {
    let on = id(number.parse().unwrap());
    Dependency { on, reason }
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
    let plan = plan_undo(&history(CHAIN), &ops(&[1]), None, &Permission::default()).unwrap();
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
    let plan = plan_undo(&history, &goal, None, &Permission::default()).unwrap();
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
        steps(&plan_undo(&history, &goal, None, &Permission::default()).unwrap()),
        [3, 2, 1]
    );
}

#[test]
fn only_dependents_of_committed_tasks_need_a_word() {
    let history = history(
        "1 committed\n2 committed on=1 task=kept\n3 committed on=2\n4 applied on=3 task=open",
    );
    let plan = plan_undo(&history, &ops(&[1]), None, &Permission::default()).unwrap();
    assert_eq!(steps(&plan), [4, 3, 2, 1]);
    assert_eq!(plan.needs_committed, [id(2)]);
    let needs = |goal: Goal, permission: Permission| {
        let plan = plan_undo(&history, &goal, None, &permission).unwrap();
        plan.needs_committed
    };
    assert_eq!(needs(ops(&[1]), permitted()), []);
    assert_eq!(needs(ops(&[1, 2]), Permission::default()), []);
}

#[test]
fn an_agent_does_not_take_other_agents_work_along_by_itself() {
    let history = history(
        "1 committed agent=a\n2 committed on=1 agent=b\n3 committed on=1\n4 committed on=1 agent=a",
    );
    let asks = |agent: Option<&str>, others| Permission {
        agent: agent.map(|agent| agent.parse().unwrap()),
        others,
        ..Permission::default()
    };
    let needs = |permission| {
        let plan = plan_undo(&history, &ops(&[1]), None, &permission).unwrap();
        plan.needs_others
    };
    // What has no name is a person's.
    assert_eq!(needs(asks(Some("a"), false)), [id(3), id(2)]);
    assert_eq!(needs(asks(Some("a"), true)), []);
    assert_eq!(
        needs(asks(None, false)),
        [],
        "a person sees to everybody's work"
    );
}

#[test]
fn what_is_undone_already_neither_goes_nor_passes_the_undo_on() {
    let history = history("1 committed\n2 undone on=1\n3 committed on=2");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
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
        None,
        &permission,
    )
    .unwrap();
    assert_eq!(steps(&plan), [1]);
    assert_eq!(plan.left_alone, [LeftAlone::Merges { id: id(2) }]);
}

#[test]
fn a_read_counts_unless_what_was_read_stays_the_same() {
    let history =
        history("1 committed\n2 committed read=1\n3 committed on=2\n4 committed read=1 on=1");
    let mut permission = permitted();
    let plan = plan_undo(&history, &ops(&[1]), None, &permission).unwrap();
    assert_eq!(steps(&plan), [4, 3, 2, 1]);
    let edges = [(id(2), id(1)), (id(4), id(1))];
    permission.same_reads.extend(edges);
    let plan = plan_undo(&history, &ops(&[1]), None, &permission).unwrap();
    // What wrote the same target goes, whatever it read; what was built on the reader stays with it.
    assert_eq!(steps(&plan), [4, 1]);
    let (three, read) = (id(3), (id(2), id(1)));
    assert_eq!(
        plan.left_alone,
        [
            LeftAlone::Independent { id: three },
            LeftAlone::ReadsTheSame {
                id: read.0,
                on: read.1
            },
        ]
    );
}

#[test]
fn a_command_may_go_without_what_was_done_while_it_ran() {
    let history = history("1 committed\n2 committed within=1\n3 committed on=1");
    let mut permission = permitted();
    let went = |permission: &Permission| {
        let plan = plan_undo(&history, &ops(&[1]), None, permission).unwrap();
        steps(&plan)
    };
    assert_eq!(went(&permission), [3, 2, 1]);
    permission.apart.insert(id(1), Lsn(0));
    assert_eq!(went(&permission), [3, 1]);
}

#[test]
fn who_depends_on_a_part_that_goes_by_more_than_its_targets_stays_and_is_named() {
    let history = history(
        "1 committed paths=a,b
         2 committed paths=q declared=1
         3 committed paths=z on=1
         4 committed paths=y declared=9",
    );
    let scope = below("/a");
    let plan = plan_undo(&history, &ops(&[1]), Some(&scope), &permitted()).unwrap();
    assert_eq!(steps(&plan), [1]);
    let (on, reason) = (id(1), DependencyReason::Declared);
    assert_eq!(
        plan.left_alone,
        [
            LeftAlone::Independent { id: id(4) },
            LeftAlone::Independent { id: id(3) },
            LeftAlone::Depends {
                id: id(2),
                on,
                reason
            },
        ]
    );
}

fn below(prefix: &'static str) -> impl Fn(&Target) -> bool {
    move |target| target.to_string().starts_with(prefix)
}

#[test]
fn a_scope_takes_only_its_targets_and_only_those_who_depend_on_them() {
    let history = history(
        "1 committed paths=a,b,d/
         2 committed paths=b,c on=1
         3 committed paths=a on=1
         4 committed paths=d/x on=1
         5 committed paths=q on=1",
    );
    let chosen = |prefix| {
        let scope = below(prefix);
        let plan = plan_undo(&history, &ops(&[1]), Some(&scope), &permitted()).unwrap();
        let targets = |step: &UndoStep| {
            step.targets
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ")
        };
        let each = plan
            .steps
            .iter()
            .map(|step| format!("{} {}", step.id.bits(), targets(step)));
        each.collect::<Vec<_>>()
    };
    assert_eq!(chosen("/a"), ["3 /a", "1 /a"]);
    assert_eq!(
        chosen("/b"),
        ["2 /b", "1 /b"],
        "of the later one too only that target goes"
    );
    assert_eq!(chosen("/d"), ["4 /d/x", "1 /d"]);
    let scope = below("/nothing");
    assert_eq!(
        plan_undo(&history, &ops(&[1]), Some(&scope), &permitted()),
        Err(PlanError::NothingChosen { id: id(1) })
    );
}

#[test]
fn a_scope_takes_along_who_took_the_whole_tree_that_it_lies_in() {
    let history = history("1 committed paths=d/x,e\n2 committed paths=d/ on=1");
    let scope = below("/d");
    let plan = plan_undo(&history, &ops(&[1]), Some(&scope), &permitted()).unwrap();
    assert_eq!(steps(&plan), [2, 1]);
    let scope = below("/e");
    let plan = plan_undo(&history, &ops(&[1]), Some(&scope), &permitted()).unwrap();
    assert_eq!(steps(&plan), [1]);
}

#[test]
fn a_key_of_a_file_and_the_whole_file_touch_each_other_and_two_files_of_a_directory_do_not() {
    let node = |name: &str| standing(name).target;
    let part = |name: &str| {
        let key = node(name).key().part("port").unwrap();
        Target::new(key, crate::Reach::Node)
    };
    let touched =
        |one: &Target, other: &Target| Touched::by(std::iter::once(one)).is_touched_by(other);
    let (file, inside) = (node("a"), part("a"));
    assert!(touched(&file, &inside) && touched(&inside, &file));
    let (directory, entry) = (node("d"), node("d/x"));
    assert!(!touched(&directory, &entry) && !touched(&entry, &directory));
    let tree = node("d/");
    assert!(touched(&tree, &entry) && touched(&entry, &tree));
    assert!(!touched(&part("a"), &part("b")));
}

#[test]
fn the_chain_below_leaves_out_what_is_undone_already() {
    let history = history("1 undone\n2 committed on=1\n3 committed on=2");
    let goal = Goal::Operations {
        ids: vec![id(3)],
        dependencies: true,
    };
    let plan = plan_undo(&history, &goal, None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [3, 2]);
}

#[test]
fn what_is_undone_or_is_an_undo_is_no_later_work_that_stays() {
    let history = history("1 committed\n2 undone\n3 committed undo\n4 committed");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert_eq!(plan.left_alone, [LeftAlone::Independent { id: id(4) }]);
}

#[test]
fn a_checkpoint_of_a_task_takes_back_only_what_the_task_did() {
    let history = history("1 applied task=t\n2 applied task=t\n3 committed\n4 applied task=u");
    let since = Goal::Since {
        lsn: Lsn(1),
        task: Some("t".parse().unwrap()),
        agent: None,
        unchanged: BTreeSet::new(),
    };
    let plan = plan_undo(&history, &since, None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [2]);
}

#[test]
fn what_a_part_that_is_gone_was_built_on_does_not_count() {
    let history =
        history("1 committed paths=a!9,b\n2 committed paths=a on=1\n3 committed paths=b on=1");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [3, 1]);
    assert_eq!(plan.left_alone, [LeftAlone::Independent { id: id(2) }]);
}

#[test]
fn a_command_that_did_all_within_operations_of_their_own_goes_with_them() {
    // A command, one inside of it, and what that one wrote through us.
    let mut operations: Vec<Operation> = ["1 committed", "2 committed", "3 committed", "4 undone"]
        .map(operation)
        .into();
    for (number, on) in [(1, 0), (2, 1), (3, 0)] {
        operations[number].depends_on = vec![Dependency {
            on: operations[on].id,
            reason: DependencyReason::Within,
        }];
    }
    operations[0].targets.clear();
    operations[1].targets.clear();
    let plan = |operations: &[Operation]| {
        let history = History::new(operations.iter().cloned());
        plan_undo(&history, &ops(&[1]), None, &permitted()).map(|plan| steps(&plan))
    };
    assert_eq!(plan(&operations), Ok(vec![3]));
    operations[2].status = Status::Undone;
    operations[1].status = Status::Undone;
    assert_eq!(
        plan(&operations),
        Err(PlanError::AlreadyUndone {
            id: id(1),
            by: None
        })
    );
}

#[test]
fn a_command_that_changed_nothing_is_not_on_the_stack() {
    let history = history("1 committed task=t\n2 committed paths= task=t on=1");
    let mut without = history.get(id(2)).unwrap().clone();
    without.targets.clear();
    let history = History::new([history.get(id(1)).unwrap().clone(), without]);
    let plan = |goal| {
        plan_undo(&history, &goal, None, &Permission::default())
            .map(|plan| (steps(&plan), plan.left_alone))
    };
    assert_eq!(
        plan(ops(&[2])),
        Err(PlanError::ChangedNothing { id: id(2) })
    );
    assert_eq!(plan(ops(&[1])), Ok((vec![1], vec![])));
    assert_eq!(
        plan(Goal::Task("t".parse().unwrap())),
        Ok((vec![1], vec![]))
    );
}

#[test]
fn a_task_goes_whole_and_alone() {
    let history = history("1 applied task=a\n2 applied task=b\n3 applied task=a\n4 undone task=a");
    let goal = Goal::Task("a".parse().unwrap());
    assert_eq!(
        steps(&plan_undo(&history, &goal, None, &Permission::default()).unwrap()),
        [3, 1]
    );
}

#[test]
fn a_checkpoint_takes_back_what_came_after_it_and_only_the_agents_own() {
    let history =
        history("1 committed agent=a\n2 committed agent=a\n3 committed agent=b\n4 committed undo");
    let since = |agent: Option<&str>, unchanged: &[u64]| Goal::Since {
        lsn: Lsn(1),
        task: None,
        agent: agent.map(|a| a.parse().unwrap()),
        unchanged: unchanged.iter().copied().map(id).collect(),
    };
    let plan =
        |goal| plan_undo(&history, &goal, None, &Permission::default()).map(|plan| steps(&plan));
    assert_eq!(plan(since(None, &[])), Ok(vec![3, 2]));
    assert_eq!(plan(since(None, &[2])), Ok(vec![3]));
    assert_eq!(plan(since(Some("a"), &[])), Ok(vec![2]));
    assert_eq!(plan(since(Some("nobody"), &[])), Err(PlanError::Nothing));
}

#[test]
fn what_cannot_be_undone_says_why() {
    let history = history(
        "1 undone\n2 aborted\n3 armed\n4 committed expired\n5 committed irreversible\n6 refused
         7 committed\n8 committed expired on=7",
    );
    let error = |n: u64| plan_undo(&history, &ops(&[n]), None, &permitted()).unwrap_err();
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
        steps(&plan_undo(&history, &ops(&[1]), None, &Permission::default()).unwrap()),
        [2, 1]
    );
}
