//! Every format once, put together at run time so that no scanner takes this file for a leak; and a corpus without secrets.

use proptest::prelude::*;

use super::*;

const LETTERS: &[u8] = b"q7RtZp2KfLw9XcVb4NmAs8DgHj3YuTe6EoPiUxWkQvCr5BnMyGzJh1SdFlIa0O";

/// Characters that look random and are the same each time.
fn random(alphabet: &[u8], count: usize) -> String {
    let mut state = 0x2545_f491_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    (0..count)
        .map(|_| char::from(alphabet[next() as usize % alphabet.len()]))
        .collect()
}

fn alnum(count: usize) -> String {
    random(LETTERS, count)
}

fn hex(count: usize) -> String {
    random(b"0123456789abcdef", count)
}

fn upper(count: usize) -> String {
    random(b"ABCDEFGHIJKLMNPQRSTUVWXYZ234567", count)
}

/// Base64 for URLs, without padding.
fn encoded(text: &str) -> String {
    const TABLE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for group in text.as_bytes().chunks(3) {
        let bits = group
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - group.len()));
        for at in 0..=group.len() {
            out.push(char::from(TABLE[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    out
}

fn pem(label: &str) -> String {
    let body: Vec<String> = (0..4).map(|at| alnum(64 + at)[at..].to_owned()).collect();
    let dashes = "-".repeat(5);
    format!(
        "{dashes}BEGIN {label}{dashes}\n{}\n{dashes}END {label}{dashes}\n",
        body.join("\n")
    )
}

/// What is written, and what it is found to be.
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn positives() -> Vec<(String, &'static str)> {
    let j = |parts: &[&str]| parts.concat();
    let header = encoded(r#"{"alg":"HS256","typ":"JWT"}"#);
    let payload = encoded(r#"{"sub":"alice","exp":1999999999}"#);
    vec![
        (j(&["AK", "IA", &upper(16)]), "an AWS access key id"),
        (
            j(&["AS", "IA", &upper(16)]),
            "a temporary AWS access key id",
        ),
        (
            j(&["gh", "p_", &alnum(36)]),
            "a GitHub personal access token",
        ),
        (j(&["gh", "o_", &alnum(36)]), "a GitHub OAuth token"),
        (
            j(&["gh", "u_", &alnum(36)]),
            "a GitHub user token of an app",
        ),
        (
            j(&["gh", "s_", &alnum(36)]),
            "a GitHub server token of an app",
        ),
        (j(&["gh", "r_", &alnum(36)]), "a GitHub refresh token"),
        (
            j(&["github", "_pat_", &alnum(22), "_", &alnum(59)]),
            "a fine-grained GitHub token",
        ),
        (
            j(&["gl", "pat-", &alnum(20)]),
            "a GitLab personal access token",
        ),
        (
            j(&["xo", "xb-", "402938475610-", &alnum(24)]),
            "a Slack bot token",
        ),
        (
            j(&[
                "hooks.slack.com/serv",
                "ices/T0",
                &upper(7),
                "/B0",
                &upper(7),
                "/",
                &alnum(24),
            ]),
            "a Slack webhook",
        ),
        (j(&["sk_", "live_", &alnum(24)]), "a Stripe secret key"),
        (j(&["rk_", "live_", &alnum(24)]), "a restricted Stripe key"),
        (j(&["AI", "za", &alnum(35)]), "a Google API key"),
        (
            j(&["GOC", "SPX-", &alnum(28)]),
            "a Google OAuth client secret",
        ),
        (
            j(&[
                "\"type\": \"service",
                "_account\", \"private_key\": \"",
                &pem("PRIVATE KEY").replace('\n', "\\n"),
                "\"",
            ]),
            "the private key of a Google service account",
        ),
        (
            j(&["Account", "Key=", &alnum(86), "=="]),
            "an Azure storage key",
        ),
        (
            j(&["SharedAccess", "Key=", &alnum(43), "="]),
            "an Azure shared access key",
        ),
        (j(&["np", "m_", &alnum(36)]), "an npm token"),
        (
            j(&["pypi-", "AgEIcHlwaS5vcmc", &alnum(120)]),
            "a PyPI token",
        ),
        (
            j(&["sk-", "ant-api03-", &alnum(93), "AA"]),
            "an Anthropic API key",
        ),
        (j(&["sk-", "proj-", &alnum(60)]), "an OpenAI project key"),
        (j(&["sk-", &alnum(48)]), "an OpenAI API key"),
        (j(&["hf", "_", &alnum(34)]), "a Hugging Face token"),
        (
            j(&["S", "G.", &alnum(22), ".", &alnum(43)]),
            "a SendGrid key",
        ),
        (j(&["S", "K", &hex(32)]), "a Twilio API key"),
        (j(&["key", "-", &hex(32)]), "a Mailgun key"),
        (j(&["402938475:", "AA", &alnum(33)]), "a Telegram bot token"),
        (
            j(&[
                &encoded("402938475610293847"),
                ".",
                &alnum(6),
                ".",
                &alnum(38),
            ]),
            "a Discord bot token",
        ),
        (
            j(&[
                "https://discord.com/api/web",
                "hooks/402938475610293847/",
                &alnum(68),
            ]),
            "a Discord webhook",
        ),
        (j(&["dop", "_v1_", &hex(64)]), "a DigitalOcean token"),
        (j(&["HR", "KU-", &alnum(60)]), "a Heroku API key"),
        (j(&["shp", "at_", &hex(32)]), "a Shopify access token"),
        (j(&["sq0", "atp-", &alnum(22)]), "a Square access token"),
        (
            j(&["access_token$prod", "uction$", &alnum(16), "$", &hex(32)]),
            "a PayPal access token",
        ),
        (j(&["da", "pi", &hex(32)]), "a Databricks token"),
        (j(&["dp", ".pt.", &alnum(43)]), "a Doppler personal token"),
        (j(&["lin", "_api_", &alnum(40)]), "a Linear API key"),
        (j(&["sec", "ret_", &alnum(43)]), "a Notion secret"),
        (j(&["nt", "n_", &alnum(46)]), "a Notion token"),
        (j(&["PM", "AK-", &hex(24), "-", &hex(34)]), "a Postman key"),
        (
            j(&[&alnum(14), ".atlas", "v1.", &alnum(67)]),
            "a Terraform Cloud token",
        ),
        (j(&["hv", "s.", &alnum(90)]), "a HashiCorp Vault token"),
        (
            j(&["AGE-SECRET", "-KEY-1", &upper(58)]),
            "an age secret key",
        ),
        (j(&["dckr", "_pat_", &alnum(27)]), "a Docker access token"),
        (j(&["fo", "1_", &alnum(43)]), "a Fly.io token"),
        (
            j(&["gl", "sa_", &alnum(32), "_", &hex(8)]),
            "a Grafana service account token",
        ),
        (j(&["NR", "AK-", &upper(27)]), "a New Relic key"),
        (
            j(&["sntr", "ys_", &alnum(100)]),
            "a Sentry organization token",
        ),
        (
            j(&["ATA", "TT3xFfGF0", &alnum(180)]),
            "an Atlassian API token",
        ),
        (j(&["pat", &alnum(14), ".", &hex(64)]), "an Airtable token"),
        (
            j(&["dt0", "c01.", &upper(24), ".", &upper(64)]),
            "a Dynatrace token",
        ),
        (pem("RSA PRIVATE KEY"), "a private key"),
        (pem("OPENSSH PRIVATE KEY"), "an OpenSSH private key"),
        (pem("ENCRYPTED PRIVATE KEY"), "an encrypted private key"),
        (pem("PGP PRIVATE KEY BLOCK"), "a PGP private key"),
        (
            j(&[&header, ".", &payload, ".", &alnum(43)]),
            "a JSON web token",
        ),
        (
            j(&["postgres://app:", "Tr0ub4dor3x", "@db.internal:5432/app"]),
            "a password in a URL",
        ),
        (
            j(&["pass", "word = \"", "kX9!vQ2#mZ7p", "\""]),
            "a password",
        ),
        (
            j(&["\"client_sec", "ret\": \"", &alnum(32), "\""]),
            "a secret",
        ),
        (j(&["API_", "KEY=", &alnum(32)]), "a key of a service"),
        (j(&["auth_to", "ken: ", &hex(40)]), "a token"),
    ]
}

#[test]
fn every_format_is_found_once_at_its_place_and_masked() {
    for (secret, kind) in positives() {
        let text = format!("# ä\nvalue: 'x'\n  {secret}\n");
        let findings = check(text.as_bytes());
        assert_eq!(findings.len(), 1, "{kind}: {findings:?}");
        let finding = &findings[0];
        assert!(
            finding
                .found
                .starts_with(&format!("this looks like {kind}: `")),
            "{kind}: {finding:?}"
        );
        assert_eq!(finding.place.unwrap().line, 3, "{kind}");
        assert!(finding.remedy.as_deref().unwrap().contains("revoke it"));
        let shown = finding.found.split('`').nth(1).unwrap();
        assert!(shown.chars().count() <= 5, "{shown}");
    }
}

#[test]
fn a_place_is_counted_in_characters_from_one() {
    let secret = ["gh", "p_", &alnum(36)].concat();
    let place = |text: String| check(text.as_bytes())[0].place.unwrap();
    assert_eq!(place(secret.clone()), Place { line: 1, column: 1 });
    assert_eq!(
        place(format!("\u{feff}{secret}")),
        Place { line: 1, column: 1 }
    );
    assert_eq!(
        place(format!("a\r\näö {secret}")),
        Place { line: 2, column: 4 }
    );
}

#[test]
fn the_words_are_these() {
    let secret = ["gh", "p_", &alnum(36)].concat();
    let finding = &check(format!("token: {secret}").as_bytes())[0];
    assert_eq!(
        finding.found,
        "this looks like a GitHub personal access token: `ghp_…` (40 characters)"
    );
    let short = ["pass", "word=\"kX9!vQ2#mZ7p\""].concat();
    assert_eq!(
        check(short.as_bytes())[0].found,
        "this looks like a password: `…` (12 characters)"
    );
}

#[test]
fn a_secret_key_of_aws_is_found_near_its_id() {
    let id = ["AK", "IA", &upper(16)].concat();
    let secret = alnum(40);
    let findings = check(format!("{id},{secret}\n").as_bytes());
    let kinds: Vec<&str> = findings
        .iter()
        .map(|f| f.found.split(':').next().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "this looks like an AWS access key id",
            "this looks like an AWS secret access key"
        ]
    );
    assert_eq!(
        check(format!("{secret}\n").as_bytes()),
        [],
        "alone it is any forty characters"
    );
}

#[test]
fn what_is_no_secret_is_let_through() {
    let certificate = pem("CERTIFICATE");
    let public = pem("PUBLIC KEY");
    let header_only = format!("{}BEGIN PRIVATE KEY{}", "-".repeat(5), "-".repeat(5));
    let jwt = [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0.",
        &alnum(43),
    ]
    .concat();
    let integrity = format!("\"integrity\": \"sha512-{}==\"", alnum(86));
    let image = format!("src=\"data:image/png;base64,{}\"", alnum(900));
    for text in [
        "AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        &certificate,
        &public,
        &header_only,
        &jwt,
        &integrity,
        &image,
        "commit 2feacd7d9f0c2b4e6a8d1c3b5f7e9a0b2c4d6e8f",
        "token: 123e4567-e89b-12d3-a456-426614174000",
        "postgres://user:password@localhost/db",
        "postgres://postgres:postgres@localhost/db",
        "https://user:${PASSWORD}@db.internal/",
        "https://user:<password>@db.internal/",
        "https://user:$DB_PASS@db.internal/",
        "https://user:xxx@db.internal/",
        "https://user:***@db.internal/",
        "https://user:changeme@db.internal/",
        "https://user:{password}@db.internal/",
        "mysql://root:DB_PASSWORD@db/",
        "amqp://me:s3cr3t9@example.com/",
        "see https://example.com:8080/a@b and git@github.com:a/b.git",
        "password = os.environ['DB_PASSWORD_2024_PROD']",
        "token = getToken2024(FromSomewhere)",
        "secretName: my-secret-2024-production-eu-west-1",
        "password: changeme12345!",
        "password: \"${DB_PASSWORD_PROD_2024}\"",
        "password: {{ vault_db_password_2024 }}",
        "token_url = \"https://auth.internal/oauth2/token2024\"",
        "max_tokens: 40961234567890123456",
        "tokenizer: \"BertTokenizerFast2024Uncased\"",
        "password_hash: \"5f4dcc3b5aa765d61d8327deb882cf99\"",
        "if token == \"aB3dE5gH7jK9mN1pQ3sT5vX7\" {",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-your-key-here-sk-your-key-here-sk-your-key-here-xx",
        "xoxb-not-a-real-token-this-will-not-work-at-all-xx",
        "task-manager-risk-assessment-desk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert_eq!(check(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn only_new_secrets_are_told() {
    let old = ["gh", "p_", &alnum(36)].concat();
    let new = ["gl", "pat-", &alnum(20)].concat();
    let before = format!("a: {old}\n");
    assert_eq!(
        new_only(
            || before.as_bytes(),
            format!("# moved\nb: {old}\n").as_bytes()
        ),
        []
    );
    let findings = new_only(
        || before.as_bytes(),
        format!("a: {old}\nb: {new}\n").as_bytes(),
    );
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].place, Some(Place { line: 2, column: 4 }));
    assert_eq!(new_only(|| b"", before.as_bytes()).len(), 1);
}

#[test]
fn binary_content_and_utf16_are_searched_too() {
    let secret = ["gh", "p_", &alnum(36)].concat();
    let binary = [b"\x7fELF\0\0\xff".as_slice(), secret.as_bytes(), b"\0"].concat();
    let findings = check(&binary);
    assert_eq!(findings[0].place, None);
    assert!(findings[0].found.ends_with(", at byte 7"), "{findings:?}");
    let wide: Vec<u8> = format!("\u{feff}a\n{secret}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(check(&wide)[0].place, Some(Place { line: 2, column: 1 }));
    let wide: Vec<u8> = format!("\u{feff}{secret}")
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    assert_eq!(check(&wide).len(), 1);
}

#[test]
fn findings_are_limited() {
    let secret = ["gh", "p_", &alnum(36)].concat();
    assert_eq!(
        check(format!("{secret}\n").repeat(1000).as_bytes()).len(),
        FINDINGS_MAX
    );
}

/// Beginnings without ends cost no more than their length.
#[test]
fn content_made_to_be_slow_is_not() {
    for part in [
        "eyJ",
        "eyJ.",
        "://a:",
        "token",
        "token=",
        "-----BEGIN RSA PRIVATE KEY-----",
        "sk-",
        "AKIA ",
        ".aaaaaa.",
        "http://a:b",
        ":AA",
    ] {
        let content = part.repeat((1 << 18) / part.len());
        assert!(check(content.as_bytes()).len() <= FINDINGS_MAX, "{part}");
    }
}

/// Looks at every text file below a directory.
fn look(directory: &std::path::Path, files: &mut usize, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            look(&path, files, found);
        } else if kind.is_file()
            && entry.metadata().is_ok_and(|m| m.len() < 4 << 20)
            && *files < 20_000
        {
            *files += 1;
            let Ok(content) = std::fs::read(&path) else {
                continue;
            };
            found.extend(
                check(&content)
                    .into_iter()
                    .map(|f| format!("{}: {f:?}", path.display())),
            );
        }
    }
}

#[test]
fn this_repository_has_no_false_alarms() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut files, mut found) = (0, Vec::new());
    look(&root, &mut files, &mut found);
    assert!(files > 300, "{files}");
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_files_of_a_system_give_few_false_alarms() {
    let (mut files, mut found) = (0, Vec::new());
    for directory in ["/usr/share/doc", "/etc"] {
        look(std::path::Path::new(directory), &mut files, &mut found);
    }
    // Private keys and password files of the machine itself are no false alarms.
    found.retain(|line| !line.contains("private key"));
    assert!(found.len() * 500 <= files, "{files} files: {found:#?}");
}

proptest! {
    #[test]
    fn any_bytes_are_looked_at(content in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let findings = check(&content);
        prop_assert_eq!(new_only(|| &content, &content), vec![]);
        prop_assert!(findings.len() <= FINDINGS_MAX);
    }

    #[test]
    fn a_token_is_found_between_any_lines(before in "[a-z \n]{0,60}", after in "[a-z \n]{0,60}") {
        let secret = ["gh", "p_", &alnum(36)].concat();
        let text = format!("{before}\n{secret}\n{after}");
        prop_assert_eq!(check(text.as_bytes()).len(), 1);
    }
}

#[test]
fn the_scan_for_names_finds_what_a_pattern_would() {
    let pattern = regex::bytes::Regex::new(
        r"(?i-u)passw|passphrase|secret|token|pwd|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credential",
    )
    .unwrap();
    let parts: [&[u8]; 14] = [
        b"pass", b"PASSW", b"phrase", b"secre", b"t", b"Token", b"p", b"wd", b"api", b"_", b"-",
        b"KEY", b"auth", b"\xff",
    ];
    let mut texts: Vec<Vec<u8>> = Vec::new();
    for one in parts {
        for two in parts {
            for three in parts {
                for four in [&b""[..], b"key", b" credentials and access_key"] {
                    texts.push([one, two, three, four].concat());
                }
            }
        }
    }
    for text in texts {
        let expected: Vec<_> = pattern
            .find_iter(&text)
            .map(|found| found.range())
            .collect();
        let mut at = 0;
        let mut found = Vec::new();
        while at < text.len() {
            let Some(range) = super::assign::name_at(&text, at) else {
                at += 1;
                continue;
            };
            at = range.end;
            found.push(range);
        }
        assert_eq!(found, expected, "{}", String::from_utf8_lossy(&text));
    }
}
