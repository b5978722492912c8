//! Commands under `run` and `try` against the same commands bare: a build, a metadata storm, reading, starting.
//!
//! Each round runs every contender once, in a copy of the same tree of its own; medians are compared.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::durable::median;
use crate::process::{backout, run_well};
use crate::report::{Report, Row, say, write_section};
use crate::{Failure, root};

/// What a build makes of one source: the object, what lies between, and what it tells about it.
const FILES_PER_SOURCE: usize = 8;
const SOURCES: usize = 10_000 / FILES_PER_SOURCE;

/// One kind of work.
struct Work {
    name: &'static str,
    promise: f64,
    rounds: usize,
    /// Whether it happens in memory, so that only the processor counts.
    in_memory: bool,
    set_up: fn(&Path) -> Result<(), Failure>,
    line: &'static str,
    /// How long to wait after a round's files are gone: ext4 looks long for new inodes within five seconds of a removal,
    /// and whoever comes next would pay for that.
    pause: Duration,
}

/// How many files the small tree has: some in each of its directories.
const DIRECTORIES: usize = 44;
const FILES: usize = 4_333;

/// In memory, where only the processor counts.
const fn in_memory(
    name: &'static str,
    promise: f64,
    set_up: fn(&Path) -> Result<(), Failure>,
    line: &'static str,
) -> Work {
    Work {
        name,
        promise,
        rounds: 9,
        in_memory: true,
        set_up,
        line,
        pause: Duration::ZERO,
    }
}

const WORKS: [Work; 8] = [
    Work {
        name: "a build that writes 10 000 files (`make -j2`, C)",
        promise: 1.10,
        rounds: 3,
        in_memory: false,
        set_up: sources,
        line: "make -s -j2",
        pause: Duration::from_secs(6),
    },
    in_memory(
        "`cp -a` of 4 333 files, in memory",
        2.0,
        unpacked,
        "cp -a tree new",
    ),
    in_memory(
        "`tar x` of 4 333 files, in memory",
        2.0,
        archive,
        "tar xf tree.tar",
    ),
    in_memory(
        "`git clone` of 4 333 files, in memory",
        2.0,
        repository,
        "git clone -q repository new",
    ),
    in_memory(
        "`rm -rf` of 4 333 files, in memory",
        4.0,
        unpacked,
        "rm -rf tree",
    ),
    in_memory(
        "`sed -i` of 1 000 files by one process, in memory",
        2.5,
        listed,
        "xargs -n 1000 -a list sed -i s/a/b/",
    ),
    in_memory(
        "a metadata storm (untar 4 333 files, `sed -i` 1 000, `rm -rf`), in memory",
        1.8,
        listed_archive,
        "tar xf tree.tar && xargs -n 1000 -a list sed -i s/a/b/ && rm -rf tree",
    ),
    Work {
        name: "reading (`grep -r` over 4 333 files, ten times)",
        promise: 1.02,
        rounds: 9,
        in_memory: false,
        set_up: unpacked,
        line: "for i in 1 2 3 4 5 6 7 8 9 10; do grep -r nowhere tree; done; true",
        pause: Duration::ZERO,
    },
];

/// Measures and writes the section. Words choose works by name; then nothing is written.
pub(crate) fn measure(place: &Path, chosen: &[String]) -> Result<(), Failure> {
    let program = backout()?;
    let mut report = Report::default();
    let is_chosen = |name: &str| {
        let mut words = chosen.iter();
        chosen.is_empty() || words.any(|word| name.contains(word.as_str()))
    };
    for work in WORKS.into_iter().filter(|work| is_chosen(work.name)) {
        say(&format!("measuring {}", work.name));
        for row in compare(place, &program, &work)? {
            say(&format!("  {}: {}", row.work, row.measured));
            report.rows.push(row);
        }
    }
    if is_chosen("start") {
        report.rows.push(start_up(place, &program)?);
    }
    let text = report.to_markdown();
    say(&text);
    if !chosen.is_empty() {
        return Ok(());
    }
    let body = text.replace("`cargo xtask bench`", "`cargo xtask bench commands`");
    write_section("commands", &body)?;
    say(&format!(
        "written to {}",
        root().join("docs/benchmarks.md").display()
    ));
    Ok(())
}

fn compare(place: &Path, program: &Path, work: &Work) -> Result<Vec<Row>, Failure> {
    let memory = Path::new("/dev/shm");
    let home_of_all = if work.in_memory && memory.is_dir() {
        memory
    } else {
        place
    };
    let home = tempfile::Builder::new()
        .prefix("backout-bench-")
        .tempdir_in(home_of_all)?;
    let model = home.path().join("model");
    fs::create_dir(&model)?;
    (work.set_up)(&model)?;
    let ways: [&[&str]; 3] = [&[], &["run", "--"], &["try", "--discard", "--"]];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..work.rounds {
        for (way, times) in ways.iter().zip(&mut times) {
            let tree = home.path().join("tree");
            run_well(Command::new("cp").arg("-a").args([&model, &tree]))?;
            let mut command = if way.is_empty() {
                Command::new("sh")
            } else {
                Command::new(program)
            };
            if !way.is_empty() {
                command.args(*way).arg("sh");
            }
            command
                .args(["-c", work.line])
                .current_dir(&tree)
                .env("BACKOUT_STATE_DIR", home.path().join("state"));
            times.push(run_well(&mut command)?.time);
            fs::remove_dir_all(&tree)?;
            std::thread::sleep(work.pause);
        }
    }
    let [bare, run, tried] = times.map(|mut times| median(&mut times));
    let ratio = |time: Duration| time.as_secs_f64() / bare.as_secs_f64();
    let said = |time: Duration| format!("{:.2} x ({time:.0?} against {bare:.0?})", ratio(time));
    Ok(vec![
        Row {
            work: format!("`run`: {}", work.name),
            measured: said(run),
            promise: format!("<= {} x", work.promise),
            kept: Some(ratio(run) <= work.promise),
        },
        Row {
            work: format!("`try`: {}", work.name),
            measured: said(tried),
            promise: String::new(),
            kept: None,
        },
    ])
}

fn start_up(place: &Path, program: &Path) -> Result<Row, Failure> {
    let mut times = Vec::new();
    for _ in 0..60 {
        let mut command = Command::new(program);
        command
            .args(["run", "--", "true"])
            .env("BACKOUT_STATE_DIR", place.join("start"));
        times.push(run_well(&mut command)?.time);
    }
    let time = median(&mut times);
    Ok(Row {
        work: "`run -- true`, from start to end".to_owned(),
        measured: format!("{:.1} ms", time.as_secs_f64() * 1e3),
        promise: "<= 10 ms".to_owned(),
        kept: Some(time <= Duration::from_millis(10)),
    })
}

/// Sources for a compiler, and a makefile that asks for everything it can tell.
fn sources(place: &Path) -> Result<(), Failure> {
    let flags = "-c -O1 -save-temps=obj -MMD -fstack-usage -ftest-coverage -fdump-tree-optimized -fdump-rtl-final";
    let makefile = format!(
        "OBJECTS := $(patsubst %.c,out/%.o,$(wildcard *.c))\nall: $(OBJECTS)\nout/%.o: %.c\n\t@mkdir -p out\n\tcc {flags} -o $@ $<\n"
    );
    fs::write(place.join("Makefile"), makefile)?;
    for number in 0..SOURCES {
        let text = format!(
            "int f{number}(int a) {{ for (int i = 0; i < a; i++) a += i * {number}; return a; }}\n"
        );
        fs::write(place.join(format!("f{number}.c")), text)?;
    }
    Ok(())
}

fn tree(place: &Path) -> Result<(), Failure> {
    for file in 0..FILES {
        let inner = place.join(format!("tree/d{}", file % DIRECTORIES));
        if file < DIRECTORIES {
            fs::create_dir_all(&inner)?;
        }
        fs::write(
            inner.join(format!("f{file}")),
            "a line of text\n".repeat(100),
        )?;
    }
    Ok(())
}

fn unpacked(place: &Path) -> Result<(), Failure> {
    tree(place)
}

fn archive(place: &Path) -> Result<(), Failure> {
    tree(place)?;
    let mut tar = Command::new("tar");
    run_well(tar.args(["cf", "tree.tar", "tree"]).current_dir(place))?;
    fs::remove_dir_all(place.join("tree"))?;
    Ok(())
}

fn repository(place: &Path) -> Result<(), Failure> {
    let repository = place.join("repository");
    fs::create_dir(&repository)?;
    tree(&repository)?;
    let who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    for words in [
        &["init", "-q"][..],
        &["add", "-A"],
        &["commit", "-q", "-m", "tree"],
    ] {
        let mut git = Command::new("git");
        run_well(git.args(who).args(words).current_dir(&repository))?;
    }
    Ok(())
}

/// Names a thousand files of the tree.
fn list(place: &Path) -> Result<(), Failure> {
    let name = |file: usize| format!("tree/d{}/f{file}\n", file % DIRECTORIES);
    let names: String = (0..1_000).map(name).collect();
    fs::write(place.join("list"), names)?;
    Ok(())
}

fn listed(place: &Path) -> Result<(), Failure> {
    tree(place)?;
    list(place)
}

fn listed_archive(place: &Path) -> Result<(), Failure> {
    archive(place)?;
    list(place)
}
