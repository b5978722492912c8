//! Secrets that a beginning and a run of characters do not tell: they have parts, or stand between other things.
//!
//! Each function gets the content and where its beginning stands, and reads no more than a few thousand bytes around it.

use std::ops::Range;

use super::Hit;
use super::plausible::{is_random, is_stand_in};
use super::tokens::is_word;

/// Says whether the format is here.
pub(super) type Shape = fn(&[u8], usize) -> Option<Hit>;

/// How many characters a part has at least and at most, and which.
type Part = (usize, usize, fn(u8) -> bool);

fn hit(range: Range<usize>, kind: &'static str) -> Hit {
    Hit {
        range,
        kind: kind.into(),
    }
}

/// The bytes at a place that a test holds for, at most `max` and one more.
fn run(content: &[u8], at: usize, max: usize, test: impl Fn(u8) -> bool) -> &[u8] {
    let rest = content.get(at..).unwrap_or_default();
    let length = rest
        .iter()
        .take(max + 1)
        .take_while(|byte| test(**byte))
        .count();
    rest.get(..length).unwrap_or_default()
}

/// The same backwards.
fn run_before(content: &[u8], end: usize, max: usize, test: impl Fn(u8) -> bool) -> &[u8] {
    let before = content.get(..end).unwrap_or_default();
    let length = before
        .iter()
        .rev()
        .take(max + 1)
        .take_while(|byte| test(**byte))
        .count();
    before.get(end - length..).unwrap_or_default()
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

fn is_free(content: &[u8], start: usize) -> bool {
    start
        .checked_sub(1)
        .and_then(|at| content.get(at))
        .is_none_or(|byte| !is_word(*byte))
}

/// Runs of characters, parted by a byte: lengths of each, and the test that all pass. Gives the end.
fn parts(content: &[u8], start: usize, separator: u8, wanted: &[Part]) -> Option<usize> {
    let mut at = start;
    for (index, (min, max, test)) in wanted.iter().enumerate() {
        if index > 0 {
            (content.get(at) == Some(&separator)).then_some(())?;
            at += 1;
        }
        let part = run(content, at, *max, test);
        (*min..=*max).contains(&part.len()).then_some(())?;
        at += part.len();
    }
    let is_whole = content.get(at).is_none_or(|byte| !is_word(*byte));
    (is_whole && is_random(content.get(start..at)?)).then_some(at)
}

/// `-----BEGIN … PRIVATE KEY-----` with a body behind it. Public keys and certificates are none.
pub(super) fn private_key(content: &[u8], start: usize) -> Option<Hit> {
    let label_at = start + "-----BEGIN ".len();
    let label = run(content, label_at, 40, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    let is_private = label.ends_with(b"PRIVATE KEY") || label == b"PGP PRIVATE KEY BLOCK";
    let mut at = label_at + label.len();
    let is_closed = content
        .get(at..)
        .is_some_and(|rest| rest.starts_with(b"-----"));
    if !is_private || !is_closed {
        return None;
    }
    at += 5;
    let body = pem_body(content.get(at..).unwrap_or_default());
    if body.count < 40 || super::plausible::entropy(&body.sample) < 3.0 {
        return None;
    }
    let from = start.saturating_sub(4096);
    let around = content.get(from..start).unwrap_or_default();
    let is_service = around.windows(15).any(|part| part == b"service_account");
    let kind = match label {
        _ if is_service => "the private key of a Google service account",
        b"OPENSSH PRIVATE KEY" => "an OpenSSH private key",
        b"ENCRYPTED PRIVATE KEY" => "an encrypted private key",
        b"PGP PRIVATE KEY BLOCK" => "a PGP private key",
        _ => "a private key",
    };
    Some(hit(start..at + body.length, kind))
}

struct PemBody {
    /// How many bytes it takes, with line ends and headers.
    length: usize,
    /// How many characters of base64 it has.
    count: usize,
    /// Some of them.
    sample: Vec<u8>,
}

/// The base64 behind a header, in lines or with `\n` written out.
fn pem_body(rest: &[u8]) -> PemBody {
    const LONGEST: usize = 16 << 10;
    let mut body = PemBody {
        length: 0,
        count: 0,
        sample: Vec::new(),
    };
    let rest = rest.get(..rest.len().min(LONGEST)).unwrap_or_default();
    while let Some(byte) = rest.get(body.length) {
        let next = rest.get(body.length + 1);
        match (byte, next) {
            (b'\\', Some(b'n' | b'r')) => body.length += 1,
            (b'\r' | b'\n' | b' ' | b'\t' | b'"' | b'\'' | b',', _) => {}
            // Headers of the old format: `Proc-Type: 4,ENCRYPTED`.
            (b':' | b'-', _)
                if body.count < 80
                    && !rest
                        .get(body.length..)
                        .is_some_and(|r| r.starts_with(b"-----")) => {}
            (byte, _) if is_base64(*byte) => {
                body.count += 1;
                if body.sample.len() < 512 {
                    body.sample.push(*byte);
                }
            }
            _ => break,
        }
        body.length += 1;
    }
    body
}

/// A key of `PuTTY` with its private half.
pub(super) fn putty_key(content: &[u8], start: usize) -> Option<Hit> {
    let rest = content.get(start..)?;
    let rest = rest.get(..rest.len().min(8192))?;
    let mark = b"Private-Lines:";
    let at = rest.windows(mark.len()).position(|part| part == mark)?;
    Some(hit(start..start + at + mark.len(), "a PuTTY private key"))
}

/// `header.payload.signature`, whose header is JSON that names an algorithm.
pub(super) fn json_web_token(content: &[u8], start: usize) -> Option<Hit> {
    if !is_free(content, start) {
        return None;
    }
    let wanted: [Part; 3] = [
        (17, 2048, is_word),
        (10, 8192, is_word),
        (20, 1024, is_word),
    ];
    let end = parts(content, start, b'.', &wanted)?;
    let token = content.get(start..end)?;
    let mut pieces = token.split(|byte| *byte == b'.');
    let header: serde_json::Value = serde_json::from_slice(&base64_url(pieces.next()?)?).ok()?;
    header.get("alg")?;
    let payload = base64_url(pieces.next()?)?;
    // The token that every page about tokens shows.
    let is_example = payload.windows(12).any(|part| part == br#""1234567890""#);
    (!is_example).then_some(())?;
    Some(hit(start..end, "a JSON web token"))
}

/// Decodes base64 for URLs, without padding.
fn base64_url(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

/// `scheme://user:password@host`, if the password is none that stands for another.
pub(super) fn url_password(content: &[u8], start: usize) -> Option<Hit> {
    let scheme = run_before(content, start, 20, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
    });
    scheme.first().filter(|byte| byte.is_ascii_alphabetic())?;
    let at = start + 3;
    let authority = run(content, at, 256, |byte| {
        byte > b' '
            && byte != 0x7f
            && !matches!(
                byte,
                b'/' | b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>' | b'?' | b'#' | b')' | b',' | b'|'
            )
    });
    let sign = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority
        .iter()
        .position(|byte| *byte == b':')
        .filter(|colon| *colon < sign)?;
    let user = authority.get(..colon)?;
    let password = authority.get(colon + 1..sign)?;
    let host = authority.get(sign + 1..)?;
    let is_host = host
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'[');
    if is_stand_in(password)
        || password == user
        || password.contains(&b':')
        || !is_host
        || is_documentation(host)
    {
        return None;
    }
    // `{user}:{password}`, `%s:%s`, `$USER:$PASS`.
    if user
        .iter()
        .chain(password)
        .any(|byte| matches!(byte, b'{' | b'}' | b'<' | b'*'))
    {
        return None;
    }
    Some(hit(at + colon + 1..at + sign, "a password in a URL"))
}

/// Hosts that are set aside for documentation.
fn is_documentation(host: &[u8]) -> bool {
    let end = host
        .iter()
        .position(|byte| *byte == b':')
        .unwrap_or(host.len());
    let name = host.get(..end).unwrap_or_default().to_ascii_lowercase();
    let names: [&[u8]; 6] = [
        b"example.com",
        b"example.org",
        b"example.net",
        b"host",
        b"hostname",
        b"server",
    ];
    names.iter().any(|known| {
        name == *known
            || name
                .strip_suffix(*known)
                .is_some_and(|rest| rest.ends_with(b"."))
    }) || name.ends_with(b".example")
        || name.ends_with(b".test")
        || name.ends_with(b".invalid")
}

/// `123456789:AA…`: the number of the bot stands before the colon.
pub(super) fn telegram(content: &[u8], start: usize) -> Option<Hit> {
    let number = run_before(content, start, 10, |byte| byte.is_ascii_digit());
    let first = start - number.len();
    if !(8..=10).contains(&number.len()) || !is_free(content, first) {
        return None;
    }
    let end = parts(content, start + 1, b':', &[(35, 35, is_word)])?;
    Some(hit(first..end, "a Telegram bot token"))
}

/// Fourteen characters, `.atlasv1.`, and more.
pub(super) fn terraform(content: &[u8], start: usize) -> Option<Hit> {
    let id = run_before(content, start, 14, is_alnum);
    (id.len() == 14).then_some(())?;
    let end = parts(
        content,
        start + ".atlasv1.".len(),
        b'.',
        &[(60, 80, is_word)],
    )?;
    Some(hit(start - 14..end, "a Terraform Cloud token"))
}

fn split(
    content: &[u8],
    start: usize,
    prefix: &str,
    separator: u8,
    wanted: &[Part],
) -> Option<Range<usize>> {
    is_free(content, start).then_some(())?;
    let end = parts(content, start + prefix.len(), separator, wanted)?;
    Some(start..end)
}

pub(super) fn sendgrid(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "SG.",
        b'.',
        &[(20, 24, is_word), (39, 50, is_word)],
    )?;
    Some(hit(range, "a SendGrid key"))
}

pub(super) fn grafana(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "glsa_",
        b'_',
        &[(32, 32, is_alnum), (8, 8, is_hex)],
    )?;
    Some(hit(range, "a Grafana service account token"))
}

pub(super) fn postman(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "PMAK-",
        b'-',
        &[(24, 24, is_hex), (34, 34, is_hex)],
    )?;
    Some(hit(range, "a Postman key"))
}

pub(super) fn paypal(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "access_token$production$",
        b'$',
        &[(16, 16, is_alnum), (32, 32, is_hex)],
    )?;
    Some(hit(range, "a PayPal access token"))
}

pub(super) fn airtable(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "pat",
        b'.',
        &[(14, 14, is_alnum), (64, 64, is_hex)],
    )?;
    Some(hit(range, "an Airtable token"))
}

pub(super) fn dynatrace(content: &[u8], start: usize) -> Option<Hit> {
    let range = split(
        content,
        start,
        "dt0c01.",
        b'.',
        &[(24, 24, is_alnum), (64, 64, is_alnum)],
    )?;
    Some(hit(range, "a Dynatrace token"))
}

pub(super) fn slack_hook(content: &[u8], start: usize) -> Option<Hit> {
    let at = start + "hooks.slack.com/services/".len();
    let end = parts(
        content,
        at,
        b'/',
        &[(8, 12, is_alnum), (8, 12, is_alnum), (20, 30, is_alnum)],
    )?;
    Some(hit(start..end, "a Slack webhook"))
}

pub(super) fn discord_hook(content: &[u8], start: usize) -> Option<Hit> {
    let host = run_before(content, start, 40, |byte| {
        byte.is_ascii_alphanumeric() || byte == b'.'
    });
    let is_discord = host.ends_with(b"discord.com") || host.ends_with(b"discordapp.com");
    is_discord.then_some(())?;
    let digit: fn(u8) -> bool = |byte| byte.is_ascii_digit();
    let at = start + "/api/webhooks/".len();
    let end = parts(content, at, b'/', &[(17, 20, digit), (60, 80, is_word)])?;
    Some(hit(start - host.len()..end, "a Discord webhook"))
}

/// Tokens of Discord's bots begin with nothing that is theirs alone. Their two dots are what to look for.
pub(super) fn discord_bots(content: &[u8]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for dot in memchr::memchr_iter(b'.', content) {
        if content.get(dot + 7) == Some(&b'.') {
            hits.extend(discord_bot(content, dot));
        }
    }
    hits
}

fn discord_bot(content: &[u8], dot: usize) -> Option<Hit> {
    let id = run_before(content, dot, 28, is_word);
    let start = dot - id.len();
    let begins = matches!(id.first(), Some(b'M' | b'N' | b'O'));
    (begins && (24..=28).contains(&id.len())).then_some(())?;
    // The first part is the bot's number in base64.
    let number = base64_url(id)?;
    number.iter().all(u8::is_ascii_digit).then_some(())?;
    let end = parts(
        content,
        dot + 1,
        b'.',
        &[(6, 6, is_word), (27, 38, is_word)],
    )?;
    Some(hit(start..end, "a Discord bot token"))
}

/// The secret that stands near an access key id of AWS: forty characters of base64, with all kinds of them.
pub(super) fn aws_secret(content: &[u8], id: &Range<usize>) -> Option<Hit> {
    const NEAR: usize = 300;
    let from = id.start.saturating_sub(NEAR);
    let around = content.get(from..content.len().min(id.end + NEAR))?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut at = 0;
    while at < around.len() {
        let part = run(around, at, around.len(), is_part);
        let has = |test: fn(&u8) -> bool| part.iter().any(test);
        let is_mixed =
            has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_digit);
        if part.len() == 40 && is_mixed && super::plausible::entropy(part) > 4.0 && is_random(part)
        {
            return Some(hit(from + at..from + at + 40, "an AWS secret access key"));
        }
        at += part.len().max(1);
    }
    None
}
