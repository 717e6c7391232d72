//! Certificates that are good, and handshakes that are not.

use std::sync::Arc;

use domain::notification::FailureKind;
use http_client::{NameResolver, WebhookClient, WebhookError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};
use tokio_rustls::TlsAcceptor;

use super::{HERE, Script, failure, policy, request, send, settings, status};
use crate::receiver::{Conduct, Receiver, answer};
use crate::swrve::LONG;

/// A certificate authority of one test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for `name` and its key.
    fn issue(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }

    /// A server that shows a certificate of this authority for `name`.
    fn acceptor(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let (certificate, key) = self.issue(name, change);
        let config = server_config()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// The same for `hooks.test`, for a server that wants to see a certificate of the client as well.
    fn mutual_acceptor(&self) -> TlsAcceptor {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .unwrap();
        let (certificate, key) = self.issue("hooks.test", |_| ());
        let config = server_config()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    /// A client that trusts it, and for which every name is here.
    fn client(&self) -> WebhookClient {
        builder().trust(self.0.der().to_vec()).build().unwrap()
    }
}

fn server_config() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
}

fn builder() -> http_client::WebhookClientBuilder {
    let names = Script::new(&[&[HERE]]) as Arc<dyn NameResolver>;
    WebhookClient::builder(&settings(policy(&[HERE], false))).resolver(names)
}

async fn receiver(acceptor: TlsAcceptor) -> Receiver {
    Receiver::start_tls(Conduct::Answer(answer("200 OK", "secure")), acceptor).await
}

fn url(receiver: &Receiver, host: &str) -> String {
    format!("https://{host}:{}/", receiver.addr.port())
}

/// The failure of an attempt that must not have got as far as a request.
async fn tls_failure(client: &WebhookClient, receiver: &Receiver) -> String {
    let (kind, message) = failure(send(client, &url(receiver, "hooks.test")).await.outcome);
    assert_eq!(kind, FailureKind::Tls, "{message}");
    assert_eq!(receiver.requests().len(), 0);
    message
}

#[tokio::test]
async fn a_trusted_certificate_for_the_name_is_good_and_the_session_is_used_again() {
    let authority = Authority::new();
    let receiver = receiver(authority.acceptor("hooks.test", |_| ())).await;
    let client = authority.client();
    for _ in 0..3 {
        assert_eq!(
            status(&send(&client, &url(&receiver, "hooks.test")).await.outcome),
            200
        );
    }
    assert_eq!((receiver.requests().len(), receiver.connections()), (3, 1));
}

#[tokio::test]
async fn a_certificate_for_an_address_is_good_for_the_address() {
    let authority = Authority::new();
    let receiver = receiver(authority.acceptor(HERE, |_| ())).await;
    let client = authority.client();
    assert_eq!(status(&send(&client, &url(&receiver, HERE)).await.outcome), 200);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_a_failure_of_tls() {
    let authority = Authority::new();
    let receiver = receiver(authority.acceptor("other.test", |_| ())).await;
    let message = tls_failure(&authority.client(), &receiver).await;
    assert!(message.contains("hooks.test"), "{message}");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_a_failure_of_tls() {
    let receiver = receiver(Authority::new().acceptor("hooks.test", |_| ())).await;
    tls_failure(&Authority::new().client(), &receiver).await;
    tls_failure(&builder().build().unwrap(), &receiver).await;
}

#[tokio::test]
async fn an_expired_certificate_is_a_failure_of_tls() {
    let authority = Authority::new();
    let expired = authority.acceptor("hooks.test", |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    tls_failure(&authority.client(), &receiver(expired).await).await;
}

#[tokio::test]
async fn a_receiver_that_wants_our_certificate_is_a_failure_of_tls() {
    // Its refusal comes after our side of the handshake is done, with the request already on its way.
    let authority = Authority::new();
    let receiver = receiver(authority.mutual_acceptor()).await;
    let message = tls_failure(&authority.client(), &receiver).await;
    assert!(message.contains("CertificateRequired"), "{message}");
}

#[tokio::test]
async fn plain_text_on_the_tls_port_is_a_failure_of_tls() {
    let plain = Receiver::start(Conduct::AnswerAndClose(answer("400 Bad Request", ""))).await;
    // The receiver sees no request in a client's hello, so it must speak first to be heard.
    let greeting = greeting(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let client = builder().build().unwrap();
    let (kind, message) = failure(
        send(&client, &format!("https://hooks.test:{greeting}/"))
            .await
            .outcome,
    );
    assert_eq!(kind, FailureKind::Tls, "{message}");
    let silent = client.send(request(&url(&plain, "hooks.test"), LONG)).await;
    assert_eq!(failure(silent.outcome).0, FailureKind::Tls);
}

#[tokio::test]
async fn a_connection_lost_in_the_handshake_is_a_failure_of_tls() {
    let port = greeting(b"").await;
    let client = builder().build().unwrap();
    let (kind, message) = failure(
        send(&client, &format!("https://hooks.test:{port}/"))
            .await
            .outcome,
    );
    assert_eq!(kind, FailureKind::Tls, "{message}");
    assert!(message.starts_with("the TLS handshake failed: "), "{message}");
}

/// The port of a server that says this to every client, and closes the connection.
async fn greeting(bytes: &'static [u8]) -> u16 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Read first: closing a connection with unread bytes resets it.
        let _ = stream.read(&mut [0; 4_096]).await;
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    port
}

#[test]
fn an_extra_root_must_be_a_certificate() {
    let error = builder().trust(b"no certificate".to_vec()).build().unwrap_err();
    assert!(
        matches!(error, WebhookError::TrustRoot(_) | WebhookError::Client(_)),
        "{error:?}"
    );
}
