//! What can be asked, and what comes back.

use serde_json::{Value, json};

use crate::world::{World, request};

fn id_of(answer: &Value) -> String {
    answer["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_write_is_shown_previewed_undone_and_brought_back() {
    let world = World::new();
    std::fs::write(world.path("a"), "before\n").unwrap();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let written = server.post(&token, "/v1/command", &world.write("a", "after\n"));
    let id = id_of(&written.is(200).json());
    assert_eq!(world.read("a"), "after\n");

    let list = server.get(&token, "/v1/operations").json();
    assert_eq!(list["operations"][0]["id"], id.as_str());
    assert_eq!(list["next"], Value::Null);
    let of = |rest: &str| format!("/v1/operations/{id}{rest}");
    assert_eq!(server.get(&token, &of("")).json()["reply"], "shown");
    let diff = server.get(&token, &of("/diff")).json();
    assert!(
        diff["files"][0]["text"]
            .as_str()
            .unwrap()
            .contains("-before")
    );
    let path = world.path("a").display().to_string();
    let side = server.get(&token, &of(&format!("/content?side=before&path={path}")));
    assert_eq!(side.is(200).body, b"before\n");
    assert!(
        side.head.contains("application/octet-stream"),
        "{}",
        side.head
    );

    let plan = server.get(&token, &of("/undo")).json();
    assert_eq!(plan["reply"], "plan");
    assert!(
        plan["diff"]["back"][0]["text"]
            .as_str()
            .unwrap()
            .contains("+before")
    );
    assert_eq!(world.read("a"), "after\n", "a preview changes nothing");
    let undone = server.post(&token, &of("/undo"), &json!({}));
    assert_eq!(undone.is(200).json()["reply"], "undone");
    assert_eq!(world.read("a"), "before\n");
    server.post(&token, &of("/redo"), &json!({})).is(200);
    assert_eq!(world.read("a"), "after\n");
}

#[test]
fn an_undo_that_conflicts_says_so_and_can_be_forced_or_narrowed() {
    let world = World::new();
    std::fs::write(world.path("a"), "before\n").unwrap();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let id = id_of(
        &server
            .post(&token, "/v1/command", &world.write("a", "after\n"))
            .json(),
    );
    std::fs::write(world.path("a"), "somebody else\n").unwrap();
    let undo = format!("/v1/operations/{id}/undo");
    server.post(&token, &undo, &json!({})).code(409, "conflict");
    server
        .post(&token, &undo, &json!({"only": ["/nowhere"]}))
        .is(409);
    server
        .post(&token, &undo, &json!({"merge": true, "force": true}))
        .code(400, "usage");
    server
        .post(&token, &undo, &json!({"fore": true}))
        .code(400, "usage");
    assert_eq!(world.read("a"), "somebody else\n");
    server.post(&token, &undo, &json!({"force": true})).is(200);
    assert_eq!(world.read("a"), "before\n");
}

#[test]
fn lists_are_paged_filtered_and_searched() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    for number in 0..7 {
        let name = if number == 3 { "needle" } else { "hay" };
        let body = world.write(&format!("{name}-{number}"), "x");
        server.post(&token, "/v1/command", &body).is(200);
    }
    let (mut before, mut seen) = (String::new(), Vec::new());
    for _ in 0..10 {
        let page = server
            .get(&token, &format!("/v1/operations?limit=3{before}"))
            .json();
        let ids = page["operations"].as_array().unwrap();
        seen.extend(ids.iter().map(|it| it["id"].as_str().unwrap().to_owned()));
        match page["next"].as_u64() {
            Some(next) => before = format!("&before={next}"),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7);
    let found = server.get(&token, "/v1/operations?q=NEEDLE").json();
    assert_eq!(found["operations"].as_array().unwrap().len(), 1);
    let path = world.path("hay-1").display().to_string();
    let at = server
        .get(&token, &format!("/v1/operations?at={path}&verb=write"))
        .json();
    assert_eq!(at["operations"].as_array().unwrap().len(), 1);
    for wrong in [
        "limit=0",
        "limit=501",
        "verb=dance",
        "nonsense=1",
        "before=x",
        "limit=1&limit=2",
    ] {
        server
            .get(&token, &format!("/v1/operations?{wrong}"))
            .code(400, "usage");
    }
    let graph = server.get(&token, "/v1/graph?limit=5").json();
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 5);
    assert!(graph["next"].is_u64());
}

#[test]
fn every_route_of_the_document_is_there_and_no_other() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let document = server.send("GET", "/openapi.json", "", None).json();
    let kept = include_str!("../../../../docs/schema/openapi.json");
    assert_eq!(document, serde_json::from_str::<Value>(kept).unwrap());
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            if path == "/v1/events" {
                continue;
            }
            let path = path.replace("{id}", "ffff");
            let body = (method == "post").then(|| json!({"unknown": 1}));
            let answer = server.ask(&token, &method.to_uppercase(), &path, body.as_ref());
            assert_ne!(answer.status, 405, "{path}");
            if !answer.head.contains("text/plain") && !answer.body.is_empty() {
                assert_ne!(answer.json()["code"], "unknown-route", "{path}");
            }
            asked += 1;
        }
    }
    assert!(asked > 30, "{asked}");
    server.get(&token, "/v1/nothing").code(404, "unknown-route");
    server.get(&token, "/mcp").code(404, "unknown-route");
    server
        .ask(&token, "PUT", "/v1/status", Some(&json!({})))
        .is(405);
}

#[test]
fn metrics_count_what_happened() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let id = id_of(
        &server
            .post(&token, "/v1/command", &world.write("a", "x"))
            .json(),
    );
    server
        .post(&token, &format!("/v1/operations/{id}/undo"), &json!({}))
        .is(200);
    let answer = server.get(&token, "/metrics");
    let text = answer.is(200).text();
    for line in [
        "backout_operations_total{verb=\"write\",status=\"committed\"} 1",
        "backout_operations_total{verb=\"undo\",status=\"committed\"} 1",
        "backout_undo_targets_total{outcome=\"restored\"} 1",
        "backout_operations{status=\"undone\"} 1",
        "backout_arm_seconds_count 2",
        "backout_arm_syncs_total 2",
        "backout_pending 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_command_runs_in_a_process_of_its_own_and_its_output_is_passed_on() {
    let world = World::new();
    std::fs::write(world.path("a"), "before\n").unwrap();
    let (server, token) = (world.serve(&[]), world.token(&["agent", "--agent", "bob"]));
    let script = "echo said; echo complained >&2; echo after > a";
    let body = json!({"words": ["sh", "-c", script], "directory": world.path("")});
    let answer = server.post(&token, "/v1/runs", &body);
    let text = answer.is(200).text();
    assert!(
        text.contains(r#"data: {"stream":"stdout","text":"said\n"}"#),
        "{text}"
    );
    assert!(text.contains(r#""text":"complained\n""#), "{text}");
    let end = text
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap();
    let end: Value = serde_json::from_str(end).unwrap();
    assert_eq!(end["reply"], "ran", "{text}");
    assert_eq!(world.read("a"), "after\n");
    let id = id_of(&end);
    let shown = server.get(&token, &format!("/v1/operations/{id}")).json();
    assert_eq!(shown["operation"]["agent"], "bob");
    server
        .post(&token, &format!("/v1/operations/{id}/undo"), &json!({}))
        .is(200);
    assert_eq!(world.read("a"), "before\n");
    let long =
        json!({"words": ["sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"], "directory": "/"});
    let text = server.post(&token, "/v1/runs", &long).text();
    assert!(
        text.contains("event: cut") && text.len() < 2_000_000,
        "{}",
        text.len()
    );
    server
        .post(&token, "/v1/runs", &json!({"words": [], "directory": "/"}))
        .code(400, "usage");
    server
        .post(
            &token,
            "/v1/runs",
            &json!({"words": ["x"], "directory": "a"}),
        )
        .code(400, "usage");
}

#[test]
fn what_a_page_needs_is_served_without_data_and_with_strict_headers() {
    let world = World::new();
    let server = world.serve(&[]);
    let answer = server.raw(&request(
        "GET",
        "/enter",
        &format!("Host: {}\r\n", server.address),
        None,
    ));
    let head = answer.is(200).head.to_lowercase();
    for wanted in [
        "content-security-policy: default-src 'none'",
        "x-frame-options: deny",
        "nosniff",
        "no-referrer",
    ] {
        assert!(head.contains(wanted), "{head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    server.send("GET", "/healthz", "", None).is(200);
}

#[test]
fn drift_is_decided_by_what_is_named_and_ignored_by_what_is_a_pattern() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    for name in ["a", "b"] {
        let write = world.write(name, "1\n");
        server.post(&token, "/v1/command", &write).is(200);
        std::fs::write(world.path(name), "2\n").unwrap();
    }
    let looked = server.post(&token, "/v1/drift/look", &json!({"targets": []}));
    assert_eq!(looked.is(200).json()["open"].as_array().unwrap().len(), 2);
    for act in ["accept", "restore", "merge"] {
        let path = format!("/v1/drift/{act}");
        let refused = server.post(&token, &path, &json!({"targets": []}));
        let said = refused.code(400, "usage").json();
        assert_eq!(said["why"][0], "nothing was named");
        let next = said["next"][0].to_string();
        assert!(next.contains("list what has drifted with"), "{next}");
    }
    for (pattern, why) in [
        ("", "a pattern must not be empty"),
        ("[", "unclosed character class"),
        ("*.log", "it does not begin with a `/`"),
    ] {
        let body = json!({"pattern": pattern});
        let refused = server.post(&token, "/v1/drift/ignore", &body);
        let said = refused.code(400, "usage").json();
        assert!(said["why"][0].as_str().unwrap().contains(why), "{said}");
    }
    let a = world.path("a").display().to_string();
    let b = world.path("b").display().to_string();
    std::fs::remove_file(world.path("b")).unwrap();
    server
        .post(&token, "/v1/drift/look", &json!({"targets": []}))
        .is(200);
    let merged = server.post(&token, "/v1/drift/merge", &json!({"targets": [a, b]}));
    assert_eq!(merged.is(409).json()["code"], "partial");
    assert_eq!(world.read("a"), "2\n");
}
