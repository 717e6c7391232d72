//! Names: what they mean is judged at each connection, and what was judged is what is dialled.

use domain::notification::FailureKind;
use http_client::NO_PUBLIC_ADDRESS;

use super::{HERE, Script, client_with_names, failure, send, status};
use crate::receiver::{Conduct, Receiver, answer};

async fn receiver() -> Receiver {
    Receiver::start(Conduct::Answer(answer("200 OK", ""))).await
}

fn url(receiver: &Receiver) -> String {
    format!("http://hooks.test:{}/", receiver.addr.port())
}

#[tokio::test]
async fn a_name_with_an_allowed_address_is_delivered_to() {
    let (receiver, names) = (receiver().await, Script::new(&[&[HERE]]));
    let client = client_with_names(&names);
    assert_eq!(status(&send(&client, &url(&receiver)).await.outcome), 200);
    assert!(receiver.requests()[0].contains(&format!("host: hooks.test:{}\r\n", receiver.addr.port())));
    assert_eq!(names.asked(), ["hooks.test"]);
}

#[tokio::test]
async fn one_forbidden_address_spoils_the_whole_answer() {
    let receiver = receiver().await;
    for answer in [
        [HERE, "10.0.0.1"],
        ["10.0.0.1", HERE],
        [HERE, "127.0.0.2"],
        [HERE, "::1"],
        [HERE, "169.254.169.254"],
        [HERE, "100.64.0.1"],
        [HERE, "::ffff:10.0.0.1"],
        [HERE, "64:ff9b::a00:1"],
        [HERE, "fe80::1"],
        [HERE, "0.0.0.0"],
    ] {
        let client = client_with_names(&Script::new(&[&answer]));
        let (kind, message) = failure(send(&client, &url(&receiver)).await.outcome);
        assert_eq!(kind, FailureKind::Egress, "{answer:?}: {message}");
        // The one who chose the name must not learn what it means here, nor whether it means anything.
        assert_eq!(message, NO_PUBLIC_ADDRESS, "{answer:?}");
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_mixed_answer_is_refused_for_https_as_well() {
    let receiver = receiver().await;
    let client = client_with_names(&Script::new(&[&["8.8.8.8", "192.168.1.1"]]));
    let url = url(&receiver).replace("http:", "https:");
    assert_eq!(failure(send(&client, &url).await.outcome).0, FailureKind::Egress);
}

#[tokio::test]
async fn plain_http_never_goes_to_a_public_address() {
    let receiver = receiver().await;
    for answer in [&["8.8.8.8"] as &[_], &[HERE, "8.8.8.8"]] {
        let client = client_with_names(&Script::new(&[answer]));
        let (kind, message) = failure(send(&client, &url(&receiver)).await.outcome);
        assert_eq!((kind, message.as_str()), (FailureKind::Egress, NO_PUBLIC_ADDRESS));
    }
    assert_eq!(receiver.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_after_it_was_judged_leads_to_the_judged_address() {
    // A client that looks the name up a second time for the dialling gets an address that nothing answers at.
    let (receiver, names) = (receiver().await, Script::new(&[&[HERE], &["10.255.255.1"]]));
    let client = client_with_names(&names);
    assert_eq!(status(&send(&client, &url(&receiver)).await.outcome), 200);
    assert_eq!(names.asked().len(), 1, "judging and dialling share one look-up");
    // The connection that was opened stays good; it leads where it led.
    assert_eq!(status(&send(&client, &url(&receiver)).await.outcome), 200);
    assert_eq!((names.asked().len(), receiver.connections()), (1, 1));
    // A new one is judged again.
    let fresh = client_with_names(&Script::new(&[&["10.255.255.1"]]));
    assert_eq!(
        failure(send(&fresh, &url(&receiver)).await.outcome).0,
        FailureKind::Egress
    );
}

#[tokio::test]
async fn each_new_connection_is_judged_again() {
    let closing = answer("200 OK\r\nConnection: close", "");
    let receiver = Receiver::start(Conduct::AnswerAndClose(closing)).await;
    let names = Script::new(&[&[HERE], &[HERE], &["127.0.0.2"]]);
    let client = client_with_names(&names);
    assert_eq!(status(&send(&client, &url(&receiver)).await.outcome), 200);
    assert_eq!(status(&send(&client, &url(&receiver)).await.outcome), 200);
    assert_eq!(
        failure(send(&client, &url(&receiver)).await.outcome).0,
        FailureKind::Egress
    );
    assert_eq!(receiver.connections(), 2);
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failure_of_dns() {
    let receiver = receiver().await;
    for names in [Script::new(&[]), Script::new(&[&[]])] {
        let (kind, message) = failure(send(&client_with_names(&names), &url(&receiver)).await.outcome);
        assert_eq!((kind, message.as_str()), (FailureKind::Dns, NO_PUBLIC_ADDRESS));
    }
}
