//! What it costs to look at a write before it happens.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backout_checks::syntax::{self, Format};
use backout_drivers::file::FileRequest;
use backout_engine::{Engine, Settings};
use backout_gates::{Content, Paths, Watches};

use crate::Failure;
use crate::durable::median;
use crate::report::Row;

const ROUNDS: usize = 40;
const BLOCK: usize = 5;

/// What a project says that has everything read that can be read.
const RULES: &str = "[protect]\ndeny = ['secrets/**']\n[syntax]\n[policy]\nsecrets = 'deny'\npermissions = 'ask'\nwildcard-iam = 'deny'\nfiles-max = 100\n";

/// Measures the built-in checks by themselves, and a write with and without them.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (format, text) in [
        (Format::Json, json(0)),
        (
            Format::Yaml,
            lines("key: value of a line # and a comment\n"),
        ),
        (Format::Toml, lines("key = 'value of a line'\n")),
        (
            Format::Shell,
            lines("if test -f \"$a\"; then echo \"$a\" | sort >out; fi\n"),
        ),
        (
            Format::Python,
            lines("def name(one, two):\n    return [one + two, {'a': 1}]\n\n"),
        ),
    ] {
        rows.push(one_check(format, &text));
    }
    rows.push(whole_gate(directory)?);
    Ok(rows)
}

fn one_check(format: Format, text: &[u8]) -> Row {
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            let begun = Instant::now();
            black_box(syntax::check(format, black_box(text)));
            begun.elapsed()
        })
        .collect();
    let time = median(&mut times);
    Row {
        work: format!("the syntax of {} KiB of {format}", text.len() >> 10),
        measured: format!("{:.2} ms", time.as_secs_f64() * 1000.0),
        promise: "< 1 ms".to_owned(),
        kept: Some(time < Duration::from_millis(1)),
    }
}

/// Writes 10 KiB of JSON over an existing file, without rules and with them, in turns.
fn whole_gate(directory: &Path) -> Result<Row, Failure> {
    let state = directory.join("state");
    let (free, ruled) = (directory.join("free"), directory.join("ruled"));
    fs::create_dir(&free)?;
    fs::create_dir(&ruled)?;
    fs::write(ruled.join("backout.toml"), RULES)?;
    let engine = |is_gated: bool| -> Result<Engine, Failure> {
        let mut settings = Settings::new(&state);
        if is_gated {
            let paths = Arc::new(Paths::new(None, None));
            settings.gates = vec![
                Arc::clone(&paths) as _,
                Arc::new(Content::new(Arc::clone(&paths), &state)),
                Arc::new(Watches::new(paths)),
            ];
        }
        Ok(Engine::open(settings, backout_drivers::local)?)
    };
    let contenders = [
        (engine(false)?, free.join("a.json")),
        (engine(true)?, ruled.join("a.json")),
    ];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for ((engine, path), times) in contenders.iter().zip(&mut times) {
            for number in 0..BLOCK {
                let request = FileRequest::write(path, json(round * BLOCK + number));
                let begun = Instant::now();
                engine.write(&request)?;
                times.push(begun.elapsed());
            }
        }
    }
    let [free, ruled] = times.each_mut().map(|times| median(times));
    let ratio = ruled.as_secs_f64() / free.as_secs_f64();
    Ok(Row {
        work: "write of 10 KiB of JSON with rules for syntax, secrets, permissions and size"
            .to_owned(),
        measured: format!(
            "{ratio:.2} x without rules ({} against {} us)",
            ruled.as_micros(),
            free.as_micros()
        ),
        promise: "< 1.10 x".to_owned(),
        kept: Some(ratio < 1.10),
    })
}

fn json(number: usize) -> Vec<u8> {
    let each = (0..150).map(|line| {
        format!(
            "  {{\"name\": \"entry {line}\", \"port\": {}, \"tags\": [\"a\", \"b\"]}}",
            number + line
        )
    });
    let each: Vec<String> = each.collect();
    format!("[\n{}\n]\n", each.join(",\n")).into_bytes()
}

fn lines(line: &str) -> Vec<u8> {
    let mut text = String::new();
    let mut number = 0;
    while text.len() < 10 << 10 {
        // Keys stand once.
        text.push_str(&line.replace("key", &format!("key{number}")));
        number += 1;
    }
    text.into_bytes()
}
