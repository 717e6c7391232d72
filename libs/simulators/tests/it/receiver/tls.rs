//! The receiver as an HTTPS server.

use std::path::PathBuf;

use reqwest::{Certificate, Client};
use simulators::receiver::{Options, TlsError, load_tls};
use tempfile::TempDir;

use crate::receiver::{PATIENCE, Rig};

struct Files {
    folder: TempDir,
    certificate: String,
}

impl Files {
    /// A certificate for this machine that only the test trusts, and its key.
    fn make() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
            certificate: made.cert.pem(),
        };
        std::fs::write(files.path("certificate.pem"), &files.certificate).unwrap();
        std::fs::write(files.path("key.pem"), made.signing_key.serialize_pem()).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

#[tokio::test]
async fn notifications_arrive_over_tls() {
    let files = Files::make();
    let options = Options {
        tls: Some(load_tls(&files.path("certificate.pem"), &files.path("key.pem")).unwrap()),
        ..Options::default()
    };
    let rig = Rig::start(options).await;
    assert!(rig.running.url("/hook").starts_with("https://127.0.0.1:"));
    let untrusting = rig.post("/hook", "1", "domain.created").send().await;
    assert!(untrusting.is_err());
    let trusted = Certificate::from_pem(files.certificate.as_bytes()).unwrap();
    let client = Client::builder()
        .no_proxy()
        .timeout(PATIENCE)
        .tls_certs_only([trusted])
        .build()
        .unwrap();
    let url = rig.running.url("/hook");
    let response = client
        .post(url)
        .body(crate::receiver::body("1", "domain.created"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let report = rig.running.report();
    assert_eq!((report.received, report.connections), (1, 2));
}

#[test]
fn unusable_files_are_named() {
    let files = Files::make();
    let (certificate, key) = (files.path("certificate.pem"), files.path("key.pem"));
    let missing = load_tls(&files.path("none.pem"), &key).unwrap_err();
    assert!(matches!(missing, TlsError::File { .. }) && missing.to_string().contains("none.pem"));
    assert!(matches!(load_tls(&key, &key), Err(TlsError::NoCertificate(_))));
    assert!(matches!(
        load_tls(&certificate, &certificate),
        Err(TlsError::File { .. })
    ));
    let other = Files::make();
    assert!(matches!(
        load_tls(&certificate, &other.path("key.pem")),
        Err(TlsError::Unusable(_))
    ));
}
