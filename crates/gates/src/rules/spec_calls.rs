//! Which keys a `[[compensation]]` may have: a part of the table in `spec`.

use super::spec::{Key, Kind, key};

/// What a `[[compensation]]` may say.
pub(super) const COMPENSATION: &[Key] = &[
    key("name", Kind::Text, "What the rule is called."),
    key(
        "match",
        Kind::Text,
        "Methods and a URL: \"PUT|PATCH https://api.example/users/{user}\".",
    ),
    key(
        "capture",
        Kind::Bool,
        "Whether the thing is looked at before, and put back as it was.",
    ),
    key(
        "ignore",
        Kind::Patterns,
        "Fields that the service changes by itself: \"updated_at\".",
    ),
    key(
        "inverse",
        Kind::Table(INVERSE),
        "The call that takes it back.",
    ),
    key(
        "idempotency",
        Kind::Table(IDEMPOTENCY),
        "How the service knows the same call again.",
    ),
    key(
        "lookup",
        Kind::Table(LOOKUP),
        "A look that finds the effect, if the answer was lost.",
    ),
    key(
        "verify",
        Kind::Table(VERIFY),
        "A look that tells that the effect is gone.",
    ),
    key(
        "look",
        Kind::Table(LOOK),
        "A look at what the call made; where the inverse is a plain DELETE, a GET of the same place unless you say otherwise.",
    ),
    key(
        "reversibility",
        Kind::Word(&["compensable", "irreversible"]),
        "Whether there is a way back; \"compensable\" unless you say otherwise.",
    ),
];

const INVERSE: &[Key] = &[
    key(
        "method",
        Kind::Text,
        "The method; DELETE unless you say otherwise.",
    ),
    key(
        "url",
        Kind::Text,
        "Where to: \"{request.url}/{response.id}\".",
    ),
    key(
        "headers",
        Kind::Texts,
        "Headers; secrets as \"${env:NAME}\".",
    ),
    key(
        "body",
        Kind::Text,
        "What is sent: one hole, or a text without any.",
    ),
    key(
        "json",
        Kind::Any,
        "What is sent as JSON; its texts may have holes.",
    ),
    key("form", Kind::Texts, "What is sent as a form."),
];

const IDEMPOTENCY: &[Key] = &[
    key(
        "header",
        Kind::Text,
        "The header with the key; \"Idempotency-Key\" unless you say otherwise.",
    ),
    key(
        "window",
        Kind::Time {
            never: false,
            nothing: true,
        },
        "How long the service remembers it; 24h unless you say otherwise.",
    ),
];

const LOOKUP: &[Key] = &[
    key("url", Kind::Text, "Where to look."),
    key(
        "headers",
        Kind::Texts,
        "Headers; secrets as \"${env:NAME}\".",
    ),
    key(
        "item",
        Kind::Text,
        "The way to it in the answer: \"data.*\"; it stands for the answer of the call.",
    ),
    key(
        "status",
        Kind::Count { min: 100, max: 599 },
        "The status of the answer.",
    ),
    key("field", Kind::Text, "A field that is there."),
    key("equals", Kind::Text, "What that field is."),
    key("absent", Kind::Text, "A field that is not there."),
    key(
        "settle",
        Kind::Time {
            never: false,
            nothing: true,
        },
        "How long it may take until the effect can be seen.",
    ),
];

const LOOK: &[Key] = &[
    key("url", Kind::Text, "Where to look."),
    key(
        "headers",
        Kind::Texts,
        "Headers; secrets as \"${env:NAME}\".",
    ),
    key(
        "change",
        Kind::Word(&["PUT", "PATCH"]),
        "The method by which a redo brings back what others changed; PUT unless you say otherwise.",
    ),
];

const VERIFY: &[Key] = &[
    key("url", Kind::Text, "Where to look."),
    key(
        "headers",
        Kind::Texts,
        "Headers; secrets as \"${env:NAME}\".",
    ),
    key(
        "status",
        Kind::Count { min: 100, max: 599 },
        "The status when it is gone; 404 or 410 if nothing is said.",
    ),
    key(
        "field",
        Kind::Text,
        "A field that is there when it is gone.",
    ),
    key("equals", Kind::Text, "What that field is then."),
    key(
        "absent",
        Kind::Text,
        "A field that is not there when it is gone.",
    ),
    key(
        "interval",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long to wait between two looks; 500ms unless you say otherwise.",
    ),
    key(
        "limit",
        Kind::Time {
            never: false,
            nothing: false,
        },
        "How long to look; 30s unless you say otherwise.",
    ),
];
