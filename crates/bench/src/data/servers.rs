//! The servers of the measurement, from Debian's packages. They end with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Ours, Store};
use crate::Failure;
use crate::process::run_well;

/// Who runs a server that refuses to be root.
const NOBODY: u32 = 65_534;

/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_mins(1);

/// A `PostgreSQL`.
pub(super) struct Postgres {
    place: PathBuf,
    programs: PathBuf,
    ours: Ours,
}

impl Postgres {
    pub(super) fn start(place: &Path, ours: Ours) -> Result<Self, Failure> {
        let place = place.join("postgres");
        fs::create_dir(&place)?;
        let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")?
            .filter_map(|it| Some(it.ok()?.path()))
            .collect();
        versions.sort();
        let programs = versions
            .pop()
            .ok_or("PostgreSQL is not installed")?
            .join("bin");
        if rustix::process::geteuid().is_root() {
            chown(&place, Some(NOBODY), Some(NOBODY))?;
            // The server has to get to its own directory.
            let parent = place.parent().ok_or("the directory has no parent")?;
            fs::set_permissions(parent, fs::Permissions::from_mode(0o755))?;
        }
        let server = Self {
            place,
            programs,
            ours,
        };
        let data = server.place.join("data");
        run_well(
            server
                .own("initdb")
                .arg("-D")
                .arg(&data)
                .args(["-U", "postgres", "-A", "trust"]),
        )?;
        let options = format!("-k {} -c listen_addresses=", server.place.display());
        run_well(server.own("pg_ctl").arg("-D").arg(&data).args([
            "-w",
            "-l",
            "/dev/null",
            "-o",
            &options,
            "start",
        ]))?;
        Ok(server)
    }

    /// Gives a program of the server's own, as the user who runs it.
    fn own(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(&self.place);
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn url(&self) -> String {
        format!(
            "postgres://postgres@/postgres?host={}",
            self.place.display()
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.place.join("data");
        let _stopped =
            run_well(
                self.own("pg_ctl")
                    .arg("-D")
                    .arg(data)
                    .args(["-m", "immediate", "stop"]),
            );
    }
}

impl Store for Postgres {
    fn name(&self) -> &'static str {
        "PostgreSQL"
    }

    fn client(&self, script: &Path) -> Command {
        let mut command = Command::new(self.programs.join("psql"));
        command
            .arg("-h")
            .arg(&self.place)
            .args([
                "-U",
                "postgres",
                "-d",
                "postgres",
                "-qAt",
                "-v",
                "ON_ERROR_STOP=1",
                "-f",
            ])
            .arg(script);
        command
    }

    fn captured(&self, script: &Path) -> Result<Command, Failure> {
        Ok(self.client(script))
    }

    fn capture(&self, is_on: bool) -> Result<(), Failure> {
        enrolled(&self.url(), &self.ours, is_on)
    }

    fn address(&self) -> String {
        NAME.to_owned()
    }

    fn ours(&self) -> Command {
        self.ours.command()
    }
}

/// What the databases are enrolled under.
const NAME: &str = "bench";

/// Enrolls a database, or takes that back.
fn enrolled(url: &str, ours: &Ours, is_on: bool) -> Result<(), Failure> {
    let words = if is_on {
        vec!["db", "enroll", url, "--name", NAME]
    } else {
        vec!["db", "unenroll", NAME, "--discard"]
    };
    run_well(ours.command().args(words))?;
    Ok(())
}

/// A `MariaDB`.
pub(super) struct MariaDb {
    place: PathBuf,
    ours: Ours,
    running: Child,
}

impl MariaDb {
    pub(super) fn start(place: &Path, ours: Ours) -> Result<Self, Failure> {
        let place = place.join("mariadb");
        fs::create_dir(&place)?;
        let data = format!("--datadir={}", place.join("data").display());
        let user: &[&str] = if rustix::process::geteuid().is_root() {
            &["--user=root"]
        } else {
            &[]
        };
        run_well(
            Command::new("mariadb-install-db")
                .args([
                    "--no-defaults",
                    &data,
                    "--auth-root-authentication-method=normal",
                    "--skip-test-db",
                ])
                .args(user),
        )?;
        let running = Command::new("/usr/sbin/mariadbd")
            .args(["--no-defaults", &data, "--skip-networking"])
            .arg(format!("--socket={}", place.join("s").display()))
            .arg(format!("--tmpdir={}", place.display()))
            .args(user)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let server = Self {
            place,
            ours,
            running,
        };
        let until = Instant::now() + PATIENCE;
        while run_well(
            server
                .program()
                .args(["-e", "CREATE DATABASE IF NOT EXISTS bench"]),
        )
        .is_err()
        {
            if Instant::now() > until {
                return Err("MariaDB does not come up".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    fn program(&self) -> Command {
        let mut command = Command::new("mariadb");
        command
            .arg("--no-defaults")
            .arg(format!("--socket={}", self.place.join("s").display()))
            .args(["--user=root", "-N", "-B"]);
        command
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        let _killed = self.running.kill();
        let _waited = self.running.wait();
    }
}

impl Store for MariaDb {
    fn name(&self) -> &'static str {
        "MariaDB"
    }

    fn client(&self, script: &Path) -> Command {
        let mut command = self.program();
        let read = format!("source {}", script.display());
        command.args(["-D", "bench", "-e", &read]);
        command
    }

    fn captured(&self, script: &Path) -> Result<Command, Failure> {
        Ok(self.client(script))
    }

    fn capture(&self, is_on: bool) -> Result<(), Failure> {
        let url = format!(
            "mysql://root@localhost/bench?socket={}",
            self.place.join("s").display()
        );
        enrolled(&url, &self.ours, is_on)
    }

    fn address(&self) -> String {
        NAME.to_owned()
    }

    fn ours(&self) -> Command {
        self.ours.command()
    }
}
