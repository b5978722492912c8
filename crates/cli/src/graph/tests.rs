//! Drawings, each the whole of it.

use super::*;

fn drawn(edges: &[&[usize]]) -> String {
    let edges: Vec<Vec<usize>> = edges.iter().map(|targets| targets.to_vec()).collect();
    let line = |row: &Gutter| {
        format!("{}●{}", row.before, row.after)
            .trim_end()
            .to_owned()
    };
    let lines: Vec<String> = draw(&edges).iter().map(line).collect();
    lines.join("\n")
}

#[test]
fn nothing_is_drawn_for_nothing() {
    assert_eq!(drawn(&[]), "");
}

#[test]
fn unrelated_operations_have_no_lanes() {
    insta::assert_snapshot!(drawn(&[&[], &[], &[]]), @r"
    ●
    ●
    ●
    ");
}

#[test]
fn a_chain_is_one_lane() {
    insta::assert_snapshot!(drawn(&[&[1], &[2], &[]]), @r"
    ╭●
    ├●
    ╰●
    ");
}

#[test]
fn an_unrelated_operation_stands_beside_the_lane() {
    insta::assert_snapshot!(drawn(&[&[2], &[], &[]]), @r"
    ╭●
    │   ●
    ╰●
    ");
}

#[test]
fn an_operation_that_closes_its_lane_may_join_another() {
    insta::assert_snapshot!(drawn(&[&[2], &[4], &[4], &[4], &[]]), @r"
    ╭●
    │  ╭●
    ╰●─┤
     ●─┤
       ╰●
    ");
}

#[test]
fn two_that_were_built_on_one_join_its_lane() {
    insta::assert_snapshot!(drawn(&[&[2], &[2], &[]]), @r"
    ╭●
    ├───●
    ╰●
    ");
}

#[test]
fn one_that_was_built_on_two_opens_a_lane() {
    insta::assert_snapshot!(drawn(&[&[1, 2], &[], &[]]), @r"
    ╭●─╮
    ╰● │
       ╰●
    ");
}

#[test]
fn a_line_that_only_crosses_a_lane_passes_behind_it() {
    insta::assert_snapshot!(drawn(&[&[3], &[4], &[3], &[], &[]]), @r"
    ╭●
    │  ╭●
    ├──│───●
    ╰● │
       ╰●
    ");
}

#[test]
fn a_lane_between_two_others_is_joined_with_a_cross() {
    insta::assert_snapshot!(drawn(&[&[3], &[4], &[3, 4], &[], &[]]), @r"
    ╭●
    │  ╭●
    ├──┼───●
    ╰● │
       ╰●
    ");
}

#[test]
fn an_edge_that_follows_from_others_is_left_out() {
    assert_eq!(drawn(&[&[1, 2], &[2], &[]]), drawn(&[&[1], &[2], &[]]));
}

#[test]
fn edges_that_lead_up_or_out_of_the_list_are_ignored() {
    assert_eq!(drawn(&[&[0, 7], &[0], &[9]]), drawn(&[&[], &[], &[]]));
}

#[test]
fn a_column_is_used_again_when_its_lane_has_ended() {
    insta::assert_snapshot!(drawn(&[&[4], &[2], &[], &[5], &[], &[]]), @r"
    ╭●
    │  ╭●
    │  ╰●
    │  ╭●
    ╰● │
       ╰●
    ");
}

#[test]
fn twenty_operations_stay_readable() {
    let edges: &[&[usize]] = &[
        &[3],
        &[5],
        &[],
        &[6, 7],
        &[9],
        &[8],
        &[10],
        &[10],
        &[11, 12],
        &[14],
        &[13],
        &[15],
        &[],
        &[16],
        &[],
        &[18],
        &[17],
        &[19],
        &[],
        &[],
        &[],
    ];
    insta::assert_snapshot!(drawn(edges), @r"
    ╭●
    │  ╭●
    │  │   ●
    ├●─│──╮
    │  │  │  ╭●
    │  ├● │  │
    ├● │  │  │
    ├──│──┴● │
    │  ├●─╮  │
    │  │  │  ├●
    ├● │  │  │
    │  ├● │  │
    │  │  ╰● │
    ├● │     │
    │  │     ╰●
    │  ├●
    ├● │
    ├● │
    │  ╰●
    ╰●
     ●
    ");
}

#[test]
fn too_many_lanes_fall_back_to_a_plain_list() {
    let edges: Vec<Vec<usize>> = (0..18)
        .map(|row| if row < 9 { vec![row + 9] } else { vec![] })
        .collect();
    assert!(
        draw(&edges)
            .iter()
            .all(|row| row.before.is_empty() && row.after.is_empty())
    );
    let edges: Vec<Vec<usize>> = (0..16)
        .map(|row| if row < 8 { vec![row + 8] } else { vec![] })
        .collect();
    assert!(draw(&edges).iter().any(|row| !row.before.is_empty()));
}
