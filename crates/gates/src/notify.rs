//! `[notify]`: tells people that something waits for them. What goes wrong here stops nothing.

use std::path::Path;
use std::time::Duration;

use backout_model::{Proposal, Target};
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::http;
use crate::paths::Paths;
use crate::program::run;
use crate::rules::kinds::{Notify, Program};

/// How long a webhook may take.
const TIME: Duration = Duration::from_secs(5);

/// Tells everybody whom a `backout.toml` above one of the targets names, each once.
pub(crate) fn tell(
    paths: &Paths,
    event: &str,
    targets: &[Target],
    summary: &str,
    told: &serde_json::Value,
) {
    let mut files = Vec::new();
    for path in targets.iter().filter_map(Target::file) {
        for rules in paths.rules_for(path.as_path()) {
            if !files.contains(&rules.file) {
                files.push(rules.file.clone());
                tell_one(&rules.notify, event, summary, told);
            }
        }
    }
}

/// What is told of something that waits.
pub(crate) fn told_of(proposal: &Proposal) -> serde_json::Value {
    json!({
        "event": "waits",
        "id": proposal.id,
        "summary": proposal.summary,
        "verb": proposal.verb,
        "agent": proposal.agent,
        "task": proposal.task,
        "targets": proposal.targets,
        "reasons": proposal.reasons,
        "expires": proposal.expires,
    })
}

fn tell_one(notify: &Notify, event: &str, summary: &str, told: &serde_json::Value) {
    let body = told.to_string();
    let line = format!("backout: {event}: {summary}");
    if let Some(program) = &notify.command {
        let _end = run(&worded(program, &line), &[], &body);
    }
    if let Some(url) = &notify.webhook {
        let signed = notify.secret_file.as_deref().map(|file| sign(file, &body));
        match signed.transpose() {
            Ok(line) => drop(http::post(url, &body, &line.unwrap_or_default(), TIME)),
            // Unsigned, nobody could tell it from somebody else's.
            Err(_unreadable) => {}
        }
    }
    if notify.desktop {
        let program = Program {
            words: vec![
                "notify-send".to_owned(),
                "--".to_owned(),
                "Backout".to_owned(),
                line,
            ],
            directory: "/".into(),
            time_max: TIME,
            output_max: 0,
        };
        let _end = run(&program, &[], "");
    }
}

/// Puts the line into the words of a program.
fn worded(program: &Program, line: &str) -> Program {
    let words = program
        .words
        .iter()
        .map(|word| word.replace("{summary}", line));
    Program {
        words: words.collect(),
        ..program.clone()
    }
}

/// The line that shows the webhook who sent it: a HMAC-SHA256 over the body.
fn sign(file: &Path, body: &str) -> std::io::Result<String> {
    let key = std::fs::read(file)?;
    let key = key.trim_ascii();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(std::io::Error::other)?;
    mac.update(body.as_bytes());
    let digits: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(format!("X-Backout-Signature: sha256={digits}\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_signed_as_everybody_does_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("key");
        std::fs::write(&file, "Jefe\n").unwrap();
        // Test case 2 of RFC 4231.
        let line = sign(&file, "what do ya want for nothing?").unwrap();
        let digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(line, format!("X-Backout-Signature: sha256={digest}\r\n"));
        assert!(sign(&directory.path().join("none"), "x").is_err());
    }
}
