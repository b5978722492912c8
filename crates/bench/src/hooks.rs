//! What a hook of an agent costs: the program is started for each call of a tool, before and after it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::Failure;
use crate::durable::median;
use crate::process::{backout, run_well, run_with_input};
use crate::report::Row;

const ROUNDS: usize = 60;

/// Measures the hooks around a write of a file of 4 KiB, against a start of the program that does nothing.
pub(crate) fn measure(directory: &Path) -> Result<Vec<Row>, Failure> {
    let program = backout()?;
    let (file, state) = (directory.join("file"), directory.join("state"));
    fs::write(&file, [b'a'; 4096])?;
    let command = || {
        let mut command = Command::new(&program);
        command
            .env("BACKOUT_STATE_DIR", &state)
            .current_dir(directory)
            .stdin(Stdio::null());
        command
    };
    let (mut starts, mut before, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let text = format!("{round}\n").repeat(1024);
        let told = |event: &str| {
            let call = json!({
                "session_id": "s", "cwd": directory, "hook_event_name": event, "transcript_path": "/nowhere",
                "permission_mode": "acceptEdits", "prompt_id": "p", "tool_name": "Write",
                "tool_input": {"file_path": file, "content": text}, "tool_use_id": format!("call-{round}"),
            });
            run_with_input(command().args(["hook", "claude-code"]), &call.to_string())
        };
        starts.push(run_well(command().arg("--version"))?.time);
        before.push(told("PreToolUse")?.time);
        fs::write(&file, &text)?;
        after.push(told("PostToolUse")?.time);
    }
    let start = median(&mut starts);
    Ok(vec![
        row(
            "before a tool writes a file of 4 KiB",
            start,
            median(&mut before),
        ),
        row("after it", start, median(&mut after)),
    ])
}

fn row(when: &str, start: Duration, hook: Duration) -> Row {
    let over = hook.saturating_sub(start);
    let millis = |time: Duration| time.as_secs_f64() * 1000.0;
    Row {
        work: format!("a hook, {when}"),
        measured: format!(
            "{:.1} ms over process start ({:.1} against {:.1} ms)",
            millis(over),
            millis(hook),
            millis(start)
        ),
        promise: "<= 10 ms over process start".to_owned(),
        kept: Some(over <= Duration::from_millis(10)),
    }
}
