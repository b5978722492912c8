//! What is served beside our own routes, behind the same door.

use std::convert::Infallible;
use std::fmt::Debug;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use backout_engine::Report;

use crate::answer::Failed;
use crate::caller::{Caller, forbidden};

/// Makes a router of a service. `grant` says, of who asks, what the service is told about it in the request's extensions, or why it
/// is refused.
pub fn mounted<S, R, G>(
    service: S,
    grant: impl Fn(&Caller) -> Result<G, Report> + Send + Sync + 'static,
) -> Router
where
    S: tower_service::Service<Request, Response = R, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    R: IntoResponse + 'static,
    G: Clone + Send + Sync + Debug + 'static,
{
    let grant = std::sync::Arc::new(grant);
    let let_in = move |mut request: Request<Body>, next: Next| {
        let grant = std::sync::Arc::clone(&grant);
        async move {
            let caller = request.extensions().get::<Caller>();
            let granted = match caller {
                Some(caller) => grant(caller),
                None => Err(forbidden("nobody is known to ask")),
            };
            match granted {
                Ok(granted) => {
                    request.extensions_mut().insert(granted);
                    next.run(request).await
                }
                Err(report) => Failed::from(report).into_response(),
            }
        }
    };
    let router: Router = Router::new().fallback_service(service);
    router.layer(from_fn(let_in))
}
