//! The code for one kind of target, as the engine sees it.
//!
//! - The engine knows drivers by name only. A recipe is carried out by the driver that it names; if that is not there, the
//!   recipe is reported and kept, never guessed at.
//! - A driver is asked two kinds of things: to write what a [`Request`] says, and whatever concerns an [`Effect`] that was
//!   recorded. For the second it has nothing but the recipe and the world.
//! - Whatever a recipe keeps stands in its envelope, so the store lets it go without asking the driver.
//!
//! Design: `docs/design/drivers.md`.

mod differing;
mod effect;
mod fault;
mod request;

use std::collections::BTreeSet;
use std::fmt;

use crate::ports::{Applied, How, Prepared, PreparedUndo, Watch};
use crate::{
    Armed, Completion, Digest, DriverName, Effect, JsonText, Key, OperationId, Recipe, Strategy,
    Target,
};

use differing::differing_by_look;
pub use differing::{Aspect, Compare, Differing, Looking};
pub use effect::{Examined, Guarantee, LookedAt, Outline, State, ValueChange};
pub use fault::{DriverError, Fault, LeftOver};
pub use request::{Request, Scope, Staged};

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

    /// Tells whether `values` says of each value what it became, also if it is something else by now.
    fn tells_all_values(&self) -> bool {
        true
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

    /// Puts away what an operation that nobody finished left beside its targets: what is there is accepted. What it had taken
    /// out of a slot goes back.
    fn put_away(&self, _effect: &Effect) -> Result<(), DriverError> {
        Ok(())
    }

    /// Says what answers an effect, if it is answered by another one.
    fn answered_by(&self, _effect: &Effect) -> Result<Option<String>, DriverError> {
        Ok(None)
    }

    /// Says why nothing takes an effect back, if what was recorded of it shows that. Nobody is asked.
    fn no_way_back(&self, _effect: &Effect) -> Result<Option<String>, DriverError> {
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

    /// Lists the targets that are not as an effect left them, whatever an undo would make of that. Looks only; who cannot look says
    /// so, and does not take that for a difference.
    fn differing(
        &self,
        effect: &Effect,
        looking: &Looking<'_>,
    ) -> Result<Vec<Differing>, DriverError> {
        let is_wanted =
            |it: &Examined| looking.wanted(it.target.key(), Aspect::Whole) != Compare::Nothing;
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

#[cfg(test)]
mod tests;
