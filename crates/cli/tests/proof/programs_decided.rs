//! What a program did and nobody can look at: somebody decides, before it is tried once more.

use crate::programs::{ADD, json, with_users};
use crate::world::{World, said};

fn newest_id(world: &World) -> String {
    let log = json(&world.run(&["--json", "log", "-n", "1"]));
    log["operations"][0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_redo_that_nobody_can_look_at_is_decided_before_another() {
    // What nobody saw end gave no answer.
    const UNDO: &str = "grep -vx ann users > rest; mv rest users";
    const UNSURE: &str = "test -e ok && echo ann >> users && echo ann";
    for happened in [true, false] {
        let world = with_users();
        world.file("ok", "");
        world.ok(&["act", "--undo", UNDO, "--", "sh", "-c", UNSURE]);
        world.ok(&["undo", "--everywhere"]);
        std::fs::remove_file(world.path("ok")).unwrap();
        let lost = world.run(&["redo", "--everywhere"]);
        assert_eq!(lost.status.code(), Some(1), "{}", said(&lost));
        for told in ["perhaps redid", "it is not known what became of it"] {
            assert!(said(&lost).contains(told), "{}", said(&lost));
        }
        let doubt = newest_id(&world);
        for words in [
            ["redo", "--everywhere"].as_slice(),
            &["redo", "--everywhere", "-n"],
        ] {
            let refused = world.run(words);
            assert_eq!(refused.status.code(), Some(1), "{}", said(&refused));
            for told in [
                "before this one is in doubt",
                "once more could do it twice",
                &format!(
                    "look yourself; if it happened, keep it with `backout recover --keep {}",
                    &doubt[..8]
                ),
                &format!(
                    "else let it be taken back with `backout recover --rollback {} --force",
                    &doubt[..8]
                ),
            ] {
                assert!(said(&refused).contains(told), "{told}: {}", said(&refused));
            }
        }
        assert_eq!(world.read("users"), "eve\n");
        if happened {
            world.file("users", "eve\nann\n");
            let kept = world.ok(&["recover", "--keep", &doubt]);
            assert!(kept.contains("committed"), "{kept}");
            world.ok(&["undo", "--everywhere"]);
        } else {
            world.ok(&["recover", "--rollback", &doubt, "--force"]);
        }
        assert_eq!(world.read("users"), "eve\n");
        let status = world.ok(&["status"]);
        assert!(!status.contains("waits for your decision"), "{status}");
        world.file("ok", "");
        world.ok(&["redo", "--everywhere"]);
        world.ok(&["undo", "--everywhere"]);
        assert_eq!(world.read("users"), "eve\n");
        world.check_store();
    }
}

#[test]
fn an_undo_that_nobody_can_look_at_is_decided_before_another() {
    let world = with_users();
    let undo = "test -e ok && grep -vx ann users > rest && mv rest users";
    let words = ["act", "--undo", undo, "--", "sh", "-c", ADD];
    world.ok(&words);
    world.run(&["undo", "--everywhere"]);
    let doubt = newest_id(&world);
    let refused = world.run(&["undo", "--everywhere", "-n"]);
    assert!(said(&refused).contains("in doubt"), "{}", said(&refused));
    // Somebody looked, and took it back by hand.
    world.file("users", "eve\n");
    world.ok(&["recover", "--keep", &doubt]);
    world.ok(&["redo", "--everywhere"]);
    assert_eq!(world.read("users"), "eve\nann\n");
}
