//! What a span is, and what it is a child of (`traceparent`, W3C Trace Context).

use std::time::{SystemTime, UNIX_EPOCH};

use backout_model::OperationId;

/// How much of `tracestate` is passed on.
const STATE_BYTES_MAX: usize = 512;

/// Names a trace.
pub(super) type TraceId = [u8; 16];

/// Names a span.
pub(super) type SpanId = [u8; 8];

/// A span that others can be children of.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(super) id: TraceId,
    pub(super) span: SpanId,
    pub(super) state: Option<String>,
    /// Whether anybody wants to see it. If not, nothing below it is sent either.
    pub(super) is_sampled: bool,
    /// When the span began.
    pub(super) start_ns: u64,
}

/// Reads `traceparent`. What is not well-formed is nothing, as the standard says.
pub(super) fn parent(text: &str, state: Option<&str>) -> Option<Trace> {
    let mut parts = text.trim().split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_end = parts.next().is_none();
    let [version] = hex::<1>(version)?;
    if version == 0xff || version == 0 && !is_end {
        return None;
    }
    let (id, span, [flags]) = (hex::<16>(trace)?, hex::<8>(span)?, hex::<1>(flags)?);
    if id == [0; 16] || span == [0; 8] {
        return None;
    }
    let is_plain = |text: &&str| {
        text.len() <= STATE_BYTES_MAX && text.bytes().all(|it| (32..127).contains(&it))
    };
    Some(Trace {
        id,
        span,
        state: state.filter(is_plain).map(str::to_owned),
        is_sampled: flags & 1 == 1,
        start_ns: 0,
    })
}

/// Reads digits of lower case, as many as there must be.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != N * 2 || !text.bytes().all(is_digit) {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// What the collector is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Internal = 1,
    Server = 2,
}

/// A value of an attribute.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(String),
    Number(u64),
}

/// Something that took time.
#[derive(Debug, Clone)]
pub(super) struct Span {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    /// Whether the parent is of another process.
    pub(super) is_remote: bool,
    pub(super) state: Option<String>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// Why it did not go well.
    pub(super) error: Option<String>,
}

impl Span {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "names and texts are given away here"
    )]
    pub(super) fn text(&mut self, name: &'static str, value: impl ToString) {
        self.attributes.push((name, Value::Text(value.to_string())));
    }

    pub(super) fn number(&mut self, name: &'static str, value: usize) {
        self.attributes.push((name, Value::Number(value as u64)));
    }

    #[cfg(test)]
    pub(super) fn of_a_test() -> Self {
        Self {
            trace: [1; 16],
            id: [2; 8],
            parent: None,
            is_remote: false,
            state: None,
            name: "test".to_owned(),
            kind: Kind::Internal,
            start_ns: 1,
            end_ns: 2,
            attributes: Vec::new(),
            error: None,
        }
    }
}

/// An operation's span bears its id: who has one finds the other.
pub(super) fn span_of(id: OperationId) -> SpanId {
    id.bits().max(1).to_be_bytes()
}

/// The span of all steps of an undo of several operations.
pub(super) fn span_of_act(id: OperationId) -> SpanId {
    derived("backout otlp act", id)
}

/// The trace of what no request of this server made.
pub(super) fn trace_of(id: OperationId) -> TraceId {
    derived("backout otlp trace", id)
}

fn derived<const N: usize>(what: &str, id: OperationId) -> [u8; N] {
    let mut name = [0; N];
    let key = blake3::derive_key(what, &span_of(id));
    for (to, from) in std::iter::zip(&mut name, key) {
        *to = from;
    }
    name
}

/// Makes a name that nobody else has; none if the system has no random bytes.
pub(super) fn random<const N: usize>() -> Option<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).ok()?;
    (bytes != [0; N]).then_some(bytes)
}

/// Tells the time as spans do.
pub(super) fn now_ns() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_parent_is_read_with_its_flag_and_state() {
        let trace = parent(GOOD, Some("vendor=1")).unwrap();
        assert_eq!(trace.span, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
        assert!(trace.is_sampled);
        assert_eq!(trace.state.as_deref(), Some("vendor=1"));
        let unsampled = GOOD.replace("-01", "-00");
        assert!(!parent(&unsampled, None).unwrap().is_sampled);
        let newer = format!("{}-more", GOOD.replacen("00", "cc", 1));
        assert!(
            parent(&newer, None).is_some(),
            "a newer version may say more"
        );
    }

    #[test]
    fn what_is_not_well_formed_is_no_parent() {
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for bad in [
            "",
            "00",
            &zeros,
            &GOOD.replacen("00", "ff", 1),
            &format!("{GOOD}-more"),
            &GOOD.to_uppercase(),
            &GOOD.replace("b7ad", "b7"),
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert!(parent(bad, None).is_none(), "{bad}");
        }
    }
}
