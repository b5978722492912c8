//! A connection to a database: where it is, who we are there, and that it is the one that was meant.

use std::fmt;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::login::Login;
use super::wire::{Given, Stream, Wire, WireError};
use crate::rows::{Net, PATIENCE, Place, RowsError, SecretUrl, TextRow, quote};
use crate::secret::{decoded, mysql_password, without_password};

/// Where a server is if nobody says, as its own clients know it.
const SOCKET: &str = "/run/mysqld/mysqld.sock";

/// The server's number for a database or a table that is not there.
const NOT_THERE: [u16; 2] = [1049, 1146];

/// A connection. Dropping it ends what it had begun.
pub struct Connection {
    pub(super) wire: Wire,
    /// Where it leads, without a password.
    pub(super) url: String,
    /// Where it leads, as it was given.
    pub(super) secret: SecretUrl,
    /// The database that it is about.
    pub(super) database: String,
    /// The transaction that was begun.
    pub(super) xact: String,
    /// What its temporary table holds.
    pub(super) net: Net,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.url)
    }
}

/// Where a URL leads.
struct Address {
    user: String,
    password: Option<String>,
    host: String,
    port: u16,
    socket: Option<PathBuf>,
    database: String,
    is_encrypted: bool,
}

impl Address {
    /// Reads a URL; what it does not say is asked of the environment, as the server's own clients do.
    fn of(url: &str) -> Result<Self, String> {
        let variable = |name| std::env::var(name).ok().filter(|it| !it.is_empty());
        let (_, rest) = url.split_once("://").unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(decoded(password))),
            None => (login, None),
        };
        let of_query = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(it, _)| *it == name)
                .map(|(_, value)| decoded(value))
        };
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port.to_owned())),
            _ => (host, None),
        };
        let port = port.or_else(|| variable("MYSQL_TCP_PORT"));
        let has_port = port.is_some();
        let port = port.map_or(Ok(3306), |port| port.parse());
        let host = host.trim_matches(['[', ']']).to_owned();
        // Whoever names no machine, or this one by its name, means the socket.
        let is_here = (host.is_empty() || host == "localhost") && !has_port;
        let socket = of_query("socket").or_else(|| {
            is_here.then(|| variable("MYSQL_UNIX_PORT").unwrap_or_else(|| SOCKET.to_owned()))
        });
        if database.is_empty() {
            return Err("the URL names no database".to_owned());
        }
        let user = if user.is_empty() {
            variable("USER").unwrap_or_else(|| "root".to_owned())
        } else {
            decoded(user)
        };
        Ok(Self {
            user,
            password: password.or_else(mysql_password),
            host,
            port: port.map_err(|_| "the port is no number".to_owned())?,
            socket: socket.map(PathBuf::from),
            database: decoded(database),
            is_encrypted: of_query("ssl").is_some_and(|it| !matches!(it.as_str(), "0" | "false")),
        })
    }

    fn stream(&self, within: Duration) -> Result<Box<dyn Stream>, WireError> {
        if let Some(socket) = &self.socket {
            let stream = UnixStream::connect(socket)?;
            return Ok(Box::new(stream));
        }
        let mut last = std::io::Error::from(std::io::ErrorKind::NotFound);
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, within) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Box::new(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(last.into())
    }
}

impl Connection {
    /// Connects, within a time. The password comes from the URL or from where the server's own clients look.
    pub fn open(url: &str, within: Duration) -> Result<Self, RowsError> {
        let kept = without_password(url);
        let unreachable = |why: String| RowsError::Unreachable {
            url: kept.clone(),
            why,
        };
        let address = Address::of(url).map_err(unreachable)?;
        let encrypt = |stream: Box<dyn Stream>| {
            let made = crate::tls::encrypt(stream, &address.host);
            let made = made.map_err(std::io::Error::other)?;
            Ok(made as Box<dyn Stream>)
        };
        let login = Login {
            user: &address.user,
            password: address.password.as_deref(),
            database: &address.database,
            encrypt: address
                .is_encrypted
                .then_some(&encrypt as super::login::Encrypt<'_>),
            is_private: address.socket.is_some(),
        };
        let wire = address
            .stream(within)
            .and_then(|stream| Wire::open(stream, &login));
        let wire = wire.map_err(|error| {
            let is_refused = matches!(
                error,
                WireError::Server {
                    code: 1045 | 1698,
                    ..
                }
            );
            let no_password = "; there is none in MYSQL_PWD and none in ~/.my.cnf";
            let more = if is_refused && address.password.is_none() {
                no_password
            } else {
                ""
            };
            unreachable(format!("{error}{more}"))
        })?;
        if !wire.version.contains("MariaDB") {
            return Err(unreachable(format!(
                "it is MySQL {}, and Backout was tried with MariaDB only",
                wire.version
            )));
        }
        let mut connection = Self {
            wire,
            url: kept.clone(),
            secret: SecretUrl(url.to_owned()),
            database: address.database,
            xact: String::new(),
            net: None,
        };
        connection.set_modes()?;
        Ok(connection)
    }

    /// Connects to a database that is known, and makes sure that it is the same one.
    pub(super) fn to_known(place: &Place, secret_url: Option<&str>) -> Result<Self, RowsError> {
        let mut connection = Self::open(secret_url.unwrap_or(&place.url), PATIENCE)?;
        let found = connection.find_identity()?;
        if found.id != place.id {
            return Err(RowsError::Another {
                url: place.url.clone(),
                name: place.name.clone(),
                found: found.name,
            });
        }
        Ok(connection)
    }

    /// Tells which database it is.
    pub(super) fn find_identity(&mut self) -> Result<Place, RowsError> {
        let url = self.url.clone();
        let sql = format!("SELECT name, id FROM {}", self.own("identity"));
        let found = match self.wire.query(&sql, 1) {
            Ok(found) => text(found),
            Err(WireError::Server { code, .. }) if NOT_THERE.contains(&code) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let mut row = found.into_iter().next().unwrap_or_default().into_iter();
        match (row.next().flatten(), row.next().flatten()) {
            (Some(name), Some(id)) => Ok(Place { name, id, url }),
            _ => Err(RowsError::NotEnrolled { url }),
        }
    }

    /// Names a table of our own.
    pub(super) fn own(&self, table: &str) -> String {
        format!("{}.{}", name(&own_database(&self.database)), name(table))
    }

    /// Lets texts be written without escapes, and values as they are.
    pub(super) fn set_modes(&mut self) -> Result<(), RowsError> {
        self.tell(
            "SET SESSION sql_mode = 'NO_BACKSLASH_ESCAPES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,STRICT_ALL_TABLES'",
        )?;
        self.tell("SET NAMES utf8mb4 COLLATE utf8mb4_bin")?;
        self.tell("SET SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 5, SESSION lock_wait_timeout = 10")?;
        self.tell("SET SESSION group_concat_max_len = 1048576, SESSION check_constraint_checks = 1, SESSION foreign_key_checks = 1, SESSION unique_checks = 1")?;
        self.tell("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    }

    /// Carries out a statement that needs no answer.
    pub(super) fn tell(&mut self, sql: &str) -> Result<(), RowsError> {
        self.wire.query(sql, 0)?;
        Ok(())
    }

    /// Asks one question.
    pub(super) fn question(&mut self, sql: &str) -> Result<Vec<TextRow>, RowsError> {
        Ok(text(self.wire.query(sql, usize::MAX)?))
    }

    /// Asks for one value.
    pub(super) fn value(&mut self, sql: &str) -> Result<Option<String>, RowsError> {
        let found = self.question(sql)?;
        Ok(found.into_iter().flatten().next().flatten())
    }

    /// Writes the name of the database as a text.
    pub(super) fn schema_text(&self) -> String {
        quote(&self.database)
    }
}

/// Names the database that holds what is ours.
pub(super) fn own_database(database: &str) -> String {
    format!("backout_{database}")
}

/// Writes a name as SQL.
pub(super) fn name(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

/// Reads values as text.
fn text(given: Vec<Given>) -> Vec<TextRow> {
    let value = |value: Option<Vec<u8>>| {
        value.map(|bytes| match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => hexadecimal(error.as_bytes()),
        })
    };
    let rows = given.into_iter().flat_map(|given| given.rows);
    rows.map(|row| row.into_iter().map(value).collect())
        .collect()
}

/// Writes bytes that are no text.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "0x".to_owned();
    for byte in bytes {
        let _written = write!(text, "{byte:02X}");
    }
    text
}

impl From<WireError> for RowsError {
    fn from(error: WireError) -> Self {
        let code = match &error {
            WireError::Server { code, .. } => code.to_string(),
            WireError::Io(_) => String::new(),
            WireError::Protocol(_) => "protocol".to_owned(),
        };
        Self::Refused {
            why: error.to_string(),
            code,
        }
    }
}
