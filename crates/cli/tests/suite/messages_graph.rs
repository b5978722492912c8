//! What is said of the project's state graph, and of evidence.

use std::fs;

use crate::world::{Ran, World};

const CONTEXT: &str = r#"{"meta": {"protocol_version": "1.0.0", "schema_version": "1.0.0", "created_at": "2026-01-01T00:00:00.000Z"},
    "context_id": "550e8400-e29b-41d4-a716-446655440000", "root": {"domain": "shop", "environment": "test"},
    "title": "the shop", "status": "active"}"#;

/// Sees that everything is in what was said.
#[track_caller]
fn says(ran: &Ran, sentences: &[&str]) {
    let said = ran.to_string();
    for sentence in sentences {
        assert!(said.contains(sentence), "{sentence}\nis not in\n{said}");
    }
}

fn world() -> World {
    let other = CONTEXT.replace("the shop", "the store");
    World::new().file("c.json", CONTEXT).file("d.json", &other)
}

#[test]
fn what_an_update_of_the_graph_says() {
    let world = world();
    says(
        &world.cli(["graph", "import", "c.json", "-n"]),
        &["1 node would get a new version"],
    );
    says(&world.cli(["graph", "show"]), &[]);
    says(
        &world.cli(["graph", "import", "c.json"]),
        &["1 node of the graph updated"],
    );
    says(
        &world.cli(["graph", "import", "c.json"]),
        &["the graph is so already"],
    );
    says(
        &world.cli(["graph", "import", "d.json"]),
        &[
            "the graph was not updated",
            "is there in version 1, and nobody said that this is the one to follow",
            "see what is there now with `backout graph export`, put your change into that, and import it; or say with `--expect` which version you follow",
        ],
    );
    says(&world.cli(["graph", "show"]), &["the shop"]);
    world.did(["checkpoint", "then"]);
    says(
        &world.cli(["graph", "import", "d.json", "--expect", "1"]),
        &["1 node of the graph updated"],
    );
    says(
        &world.cli(["graph", "restore", "--to", "then"]),
        &[
            "the graph is as it was after record ",
            ": 1 node in a new version",
        ],
    );
    says(&world.cli(["graph", "show"]), &["the shop", "v3"]);
    says(
        &world.cli(["graph", "restore", "--to", "then"]),
        &["the graph is as it was after record ", " already"],
    );
    says(&world.cli(["graph", "check"]), &[": all is well"]);
}

#[test]
fn what_cannot_be_taken_into_the_graph_is_told() {
    let world = world().file("x", "not json").file("y", r#"{"a": 1}"#);
    says(
        &world.cli(["graph", "import", "x"]),
        &[
            "`x` is not JSON",
            "give JSON: an object, a list of objects, or what `graph export` writes",
        ],
    );
    says(
        &world.cli(["graph", "import", "y"]),
        &[
            "the graph was not updated",
            "see what is there with `backout graph show`",
        ],
    );
    world.put("z", &CONTEXT.replace("active", "asleep"));
    says(
        &world.cli(["graph", "import", "z"]),
        &[
            "the graph was not updated",
            "put the object right and try again",
        ],
    );
    says(&world.cli(["graph", "show"]), &[]);
}

#[test]
fn evidence_says_what_it_has_and_whether_it_holds() {
    let world = world();
    world.did(["graph", "import", "c.json"]);
    says(
        &world.cli(["export", "--format", "mplp", "out"]),
        &["evidence of ", ", up to record "],
    );
    says(
        &world.cli(["verify", "--evidence", "out"]),
        &["evidence of ", ", up to record "],
    );
    fs::write(world.path("out/more.txt"), "x").unwrap();
    says(
        &world.cli(["verify", "--evidence", "out"]),
        &["the evidence does not hold: 1 finding"],
    );
    says(
        &world.cli(["export", "--format", "mplp", "out"]),
        &[
            "could not make `out`",
            "name a directory that is not there yet",
        ],
    );
    says(
        &world.cli(["verify", "--evidence", "nowhere"]),
        &[
            "could not read `nowhere`",
            "name a directory that holds a whole pack",
        ],
    );
}
