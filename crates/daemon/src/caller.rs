//! Who asks: a role, and for an agent its name. Settled once per request, before anything of it is read.

use std::fmt;
use std::str::FromStr;

use backout_engine::{Context, ErrorCode, Forebear, Report};
use backout_model::AgentId;
use serde::{Deserialize, Serialize};

use crate::otlp::Trace;

/// What somebody may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Only looks.
    Viewer,
    /// Asks for writes and sees its own.
    Agent,
    /// Everything that the command line can.
    Operator,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Agent => "agent",
            Self::Operator => "operator",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "agent" => Ok(Self::Agent),
            "operator" => Ok(Self::Operator),
            _ => Err("a role is viewer, agent or operator".to_owned()),
        }
    }
}

/// By which way somebody came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the unix socket, as the user of the server.
    Socket,
    /// With a token of `backout serve token`.
    Token,
    /// With the session of the page.
    Session,
}

/// Somebody who asks.
#[derive(Debug, Clone)]
pub struct Caller {
    /// What he may ask.
    pub role: Role,
    /// The agent that he is.
    pub agent: Option<AgentId>,
    /// How he came in.
    pub way: Way,
    /// Whom his process descends from, if it is known.
    pub forebears: Vec<Forebear>,
    /// The span of the request, if one is kept.
    pub(crate) trace: Option<Trace>,
}

impl Caller {
    /// Names the agent whose work is all that the caller may see; none if he may see everything.
    pub(crate) fn only_of(&self) -> Option<&AgentId> {
        self.agent.as_ref().filter(|_| self.role == Role::Agent)
    }

    /// Says in what connection the engine is asked. What a request says of its own descent is not believed.
    pub(crate) fn context(&self, given: Context) -> Result<Context, Report> {
        let is_agent = self.role == Role::Agent;
        if is_agent && given.agent.is_some() && given.agent != self.agent {
            return Err(forbidden("the token is for another agent")
                .next("leave `agent` out: it follows from the token"));
        }
        let agent = if is_agent {
            self.agent.clone()
        } else {
            given.agent
        };
        Ok(Context {
            agent,
            within: None,
            is_inside: is_agent,
            forebears: self.forebears.clone(),
            ..given
        })
    }
}

/// Begins the report of something that the caller may not ask.
pub(crate) fn forbidden(why: &str) -> Report {
    Report::refused("this may not be asked here")
        .code(ErrorCode::Forbidden)
        .because(why)
}
