//! Commands that run at the same time: each asks the others before it first touches a name, so that what they did there is
//! told before.
//!
//! Nobody waits for somebody who waits for him. Who waits for answers answers the questions that he is asked. Only where two
//! are about to touch the same does one have to wait until the other has done its call: the younger one, by the number of its
//! operation. So whoever waits, waits for an older one, and the oldest for nobody. If the older one comes while the younger
//! has an answer of it already, the younger asks it again. All of it takes ten seconds at most.

use std::collections::HashSet;
use std::io;
use std::mem::take;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use backout_capture::live::Touch;
use backout_files::{Claim, Recorder};
use backout_model::{Operation, OperationId, Status, Verb};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::desk::{ANSWER_WAIT, Asked, Asker, Desk, Heard, Question, Words};
use super::watch::{OnPart, Writing, WrittenBy};
use crate::Engine;

/// How long to wait before somebody is asked again.
const AGAIN: Duration = Duration::from_millis(10);

/// How long who has no desk itself waits for the desk of another: two that begin at once would wait for each other.
const DESK_WAIT: Duration = Duration::from_secs(1);

/// How long to wait until somebody has settled a command whose watcher died: its front does so at once.
const SETTLING_WAIT: Duration = Duration::from_secs(3);

/// What one command knows of the others.
#[derive(Debug)]
pub(super) struct Neighbours {
    id: OperationId,
    others: Vec<Operation>,
    /// Those that did not answer: they are not asked a second time.
    silent: HashSet<OperationId>,
    /// What all others have answered for, until the call is made.
    cleared: Claim,
    /// Whether processes of others go on writing that.
    is_shared: bool,
    /// Questions that wait until a call is made.
    held: Vec<Question>,
    /// Whether one that was not asked goes first.
    is_overtaken: bool,
}

/// How far the question to one of them has come.
#[derive(Debug)]
enum State {
    /// To be asked at this moment.
    Due(Instant),
    Waiting(Asked),
    /// Its watcher died; somebody will settle what it did.
    Dead(Instant),
    Done,
}

/// A question to one of them.
#[derive(Debug)]
struct Round<'o> {
    other: &'o Operation,
    state: State,
    /// Whether its watcher died and nobody settled it in time.
    is_unsettled: bool,
}

impl Neighbours {
    pub(super) fn new(id: OperationId) -> Self {
        Self {
            id,
            others: Vec::new(),
            silent: HashSet::new(),
            cleared: Claim::default(),
            is_shared: false,
            held: Vec::new(),
            is_overtaken: false,
        }
    }

    /// Gives what a call that was prepared has to ask for first.
    pub(super) fn claim(
        &mut self,
        engine: &Engine,
        recorder: &mut dyn Recorder,
        touch: &Touch,
    ) -> Option<Claim> {
        if recorder.has_new_neighbours() {
            self.look(engine);
        }
        let cleared = take(&mut self.cleared);
        if self.others.is_empty() {
            return None;
        }
        let claim = recorder.claim(touch);
        (!claim.is_empty() && claim != cleared).then_some(claim)
    }

    /// Looks who is there.
    pub(super) fn look(&mut self, engine: &Engine) {
        // Who cannot be seen is somebody else.
        let mut others = engine.store.armed().unwrap_or_default();
        others.retain(|other| {
            other.verb == Verb::Run && other.id != self.id && !self.silent.contains(&other.id)
        });
        self.others = others;
    }

    /// Tells whether processes of others go on writing what the last call was cleared for.
    pub(super) const fn takes_shared(&mut self) -> bool {
        std::mem::replace(&mut self.is_shared, false)
    }

    /// Answers who had to wait until a call was made. Not yet, if all others have answered and it is looked at once more: it
    /// is made next.
    pub(super) fn answer_held(&mut self, recorder: &mut dyn Recorder, on_part: OnPart<'_>) {
        if self.cleared.is_empty() {
            self.answer_all(recorder, on_part);
        }
    }

    /// Answers who had to wait, now that no call is under way.
    pub(super) fn answer_all(&mut self, recorder: &mut dyn Recorder, on_part: OnPart<'_>) {
        self.cleared = Claim::default();
        for question in take(&mut self.held) {
            answer(question, recorder, on_part);
        }
    }

    /// Asks all others about what is about to be touched, and answers what they ask meanwhile.
    pub(super) fn ask(
        &mut self,
        engine: &Engine,
        recorder: &mut dyn Recorder,
        on_part: OnPart<'_>,
        (desk, claim): (Option<&Desk>, Claim),
    ) {
        let words = Words::of(self.id, &claim);
        let began = Instant::now();
        let others = take(&mut self.others);
        let desk_until = desk.is_none().then(|| began + DESK_WAIT);
        let mut rounds: Vec<Round<'_>> = others
            .iter()
            .map(|other| Round {
                other,
                state: State::Due(began),
                is_unsettled: false,
            })
            .collect();
        let mut is_shared = false;
        while rounds.iter().any(|it| !matches!(it.state, State::Done)) {
            if began.elapsed() >= ANSWER_WAIT {
                self.give_up(&mut rounds, recorder);
                break;
            }
            for round in &mut rounds {
                round.ask(engine, &words, desk_until);
            }
            wait(desk, &rounds);
            while let Some(question) = desk.and_then(Desk::question) {
                if let Some(question) = self.take_in(question, &claim, &mut rounds) {
                    answer(question, recorder, on_part);
                }
            }
            for round in &mut rounds {
                is_shared |= round.hear(engine);
            }
        }
        self.pass_by(&rounds, recorder);
        drop(rounds);
        self.others = others;
        self.others.retain(|other| !self.silent.contains(&other.id));
        self.is_shared |= is_shared;
        if take(&mut self.is_overtaken) {
            self.look(engine);
        } else {
            self.cleared = claim;
        }
    }

    /// Takes a question in that comes while this command waits for answers. Gives it back if it can be answered now.
    fn take_in(
        &mut self,
        question: Question,
        claim: &Claim,
        rounds: &mut [Round<'_>],
    ) -> Option<Question> {
        let theirs = question.words.claim();
        if let Some((by, _)) = theirs.filter(|(_, theirs)| theirs.meets(claim)) {
            if by > self.id {
                self.held.push(question);
                return None;
            }
            // It goes first. What it answered before that does not count; one that began meanwhile was not asked at all.
            let round = rounds.iter_mut().find(|round| round.other.id == by);
            match round {
                Some(round) => round.state = State::Due(Instant::now()),
                None => self.is_overtaken = true,
            }
        }
        Some(question)
    }

    /// Does not wait a second time for those whose watcher died, and whom nobody settles.
    fn pass_by(&mut self, rounds: &[Round<'_>], recorder: &mut dyn Recorder) {
        for round in rounds.iter().filter(|round| round.is_unsettled) {
            self.silent.insert(round.other.id);
            let short = round.other.id.short();
            recorder.noted(&format!(
                "the watcher of {short} died, and nobody has settled what it did: where both wrote the same, it is somebody else"
            ));
        }
    }

    /// Waits for nobody any more.
    fn give_up(&mut self, rounds: &mut [Round<'_>], recorder: &mut dyn Recorder) {
        let open = rounds
            .iter_mut()
            .filter(|it| !matches!(it.state, State::Done));
        for Round { other, state, .. } in open {
            if let State::Waiting(asked) = state {
                match asked.gives_up() {
                    Heard::GoOn => continue,
                    Heard::Shared => {
                        self.is_shared = true;
                        continue;
                    }
                    Heard::Nothing | Heard::Later | Heard::Gone => {}
                }
            }
            self.silent.insert(other.id);
            let (pid, short) = (other.owner.pid, other.id.short());
            recorder.noted(&format!(
                "process {pid}, which watches {short}, did not answer for ten seconds: where both wrote the same, each is somebody \
                 else to the other"
            ));
        }
    }
}

impl Round<'_> {
    /// Asks, if it is time to.
    fn ask(&mut self, engine: &Engine, words: &Words, desk_until: Option<Instant>) {
        let State::Due(at) = self.state else {
            return;
        };
        let now = Instant::now();
        if now < at {
            return;
        }
        let later = State::Due(now + AGAIN);
        let desk = engine.store.capture_desk(self.other.id);
        self.state = match Asked::at(&desk, words) {
            Ok(Some(asked)) => State::Waiting(asked),
            Ok(None) => later,
            // Who ends takes his desk away.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => State::Dead(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_armed(engine) => {
                // It is about to start, or its end is being written down: however long that takes on a busy machine.
                let is_alive = engine.store.is_alive(&self.other.owner);
                match (is_alive, desk_until) {
                    (false, _) => State::Dead(now),
                    (true, Some(until)) if now >= until => State::Done,
                    (true, _) => later,
                }
            }
            Err(_) => State::Done,
        };
    }

    fn is_armed(&self, engine: &Engine) -> bool {
        let found = engine.store.operation(self.other.id);
        matches!(found, Ok(Some(found)) if found.status == Status::Armed)
    }

    /// Hears what there is to hear; tells whether what was asked for is written meanwhile.
    fn hear(&mut self, engine: &Engine) -> bool {
        match &mut self.state {
            State::Due(_) | State::Done => {}
            State::Dead(since) => {
                let is_long = since.elapsed() >= SETTLING_WAIT;
                if is_long || !self.is_armed(engine) {
                    self.is_unsettled = is_long;
                    self.state = State::Done;
                }
            }
            State::Waiting(asked) => match asked.heard() {
                Heard::Nothing => {}
                Heard::GoOn => self.state = State::Done,
                Heard::Shared => {
                    self.state = State::Done;
                    return true;
                }
                // It is over, or dead: who comes again sees which.
                Heard::Later | Heard::Gone => self.state = State::Due(Instant::now() + AGAIN),
            },
        }
        false
    }
}

/// Waits until somebody answers, or asks.
fn wait(desk: Option<&Desk>, rounds: &[Round<'_>]) {
    let asked = rounds.iter().filter_map(|round| match &round.state {
        State::Waiting(asked) => Some(asked.as_fd()),
        State::Due(_) | State::Dead(_) | State::Done => None,
    });
    let fds = asked.chain(desk.map(|desk| desk.as_fd()));
    let mut fds: Vec<PollFd<'_>> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let step = Timespec {
        tv_sec: 0,
        tv_nsec: i64::from(AGAIN.subsec_nanos()),
    };
    // Whatever it is, all are looked at.
    let _some = poll(&mut fds, Some(&step));
}

/// Records the part of this command in what somebody is about to write, and lets it go on. What somebody who went on without
/// an answer has written by now, nobody knows: then what it asked about is not this command's alone.
pub(super) fn answer(mut question: Question, recorder: &mut dyn Recorder, on_part: OnPart<'_>) {
    match question.take() {
        Asker::Waits => {}
        Asker::WentOn => return recorder.shares(&question.words.targets),
        Asker::Withdrew => return,
    }
    let words = &question.words;
    let writing = Writing {
        targets: &words.targets,
        numbers: &words.numbers,
        by: if words.by.is_some() {
            WrittenBy::Command
        } else {
            WrittenBy::Operation
        },
    };
    let is_shared = on_part(recorder, writing);
    question.answer(is_shared);
}
