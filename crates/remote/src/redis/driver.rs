//! The driver of keys.

use std::fmt;
use std::sync::Arc;

use backout_crashpoint::crash_point;
use backout_model::ports::{
    Applied, Driver, DriverError, Durability, Examined, How, NewContent, Outline, Prepared,
    PreparedUndo, ReadContents, Request, Scope, Staged, State as Standing, ValueChange,
    WriteContents,
};
use backout_model::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, OperationId, OperationKind,
    OutcomeKind, RIDING_BYTES_MAX, Recipe, Strategy, Target, TargetOutcome,
};
use redis::Value;

use super::answer::Answers;
use super::commands::judge;
use super::connection::{Ended, Link, Mark, states};
use super::dump::told;
use super::error::RedisFault;
use super::recipe::{After, Change, Keys, told_by};
use super::request::{RedisRequest, name_in_capitals};
use super::server::Server;
use super::state::State;
use super::words::{Line, Naming, name_of};

/// The name that its recipes bear.
pub const REDIS: DriverName = DriverName::literal("redis");

/// Where marks are, with the name of the operation behind it.
const MARK: &str = "backout:mark:";

/// How often something is put back again because somebody wrote a key meanwhile.
const TRIES_MAX: usize = 5;

/// What a test is asked before and after each effect.
type Step = Arc<dyn Fn() -> Result<(), RedisFault> + Send + Sync>;

/// Runs commands so that the keys that they write can be taken back.
pub struct RedisDriver {
    read: Arc<dyn ReadContents>,
    write: Arc<dyn WriteContents>,
    step: Option<Step>,
}

impl fmt::Debug for RedisDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisDriver")
    }
}

/// What is ready to be run, on the connection that watches the keys.
struct Ready {
    link: Link,
    keys: Keys,
    commands: Vec<Line>,
    answers: Answers,
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values may be secrets.
        write!(f, "Ready({})", self.keys.mark)
    }
}

impl Staged for Ready {}

/// Dumps of keys: small ones ride with the record, the others are in the store already.
#[derive(Default)]
struct Kept {
    riding: Vec<NewContent>,
    copied_bytes: u64,
}

/// A key at a look: what it was, became and is.
struct Seen {
    change: Change,
    target: Target,
    before: State,
    now: State,
    standing: Standing,
    /// Whether what it was would have gone by now.
    has_run_out: bool,
}

impl RedisDriver {
    /// Keeps dumps in a store of contents.
    pub fn new(read: Arc<dyn ReadContents>, write: Arc<dyn WriteContents>) -> Self {
        let step = None;
        Self { read, write, step }
    }

    /// Has a test asked before and after each effect.
    #[cfg(test)]
    pub(super) fn with_step(mut self, step: Step) -> Self {
        self.step = Some(step);
        self
    }

    fn step(&self, name: &'static str) -> Result<(), RedisFault> {
        crash_point(name);
        self.step.as_ref().map_or(Ok(()), |step| step())
    }

    /// Watches keys and keeps what they are.
    fn capture(
        &self,
        id: OperationId,
        server: &Server,
        mut link: Link,
        (keys, naming): (&[Vec<u8>], Naming),
    ) -> Result<(Link, Keys, Kept), DriverError> {
        let mark = format!("{MARK}{id}");
        link.watch(&mark, keys)?;
        let states = link.look(keys)?;
        let (mut changes, mut kept) = (Vec::new(), Kept::default());
        for (key, before) in keys.iter().zip(states) {
            let bytes = match before.value {
                Some(_) => link.dump(key)?,
                None => None,
            };
            // One that has gone since was watched: then nothing will happen.
            let before = if bytes.is_some() {
                before
            } else {
                State::ABSENT
            };
            let dump = bytes
                .map(|bytes| self.keep(id, bytes, &mut kept))
                .transpose()?;
            let key = name_of(key);
            changes.push(Change { key, before, dump });
        }
        let server = server.clone();
        let keys = Keys {
            server,
            mark,
            naming,
            changes,
        };
        Ok((link, keys, kept))
    }

    fn keep(&self, id: OperationId, bytes: Vec<u8>, kept: &mut Kept) -> Result<Digest, RedisFault> {
        if bytes.len() as u64 > RIDING_BYTES_MAX {
            let (digest, size) = self.write.stash(id, &mut bytes.as_slice())?;
            kept.copied_bytes += size;
            return Ok(digest);
        }
        let content = NewContent::of(bytes);
        let digest = content.digest;
        kept.riding.push(content);
        Ok(digest)
    }

    /// Gives the commands that make a key what it was; none if it is so already.
    fn way_back(
        &self,
        change: &Change,
        before: &State,
        now: &State,
    ) -> Result<Option<Line>, RedisFault> {
        let key = change.bytes()?;
        if before == now {
            return Ok(None);
        }
        let (Some(_), Some(dump)) = (&before.value, &change.dump) else {
            return Ok(Some(vec![b"DEL".to_vec(), key]));
        };
        let goes_at = before.goes_at_ms.unwrap_or(0).to_string().into_bytes();
        let dump = self.read.read(dump)?;
        Ok(Some(vec![
            b"RESTORE".to_vec(),
            key,
            goes_at,
            dump,
            b"REPLACE".to_vec(),
            b"ABSTTL".to_vec(),
        ]))
    }

    /// Makes it happen. The error is one of before it happened, or says that nobody knows.
    fn run(&self, ready: &mut Ready) -> Result<Vec<State>, RedisFault> {
        let keys = ready.keys.keys()?;
        self.step("redis.before-exec")?;
        let marked = Some((ready.keys.mark.as_str(), keys.as_slice()));
        let ended = ready.link.together(&ready.commands, marked)?;
        self.step("redis.exec")?;
        let mut answers = match ended {
            Ended::Overtaken => return Err(RedisFault::Overtaken),
            Ended::Ran(answers) => answers,
        };
        let after = answers.pop().unwrap_or(Value::Nil);
        let failed = answers
            .iter()
            .enumerate()
            .find_map(|(index, answer)| match answer {
                Value::ServerError(error) => Some((index, error)),
                _ => None,
            });
        if let Some((index, error)) = failed {
            return Err(RedisFault::Failed {
                number: index + 1,
                command: ready
                    .commands
                    .get(index)
                    .map(name_in_capitals)
                    .unwrap_or_default(),
                why: RedisFault::from(error).to_string(),
            });
        }
        let after = states(&after, keys.len()).map_err(|_| RedisFault::Strange {
            expected: "what the keys became",
        })?;
        ready.answers.put(answers);
        Ok(after)
    }

    /// Puts everything back that may have happened, and keeps it from happening later.
    fn put_back(&self, keys: &Keys) -> Result<(), RedisFault> {
        let names = keys.keys()?;
        for _ in 0..TRIES_MAX {
            self.step("redis.before-put-back")?;
            let mut link = Link::to(&keys.server)?;
            let Mark::Happened(after) = link.settle(&keys.mark, names.len())? else {
                return Ok(());
            };
            link.watch(&keys.mark, &names)?;
            let (now_ms, now) = (link.now_ms()?, link.look(&names)?);
            let mut back = vec![vec![b"DEL".to_vec(), keys.mark.clone().into_bytes()]];
            for ((change, after), now) in keys.changes.iter().zip(after).zip(now) {
                // What is not as it was made is somebody else's by now.
                if now == after.at(now_ms) {
                    back.extend(self.way_back(change, &change.before.at(now_ms), &now)?);
                }
            }
            match link.together(&back, None)? {
                Ended::Overtaken => {}
                Ended::Ran(answers) => {
                    self.step("redis.put-back")?;
                    let failed = answers.iter().find_map(|answer| match answer {
                        Value::ServerError(error) => Some(RedisFault::from(error)),
                        _ => None,
                    });
                    return failed.map_or(Ok(()), Err);
                }
            }
        }
        Err(RedisFault::Overtaken)
    }

    /// Looks at the keys of an effect. With `is_settled`, what may still be on its way is kept from happening.
    fn see(
        effect: &Effect,
        is_settled: bool,
        is_watched: Option<&str>,
    ) -> Result<(Link, Vec<Seen>), DriverError> {
        let keys = Keys::read(&effect.recipe)?;
        let (names, mut link) = (keys.keys()?, Link::to(&keys.server)?);
        let mut after = told_by(effect, &keys);
        if after.is_none() {
            let mark = if is_settled {
                link.settle(&keys.mark, names.len())?
            } else {
                link.mark(&keys.mark, names.len())?
            };
            if let Mark::Happened(told) = mark {
                after = Some(told);
            }
        }
        if let Some(mark) = is_watched {
            link.watch(mark, &names)?;
        }
        let (now_ms, states) = (link.now_ms()?, link.look(&names)?);
        let mut seen = Vec::new();
        for (index, (change, now)) in keys.changes.into_iter().zip(states).enumerate() {
            let before = change.before.at(now_ms);
            let after = after.as_ref().and_then(|after| after.get(index));
            let standing = match after {
                Some(after) => Standing::of(&now, &before, &after.at(now_ms)),
                None if now == before => Standing::Before,
                None => Standing::Other {
                    why: "no mark on the server tells whether it was done, and the key is not as before".to_owned(),
                },
            };
            seen.push(Seen {
                target: keys.server.target(&change.bytes()?, keys.naming)?,
                has_run_out: before != change.before,
                change,
                before,
                now,
                standing,
            });
        }
        Ok((link, seen))
    }

    /// Makes a write of what is captured and of the commands that follow.
    fn prepared(ready: Ready, kept: Kept, notes: Vec<String>) -> Result<Prepared, DriverError> {
        let (recipe, targets) = (ready.keys.recipe()?, ready.keys.targets()?);
        let mut prepared = Prepared::plain(recipe, targets, ready);
        prepared.contents = kept.riding;
        prepared.copied_bytes = kept.copied_bytes;
        prepared.notes = notes;
        Ok(prepared.boxed())
    }
}

/// Says what a key is, by its dump.
fn said(state: &State, dump: Option<&[u8]>) -> Option<String> {
    let kind = state.value.as_ref()?.split(':').next().unwrap_or_default();
    let value = match dump.map(told) {
        Some(Some(value)) => value.to_string(),
        // It is not read, and told apart all the same.
        Some(None) => format!("({})", state.value.as_deref().unwrap_or_default()),
        None => format!("(a {kind} that is not kept)"),
    };
    Some(match state.goes_at_ms {
        Some(goes_at) => format!("{value}, goes at {goes_at}"),
        None => value,
    })
}

impl Driver for RedisDriver {
    fn name(&self) -> DriverName {
        REDIS
    }

    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError> {
        let request: &RedisRequest = request.as_a()?;
        let judged = judge(&mut Link::to(&request.server)?, &request.commands)?;
        let target = |key: &Vec<u8>| request.server.target(key, Naming::Plain);
        let targets = judged.writes.iter().map(target).collect::<Result<_, _>>()?;
        let sources = judged.reads.iter().map(target).collect::<Result<_, _>>()?;
        Ok(Scope {
            sources,
            ..Scope::of(targets, OperationKind::DatabaseWrite)
        })
    }

    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError> {
        Ok(Box::new(RedisRequest::read(text)?))
    }

    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        let mut keys = Keys::read(recipe)?;
        // The mark bears the name of the operation.
        keys.mark.clear();
        Ok(Digest::of(&serde_json::to_vec(&keys)?))
    }

    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError> {
        if strategy != Strategy::Transaction {
            return Err(RedisFault::NotPrepared.into());
        }
        let request: &RedisRequest = request.as_a()?;
        let mut link = Link::to(&request.server)?;
        let writes = judge(&mut link, &request.commands)?.writes;
        let writes: Vec<_> = writes.into_iter().collect();
        let (link, keys, kept) =
            self.capture(id, &request.server, link, (&writes, Naming::Plain))?;
        let ready = Ready {
            link,
            keys,
            commands: request.commands.clone(),
            answers: request.answers.clone(),
        };
        Self::prepared(ready, kept, Vec::new())
    }

    fn apply(&self, armed: Armed) -> Result<Applied, DriverError> {
        let (_, recipe, staged) = armed.into_parts();
        let mut ready: Ready = staged.take()?;
        if ready.keys.changes.is_empty() {
            return Ok(Applied::seen(Vec::new()));
        }
        let after = match self.run(&mut ready) {
            Ok(after) => after,
            // The server has said that it ran none of them.
            Err(fault @ (RedisFault::Overtaken | RedisFault::Said { .. })) => {
                return Err(fault.into());
            }
            Err(fault) => {
                let Ready { link, keys, .. } = ready;
                // Whatever this connection still has to say is not waited for.
                drop(link);
                return Err(match self.put_back(&keys) {
                    Ok(()) => fault.into(),
                    Err(_) => RedisFault::Unknown(Box::new(fault)).into(),
                });
            }
        };
        let pairs = std::iter::zip(&ready.keys.changes, &after);
        let is_idle = pairs
            .into_iter()
            .all(|(change, after)| change.before == *after);
        let completion = Completion(serde_json::to_value(After { after })?);
        let effect = Effect {
            recipe,
            completion: Some(completion.clone()),
        };
        // It has happened, whether or not the server answers once more.
        let seen = self.examine(&effect, true).unwrap_or_default();
        Ok(Applied {
            completion,
            durability: Durability::Process,
            is_idle,
            ..Applied::seen(seen)
        })
    }

    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError> {
        let mark = format!("{MARK}{id}");
        let (mut link, seen) = Self::see(effect, how.is_unfinished, Some(&mark))?;
        let (mut back, mut outcomes, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for seen in seen {
            if !how.means(&seen.target) {
                continue;
            }
            // What a command left as it was needs no way back.
            let standing = if seen.now == seen.before {
                Standing::Before
            } else {
                seen.standing
            };
            let kind = standing.taken_back(how.on_conflict);
            if kind.is_taken_back()
                && let Some(line) = self.way_back(&seen.change, &seen.before, &seen.now)?
            {
                back.push((seen.change.bytes()?, line));
            }
            if seen.has_run_out && kind != OutcomeKind::AlreadyGone {
                notes.push(format!(
                    "`{}` would have run out by now: it is not brought back to life",
                    seen.target
                ));
            }
            outcomes.push(TargetOutcome::new(seen.target, kind));
        }
        if !how.goes_on(&mut outcomes) {
            back.clear();
        }
        // An undo speaks of the same targets.
        let Keys { server, naming, .. } = Keys::read(&effect.recipe)?;
        let (names, commands): (Vec<_>, Vec<_>) = back.into_iter().unzip();
        // What is there now is what an undo of this undo brings back.
        let (keys, kept);
        (link, keys, kept) = self.capture(id, &server, link, (&names, naming))?;
        let ready = Ready {
            link,
            keys,
            commands,
            answers: Answers::default(),
        };
        let prepared = Self::prepared(ready, kept, notes)?;
        Ok(PreparedUndo { prepared, outcomes })
    }

    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError> {
        Ok(Outline::of(Keys::read(&effect.recipe)?.targets()?))
    }

    fn tells_all_values(&self) -> bool {
        false
    }

    fn values(&self, effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        let keys = Keys::read(&effect.recipe)?;
        let after = told_by(effect, &keys);
        let (mut link, seen) = Self::see(effect, false, None)?;
        let mut values = Vec::new();
        for (index, seen) in seen.into_iter().enumerate() {
            let now = match seen.now.value {
                Some(_) => link.dump(&seen.change.bytes()?)?,
                None => None,
            };
            let now = said(&seen.now, now.as_deref());
            let kept = seen.change.dump.as_ref().map(|dump| self.read.read(dump));
            let kept = kept.transpose().map_err(RedisFault::from)?;
            // What it became is not kept: it is told by what is there, if that is the same.
            let after = after.as_ref().and_then(|after| after.get(index));
            let after = match after {
                Some(after) if *after == seen.now => now.clone(),
                Some(after) => said(after, None),
                None => now.clone(),
            };
            values.push(ValueChange {
                key: seen.target.into(),
                before: said(&seen.change.before, kept.as_deref()),
                after,
                now: Ok(now),
            });
        }
        // Of a key that a command left as it was there is nothing to tell.
        values.retain(|it| it.before != it.after);
        Ok(Some(values))
    }

    fn examine(&self, effect: &Effect, _to_the_end: bool) -> Result<Vec<Examined>, DriverError> {
        let (_, seen) = Self::see(effect, false, None)?;
        let examined = seen.into_iter().enumerate().map(|(number, seen)| {
            let lost = match &seen.change.dump {
                Some(dump) if !self.read.has(dump).map_err(RedisFault::from)? => {
                    Some("what it was is not in the store any more".to_owned())
                }
                _ => None,
            };
            Ok(Examined {
                goes: seen.before.value.is_none(),
                lost,
                ..Examined::new(number, seen.target, seen.standing)
            })
        });
        examined.collect()
    }
}
