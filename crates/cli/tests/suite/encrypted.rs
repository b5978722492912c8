//! Servers that are asked over TCP, with a password and a certificate that only we trust.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mysql_server as mariadb;
use crate::postgres_server as postgres;
use crate::world::{Ran, World};

/// Makes an authority of our own and a certificate for `localhost`, which it vouches for: `ca.pem`, `cert.pem`, `key.pem`.
fn certify(place: &Path) {
    for line in [
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ours -keyout ca.key -out ca.pem",
        "req -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout key.pem -out asked.pem",
        "x509 -req -in asked.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out cert.pem",
    ] {
        let mut openssl = Command::new("openssl");
        openssl.args(line.split(' ')).current_dir(place);
        let done = openssl.output().expect("openssl is installed");
        assert!(done.status.success(), "{done:?}");
    }
}

/// Finds a port that nobody listens on.
fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn ran(world: &World, words: &[&str], trusts: Option<(&str, &PathBuf)>) -> Ran {
    let mut command = world.command(words);
    if let Some((variable, file)) = trusts {
        command.env(variable, file);
    }
    world.run(&mut command)
}

#[test]
fn a_postgres_is_reached_with_scram_and_a_certificate_of_its_own() {
    let (world, server) = (World::new(), postgres::Server::start());
    let place = tempfile::tempdir().unwrap();
    certify(place.path());
    let port = free_port();
    server.psql("postgres", "CREATE TABLE t (id int PRIMARY KEY)");
    server.psql(
        "postgres",
        "CREATE ROLE ann SUPERUSER LOGIN PASSWORD 'right'",
    );
    server.encrypt(place.path(), port);
    let ca = place.path().join("ca.pem");
    let trusts = Some(("PGSSLROOTCERT", &ca));
    let url = |password: &str| {
        format!("postgres://ann:{password}@localhost:{port}/postgres?sslmode=require")
    };
    let refused = ran(&world, &["db", "enroll", &url("wrong")], trusts);
    assert!(
        refused.err.contains("password authentication failed"),
        "{refused}"
    );
    let nobody = place.path().join("nobody.pem");
    std::fs::write(&nobody, "").unwrap();
    let refused = ran(
        &world,
        &["db", "enroll", &url("right")],
        Some(("PGSSLROOTCERT", &nobody)),
    );
    assert!(refused.err.contains("certificate"), "{refused}");
    let enrolled = ran(
        &world,
        &["db", "enroll", &url("right"), "--name", "far"],
        trusts,
    );
    assert_eq!(enrolled.code, 0, "{enrolled}");
    let written = ran(
        &world,
        &["sql", "--db", &url("right"), "INSERT INTO t VALUES (1)"],
        trusts,
    );
    assert_eq!(written.code, 0, "{written}");
    let refused = ran(&world, &["undo"], trusts);
    assert!(
        refused
            .err
            .contains("there is none in PGPASSWORD and none that fits in ~/.pgpass"),
        "{refused}"
    );
    let mut undo = world.command(&["undo"]);
    let undone = world.run(undo.env("PGSSLROOTCERT", &ca).env("PGPASSWORD", "right"));
    assert_eq!(undone.code, 0, "{undone}");
    assert_eq!(server.psql("postgres", "SELECT count(*) FROM t"), "0\n");
}

#[test]
fn a_mariadb_is_reached_with_a_password_and_a_certificate_of_its_own() {
    let (world, mut server) = (World::new(), mariadb::Server::start());
    let place = tempfile::tempdir().unwrap();
    certify(place.path());
    let port = free_port();
    server.sql(
        "mysql",
        "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY)",
    );
    server.sql("mysql", "CREATE USER ann IDENTIFIED BY 'right' REQUIRE SSL; GRANT ALL ON *.* TO ann WITH GRANT OPTION");
    server.down();
    let file = |name: &str| place.path().join(name).display().to_string();
    server.up_with(&[
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--ssl-cert={}", file("cert.pem")),
        format!("--ssl-key={}", file("key.pem")),
    ]);
    let ca = place.path().join("ca.pem");
    let trusts = Some(("MYSQL_SSL_CA", &ca));
    let url =
        |password: &str, more: &str| format!("mysql://ann:{password}@localhost:{port}/shop{more}");
    for (url, why) in [
        (url("wrong", "?ssl=true"), "Access denied"),
        (url("right", ""), "Access denied"),
    ] {
        let refused = ran(&world, &["db", "enroll", &url], trusts);
        assert!(refused.code != 0 && refused.err.contains(why), "{refused}");
    }
    let nobody = place.path().join("nobody.pem");
    std::fs::write(&nobody, "").unwrap();
    let refused = ran(
        &world,
        &["db", "enroll", &url("right", "?ssl=true")],
        Some(("MYSQL_SSL_CA", &nobody)),
    );
    assert!(refused.err.contains("certificate"), "{refused}");
    let enrolled = ran(
        &world,
        &["db", "enroll", &url("right", "?ssl=true")],
        trusts,
    );
    assert_eq!(enrolled.code, 0, "{enrolled}");
    let written = ran(
        &world,
        &[
            "sql",
            "--db",
            &url("right", "?ssl=true"),
            "INSERT INTO t VALUES (1)",
        ],
        trusts,
    );
    assert_eq!(written.code, 0, "{written}");
    let mut undo = world.command(&["undo"]);
    let undone = world.run(undo.env("MYSQL_SSL_CA", &ca).env("MYSQL_PWD", "right"));
    assert_eq!(undone.code, 0, "{undone}");
    assert_eq!(server.sql("shop", "SELECT COUNT(*) FROM t"), "0\n");
}
