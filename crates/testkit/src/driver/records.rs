//! What is written down between an operation and its undo.

use std::collections::BTreeSet;

use backout_model::ports::OnConflict;
use backout_model::{Effect, Target};

use super::{
    AGAIN, FIRST, Harness, UNDO, applied, assert_settled, carried_out, prepared, taken_back,
    through_json,
};

pub(super) fn a_request_is_kept_and_read_again<H: Harness>(name: &str, world: &H) {
    let driver = world.driver();
    let request = driver.repeatable(FIRST, &*world.request());
    let request = request.expect("is repeatable");
    let text = request.as_text().expect("is written down");
    let read = driver.read_request(&text).expect("is read again");
    let again = read.as_text().expect("is written down");
    assert_eq!(again, text, "{name}: a request changes as it is read");
    let print = |request| {
        let prepared = driver
            .prepare(FIRST, request, world.strategy())
            .expect("prepares");
        driver.fingerprint(&prepared.recipe).expect("is named")
    };
    assert_eq!(
        print(&*read),
        print(&*request),
        "{name}: the same request does something else later"
    );
}

pub(super) fn a_recipe_reads_back_the_same<H: Harness>(name: &str, world: &H) {
    let driver = world.driver();
    let prepared = prepared(world);
    let effect = |recipe| Effect {
        recipe,
        completion: None,
    };
    let read = effect(through_json(&prepared.recipe));
    assert_eq!(read.recipe, prepared.recipe, "{name}");
    assert_eq!(read.recipe.driver, driver.name(), "{name}");
    let outline = driver.outline(&read).expect("is outlined");
    let outlined: BTreeSet<_> = outline.targets.into_iter().collect();
    let targets: BTreeSet<_> = prepared.targets.iter().cloned().collect();
    assert_eq!(outlined, targets, "{name}: a recipe has other targets");
    let examined = driver.examine(&read, false).expect("looks").into_iter();
    let examined: BTreeSet<_> = examined.map(|it| it.target).collect();
    assert_eq!(examined, targets, "{name}: other targets are looked at");
    for content in &prepared.contents {
        let is_named = read.recipe.contents.contains(&content.digest);
        assert!(is_named, "{name}: the envelope does not name what it keeps");
    }
    let kept = driver.check_kept(&read, &|_| true).expect("looks");
    for (slot, _) in kept {
        let is_named = read.recipe.slots.contains(&slot);
        assert!(is_named, "{name}: the envelope does not name {slot:?}");
    }
}

pub(super) fn an_unknown_version_is_refused<H: Harness>(name: &str, world: &H) {
    let effect = applied(world);
    let after = world.snapshot(true);
    for version in [0, u16::MAX] {
        let mut effect = effect.clone();
        effect.recipe.version = version;
        let driver = world.driver();
        let how = OnConflict::Force.into();
        let answers = [
            ("outline", driver.outline(&effect).is_ok()),
            ("examine", driver.examine(&effect, false).is_ok()),
            ("is_in_place", driver.is_in_place(&effect).is_ok()),
            (
                "prepare_undo",
                driver.prepare_undo(UNDO, &effect, how).is_ok(),
            ),
        ];
        for (asked, is_answered) in answers {
            assert!(
                !is_answered,
                "{name}: {asked} understands version {version}"
            );
        }
    }
    assert_eq!(world.snapshot(true), after, "{name}");
}

pub(super) fn what_was_let_go_of_is_not_made_up<H: Harness>(name: &str, world: &H) {
    let before = world.snapshot(true);
    let effect = applied(world);
    world.release(&effect.recipe);
    let after = world.snapshot(true);
    for on_conflict in [OnConflict::Refuse, OnConflict::Force] {
        let undo = world
            .driver()
            .prepare_undo(UNDO, &effect, on_conflict.into());
        // What has nothing to say of any target refuses.
        let Some(undo) = undo.ok().filter(|undo| !undo.outcomes.is_empty()) else {
            continue;
        };
        if undo.prepared.is_noop {
            let is_back = undo.outcomes.iter().all(|it| it.kind.is_taken_back());
            assert!(
                !is_back,
                "{name}: nothing happens and all is said to be back"
            );
            continue;
        }
        if undo.outcomes.iter().all(|it| it.kind.is_complete()) {
            carried_out(world, UNDO, undo.prepared);
            assert_eq!(world.snapshot(true), before, "{name}: it was made up");
            return;
        }
    }
    assert_eq!(world.snapshot(true), after, "{name}: {effect:?}");
}

pub(super) fn values_are_what_was_and_what_is<H: Harness>(name: &str, world: &H) {
    let effect = applied(world);
    let told = |world: &H, effect: &Effect| world.driver().values(effect).expect("looks");
    let Some(values) = told(world, &effect) else {
        return;
    };
    let outline = world.driver().outline(&effect).expect("is outlined");
    let outlined: BTreeSet<_> = outline.targets.iter().map(Target::key).collect();
    let keys: BTreeSet<_> = values.iter().map(|value| &value.key).collect();
    // A target that was written and is as it was has nothing to tell.
    let is_of_them = !keys.is_empty() && keys.is_subset(&outlined);
    assert!(is_of_them, "{name}: values of something else: {keys:?}");
    for value in &values {
        assert_ne!(
            value.before, value.after,
            "{name}: {value:?} did not change"
        );
        assert_eq!(value.now, Ok(value.after.clone()), "{name}: {value:?}");
    }
    let (undo, outcomes) = taken_back(world, AGAIN, &effect);
    assert_settled(name, &outcomes);
    for value in told(world, &effect).expect("still tells") {
        assert_eq!(value.now, Ok(value.before.clone()), "{name}: {value:?}");
    }
    let back = told(world, &undo).expect("tells of an undo, too");
    for value in back {
        let other = values.iter().find(|other| other.key == value.key);
        let other = other.expect("is one of them");
        assert_eq!(value.before, other.after, "{name}: {value:?}");
        assert_eq!(value.after, other.before, "{name}: {value:?}");
    }
}
