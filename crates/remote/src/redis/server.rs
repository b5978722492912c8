//! Where a server is, and with which password: what is written down holds no secret.

use std::fmt;
use std::path::PathBuf;

use backout_model::ports::DriverError;
use backout_model::{Key, Reach, Target};
use redis::{ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo};
use serde::{Deserialize, Serialize};

use super::error::RedisFault;
use super::words::{Naming, name_of, plain_name_of};
use crate::secret::{named_variable, variable};

/// Where `redis-cli` looks for a password, too.
const USUAL_PASSWORD: &str = "REDISCLI_AUTH";

/// One database of one server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    place: Place,
    /// The number of the database.
    db: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// The variable that holds the password; if none is said, the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password_in: Option<String>,
    /// A password that was given in the open. It is used and never written down.
    #[serde(skip)]
    password: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Place {
    Tcp { host: String, port: u16 },
    Socket { path: PathBuf },
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp { host, port } if host.contains(':') => {
                write!(f, "redis://[{host}]:{port}/{}", self.db)
            }
            Place::Tcp { host, port } => write!(f, "redis://{host}:{port}/{}", self.db),
            Place::Socket { path } => write!(f, "unix://{}?db={}", path.display(), self.db),
        }
    }
}

impl Server {
    /// Reads `redis://[USER[:PASSWORD]@]HOST[:PORT][/DB]` or `unix:///PATH[?db=DB&user=USER&pass=PASSWORD]`. A password may be
    /// `${env:NAME}`.
    pub fn parse(url: &str) -> Result<Self, RedisFault> {
        if url.starts_with("rediss:") || url.starts_with("valkeys:") {
            return Err(RedisFault::Tls);
        }
        // The text may hold a password: neither it nor the cause is told.
        let read = url
            .into_connection_info()
            .map_err(|error| RedisFault::Url {
                why: error.category().to_owned(),
            })?;
        let place = match read.addr() {
            ConnectionAddr::Tcp(host, port) => Place::Tcp {
                host: host.clone(),
                port: *port,
            },
            ConnectionAddr::Unix(path) => Place::Socket { path: path.clone() },
            _ => return Err(RedisFault::Tls),
        };
        let settings = read.redis_settings();
        let given = settings.password();
        let named = given.and_then(|given| match named_variable(given)? {
            (name, "") => Some(name),
            _ => None,
        });
        Ok(Self {
            place,
            db: settings.db(),
            user: settings.username().map(str::to_owned),
            password_in: named.map(str::to_owned),
            password: given
                .filter(|given| named.is_none() && !given.is_empty())
                .map(str::to_owned),
        })
    }

    /// Gives a key as the target inside of this server and database.
    pub(super) fn target(&self, key: &[u8], naming: Naming) -> Result<Target, DriverError> {
        let name = |bytes: &[u8]| match naming {
            Naming::Escaped => name_of(bytes),
            Naming::Plain => plain_name_of(bytes),
        };
        let (db, key) = (self.db.to_string(), name(key));
        let key = match &self.place {
            Place::Tcp { host, port } => {
                // One server has one name, whatever way leads to it.
                let is_here = matches!(host.as_str(), "127.0.0.1" | "::1");
                let host = if is_here { "localhost" } else { host };
                Key::in_space(&format!("redis:{host}:{port}"), &[&db, &key])?
            }
            Place::Socket { path } => {
                use std::os::unix::ffi::OsStrExt as _;
                let path = name(path.as_os_str().as_bytes());
                Key::in_space("redis:unix", &[&path, &db, &key])?
            }
        };
        Ok(Target::new(key, Reach::Node))
    }

    /// Gives what a client needs to connect, the password with it.
    pub(super) fn access(&self) -> Result<redis::ConnectionInfo, RedisFault> {
        let address = match &self.place {
            Place::Tcp { host, port } => ConnectionAddr::Tcp(host.clone(), *port),
            Place::Socket { path } => ConnectionAddr::Unix(path.clone()),
        };
        let mut settings = RedisConnectionInfo::default().set_db(self.db);
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = self.secret()? {
            settings = settings.set_password(password);
        }
        let info = address
            .into_connection_info()
            .map_err(|error| RedisFault::Url {
                why: error.category().to_owned(),
            })?;
        Ok(info.set_redis_settings(settings))
    }

    fn secret(&self) -> Result<Option<String>, RedisFault> {
        if let Some(password) = &self.password {
            return Ok(Some(password.clone()));
        }
        match &self.password_in {
            Some(name) => match variable(name) {
                Some(password) => Ok(Some(password)),
                None => Err(RedisFault::NoPassword { name: name.clone() }),
            },
            None => Ok(variable(USUAL_PASSWORD)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_neither_written_down_nor_shown() {
        let server = Server::parse(&format!("redis://me:{}@db.local:7000/3", "hush")).unwrap();
        let written = serde_json::to_string(&server).unwrap();
        assert!(!written.contains("hush"), "{written}");
        assert!(!format!("{server:?} {server}").contains("hush"));
        assert_eq!(server.secret().unwrap(), Some("hush".to_owned()));
        let read: Server = serde_json::from_str(&written).unwrap();
        assert_eq!(read.password, None);
        assert_eq!(read.to_string(), "redis://db.local:7000/3");
        let error = Server::parse(&format!("redis://me:{}@db.local:7000/x", "hush")).unwrap_err();
        assert!(!error.to_string().contains("hush"), "{error}");
    }

    #[test]
    fn where_the_password_is_may_be_written_down() {
        for url in [
            "redis://:${env:BACKOUT_NO_SUCH}@h",
            "unix:///tmp/s?pass=${env:BACKOUT_NO_SUCH}",
        ] {
            let server = Server::parse(url).unwrap();
            let read: Server =
                serde_json::from_str(&serde_json::to_string(&server).unwrap()).unwrap();
            let error = read.secret().unwrap_err().to_string();
            assert!(error.contains("BACKOUT_NO_SUCH"), "{error}");
        }
    }

    #[test]
    fn a_server_has_one_name_and_a_key_one_target() {
        let named = |url: &str, key: &[u8]| {
            let server = Server::parse(url).unwrap();
            let target = server.target(key, Naming::Plain).unwrap();
            let read: Key = target.to_string().parse().unwrap();
            assert_eq!(&read, target.key());
            target.to_string()
        };
        assert_eq!(named("redis://h", b"a\nb"), "redis:h:6379/0/a%0Ab");
        assert_eq!(named("redis://h", b"50%"), "redis:h:6379/0/50%25");
        assert_eq!(named("redis://127.0.0.1", b"a"), "redis:localhost:6379/0/a");
        assert_eq!(
            named("redis://localhost/2", b"a:b"),
            "redis:localhost:6379/2/a%3Ab"
        );
        assert_eq!(named("redis://[::1]:1", b""), "redis:localhost:1/0/%25");
        assert_eq!(
            named("unix:///run/r.sock?db=4", b"a/\xff"),
            "redis:unix/%2Frun%2Fr.sock/4/a%2F%25FF"
        );
        assert!(matches!(Server::parse("rediss://h"), Err(RedisFault::Tls)));
        assert!(Server::parse("http://h").is_err());
    }
}
