//! The suites: where each comes from, how it is run, and where its results are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::results::{of_git, of_posix, of_python};
use super::{Ground, Results, Way, source, told};
use crate::apt;
use crate::run::{Step, cargo, run_all, say};

/// What can be run both ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    /// pjdfstest: what POSIX promises of each call.
    Posix,
    /// The tests of Python's own library that have to do with files and processes.
    Python,
    Coreutils,
    Git,
}

const PYTHON: &str = "/usr/bin/python3";
const PYTHON_TESTS: [&str; 24] = [
    "test_os",
    "test_shutil",
    "test_pathlib",
    "test_tempfile",
    "test_tarfile",
    "test_zipfile",
    "test_glob",
    "test_posix",
    "test_mmap",
    "test_fcntl",
    "test_subprocess",
    "test_stat",
    "test_fileio",
    "test_io",
    "test_file",
    "test_filecmp",
    "test_fileinput",
    "test_dbm",
    "test_mailbox",
    "test_shelve",
    "test_zipimport",
    "test_posixpath",
    "test_largefile",
    "test_import",
];

/// The directories of coreutils' tests that write files.
const COREUTILS_TESTS: [&str; 15] = [
    "chgrp", "chmod", "chown", "cp", "dd", "du", "install", "ln", "ls", "mkdir", "mv", "readlink",
    "rm", "rmdir", "touch",
];

/// The beginnings of the names of git's tests that write a working tree, an index or a store.
const GIT_TESTS: [&str; 12] = [
    "t0000", "t0001", "t0008", "t100", "t140", "t150", "t20", "t300", "t360", "t530", "t710",
    "t730",
];

impl Suite {
    pub(super) const ALL: [Self; 4] = [Self::Posix, Self::Python, Self::Coreutils, Self::Git];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Python => "python",
            Self::Coreutils => "coreutils",
            Self::Git => "git",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.name() == name)
    }

    /// Fetches and builds what it needs, if that is not there.
    pub(super) fn prepare(self, ground: &Ground) -> Result<(), String> {
        let home = &ground.home;
        match self {
            Self::Posix => {
                if home.join("bin/pjdfstest").exists() {
                    return Ok(());
                }
                apt::install(&["libacl1-dev"])?;
                let mut install = cargo();
                install
                    .args([
                        "install",
                        "--quiet",
                        "--locked",
                        "pjdfstest",
                        "--version",
                        "0.2.2",
                    ])
                    .arg("--root")
                    .arg(home);
                run_all(vec![Step::new("pjdfstest", &mut install)])
            }
            Self::Python => {
                if python_says("import test.support").is_ok() {
                    return Ok(());
                }
                let version = python_says("import sys; print('%d.%d' % sys.version_info[:2])")?;
                apt::install(&[&format!("libpython{version}-testsuite")])
            }
            Self::Coreutils => {
                let place = source::of_package("coreutils", home)?;
                if place.join("src/ls").exists() {
                    return Ok(());
                }
                built(
                    &place,
                    "FORCE_UNSAFE_CONFIGURE=1 ./configure --quiet --disable-nls CFLAGS=-O1 && make -s -j2",
                )
            }
            Self::Git => {
                apt::install_if_missing("/usr/include/zlib.h", "zlib1g-dev")?;
                let place = source::of_package("git", home)?;
                if place.join("git").exists() {
                    return Ok(());
                }
                let without =
                    "NO_CURL=1 NO_EXPAT=1 NO_GETTEXT=1 NO_TCLTK=1 NO_OPENSSL=1 NO_PYTHON=1";
                built(&place, &format!("make -s -j2 CFLAGS=-O1 {without}"))
            }
        }
    }

    /// Runs it and reads how each test ended. That some fail is no failure: the two ways are compared.
    pub(super) fn run(self, ground: &Ground, way: Way) -> Result<Results, String> {
        let home = &ground.home;
        match self {
            Self::Posix => posix(ground, way),
            Self::Python => {
                let report = home.join("python.xml");
                let mut tests = ground.command(way, PYTHON, home);
                tests.args(["-m", "test", "--timeout", "600", "--junit-xml"]);
                tests.arg(&report).args(PYTHON_TESTS);
                output(&mut tests, &log(home, self, way))?;
                let text = fs::read_to_string(&report).map_err(told(&report))?;
                Ok(of_python(&text))
            }
            Self::Coreutils => coreutils(ground, way),
            Self::Git => git(ground, way),
        }
    }
}

/// Where the output of a suite goes.
fn log(home: &Path, suite: Suite, way: Way) -> PathBuf {
    home.join(format!("{}-{}.log", suite.name(), way.name()))
}

fn python_says(program: &str) -> Result<String, String> {
    let output = Command::new(PYTHON).args(["-c", program]).output();
    let output = output.map_err(told(Path::new(PYTHON)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn built(place: &Path, line: &str) -> Result<(), String> {
    say(&format!("== building in {}", place.display()));
    let status = Command::new("sh")
        .args(["-c", line])
        .current_dir(place)
        .status();
    let status = status.map_err(told(place))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{line}` failed in {} ({status})", place.display()))
    }
}

/// Runs a command with all that it prints in a file, and gives that.
fn output(command: &mut Command, log: &Path) -> Result<String, String> {
    let file = fs::File::create(log).map_err(told(log))?;
    let second = file.try_clone().map_err(told(log))?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(second)
        .status();
    status.map_err(told(log))?;
    let bytes = fs::read(log).map_err(told(log))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// On a file system of its own, since some tests mount it anew, with another beside it.
fn posix(ground: &Ground, way: Way) -> Result<Results, String> {
    const SETTINGS: &str = "[features]\nposix_fallocate = {}\nrename_ctime = {}\nutime_now = {}\nutimensat = {}\n\
        [settings]\nnaptime = 0.01\nallow_remount = true\n[dummy_auth]\n\
        entries = [[\"nobody\", \"nogroup\"], [\"daemon\", \"daemon\"]]\n";
    let home = ground.home.join("posix");
    let (place, beside) = (home.join("place"), home.join("beside"));
    for path in [&place, &beside] {
        fs::create_dir_all(path).map_err(told(path))?;
    }
    let settings = home.join("settings.toml");
    fs::write(&settings, SETTINGS).map_err(told(&settings))?;
    let image = home.join("image");
    let line = format!(
        "truncate -s 256M {0} && mkfs.ext4 -q -F {0} && mount -o loop {0} {1} && mount -t tmpfs none {2} && chmod 755 {1} {2}",
        image.display(),
        place.display(),
        beside.display()
    );
    built(&home, &line)?;
    let program = ground.home.join("bin/pjdfstest");
    let mut tests = ground.command(way, &program.display().to_string(), &home);
    tests.arg("-c").arg(&settings).arg("-p").arg(&place);
    tests.arg("-s").arg(&beside).env("RUST_BACKTRACE", "0");
    let text = output(&mut tests, &log(&ground.home, Suite::Posix, way));
    let gone = format!(
        "umount -l {}; umount -l {}",
        place.display(),
        beside.display()
    );
    built(&home, &gone)?;
    Ok(of_posix(&text?))
}

fn coreutils(ground: &Ground, way: Way) -> Result<Results, String> {
    let place = source::of_package("coreutils", &ground.home)?;
    let scripts = format!(
        "ls {}",
        COREUTILS_TESTS
            .map(|name| format!("tests/{name}/*.sh tests/{name}/*.pl"))
            .join(" ")
    );
    let listed = Command::new("sh")
        .args(["-c", &scripts])
        .current_dir(&place)
        .output();
    let listed = listed.map_err(told(&place))?.stdout;
    let listed = String::from_utf8_lossy(&listed);
    let scripts: Vec<&str> = listed.split_whitespace().collect();
    let mut tests = ground.command(way, "make", &place);
    tests.args(["-k", "check", "SUBDIRS=.", "RUN_EXPENSIVE_TESTS=no"]);
    tests.arg(format!("TESTS={}", scripts.join(" ")));
    output(&mut tests, &log(&ground.home, Suite::Coreutils, way))?;
    let mut results = Results::new();
    for script in scripts {
        let base = script.trim_end_matches(".sh").trim_end_matches(".pl");
        let result = place.join(format!("{base}.trs"));
        let text = fs::read_to_string(&result).unwrap_or_default();
        let end = text
            .lines()
            .find_map(|line| line.strip_prefix(":test-result: "));
        results.insert(base.to_owned(), end.unwrap_or("not run").to_owned());
        let _old = fs::remove_file(&result);
    }
    Ok(results)
}

fn git(ground: &Ground, way: Way) -> Result<Results, String> {
    let place = source::of_package("git", &ground.home)?.join("t");
    let entries = fs::read_dir(&place).map_err(told(&place))?;
    let names = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_chosen = |name: &String| {
        let is_script = Path::new(name).extension().is_some_and(|end| end == "sh");
        is_script && GIT_TESTS.iter().any(|start| name.starts_with(start))
    };
    let mut scripts: Vec<String> = names.filter(is_chosen).collect();
    scripts.sort();
    let mut results = Results::new();
    for script in scripts {
        let trash = ground.home.join("trash");
        let mut shell = ground.command(way, "sh", &place);
        shell
            .arg(&script)
            .arg(format!("--root={}", trash.display()));
        let text = output(&mut shell, &log(&ground.home, Suite::Git, way))?;
        results.extend(of_git(script.trim_end_matches(".sh"), &text));
        let _gone = fs::remove_dir_all(&trash);
        let _gone = fs::remove_dir_all(ground.home.join("state"));
    }
    Ok(results)
}
