//! What is said through the relay, as bytes. Pure: nothing here reads or writes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// More than any words and environment that the kernel lets a process have.
const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The bytes that say how long the rest is.
const LENGTH_BYTES: usize = 8;

/// The bytes of an answer.
pub(super) const ANSWER_BYTES: usize = 5;

const ENDED: u8 = b'e';
const REFUSED: u8 = b'r';

/// What is asked of the relay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Where the caller is.
    pub directory: PathBuf,
    /// The words after the program's name.
    pub words: Vec<OsString>,
    /// The caller's environment, for a command that it wants run.
    pub environment: Vec<(OsString, OsString)>,
}

/// Why bytes are no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is longer than any request.
    #[error("it is longer than any request")]
    TooLong,
    /// It does not end where it should.
    #[error("it does not end where it should")]
    Cut,
    /// The directory is not an absolute path.
    #[error("the directory is not an absolute path")]
    Directory,
    /// The number of words is none, or not that of the words.
    #[error("the number of words is not that of the words")]
    Count,
    /// A variable has no name or no value.
    #[error("a variable has no name or no value")]
    Variable,
}

impl Request {
    /// Says it in bytes, the length first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; LENGTH_BYTES];
        let mut put = |part: &OsStr| {
            bytes.extend_from_slice(part.as_bytes());
            bytes.push(0);
        };
        put(self.directory.as_os_str());
        put(OsStr::new(&self.words.len().to_string()));
        self.words.iter().for_each(|word| put(word));
        bytes.extend(encode_environment(&self.environment));
        let length = bytes.len().saturating_sub(LENGTH_BYTES);
        let length = u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes();
        for (byte, of_length) in bytes.iter_mut().zip(length) {
            *byte = of_length;
        }
        bytes
    }

    /// Reads what has arrived so far. None if there is more to come.
    pub fn decode(arrived: &[u8]) -> Result<Option<Self>, Malformed> {
        let Some((length, rest)) = arrived.split_first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > REQUEST_BYTES_MAX {
            return Err(Malformed::TooLong);
        }
        match rest.len() {
            less if less < length => Ok(None),
            all if all == length => Self::decode_whole(rest).map(Some),
            _ => Err(Malformed::Cut),
        }
    }

    fn decode_whole(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut parts = parts(bytes).ok_or(Malformed::Cut)?;
        let directory = parts.next().map(PathBuf::from);
        let directory = directory.filter(|path| path.is_absolute());
        let directory = directory.ok_or(Malformed::Directory)?;
        let count = parts.next().and_then(|count| count.to_str()?.parse().ok());
        let count: usize = count.ok_or(Malformed::Count)?;
        let words: Vec<OsString> = parts.by_ref().take(count).collect();
        if words.len() != count {
            return Err(Malformed::Count);
        }
        let environment = pairs(parts)?;
        Ok(Self {
            directory,
            words,
            environment,
        })
    }
}

/// Says an environment in bytes.
pub(super) fn encode_environment(environment: &[(OsString, OsString)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in environment.iter().flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(part.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// Reads an environment.
pub(super) fn decode_environment(bytes: &[u8]) -> Result<Vec<(OsString, OsString)>, Malformed> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    pairs(parts(bytes).ok_or(Malformed::Cut)?)
}

/// Splits what ends with a zero byte at each of them.
fn parts(bytes: &[u8]) -> Option<impl Iterator<Item = OsString>> {
    let whole = bytes.strip_suffix(&[0])?;
    let each = whole.split(|byte| *byte == 0);
    Some(each.map(|part| OsString::from_vec(part.to_vec())))
}

fn pairs(
    mut parts: impl Iterator<Item = OsString>,
) -> Result<Vec<(OsString, OsString)>, Malformed> {
    let mut environment = Vec::new();
    while let Some(name) = parts.next() {
        let value = parts.next().ok_or(Malformed::Variable)?;
        if name.is_empty() {
            return Err(Malformed::Variable);
        }
        environment.push((name, value));
    }
    Ok(environment)
}

/// Why nothing is done for a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It is another user's, or no process of the command.
    Stranger,
    /// Its root, mounts or rights are not those of the command: what it may not do is not done for it.
    Sandboxed,
    /// What it said is no request.
    Malformed,
    /// It took too long to say it.
    Late,
    /// The program could not be started.
    NotStarted,
}

impl Refusal {
    const ALL: [Self; 5] = [
        Self::Stranger,
        Self::Sandboxed,
        Self::Malformed,
        Self::Late,
        Self::NotStarted,
    ];
}

/// What the front says in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The program ended with this code.
    Ended(i32),
    /// Nothing was done.
    Refused(Refusal),
}

impl Answer {
    pub(super) fn encode(self) -> [u8; ANSWER_BYTES] {
        let (kind, number) = match self {
            Self::Ended(code) => (ENDED, code),
            Self::Refused(why) => {
                let place = Refusal::ALL.iter().position(|refusal| *refusal == why);
                (
                    REFUSED,
                    place.and_then(|at| at.try_into().ok()).unwrap_or(-1),
                )
            }
        };
        let [a, b, c, d] = number.to_le_bytes();
        [kind, a, b, c, d]
    }

    pub(super) fn decode([kind, a, b, c, d]: [u8; ANSWER_BYTES]) -> Option<Self> {
        let number = i32::from_le_bytes([a, b, c, d]);
        match kind {
            ENDED => Some(Self::Ended(number)),
            REFUSED => {
                let why = Refusal::ALL.get(usize::try_from(number).ok()?);
                why.copied().map(Self::Refused)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> Request {
        Request {
            words: words.iter().map(OsString::from).collect(),
            environment: vec![
                ("A".into(), String::new().into()),
                ("B".into(), "x=y".into()),
            ],
            directory: "/some where".into(),
        }
    }

    fn framed(rest: &[u8]) -> Vec<u8> {
        let length = u64::try_from(rest.len()).unwrap().to_le_bytes();
        [&length[..], rest].concat()
    }

    #[test]
    fn a_request_survives_its_way() {
        for words in [&[][..], &["log"], &["write", "", "a b"]] {
            let request = request(words);
            let bytes = request.encode();
            for end in 0..bytes.len() {
                assert_eq!(Request::decode(&bytes[..end]), Ok(None), "{end}");
            }
            assert_eq!(Request::decode(&bytes), Ok(Some(request)));
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (rest, why) in [
            (&b""[..], Malformed::Cut),
            (b"/", Malformed::Cut),
            (b"\0", Malformed::Directory),
            (b"here\x000\0", Malformed::Directory),
            (b"/\0", Malformed::Count),
            (b"/\0-1\0", Malformed::Count),
            (b"/\x005\0a\0", Malformed::Count),
            (b"/\x0099999999999999999999\0a\0", Malformed::Count),
            (b"/\x0018446744073709551615\0a\0", Malformed::Count),
            (b"/\x000\0NAME\0", Malformed::Variable),
            (b"/\x000\0\0value\0", Malformed::Variable),
        ] {
            assert_eq!(Request::decode(&framed(rest)), Err(why), "{rest:?}");
        }
    }

    #[test]
    fn more_than_was_announced_and_more_than_there_can_be_is_refused() {
        let mut bytes = request(&["log"]).encode();
        bytes.push(0);
        assert_eq!(Request::decode(&bytes), Err(Malformed::Cut));
        for length in [REQUEST_BYTES_MAX as u64 + 1, u64::MAX] {
            let announced = length.to_le_bytes();
            assert_eq!(Request::decode(&announced), Err(Malformed::TooLong));
        }
    }

    #[test]
    fn an_answer_survives_its_way() {
        let refused = Refusal::ALL.map(Answer::Refused);
        for answer in [0, 1, 130, -1]
            .map(Answer::Ended)
            .into_iter()
            .chain(refused)
        {
            assert_eq!(Answer::decode(answer.encode()), Some(answer));
        }
        assert_eq!(Answer::decode([b'r', 200, 0, 0, 0]), None);
        assert_eq!(Answer::decode([0; 5]), None);
    }
}
