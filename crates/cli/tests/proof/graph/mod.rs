//! The project's state graph and its evidence, by the real program, with validators that share no code with it.

mod evidence;
mod past;
mod seed_001;
mod stages;
mod state;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::world::World;

/// Where a script of these tests is.
fn script(name: &str) -> String {
    format!("{}/tests/proof/graph/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Where the schemas are.
fn schemas() -> String {
    format!("{}/../mplp/data/schemas/v2", env!("CARGO_MANIFEST_DIR"))
}

/// Debian's Python, which has Debian's packages.
const PYTHON: &str = "/usr/bin/python3";

/// Validates objects with Python's jsonschema; says how many there were, or what is wrong.
fn validated(pairs: &[(&str, &Value)]) -> Result<usize, String> {
    let mut child = Command::new(PYTHON)
        .args([script("validate.py"), schemas()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines = pairs.iter().map(|pair| json!(pair).to_string() + "\n");
    let lines: String = lines.collect();
    // One that fails early does not read to the end.
    let _read = input.write_all(lines.as_bytes());
    drop(input);
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let count = String::from_utf8(output.stdout).unwrap();
    Ok(count.trim().parse().unwrap())
}

/// Checks a pack with the script; gives what it counted, or what it said.
fn accepted(pack: &Path) -> Result<Value, String> {
    let output = Command::new(PYTHON)
        .arg(script("check_evidence.py"))
        .arg(pack)
        .output()
        .unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

/// An id that stands for a name.
fn id(number: u32) -> String {
    format!("550e8400-e29b-41d4-a716-{number:012x}")
}

fn meta() -> Value {
    json!({"protocol_version": "1.0.0", "schema_version": "2.0.0"})
}

fn context(status: &str) -> Value {
    json!({
        "meta": meta(), "context_id": id(1), "title": "The shop", "status": status,
        "root": {"domain": "shop", "environment": "test"},
    })
}

/// A plan of steps that each come after the one before.
fn plan(number: u32, status: &str, steps: &[(u32, &str)]) -> Value {
    let mut before: Option<u32> = None;
    let steps: Vec<Value> = steps
        .iter()
        .map(|(step, status)| {
            let after: Vec<String> = before.replace(*step).map(id).into_iter().collect();
            json!({
                "step_id": id(*step), "description": format!("step {step}"), "status": status,
                "dependencies": after, "agent_role": "coder",
            })
        })
        .collect();
    json!({
        "meta": meta(), "plan_id": id(number), "context_id": id(1), "title": "Sell more",
        "objective": "more", "status": status, "steps": steps,
    })
}

/// Takes objects into the graph.
fn import(world: &World, name: &str, objects: &Value, options: &[&str]) -> Result<Value, Value> {
    world.file(name, &objects.to_string());
    let mut line = vec!["--json", "graph", "import", name];
    line.extend(options);
    asked(world, &line)
}

/// Asks the program for JSON.
fn asked(world: &World, line: &[&str]) -> Result<Value, Value> {
    let output = world.run(line);
    if output.status.success() {
        return Ok(serde_json::from_slice(&output.stdout).unwrap());
    }
    let error = if output.stderr.is_empty() {
        &output.stdout
    } else {
        &output.stderr
    };
    Err(serde_json::from_slice(error).unwrap())
}
