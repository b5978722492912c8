//! The code for one kind of target, as the engine sees it.
//!
//! - The engine knows drivers by name only. A recipe is carried out by the driver that it names; if that is not there, the
//!   recipe is reported and kept, never guessed at.
//! - A driver is asked two kinds of things: to write what a [`Request`] says, and whatever concerns an [`Effect`] that was
//!   recorded. For the second it has nothing but the recipe and the world.
//! - Whatever a recipe keeps stands in its envelope, so the store lets it go without asking the driver.
//!
//! Design: `docs/design/drivers.md`.

use std::any::Any;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::drift::DriftKind;
use crate::ports::{Applied, ChangedFile, How, OnConflict, Prepared, PreparedUndo, Watch};
use crate::report::Report;
use crate::{
    Armed, Completion, Digest, DriverName, Effect, Flaw, JsonText, Key, OperationId, OperationKind,
    OutcomeKind, Recipe, Slot, Strategy, Target, TargetPath, Timestamp, Traits, Verb,
};

/// Something that a driver can be asked to write.
pub trait Request: Any + fmt::Debug + Send + Sync {
    /// Names the driver that it is for.
    fn driver(&self) -> DriverName;

    /// Tells what kind of write it is.
    fn verb(&self) -> Verb;

    /// Says it in one line for people.
    fn summary(&self) -> String;

    /// Writes it down in the driver's own words, for [`Driver::read_request`] to read; an error if only this process can
    /// carry it out.
    fn as_text(&self) -> Result<JsonText, DriverError>;
}

impl dyn Request {
    /// Gives the request as the type that it is.
    pub fn as_a<R: Request>(&self) -> Result<&R, DriverError> {
        let it: &dyn Any = self;
        it.downcast_ref().ok_or_else(|| {
            let request = self.summary();
            DriverError::new(WrongRequest { request })
        })
    }
}

/// What a driver keeps between staging and applying. Dropping it leaves no trace.
pub trait Staged: Any + fmt::Debug + Send {
    /// Tells how many bytes the write keeps beside the store's contents, as far as that is known.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Lists the names that come to stand for something else, for gates to look at. What moves is not among them, nor what is
    /// in a tree that goes as one.
    fn changed(&self) -> Vec<ChangedFile<'_>> {
        Vec::new()
    }

    /// Lists what will get another name, with all that is in it: the old name and the new.
    fn moved(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }

    /// Lists what will get one more name: a name that it has, and the new one.
    fn linked(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }

    /// Lists the names by which something is written where links led from them to it: the name that was used, and the one
    /// that it means.
    fn through(&self) -> Vec<(TargetPath, TargetPath)> {
        Vec::new()
    }
}

impl dyn Staged {
    /// Shows it as the type that it is; none if it is another.
    pub fn as_a<S: Staged>(&self) -> Option<&S> {
        let it: &dyn Any = self;
        it.downcast_ref()
    }

    /// Takes it as the type that it is.
    pub fn take<S: Staged>(self: Box<Self>) -> Result<S, DriverError> {
        let it: Box<dyn Any> = self;
        it.downcast().map(|it| *it).map_err(|_| {
            let request = "what another driver staged".to_owned();
            DriverError::new(WrongRequest { request })
        })
    }
}

/// What a request is about, before anything is looked at closely.
#[derive(Debug)]
pub struct Scope {
    /// What it will write, so that it can be leased.
    pub targets: Vec<Target>,
    /// What it reads and makes its own, such as the source of a copy.
    pub sources: Vec<Target>,
    /// What the decision matrix wants to know.
    pub traits: Traits,
}

impl Scope {
    /// Describes a write that copies nothing, with nothing special about it.
    pub const fn of(targets: Vec<Target>, kind: OperationKind) -> Self {
        Self {
            targets,
            sources: Vec::new(),
            traits: Traits::of(kind),
        }
    }
}

/// What a recipe says of its targets, without a look at the world.
#[derive(Debug, Clone, Default)]
pub struct Outline {
    /// What it wrote.
    pub targets: Vec<Target>,
    /// Trees that went with all that was in them, kept as one.
    pub gone: BTreeSet<Key>,
    /// Trees that came back as one.
    pub come: BTreeSet<Key>,
    /// Trees that were moved to where nothing was.
    pub brought: BTreeSet<Key>,
    /// What an undo can promise.
    pub guarantee: Guarantee,
    /// Who may have seen the effect, or acted on it, before it is taken back, if anybody could: an undo does not change that.
    pub seen_by_others: Option<String>,
}

/// What an undo of an effect can promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guarantee {
    /// Each target becomes exactly what it was.
    #[default]
    Exact,
    /// A second effect answers the first one.
    Compensating,
}

impl Outline {
    /// Says no more than what was written.
    pub fn of(targets: Vec<Target>) -> Self {
        Self {
            targets,
            ..Self::default()
        }
    }

    /// Says that an undo can only answer the effect by another one.
    #[must_use]
    pub const fn compensating(mut self) -> Self {
        self.guarantee = Guarantee::Compensating;
        self
    }

    /// Says who may have seen the effect before it is taken back, such as `clients of shop that read these rows`.
    #[must_use]
    pub fn seen_by(mut self, who: impl Into<String>) -> Self {
        self.seen_by_others = Some(who.into());
        self
    }
}

/// How what is there relates to an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// As it was before.
    Before,
    /// As the operation made it.
    After,
    /// Neither.
    Other {
        /// What differs from how the operation made it.
        why: String,
    },
}

impl State {
    /// Compares what is there with what was before and after.
    pub fn of<T: PartialEq + ?Sized>(now: &T, before: &T, after: &T) -> Self {
        if now == after {
            Self::After
        } else if now == before {
            Self::Before
        } else {
            let why = "somebody else changed it".to_owned();
            Self::Other { why }
        }
    }

    /// Gives what becomes of a target that is taken back, if it can come back exactly: the one rule of before, after and
    /// now.
    pub fn taken_back(self, on_conflict: OnConflict) -> OutcomeKind {
        match (self, on_conflict) {
            (Self::Before, _) => OutcomeKind::AlreadyGone,
            (Self::After, _) => OutcomeKind::Restored,
            (Self::Other { why }, OnConflict::Force) => OutcomeKind::Overwritten { why },
            (Self::Other { why }, OnConflict::Refuse | OnConflict::Merge) => {
                OutcomeKind::Conflict { why }
            }
        }
    }
}

/// A target and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The target.
    pub target: Target,
    /// How what is there now relates to the operation.
    pub state: State,
    /// The number of the change that it is part of: the two names of a move stand and fall together.
    pub change: usize,
    /// Whether nothing was there before, so that an undo takes it away.
    pub goes: bool,
    /// Why what it was cannot be brought back, if it cannot.
    pub lost: Option<String>,
    /// Why what the operation left there is not its alone, if it is not.
    pub shared: Option<String>,
    /// What stands in a directory that the operation made, and is not the operation's.
    pub strangers: Vec<TargetPath>,
    /// The directory that does not let us take it back, if it is only that.
    pub barred: Option<TargetPath>,
    /// Whether the operation has taken out of its slot what it was to bring, whatever somebody made of that since.
    pub has_come: bool,
}

impl Examined {
    /// Says where a target stands that has nothing special about it: it stands and falls alone, and can be brought back.
    /// `change` tells it from the others.
    pub const fn new(change: usize, target: Target, state: State) -> Self {
        Self {
            target,
            state,
            change,
            goes: false,
            lost: None,
            shared: None,
            strangers: Vec::new(),
            barred: None,
            has_come: false,
        }
    }
}

/// What a part of something was and is, in the words of what holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct ValueChange {
    /// The part.
    pub key: Key,
    /// What it was; none if it was not there.
    pub before: Option<String>,
    /// What it became.
    pub after: Option<String>,
    /// What it is now; the error says why nobody can tell.
    pub now: Result<Option<String>, String>,
}

impl fmt::Debug for ValueChange {
    // Values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ValueChange({})", self.key)
    }
}

/// What an effect tells of a target that is about to be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aspect {
    /// All of it.
    Whole,
    /// Its mode, owner or attributes, and nothing else.
    Looks,
    /// What is in a directory, as one: nobody has a list.
    Tree,
    /// That it is not there: it lies in a directory that the effect made, and is not the effect's.
    Stranger,
}

/// What is to be compared of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// Nothing.
    Nothing,
    /// All that the effect tells.
    All,
    /// All but mode, owner and attributes.
    NotLooks,
}

/// A target that is not what an effect left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// The target.
    pub target: Target,
    /// What kind of difference.
    pub kind: DriftKind,
    /// What the effect left, in words and without values.
    pub expected: String,
    /// What is there, in words and without values.
    pub found: String,
    /// Tells two findings apart.
    pub mark: Digest,
    /// When what is there says that it changed.
    pub changed: Option<Timestamp>,
}

/// What is wrong with something that is kept, if anything is.
pub type LookedAt = (Slot, Option<Flaw>);

/// What went wrong, with what the engine has to know of it.
pub trait Fault: Error + Any + Send + Sync {
    /// Tells whether somebody stopped the work.
    fn is_stop(&self) -> bool {
        false
    }

    /// Tells whether the same may work a moment later.
    fn may_pass(&self) -> bool {
        false
    }

    /// Tells whether a part of the effect may stay although it failed.
    fn is_half_done(&self) -> bool {
        false
    }

    /// Says why the strategy that was asked for cannot be prepared, if it is only that.
    fn not_prepared(&self) -> Option<String> {
        None
    }

    /// Says why what is needed is out of reach although it may well be there, if it is that.
    fn out_of_reach(&self) -> Option<&str> {
        None
    }

    /// Says what to do next, if the driver knows.
    fn advice(&self) -> Option<String> {
        None
    }

    /// Names what cannot be brought back since nobody has what it was, and says why, if it is that.
    fn lost(&self) -> Option<(&str, &str)> {
        None
    }

    /// Says what of the driver's own stays although every target is as before, if something does.
    fn left_over(&self) -> Option<LeftOver> {
        None
    }

    /// Tells it to people and programs in the driver's own words; none if the rest says all that there is to say.
    fn report(&self) -> Option<Report> {
        None
    }
}

/// Something of a driver's own that stays although every target is as before.
#[derive(Debug)]
pub struct LeftOver {
    /// What stays, and why.
    pub what: String,
    /// What went wrong first.
    pub began_by: Report,
}

/// What a driver could not do. Nothing was changed, unless the fault says so.
pub struct DriverError(Box<dyn Fault>);

impl DriverError {
    /// Wraps a fault.
    pub fn new(fault: impl Fault) -> Self {
        Self(Box::new(fault))
    }

    /// Says that something failed, and that what was done before it could not be put back.
    pub fn half_done(cause: impl Error + Send + Sync + 'static) -> Self {
        Self::new(HalfDone(Box::new(cause)))
    }

    /// Gives what the engine has to know.
    pub fn fault(&self) -> &dyn Fault {
        &*self.0
    }

    /// Gives the driver's own error, if it is of this type.
    pub fn as_a<F: Fault>(&self) -> Option<&F> {
        let it: &dyn Any = &*self.0;
        it.downcast_ref()
    }
}

impl fmt::Debug for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for DriverError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// A part of an effect stays although it failed.
#[derive(Debug, thiserror::Error)]
#[error("a part was done and could not be put back")]
struct HalfDone(#[source] Box<dyn Error + Send + Sync>);

impl Fault for HalfDone {
    fn is_half_done(&self) -> bool {
        true
    }
}

/// A request or something staged came to a driver that does not know it.
#[derive(Debug, thiserror::Error)]
#[error("the driver does not know this request: {request}")]
struct WrongRequest {
    request: String,
}

impl Fault for WrongRequest {}

/// The code for one kind of target.
pub trait Driver: fmt::Debug + Send + Sync {
    /// Names it, as recipes do.
    fn name(&self) -> DriverName;

    /// Shows the watch that it tells how far long work is, and that may stop it. On registration the engine joins it with its
    /// own. Give the one that you hold; none if nothing takes long.
    fn watch(&self) -> Option<&Watch> {
        None
    }

    /// Tells what a request is about.
    fn scope(&self, request: &dyn Request) -> Result<Scope, DriverError>;

    /// Tells whether a request can still be made repeatable after it was prepared. One that reads a pipe cannot.
    fn is_lasting(&self, _request: &dyn Request) -> Result<bool, DriverError> {
        Ok(true)
    }

    /// Makes a request one that any later process can carry out: what it reads only once is kept, for the operation `by`, and
    /// what depends on this process, such as its current directory, is not part of it any more. A request that is plain data
    /// is repeatable as it is.
    fn repeatable(
        &self,
        _by: OperationId,
        request: &dyn Request,
    ) -> Result<Box<dyn Request>, DriverError> {
        self.read_request(&request.as_text()?)
    }

    /// Gives the digest of what a request asks. The same request has the same one whatever the world is like by now: bytes
    /// that come with it count, and what it names is not looked at.
    fn asked(&self, request: &dyn Request) -> Result<Digest, DriverError> {
        Ok(Digest::of(request.as_text()?.as_str().as_bytes()))
    }

    /// Lists the contents of the store that a repeatable request refers to.
    fn contents_of(&self, _request: &dyn Request) -> Result<Vec<Digest>, DriverError> {
        Ok(Vec::new())
    }

    /// Reads a request that was written down.
    fn read_request(&self, text: &JsonText) -> Result<Box<dyn Request>, DriverError>;

    /// Gives the digest of what a recipe would do: each target with what it was and what it becomes. Two that were prepared
    /// from the same request, and found the same, have the same. If nothing else is said, that is all of the recipe.
    fn fingerprint(&self, recipe: &Recipe) -> Result<Digest, DriverError> {
        Ok(Digest::of(&serde_json::to_vec(recipe)?))
    }

    /// Looks, stages and captures, so that the write can be taken back by `strategy`. Changes nothing that anybody can see. If
    /// that strategy cannot be prepared the fault says why ([`Fault::not_prepared`]), and another one may be.
    fn prepare(
        &self,
        id: OperationId,
        request: &dyn Request,
        strategy: Strategy,
    ) -> Result<Prepared, DriverError>;

    /// Makes it happen and looks at the result. Once, by type. On an error everything is as before, or the error says
    /// what is not.
    fn apply(&self, armed: Armed) -> Result<Applied, DriverError>;

    /// Prepares the write that takes `effect` back, keeping everything that it replaces. Changes nothing that anybody
    /// can see, but clears the traces of an effect that never finished.
    fn prepare_undo(
        &self,
        id: OperationId,
        effect: &Effect,
        how: How<'_>,
    ) -> Result<PreparedUndo, DriverError>;

    /// Says what the recipe alone tells of its targets.
    fn outline(&self, effect: &Effect) -> Result<Outline, DriverError>;

    /// Gives names with all that an undo of them touches: what was moved goes back by either of its names.
    fn with_moved(
        &self,
        _effect: &Effect,
        names: &BTreeSet<Key>,
    ) -> Result<BTreeSet<Key>, DriverError> {
        Ok(names.clone())
    }

    /// Tells where each target of an effect stands now: how much of it is in the world. Looks only. With `to_the_end`, it
    /// goes on although somebody wants the work to stop: what is there then has to be known.
    fn examine(&self, effect: &Effect, to_the_end: bool) -> Result<Vec<Examined>, DriverError>;

    /// Tells whether the whole of `effect` is in the world now.
    fn is_in_place(&self, effect: &Effect) -> Result<bool, DriverError> {
        let examined = self.examine(effect, true)?;
        Ok(examined.iter().all(|it| it.state == State::After))
    }

    /// Tells whether an undo or a redo that nobody finished is kept if all of it is in the world. One that was answered by another
    /// effect is better not answered again.
    fn keeps_undos_in_place(&self) -> bool {
        false
    }

    /// Tells whether only a try shows what an undo would meet, such as a constraint that others' rows bring in: then a plan prepares
    /// one, and lets go of it.
    fn foresees_by_trying(&self) -> bool {
        false
    }

    /// Finishes a write that nobody finished, if doing it again does it once, and taking it back is not possible: the target knows it
    /// again. Gives what the effect told; none if it cannot be finished so.
    fn finish(&self, _effect: &Effect) -> Result<Option<Completion>, DriverError> {
        Ok(None)
    }

    /// Says what answers an effect, if it is answered by another one.
    fn answered_by(&self, _effect: &Effect) -> Result<Option<String>, DriverError> {
        Ok(None)
    }

    /// Says of each thing that an effect keeps, for a name that is needed, what is wrong with it, if something is. Looks
    /// only. Nothing is said of contents: the store looks at those itself.
    fn check_kept(
        &self,
        _effect: &Effect,
        _is_needed: &dyn Fn(&Key) -> bool,
    ) -> Result<Vec<LookedAt>, DriverError> {
        Ok(Vec::new())
    }

    /// Says what an effect did to whole files, as an effect of the driver of files; none if it wrote none.
    fn as_files(&self, _effect: &Effect) -> Result<Option<Effect>, DriverError> {
        Ok(None)
    }

    /// Gives what a file would be that is `now`, if an effect on parts of it were taken back; none if that cannot be
    /// done. Looks only.
    fn without(
        &self,
        _effect: &Effect,
        _how: How<'_>,
        _now: &[u8],
    ) -> Result<Option<Vec<u8>>, DriverError> {
        Ok(None)
    }

    /// Tells whether taking an effect on parts of a file back gives the file the bytes that it had. Rows of a database come back
    /// in other bytes.
    fn keeps_bytes(&self, _effect: &Effect) -> bool {
        true
    }

    /// Makes a request that makes some targets of an effect what they were before it, or with `is_after` what it made of
    /// them, whatever they are now; `summary` is its line for people. None if this driver restores nothing but by an undo.
    /// Looks only.
    fn restoring(
        &self,
        _effect: &Effect,
        _targets: &[Target],
        _is_after: bool,
        _summary: String,
    ) -> Result<Option<Box<dyn Request>>, DriverError> {
        Ok(None)
    }

    /// Lists the targets that are not as an effect left them, whatever an undo would make of that. `wanted` is asked first, of each
    /// target that the effect tells of. Looks only; who cannot look says so, and does not take that for a difference.
    fn differing(
        &self,
        effect: &Effect,
        wanted: &dyn Fn(&Key, Aspect) -> Compare,
    ) -> Result<Vec<Differing>, DriverError> {
        let is_wanted = |it: &Examined| wanted(it.target.key(), Aspect::Whole) != Compare::Nothing;
        let mut examined = self.examine(effect, false)?;
        examined.retain(is_wanted);
        if examined.iter().all(|it| it.state == State::After) {
            return Ok(Vec::new());
        }
        let values = self.values(effect)?.unwrap_or_default();
        Ok(differing_by_look(examined, &values))
    }

    /// Says what an effect did to parts, value by value; none if it is not told in parts.
    fn values(&self, _effect: &Effect) -> Result<Option<Vec<ValueChange>>, DriverError> {
        Ok(None)
    }
}

/// Says what differs by what an undo would find, and by the values that are there.
fn differing_by_look(examined: Vec<Examined>, values: &[ValueChange]) -> Vec<Differing> {
    let mut differing = Vec::new();
    for it in examined {
        let key = it.target.key();
        let mut now = values.iter().filter(|value| value.key.is_at_or_below(key));
        let why = match &it.state {
            State::After => continue,
            State::Before => "as it was before",
            State::Other { why } => why,
        };
        let mut mark = why.as_bytes().to_vec();
        let (mut is_told, mut is_there) = (false, false);
        for value in now.by_ref() {
            // Nobody can tell: that is no difference.
            let Ok(now) = &value.now else {
                continue;
            };
            is_told = true;
            is_there |= now.is_some();
            mark.push(0);
            mark.extend(now.as_deref().unwrap_or_default().as_bytes());
        }
        let is_gone = if is_told {
            !is_there
        } else {
            it.goes && it.state == State::Before
        };
        let (kind, found) = match (&it.state, is_gone) {
            (_, true) => (DriftKind::Gone, "nothing"),
            (State::Before, false) => (DriftKind::Changed, "what it was before"),
            (State::After | State::Other { .. }, false) => (DriftKind::Changed, "something else"),
        };
        differing.push(Differing {
            kind,
            expected: "what the operation left".to_owned(),
            found: found.to_owned(),
            mark: Digest::of(&mark),
            changed: None,
            target: it.target,
        });
    }
    differing
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
