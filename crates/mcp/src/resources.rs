//! Resources: the list of what an agent did, and each operation with what it changed.

use backout_engine::{Command, Engine, Filter, Reply};
use backout_model::Operation;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use crate::call::{Failed, diff_now, show_now};
use crate::{Caller, text};

const LOG: &str = "backout://log";
const SHOW: &str = "backout://log/";
const DIFF: &str = "backout://diff/";

/// So many of the newest operations are resources of their own, and in the log.
const NEWEST: usize = 50;

const PLAIN: &str = "text/plain";
const PATCH: &str = "text/x-diff";

/// What is to be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// What was done.
    Log,
    /// An operation.
    Shown(String),
    /// What it changed.
    Diff(String),
}

impl Wanted {
    /// Reads an address.
    pub(crate) fn of(uri: &str) -> Option<Self> {
        let named = |prefix: &str| {
            let name = uri.strip_prefix(prefix)?;
            (!name.is_empty() && name.len() <= 64).then(|| name.to_owned())
        };
        if uri == LOG {
            return Some(Self::Log);
        }
        named(SHOW)
            .map(Self::Shown)
            .or_else(|| named(DIFF).map(Self::Diff))
    }

    /// Reads what it leads to.
    pub(crate) fn read(self, engine: &Engine, caller: &Caller) -> Result<Reply, Failed> {
        match self {
            Self::Log => newest(engine, caller).map(|operations| Reply::Log { operations }),
            Self::Shown(name) => show_now(engine, caller, &name),
            Self::Diff(name) => diff_now(engine, caller, &name, &[]),
        }
    }
}

/// Lists the newest operations of an agent.
pub(crate) fn newest(engine: &Engine, caller: &Caller) -> Result<Vec<Operation>, Failed> {
    let filter = Filter {
        agent: Some(caller.agent.clone()),
        limit: Some(NEWEST),
        ..Filter::default()
    };
    match engine.execute(Command::Log(filter))? {
        Reply::Log { operations } => Ok(operations),
        _ => Ok(Vec::new()),
    }
}

/// Describes the resources.
pub(crate) fn list(newest: &[Operation]) -> Vec<Resource> {
    let log = Resource::new(LOG, "log")
        .with_title("What you did")
        .with_description("Your operations, newest first.")
        .with_mime_type(PLAIN);
    let diffs = newest.iter().map(|operation| {
        Resource::new(
            format!("{DIFF}{}", operation.id.short()),
            format!("diff {}", operation.id.short()),
        )
        .with_title(operation.summary.clone())
        .with_mime_type(PATCH)
    });
    std::iter::once(log).chain(diffs).collect()
}

/// Describes the templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{DIFF}{{operation}}"), "diff")
            .with_title("What an operation changed")
            .with_description("A unified diff, by the beginning of the operation's id.")
            .with_mime_type(PATCH),
        ResourceTemplate::new(format!("{SHOW}{{operation}}"), "operation")
            .with_title("One operation")
            .with_description("Where it stands and what it wrote, by the beginning of its id.")
            .with_mime_type(PLAIN),
    ]
}

/// Gives a reply as the contents of a resource.
pub(crate) fn contents(uri: &str, reply: &Reply) -> ReadResourceResult {
    let mime = if matches!(reply, Reply::Diff(_)) {
        PATCH
    } else {
        PLAIN
    };
    let contents = ResourceContents::text(text::reply(reply), uri).with_mime_type(mime);
    ReadResourceResult::new(vec![contents])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        assert_eq!(Wanted::of("backout://log"), Some(Wanted::Log));
        assert_eq!(
            Wanted::of("backout://log/ab"),
            Some(Wanted::Shown("ab".to_owned()))
        );
        assert_eq!(
            Wanted::of("backout://diff/ab"),
            Some(Wanted::Diff("ab".to_owned()))
        );
        for bad in [
            "",
            "backout://diff/",
            "backout://log/",
            "file:///etc/passwd",
            "backout://gc",
        ] {
            assert_eq!(Wanted::of(bad), None, "{bad}");
        }
    }
}
