//! `backout ui`

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use backout_daemon::{Place, link};
use backout_engine::{ErrorCode, Report};
use clap::Args;
use serde_json::json;

use super::serve::program;
use crate::failure::Failure;
use crate::session::Session;

/// How long a server has to come up.
const PATIENCE: Duration = Duration::from_secs(20);

/// Open the page of the store in a browser.
///
/// If no server serves the store, one is started and stays. The link that is printed opens one session, within two minutes.
#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Only print the link.
    #[arg(long)]
    no_open: bool,
}

/// Finds or starts the server, and opens its page.
pub(crate) fn cmd_ui(session: &mut Session, args: &UiArgs) -> Result<(), Failure> {
    let place = {
        let engine = session.engine()?;
        Place::of(&engine.settings().state_dir)
    };
    if place.serving().is_none() {
        start(session, &place)?;
    }
    let url = link(&place)?;
    if session.ui.is_json() {
        session.ui.print_json(&json!({"reply": "page", "url": url}));
        return Ok(());
    }
    session.ui.print(&format!("{url}\n"));
    if !args.no_open && has_screen() {
        let opened = Command::new("xdg-open")
            .arg(&url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if opened.is_err() {
            session.ui.hint("open it in a browser");
        }
    }
    Ok(())
}

fn has_screen() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Starts a server that outlives us, and waits until it can be asked.
fn start(session: &Session, place: &Place) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Report::refused("no server could be started")
            .code(ErrorCode::NoServer)
            .because(error)
            .next("start one with `backout serve`")
    };
    place.prepare().map_err(cannot)?;
    let program = program(session)?;
    let log = place.log();
    let mut options = OpenOptions::new();
    let options = options.create(true).write(true).truncate(true).mode(0o600);
    let said = options.open(&log).map_err(cannot)?;
    let mut command = Command::new(program.path);
    command.args(program.words).arg("serve");
    // A port that is taken is no reason to show nothing: whoever is sent a link does not type it.
    command.args(["--listen", "127.0.0.1:0"]);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said)
        .process_group(0)
        .spawn()
        .map_err(cannot)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if place
            .serving()
            .is_some_and(|serving| serving.pid == child.id())
        {
            return Ok(());
        }
        if has_ended(&mut child) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    let report = Report::refused("no server could be started").code(ErrorCode::NoServer);
    let report = match said.trim() {
        "" => report,
        said => report.because(said),
    };
    Err(report.next("start one with `backout serve`").into())
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}
