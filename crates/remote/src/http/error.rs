//! What can go wrong with a call.

use backout_model::compensation::TemplateError;
use backout_model::ports::{ContentsError, DriverError, Fault};

/// Says why a call was not made, or what is not known of it.
#[derive(Debug, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of a variant says what its fields are"
)]
pub enum HttpError {
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// A secret stands where it would be kept.
    #[error("{place} holds a secret, and it would be kept in clear")]
    Secret {
        /// Where.
        place: String,
    },
    /// Nothing answers the call.
    #[error("nothing is known that takes `{call}` back")]
    NoWayBack { call: String },
    /// A hole cannot be filled.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// The service could not be reached; nothing was sent.
    #[error("`{call}` was not sent: {why}")]
    NotSent {
        call: String,
        /// What happened.
        why: String,
    },
    /// The service said no.
    #[error("the service answered `{call}` with {status}{said}")]
    Refused {
        call: String,
        status: u16,
        /// What it said, with a colon before it.
        said: String,
    },
    /// Nobody can tell whether the call happened.
    #[error("it is not known whether `{call}` happened: {why}")]
    Unknown {
        call: String,
        /// What is known.
        why: String,
    },
    /// It was answered, and the effect is there all the same.
    #[error("the service took `{call}` and the effect is still there after {limit_ms} ms")]
    StillThere {
        /// The call that was to take it away.
        call: String,
        /// How long was waited.
        limit_ms: u64,
    },
    /// The service did nothing, and a look shows that.
    #[error("`{call}` was sent, and a look finds no effect of it: {why}")]
    NoEffect {
        call: String,
        /// What happened.
        why: String,
    },
    /// It was answered, and the thing is as it was before that.
    #[error("the service took `{call}` and changed nothing in {limit_ms} ms")]
    Unheeded {
        /// The call that was to put a thing back.
        call: String,
        /// How long was waited.
        limit_ms: u64,
    },
    /// Somebody stopped it before anything was sent.
    #[error("`{call}` was interrupted")]
    Stopped { call: String },
    /// Somebody stopped it before the answer came.
    #[error("it is not known whether `{call}` happened: it was interrupted before the answer came")]
    Interrupted { call: String },
    /// The service knows nothing where the effect should be, and nothing shows that it was ever there.
    #[error(
        "the service answered `{call}` with {status}, and nothing shows that the effect is gone"
    )]
    NothingThere {
        /// The call that was to take it away.
        call: String,
        status: u16,
    },
    /// The thing is not what it was a moment ago.
    #[error("`{url}` changed in between")]
    Changed {
        /// Where.
        url: String,
    },
    /// The thing is too large to keep.
    #[error("`{url}` is larger than {max} bytes, and what was there would not be kept whole")]
    TooLarge {
        /// Where.
        url: String,
        /// How much is kept.
        max: u64,
    },
    /// What was kept cannot be read.
    #[error("what was kept of the call cannot be read")]
    Contents(#[from] ContentsError),
}

impl Fault for HttpError {
    fn may_pass(&self) -> bool {
        match self {
            Self::NotSent { .. }
            | Self::Unknown { .. }
            | Self::StillThere { .. }
            | Self::NoEffect { .. }
            | Self::Unheeded { .. } => true,
            Self::Refused { status, .. } => *status == 429 || *status >= 500,
            Self::BadRequest(_)
            | Self::Secret { .. }
            | Self::NoWayBack { .. }
            | Self::Template(_)
            | Self::Stopped { .. }
            | Self::Interrupted { .. }
            | Self::NothingThere { .. }
            | Self::Changed { .. }
            | Self::TooLarge { .. }
            | Self::Contents(_) => false,
        }
    }

    fn is_half_done(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::StillThere { .. } | Self::Interrupted { .. }
        )
    }

    fn is_stop(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Interrupted { .. })
    }

    fn advice(&self) -> Option<String> {
        matches!(self, Self::NothingThere { .. }).then(|| {
            "look whether it is there; then set the `inverse` of the rule right and undo it again, or leave it with `backout failed --accept`".to_owned()
        })
    }
}

impl From<HttpError> for DriverError {
    fn from(error: HttpError) -> Self {
        Self::new(error)
    }
}
