//! The system's resolver, as far as it can be tested without a network.

use domain::notification::FailureKind;
use http_client::{LookupError, NO_PUBLIC_ADDRESS, NameResolver, SystemResolver, WebhookClient};

use super::{HERE, failure, policy, send, settings, status};
use crate::receiver::{Conduct, Receiver, answer};

#[tokio::test]
async fn a_name_that_cannot_exist_is_a_failure_of_dns() {
    let client = super::client();
    let (kind, message) = failure(send(&client, "https://no-such-host.invalid/").await.outcome);
    assert_eq!((kind, message.as_str()), (FailureKind::Dns, NO_PUBLIC_ADDRESS));
}

#[tokio::test]
async fn names_that_break_the_rules_of_dns_are_errors() {
    let resolver = SystemResolver::new().unwrap();
    let name = format!("{}.test", "a".repeat(64));
    assert!(matches!(
        resolver.addresses(&name).await,
        Err(LookupError::Name(_))
    ));
}

#[tokio::test]
async fn localhost_is_subject_to_the_same_rule() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let url = format!("http://localhost:{}/", receiver.addr.port());
    for (allowed, wanted) in [
        (&[] as &[_], None),
        // It has two addresses, and each must be allowed.
        (&[HERE], None),
        (&[HERE, "::1"], Some(200)),
    ] {
        let client = WebhookClient::new(&settings(policy(allowed, true))).unwrap();
        let outcome = send(&client, &url).await.outcome;
        match wanted {
            Some(wanted) => assert_eq!(status(&outcome), wanted),
            None => assert_eq!(failure(outcome).0, FailureKind::Egress, "{allowed:?}"),
        }
    }
    assert_eq!(receiver.connections(), 1);
}

#[test]
fn a_client_can_be_made_before_there_is_a_runtime() {
    WebhookClient::new(&settings(policy(&[], false))).unwrap();
}
