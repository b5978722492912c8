//! Encrypted connections, with the certificates that a variable names or the system trusts.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Where the system keeps the certificates that it trusts.
const CERTIFICATES: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Says whom to trust: those in the file that a variable of the environment names, or those that the system trusts.
pub(crate) fn config(variable: &str) -> Result<ClientConfig, String> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let usual = || {
        let mut each = CERTIFICATES.iter().map(PathBuf::from);
        each.find(|path| path.exists())
    };
    let mut roots = RootCertStore::empty();
    if let Some(file) = named.or_else(usual) {
        let unread = |error: rustls::pki_types::pem::Error| format!("{}: {error}", file.display());
        for certificate in CertificateDer::pem_file_iter(&file).map_err(unread)? {
            // The system's bundle may hold some that this client does not understand.
            let _ignored = roots.add(certificate.map_err(unread)?);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Encrypts what goes through a stream to a host.
#[cfg(feature = "mysql")]
pub(crate) fn encrypt<S: io::Read + io::Write + Send + 'static>(
    stream: S,
    host: &str,
) -> Result<Box<StreamOwned<ClientConnection, S>>, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let config = Arc::new(config("MYSQL_SSL_CA")?);
    let session = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
    Ok(Box::new(StreamOwned::new(session, stream)))
}
