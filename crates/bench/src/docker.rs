//! What Docker takes to keep what a command did and to go back to it: commit the container, remove it, run the next one.
//!
//! An engine that answers is used. Where none does and `dockerd` is here, one is begun for the measurement and ended after it:
//! without networks, with all its data below the directory of the measurement. It needs root.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::durable::median;
use crate::process::{Ran, run};

/// How often it is measured.
const ROUNDS: usize = 7;

/// How long a new engine may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Docker Engine that answers.
struct Docker {
    directory: PathBuf,
    /// Where ours is asked, and its process.
    own: Option<(String, Child)>,
}

impl Docker {
    /// Finds an engine, or begins one, or says why there is none.
    fn find(directory: &Path) -> Result<Self, String> {
        let mut docker = Self {
            directory: directory.to_path_buf(),
            own: None,
        };
        let Err(why) = docker.answers() else {
            return Ok(docker);
        };
        docker.own = Some(docker.begin().map_err(|_| why)?);
        let until = Instant::now() + PATIENCE;
        let mut why = docker.answers();
        while why.is_err() && Instant::now() < until {
            sleep(Duration::from_millis(200));
            why = docker.answers();
        }
        why.map(|()| docker)
    }

    fn begin(&self) -> Result<(String, Child), Failure> {
        let home = self.directory.join("docker");
        fs::create_dir(&home)?;
        let at = |name: &str| home.join(name).display().to_string();
        let socket = format!("unix://{}", at("socket"));
        let log = File::create(home.join("log"))?;
        let child = Command::new("dockerd")
            .args(["--bridge=none", "--iptables=false", "--ip6tables=false"])
            .args(["--ip-forward=false", "--data-root", &at("data")])
            .args(["--exec-root", &at("exec"), "-p", &at("pid"), "-H", &socket])
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok((socket, child))
    }

    fn run(&self, words: &[&str]) -> Result<Ran, Failure> {
        let mut docker = Command::new("docker");
        if let Some((socket, _)) = &self.own {
            docker.env("DOCKER_HOST", socket);
        }
        run(docker.args(words).current_dir(&self.directory))
    }

    fn answers(&self) -> Result<(), String> {
        match self.run(&["version", "--format", "{{.Server.Version}}"]) {
            Ok(ran) if ran.is_success => Ok(()),
            Ok(ran) => Err(ran.why()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        let Some((_, child)) = &mut self.own else {
            return;
        };
        // It ends what it began if it is asked to.
        let pid = child.id().to_string();
        let _asked = Command::new("kill").arg(pid).status();
        let _ended = child.wait();
    }
}

/// Measures one commit, removal and new container; the inner error says why that cannot be done here.
pub(crate) fn commit_and_recreate(directory: &Path) -> Result<Result<Duration, String>, Failure> {
    let docker = match Docker::find(directory) {
        Ok(docker) => docker,
        Err(why) => return Ok(Err(format!("no Docker Engine answers here ({why})"))),
    };
    // An image of nothing but a shell that is here already.
    let image = "mkdir -p image && cp /bin/busybox image/busybox && tar -C image -cf image.tar .";
    let made = run(Command::new("sh")
        .args(["-c", image])
        .current_dir(directory))?;
    let base = "backout-bench:base";
    let imported = docker.run(&["import", "image.tar", base])?;
    if let Some(failed) = [made, imported].iter().find(|ran| !ran.is_success) {
        return Ok(Err(format!("no image could be made ({})", failed.why())));
    }
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let container = "backout-bench";
        let began = docker.run(&["run", "--name", container, base, "/busybox", "true"])?;
        if !began.is_success {
            return Ok(Err(format!("no container could be run ({})", began.why())));
        }
        let start = Instant::now();
        docker.run(&["commit", container, "backout-bench:next"])?;
        docker.run(&["rm", "-f", container])?;
        docker.run(&["run", "--rm", "backout-bench:next", "/busybox", "false"])?;
        times.push(start.elapsed());
    }
    docker.run(&["rmi", "-f", "backout-bench:next", base])?;
    Ok(Ok(median(&mut times)))
}
