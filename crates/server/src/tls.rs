//! TLS of our own: a certificate and a key from files, and the handshake.

use std::{io, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use zareba_wire::{
    BoxFuture,
    serving::{Secure, Stream},
};

use crate::settings::TlsFiles;

/// Does handshakes with one certificate.
pub struct Tls {
    acceptor: TlsAcceptor,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificates cannot be read.
    #[error("cannot read certificates from `{}`", path.display())]
    Certificates {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The key cannot be read.
    #[error("cannot read a private key from `{}`", path.display())]
    Key {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// They do not fit together, or are of a kind that nobody takes.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl Tls {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    /// When a file cannot be read, or the two do not fit together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let certificates = read_certificates(files)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| TlsError::Key {
            path: files.key.clone(),
            source: Box::new(error),
        })?;
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(TlsError::Unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Ok(Self { acceptor })
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Tls").finish_non_exhaustive()
    }
}

fn read_certificates(files: &TlsFiles) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |source| TlsError::Certificates {
        path: files.certificates.clone(),
        source,
    };
    let read: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&files.certificates).and_then(Iterator::collect);
    let certificates = read.map_err(|error| failed(Box::new(error)))?;
    if certificates.is_empty() {
        return Err(failed("there is none in it".into()));
    }
    Ok(certificates)
}

impl Secure for Tls {
    fn secure(&self, stream: TcpStream) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = self.acceptor.accept(stream).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
