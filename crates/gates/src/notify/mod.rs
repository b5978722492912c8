//! `[notify]`: tells people that something waits for them. What goes wrong here stops nothing.

mod notice;

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use backout_model::{Proposal, Target};
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::http::{self, Url};
use crate::paths::Paths;
use crate::program::{Rest, filled_in, run};
use crate::rules::kinds::{Notify, Program};
use notice::Notice;

/// How long an answer waits for what came of a notice. What takes longer goes on by itself.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells everybody whom a `backout.toml` above one of the targets names, each once and all at the same time. Gives what went
/// wrong, as far as that shows soon.
pub(crate) fn tell(
    paths: &Paths,
    targets: &[Target],
    line: &str,
    told: &serde_json::Value,
) -> Vec<String> {
    let (mut files, mut notices) = (Vec::new(), Vec::new());
    for path in targets.iter().filter_map(Target::file) {
        for rules in paths.rules_for(path.as_path()) {
            if !files.contains(&rules.file) {
                files.push(rules.file.clone());
                notices.extend(begun(&rules.notify, line, &told.to_string()));
            }
        }
    }
    let deadline = Instant::now() + PATIENCE;
    let ended = notices.into_iter();
    ended.filter_map(|notice| notice.told(deadline)).collect()
}

/// Begins to tell everybody whom one file names.
fn begun(notify: &Notify, line: &str, body: &str) -> Vec<Notice> {
    let line = format!("backout: {line}");
    let mut begun = Vec::new();
    if let Some(program) = &notify.command {
        begun.push(Notice::begin(worded(program, &line), "", body));
    }
    if notify.desktop {
        begun.push(Notice::begin(desktop(notify, &line), DESKTOP, ""));
    }
    if notify.webhook.is_some() {
        let (sender, answer) = channel();
        let (notify, body) = (notify.clone(), body.to_owned());
        thread::spawn(move || {
            let said = notify
                .webhook
                .as_ref()
                .map(|url| posted(&notify, url, &body));
            sender.send(said.and_then(Result::err))
        });
        begun.push(Notice::Webhook(answer));
    }
    begun
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

/// Tells everybody whom one file names. Gives what went wrong.
pub(crate) fn tell_one(
    notify: &Notify,
    line: &str,
    variables: &[(&str, String)],
    body: &str,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let line = format!("backout: {line}");
    if let Some(program) = &notify.command {
        let said = run(&worded(program, &line), variables, body, Rest::Stays).told();
        wrong.extend(said);
    }
    if let Some(url) = &notify.webhook {
        let said = posted(notify, url, body).err();
        wrong.extend(said.map(|said| format!("the webhook was not told: {said}")));
    }
    if notify.desktop {
        let said = run(&desktop(notify, &line), &[], "", Rest::Stays).told();
        wrong.extend(said.map(|said| format!("{DESKTOP}{said}")));
    }
    wrong
}

/// What is said of a desktop that was not told.
const DESKTOP: &str = "the desktop was not told: ";

/// The program that tells the desktop.
fn desktop(notify: &Notify, line: &str) -> Program {
    let words = ["notify-send", "--", "Backout", line];
    Program {
        words: words.map(OsString::from).to_vec(),
        directory: "/".into(),
        time_max: notify.time_max,
        output_max: 0,
    }
}

/// Sends a text to a webhook, signed if there is a key. Unsigned, nobody could tell it from somebody else's.
fn posted(notify: &Notify, url: &Url, body: &str) -> Result<(), String> {
    let signed = notify.secret_file.as_deref().map(|file| sign(file, body));
    let line = signed.transpose().map_err(|error| error.to_string())?;
    let answer = http::post(url, body, &line.unwrap_or_default(), notify.time_max);
    let status = answer.map_err(|error| error.to_string())?.status;
    if (200..300).contains(&status) {
        Ok(())
    } else {
        Err(format!("it answers {status}"))
    }
}

/// Puts the line into the words of a program.
fn worded(program: &Program, line: &str) -> Program {
    let summary = [("{summary}", OsStr::new(line))];
    let words = program.words.iter().map(|word| filled_in(word, &summary));
    Program {
        words: words.collect(),
        ..program.clone()
    }
}

/// The line that shows the webhook who sent it: a HMAC-SHA256 over the body.
fn sign(file: &Path, body: &str) -> std::io::Result<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&key_in(file)?).map_err(std::io::Error::other)?;
    mac.update(body.as_bytes());
    let mut digits = String::new();
    for byte in mac.finalize().into_bytes() {
        let _written = write!(digits, "{byte:02x}");
    }
    Ok(format!("X-Backout-Signature: sha256={digits}\r\n"))
}

/// Reads a key. An empty one would be known to everybody.
pub(crate) fn key_in(file: &Path) -> std::io::Result<Vec<u8>> {
    if file.exists() && !file.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let key = std::fs::read(file)?.trim_ascii().to_vec();
    if key.is_empty() {
        return Err(std::io::Error::other("it is empty"));
    }
    Ok(key)
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
