//! The beginning of a session: who we are, and how the server wants to be told. Known are `mysql_native_password`,
//! `caching_sha2_password` and, on a socket of this machine, whoever the system says we are.

use std::io;

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use super::wire::{Fields, Stream, Wire, WireError, protocol, said};

const LONG_PASSWORD: u32 = 1;
const LONG_FLAG: u32 = 1 << 2;
const WITH_DATABASE: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const TLS: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE: u32 = 1 << 15;
const MULTI_RESULTS: u32 = 1 << 17;
const PLUGINS: u32 = 1 << 19;

/// `utf8mb4_general_ci`, which all servers know.
const CHARACTERS: u8 = 45;

/// Makes a stream an encrypted one.
pub(super) type Encrypt<'l> = &'l dyn Fn(Box<dyn Stream>) -> io::Result<Box<dyn Stream>>;

/// Who begins a session.
pub(super) struct Login<'l> {
    pub(super) user: &'l str,
    pub(super) password: Option<&'l str>,
    pub(super) database: &'l str,
    /// How to encrypt; none leaves it.
    pub(super) encrypt: Option<Encrypt<'l>>,
    /// Whether nobody else can listen: then a password may be sent as it is.
    pub(super) is_private: bool,
}

/// Begins a session.
pub(super) fn log_in(wire: &mut Wire, login: &Login<'_>) -> Result<(), WireError> {
    let greeting = wire.read()?;
    if greeting.first() == Some(&0xff) {
        return Err(said(&greeting));
    }
    let mut fields = Fields(&greeting);
    if fields.take(1)? != [10] {
        return Err(protocol(
            "the server speaks another version of the protocol",
        ));
    }
    wire.version = String::from_utf8_lossy(fields.until_zero()).into_owned();
    wire.thread = fields.long()?;
    let mut seed = fields.take(8)?.to_vec();
    fields.skip(1)?;
    let low = fields.short()?;
    fields.skip(3)?;
    let can = u32::from(low) | u32::from(fields.short()?) << 16;
    let length = fields.take(1)?.first().copied().unwrap_or_default();
    fields.skip(10)?;
    let rest = usize::from(length).saturating_sub(8).max(13);
    seed.extend(fields.take(rest)?);
    seed.truncate(20);
    let plugin = String::from_utf8_lossy(fields.until_zero()).into_owned();

    let mut wants = LONG_PASSWORD
        | LONG_FLAG
        | WITH_DATABASE
        | PROTOCOL_41
        | TRANSACTIONS
        | SECURE
        | MULTI_RESULTS
        | PLUGINS;
    if let Some(encrypt) = login.encrypt {
        if can & TLS == 0 {
            return Err(protocol("the server has no encryption"));
        }
        wants |= TLS;
        wire.send(&head(wants))?;
        wire.encrypt(encrypt)?;
    }
    // Another way than these the server asks for in its next message.
    let answer = proof(&plugin, login, &seed).unwrap_or_default();
    let mut message = head(wants);
    message.extend(login.user.as_bytes());
    message.push(0);
    message.push(u8::try_from(answer.len()).unwrap_or_default());
    message.extend(&answer);
    for text in [login.database, &plugin] {
        message.extend(text.as_bytes());
        message.push(0);
    }
    wire.send(&message)?;
    agree(wire, login, plugin)
}

/// Answers until the server is content.
fn agree(wire: &mut Wire, login: &Login<'_>, mut plugin: String) -> Result<(), WireError> {
    loop {
        let message = wire.read()?;
        let mut fields = Fields(message.get(1..).unwrap_or_default());
        match message.first() {
            Some(0x00) => return Ok(()),
            Some(0xff) => return Err(said(&message)),
            Some(0xfe) => {
                plugin = String::from_utf8_lossy(fields.until_zero()).into_owned();
                let Some(answer) = proof(&plugin, login, fields.until_zero()) else {
                    return Err(protocol(&format!(
                        "the server wants `{plugin}` to let this user in, which Backout does not know"
                    )));
                };
                wire.send(&answer)?;
            }
            // It knows the answer already.
            Some(0x01) if fields.0 == [3] => {}
            Some(0x01) if fields.0 == [4] => {
                let is_hidden = login.is_private || login.encrypt.is_some();
                if plugin != "caching_sha2_password" || !is_hidden {
                    return Err(protocol(
                        "the server wants the password itself, and the connection is not encrypted: use `?ssl=true` or a socket",
                    ));
                }
                let mut password = login.password.unwrap_or_default().as_bytes().to_vec();
                password.push(0);
                wire.send(&password)?;
            }
            _ => {
                return Err(protocol(
                    "the server asks for something that Backout does not know",
                ));
            }
        }
    }
}

/// Writes the beginning of our first message.
fn head(wants: u32) -> Vec<u8> {
    let mut head = wants.to_le_bytes().to_vec();
    head.extend((1_u32 << 30).to_le_bytes());
    head.push(CHARACTERS);
    head.extend([0; 23]);
    head
}

/// Proves that we know the password, without telling it; none if the way is not known.
fn proof(plugin: &str, login: &Login<'_>, seed: &[u8]) -> Option<Vec<u8>> {
    let password = login.password.unwrap_or_default().as_bytes();
    let hash = |algorithm: &'static Algorithm, parts: &[&[u8]]| {
        digest(algorithm, &parts.concat()).as_ref().to_vec()
    };
    let (algorithm, is_seed_first) = match plugin {
        "mysql_native_password" => (&SHA1_FOR_LEGACY_USE_ONLY, true),
        "caching_sha2_password" => (&SHA256, false),
        // Whoever holds the other end of the socket is known to the system.
        "auth_socket" | "unix_socket" | "auth_gssapi_client" if login.is_private => {
            return Some(Vec::new());
        }
        _ => return None,
    };
    if password.is_empty() {
        return Some(Vec::new());
    }
    let once = hash(algorithm, &[password]);
    let twice = hash(algorithm, &[&once]);
    let salted = if is_seed_first {
        hash(algorithm, &[seed, &twice])
    } else {
        hash(algorithm, &[&twice, seed])
    };
    Some(once.iter().zip(salted).map(|(a, b)| a ^ b).collect())
}
