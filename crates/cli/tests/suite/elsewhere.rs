//! Targets that are in no file, named, chosen and shown like those that are: rows of the example's table.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use backout_driver_example::{PutRows, Rows, Table};
use backout_engine::{Context, Engine, Settings};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::schema::Schema;
use crate::world::{Ran, World};

/// A world with a table, and a program that knows its driver.
struct Here {
    world: World,
    table: Table,
    answers: bool,
}

impl Here {
    fn new() -> Self {
        let world = World::new();
        let table = Table::new(world.place("table"));
        let answers = false;
        Self {
            world,
            table,
            answers,
        }
    }

    /// Writes rows as one operation, in a task if one is named, and gives its short id.
    fn put(&self, task: Option<&str>, rows: &[(&str, &str)]) -> String {
        let mut engine = Engine::open(
            Settings::new(self.world.place("state")),
            backout_drivers::local,
        )
        .unwrap();
        engine
            .register(Arc::new(Rows::new(self.table.clone())))
            .unwrap();
        let task = task.map(|task| task.parse().unwrap());
        let engine = engine.for_caller(Context {
            task,
            ..Context::default()
        });
        let each = rows.iter();
        let rows = each.map(|(row, value)| ((*row).to_owned(), Some((*value).to_owned())));
        let finished = engine.write(&PutRows(rows.collect())).unwrap();
        finished.id.unwrap().short()
    }

    fn cli<const N: usize>(&self, arguments: [&str; N]) -> Ran {
        let mut command = self.world.command(&arguments);
        command.env("BACKOUT_TEST_ROWS", self.world.place("table"));
        if self.answers {
            command.env("BACKOUT_TEST_ROWS_ANSWER", "1");
        }
        self.world.run(&mut command)
    }

    /// Writes a file, in a task if one is named.
    fn file(&self, task: Option<&str>, name: &str, text: &str) {
        let world = &self.world;
        let ran = match task {
            Some(task) => world.piped(text.as_bytes(), ["--task", task, "write", name]),
            None => world.piped(text.as_bytes(), ["write", name]),
        };
        assert_eq!(ran.code, 0, "{ran}");
    }

    fn row(&self, name: &str) -> Option<String> {
        self.table.rows().unwrap().remove(name)
    }
}

/// Reads a reply, and holds it against the schema.
fn json(ran: &Ran) -> Value {
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    Schema::read().check("reply", &value);
    value
}

#[test]
fn a_row_is_listed_and_taken_back_by_its_name() {
    let here = Here::new();
    let (first, second) = (here.put(None, &[("a", "1")]), here.put(None, &[("b", "1")]));
    let listed = here.cli(["log", "rows:table/a"]).out;
    assert!(
        listed.contains(&first) && !listed.contains(&second),
        "{listed}"
    );
    let listed = here.cli(["log", "rows:table"]).out;
    assert!(
        listed.contains(&first) && listed.contains(&second),
        "{listed}"
    );
    let undone = here.cli(["undo", "rows:table/a"]);
    assert!(undone.out.contains(&format!("undid {first}")), "{undone}");
    assert!(
        undone
            .out
            .contains("may have been seen by whoever reads the table"),
        "{undone}"
    );
    assert_eq!((here.row("a"), here.row("b")), (None, Some("1".to_owned())));
    // A file that is there goes first; its path can always be written so that it is one.
    here.world.put("rows:table", "text");
    assert_eq!(
        here.cli(["log", "rows:table"]).out.matches(&second).count(),
        0
    );
}

#[test]
fn a_part_of_an_operation_is_chosen_by_the_names_of_rows() {
    let here = Here::new();
    let id = here.put(None, &[("a", "1"), ("b:c", "1"), ("d/e", "1")]);
    let undone = here.cli(["undo", &id, "--only", "rows:table/[a-b]*"]);
    assert_eq!(undone.code, 0, "{undone}");
    let left = |here: &Here| here.table.rows().unwrap().into_keys().collect::<Vec<_>>();
    assert_eq!(left(&here), ["d/e"]);
    here.cli(["redo", &id, "--exclude", "rows:table/a"]);
    assert_eq!(left(&here), ["b:c", "d/e"]);
    // An odd name is typed as it is shown, or as it is.
    let planned = here.cli(["undo", "-n", "rows:table/b:c"]).out;
    assert!(planned.contains("rows:table/b%3Ac"), "{planned}");
    assert_eq!(here.cli(["undo", "rows:table/b%3Ac"]).code, 0);
    assert_eq!(left(&here), ["d/e"]);
    assert_eq!(here.cli(["undo", "rows:table/d/e"]).code, 0);
    assert_eq!(left(&here), Vec::<String>::new());
}

#[test]
fn the_newest_is_found_in_no_directory_too_and_said_to_be() {
    let here = Here::new();
    here.file(None, "f", "x");
    let row = here.put(None, &[("a", "1")]);
    let planned = here.cli(["undo", "-n"]).out;
    assert!(
        planned.contains("(the newest below . or outside of files)"),
        "{planned}"
    );
    let undone = here.cli(["undo"]).out;
    assert!(undone.contains(&format!("undid {row}")), "{undone}");
    assert!(
        undone.contains("(the newest below . or outside of files)"),
        "{undone}"
    );
    assert_eq!(here.row("a"), None);
    let redone = here.cli(["redo"]);
    assert!(
        redone
            .out
            .contains("(by the newest undo below . or outside of files)"),
        "{redone}"
    );
    assert_eq!(here.row("a").as_deref(), Some("1"));
    // What is newer in this directory goes first, and then it is said as always.
    here.file(None, "f", "y");
    let undone = here.cli(["undo"]).out;
    assert!(undone.contains("(the newest below .)"), "{undone}");
    assert_eq!(
        (here.world.text("f").as_str(), here.row("a").as_deref()),
        ("x", Some("1"))
    );
    assert!(here.cli(["status"]).out.contains("put rows a"));
}

#[test]
fn a_name_that_stands_for_nothing_says_for_what_it_could() {
    let here = Here::new();
    here.put(None, &[("a", "1")]);
    insta::assert_snapshot!(here.cli(["undo", "rows:table/b"]), @r"
    error: there is nothing to undo at `rows:table/b`
      why: it is no operation, no path that is there or was written, and no other target that was written
      next: name an operation or a target as `backout log` shows it, or a path
    [exit code 1]
    ");
    let id = here.put(None, &[("a", "2")]);
    let refused = here.cli(["restore", "rows:table/a", "--from", &id]);
    assert_eq!((refused.code, here.row("a").as_deref()), (1, Some("2")));
    let short = id.get(..8).unwrap_or(&id);
    for said in [
        "error: `rows:table/a` was not restored",
        "why: the driver `rows` restores nothing by itself",
        &format!(
            "take back what the operation did to it with `backout undo {short} --only rows:table/a`"
        ),
    ] {
        assert!(refused.err.contains(said), "{refused}");
    }
}

#[test]
fn values_are_shown_as_a_table_and_whole_where_that_is_asked_for() {
    let here = Here::new();
    let long = "x".repeat(60);
    here.put(None, &[("a", "1"), ("b", "old")]);
    let id = here.put(None, &[("a", "2"), ("b", &long), ("c", "new")]);
    here.table.put("a", Some("2"), Some("mine")).unwrap();
    let shown = here.cli(["diff", &id]);
    insta::assert_snapshot!(shown, @r"
      target        before     after                                      now
      rows:table/a  1          2                                          mine
      rows:table/b  old        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…  as after
      rows:table/c  not there  new                                        as after
      longer values are cut: see all of them with `-v`, or with `--json`
    ");
    assert!(here.cli(["-v", "diff", &id]).out.contains(&long));
    let told = json(&here.cli(["--json", "diff", &id]));
    let value = &told["files"][1]["value"];
    assert_eq!(
        (&value["before"], &value["after"]),
        (&"old".into(), &long.as_str().into())
    );
    assert!(
        here.cli(["show", &id])
            .out
            .contains("rows:table/a  1          2")
    );
    let planned = here.cli(["undo", "-n", "--diff", "--partial", &id]).out;
    for line in [
        "would change back:\n  target        now",
        "rows:table/a  mine",
        "somebody else changed since:\n  target        left there  now\n  rows:table/a  2           mine",
    ] {
        assert!(planned.contains(line), "{line}: {planned}");
    }
    let told = json(&here.cli(["--json", "undo", "-n", "--diff", "--partial", &id]));
    assert_eq!(told["diff"]["back"][1]["value"]["before"], long.as_str());
}

#[test]
fn a_mixed_plan_says_which_steps_restore_and_which_compensate() {
    let mut here = Here::new();
    here.cli(["task", "begin", "t"]);
    here.file(Some("t"), "f", "x");
    here.put(Some("t"), &[("a", "1")]);
    here.file(Some("t"), "g", "x");
    here.put(Some("t"), &[("a", "2")]);
    here.answers = true;
    let planned = here.cli(["rollback", "-n", "t"]).out;
    let places = ["put rows a", "g  ", "put rows a", "f  "].map(|it| planned.find(it));
    assert!(places.iter().all(Option::is_some), "{planned}");
    for said in [
        "rows:table/a  will be compensated\n",
        "rows:table/a  will be compensated, after a step above\n",
        "may have been seen by whoever reads the table\n",
        "g  will be as before",
    ] {
        assert!(planned.contains(said), "{said}: {planned}");
    }
    let told = json(&here.cli(["--json", "rollback", "-n", "t"]));
    let of = |steps: &Value, field: &str| -> Vec<Value> {
        let steps = steps.as_array().unwrap();
        steps.iter().map(|step| step[field].clone()).collect()
    };
    let guarantees = ["compensating", "exact", "compensating", "exact"];
    assert_eq!(of(&told["steps"], "guarantee"), guarantees);
    let seen = of(&told["steps"], "seen_by_others");
    assert_eq!(seen[0], "whoever reads the table");
    assert_eq!(seen[1], Value::Null);
    let done = here.cli(["--json", "rollback", "t"]);
    let told = json(&done);
    assert_eq!(of(&told["steps"], "guarantee"), guarantees, "{done}");
    let outcomes = of(&told["steps"], "outcomes");
    assert_eq!(outcomes[0][0]["outcome"], "compensated");
    assert_eq!(outcomes[1][0]["outcome"], "restored");
    assert!(!here.world.has("f") && !here.world.has("g") && here.row("a").is_none());
}

#[test]
fn an_undo_of_many_rows_stops_at_ctrl_c_and_is_put_back() {
    let here = Here::new();
    let rows: Vec<String> = (0..200).map(|number| format!("r{number:03}")).collect();
    let rows: Vec<(&str, &str)> = rows.iter().map(|row| (row.as_str(), "1")).collect();
    let id = here.put(None, &rows);
    let before = here.table.rows().unwrap();
    let mut command = here.world.command(&["undo", &id]);
    command.env("BACKOUT_TEST_ROWS", here.world.place("table"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    for _ in 0..10_000 {
        if here.table.rows().unwrap().len() < rows.len() {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let pid = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ran = here.world.ran(&child.wait_with_output().unwrap());
    if ran.code == 0 {
        // It was faster: then all of it is done.
        assert!(here.table.rows().unwrap().is_empty());
        return;
    }
    assert_eq!(ran.code, 130, "{ran}");
    assert!(ran.err.contains("it was interrupted"), "{ran}");
    assert_eq!(here.table.rows().unwrap(), before);
    assert_eq!(here.cli(["undo", &id]).code, 0);
    assert!(here.table.rows().unwrap().is_empty());
}
