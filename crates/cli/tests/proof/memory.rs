//! Memory does not grow with what is undone: the system itself holds the program to a limit.

use std::process::Command;

use crate::world::World;

const FILES: usize = 2_000;
const FILE_BYTES: usize = 64 * 1024;

/// Half of the bytes that the operation replaces.
const DATA_BYTES_MAX: usize = FILES * FILE_BYTES / 2;

#[test]
fn an_undo_of_more_bytes_than_it_may_have_in_memory_brings_them_all_back() {
    let world = World::new();
    let old = |number: usize| format!("{number:08}").repeat(FILE_BYTES / 8);
    let mut changes = Vec::new();
    for number in 0..FILES {
        world.file(&format!("f{number}"), &old(number));
        changes.push(format!(
            r#"{{"write": {{"path": "f{number}", "text": "new"}}}}"#
        ));
    }
    let batch = world.scratch("batch.json");
    std::fs::write(&batch, format!(r#"{{"changes": [{}]}}"#, changes.join(","))).unwrap();

    limited(&world, &["batch", batch.to_str().unwrap()]);
    assert_eq!(world.read("f7"), "new");
    limited(&world, &["undo"]);
    for number in 0..FILES {
        assert_eq!(world.read(&format!("f{number}")), old(number));
    }
}

/// Runs the program with a limit on all memory that it can write to.
fn limited(world: &World, arguments: &[&str]) {
    let inner = world.command(arguments);
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--data={DATA_BYTES_MAX}"))
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(inner.get_current_dir().unwrap())
        .env_clear()
        .envs(
            inner
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
}
