//! Commands under `run` and `try` against the same commands bare: a build, a metadata storm, reading, starting.
//!
//! Each round runs every contender once, in a copy of the same tree of its own; medians are compared.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

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

const WORKS: [Work; 3] = [
    Work {
        name: "a build that writes 10 000 files (`make -j2`, C)",
        promise: 1.25,
        rounds: 3,
        in_memory: false,
        set_up: sources,
        line: "make -s -j2",
        pause: Duration::from_secs(6),
    },
    Work {
        name: "a metadata storm (untar 5 000 files, `sed -i` 1 000, `rm -rf`), in memory",
        promise: 1.8,
        rounds: 9,
        in_memory: true,
        set_up: archive,
        line: "tar xf tree.tar && find tree -type f -name 'f*[1-2]*' | head -1000 | xargs sed -i s/a/b/ && rm -rf tree",
        pause: Duration::ZERO,
    },
    Work {
        name: "reading (`grep -r` over 5 000 files, ten times)",
        promise: 1.03,
        rounds: 9,
        in_memory: false,
        set_up: unpacked,
        line: "for i in 1 2 3 4 5 6 7 8 9 10; do grep -r nowhere tree; done; true",
        pause: Duration::ZERO,
    },
];

/// Measures and writes the section.
pub(crate) fn measure(place: &Path) -> Result<(), Failure> {
    let program = backout()?;
    let mut report = Report::default();
    for work in WORKS {
        say(&format!("measuring {}", work.name));
        for row in compare(place, &program, &work)? {
            say(&format!("  {}: {}", row.work, row.measured));
            report.rows.push(row);
        }
    }
    report.rows.push(start_up(place, &program)?);
    let text = report.to_markdown();
    say(&text);
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
        promise: "<= 15 ms".to_owned(),
        kept: Some(time <= Duration::from_millis(15)),
    })
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
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
    for directory in 0..50 {
        let inner = place.join(format!("tree/d{directory}"));
        fs::create_dir_all(&inner)?;
        for file in 0..100 {
            fs::write(
                inner.join(format!("f{file}")),
                "a line of text\n".repeat(100),
            )?;
        }
    }
    Ok(())
}

fn archive(place: &Path) -> Result<(), Failure> {
    tree(place)?;
    run_well(
        Command::new("tar")
            .args(["cf", "tree.tar", "tree"])
            .current_dir(place),
    )?;
    fs::remove_dir_all(place.join("tree"))?;
    Ok(())
}

fn unpacked(place: &Path) -> Result<(), Failure> {
    tree(place)
}
