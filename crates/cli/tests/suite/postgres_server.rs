//! A real `PostgreSQL` for one test: started from a copy of a data directory that is made once, on a socket of its own.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Who runs the server if we are root: it refuses to be root itself.
const NOBODY: u32 = 65_534;

/// A server, which ends with the test.
#[derive(Debug)]
pub(crate) struct Server {
    directory: TempDir,
    programs: PathBuf,
}

impl Server {
    pub(crate) fn start() -> Self {
        let programs = programs();
        let template = template(&programs);
        let directory = TempDir::with_prefix("pg").unwrap();
        let data = directory.path().join("data");
        let copied = Command::new("cp")
            .arg("-a")
            .args([&template, &data])
            .status();
        assert!(copied.unwrap().success());
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let server = Self {
            directory,
            programs,
        };
        server.up();
        server
    }

    /// Starts it, or starts it again.
    pub(crate) fn up(&self) {
        let options = format!(
            "-k {} -c listen_addresses=",
            self.directory.path().display()
        );
        // Nothing here outlives the machine.
        let options =
            format!("{options} -c fsync=off -c shared_buffers=16MB -c max_prepared_transactions=4");
        self.control(&["-w", "-l", "/dev/null", "-o", &options, "start"]);
    }

    /// Lets it listen on a port, too, where it wants a password and is encrypted with `cert.pem` and `key.pem`.
    pub(crate) fn encrypt(&self, certificates: &Path, port: u16) {
        let data = self.directory.path().join("data");
        for name in ["cert.pem", "key.pem"] {
            let to = data.join(name);
            fs::copy(certificates.join(name), &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
            if rustix::process::geteuid().is_root() {
                chown(&to, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        fs::write(data.join("pg_hba.conf"), rules).unwrap();
        self.down();
        let socket = self.directory.path().display();
        let options = format!(
            "-k {socket} -c listen_addresses=127.0.0.1 -p {port} -c fsync=off -c ssl=on -c ssl_cert_file=cert.pem -c ssl_key_file=key.pem"
        );
        self.control(&["-w", "-l", "/dev/null", "-o", &options, "start"]);
        // Its own clients look for the socket of the usual port.
        let usual = self.directory.path().join(".s.PGSQL.5432");
        let _removed = fs::remove_file(&usual);
        let own = self.directory.path().join(format!(".s.PGSQL.{port}"));
        std::os::unix::fs::symlink(own, usual).unwrap();
    }

    /// Stops it at once, as a crash would.
    pub(crate) fn down(&self) {
        self.control(&["-m", "immediate", "stop"]);
    }

    fn control(&self, words: &[&str]) {
        let mut command = unprivileged(&self.programs.join("pg_ctl"));
        let data = self.directory.path().join("data");
        let done = command.arg("-D").arg(data).args(words).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    /// Gives the socket that it listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join(".s.PGSQL.5432")
    }

    /// Gives the URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        let place = self.directory.path().display();
        format!("postgres://postgres:s3cret@/{database}?host={place}")
    }

    /// Gives a program of the server's own, for a database.
    pub(crate) fn program(&self, name: &str, database: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command
            .arg("-h")
            .arg(self.directory.path())
            .args(["-U", "postgres", "-d", database]);
        command
    }

    /// Gives the words of a `psql` that runs something.
    pub(crate) fn psql_words(&self, database: &str, sql: &str) -> Vec<String> {
        let psql = self.programs.join("psql").display().to_string();
        let place = self.directory.path().display().to_string();
        let words = [
            &psql,
            "-h",
            &place,
            "-U",
            "postgres",
            "-d",
            database,
            "-qAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-c",
            sql,
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Runs statements as another client.
    #[track_caller]
    pub(crate) fn psql(&self, database: &str, sql: &str) -> String {
        let mut command = self.program("psql", database);
        let done = command
            .args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql])
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{sql}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    }

    /// Writes a whole database down.
    pub(crate) fn dump(&self, database: &str) -> String {
        let done: Output = self
            .program("pg_dump", database)
            .args(["--exclude-schema=backout*"])
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        // A key that is another one each time.
        let is_fixed =
            |line: &&str| !line.starts_with("\\restrict") && !line.starts_with("\\unrestrict");
        text.lines().filter(is_fixed).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut command = unprivileged(&self.programs.join("pg_ctl"));
        let data = self.directory.path().join("data");
        let _stopped = command
            .arg("-D")
            .arg(data)
            .args(["-m", "immediate", "stop"])
            .output();
    }
}

/// Finds the programs of the server.
fn programs() -> PathBuf {
    let all = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
    let all = all.map(|entry| entry.unwrap().path().join("bin"));
    all.filter(|path| path.join("initdb").exists())
        .max()
        .expect("initdb is there")
}

/// Makes the data directory that all others are copies of, once.
fn template(programs: &Path) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let made = place.join("postgres-template");
    if made.exists() {
        return made;
    }
    let directory = TempDir::with_prefix("pg").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let data = directory.path().join("data");
    let mut initdb = unprivileged(&programs.join("initdb"));
    let words = [
        "-U",
        "postgres",
        "-A",
        "trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
        "-D",
    ];
    let done = initdb.args(words).arg(&data).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let own = place.join(format!("postgres-template-{}", std::process::id()));
    let copied = Command::new("cp").arg("-a").args([&data, &own]).status();
    assert!(copied.unwrap().success());
    // Somebody else may have been faster.
    if fs::rename(&own, &made).is_err() {
        fs::remove_dir_all(&own).unwrap();
    }
    made
}

fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}
