//! A connection to a database: where it is, who we are there, and that it is the one that was meant.

use std::fmt;
use std::time::Duration;

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::with_cause;
use crate::rows::{Net, PATIENCE, Place, RowsError, SchemaChange};
use crate::secret::{Login, pgpass, without_password};

/// Where a server is if nobody says, as its own clients know it.
const SOCKETS: &str = "/var/run/postgresql";

/// A connection. Dropping it ends what it had begun.
pub struct Connection {
    pub(super) client: Client,
    /// Where it leads, without a password.
    pub(super) url: String,
    /// What the statements of this transaction changed in the schema.
    pub(super) schema: Vec<SchemaChange>,
    /// Whether whoever tells the server to stop has to do so encrypted.
    pub(super) is_encrypted: bool,
    /// What is worth knowing of what it did to the schema.
    pub(super) notes: Vec<String>,
    /// What its temporary table holds.
    pub(super) net: Net,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connection({})", self.url)
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
        let mut config: Config = url
            .parse()
            .map_err(|error| unreachable(with_cause(&error)))?;
        complete(&mut config);
        config.connect_timeout(within);
        if config.get_application_name().is_none() {
            config.application_name("backout");
        }
        // Without a wish for it there is no encryption on a socket of this machine, and elsewhere only if the server has it.
        let is_local = config
            .get_hosts()
            .iter()
            .all(|host| matches!(host, Host::Unix(_)));
        let is_encrypted = !is_local && config.get_ssl_mode() != SslMode::Disable;
        let connected = if is_encrypted {
            config.connect(MakeRustlsConnect::new(
                crate::tls::config("PGSSLROOTCERT").map_err(RowsError::Tls)?,
            ))
        } else {
            config.connect(NoTls)
        };
        let client = connected.map_err(|error| {
            let mut why = match error.as_db_error() {
                Some(said) => said.message().to_owned(),
                None => with_cause(&error),
            };
            if config.get_password().is_none() && why.contains("password") {
                why.push_str("; there is none in PGPASSWORD and none that fits in ~/.pgpass");
            }
            unreachable(why)
        })?;
        let url = kept.clone();
        let schema = Vec::new();
        Ok(Self {
            client,
            url,
            schema,
            is_encrypted,
            notes: Vec::new(),
            net: None,
        })
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
        let sql = "SELECT to_regclass('backout.identity') IS NOT NULL";
        let url = self.url.clone();
        let is_enrolled: bool = self.client.query_one(sql, &[])?.get(0);
        if !is_enrolled {
            return Err(RowsError::NotEnrolled { url });
        }
        let (cluster, database) = self.home()?;
        // A database that was enrolled by an older program does not say where it was.
        let sql = "SELECT name, id::text, coalesce(database = $2, true)
                          AND (coalesce(cluster, '') IN ('', $1) OR $1 = '') FROM backout.identity";
        let found = self.client.query_opt(sql, &[&cluster, &database])?;
        let Some(row) = found else {
            return Err(RowsError::NotEnrolled { url });
        };
        if !row.get::<_, bool>(2) {
            let name = row.get(0);
            return Err(RowsError::Copy { url, name });
        }
        Ok(Place {
            name: row.get(0),
            id: row.get(1),
            url,
        })
    }

    /// Tells which cluster and which database of it this is; the cluster is empty for a role that may not ask.
    pub(super) fn home(&mut self) -> Result<(String, u32), RowsError> {
        let sql = "SELECT oid, has_function_privilege('pg_catalog.pg_control_system()', 'execute')
                   FROM pg_database WHERE datname = current_database()";
        let row = self.client.query_one(sql, &[])?;
        let cluster = if row.get(1) {
            let sql = "SELECT system_identifier::text FROM pg_control_system()";
            self.client.query_one(sql, &[])?.get(0)
        } else {
            String::new()
        };
        Ok((cluster, row.get(0)))
    }
}

/// Takes from the environment what a URL does not say, as the server's own clients do.
fn complete(config: &mut Config) {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .filter(|it: &String| !it.is_empty())
    };
    if config.get_hosts().is_empty() {
        config.host(&variable("PGHOST").unwrap_or_else(|| SOCKETS.to_owned()));
    }
    if config.get_ports().is_empty()
        && let Some(port) = variable("PGPORT").and_then(|it| it.parse().ok())
    {
        config.port(port);
    }
    if config.get_user().is_none()
        && let Some(user) = variable("PGUSER")
    {
        config.user(&user);
    }
    if config.get_password().is_none() {
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            _ => "localhost".to_owned(),
        };
        let user = config.get_user().unwrap_or_default().to_owned();
        let database = config.get_dbname().unwrap_or(&user).to_owned();
        let found = pgpass(Login {
            host: &host,
            port: config.get_ports().first().copied().unwrap_or(5432),
            database: &database,
            user: &user,
        });
        if let Some(password) = found {
            config.password(password);
        }
    }
}
