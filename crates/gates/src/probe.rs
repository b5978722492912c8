//! Looks at a wave of a rollout: by a line for the shell, by an address, or both.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

use backout_model::ports::{Probe, WaveLook};
use backout_model::{TargetPath, WaveCheck};

use crate::http::{self, Url};
use crate::program::{Rest, filled_in, run_with};
use crate::rules::kinds::Program;

/// What stands for a target in the line.
const TARGET: &str = "{target}";

/// What stands for the number of the wave.
const WAVE: &str = "{wave}";

/// How many bytes of the words of a check are kept.
const OUTPUT_MAX: usize = 4096;

/// What has to be answered.
const GOOD: u16 = 200;

/// Checks waves as their rollout says.
#[derive(Debug, Clone, Copy, Default)]
pub struct WaveProbe;

impl Probe for WaveProbe {
    fn look(&self, look: &WaveLook<'_>) -> Option<String> {
        let check = look.check;
        if let Some(line) = &check.command {
            let is_each = line.contains(TARGET);
            if !is_each && let Some(said) = ran(look, line, None) {
                return Some(said);
            }
            for target in look.targets.iter().filter(|_| is_each) {
                if let Some(said) = ran(look, line, Some(target)) {
                    return Some(format!("for `{target}`: {said}"));
                }
            }
        }
        check.http.as_ref().and_then(|url| answered(look, url))
    }

    fn refuses(&self, check: &WaveCheck) -> Option<String> {
        let url = check.http.as_ref()?;
        let written = url.replace(WAVE, "1");
        Url::read(&written).err()
    }
}

/// Runs the line for one target. Gives what is wrong.
fn ran(look: &WaveLook<'_>, line: &str, target: Option<&TargetPath>) -> Option<String> {
    let (wave, task) = (look.wave.to_string(), look.task.to_string());
    let target = target.map(|target| target.as_path().as_os_str());
    let word = quoted(target.unwrap_or_default());
    let places = [(TARGET, word.as_os_str()), (WAVE, OsStr::new(&wave))];
    let line = filled_in(OsStr::new(line), &places);
    let program = Program {
        words: vec!["/bin/sh".into(), "-c".into(), line],
        directory: look.check.directory.clone(),
        time_max: Duration::from_millis(look.check.timeout_ms),
        output_max: OUTPUT_MAX,
    };
    let mut variables = vec![
        ("BACKOUT_ROLLOUT", OsStr::new(&task)),
        ("BACKOUT_WAVE", OsStr::new(&wave)),
    ];
    variables.extend(target.map(|target| ("BACKOUT_TARGET", target)));
    run_with(&program, &variables, "", Rest::Ends).told()
}

/// Asks the address. Gives what is wrong.
fn answered(look: &WaveLook<'_>, url: &str) -> Option<String> {
    let written = url.replace(WAVE, &look.wave.to_string());
    let url = match Url::read(&written) {
        Ok(url) => url,
        Err(why) => return Some(why),
    };
    match http::get(&url, Duration::from_millis(look.check.timeout_ms)) {
        Ok(answer) if answer.status == GOOD => None,
        Ok(answer) => Some(format!(
            "{written} answers {}, and {GOOD} is wanted",
            answer.status
        )),
        Err(error) => Some(format!("{written} does not answer: {error}")),
    }
}

/// Quotes a word so that a shell takes it as it is.
fn quoted(word: &OsStr) -> OsString {
    let mut quoted = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => quoted.extend(br"'\''"),
            byte => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::path::PathBuf;

    use super::*;

    fn check(command: Option<&str>, http: Option<String>) -> WaveCheck {
        WaveCheck {
            command: command.map(str::to_owned),
            http,
            directory: PathBuf::from("/"),
            tries: 1,
            timeout_ms: 10_000,
        }
    }

    fn look(check: &WaveCheck, targets: &[&str]) -> Option<String> {
        let targets: Vec<TargetPath> = targets
            .iter()
            .map(|target| TargetPath::new(*target).unwrap())
            .collect();
        let targets: Vec<&TargetPath> = targets.iter().collect();
        WaveProbe.look(&WaveLook {
            check,
            task: &"r".parse().unwrap(),
            wave: 3,
            targets: &targets,
        })
    }

    #[test]
    fn a_line_without_a_target_runs_once_and_one_with_it_for_each() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines = |line: &str, targets: &[&str]| {
            let _gone = std::fs::remove_file(&log);
            let line = format!("{line} >> {}", log.display());
            assert_eq!(look(&check(Some(&line), None), targets), None);
            std::fs::read_to_string(&log).unwrap()
        };
        let odd = "/a b/it's $HOME;`x`";
        assert_eq!(
            lines("echo {wave} $BACKOUT_WAVE $BACKOUT_ROLLOUT", &["/a", "/b"]),
            "3 3 r\n"
        );
        assert_eq!(
            lines(
                r#"printf '%s|%s\n' {target} "$BACKOUT_TARGET""#,
                &["/a", odd]
            ),
            format!("/a|/a\n{odd}|{odd}\n")
        );
    }

    #[test]
    fn what_fails_says_for_which_target_and_what_it_said() {
        let failing = check(
            Some("case {target} in /b) echo no way; exit 3;; esac"),
            None,
        );
        let said = look(&failing, &["/a", "/b", "/c"]).unwrap();
        assert_eq!(said, "for `/b`: `/bin/sh` ended with 3: no way");
        let said = look(&check(Some("exit 1"), None), &["/a"]).unwrap();
        assert_eq!(said, "`/bin/sh` ended with 1");
    }

    #[test]
    fn an_address_has_to_answer_with_200() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            for status in ["200 OK", "503 No"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                let _read = stream.read(&mut request).unwrap();
                write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
            }
        });
        let url = format!("http://127.0.0.1:{port}/{{wave}}");
        let both = check(Some("true"), Some(url));
        assert_eq!(WaveProbe.refuses(&both), None);
        assert_eq!(look(&both, &["/a"]), None);
        let said = look(&both, &["/a"]).unwrap();
        assert!(
            said.ends_with("/3 answers 503, and 200 is wanted"),
            "{said}"
        );
        server.join().unwrap();
        let said = look(&both, &["/a"]).unwrap();
        assert!(said.contains("does not answer:"), "{said}");
        let bad = check(None, Some("ftp://x".to_owned()));
        assert!(WaveProbe.refuses(&bad).is_some());
    }
}
