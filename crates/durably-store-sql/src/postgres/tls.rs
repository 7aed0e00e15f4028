//! Encryption: rustls with ring.

use crate::postgres::settings::{Encryption, Settings};
use durably_store::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How connections to the servers of these settings are encrypted. Reads certificates, and blocks
/// for as long as that takes.
pub(crate) fn connector(settings: &Settings) -> Result<MakeRustlsConnect, StoreError> {
    let cannot = |problem: String| StoreError::Open { store: settings.shown(), problem };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| cannot(error.to_string()))?;
    let config = match (settings.encryption, &settings.roots) {
        (_, Some(file)) => config.with_root_certificates(roots_of(file).map_err(cannot)?),
        (Encryption::Verified, None) => {
            config.with_root_certificates(roots_of_host().map_err(cannot)?)
        }
        (Encryption::Never | Encryption::IfOffered | Encryption::Always, None) => {
            config.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        }
    };
    Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
}

fn roots_of(file: &Path) -> Result<RootCertStore, String> {
    let wrong = |problem: String| format!("sslrootcert={}: {problem}", file.display());
    let certificates = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        false => Ok(roots),
        true => Err(wrong("there is no certificate in it".to_owned())),
    }
}

fn roots_of_host() -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    match roots.is_empty() {
        false => Ok(roots),
        true => {
            Err("sslmode=verify-full: this host has no root certificates; name a file of them \
                     with sslrootcert="
                .to_owned())
        }
    }
}

/// Takes any certificate: the connection is encrypted, and nobody knows with whom. That is what
/// these modes mean in every client of PostgreSQL.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _revocation: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
