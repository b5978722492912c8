//! `[notify]`: tells people that something waits for them. What goes wrong here stops nothing.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use backout_model::{OperationId, Proposal, Target};
use hmac::{Hmac, Mac as _};
use serde_json::json;
use sha2::Sha256;

use crate::http::{self, Url};
use crate::paths::Paths;
use crate::program::{Rest, filled_in, run};
use crate::rules::kinds::{Notify, Program};

/// How long an answer waits for what came of a notice that another process sees to.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often we look whether that process has ended.
const LOOK: Duration = Duration::from_millis(5);

/// More words of that process are not read.
const SAID_MAX: u64 = 64 << 10;

/// The program that tells people for us, so that nobody has to wait until they are told: it gets the id of what waits, sees to
/// it that no notice takes longer than it may, and writes down what came of them.
#[derive(Debug, Clone)]
pub struct Keeper {
    /// What is started, and outlives us.
    pub program: PathBuf,
    /// What comes before the id.
    pub arguments: Vec<OsString>,
}

/// Lists whom the files of rules above targets name, each once.
fn named(paths: &Paths, targets: &[Target]) -> Vec<Notify> {
    let (mut files, mut all) = (Vec::new(), Vec::new());
    for path in targets.iter().filter_map(Target::file) {
        for rules in paths.rules_for(path.as_path()) {
            if !files.contains(&rules.file) && rules.notify.is_any() {
                files.push(rules.file.clone());
                all.push(rules.notify.clone());
            }
        }
    }
    all
}

/// Has everybody told whom a `backout.toml` above one of the targets names. Gives what went wrong, as far as that shows soon.
pub(crate) fn tell(paths: &Paths, keeper: Option<&Keeper>, proposal: &Proposal) -> Vec<String> {
    if named(paths, &proposal.targets).is_empty() {
        return Vec::new();
    }
    match keeper {
        None => tell_now(paths, proposal),
        Some(keeper) => kept(keeper, proposal.id).unwrap_or_else(|error| {
            let program = keeper.program.display();
            vec![format!("`{program}` could not be started: {error}")]
        }),
    }
}

/// Tells everybody at the same time, and waits until all are told or their time is up. Gives what went wrong.
pub(crate) fn tell_now(paths: &Paths, proposal: &Proposal) -> Vec<String> {
    let line = format!("waits for a decision: {}", proposal.summary);
    let body = told_of(proposal).to_string();
    let all = named(paths, &proposal.targets);
    thread::scope(|scope| {
        let all = all.iter().flat_map(Notify::each);
        let begun: Vec<_> = all
            .map(|notify| {
                let (line, body) = (&line, &body);
                scope.spawn(move || tell_one(&notify, line, &[], body))
            })
            .collect();
        let ended = begun.into_iter().map(|it| it.join().unwrap_or_default());
        ended.flatten().collect()
    })
}

/// Has another process tell people, and waits a moment for what comes of it.
fn kept(keeper: &Keeper, id: OperationId) -> std::io::Result<Vec<String>> {
    let mut words = tempfile::tempfile()?;
    let mut child = Command::new(&keeper.program)
        .args(&keeper.arguments)
        .arg(id.to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(words.try_clone()?)
        .stderr(Stdio::null())
        .spawn()?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                let said = "people are being told, and that takes longer: `backout pending` says if it goes wrong";
                return Ok(vec![said.to_owned()]);
            }
            None => thread::sleep(LOOK),
        }
    };
    let mut said = String::new();
    words.rewind()?;
    words.take(SAID_MAX).read_to_string(&mut said)?;
    let mut wrong: Vec<String> = said.lines().map(ToOwned::to_owned).collect();
    if wrong.is_empty() && !status.success() {
        let program = keeper.program.display();
        wrong.push(format!("`{program}` did not tell anybody: {status}"));
    }
    Ok(wrong)
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

/// The program that tells the desktop. To a desktop the text is markup: a name with a `<` in it would be none, or a link.
fn desktop(notify: &Notify, line: &str) -> Program {
    let line = line.replace('&', "&amp;");
    let line = line.replace('<', "&lt;").replace('>', "&gt;");
    let words = ["notify-send", "--", "Backout", &line];
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
    fn a_keeper_that_says_nothing_and_fails_has_told_nobody() {
        let id: OperationId = "0000000000000001".parse().unwrap();
        let keeper = |program: &str| Keeper {
            program: program.into(),
            arguments: Vec::new(),
        };
        assert!(kept(&keeper("true"), id).unwrap().is_empty());
        assert_eq!(kept(&keeper("echo"), id).unwrap(), ["0000000000000001"]);
        let said = kept(&keeper("false"), id).unwrap();
        assert_eq!(said, ["`false` did not tell anybody: exit status: 1"]);
        assert!(kept(&keeper("no-such-program"), id).is_err());
    }

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
