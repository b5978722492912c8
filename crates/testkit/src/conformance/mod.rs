//! What every store must do. One function is one claim; [`store_conformance`](crate::store_conformance) makes a test of each.
//!
//! A store brings a [`Kit`]: how it is opened, and how somebody hurts it from the outside.

#![expect(
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a claim that does not hold ends in a panic"
)]

pub mod contents;
pub mod dependency;
pub mod failed;
pub mod journal;
pub mod leases;
pub mod notes;
pub mod proposals;
pub mod queries;
pub mod retention;
pub mod rollouts;
pub mod standing;
pub mod threads;
pub mod verify;
pub mod workspace;

use std::sync::Arc;

use backout_model::ports::{Clock as _, Durability, Entry, GcReport, GcRequest, NewContent, Store};
use backout_model::{
    Completion, Decision, Digest, DriverName, Event, Intent, JsonText, Lsn, OperationId, Owner,
    Recipe, Retention, Status, Strategy, Target, TargetPath, Timestamp, Verb,
};

use crate::TestClock;

/// A store to be tested.
pub trait Kit {
    /// Opens the store. The second time it is what another process would find.
    fn open(&self) -> Arc<dyn Store>;

    /// Changes the bytes of a content behind the store's back.
    fn hurt(&self, content: Digest);

    /// Takes a content away behind the store's back.
    fn lose(&self, content: Digest);
}

/// An empty store, and a clock that a test moves.
pub struct World {
    kit: Box<dyn Kit>,
    /// The one that is put to the test.
    pub store: Arc<dyn Store>,
    /// The store asks it for the time.
    pub clock: Arc<TestClock>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.store.fmt(f)
    }
}

impl World {
    /// Opens what `make` makes.
    pub fn new(make: impl FnOnce(Arc<TestClock>) -> Box<dyn Kit>) -> Self {
        let clock = Arc::new(TestClock::default());
        let kit = make(Arc::clone(&clock));
        let store = kit.open();
        Self { kit, store, clock }
    }

    fn again(&self) -> Arc<dyn Store> {
        self.kit.open()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn append(&self, events: Vec<Event>) -> Lsn {
        let entry = Entry::of(events);
        let appended = self.store.append(&entry, Durability::Process);
        appended.expect("it fits")
    }

    /// Arms an operation, with the dependencies that the journal sees.
    fn arm(&self, number: u64, targets: &[Target]) -> OperationId {
        let depends_on = self.store.dependencies(targets).expect("they are found");
        self.arm_as(Intent {
            depends_on,
            ..intent(number, targets)
        })
    }

    fn arm_as(&self, intent: Intent) -> OperationId {
        let id = intent.id;
        self.append(vec![Event::Intent(Box::new(intent))]);
        id
    }

    /// Arms an operation that needs contents.
    fn arm_with(&self, number: u64, targets: &[Target], contents: &[&[u8]]) -> OperationId {
        let contents = contents.iter().map(|bytes| NewContent::of(bytes.to_vec()));
        self.arm_keeping(number, targets, contents.collect())
    }

    fn arm_keeping(
        &self,
        number: u64,
        targets: &[Target],
        contents: Vec<NewContent>,
    ) -> OperationId {
        let mut intent = intent(number, targets);
        intent.recipe.contents = contents.iter().map(|content| content.digest).collect();
        let entry = Entry {
            events: vec![Event::Intent(Box::new(intent))],
            contents,
        };
        let armed = self.store.append(&entry, Durability::Power);
        armed.expect("it fits");
        id(number)
    }

    fn finish(&self, id: OperationId) -> OperationId {
        self.append(vec![applied(id), Event::Commit { id }]);
        id
    }

    fn commit(&self, number: u64, targets: &[Target]) -> OperationId {
        self.finish(self.arm(number, targets))
    }

    /// Takes an operation back, as a whole.
    fn undo(&self, number: u64, undone: OperationId, targets: &[Target]) -> OperationId {
        let by = self.finish(self.arm_as(Intent {
            verb: Verb::Undo,
            undoes: Some(undone),
            ..intent(number, targets)
        }));
        self.append(vec![Event::Undone {
            id: undone,
            by,
            outcomes: Vec::new(),
            is_partial: false,
        }]);
        by
    }

    /// Brings an operation back by taking its undo back.
    fn redo(
        &self,
        number: u64,
        undo: OperationId,
        back: OperationId,
        targets: &[Target],
    ) -> OperationId {
        let by = self.finish(self.arm_as(Intent {
            verb: Verb::Redo,
            undoes: Some(undo),
            ..intent(number, targets)
        }));
        let standing = targets.iter().map(|target| backout_model::Standing {
            held_by: Some(by),
            ..backout_model::Standing::new(target.clone())
        });
        let undone = Event::Undone {
            id: undo,
            by,
            outcomes: Vec::new(),
            is_partial: false,
        };
        let redone = Event::Redone {
            id: back,
            by,
            targets: Some(standing.collect()),
        };
        self.append(vec![undone, redone]);
        by
    }

    fn operation(&self, id: OperationId) -> backout_model::Operation {
        let found = self.store.operation(id).expect("it can be read");
        found.expect("it is there")
    }

    fn status(&self, id: OperationId) -> Status {
        self.operation(id).status
    }

    fn gc(&self, retention: &Retention, is_dry_run: bool) -> GcReport {
        let request = GcRequest {
            retention: retention.clone(),
            is_dry_run,
            now: self.now(),
        };
        let collected = self.store.gc(&request, &mut |_, _| {});
        collected.expect("it is collected")
    }
}

fn id(number: u64) -> OperationId {
    OperationId::from_bits(number << 48)
}

fn node(path: &str) -> Target {
    Target::node(TargetPath::new(path).expect("a path"))
}

fn tree(path: &str) -> Target {
    Target::tree(TargetPath::new(path).expect("a path"))
}

fn applied(id: OperationId) -> Event {
    let completion = Completion::default();
    Event::Applied { id, completion }
}

fn intent(number: u64, targets: &[Target]) -> Intent {
    Intent {
        id: id(number),
        verb: Verb::Write,
        summary: format!("write {number}"),
        agent: None,
        task: None,
        owner: backout_storage::this_process(),
        decision: Decision::new(Strategy::Snapshot, &[], String::new()),
        targets: targets.to_vec(),
        depends_on: Vec::new(),
        undoes: None,
        with: None,
        group: None,
        asked: None,
        notes: Vec::new(),
        command: None,
        plan: None,
        trigger: None,
        call: None,
        approval: None,
        prompt: None,
        recipe: Recipe {
            driver: DriverName::FILE,
            version: 1,
            contents: Vec::new(),
            slots: Vec::new(),
            body: JsonText::default(),
        },
    }
}

/// A process that ran here and is dead.
fn dead() -> Owner {
    Owner {
        started: 1,
        ..backout_storage::this_process()
    }
}

/// Makes a test of every claim, for the store that an expression gives: a function from the clock to a boxed [`Kit`].
#[macro_export]
macro_rules! store_conformance {
    ($make:expr) => {
        $crate::store_conformance! { $make;
            journal: records_are_numbered_and_read_back_by_another_process,
                each_record_is_linked_to_the_one_before_it,
                an_entry_is_all_or_nothing,
                a_history_that_cannot_have_happened_is_refused,
                an_id_is_given_once,
                a_recipe_is_not_armed_without_what_it_needs,
                an_abort_that_left_something_behind_is_in_doubt,
                a_refusal_is_an_operation_with_nothing_to_undo,
                a_command_stands_where_it_ended,
                an_effect_is_its_recipe_and_what_only_it_could_tell;
            proposals: a_proposal_waits_with_all_that_it_needs,
                a_proposal_is_claimed_once_and_becomes_the_operation,
                a_proposal_that_is_refused_is_over,
                a_call_is_found_by_its_key,
                a_key_moves_on_from_what_did_not_happen,
                an_act_of_several_steps_is_known_until_it_ends;
            queries: the_log_is_filtered,
                names_lead_to_one_operation_or_say_why_not,
                moments_and_places_lead_to_each_other,
                writes_of_a_target_are_counted,
                tasks_are_listed_as_they_stand,
                a_checkpoint_of_the_same_name_takes_it_over,
                a_store_is_told_in_numbers,
                records_are_exported_one_a_line;
            dependency: dependencies_follow_names_trees_and_parts,
                what_was_undone_is_no_dependency_and_what_it_hid_is_one_again,
                what_is_connected_is_found_in_both_directions;
            standing: a_whole_undo_takes_all_targets_back,
                a_partial_undo_leaves_the_rest_in_effect,
                a_redo_holds_what_it_brought_back,
                a_redo_ends_with_what_it_brought_back,
                a_redo_of_a_key_does_not_hold_by_another_with_a_slash,
                a_task_that_is_brought_back_is_what_it_was,
                later_work_is_found_at_a_key_and_above_it;
            leases: a_lease_keeps_others_off_overlapping_targets_only,
                a_dead_owners_lease_is_taken_over_unless_something_is_armed,
                what_others_hold_is_not_in_the_way_of_who_works_in_their_place,
                a_lease_ends_with_its_operation,
                only_one_of_two_recoveries_claims_an_operation,
                leases_of_the_dead_are_given_back,
                this_process_lives_and_another_life_of_its_id_does_not;
            contents: what_is_kept_is_read_back_by_its_digest,
                what_is_kept_is_held_by_somebody,
                what_is_not_there_is_missing,
                what_is_something_else_is_damaged,
                a_large_content_is_read_piece_by_piece,
                a_change_is_read_through_what_it_is_made_from,
                what_is_made_from_something_outside_says_so,
                what_a_change_is_made_from_stays_as_long_as_the_change;
            failed: an_undo_that_failed_is_listed_until_it_is_solved,
                what_could_not_be_undone_is_kept_whatever_its_age;
            retention: what_is_past_its_time_goes_and_can_no_longer_be_undone,
                what_is_unfinished_never_goes,
                a_dry_run_changes_nothing,
                an_operation_and_what_took_it_back_go_together,
                what_somebody_is_about_to_write_waits,
                what_is_put_aside_for_the_living_stays,
                what_no_driver_here_understands_stays,
                a_full_store_refuses_what_it_has_no_room_for,
                old_records_are_exported_and_cut_and_the_chain_goes_on,
                a_key_outlives_its_images_and_a_short_audit;
            rollouts: rollouts_are_listed_and_read_back,
                what_an_open_rollout_needs_stays_until_it_ends;
            notes: notes_are_found_by_topic_subject_and_place,
                the_newest_note_of_a_subject_outlives_its_record;
            verify: a_sound_store_has_no_findings,
                a_hurt_content_is_found_and_so_is_who_needs_it,
                a_kept_inode_that_is_gone_is_found;
            workspace: a_trial_is_written_whole_and_listed,
                its_own_directories_are_its_own,
                staging_is_private_to_one_operation;
            threads: entries_of_many_threads_are_each_whole_and_in_one_chain,
                one_of_many_threads_gets_a_target;
        }
    };
    ($make:expr; $($module:ident: $($claim:ident),+;)+) => {
        $(mod $module {
            $(#[test]
            fn $claim() {
                let world = $crate::conformance::World::new($make);
                $crate::conformance::$module::$claim(&world);
            })+
        })+
    };
}
