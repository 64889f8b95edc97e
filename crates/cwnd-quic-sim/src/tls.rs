//! TLS 1.3 (rustls, ring) whose messages have the sizes of those of
//! [`handshake`](crate::handshake).

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{default_provider, sign};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, Signer, SigningKey, SingleCertAndKey};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, Error, RootCertStore, ServerConfig, SignatureAlgorithm, SignatureScheme,
};
use std::sync::Arc;

/// A P-256 key and its certificate for `localhost`, signed by itself. The key is no secret.
const CERTIFICATE: &[u8] = include_bytes!("tls/localhost.der");
const KEY: &[u8] = include_bytes!("tls/localhost.key.der");
const PROTOCOL: &[u8] = b"h3";
/// The most frequent size of a signature in bytes: it is 70 to 72.
const SIGNATURE: usize = 71;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(default_provider())
}

/// Returns the configuration of a client.
pub(crate) fn client() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE))?;
    let builder = ClientConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&TLS13])?.with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.enable_early_data = true;
    Ok(config)
}

/// Returns the configuration of a server.
pub(crate) fn server() -> Result<ServerConfig, Error> {
    let key = PrivateKeyDer::try_from(KEY).map_err(|problem| Error::General(problem.into()))?;
    let key = Arc::new(OfOneSize(sign::any_ecdsa_type(&key)?));
    let certified = CertifiedKey::new(vec![CertificateDer::from(CERTIFICATE)], key);
    let resolver: Arc<dyn ResolvesServerCert> = Arc::new(SingleCertAndKey::from(certified));
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_protocol_versions(&[&TLS13])?.with_no_client_auth();
    let mut config = builder.with_cert_resolver(resolver);
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.max_early_data_size = u32::MAX;
    Ok(config)
}

/// A key whose signatures have [`SIGNATURE`] bytes: others are made again.
#[derive(Debug)]
struct OfOneSize<T>(T);

impl SigningKey for OfOneSize<Arc<dyn SigningKey>> {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        Some(Box::new(OfOneSize(self.0.choose_scheme(offered)?)))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl Signer for OfOneSize<Box<dyn Signer>> {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        loop {
            let signature = self.0.sign(message)?;
            if signature.len() == SIGNATURE {
                return Ok(signature);
            }
        }
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}
