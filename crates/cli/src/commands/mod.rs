//! The commands, one file each: an `…Args` struct whose doc comments are the help, and a `cmd_…` function.

mod act;
mod approve;
mod batch;
mod checkpoint;
mod chmod;
mod chown;
mod classify;
mod commit;
mod completions;
mod config;
mod cp;
mod db;
pub(crate) mod diff;
mod doctor;
mod drift;
mod edit;
mod export;
mod failed;
pub(crate) mod gc;
mod graph;
mod hook;
mod http;
mod init;
mod ln;
mod log;
mod man;
mod mcp;
mod merge;
mod mkdir;
mod mv;
mod notice;
mod pending;
mod recover;
mod redis;
mod redo;
mod reject;
mod restore;
mod resume;
mod rm;
mod rollback;
mod rollout;
mod run;
mod sandbox;
mod serve;
mod set;
mod show;
pub(crate) mod sql;
mod stage;
mod status;
mod task;
mod try_;
mod ui;
pub(crate) mod undo;
mod unset;
mod verify;
mod watch;
mod write;

use std::path::{Path, PathBuf};

use backout_drivers::file::FileRequest;
use backout_engine::{Call, Report, Typed, quoted};

use crate::failure::Failure;
use crate::paths::absolute;
use crate::session::Session;

/// What can be asked. The order is that of the help: change, look, take back, group, look after.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    Run(run::RunArgs),
    Write(write::WriteArgs),
    Edit(edit::EditArgs),
    Set(set::SetArgs),
    Unset(unset::UnsetArgs),
    Merge(merge::MergeArgs),
    Rm(rm::RmArgs),
    Mv(mv::MvArgs),
    Cp(cp::CpArgs),
    Mkdir(mkdir::MkdirArgs),
    Ln(ln::LnArgs),
    Chmod(chmod::ChmodArgs),
    Chown(chown::ChownArgs),
    Batch(batch::BatchArgs),
    Sql(sql::SqlArgs),
    Db(db::DbArgs),
    Redis(redis::RedisArgs),
    Http(http::HttpArgs),
    Act(act::ActArgs),
    Try(try_::TryArgs),
    Sandbox(sandbox::SandboxArgs),
    Log(log::LogArgs),
    Show(show::ShowArgs),
    Diff(diff::DiffArgs),
    Status(status::StatusArgs),
    Failed(failed::FailedArgs),
    Drift(drift::DriftArgs),
    Watch(watch::WatchArgs),
    Pending(pending::PendingArgs),
    #[command(hide = true)]
    Notice(notice::NoticeArgs),
    Approve(approve::ApproveArgs),
    Reject(reject::RejectArgs),
    Rollout(rollout::RolloutArgs),
    Graph(graph::GraphArgs),
    Classify(classify::ClassifyArgs),
    Config(config::ConfigArgs),
    Undo(undo::UndoArgs),
    Redo(redo::RedoArgs),
    Restore(restore::RestoreArgs),
    Rollback(rollback::RollbackArgs),
    Commit(commit::CommitArgs),
    Task(task::TaskArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Resume(resume::ResumeArgs),
    Stage(stage::StageArgs),
    Serve(serve::ServeArgs),
    Ui(ui::UiArgs),
    Init(init::InitArgs),
    Mcp(mcp::McpArgs),
    Hook(hook::HookArgs),
    Recover(recover::RecoverArgs),
    Verify(verify::VerifyArgs),
    Gc(gc::GcArgs),
    Doctor(doctor::DoctorArgs),
    Export(export::ExportArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Subcommand {
    /// Tells whether the same call can be known again by a key.
    const fn takes_key(&self) -> bool {
        matches!(
            self,
            Self::Write(_)
                | Self::Edit(_)
                | Self::Set(_)
                | Self::Unset(_)
                | Self::Merge(_)
                | Self::Rm(_)
                | Self::Mv(_)
                | Self::Cp(_)
                | Self::Mkdir(_)
                | Self::Ln(_)
                | Self::Chmod(_)
                | Self::Chown(_)
                | Self::Batch(_)
                | Self::Sql(_)
                | Self::Redis(_)
                | Self::Http(_)
                | Self::Act(_)
                | Self::Restore(_)
        )
    }

    /// Tells whether it is nothing that a store has to be made for: it only looks, or takes back what is in the store.
    const fn needs_no_store(&self) -> bool {
        match self {
            Self::Log(_)
            | Self::Show(_)
            | Self::Diff(_)
            | Self::Status(_)
            | Self::Verify(_)
            | Self::Export(_)
            | Self::Undo(_)
            | Self::Redo(_)
            | Self::Rollback(_) => true,
            Self::Failed(args) => args.only_looks(),
            Self::Drift(args) => args.only_looks(),
            Self::Watch(args) => args.is_once(),
            Self::Db(args) => args.only_looks(),
            Self::Gc(args) => args.only_looks(),
            Self::Doctor(args) => args.only_looks(),
            Self::Task(args) => args.only_looks(),
            Self::Rollout(args) => args.only_looks(),
            Self::Graph(args) => args.only_looks(),
            Self::Checkpoint(args) => args.list,
            Self::Resume(args) => args.dry_run,
            Self::Stage(args) => args.only_looks(),
            Self::Try(args) => args.only_looks(),
            Self::Sandbox(args) => args.only_looks(),
            Self::Init(args) => args.only_looks(),
            _ => false,
        }
    }
}

/// The commands that take a key.
const ONCE: &str = "write, edit, set, unset, merge, rm, mv, cp, mkdir, ln, chmod, chown, batch, sql, redis, http, act, restore";

/// Refuses options that do not go with a command.
fn check_options(session: &Session, command: &Subcommand) -> Result<(), Failure> {
    let is_watch = matches!(command, Subcommand::Watch(_));
    if session.global.once.is_some() && !command.takes_key() && !is_watch {
        let report = Report::usage("`--once` does not go with this command");
        let report = report.because("it would not keep the command from being carried out twice");
        return Err(report.next(format!("it goes with {ONCE}")).into());
    }
    if session.global.strategy.is_some() && !command.takes_key() {
        let report = Report::usage("`--strategy` does not go with this command");
        let report =
            report.because("it says how one write is kept, and this command has its own way");
        return Err(report.next(format!("it goes with {ONCE}")).into());
    }
    Ok(())
}

/// Tells whether a command hears signals by itself: one that runs another hands them on to it.
fn hands_signals_on(command: &Subcommand) -> bool {
    match command {
        // What serves others ends what it started when it is ended itself, and puts nothing back.
        Subcommand::Run(_) | Subcommand::Try(_) | Subcommand::Serve(_) | Subcommand::Mcp(_) => true,
        Subcommand::Sandbox(args) => args.runs(),
        // Who has the terminal hears its signals.
        Subcommand::Log(args) => args.is_interactive(),
        _ => false,
    }
}

/// Does what was asked.
pub(crate) fn run(session: &mut Session, command: Subcommand) -> Result<(), Failure> {
    check_options(session, &command)?;
    if !hands_signals_on(&command) {
        session.heed_signals();
    }
    session.needs_no_store = command.needs_no_store();
    match command {
        Subcommand::Run(args) => run::cmd_run(session, args),
        Subcommand::Write(args) => write::cmd_write(session, args),
        Subcommand::Edit(args) => edit::cmd_edit(session, args),
        Subcommand::Set(args) => set::cmd_set(session, args),
        Subcommand::Unset(args) => unset::cmd_unset(session, args),
        Subcommand::Merge(args) => merge::cmd_merge(session, args),
        Subcommand::Rm(args) => rm::cmd_rm(session, &args),
        Subcommand::Mv(args) => mv::cmd_mv(session, &args),
        Subcommand::Cp(args) => cp::cmd_cp(session, &args),
        Subcommand::Mkdir(args) => mkdir::cmd_mkdir(session, &args),
        Subcommand::Ln(args) => ln::cmd_ln(session, args),
        Subcommand::Chmod(args) => chmod::cmd_chmod(session, &args),
        Subcommand::Chown(args) => chown::cmd_chown(session, &args),
        Subcommand::Batch(args) => batch::cmd_batch(session, &args),
        Subcommand::Sql(args) => sql::cmd_sql(session, args),
        Subcommand::Db(args) => db::cmd_db(session, args),
        Subcommand::Redis(args) => redis::cmd_redis(session, args),
        Subcommand::Http(args) => http::cmd_http(session, args),
        Subcommand::Act(args) => act::cmd_act(session, &args),
        Subcommand::Try(args) => try_::cmd_try(session, args),
        Subcommand::Sandbox(args) => sandbox::cmd_sandbox(session, args),
        Subcommand::Log(args) => log::cmd_log(session, &args),
        Subcommand::Show(args) => show::cmd_show(session, &args),
        Subcommand::Diff(args) => diff::cmd_diff(session, &args),
        Subcommand::Status(args) => status::cmd_status(session, &args),
        Subcommand::Failed(args) => failed::cmd_failed(session, args),
        Subcommand::Drift(args) => drift::cmd_drift(session, args),
        Subcommand::Watch(args) => watch::cmd_watch(session, &args),
        Subcommand::Pending(args) => pending::cmd_pending(session, &args),
        Subcommand::Notice(args) => notice::cmd_notice(session, &args),
        Subcommand::Approve(args) => approve::cmd_approve(session, args),
        Subcommand::Reject(args) => reject::cmd_reject(session, args),
        Subcommand::Rollout(args) => rollout::cmd_rollout(session, args),
        Subcommand::Graph(args) => graph::cmd_graph(session, args),
        Subcommand::Classify(args) => classify::cmd_classify(session, &args),
        Subcommand::Config(args) => config::cmd_config(session, args),
        Subcommand::Undo(args) => undo::cmd_undo(session, &args),
        Subcommand::Redo(args) => redo::cmd_redo(session, &args),
        Subcommand::Restore(args) => restore::cmd_restore(session, &args),
        Subcommand::Rollback(args) => rollback::cmd_rollback(session, args),
        Subcommand::Commit(args) => commit::cmd_commit(session, args),
        Subcommand::Task(args) => task::cmd_task(session, args),
        Subcommand::Checkpoint(args) => checkpoint::cmd_checkpoint(session, args),
        Subcommand::Resume(args) => resume::cmd_resume(session, args),
        Subcommand::Stage(args) => stage::cmd_stage(session, args),
        Subcommand::Serve(args) => serve::cmd_serve(session, args),
        Subcommand::Ui(args) => ui::cmd_ui(session, &args),
        Subcommand::Init(args) => init::cmd_init(session, &args),
        Subcommand::Mcp(args) => mcp::cmd_mcp(session, args),
        Subcommand::Hook(args) => hook::cmd_hook(session, &args),
        Subcommand::Recover(args) => recover::cmd_recover(session, &args),
        Subcommand::Verify(args) => verify::cmd_verify(session, &args),
        Subcommand::Gc(args) => gc::cmd_gc(session, &args),
        Subcommand::Doctor(args) => doctor::cmd_doctor(session, args),
        Subcommand::Export(args) => export::cmd_export(session, &args),
        Subcommand::Completions(args) => completions::cmd_completions(session, &args),
        Subcommand::Man(args) => man::cmd_man(session, &args),
    }
}

/// Makes one request of several: all or nothing.
fn all_or_nothing(mut requests: Vec<FileRequest>) -> FileRequest {
    match requests.pop() {
        Some(only) if requests.is_empty() => only,
        last => {
            requests.extend(last);
            FileRequest::Batch(requests)
        }
    }
}

/// Gives every source its place at the destination: inside it if it is a directory, or else its name.
fn destinations(
    sources: &[PathBuf],
    destination: &Path,
) -> Result<Vec<(PathBuf, PathBuf)>, Report> {
    let to = absolute(destination)?;
    let is_directory = to.is_dir();
    if sources.len() > 1 && !is_directory {
        return Err(
            Report::refused(format!("`{}` is not a directory", destination.display()))
                .because(format!(
                    "{} sources need a directory to go to",
                    sources.len()
                ))
                .next_call(
                    "make it first with {}",
                    [Call::of("mkdir").typed(
                        Typed::default()
                            .and_so(&quoted(destination.as_os_str()), vec![to.into_os_string()]),
                    )],
                ),
        );
    }
    let place = |source: &PathBuf| {
        let from = absolute(source)?;
        let to = match from.file_name() {
            Some(name) if is_directory => to.join(name),
            _ => to.clone(),
        };
        Ok((from, to))
    };
    sources.iter().map(place).collect()
}

/// Reads permission bits in octal.
fn parse_mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    mode.ok_or_else(|| "a mode is octal digits, like 0644".to_owned())
}
