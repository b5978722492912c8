//! Passwords: what is left out of everything that is kept, and where a later process finds them again.
//!
//! - A URL with a password is used for one connection. What is kept is the URL without it.
//! - Later the password comes from the environment or from the file where the server's own clients keep it.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Names in a URL's query whose values are secrets.
const SECRETS: [&str; 4] = ["password", "passwd", "sslpassword", "pwd"];

/// Looks a variable up when something is sent, and never before. One without a value is none.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Gives the variable that a text begins with, written `${env:NAME}`, and what follows it.
pub fn named_variable(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("${env:")?.split_once('}')
}

/// Gives a URL without the password in it.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let end = place.find('/').unwrap_or(place.len());
    let (authority, path) = place.split_at(end);
    // A password may hold an `@` that somebody forgot to write as `%40`: only the last one ends it.
    let authority = match authority.rsplit_once('@') {
        Some((login, host)) => {
            let user = login.split_once(':').map_or(login, |(user, _)| user);
            format!("{user}@{host}")
        }
        None => authority.to_owned(),
    };
    let mut kept = format!("{scheme}://{authority}{path}");
    let is_secret = |pair: &&str| {
        let name = pair.split_once('=').map_or(*pair, |(name, _)| name);
        SECRETS.iter().any(|it| name.eq_ignore_ascii_case(it))
    };
    let pairs = query.iter().flat_map(|query| query.split('&'));
    let pairs: Vec<&str> = pairs.filter(|pair| !is_secret(pair)).collect();
    if !pairs.is_empty() {
        kept.push('?');
        kept.push_str(&pairs.join("&"));
    }
    kept
}

/// What a password is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Login<'l> {
    /// The host, `localhost` for a socket.
    pub host: &'l str,
    /// Where the server listens.
    pub port: u16,
    /// To which the login is.
    pub database: &'l str,
    /// Who logs in.
    pub user: &'l str,
}

/// Looks a password up as the clients of `PostgreSQL` do: `PGPASSWORD`, then the file `PGPASSFILE` or `~/.pgpass`. A file
/// that others can read does not count.
pub fn pgpass(login: Login<'_>) -> Option<String> {
    variable("PGPASSWORD").or_else(|| {
        let file = match variable("PGPASSFILE") {
            Some(file) => PathBuf::from(file),
            None => Path::new(&variable("HOME")?).join(".pgpass"),
        };
        let is_private = std::fs::metadata(&file).ok()?.mode().trailing_zeros() >= 6;
        let text = is_private.then(|| std::fs::read_to_string(&file).ok())??;
        text.lines().find_map(|line| password_in(line, login))
    })
}

/// Looks a password up as the clients of `MySQL` do: `MYSQL_PWD`, then `password` in the part `[client]` of `~/.my.cnf`. A file
/// that others can read does not count.
#[cfg(feature = "mysql")]
pub(crate) fn mysql_password() -> Option<String> {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|it: &String| !it.is_empty())
    };
    variable("MYSQL_PWD").or_else(|| {
        let file = Path::new(&variable("HOME")?).join(".my.cnf");
        let is_private = std::fs::metadata(&file).ok()?.mode().trailing_zeros() >= 6;
        let text = is_private.then(|| std::fs::read_to_string(&file).ok())??;
        let lines = text.lines().map(str::trim);
        let mut lines = lines.skip_while(|line| *line != "[client]").skip(1);
        let own = lines.by_ref().take_while(|line| !line.starts_with('['));
        let mut pairs = own.filter_map(|line| line.split_once('='));
        let found = pairs.find(|(name, _)| name.trim() == "password");
        found.map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
    })
}

/// Reads a part of a URL in which letters may be written as `%40`.
#[cfg(feature = "mysql")]
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let pair = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = pair.and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Gives the password of a line `host:port:database:user:password` that fits.
fn password_in(line: &str, login: Login<'_>) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        // The last field ends with the line.
        let is_end = letter == ':' && fields.len() < 5;
        match (letter, fields.last_mut()) {
            (_, Some(_)) if is_end => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(letters.next()),
            (_, Some(field)) => field.push(letter),
            (_, None) => {}
        }
    }
    let port = login.port.to_string();
    let wanted = [login.host, &port, login.database, login.user];
    let [found @ .., password] = fields.as_slice() else {
        return None;
    };
    let fits = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
    let is_it = found.len() == wanted.len() && found.iter().zip(wanted).all(fits);
    is_it.then(|| password.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_left_out_wherever_it_stands() {
        for (url, kept) in [
            ("postgres://ann:PASSWORD@db/shop", "postgres://ann@db/shop"),
            ("postgres://a:{}@db:1/s", "postgres://a@db:1/s"),
            ("postgres://ann@db/shop", "postgres://ann@db/shop"),
            (
                "postgres:///shop?host=/run/pg",
                "postgres:///shop?host=/run/pg",
            ),
            (
                "mysql://db/shop?password=x&ssl=1&PassWord=y",
                "mysql://db/shop?ssl=1",
            ),
            ("postgres://:pw@db/shop?password=x", "postgres://@db/shop"),
        ] {
            let url = url.replace("WORD", "w0rd").replace("{}", "p@ss");
            assert_eq!(without_password(&url), kept);
        }
    }

    #[test]
    fn a_line_of_the_password_file_fits_field_by_field() {
        let login = Login {
            host: "db",
            port: 5432,
            database: "shop",
            user: "ann",
        };
        for (line, password) in [
            ("db:5432:shop:ann:s3cret", Some("s3cret")),
            ("*:*:*:ann:a:b", Some("a:b")),
            (r"db:*:shop:ann:a\:b\\", Some(r"a:b\")),
            ("db:5433:shop:ann:no", None),
            ("# db:5432:shop:ann:no", None),
            ("db:5432", None),
        ] {
            assert_eq!(password_in(line, login).as_deref(), password, "{line}");
        }
    }
}
