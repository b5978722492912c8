//! The order of a plan's steps: each after those that it depends on, or the circle that makes this impossible.

use std::collections::BTreeMap;

use serde_json::Value;

use super::edges::dependencies;
use super::{steps, text};

/// Gives the ids of a plan's steps, each after those that it depends on; where that leaves a choice, in the plan's own order. A dependency
/// outside of the plan counts for nothing here.
///
/// # Errors
///
/// The steps of a circle, each followed by one that it depends on.
pub(super) fn ordered(plan: &Value) -> Result<Vec<&str>, Vec<String>> {
    let all: Vec<(&str, &Value)> = steps(plan)
        .filter_map(|step| Some((text(step, "step_id")?, step)))
        .collect();
    let places: BTreeMap<&str, usize> = all.iter().enumerate().map(|(at, it)| (it.0, at)).collect();
    let mut waits: Vec<usize> = vec![0; all.len()];
    let mut then: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (at, (_, step)) in all.iter().enumerate() {
        for before in dependencies(step).filter_map(|id| places.get(id)) {
            if let (Some(count), Some(after)) = (waits.get_mut(at), then.get_mut(*before)) {
                *count += 1;
                after.push(at);
            }
        }
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..all.len())
        .filter(|at| waits.get(*at) == Some(&0))
        .collect();
    let mut order = Vec::with_capacity(all.len());
    while let Some(at) = ready.pop_first() {
        order.extend(all.get(at).map(|(id, _)| *id));
        for after in then.get(at).into_iter().flatten() {
            if let Some(count) = waits.get_mut(*after) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(*after);
                }
            }
        }
    }
    if order.len() == all.len() {
        return Ok(order);
    }
    Err(circle(&all, &places, &waits))
}

/// Walks along dependencies from a step that still waits until one comes again.
fn circle(all: &[(&str, &Value)], places: &BTreeMap<&str, usize>, waits: &[usize]) -> Vec<String> {
    let is_stuck = |at: &usize| waits.get(*at).is_some_and(|count| *count > 0);
    let mut way: Vec<usize> = Vec::new();
    let mut met: BTreeMap<usize, usize> = BTreeMap::new();
    let mut here = (0..all.len()).find(is_stuck);
    while let Some(at) = here {
        if let Some(start) = met.insert(at, way.len()) {
            way.drain(..start);
            break;
        }
        way.push(at);
        let step = all.get(at).map(|(_, step)| *step);
        here = step
            .into_iter()
            .flat_map(dependencies)
            .filter_map(|id| places.get(id).copied())
            .find(is_stuck);
    }
    let named = way.iter().filter_map(|at| all.get(*at));
    named.map(|(id, _)| (*id).to_owned()).collect()
}
