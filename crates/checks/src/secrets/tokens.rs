//! Tokens with a beginning that only they have: one table, one pass.

use super::pairs::Pairs;
use super::{Hit, plausible, shapes};

/// Which characters follow the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    /// Lower-case hex digits.
    Hex,
    /// Letters and digits.
    Alnum,
    /// Capitals and digits.
    Upper,
    /// Letters, digits, `_` and `-`.
    Word,
    /// The same and dots.
    Dotted,
    /// Base64 with its padding.
    Base64,
}

impl Body {
    fn holds(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'),
            Self::Alnum => byte.is_ascii_alphanumeric(),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Word => is_word(byte),
            Self::Dotted => is_word(byte) || byte == b'.',
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
        }
    }
}

/// Whether a byte belongs to a name or a token: nothing of the kind stands directly before or behind a token.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// A format: how it begins, what follows, and how many characters of it.
type Format = (&'static str, Body, usize, usize, &'static str);

use Body::{Alnum, Base64, Dotted, Hex, Upper, Word};

#[rustfmt::skip]
const FORMATS: &[Format] = &[
    ("AKIA", Upper, 16, 16, "an AWS access key id"),
    ("ASIA", Upper, 16, 16, "a temporary AWS access key id"),
    ("ghp_", Alnum, 36, 255, "a GitHub personal access token"),
    ("gho_", Alnum, 36, 255, "a GitHub OAuth token"),
    ("ghu_", Alnum, 36, 255, "a GitHub user token of an app"),
    ("ghs_", Alnum, 36, 255, "a GitHub server token of an app"),
    ("ghr_", Alnum, 36, 255, "a GitHub refresh token"),
    ("github_pat_", Word, 60, 255, "a fine-grained GitHub token"),
    ("glpat-", Dotted, 20, 300, "a GitLab personal access token"),
    ("gldt-", Word, 20, 64, "a GitLab deploy token"),
    ("glrt-", Word, 20, 64, "a GitLab runner token"),
    ("glptt-", Word, 40, 64, "a GitLab trigger token"),
    ("gloas-", Word, 64, 64, "a GitLab OAuth secret"),
    ("xoxb-", Word, 30, 255, "a Slack bot token"),
    ("xoxp-", Word, 30, 255, "a Slack user token"),
    ("xoxa-", Word, 30, 255, "a Slack workspace token"),
    ("xoxr-", Word, 30, 255, "a Slack refresh token"),
    ("xoxs-", Word, 30, 255, "a Slack session token"),
    ("xoxe.", Dotted, 30, 400, "a Slack configuration token"),
    ("xapp-", Word, 30, 255, "a Slack app token"),
    ("sk_live_", Alnum, 24, 255, "a Stripe secret key"),
    ("rk_live_", Alnum, 24, 255, "a restricted Stripe key"),
    ("whsec_", Base64, 32, 64, "a webhook signing secret"),
    ("AIza", Word, 35, 35, "a Google API key"),
    ("GOCSPX-", Word, 28, 28, "a Google OAuth client secret"),
    ("ya29.", Word, 60, 2048, "a Google access token"),
    ("AccountKey=", Base64, 86, 88, "an Azure storage key"),
    ("SharedAccessKey=", Base64, 43, 44, "an Azure shared access key"),
    ("npm_", Alnum, 36, 36, "an npm token"),
    ("pypi-AgE", Word, 60, 1024, "a PyPI token"),
    ("rubygems_", Hex, 48, 48, "a RubyGems key"),
    ("sk-ant-", Word, 60, 255, "an Anthropic API key"),
    ("sk-proj-", Word, 40, 255, "an OpenAI project key"),
    ("sk-svcacct-", Word, 40, 255, "an OpenAI service key"),
    ("sk-admin-", Word, 40, 255, "an OpenAI admin key"),
    ("sk-", Alnum, 48, 48, "an OpenAI API key"),
    ("hf_", Alnum, 34, 40, "a Hugging Face token"),
    ("gsk_", Alnum, 52, 52, "a Groq API key"),
    ("r8_", Alnum, 37, 40, "a Replicate token"),
    ("pplx-", Alnum, 48, 64, "a Perplexity key"),
    ("key-", Hex, 32, 32, "a Mailgun key"),
    ("SK", Hex, 32, 32, "a Twilio API key"),
    ("dop_v1_", Hex, 64, 64, "a DigitalOcean token"),
    ("doo_v1_", Hex, 64, 64, "a DigitalOcean OAuth token"),
    ("dor_v1_", Hex, 64, 64, "a DigitalOcean refresh token"),
    ("HRKU-", Word, 36, 80, "a Heroku API key"),
    ("shpat_", Hex, 32, 32, "a Shopify access token"),
    ("shpca_", Hex, 32, 32, "a Shopify access token"),
    ("shppa_", Hex, 32, 32, "a Shopify access token"),
    ("shpss_", Hex, 32, 32, "a Shopify shared secret"),
    ("sq0atp-", Word, 22, 22, "a Square access token"),
    ("sq0csp-", Word, 43, 43, "a Square OAuth secret"),
    ("EAAA", Word, 60, 60, "a Square access token"),
    ("dapi", Hex, 32, 32, "a Databricks token"),
    ("dp.pt.", Alnum, 40, 44, "a Doppler personal token"),
    ("dp.st.", Dotted, 40, 64, "a Doppler service token"),
    ("dp.sa.", Alnum, 40, 44, "a Doppler service account token"),
    ("lin_api_", Alnum, 40, 40, "a Linear API key"),
    ("secret_", Alnum, 43, 43, "a Notion secret"),
    ("ntn_", Alnum, 40, 50, "a Notion token"),
    ("hvs.", Word, 24, 300, "a HashiCorp Vault token"),
    ("hvb.", Word, 60, 400, "a HashiCorp Vault batch token"),
    ("AGE-SECRET-KEY-1", Upper, 58, 58, "an age secret key"),
    ("dckr_pat_", Word, 27, 27, "a Docker access token"),
    ("dckr_oat_", Word, 27, 40, "a Docker organization token"),
    ("fo1_", Word, 43, 43, "a Fly.io token"),
    ("fm2_", Base64, 60, 4096, "a Fly.io token"),
    ("glc_", Base64, 32, 400, "a Grafana Cloud token"),
    ("NRAK-", Upper, 27, 27, "a New Relic key"),
    ("sntryu_", Hex, 64, 64, "a Sentry user token"),
    ("sntrys_", Base64, 60, 500, "a Sentry organization token"),
    ("ATATT3", Word, 80, 400, "an Atlassian API token"),
    ("ATCTT3", Word, 80, 400, "an Atlassian access token"),
    ("sbp_", Hex, 40, 40, "a Supabase token"),
    ("pscale_tkn_", Dotted, 32, 64, "a PlanetScale token"),
    ("pscale_pw_", Dotted, 32, 64, "a PlanetScale password"),
    ("nfp_", Alnum, 36, 40, "a Netlify token"),
    ("figd_", Word, 40, 60, "a Figma token"),
    ("pul-", Hex, 40, 40, "a Pulumi token"),
    ("tskey-auth-", Word, 24, 80, "a Tailscale key"),
    ("tskey-api-", Word, 24, 80, "a Tailscale key"),
    ("LTAI", Alnum, 20, 20, "an Alibaba Cloud key id"),
];

/// Beginnings whose formats are told by a function.
#[rustfmt::skip]
const SHAPES: &[(&str, shapes::Shape)] = &[
    ("-----BEGIN ", shapes::private_key),
    ("PuTTY-User-Key-File-", shapes::putty_key),
    ("eyJ", shapes::json_web_token),
    ("://", shapes::url_password),
    (":AA", shapes::telegram),
    (".atlasv1.", shapes::terraform),
    ("SG.", shapes::sendgrid),
    ("glsa_", shapes::grafana),
    ("PMAK-", shapes::postman),
    ("access_token$production$", shapes::paypal),
    ("hooks.slack.com/services/", shapes::slack_hook),
    ("/api/webhooks/", shapes::discord_hook),
    ("pat", shapes::airtable),
    ("dt0c01.", shapes::dynatrace),
];

/// The pairs of bytes that formats begin with: a process that writes one file must not have to make a regular expression of a
/// hundred beginnings first.
pub(super) static PAIRS: Pairs = pairs();

#[expect(
    clippy::indexing_slicing,
    reason = "a constant with a wrong index does not compile"
)]
const fn pairs() -> Pairs {
    let mut set = Pairs::none();
    let mut at = 0;
    while at < FORMATS.len() {
        let beginning = FORMATS[at].0.as_bytes();
        set = set.with([beginning[0], beginning[1]]);
        at += 1;
    }
    at = 0;
    while at < SHAPES.len() {
        let beginning = SHAPES[at].0.as_bytes();
        set = set.with([beginning[0], beginning[1]]);
        at += 1;
    }
    set
}

/// Finds the token that begins here.
pub(super) fn at(content: &[u8], start: usize) -> Option<Hit> {
    if !PAIRS.stands_at(content, start) {
        return None;
    }
    token(content, start).or_else(|| shape(content, start))
}

/// The token of the table that begins here.
fn token(content: &[u8], start: usize) -> Option<Hit> {
    let here = content.get(start..)?;
    let before = start.checked_sub(1).and_then(|at| content.get(at));
    if before.is_some_and(|byte| is_word(*byte)) {
        return None;
    }
    FORMATS.iter().find_map(|(prefix, body, min, max, kind)| {
        let rest = here.strip_prefix(prefix.as_bytes())?;
        let length = rest
            .iter()
            .take(max + 1)
            .take_while(|byte| body.holds(**byte))
            .count();
        let value = rest.get(..length)?;
        let is_whole = rest.get(length).is_none_or(|byte| !is_word(*byte));
        let fits = (*min..=*max).contains(&length) && is_whole && plausible::is_random(value);
        fits.then(|| Hit {
            range: start..start + prefix.len() + length,
            kind: (*kind).into(),
        })
    })
}

fn shape(content: &[u8], start: usize) -> Option<Hit> {
    let here = content.get(start..)?;
    let first = here.first();
    SHAPES
        .iter()
        // Most begin with another letter.
        .filter(|(prefix, _)| {
            prefix.as_bytes().first() == first && here.starts_with(prefix.as_bytes())
        })
        .find_map(|(_, shape)| shape(content, start))
}
