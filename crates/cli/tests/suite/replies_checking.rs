//! Replies where gates found something.

#![expect(
    clippy::indexing_slicing,
    reason = "a field that is not there fails the test"
)]

use std::process::Stdio;

use crate::replies::{Judge, one_document};
use crate::world::World;

/// What gates find, before a write, after it, and in what a command did.
pub(crate) fn checking(judge: &mut Judge) {
    let world = World::new().file("backout.toml", "[syntx]\n[policy]\nfiles-max = 'x'\n");
    judge.refuses(&world, "config check", "config-checked");
    judge.replies(&world, "config show a.json", "config-shown");
    world.put("backout.toml", "[syntax]\n[[check]]\nname = 'port'\npaths = ['*.toml']\nvalues = [{ key = 'port', max = 9 }]\n[[watch]]\nname = 'w'\npaths = ['w']\ncommand = ['false']\ntries = 1\n");
    judge.replies(&world, "config check", "config-checked");
    judge.replies(&world, "config show a.toml", "config-shown");
    judge.fails(&world, "write a.json --text {", "gate");
    judge.fails(&world, "write a.toml --text port=10", "gate");
    judge.fails(&world, "write w --text 1", "not-verified");
    for line in ["echo { > a.json", "echo 1 > w"] {
        let mut command = world.command(&["--json", "run", "--", "sh", "-c", line]);
        let ran = world.run(command.stdin(Stdio::null()));
        assert_eq!(ran.code, 1, "{ran}");
        let (reply, error) = ran.err.split_once('\n').unwrap();
        let reply = judge.reply(&format!("{reply}\n"), "ran");
        assert_eq!(reply["status"], "undone");
        assert!(reply["reasons"][0]["rule"].is_string(), "{reply}");
        judge.schema.check("error", &one_document(error));
    }
    judge.replies(&world, "log", "log");
    let world = World::new();
    judge.replies(&world, "config init", "finished");
    judge.fails(&world, "config init", "refused");
}
