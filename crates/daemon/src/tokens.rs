//! Tokens: who may ask what over HTTP. The store keeps their digests, never the tokens.
//!
//! - A change replaces the file by a rename, under a lock, so that no reader ever sees half of it and none is lost.
//! - A running server reads the file again when it is another one.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, PoisonError};

use backout_engine::{ErrorCode, Report};
use backout_model::{AgentId, Timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::caller::Role;
use crate::place::{Place, cannot};

/// How every token begins, so that one can be told where it should not be.
pub(crate) const PREFIX: &str = "backout_";

/// How many random bytes a token has.
const SECRET_BYTES: usize = 32;

/// How many digits of its digest name a token.
const ID_DIGITS: usize = 8;

/// How many tokens a store may have: each is compared with each request.
const TOKENS_MAX: usize = 1024;

/// A token as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Its name.
    pub id: String,
    /// What who has it may ask.
    pub role: Role,
    /// The agent that it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// When it was made.
    pub made: Timestamp,
    /// The digest of the token.
    digest: String,
}

/// The tokens of a store.
#[derive(Debug)]
pub struct Tokens {
    place: Place,
    known: Mutex<(Option<Stamp>, Vec<Token>)>,
}

/// Tells one file from another.
type Stamp = (u64, i64, i64, u64);

impl Tokens {
    /// Looks after the tokens of a place.
    pub fn of(place: Place) -> Self {
        let known = Mutex::default();
        Self { place, known }
    }

    /// Makes a token; gives it and what it is. Nobody can read it again.
    pub fn add(
        &self,
        role: Role,
        agent: Option<AgentId>,
        made: Timestamp,
    ) -> Result<(String, Token), Report> {
        let secret = new_secret()?;
        let digest = blake3::hash(secret.as_bytes()).to_hex().to_string();
        let id = digest.get(..ID_DIGITS).unwrap_or_default().to_owned();
        let token = Token {
            id,
            role,
            agent,
            made,
            digest,
        };
        self.change(|tokens| {
            if tokens.len() >= TOKENS_MAX {
                return Err(Report::refused("no token was made")
                    .because(format!("there are {TOKENS_MAX} already"))
                    .next("take one back with `backout serve token revoke ID`"));
            }
            tokens.push(token.clone());
            Ok(())
        })?;
        Ok((secret, token))
    }

    /// Takes a token back.
    pub fn revoke(&self, id: &str) -> Result<Token, Report> {
        self.change(|tokens| {
            let at = tokens.iter().position(|token| token.id == id);
            let at = at.ok_or_else(|| {
                Report::refused(format!("there is no token `{id}`"))
                    .code(ErrorCode::NotFound)
                    .next("see which there are with `backout serve token list`")
            })?;
            Ok(tokens.remove(at))
        })
    }

    /// Lists them, oldest first.
    pub fn list(&self) -> Result<Vec<Token>, Report> {
        let path = self.place.tokens();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot(&path, &error)),
        };
        serde_json::from_slice(&text).map_err(|error| cannot(&path, &error.into()))
    }

    /// Finds whose a token is. Digests are compared, all of them, so that no time tells how much was guessed.
    pub(crate) fn find(&self, secret: &str) -> Option<Token> {
        let digest = blake3::hash(secret.as_bytes());
        let mut found = None;
        for token in self.current() {
            let is_it = blake3::Hash::from_hex(&token.digest).is_ok_and(|its| its == digest);
            if is_it {
                found = Some(token);
            }
        }
        found
    }

    /// Gives the tokens as they are now. What cannot be read lets nobody in.
    fn current(&self) -> Vec<Token> {
        let stamp = fs::metadata(self.place.tokens()).ok();
        let stamp = stamp.map(|it| (it.ino(), it.mtime(), it.mtime_nsec(), it.size()));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.0 != stamp {
            *known = (stamp, self.list().unwrap_or_default());
        }
        known.1.clone()
    }

    fn change<T>(
        &self,
        with: impl FnOnce(&mut Vec<Token>) -> Result<T, Report>,
    ) -> Result<T, Report> {
        let path = self.place.tokens();
        let failed = |error: io::Error| cannot(&path, &error);
        self.place.prepare().map_err(failed)?;
        let lock = self.place.open("tokens.lock").map_err(failed)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut tokens = self.list()?;
        let answer = with(&mut tokens)?;
        let directory = path.parent().unwrap_or(&path);
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(&serde_json::to_vec_pretty(&tokens)?)?;
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|error| error.error)?;
            fs::File::open(directory)?.sync_all()
        };
        write().map_err(failed)?;
        Ok(answer)
    }
}

/// Makes a token that nobody can guess.
fn new_secret() -> Result<String, Report> {
    Ok(format!("{PREFIX}{}", random()?))
}

/// Makes 256 random bits, as text for URLs and cookies.
pub(crate) fn random() -> Result<String, Report> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| Report::refused("no secret can be made").because(error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
