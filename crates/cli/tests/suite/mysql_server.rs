//! A real `MariaDB` for one test: started in a data directory of its own, on a socket of its own.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// What the server says when it can be asked.
const READY: &str = "ready for connections";

/// A server, which ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    directory: TempDir,
    running: Option<Child>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = TempDir::with_prefix("my").unwrap();
        let copied = Command::new("cp")
            .arg("-a")
            .args([template(), directory.path().join("data")])
            .status();
        assert!(copied.unwrap().success());
        let mut server = Self {
            directory,
            running: None,
        };
        server.up();
        server
    }

    /// Starts it, or starts it again.
    pub(crate) fn up(&mut self) {
        self.up_with(&["--skip-networking".to_owned()]);
    }

    /// Starts it with more than a socket.
    pub(crate) fn up_with(&mut self, words: &[String]) {
        let mut command = daemon(&self.directory.path().join("data"));
        let mut child = command
            .arg(format!("--socket={}", self.socket().display()))
            // When it starts, it removes what other servers have there.
            .arg(format!("--tmpdir={}", self.directory.path().display()))
            .args(words)
            .arg("--innodb-flush-log-at-trx-commit=0")
            .args(["--innodb-buffer-pool-size=16M", "--local-infile=1"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("MariaDB is installed");
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut lines = said.lines().map_while(Result::ok);
        let is_up = lines.by_ref().any(|line| line.contains(READY));
        assert!(is_up, "the server ended");
        // Whoever says something needs somebody who listens.
        std::thread::spawn(move || lines.for_each(drop));
        self.running = Some(child);
    }

    /// Stops it at once, as a crash would.
    pub(crate) fn down(&mut self) {
        if let Some(mut child) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Gives the socket that it listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("s")
    }

    /// Gives the URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        let socket = self.socket();
        format!(
            "mysql://root@localhost/{database}?socket={}",
            socket.display()
        )
    }

    /// Gives a program of the server's own.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.socket().display()))
            .args(["--user=root", "--default-character-set=utf8mb4"]);
        command
    }

    /// Gives the server's own client, about to run something.
    pub(crate) fn client(&self, database: &str, sql: &str) -> Command {
        let mut command = self.program("mariadb");
        command.args(["-N", "-B", "-D", database, "-e", sql]);
        command
    }

    /// Runs statements as another client.
    #[track_caller]
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let done = self.client(database, sql).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{sql}: {said}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Writes the tables and rows of a database down, and what belongs to them, but not what is ours.
    pub(crate) fn dump(&self, database: &str) -> String {
        self.dump_with(database, &["--skip-triggers"])
    }

    /// Writes a database down.
    pub(crate) fn dump_with(&self, database: &str, words: &[&str]) -> String {
        let done = self
            .program("mariadb-dump")
            .args([
                "--skip-comments",
                "--hex-blob",
                "--order-by-primary",
                "--routines",
            ])
            .args(words)
            .arg(database)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        // Numbers that were drawn stay drawn.
        let lines = text
            .lines()
            .map(|line| match line.split_once(" AUTO_INCREMENT=") {
                Some((before, after)) => {
                    let rest = after.split_once(' ').map_or("", |(_, rest)| rest);
                    format!("{before} {rest}")
                }
                None => line.to_owned(),
            });
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.down();
    }
}

fn daemon(data: &Path) -> Command {
    let place = [
        "/usr/sbin/mariadbd",
        "/usr/bin/mariadbd",
        "/usr/libexec/mariadbd",
    ];
    let found = place.iter().find(|it| Path::new(it).exists());
    let mut command = Command::new(found.expect("MariaDB is installed"));
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", data.display()))
        .args(["--innodb-log-file-size=4M", "--aria-log-file-size=8M"]);
    if rustix::process::geteuid().is_root() {
        command.arg("--user=root");
    }
    command
}

/// Makes the data directory that all others are copies of, once.
fn template() -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let made = place.join("mariadb-template");
    if made.exists() {
        return made;
    }
    let directory = TempDir::new_in(place).unwrap();
    let own = directory.path().join("data");
    let mut install = Command::new("mariadb-install-db");
    install
        .arg("--no-defaults")
        .arg(format!("--datadir={}", own.display()))
        .args(["--auth-root-authentication-method=normal", "--skip-test-db"])
        .args(["--innodb-log-file-size=4M", "--skip-name-resolve"]);
    if rustix::process::geteuid().is_root() {
        install.arg("--user=root");
    }
    let done = install.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    // Somebody else may have been faster.
    let _renamed = fs::rename(&own, &made);
    made
}
