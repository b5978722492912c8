//! TLS: a certificate and its key, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use backout_engine::{ErrorCode, Report};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Where the certificate is, and its key.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The chain of certificates, our own first.
    pub certificate: PathBuf,
    /// The file of its private key, in PEM.
    pub key: PathBuf,
}

/// Reads both and makes what greets clients.
pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, Report> {
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(&tls.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| unusable(&tls.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| unusable(&tls.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Report {
    Report::usage(format!("`{}` cannot be used for TLS", path.display()))
        .code(ErrorCode::NotListening)
        .because(error.to_string())
        .next("give a certificate and its key as PEM files")
}
