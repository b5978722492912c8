//! What a new write is built on.

use backout_model::{Dependency, DependencyReason, Key, OperationId, Reach, Target, TargetPath};

use super::{World, id, node, tree};

fn part(path: &str, part: &str) -> Target {
    let file: Key = TargetPath::new(path).expect("a path").into();
    Target::new(file.part(part).expect("a part"), Reach::Node)
}

fn edges(world: &World, number: u64) -> Vec<(OperationId, DependencyReason)> {
    let operation = world.operation(id(number));
    let edge = |edge: &Dependency| (edge.on, edge.reason);
    let mut edges: Vec<_> = operation.depends_on.iter().map(edge).collect();
    edges.sort_unstable();
    edges
}

/// For every name the newest operation in effect counts.
pub fn dependencies_follow_names_trees_and_parts(world: &World) {
    use DependencyReason::{HoldsTarget, InsideDirectory, PartOfTarget, SameTarget, WholeOfTarget};
    world.commit(1, &[tree("/d")]); // mkdir
    world.commit(2, &[node("/d/f")]);
    world.commit(3, &[node("/d/f")]);
    world.commit(4, &[node("/dd")]);
    world.commit(5, &[tree("/d")]); // rm -r
    assert_eq!(edges(world, 1), []);
    assert_eq!(edges(world, 2), [(id(1), InsideDirectory)]);
    assert_eq!(
        edges(world, 3),
        [(id(1), InsideDirectory), (id(2), SameTarget)]
    );
    assert_eq!(edges(world, 4), []);
    assert_eq!(edges(world, 5), [(id(1), SameTarget), (id(3), HoldsTarget)]);
    world.commit(6, &[node("/e.toml")]);
    world.commit(7, &[part("/e.toml", "port")]);
    world.commit(8, &[part("/e.toml", "host")]);
    world.commit(9, &[node("/e.toml")]);
    assert_eq!(edges(world, 7), [(id(6), PartOfTarget)]);
    assert_eq!(edges(world, 8), [(id(6), PartOfTarget)]);
    let whole = [
        (id(6), SameTarget),
        (id(7), WholeOfTarget),
        (id(8), WholeOfTarget),
    ];
    assert_eq!(edges(world, 9), whole);
}

/// Undos are linked as well while they are newer.
pub fn what_was_undone_is_no_dependency_and_what_it_hid_is_one_again(world: &World) {
    world.commit(1, &[node("/a")]);
    world.commit(2, &[node("/a")]);
    world.undo(3, id(2), &[node("/a")]);
    let reason = DependencyReason::SameTarget;
    let on = |number| Dependency {
        on: id(number),
        reason,
    };
    let found = world.store.dependencies(&[node("/a")]).expect("asked");
    assert_eq!(found, [on(1), on(3)]);
    world.commit(4, &[node("/a")]);
    let found = world.store.dependencies(&[node("/a")]).expect("asked");
    assert_eq!(found, [on(4)]);
    // Many at once give what each of them gives.
    let many: Vec<Target> = (0..40).map(|n| node(&format!("/many/{n}"))).collect();
    world.commit(5, &many);
    let mut asked = many;
    asked.push(node("/a"));
    let found = world.store.dependencies(&asked).expect("asked");
    assert_eq!(found, [on(4), on(5)]);
}

/// And through the redo that holds something.
pub fn what_is_connected_is_found_in_both_directions(world: &World) {
    world.commit(1, &[node("/a")]);
    world.commit(2, &[node("/a")]);
    world.commit(3, &[node("/other")]);
    world.commit(4, &[node("/a")]);
    let connected = |of: &[OperationId]| {
        let found = world.store.connected(of).expect("asked");
        found
            .iter()
            .map(|operation| operation.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(connected(&[id(2)]), [id(1), id(2), id(4)]);
    let undo = world.undo(5, id(3), &[node("/other")]);
    let redo = world.redo(6, undo, id(3), &[node("/other")]);
    assert_eq!(connected(&[id(3)]), [id(3), redo]);
}
