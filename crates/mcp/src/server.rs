//! The server: who asks, what a call comes to, and what is answered.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backout_engine::{Context, Engine, Report};
use backout_model::AgentId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::Answer;
use crate::call::{self, Failed, Work};
use crate::progress::{Teller, Watched};
use crate::reach::file_of;
use crate::tools::Kind;
use crate::{Caller, Granted, Host, own, resources, stdin, tools};

/// How long a client may take to name its roots.
const ROOTS_WAIT: Duration = Duration::from_secs(10);

/// What a client is told first.
const INSTRUCTIONS: &str = "Every change that you make with these tools is recorded with a durable undo before it happens. \
    Each answer names its operation; `undo` takes your own operations back, `preview_undo` shows first what that would do. \
    Group work that belongs together with `task`. A write that a rule wants a person to look at waits: go on and ask `show` later. \
    You can write only in your own directories, and undo only your own work.";

/// What whoever starts a server says of those who will use it.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// The agent that they are; none takes the name that a client gives itself.
    pub agent: Option<AgentId>,
    /// The directories that they may write in; none takes those that a client names, or the one that the server was started in.
    pub roots: Vec<PathBuf>,
    /// Whether each request must come with what somebody granted its sender, and nothing else counts.
    pub is_granted: bool,
}

/// A server for one client.
#[derive(Debug, Clone)]
pub struct Server {
    host: Arc<dyn Host>,
    given: Given,
    /// The roots that the client named, once it was asked.
    roots: Arc<Mutex<Option<Vec<PathBuf>>>>,
    /// The trials that were made here: only these are the caller's to decide about.
    trials: Arc<Mutex<Vec<String>>>,
    /// What is under way.
    pub(crate) tracker: TaskTracker,
    /// Ends what is under way.
    pub(crate) stop: CancellationToken,
}

impl Server {
    /// Makes a server of a program.
    pub fn new(host: Arc<dyn Host>, given: Given) -> Self {
        Self {
            host,
            given,
            roots: Arc::default(),
            trials: Arc::default(),
            tracker: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Gives a server for another client. Trials are shared: where requests stand alone, each is a client.
    #[must_use]
    pub(crate) fn for_client(&self) -> Self {
        Self {
            roots: Arc::default(),
            ..self.clone()
        }
    }

    /// Finds out who asks.
    async fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, Report> {
        if self.given.is_granted {
            let parts = context.extensions.get::<http::request::Parts>();
            let granted = parts.and_then(|parts| parts.extensions.get::<Granted>());
            let Some(Granted { agent, roots }) = granted.cloned() else {
                return Err(Report::refused("nobody said who you are"));
            };
            return caller_in(agent, &roots);
        }
        let agent = match &self.given.agent {
            Some(agent) => agent.clone(),
            None => named(context.client_info().as_ref()),
        };
        if !self.given.roots.is_empty() {
            return caller_in(agent, &self.given.roots);
        }
        let named = self.named_roots(context).await?;
        match named {
            Some(roots) => caller_in(agent, &roots),
            None => caller_in(agent, &[here()?]),
        }
    }

    /// Asks the client for its roots, once. None if it knows of no such thing.
    async fn named_roots(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Vec<PathBuf>>, Report> {
        let is_new = context
            .protocol_version()
            .is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let capabilities = context.client_capabilities();
        let has_roots = capabilities.is_some_and(|it| it.roots.is_some());
        // The newest protocol lets no server ask.
        if is_new || !has_roots {
            return Ok(None);
        }
        let held = || self.roots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held().clone() {
            return Ok(Some(known));
        }
        #[expect(deprecated, reason = "older clients name their roots")]
        let asked = tokio::time::timeout(ROOTS_WAIT, context.peer.list_roots()).await;
        let refused = || Report::refused("it is not known in which directories you may write");
        let listed = match asked {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => return Err(refused().because(error)),
            Err(_) => return Err(refused().because("the client did not name its roots in time")),
        };
        #[expect(deprecated, reason = "older clients name their roots")]
        let roots: Vec<PathBuf> = listed
            .roots
            .iter()
            .filter_map(|it| file_of(&it.uri))
            .collect();
        if roots.is_empty() {
            let report = refused().because("the client names no directory as a root");
            return Err(report.next("start the server with `--root DIR`"));
        }
        *held() = Some(roots.clone());
        Ok(Some(roots))
    }

    /// Carries a call out.
    async fn carry_out(
        &self,
        kind: &'static Kind,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Answer, Failed> {
        let arguments = request.arguments.unwrap_or_default();
        let unknown = kind.unknown(&arguments);
        if !unknown.is_empty() {
            let report = Report::usage(format!(
                "`{}` takes no `{}`",
                kind.name,
                unknown.join("`, `")
            ));
            return Err(report.into());
        }
        let caller = self.caller(context).await?;
        if kind.name == "try_end" {
            self.is_trial_of_ours(arguments.get("trial"))?;
        }
        let work = call::work(kind.name, arguments, &caller)?;
        let teller = Teller::new(context.peer.clone(), context.meta.get_progress_token());
        let stop = self.stop_of(context);
        match work {
            Work::Engine(ask, is_of_the_past) => {
                let answered = |engine: &Engine, caller: &Caller| {
                    let reply = ask(engine, caller)?;
                    Ok(Answer::of(&reply, on_the_way(engine)))
                };
                self.ask(caller, teller, stop, is_of_the_past, answered)
                    .await
            }
            Work::Process(start) => self.start(caller, *start, teller, stop).await,
        }
    }

    /// A token that is cancelled when the client cancels the call, or everything ends.
    fn stop_of(&self, context: &RequestContext<RoleServer>) -> CancellationToken {
        let stop = self.stop.child_token();
        let (mine, theirs) = (stop.clone(), context.ct.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = theirs.cancelled() => mine.cancel(),
                () = mine.cancelled() => {}
            }
        });
        stop
    }

    /// Asks the engine, on a thread of its own.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        caller: Caller,
        teller: Teller,
        stop: CancellationToken,
        is_of_the_past: bool,
        ask: impl FnOnce(&Engine, &Caller) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let host = Arc::clone(&self.host);
        // Whoever asked may be gone: what was begun is brought to its end.
        let work = self.tracker.spawn_blocking(move || {
            if is_of_the_past {
                host.take_up(&caller);
            }
            let progress = Arc::new(Watched::new(teller, stop.clone()));
            let engine = host.engine(&caller, progress)?;
            let engine = engine.for_caller(Context {
                agent: Some(caller.agent.clone()),
                ..Context::default()
            });
            let result = ask(&engine, &caller);
            stop.cancel();
            result
        });
        work.await.unwrap_or_else(|_| {
            let report = Report::broken("it is not known what became of it: the server broke down");
            Err(report.next("see what was done with the tool `log`").into())
        })
    }

    async fn start(
        &self,
        caller: Caller,
        mut start: crate::child::Start,
        teller: Teller,
        stop: CancellationToken,
    ) -> Result<Answer, Failed> {
        let mut program = self.host.program(&caller);
        if let Some(task) = start.connection.task.take() {
            let silent = Teller::new_silent();
            let check =
                move |engine: &Engine, caller: &Caller| Ok(own::task(engine, caller, &task)?);
            let token = CancellationToken::new();
            let task = self
                .ask(caller.clone(), silent, token, false, check)
                .await?;
            program.words.push(format!("--task={task}").into());
        }
        if let Some(key) = start.connection.once.take() {
            program
                .words
                .push(format!("--once={}/{key}", caller.agent).into());
        }
        let is_trial = start.is_trial;
        let work = self
            .tracker
            .spawn(crate::child::run(program, start, teller, stop));
        let broken = |_| Report::broken("it is not known what became of it: the server broke down");
        let ended = work.await.map_err(broken)??;
        let answer = Answer::of_process(ended);
        if is_trial && let Some(id) = answer.value.get("id").and_then(Value::as_str) {
            let mut trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
            trials.push(id.to_owned());
        }
        Ok(answer)
    }

    /// Makes sure that a trial is one of those that were made here.
    fn is_trial_of_ours(&self, given: Option<&Value>) -> Result<(), Report> {
        let name = given.and_then(Value::as_str).unwrap_or_default();
        let trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = !name.is_empty() && trials.iter().any(|id| id.starts_with(name));
        if is_ours {
            return Ok(());
        }
        Err(Report::refused(format!("`{name}` is no trial of yours"))
            .because("you can decide only about what you tried in this session")
            .next("try the command with the tool `try`"))
    }

    /// Reads a resource's text.
    async fn resource(
        &self,
        uri: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let Some(wanted) = resources::Wanted::of(uri) else {
            return Err(ErrorData::resource_not_found(
                format!("there is no resource `{uri}`"),
                None,
            ));
        };
        let failed =
            |report: &Report| ErrorData::resource_not_found(crate::text::report(report), None);
        let caller = self
            .caller(context)
            .await
            .map_err(|report| failed(&report))?;
        let address = uri.to_owned();
        let asked = self.ask(
            caller,
            Teller::new_silent(),
            self.stop_of(context),
            true,
            move |engine, caller| {
                let reply = wanted.read(engine, caller)?;
                Ok(resources::contents(&address, &reply))
            },
        );
        let contents = asked.await.map_err(|failure| failed(&failure.report))?;
        Ok(contents.into())
    }
}

/// What was recovered or found half-way by somebody who wanted something else.
fn on_the_way(engine: &Engine) -> Value {
    let (recovered, left) = (engine.take_recovered(), engine.take_acts_left());
    let mut told = serde_json::Map::new();
    if !recovered.is_empty() {
        told.insert(
            "recovered".to_owned(),
            serde_json::to_value(recovered).unwrap_or_default(),
        );
    }
    if !left.is_empty() {
        told.insert(
            "acts_left".to_owned(),
            serde_json::to_value(left).unwrap_or_default(),
        );
    }
    Value::Object(told)
}

fn caller_in(agent: AgentId, roots: &[PathBuf]) -> Result<Caller, Report> {
    let mut real = Vec::new();
    for root in roots {
        let found = root.canonicalize().map_err(|error| {
            Report::refused(format!("`{}` cannot be used as a root", root.display())).because(error)
        })?;
        real.push(found);
    }
    Ok(Caller { agent, roots: real })
}

/// The directory that the server was started in. The root of the file system is nobody's project.
fn here() -> Result<PathBuf, Report> {
    let unknown = || Report::refused("it is not known in which directories you may write");
    let here = std::env::current_dir().map_err(|error| unknown().because(error))?;
    if here == Path::new("/") {
        return Err(unknown()
            .because("the server was started in `/`, and neither it nor the client names a root")
            .next("start it with `--root DIR`"));
    }
    Ok(here)
}

/// Gives a client the name that it gives itself, as far as that can be an agent's.
fn named(client: Option<&Implementation>) -> AgentId {
    let name = client.map_or("mcp", |client| client.name.as_str());
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String = name
        .chars()
        .map(|it| if fits(it) { it } else { '-' })
        .take(64)
        .collect();
    let parsed = name.parse().or_else(|_| "mcp".parse());
    parsed.expect("a plain word is a name")
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let mut this = Implementation::new("backout", env!("CARGO_PKG_VERSION"));
        this.title = Some("Backout: every write, reversible".to_owned());
        ServerConfig::new(capabilities)
            .with_server_info(this)
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::list()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::list().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(kind) = Kind::named(&request.name) else {
            let what = format!("there is no tool `{}`", request.name);
            return Err(ErrorData::invalid_params(what, None));
        };
        let answer = self.carry_out(kind, request, &context).await;
        let Answer {
            value,
            texts,
            is_error,
        } = answer.unwrap_or_else(|failed| Answer::of_failure(&failed));
        let blocks = texts.into_iter().map(ContentBlock::text).collect();
        let mut result = CallToolResult::success(blocks);
        result.is_error = Some(is_error);
        result.structured_content = Some(value);
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let Ok(caller) = self.caller(&context).await else {
            return Ok(ListResourcesResult::with_all_items(resources::list(&[])));
        };
        let stop = self.stop_of(&context);
        let asked = self.ask(caller, Teller::new_silent(), stop, false, resources::newest);
        let newest = asked.await.unwrap_or_default();
        Ok(ListResourcesResult::with_all_items(resources::list(
            &newest,
        )))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(
            resources::templates(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.resource(&request.uri, &context).await
    }

    async fn on_roots_list_changed(&self, _context: NotificationContext<RoleServer>) {
        *self.roots.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == stdin::TOO_LARGE {
            let what = format!(
                "the request is larger than {} bytes, so it was not read",
                stdin::LINE_BYTES_MAX
            );
            return Err(ErrorData::invalid_request(what, None));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            request.method,
            None,
        ))
    }
}
