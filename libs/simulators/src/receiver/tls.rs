//! Reads what makes the receiver an HTTPS server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or holds something else.
    #[error("{path} cannot be read as PEM")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: pem::Error,
    },
    /// The file has no certificate in it.
    #[error("{0} holds no certificate")]
    NoCertificate(PathBuf),
    /// They do not go together, or are of a kind that cannot be used.
    #[error("the certificate and the key cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// A server with this chain of certificates and this key, both PEM files.
pub fn load(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let in_file = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(in_file(certificate))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(certificate.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(in_file(key))?;
    server(chain, key).map_err(TlsError::Unusable)
}

/// Names the provider, so that it works wherever none has been installed for the process.
fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?;
    let mut server = builder.with_no_client_auth().with_single_cert(chain, key)?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(server))
}
