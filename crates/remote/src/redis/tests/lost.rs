//! Connections that break at the worst moment, by a stranger between the driver and a real server.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use backout_model::ports::{Driver as _, How};
use backout_model::{Effect, OperationId};
use backout_testkit::driver::Harness as _;
use backout_testkit::world::{RedisServer, Reply};

use super::{World, kinds, request};
use crate::redis::{RedisFault, Server};

/// When a connection breaks that asks for `EXEC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server never reads it.
    Before,
    /// The server does it, and nobody hears of it.
    After,
}

/// Stands between a client and a server, and breaks the first connection that asks for `EXEC`.
struct Between {
    _directory: tempfile::TempDir,
    socket: PathBuf,
    /// Whether nobody is let through any more.
    is_closed: Arc<AtomicBool>,
}

impl Between {
    fn new(server: &RedisServer, cut: Cut, is_for_good: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("between");
        let listener = UnixListener::bind(&socket).unwrap();
        let (to, is_closed) = (server.socket(), Arc::new(AtomicBool::new(false)));
        let closed = Arc::clone(&is_closed);
        let has_cut = Arc::new(AtomicBool::new(false));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if closed.load(Ordering::SeqCst) {
                    continue;
                }
                let (Ok(server), has_cut) = (UnixStream::connect(&to), Arc::clone(&has_cut)) else {
                    continue;
                };
                let closed = Arc::clone(&closed);
                std::thread::spawn(move || {
                    // Nobody hears of the cut before the door is shut.
                    let kept = client.try_clone();
                    if pass(client, server, cut, &has_cut).is_none() && is_for_good {
                        closed.store(true, Ordering::SeqCst);
                    }
                    drop(kept);
                });
            }
        });
        Self {
            _directory: directory,
            socket,
            is_closed,
        }
    }

    fn server(&self) -> Server {
        Server::parse(&format!("unix://{}", self.socket.display())).unwrap()
    }
}

/// Passes on what both say, turn by turn; none if it cut them off.
fn pass(
    mut client: UnixStream,
    mut server: UnixStream,
    cut: Cut,
    has_cut: &AtomicBool,
) -> Option<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = client.read(&mut buffer).unwrap_or(0);
        if read == 0 {
            return Some(());
        }
        let asked = buffer[..read].to_vec();
        let is_exec = asked.windows(4).any(|word| word == b"EXEC");
        let is_cut = is_exec && !has_cut.swap(is_exec, Ordering::SeqCst);
        if is_cut && cut == Cut::Before {
            return None;
        }
        server.write_all(&asked).ok()?;
        let read = server.read(&mut buffer).unwrap_or(0);
        if is_cut || read == 0 {
            return None;
        }
        client.write_all(&buffer[..read]).ok()?;
    }
}

fn cut_off(
    cut: Cut,
    is_for_good: bool,
) -> (World, Between, Effect, backout_model::ports::DriverError) {
    let server = Arc::new(RedisServer::default());
    let world = World::new(
        &server,
        &["SET a 1", "RPUSH l x"],
        "INCR a\nRPUSH l y\nSET new 1",
    );
    let between = Between::new(&server, cut, is_for_good);
    let mut asked = request(&server, &world.asked);
    asked.server = between.server();
    let id = OperationId::from_bits(1);
    let prepared = world
        .driver
        .prepare(id, &asked, backout_model::Strategy::Transaction)
        .unwrap();
    let (recipe, completion) = (prepared.recipe.clone(), None);
    let error = world.driver.apply(world.arm(id, prepared)).unwrap_err();
    (world, between, Effect { recipe, completion }, error)
}

#[test]
fn a_connection_that_breaks_at_the_commit_leaves_nothing_behind() {
    for cut in [Cut::Before, Cut::After] {
        let (world, _between, _, error) = cut_off(cut, false);
        assert!(
            matches!(error.as_a(), Some(RedisFault::Away { .. })),
            "{cut:?}: {error:?}"
        );
        assert!(!error.fault().is_half_done(), "{cut:?}");
        assert_eq!(
            world.server.ask(&["GET", "a"]),
            Reply::Bytes(b"1".into()),
            "{cut:?}"
        );
        assert_eq!(world.snapshot(true).len(), 2, "{cut:?}");
    }
}

#[test]
fn a_server_that_is_gone_after_the_commit_is_in_doubt_until_it_is_back() {
    for (cut, value) in [(Cut::Before, "1"), (Cut::After, "2")] {
        let (world, between, effect, error) = cut_off(cut, true);
        assert!(
            matches!(error.as_a(), Some(RedisFault::Unknown(_))),
            "{cut:?}: {error:?}"
        );
        assert!(error.fault().is_half_done(), "{cut:?}");
        assert_eq!(
            world.server.ask(&["GET", "a"]),
            Reply::Bytes(value.into()),
            "{cut:?}"
        );
        between.is_closed.store(false, Ordering::SeqCst);
        let undo = world
            .driver
            .prepare_undo(OperationId::from_bits(2), &effect, How::unfinished());
        let undo = undo.unwrap();
        assert!(
            undo.outcomes.iter().all(|it| it.kind.is_taken_back()),
            "{:?}",
            kinds(&undo)
        );
        world.carry_out(2, undo.prepared);
        assert_eq!(
            world.server.ask(&["GET", "a"]),
            Reply::Bytes(b"1".into()),
            "{cut:?}"
        );
        assert_eq!(world.snapshot(true).len(), 2, "{cut:?}");
    }
}

#[test]
fn a_server_at_a_port_is_asked_in_the_database_that_the_url_names() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let server = RedisServer::with(&["--port", &port]);
    let mut asked = request(&server, "SET a 1");
    asked.server = Server::parse(&format!("redis://127.0.0.1:{port}/3")).unwrap();
    let world = World::new_beside(&Arc::new(server), "PING");
    let id = OperationId::from_bits(1);
    let prepared = world
        .driver
        .prepare(id, &asked, backout_model::Strategy::Transaction)
        .unwrap();
    let effect = world.carry_out(1, prepared);
    let targets = world.driver.outline(&effect).unwrap().targets;
    assert_eq!(
        targets[0].to_string(),
        format!("redis:localhost:{port}/3/a")
    );
    let mut client = world.server.client();
    client.ask(&["SELECT", "3"]);
    assert_eq!(client.ask(&["GET", "a"]), Reply::Bytes(b"1".into()));
    let undo = world.undo(2, &effect, backout_model::ports::OnConflict::Refuse);
    world.carry_out(2, undo.prepared);
    assert_eq!(client.ask(&["GET", "a"]), Reply::Nil);
}

#[test]
fn a_part_of_a_cluster_is_refused() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |it: &std::net::TcpListener| it.local_addr().unwrap().port().to_string();
    let (port, bus) = (port(&free), port(&other));
    drop((free, other));
    let server = RedisServer::with(&[
        "--port",
        &port,
        "--cluster-enabled",
        "yes",
        "--cluster-port",
        &bus,
    ]);
    let error = crate::redis::read_only(&request(&server, "GET a")).unwrap_err();
    assert_eq!(error.to_string(), "the server is a part of a cluster");
}
