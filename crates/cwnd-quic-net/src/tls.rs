//! The key of a receiver, and TLS with it.

use crate::{Error, refused};
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::{default_provider, sign};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, PeerIncompatible, ServerConfig,
    SignatureScheme,
};
use std::sync::Arc;

/// The key pair of a receiver (Ed25519).
#[derive(Clone, Debug)]
pub struct Identity {
    key: Arc<CertifiedKey>,
}

impl Identity {
    /// Makes a random key pair.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> Result<Self, Error> {
        let pair = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|_| refused("the system has no random numbers"))?;
        let private = PrivatePkcs8KeyDer::from(pair.as_ref());
        let key = sign::any_eddsa_type(&private).map_err(refused)?;
        let public = key.public_key().ok_or_else(|| refused("the key has no public part"))?;
        let public = CertificateDer::from(public.to_vec());
        Ok(Identity { key: Arc::new(CertifiedKey::new(vec![public], key)) })
    }

    /// Returns the configuration of the end that has the key.
    pub(crate) fn server(&self) -> Result<ServerConfig, Error> {
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(refused)?;
        let resolver = AlwaysResolvesServerRawPublicKeys::new(self.key.clone());
        Ok(builder.with_no_client_auth().with_cert_resolver(Arc::new(resolver)))
    }
}

/// Returns the configuration of an end that accepts a peer with the key of `identity` only, or with
/// any key.
pub(crate) fn client(identity: Option<&Identity>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(default_provider());
    let key = identity.map(|identity| identity.key.cert[0].clone());
    let verifier = Verifier { key, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(refused)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(builder.with_no_client_auth())
}

/// Returns the protocols of a stream: an end with credentials and one without have none in common.
pub(crate) fn protocols(with_credentials: bool) -> Vec<Vec<u8>> {
    vec![if with_credentials { b"cwnd-sealed".into() } else { b"cwnd".into() }]
}

/// Accepts one public key, or with `None` any.
#[derive(Debug)]
struct Verifier {
    key: Option<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.key.as_ref().is_none_or(|key| end_entity == key) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::UnknownIssuer.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(cert.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
