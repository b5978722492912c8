//! What a diff and a restore say of contents that they cannot show or do not have. The files themselves stay as they are.

use std::fs;

use crate::world::World;

#[test]
fn what_is_too_large_or_not_kept_is_not_shown() {
    let world = World::new();
    world.did(["run", "--", "sh", "-c", "head -c 9000000 /dev/zero >large"]);
    insta::assert_snapshot!(world.unmoved(["diff"]), @r"
    created large
      file, mode 0644, owner root:root, 8.5 MiB
      content not shown: too large to show
    ");
    world.did(["run", "--", "sh", "-c", "head -c 100000 /dev/zero >f"]);
    fs::remove_file(world.path("f")).unwrap();
    insta::assert_snapshot!(world.unmoved(["diff"]), @r"
    created f
      file, mode 0644, owner root:root, 97.6 KiB
      content not shown: its bytes are not kept, or not any more
    ");
    insta::assert_snapshot!(world.unmoved(["restore", "f", "--from", "@", "--after"]), @r"
    error: `f` cannot be restored
      why: its bytes are not kept, or not any more
      next: see which operations wrote it with `backout log f`
    [exit code 1]
    ");
}

#[test]
fn what_is_too_much_is_shown_by_parts() {
    let world = World::new();
    let line = "for i in 0 1 2 3 4 5 6 7 8 9; do yes 1234567 | head -c 7000000 >f$i; done";
    world.did(["run", "--", "sh", "-c", line]);
    let all = world.unmoved(["diff"]);
    let more =
        "content not shown: there is too much to show all of it; name a part with `--only`\n";
    assert!(all.out.contains(more), "{all}");
    let part = world.unmoved(["diff", "--only", "f9"]);
    assert!(
        part.out.contains("f9") && !part.out.contains(more),
        "{part}"
    );
}
