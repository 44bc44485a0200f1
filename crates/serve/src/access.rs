//! Who may: bearer tokens, and connections that are encrypted.

use crate::endpoint::EndpointKind;
use crate::error::{Error, StartError};
use http::HeaderMap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Fewer bytes can be guessed.
const SHORTEST: usize = 16;

/// Tokens that clients may have.
pub(crate) struct Tokens(Vec<Vec<u8>>);

impl Tokens {
    /// Reads them from a file, one a line; lines that begin with `#` are notes.
    ///
    /// # Errors
    /// [`StartError::File`]; [`StartError::Content`]: there is none, or one is too short.
    pub(crate) fn read(path: &Path) -> Result<Self, StartError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| StartError::File { path: path.to_owned(), source })?;
        let lines =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let tokens: Vec<Vec<u8>> = lines.map(|line| line.as_bytes().to_vec()).collect();
        let refuse = |what: String| StartError::Content { path: path.to_owned(), what };
        if tokens.is_empty() {
            return Err(refuse("there is no token".into()));
        }
        if let Some(short) = tokens.iter().find(|token| token.len() < SHORTEST) {
            let found = short.len();
            return Err(refuse(format!("a token of {found} bytes, at least {SHORTEST}")));
        }
        Ok(Self(tokens))
    }

    /// Whether a request for this path may go on. Whoever looks at the health of the server needs no token, and
    /// neither does the page, which asks for one.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`]
    pub(crate) fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Error> {
        let is_open = matches!(
            path,
            "/" | "/page.js"
                | "/page.css"
                | "/v2/health/live"
                | "/v2/health/ready"
                | "/inference.GRPCInferenceService/ServerLive"
                | "/inference.GRPCInferenceService/ServerReady"
                | "/grpc.health.v1.Health/Check"
                | "/grpc.health.v1.Health/Watch"
        );
        if is_open {
            return Ok(());
        }
        let given = headers.get(http::header::AUTHORIZATION).map(http::HeaderValue::as_bytes);
        let given = given.ok_or(Error::Unauthenticated("there is none"))?;
        let token = match given.split_at_checked(7) {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => token.trim_ascii(),
            _ => return Err(Error::Unauthenticated("it is of another kind")),
        };
        // All are compared, each in the time that its length takes.
        let known = self.0.iter().fold(0, |known, it| known | it.ct_eq(token).unwrap_u8());
        if known == 1 { Ok(()) } else { Err(Error::Unauthenticated("it is not known")) }
    }
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Tls {
    http: TlsAcceptor,
    grpc: TlsAcceptor,
}

impl Tls {
    /// Reads a certificate chain and its key, as PEM.
    ///
    /// # Errors
    /// [`StartError::Content`]
    pub(crate) fn read(chain: &Path, key: &Path) -> Result<Self, StartError> {
        let refuse =
            |path: &Path, what: String| StartError::Content { path: path.to_owned(), what };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(chain)
            .map_err(|error| refuse(chain, error.to_string()))?
            .collect();
        let certificates = certificates.map_err(|error| refuse(chain, error.to_string()))?;
        let private =
            PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(key, error.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let acceptor = |protocol: &[u8]| -> Result<TlsAcceptor, StartError> {
            let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
                .with_safe_default_protocol_versions()
                .map_err(|error| refuse(chain, error.to_string()))?
                .with_no_client_auth()
                .with_single_cert(certificates.clone(), private.clone_key());
            let mut config = config.map_err(|error| refuse(chain, error.to_string()))?;
            config.alpn_protocols = vec![protocol.to_vec()];
            Ok(TlsAcceptor::from(Arc::new(config)))
        };
        Ok(Self { http: acceptor(b"http/1.1")?, grpc: acceptor(b"h2")? })
    }

    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        kind: EndpointKind,
        stream: S,
    ) -> std::io::Result<TlsStream<S>> {
        match kind {
            EndpointKind::Http => self.http.accept(stream).await,
            EndpointKind::Grpc => self.grpc.accept(stream).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Tokens, StartError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        std::fs::write(&path, text).unwrap();
        Tokens::read(&path)
    }

    #[test]
    fn only_known_tokens_open() {
        let tokens = tokens("# ours\n0123456789abcdef\nfedcba9876543210\n").unwrap();
        let check = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", value.parse().unwrap());
            tokens.check("/v2", &headers)
        };
        assert!(check("Bearer fedcba9876543210").is_ok());
        assert!(check("bearer 0123456789abcdef").is_ok());
        for wrong in
            ["Bearer 0123456789abcde", "Bearer ", "0123456789abcdef", "Basic 0123456789abcdef"]
        {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        assert!(tokens.check("/v2", &HeaderMap::new()).is_err());
        assert!(tokens.check("/v2/health/live", &HeaderMap::new()).is_ok());
    }

    #[test]
    fn tokens_that_can_be_guessed_are_refused() {
        assert!(tokens("").is_err());
        assert!(tokens("secret\n").is_err());
    }
}
