//! Whether a value could be a secret at all, or is a placeholder, an example, an identifier.

/// Words of which a value is made up when nobody meant a secret.
const PLACEHOLDERS: [&str; 30] = [
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "replace",
    "your",
    "dummy",
    "fake",
    "sample",
    "redacted",
    "insert",
    "todo",
    "xxxx",
    "****",
    "....",
    "0000000",
    "1234567",
    "abcdefg",
    "aaaaaa",
    "deadbeef",
    "notreal",
    "not-real",
    "not_real",
    "foobar",
    "undefined",
    "lorem",
    "<",
    "${",
    "{{",
];

/// Whether a value holds a word that only placeholders hold.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let has = |word: &str| {
        lower
            .windows(word.len())
            .any(|part| part == word.as_bytes())
    };
    PLACEHOLDERS.into_iter().any(has)
}

/// How many bits of information a byte of the value carries, on average.
pub(super) fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let total = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let part = |count: &u32| {
        let share = f64::from(*count) / total;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(part).sum()
}

/// Whether the body of a token looks random.
pub(super) fn is_random(body: &[u8]) -> bool {
    // Sixteen random hex digits have about 3.2 bits a byte, repeated or counted-up ones less.
    let least = if body.len() < 20 { 2.6 } else { 3.0 };
    entropy(body) >= least && !is_placeholder(body) && !is_phrase(body)
}

/// `not-a-real-token`: words with dashes between them, and no digit.
fn is_phrase(body: &[u8]) -> bool {
    let dashes = body
        .iter()
        .filter(|byte| matches!(byte, b'-' | b'_'))
        .count();
    dashes >= 3 && !body.iter().any(u8::is_ascii_digit)
}

/// `8-4-4-4-12` hex digits.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// `sha256-…`, `sha512:…`: a digest that says so.
pub(super) fn is_digest(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let rest = lower
        .strip_prefix(b"sha")
        .or_else(|| lower.strip_prefix(b"md"));
    rest.is_some_and(|rest| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && matches!(rest.get(digits), Some(b'-' | b':' | b'='))
    })
}

/// Words that stand in the place of a password in documentation and on test machines.
const PASSWORDS: [&str; 22] = [
    "password",
    "passwd",
    "pass",
    "passw",
    "pwd",
    "pw",
    "secret",
    "token",
    "user",
    "username",
    "admin",
    "root",
    "test",
    "guest",
    "postgres",
    "mysql",
    "hunter2",
    "changeit",
    "key",
    "apikey",
    "api_key",
    "credentials",
];

/// Whether a password is one that stands for another, or none at all.
pub(super) fn is_stand_in(password: &[u8]) -> bool {
    let lower = password.to_ascii_lowercase();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric();
    lower.len() < 3
        || PASSWORDS.into_iter().any(|word| lower == word.as_bytes())
        || is_placeholder(password)
        || matches!(
            password.first(),
            Some(b'$' | b'%' | b'{' | b'[' | b'@' | b'(')
        )
        || !lower.iter().any(plain)
        || lower.iter().all(|byte| Some(byte) == lower.first())
        || is_spelled_name(password)
}

/// `DB_PASSWORD`, `MYSQL_PASS`: the name of a variable.
fn is_spelled_name(value: &[u8]) -> bool {
    let is_upper = value
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || *byte == b'_' || byte.is_ascii_digit());
    let words = ["PASS", "PWD", "SECRET", "TOKEN", "KEY"];
    is_upper
        && words.iter().any(|word| {
            value
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
}

/// Whether the value of a key that is named like a secret looks like one.
pub(super) fn is_secret_value(value: &[u8], is_password: bool) -> bool {
    if is_stand_in(value) || is_uuid(value) || is_digest(value) {
        return false;
    }
    let has = |test: fn(&u8) -> bool| usize::from(value.iter().any(test));
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let classes = has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_digit)
        + has(|byte| byte.is_ascii_punctuation() && !matches!(byte, b'_' | b'-' | b'.' | b'/'));
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    let bits = entropy(value);
    if is_hex {
        return value.len() >= 32 && bits >= 3.0 && digits < value.len();
    }
    if digits < 2 || has_words(value) {
        return false;
    }
    match value.len() {
        10..16 => is_password && classes >= 3 && bits >= 2.9,
        16..20 => classes >= 3 && bits >= 3.4,
        20.. => bits >= 3.6 && (classes >= 3 || digits >= 4),
        _ => false,
    }
}

/// Whether much of the value is words: runs of small letters that are longer than chance gives.
fn has_words(value: &[u8]) -> bool {
    let in_words: usize = value
        .split(|byte| !byte.is_ascii_lowercase())
        .map(<[u8]>::len)
        .filter(|length| *length >= 4)
        .sum();
    in_words * 3 > value.len()
}
