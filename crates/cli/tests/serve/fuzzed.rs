//! The API against its own document: `schemathesis` from `PyPI` sends what the document allows and what it does not, and compares.

use std::path::{Path, PathBuf};
use std::process::Command;

use backout_testkit::python_with;

use crate::world::World;

const PACKAGE: &str = "schemathesis";

/// Installs it once, below the target directory.
fn installed() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE);
    python_with(&home, &[PACKAGE]).join(PACKAGE)
}

#[test]
fn what_the_document_says_holds_for_whatever_is_sent() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.succeeds(&["write", name, "--text", "x"]);
    }
    world.succeeds(&["undo"]);
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    // Streams never end, and a command that is run may do anything.
    let left_out = "/v1/(events|runs)";
    let output = Command::new(installed())
        .current_dir(world.path(""))
        .env("NO_PROXY", "*")
        .args(["run", "--max-examples", "12", "--workers", "1", "--request-timeout", "60"])
        .args(["--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"])
        .args(["--exclude-path-regex", left_out, "--generation-deterministic"])
        .args(["--phases", "examples,coverage,fuzzing", "--no-color"])
        .arg("-H")
        .arg(format!("Authorization: Bearer {token}"))
        .arg("--url")
        .arg(format!("http://{}", server.address))
        .arg(format!("http://{}/openapi.json", server.address))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    server.get(&token, "/v1/status").is(200);
    world.succeeds(&["verify"]);
}
