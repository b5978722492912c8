//! Plans about operations that were undone and brought back, as a whole or in parts.

use super::*;

#[test]
fn a_redone_operation_is_taken_back_by_the_redo() {
    let history = history("1 committed paths=a+3,b,c!5\n3 committed undo");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    let with: Vec<_> = plan.steps.iter().map(|step| step.with.bits()).collect();
    assert_eq!(
        with,
        [3, 1],
        "what the redo brought back lies above the rest"
    );
    let targets = |at: usize| {
        let targets = plan.steps[at].targets.iter();
        targets.map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        (targets(0), targets(1)),
        (vec!["/a".into()], vec!["/b".into()])
    );
}

#[test]
fn what_was_built_on_the_redo_goes_with_what_it_brought_back() {
    let history = history("1 committed held=3 at=3\n3 committed undo\n4 committed on=3");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [4, 1]);
}

#[test]
fn what_was_declared_to_depend_on_it_goes_although_a_redo_brought_it_back() {
    let history = history("1 committed held=3 at=3\n3 committed undo\n5 committed declared=1");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [5, 1]);
}

#[test]
fn what_was_written_before_a_redo_lies_below_what_the_redo_brought_back() {
    let history = history("1 committed held=9 at=9\n2 committed on=1\n9 committed undo");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [1]);
    // A part that was there all the time still has it above.
    let history =
        self::history("1 committed paths=a+9,b at=9\n2 committed paths=b on=1\n9 committed undo");
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert!(steps(&plan).contains(&2), "{plan:?}");
}

#[test]
fn what_one_act_brought_back_lies_together_in_whatever_order_it_came() {
    let history = history(
        "1 committed held=9 at=9
         2 committed held=8 at=8 on=1
         8 committed undo group=8
         9 committed undo group=8",
    );
    let plan = plan_undo(&history, &ops(&[1]), None, &permitted()).unwrap();
    assert!(steps(&plan).contains(&2), "{plan:?}");
}

#[test]
fn operations_go_by_the_place_where_they_were_last_made() {
    // 1 was undone and brought back after 2.
    let history = history("1 committed held=9 at=9\n2 committed\n9 committed undo");
    let plan = plan_undo(&history, &ops(&[1, 2]), None, &permitted()).unwrap();
    assert_eq!(steps(&plan), [1, 2]);
}

#[test]
fn each_part_goes_where_its_recipe_stands() {
    // A part of 1 was undone and brought back by 9, after 3 had written over the other part.
    let history = history(
        "1 committed paths=a+9,b at=9
         3 committed paths=b on=1
         9 committed undo
         11 committed paths=a on=9",
    );
    for goal in [ops(&[1]), ops(&[1, 3]), ops(&[11, 3, 1])] {
        let plan = plan_undo(&history, &goal, None, &permitted()).unwrap();
        let with: Vec<_> = plan.steps.iter().map(|step| step.with.bits()).collect();
        assert_eq!((steps(&plan), with), (vec![11, 1, 3, 1], vec![11, 9, 3, 1]));
    }
}

#[test]
fn what_a_merge_took_out_and_a_redo_brought_back_lies_below_what_stayed() {
    // Nothing but its own recipe holds it: the redo only put its change back in.
    let history = history("1 committed at=9\n2 committed on=1\n9 committed undo");
    for goal in [ops(&[1]), ops(&[1, 2])] {
        let plan = plan_undo(&history, &goal, None, &permitted()).unwrap();
        assert_eq!(steps(&plan), [2, 1]);
    }
}

#[test]
fn what_an_older_recipe_holds_lies_where_the_last_redo_brought_it() {
    // Both were undone and brought back, 1 by 8 and 2 by 9; a part of 2 over somebody's work, by a recipe of before.
    let history = history(
        "1 committed paths=b,x+8 at=8
         2 committed paths=x,y+9 on=1 at=9
         4 undone undo of=2
         5 undone undo of=1
         8 committed undo of=5 paths=b,x
         9 committed undo of=4 paths=x,y",
    );
    let plan = plan_undo(&history, &ops(&[1, 2]), None, &permitted()).unwrap();
    let with: Vec<_> = plan.steps.iter().map(|step| step.with.bits()).collect();
    assert_eq!(
        (steps(&plan), with),
        (vec![2, 2, 1, 1], vec![2, 9, 8, 1]),
        "{plan:?}"
    );
}
