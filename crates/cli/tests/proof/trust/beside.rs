//! Commands that run at the same time and write the same files: each keeps its place in the journal, undo of one or of all is
//! exact or a conflict that says so, and nobody waits for somebody who waits for him.

use std::process::{Child, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Running, json, newest};
use crate::commands::wait_for;
use crate::world::{World, said};

/// A command in steps: each happens when it is told to.
struct Steps<'w> {
    world: &'w World,
    name: &'static str,
    child: Child,
    done: usize,
}

impl<'w> Steps<'w> {
    fn start(world: &'w World, name: &'static str, steps: &[&str]) -> Self {
        let at = |what: &str, step: usize| world.scratch(&format!("{name}-{what}-{step}"));
        let step = |(number, step): (usize, &&str)| {
            let (go, done) = (at("go", number), at("done", number));
            format!(
                "while [ ! -e {} ]; do sleep 0.01; done; {step}; touch {}",
                go.display(),
                done.display()
            )
        };
        let line: Vec<String> = steps.iter().enumerate().map(step).collect();
        let child = world.spawn(&["--agent", name, "run", "--", "sh", "-c", &line.join("; ")]);
        Self {
            world,
            name,
            child,
            done: 0,
        }
    }

    /// Lets the next step happen, and waits until it has.
    fn step(&mut self) {
        let at = |what: &str| {
            let name = format!("{}-{what}-{}", self.name, self.done);
            self.world.scratch(&name)
        };
        std::fs::write(at("go"), "").unwrap();
        wait_for(|| at("done").exists());
        self.done += 1;
    }

    /// The process that watches: a child of the one that was started.
    fn watcher(&self) -> Pid {
        let front = self.child.id();
        let children = format!("/proc/{front}/task/{front}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let watcher = children.split_whitespace().next().unwrap();
        Pid::from_raw(watcher.parse().unwrap())
    }

    fn end(self) -> Output {
        self.child.wait_with_output().unwrap()
    }

    fn ends_well(self) {
        let output = self.end();
        assert!(output.status.success(), "{}", said(&output));
    }
}

/// The operations of an agent, newest first, by the beginning of their ids.
fn operations_of(world: &World, agent: &str) -> Vec<String> {
    let log = world.json(&["log", "-n", "1000"]);
    let operations = log["operations"].as_array().unwrap();
    let own = operations.iter().filter(|it| it["agent"] == agent);
    own.map(|it| it["id"].as_str().unwrap()[..8].to_owned())
        .collect()
}

/// Whose operations are in the journal, oldest first.
fn order(world: &World) -> String {
    let log = world.json(&["log", "-n", "1000"]);
    let operations = log["operations"].as_array().unwrap();
    let agents = operations.iter().rev();
    agents.map(|it| it["agent"].as_str().unwrap()).collect()
}

/// Takes everything back, by force where somebody has to say so. Gives how often that was.
fn take_all_back(world: &World) -> usize {
    let mut forced = 0;
    for _ in 0..500 {
        let output = world.run(&["--json", "undo"]);
        if said(&output).contains("\"nothing\"") {
            return forced;
        }
        if !output.status.success() {
            forced += 1;
            world.ok(&["undo", "--force"]);
        }
    }
    panic!("there is no end of undoing");
}

#[test]
fn commands_that_write_one_file_by_turns_keep_the_order_of_what_they_did() {
    let world = World::new();
    world.file("f", "0\n");
    let mut one = Steps::start(&world, "a", &["echo a1 >> f", "echo a2 >> f"]);
    let mut two = Steps::start(&world, "b", &["echo b1 >> f", "echo b2 >> f"]);
    one.step();
    two.step();
    one.step();
    one.ends_well();
    two.step();
    two.ends_well();
    assert_eq!(world.read("f"), "0\na1\nb1\na2\nb2\n");
    assert_eq!(order(&world), "abab");
    // One after the other, each exactly.
    for wanted in ["0\na1\nb1\na2\n", "0\na1\nb1\n", "0\na1\n", "0\n"] {
        let newest = world.json(&["undo", "--partial", "--only", "f"]);
        assert_eq!(world.read("f"), wanted, "{newest}");
    }
    for wanted in [
        "0\na1\n",
        "0\na1\nb1\n",
        "0\na1\nb1\na2\n",
        "0\na1\nb1\na2\nb2\n",
    ] {
        world.ok(&["redo"]);
        assert_eq!(world.read("f"), wanted);
    }
    world.check_store();
}

#[test]
fn one_of_two_commands_in_one_file_is_taken_back_with_what_stands_on_it() {
    let world = World::new();
    world.file("f", "0\n");
    let mut one = Steps::start(
        &world,
        "a",
        &["echo a1 >> f; echo a > mine", "echo a2 >> f"],
    );
    let mut two = Steps::start(&world, "b", &["echo b1 >> f; echo b > theirs"]);
    one.step();
    two.step();
    two.ends_well();
    one.step();
    one.ends_well();
    let b = operations_of(&world, "b").remove(0);
    // An agent does not take another's work along by itself.
    let refused = json(&world, 1, &["--agent", "b", "undo", &b]);
    assert_eq!(refused["code"], "needs-word", "{refused}");
    assert_eq!(world.read("f"), "0\na1\nb1\na2\n");
    world.ok(&["undo", &b]);
    assert_eq!(world.read("f"), "0\n");
    assert!(!world.path("theirs").exists());
    world.ok(&["redo"]);
    assert_eq!(world.read("f"), "0\na1\nb1\na2\n");
    assert_eq!(world.read("theirs"), "b\n");
    world.check_store();
}

#[test]
fn commands_that_save_by_a_rename_remove_and_make_anew_keep_the_order() {
    let world = World::new();
    world.file("f", "1\n");
    world.file("g", "2\n");
    // The time of a directory in which both wrote is nobody's.
    let before = world.tree().without_directory_times();
    let mut one = Steps::start(
        &world,
        "a",
        &[
            "sed -i s/1/a/ f; rm g",
            "mkdir d; echo a > d/a",
            "rm -r d; echo a > g",
        ],
    );
    let mut two = Steps::start(
        &world,
        "b",
        &[
            "sed -i s/a/b/ f; echo b > g",
            "echo b > d/b; chmod 700 d",
            "true",
        ],
    );
    for _ in 0..3 {
        one.step();
        two.step();
    }
    one.ends_well();
    two.ends_well();
    let after = world.tree().without_times();
    assert_eq!(take_all_back(&world), 0, "{}", said(&world.run(&["log"])));
    let now = world.tree().without_directory_times();
    assert!(now == before, "{}", now.difference(&before));
    while world.run(&["redo"]).status.success() {}
    let now = world.tree().without_times();
    assert!(now == after, "{}", now.difference(&after));
    world.check_store();
}

#[test]
fn what_a_command_writes_by_a_file_that_it_has_open_is_shared_and_goes_by_force() {
    let world = World::new();
    world.file("f", "0\n");
    let mut one = Steps::start(&world, "a", &["exec 3>>f; echo a1 >&3", "echo a2 >&3"]);
    let mut two = Steps::start(&world, "b", &["echo b1 >> f"]);
    one.step();
    two.step();
    one.step();
    two.ends_well();
    one.ends_well();
    assert_eq!(world.read("f"), "0\na1\nb1\na2\n");
    // Nobody can tell who wrote what in between, and that is said.
    for agent in ["a", "b"] {
        let newest = operations_of(&world, agent).remove(0);
        let refused = json(&world, 1, &["undo", &newest]);
        assert_eq!(refused["code"], "conflict", "{refused}");
        assert_eq!(world.read("f"), "0\na1\nb1\na2\n");
    }
    assert!(take_all_back(&world) > 0);
    assert_eq!(world.read("f"), "0\n");
    world.check_store();
}

#[test]
fn a_file_of_several_names_that_two_commands_write_is_a_conflict_that_says_so() {
    let world = World::new();
    world.file("f", "0\n");
    std::fs::hard_link(world.path("f"), world.path("g")).unwrap();
    let mut one = Steps::start(&world, "a", &["echo a1 >> f", "true"]);
    let mut two = Steps::start(&world, "b", &["echo b1 >> g"]);
    one.step();
    two.step();
    two.ends_well();
    one.step();
    one.ends_well();
    let a = operations_of(&world, "a").remove(0);
    let refused = json(&world, 1, &["undo", &a]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    assert_eq!(world.read("f"), "0\na1\nb1\n");
    world.check_store();
}

#[test]
fn a_command_that_was_killed_is_settled_before_others_write_what_it_wrote() {
    let world = World::new();
    world.file("f", "0\n");
    let mut one = Steps::start(&world, "a", &["echo a1 >> f", "true"]);
    let mut two = Steps::start(&world, "b", &["echo b1 >> f"]);
    let mut three = Steps::start(&world, "c", &["echo c1 >> f"]);
    one.step();
    kill(one.watcher(), Signal::SIGKILL).unwrap();
    two.step();
    three.step();
    assert!(!one.end().status.success());
    two.ends_well();
    three.ends_well();
    assert_eq!(world.read("f"), "0\na1\nb1\nc1\n");
    assert_eq!(order(&world), "abc");
    for wanted in ["0\na1\nb1\n", "0\na1\n"] {
        world.ok(&["undo"]);
        assert_eq!(world.read("f"), wanted);
    }
    let a = operations_of(&world, "a").remove(0);
    world.ok(&["recover", "--rollback", &a]);
    assert_eq!(world.read("f"), "0\n");
}

#[test]
fn a_command_beside_one_whose_watcher_is_stopped_goes_on_and_says_so() {
    let world = World::new();
    world.file("f", "0\n");
    let mut one = Steps::start(&world, "a", &["echo a1 >> f", "true"]);
    one.step();
    let watcher = one.watcher();
    kill(watcher, Signal::SIGSTOP).unwrap();
    let output = world.run(&["run", "--", "sh", "-c", "echo b1 >> f; echo b > g"]);
    assert!(output.status.success(), "{}", said(&output));
    let told = format!("process {watcher}, which watches ");
    let rest = ", did not answer for ten seconds: where both wrote the same, each is somebody else to the other";
    let said = said(&output);
    assert!(said.contains(&told) && said.contains(rest), "{said}");
    kill(watcher, Signal::SIGCONT).unwrap();
    one.step();
    one.ends_well();
    assert_eq!(world.read("f"), "0\na1\nb1\n");
    let a = operations_of(&world, "a").remove(0);
    let refused = json(&world, 1, &["undo", &a]);
    assert_eq!(refused["code"], "conflict", "{refused}");
    world.check_store();
}

/// How often each of several commands writes the same few files, without a pause.
const ROUNDS: usize = 8;

#[test]
fn commands_that_all_write_the_same_files_end_and_can_be_taken_back() {
    let world = World::new();
    for name in ["f", "g", "h"] {
        world.file(name, "0\n");
    }
    let before = world.tree().without_times();
    let orders = [["f", "g", "h"], ["h", "g", "f"], ["g", "h", "f"]];
    let lines = orders.map(|[one, two, three]| {
        format!(
            "for i in $(seq {ROUNDS}); do echo $i >> {one}; sed -i s/1/x/ {two}; echo $i > {three}.n; mv {three}.n {three}; done"
        )
    });
    let agents = ["a", "b", "c"];
    let start = |(agent, line): (&&str, &String)| {
        let arguments = [
            "--agent",
            agent,
            "run",
            "--timeout",
            "300s",
            "--",
            "sh",
            "-c",
            line,
        ];
        world.spawn(&arguments)
    };
    let children: Vec<Child> = agents.iter().zip(&lines).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said = said(&output);
        assert!(!said.contains("did not answer"), "{said}");
        assert_ne!(output.status.code(), Some(124), "{said}");
    }
    take_all_back(&world);
    let now = world.tree().without_times();
    assert!(now == before, "{}", now.difference(&before));
    world.check_store();
}

#[test]
fn a_person_who_writes_a_database_between_two_writes_of_a_command_leaves_no_journal_beside_it() {
    let world = World::new();
    let sql = |line: &str| {
        let output = std::process::Command::new("sqlite3")
            .args(["s.db", line])
            .current_dir(world.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    sql("create table o(id integer primary key)");
    let insert = |id: u32| format!("sqlite3 s.db 'insert into o values({id})'");
    let running = Running::start(&world, &[], &insert(1), &insert(3));
    sql("insert into o values(2)");
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    let told = said(&output);
    assert!(!told.contains("s.db-journal"), "{told}");
    assert!(told.contains("it wrote there again after that"), "{told}");
    let run = newest(&world, "run");
    let output = world.run(&["undo", &run, "--partial"]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!(world.tree().names(), ["", "s.db"]);
    assert_eq!(sql("select id from o"), "1\n2\n");
    assert_eq!(sql("pragma integrity_check"), "ok\n");
}

#[test]
fn who_writes_a_new_file_as_soon_as_the_command_made_it_is_seen() {
    for _ in 0..5 {
        let world = World::new();
        let running = Running::start(&world, &[], "echo 6 > e", "echo 8 > e");
        world.file("e", "person\n");
        let output = running.go_on(&world);
        assert!(output.status.success(), "{}", said(&output));
        let refused = world.fails(1, &["undo"]);
        assert!(
            refused.contains("somebody else changed it while the command ran"),
            "{refused}"
        );
        let run = newest(&world, "run");
        world.run(&["undo", &run, "--partial"]);
        assert_eq!(world.read("e"), "person\n");
        world.check_store();
    }
}

#[test]
fn what_somebody_wrote_in_a_file_of_two_names_and_the_command_wrote_over_is_kept() {
    let world = World::new();
    world.file("f", "0\n");
    std::fs::hard_link(world.path("f"), world.path("l")).unwrap();
    let running = Running::start(&world, &[], "echo 1 > f", "echo 2 > f");
    world.file("f", "person\n");
    let output = running.go_on(&world);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(world.read("l"), "2\n");
    let refused = world.fails(1, &["undo"]);
    assert!(
        refused.contains("somebody else changed it while the command ran"),
        "{refused}"
    );
    let run = newest(&world, "run");
    world.run(&["undo", &run, "--partial"]);
    assert_eq!(
        (world.read("f"), world.read("l")),
        ("person\n".into(), "person\n".into())
    );
    world.ok(&["undo", "--force"]);
    assert_eq!(
        (world.read("f"), world.read("l")),
        ("0\n".into(), "0\n".into())
    );
    world.check_store();
}
