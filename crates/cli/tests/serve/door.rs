//! Who gets in, and with what: tokens, the socket, sessions, other pages, other hosts, too much of anything.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::world::{World, read_answer, request};

#[test]
fn nobody_gets_in_without_a_token_and_a_revoked_one_is_none() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["viewer"]));
    server
        .send("GET", "/v1/status", "", None)
        .code(401, "unauthenticated");
    server
        .get("backout_wrong", "/v1/status")
        .code(401, "unauthenticated");
    server
        .send("GET", "/v1/status", "Authorization: Basic eDp5\r\n", None)
        .is(401);
    server.get(&token, "/v1/status").is(200);
    for query in [
        format!("token={token}"),
        format!("q={token}"),
        "code=1".to_owned(),
    ] {
        let answer = server.get(&token, &format!("/v1/operations?{query}"));
        answer.code(400, "usage");
    }
    let kept = std::fs::read_to_string(world.state().join("serve/tokens.json")).unwrap();
    assert!(!kept.contains(&token), "only its digest is kept");
    let listed = world.succeeds(&["serve", "token", "list"]);
    let id = listed.split(' ').next().unwrap();
    world.succeeds(&["serve", "token", "revoke", id]);
    server
        .get(&token, "/v1/status")
        .code(401, "unauthenticated");
}

#[test]
fn the_socket_is_for_the_same_user_and_a_token_makes_it_less() {
    let world = World::new();
    let server = world.serve(&[]);
    let me = server.ask_socket("GET", "/v1/me", None).json();
    assert_eq!(me["role"], "operator");
    let mode = world
        .state()
        .join("serve/socket")
        .metadata()
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let mode = world
        .state()
        .join("serve")
        .metadata()
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

#[test]
fn another_name_for_our_address_is_refused() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let port = server.address.rsplit(':').next().unwrap();
    let authorization = format!("Authorization: Bearer {token}\r\n");
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1:1",
        "127.0.0.1",
        "",
    ] {
        let headers = format!("Host: {host}\r\n{authorization}");
        let answer = server.raw(&request("GET", "/v1/status", &headers, None));
        answer.code(421, "forbidden");
        let answer = server.raw(&request("GET", "/", &format!("Host: {host}\r\n"), None));
        answer.is(421);
    }
    let headers = format!("Host: localhost:{port}\r\n{authorization}");
    server
        .raw(&request("GET", "/v1/status", &headers, None))
        .is(200);
}

#[test]
fn a_page_without_cookies_remembers_its_session_and_is_held_to_the_same() {
    let world = World::new();
    let server = world.serve(&[]);
    let link = world.succeeds(&["ui", "--no-open"]);
    let (_, code) = link.trim().split_once("/enter#").unwrap();
    let code = json!({"code": code});
    let entered = server.send("POST", "/v1/session/bearer", "", Some(&code));
    assert!(!entered.is(200).head.to_lowercase().contains("set-cookie"));
    let secret = entered.json()["bearer"].as_str().unwrap().to_owned();
    for path in ["/v1/session", "/v1/session/bearer"] {
        let again = server.send("POST", path, "", Some(&code));
        again.code(401, "unauthenticated");
    }
    server.get(&secret, "/v1/me").is(200);
    let port = server.address.rsplit(':').next().unwrap();
    let cookie = format!("Cookie: backout_{port}={secret}\r\n");
    server.send("GET", "/v1/me", &cookie, None).is(401);
    let written = world.write("a", "x");
    server
        .post(&secret, "/v1/command", &written)
        .code(403, "forbidden");
    let send = |origin: &str| {
        let headers = format!("Authorization: Bearer {secret}\r\nOrigin: {origin}\r\n");
        server.send("POST", "/v1/command", &headers, Some(&written))
    };
    send("http://evil.example").code(403, "forbidden");
    assert!(!world.path("a").exists());
    let ours = format!("http://{}", server.address);
    send(&ours).is(200);
    assert_eq!(world.read("a"), "x");
    let headers = format!("Authorization: Bearer {secret}\r\nOrigin: {ours}\r\n");
    server.send("DELETE", "/v1/session", &headers, None).is(204);
    server.get(&secret, "/v1/me").code(401, "unauthenticated");
}

#[test]
fn a_page_from_elsewhere_gets_nowhere_and_ours_does() {
    let world = World::new();
    let server = world.serve(&[]);
    let link = world.succeeds(&["ui", "--no-open"]);
    let (url, code) = link.trim().split_once("/enter#").unwrap();
    assert_eq!(
        url,
        format!("http://{}", server.address),
        "the running server is found"
    );
    let entered = server.send("POST", "/v1/session", "", Some(&json!({"code": code})));
    let head = entered.is(204).head.clone();
    let cookie = head.lines().find_map(|line| {
        line.to_lowercase()
            .starts_with("set-cookie: ")
            .then(|| line[12..].to_owned())
    });
    let cookie = cookie.unwrap();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(word), "{cookie}");
    }
    let again = server.send("POST", "/v1/session", "", Some(&json!({"code": code})));
    again.code(401, "unauthenticated");
    let cookie = format!("Cookie: other=1; {}\r\n", cookie.split(';').next().unwrap());
    server.send("GET", "/v1/me", &cookie, None).is(200);
    let written = world.write("a", "x");
    let send = |more: &str| {
        server.send(
            "POST",
            "/v1/command",
            &format!("{cookie}{more}"),
            Some(&written),
        )
    };
    send("").code(403, "forbidden");
    send("Origin: http://evil.example\r\n").code(403, "forbidden");
    send("Origin: null\r\n").code(403, "forbidden");
    send("Sec-Fetch-Site: cross-site\r\n").code(403, "forbidden");
    assert!(!world.path("a").exists());
    let headers = format!("{cookie}Origin: http://{}\r\n", server.address);
    let body = written.to_string();
    let host = format!(
        "Host: {}\r\n{headers}Content-Type: text/plain\r\nContent-Length: {}\r\n",
        server.address,
        body.len()
    );
    let mut plain = request("POST", "/v1/command", &host, None);
    plain.extend(body.bytes());
    server.raw(&plain).code(415, "usage");
    server
        .send("POST", "/v1/command", &headers, Some(&written))
        .is(200);
    assert_eq!(world.read("a"), "x");
    server.send("DELETE", "/v1/session", &headers, None).is(204);
    server
        .send("GET", "/v1/me", &cookie, None)
        .code(401, "unauthenticated");
}

#[test]
fn an_agents_own_process_gets_no_link() {
    let world = World::new();
    let _server = world.serve(&[]);
    let mut command = world.command(&["ui", "--no-open"]);
    let refused = command.env("BACKOUT_AGENT", "bob").output().unwrap();
    // The environment of whoever asks names the agent, and so it is one.
    assert!(!refused.status.success(), "{refused:?}");
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("agent"),
        "{refused:?}"
    );
}

#[test]
fn what_is_too_large_too_deep_or_no_json_is_refused_by_name() {
    let world = World::new();
    let (server, token) = (world.serve(&[]), world.token(&["operator"]));
    let post = |body: &[u8], length: usize| {
        let headers = format!(
            "Host: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n",
            server.address
        );
        let mut stream = server.connect();
        stream
            .write_all(&request("POST", "/v1/command", &headers, None))
            .unwrap();
        // The server may hang up before all of it is sent: that is what is wanted.
        let mut sent = 0;
        while sent < length {
            let some = &body[..body.len().min(length - sent)];
            match stream.write(some) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        (read_answer(stream), sent)
    };
    let (answer, sent) = post(&vec![b' '; 1 << 20], 1 << 30);
    answer.code(413, "too-large");
    assert!(sent < 1 << 29, "most of it was never sent: {sent}");
    let deep = "[".repeat(100_000);
    post(deep.as_bytes(), deep.len()).0.code(400, "usage");
    for wrong in [
        "{",
        "nonsense",
        "[]",
        "{\"command\": {\"command\": \"dance\"}}",
        "\u{0}",
    ] {
        post(wrong.as_bytes(), wrong.len()).0.code(400, "usage");
    }
    let long = format!("X-Long: {}\r\n", "a".repeat(100_000));
    assert_eq!(server.send("GET", "/healthz", &long, None).status, 431);
    let garbage = server.raw(b"\x16\x03\x01 nonsense\r\n\r\n");
    assert_eq!(garbage.status, 400);
    server.get(&token, "/v1/status").is(200);
}

#[test]
fn no_other_address_is_taken_without_tls_and_tokens() {
    let world = World::new();
    let refused = |words: &[&str]| {
        let output = world.run(words);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&["serve", "--listen", "0.0.0.0:0"]);
    assert!(said.contains("TLS"), "{said}");
    let (certificate, key) = (world.scratch("cert.pem"), world.scratch("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let tls = [
        "--json",
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        certificate,
        "--tls-key",
        key,
    ];
    let said = refused(&tls);
    assert!(said.contains("token"), "{said}");
    let token = world.token(&["viewer"]);
    let server = world.serve_with(&tls);
    let port = server.address.rsplit(':').next().unwrap();
    let asked = Command::new("curl")
        .args(["-sS", "--noproxy", "*", "--cacert", certificate, "-H"])
        .arg(format!("Authorization: Bearer {token}"))
        .arg(format!("https://localhost:{port}/v1/me"))
        .output()
        .unwrap();
    let said = String::from_utf8(asked.stdout).unwrap();
    assert!(
        said.contains("\"role\":\"viewer\""),
        "{said} {}",
        String::from_utf8_lossy(&asked.stderr)
    );
}
