//! The command line as a person, a script and an agent see it: whole outputs, in a hermetic world.
//!
//! One binary; one file per topic in `suite/`. The clock stands still, ids are counted, the environment is empty and
//! paths are shown as `$WORLD`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "suite/batch.rs"]
mod batch;
#[path = "suite/brought_back.rs"]
mod brought_back;
#[path = "suite/claims.rs"]
mod claims;
#[path = "suite/classify.rs"]
mod classify;
#[path = "suite/config_command.rs"]
mod config_command;
#[path = "suite/edit.rs"]
mod edit;
#[path = "suite/elsewhere.rs"]
mod elsewhere;
#[path = "suite/encrypted.rs"]
mod encrypted;
#[path = "suite/errors.rs"]
mod errors;
#[path = "suite/failed.rs"]
mod failed;
#[path = "suite/files.rs"]
mod files;
#[path = "suite/foreseen.rs"]
mod foreseen;
#[path = "suite/half_way.rs"]
mod half_way;
#[path = "suite/help.rs"]
mod help;
#[path = "suite/history.rs"]
mod history;
#[path = "suite/json.rs"]
mod json;
#[path = "suite/keys.rs"]
mod keys;
#[path = "suite/maintenance.rs"]
mod maintenance;
#[path = "suite/meeting.rs"]
mod meeting;
#[path = "suite/messages.rs"]
mod messages;
#[path = "suite/messages_asking.rs"]
mod messages_asking;
#[path = "suite/messages_away.rs"]
mod messages_away;
#[path = "suite/messages_checks.rs"]
mod messages_checks;
#[path = "suite/messages_diff.rs"]
mod messages_diff;
#[path = "suite/messages_doctor.rs"]
mod messages_doctor;
#[path = "suite/messages_file.rs"]
mod messages_file;
#[path = "suite/messages_gates.rs"]
mod messages_gates;
#[path = "suite/messages_graph.rs"]
mod messages_graph;
#[path = "suite/messages_http.rs"]
mod messages_http;
#[path = "suite/messages_inside.rs"]
mod messages_inside;
#[path = "suite/messages_keeping.rs"]
mod messages_keeping;
#[path = "suite/messages_kept.rs"]
mod messages_kept;
#[path = "suite/messages_keys.rs"]
mod messages_keys;
#[path = "suite/messages_maintenance.rs"]
mod messages_maintenance;
#[path = "suite/messages_no_depot.rs"]
mod messages_no_depot;
#[path = "suite/messages_recover.rs"]
mod messages_recover;
#[path = "suite/messages_refused.rs"]
mod messages_refused;
#[path = "suite/messages_rest.rs"]
mod messages_rest;
#[path = "suite/messages_rollout.rs"]
mod messages_rollout;
#[path = "suite/messages_run.rs"]
mod messages_run;
#[path = "suite/messages_sandbox.rs"]
mod messages_sandbox;
#[path = "suite/messages_serving.rs"]
mod messages_serving;
#[path = "suite/messages_standing.rs"]
mod messages_standing;
#[path = "suite/messages_steps.rs"]
mod messages_steps;
#[path = "suite/messages_store.rs"]
mod messages_store;
#[path = "suite/messages_trial.rs"]
mod messages_trial;
#[path = "suite/messages_undo.rs"]
mod messages_undo;
#[path = "suite/messages_watched.rs"]
mod messages_watched;
#[path = "suite/messages_workspace.rs"]
mod messages_workspace;
#[path = "suite/mysql.rs"]
mod mysql;
#[path = "suite/mysql_kinds.rs"]
mod mysql_kinds;
#[path = "suite/mysql_server.rs"]
mod mysql_server;
#[path = "suite/output.rs"]
mod output;
#[path = "suite/overtaken.rs"]
mod overtaken;
#[path = "suite/postgres.rs"]
mod postgres;
#[path = "suite/postgres_clients.rs"]
mod postgres_clients;
#[path = "suite/postgres_kinds.rs"]
mod postgres_kinds;
#[path = "suite/postgres_schema.rs"]
mod postgres_schema;
#[path = "suite/postgres_server.rs"]
mod postgres_server;
#[path = "suite/recover.rs"]
mod recover;
#[path = "suite/redis.rs"]
mod redis;
#[path = "suite/replies.rs"]
mod replies;
#[path = "suite/replies_checking.rs"]
mod replies_checking;
#[path = "suite/replies_elsewhere.rs"]
mod replies_elsewhere;
#[path = "suite/replies_serving.rs"]
mod replies_serving;
#[path = "suite/replies_state.rs"]
mod replies_state;
#[path = "suite/rows_orm.rs"]
mod rows_orm;
#[path = "suite/rows_stopped.rs"]
mod rows_stopped;
#[path = "suite/run.rs"]
mod run;
#[path = "suite/schema.rs"]
mod schema;
#[path = "suite/sentences.rs"]
mod sentences;
#[path = "suite/sql.rs"]
mod sql;
#[path = "suite/sql_restore.rs"]
mod sql_restore;
#[path = "suite/sql_schema.rs"]
mod sql_schema;
#[path = "suite/strange.rs"]
mod strange;
#[path = "suite/strategy.rs"]
mod strategy;
#[path = "suite/tasks.rs"]
mod tasks;
#[path = "suite/trial.rs"]
mod trial;
#[path = "suite/undo.rs"]
mod undo;
#[path = "suite/unrecorded.rs"]
mod unrecorded;
#[path = "suite/world.rs"]
mod world;
#[path = "suite/write.rs"]
mod write;

#[test]
fn no_file_of_the_suite_is_forgotten() {
    let here = include_str!("main.rs");
    let suite = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite");
    for entry in std::fs::read_dir(suite).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(
                here.contains(&format!("mod {name};")),
                "{name}.rs is not in main.rs"
            );
        }
    }
}
