//! The routes: one table, from which the router is made and the `OpenAPI` document as well.

mod command;
mod content;
mod deciding;
mod drift;
mod events;
mod graph;
mod lists;
mod operations;
mod runs;
mod sessions;
mod standing;
mod undo;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse as _;
use axum::routing::{MethodRouter, delete, get, post};
use backout_engine::Report;

use crate::answer::Failed;
use crate::app::App;
use crate::auth::door;
use crate::page;

/// What a word of a query is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// May be given several times.
    Texts,
    Flag,
    Number,
    /// How many: between 1 and this.
    UpTo(usize),
    /// A word of a closed set.
    OneOf(&'static [&'static str]),
}

/// What a route answers with, if all went well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    /// JSON, by the name of its schema.
    Json(&'static str),
    /// JSON of one of several schemas.
    Either(&'static [&'static str]),
    /// Server-sent events.
    Events,
    /// Text for Prometheus.
    Text,
    /// A content as it is, and no JSON.
    Bytes,
    /// A status and no body.
    Nothing,
}

/// A route, what it is about, and who carries it out.
pub(crate) struct Endpoint {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    /// Its name in the document.
    pub(crate) id: &'static str,
    pub(crate) about: &'static str,
    pub(crate) query: &'static [(&'static str, Kind)],
    /// The schema of its body.
    pub(crate) body: Option<&'static str>,
    pub(crate) answer: Answer,
    pub(crate) is_public: bool,
    handler: MethodRouter<Arc<App>>,
}

const HOW: &[(&str, Kind)] = &[
    ("only", Kind::Texts),
    ("exclude", Kind::Texts),
    ("merge", Kind::Flag),
    ("force", Kind::Flag),
    ("partial", Kind::Flag),
    ("others", Kind::Flag),
    ("committed", Kind::Flag),
    ("with_dependencies", Kind::Flag),
];

const FILTERS: &[(&str, Kind)] = &[
    ("agent", Kind::Text),
    ("task", Kind::Text),
    ("prompt", Kind::Text),
    ("at", Kind::Text),
    ("verb", Kind::Text),
    ("status", Kind::Text),
    ("q", Kind::Text),
    ("after", Kind::Number),
    ("before", Kind::Number),
    ("limit", Kind::UpTo(operations::LIMIT_MAX)),
];

fn looks(
    path: &'static str,
    id: &'static str,
    about: &'static str,
    query: &'static [(&'static str, Kind)],
    answer: Answer,
    handler: MethodRouter<Arc<App>>,
) -> Endpoint {
    Endpoint {
        method: "get",
        path,
        id,
        about,
        query,
        body: None,
        answer,
        is_public: false,
        handler,
    }
}

fn acts(
    path: &'static str,
    id: &'static str,
    about: &'static str,
    body: Option<&'static str>,
    answer: Answer,
    handler: MethodRouter<Arc<App>>,
) -> Endpoint {
    Endpoint {
        method: "post",
        path,
        id,
        about,
        query: &[],
        body,
        answer,
        is_public: false,
        handler,
    }
}

/// Lists every route.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut all = looking();
    all.extend(acting());
    all.extend(around());
    all
}

#[expect(clippy::too_many_lines, reason = "one table")]
fn looking() -> Vec<Endpoint> {
    use Answer::Json;
    vec![
        looks(
            "/v1/operations",
            "listOperations",
            "List operations, newest first.",
            FILTERS,
            Json("operations"),
            get(operations::list),
        ),
        looks(
            "/v1/operations/{id}",
            "showOperation",
            "Show one operation with all that is known of it.",
            &[],
            Json("reply-shown"),
            get(operations::show),
        ),
        looks(
            "/v1/operations/{id}/diff",
            "diffOperation",
            "Show what an operation changed.",
            &[
                ("only", Kind::Texts),
                ("exclude", Kind::Texts),
                ("brief", Kind::Flag),
            ],
            Json("reply-diff"),
            get(operations::diff),
        ),
        looks(
            "/v1/operations/{id}/content",
            "readContent",
            "Read one side of a file that an operation changed.",
            &[
                ("path", Kind::Text),
                ("side", Kind::OneOf(&["before", "after"])),
            ],
            Answer::Bytes,
            get(content::content),
        ),
        looks(
            "/v1/operations/{id}/undo",
            "previewUndo",
            "Show what an undo would do, with the differences.",
            HOW,
            Json("reply-plan"),
            get(undo::preview_undo),
        ),
        looks(
            "/v1/operations/{id}/redo",
            "previewRedo",
            "Show what a redo would do, with the differences.",
            HOW,
            Json("reply-plan"),
            get(undo::preview_redo),
        ),
        looks(
            "/v1/tasks",
            "listTasks",
            "List tasks.",
            &[],
            Json("reply-tasks"),
            get(lists::tasks),
        ),
        looks(
            "/v1/prompts",
            "listPrompts",
            "List what people asked agents.",
            &[("limit", Kind::UpTo(lists::LIMIT_MAX))],
            Json("reply-prompts"),
            get(lists::prompts),
        ),
        looks(
            "/v1/checkpoints",
            "listCheckpoints",
            "List checkpoints.",
            &[],
            Json("reply-checkpoints"),
            get(lists::checkpoints),
        ),
        looks(
            "/v1/stages",
            "listStages",
            "List stages, newest first.",
            &[],
            Json("reply-stages"),
            get(lists::stages),
        ),
        looks(
            "/v1/pending",
            "listPending",
            "List what waits for a decision.",
            &[],
            Json("reply-pending"),
            get(lists::pending),
        ),
        looks(
            "/v1/pending/{id}",
            "showPending",
            "Show a proposal with what it would change now.",
            &[],
            Json("reply-proposal"),
            get(lists::proposal),
        ),
        looks(
            "/v1/failed",
            "listFailed",
            "List undos that failed.",
            &[],
            Json("reply-failed"),
            get(lists::failed),
        ),
        looks(
            "/v1/drift",
            "listDrift",
            "List what is not as it was recorded, after another look at it.",
            &[("at", Kind::Texts), ("all", Kind::Flag)],
            Json("reply-drift"),
            get(drift::list),
        ),
        looks(
            "/v1/status",
            "showStatus",
            "Show where things stand.",
            &[],
            Json("reply-status"),
            get(standing::status),
        ),
        looks(
            "/v1/storage",
            "showStorage",
            "Show what the store holds, and who holds how much of it.",
            &[("holders", Kind::Flag)],
            Json("storage"),
            get(standing::storage),
        ),
        looks(
            "/v1/graph",
            "showGraph",
            "Show operations and what was built on what.",
            &[
                ("around", Kind::Text),
                ("before", Kind::Number),
                ("limit", Kind::UpTo(graph::LIMIT_MAX)),
            ],
            Json("graph"),
            get(graph::graph),
        ),
        looks(
            "/v1/state",
            "showState",
            "Show the project's state graph, as it is or as it was after a record.",
            &[("at", Kind::Number)],
            Json("reply-graph"),
            get(graph::state),
        ),
        looks(
            "/v1/verify",
            "verify",
            "Check the whole store.",
            &[],
            Json("reply-verified"),
            get(standing::verify),
        ),
        looks(
            "/v1/events",
            "readEvents",
            "Follow the journal.",
            &[("after", Kind::Number)],
            Answer::Events,
            get(events::events),
        ),
        looks(
            "/v1/me",
            "whoAmI",
            "Say who the server takes you for.",
            &[],
            Json("me"),
            get(standing::me),
        ),
        looks(
            "/metrics",
            "metrics",
            "Numbers for Prometheus.",
            &[],
            Answer::Text,
            get(standing::metrics),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "one table")]
fn acting() -> Vec<Endpoint> {
    use Answer::Json;
    vec![
        acts(
            "/v1/command",
            "command",
            "Have any command of the engine carried out.",
            Some("command"),
            Json("any-reply"),
            post(command::command),
        ),
        acts(
            "/v1/operations/{id}/undo",
            "undo",
            "Undo an operation.",
            Some("undo"),
            Json("reply-undone"),
            post(undo::undo),
        ),
        acts(
            "/v1/operations/{id}/redo",
            "redo",
            "Bring an undone operation back.",
            Some("undo"),
            Json("reply-undone"),
            post(undo::redo),
        ),
        acts(
            "/v1/undo",
            "undoMany",
            "Undo several operations, a task, a prompt, or back to a checkpoint.",
            Some("undo-many"),
            Answer::Either(&["reply-undone", "reply-plan"]),
            post(undo::undo_many),
        ),
        acts(
            "/v1/pending/{id}/approve",
            "approve",
            "Let a proposal happen.",
            Some("why"),
            Json("reply-finished"),
            post(deciding::approve),
        ),
        acts(
            "/v1/pending/{id}/reject",
            "reject",
            "Refuse a proposal.",
            Some("why"),
            Json("reply-rejected"),
            post(deciding::reject),
        ),
        acts(
            "/v1/failed/{id}/retry",
            "retryFailed",
            "Try an undo that failed again.",
            Some("nothing"),
            Json("reply-undone"),
            post(deciding::retry),
        ),
        acts(
            "/v1/failed/{id}/accept",
            "acceptFailed",
            "Leave what could not be taken back as it is.",
            Some("why"),
            Json("reply-accepted"),
            post(deciding::accept),
        ),
        acts(
            "/v1/drift/look",
            "lookForDrift",
            "Look at all that was recorded, or at what lies at or below some targets.",
            Some("drift-meant"),
            Json("reply-drift"),
            post(drift::look),
        ),
        acts(
            "/v1/drift/accept",
            "acceptDrift",
            "Record what others made of targets.",
            Some("drift-meant"),
            Json("reply-drift-decided"),
            post(drift::accept),
        ),
        acts(
            "/v1/drift/restore",
            "restoreDrift",
            "Make targets what was recorded.",
            Some("drift-meant"),
            Json("reply-drift-decided"),
            post(drift::restore),
        ),
        acts(
            "/v1/drift/merge",
            "mergeDrift",
            "Bring what others made of files together with what was recorded.",
            Some("drift-meant"),
            Json("reply-drift-decided"),
            post(drift::merge),
        ),
        acts(
            "/v1/drift/ignore",
            "ignoreDrift",
            "Leave alone what a pattern matches, or look at it again.",
            Some("drift-pattern"),
            Json("reply-drift-decided"),
            post(drift::ignore),
        ),
        acts(
            "/v1/runs",
            "run",
            "Run a command, and follow its output.",
            Some("run"),
            Answer::Events,
            post(runs::run),
        ),
        acts(
            "/v1/links",
            "newLink",
            "Make a one-time link to the page. Only over the unix socket.",
            Some("nothing"),
            Json("link"),
            post(sessions::link),
        ),
    ]
}

fn around() -> Vec<Endpoint> {
    let public = |endpoint: Endpoint| Endpoint {
        is_public: true,
        ..endpoint
    };
    vec![
        public(acts(
            "/v1/session",
            "enter",
            "Open a session with the code of a link.",
            Some("session-code"),
            Answer::Nothing,
            post(sessions::enter),
        )),
        public(acts(
            "/v1/session/bearer",
            "enterWithoutCookies",
            "Open a session with the code of a link, for a page whose browser keeps no cookies.",
            Some("session-code"),
            Answer::Json("session-bearer"),
            post(sessions::enter_by_memory),
        )),
        Endpoint {
            method: "delete",
            ..looks(
                "/v1/session",
                "leave",
                "End the session.",
                &[],
                Answer::Nothing,
                delete(sessions::leave),
            )
        },
        public(looks(
            "/healthz",
            "health",
            "Say that the server lives.",
            &[],
            Answer::Json("health"),
            get(standing::health),
        )),
        public(looks(
            "/openapi.json",
            "openapi",
            "This document.",
            &[],
            Answer::Json("any"),
            get(standing::document),
        )),
    ]
}

/// Makes the router. What is mounted stands behind the same door: the caller is in the request's extensions.
pub(crate) fn router(app: &Arc<App>, mounts: Vec<(String, Router)>) -> Router {
    let mut router = Router::new();
    for endpoint in endpoints() {
        router = router.route(endpoint.path, endpoint.handler);
    }
    let mut router = router
        .fallback(page::file)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(app));
    for (path, inner) in mounts {
        router = router.nest_service(&path, inner);
    }
    router.layer(from_fn_with_state(Arc::clone(app), door))
}

async fn wrong_method() -> axum::response::Response {
    let report = Report::usage("the route has no such method")
        .next("see which there are: `GET /openapi.json`");
    Failed::with(StatusCode::METHOD_NOT_ALLOWED, report).into_response()
}
