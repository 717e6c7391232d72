//! What is taken for an endpoint, and what is said about the rest.

use domain::notification::FailureKind;
use http_client::{AddressKind, EgressPolicy, Endpoint, EndpointError, check_endpoint};

use super::{HERE, client, failure, policy, request, send, settings};
use crate::receiver::{Conduct, Receiver, answer};
use crate::swrve::LONG;

/// Literal hosts that must never be dialled. The own machine comes in every notation that the parser of URLs takes for an
/// address: decimal, octal, hexadecimal, shortened, escaped, in full-width digits and with other dots. Then "this
/// network", IPv4 inside IPv6, metadata services, private networks, and addresses for other uses.
const FORBIDDEN: &str = "
    127.0.0.1 127.255.255.254 2130706433 017700000001 0x7f000001 0x7F.0.0.1 0177.0.0.1 0177.0x0.0.01
    127.1 127.0.1 0x7f.1 127.0.0.1. 2130706433. %31%32%37.0.0.1 127%2e0%2e0%2e1 １２７.0.0.1 127。0。0。1
    [::1] [0:0:0:0:0:0:0:1] [::] 0 0.0.0.0 0.1.2.3 0x0 00000 [::ffff:127.0.0.1] [::ffff:7f00:1]
    [::FFFF:a9fe:a9fe] [::ffff:10.0.0.1] [::127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe]
    [64:ff9b:1::8.8.8.8] [2002:7f00:1::] [2002:a9fe:a9fe::1] [2002:808:808::1] [2001:0:4136:e378:8000:63bf:3fff:fdd2]
    169.254.169.254 2852039166 0xA9FEA9FE [fd00:ec2::254] 100.100.100.200 192.0.0.192 168.63.129.16
    10.0.0.1 10.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 [fc00::1] [fe80::1] [fec0::1]
    192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 [ff02::1]
    [2001:db8::1]";

#[tokio::test]
async fn forbidden_literals_are_refused_in_every_notation_before_and_at_delivery() {
    // A receiver listens, so that only the guard can be what keeps the requests away.
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let strict = http_client::WebhookClient::new(&settings(EgressPolicy::default())).unwrap();
    for host in FORBIDDEN.split_whitespace() {
        let url = format!("https://{host}:{}/", receiver.addr.port());
        let error = check_endpoint(&url, &EgressPolicy::default()).unwrap_err();
        // Not every odd notation is an address, but none is anything that passes.
        match Endpoint::parse(&url) {
            Err(_) => assert!(matches!(error, EndpointError::Syntax(_)), "{host}: {error:?}"),
            Ok(_) => {
                assert!(matches!(error, EndpointError::Address(_)), "{host}: {error:?}");
                let (kind, message) = failure(send(&strict, &url).await.outcome);
                assert_eq!(kind, FailureKind::Egress, "{host}: {message}");
            }
        }
    }
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn the_notations_of_the_own_machine_are_recognised_as_such() {
    let hosts = "
        2130706433 017700000001 0x7f000001 0177.0.0.1 127.1 127.0.0.1. %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1
        [::ffff:7f00:1] [64:ff9b::127.0.0.1] localhost LOCALHOST localhost. a.localhost";
    for host in hosts.split_whitespace() {
        assert_eq!(
            check_endpoint(&format!("https://{host}/"), &EgressPolicy::default()),
            Err(EndpointError::Address(AddressKind::Loopback)),
            "{host}"
        );
    }
}

#[test]
fn usual_endpoints_pass_and_are_normalised() {
    for (url, normal) in [
        ("https://hooks.example.com", "https://hooks.example.com/"),
        (
            "https://Hooks.Example.com:443/a?b=c",
            "https://hooks.example.com/a?b=c",
        ),
        (
            "https://hooks.example.com:8443/a/../b",
            "https://hooks.example.com:8443/b",
        ),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        (
            "https://a_b.example.com./{x}|y",
            "https://a_b.example.com./%7Bx%7D|y",
        ),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ] {
        let endpoint = check_endpoint(url, &EgressPolicy::default()).unwrap();
        assert_eq!(endpoint.as_str(), normal);
    }
}

#[test]
fn unfit_urls_are_refused_with_their_reason() {
    let long = format!("https://example.com/{}", "a".repeat(2_029));
    let escaped_long = format!("https://example.com/{}", "ü".repeat(1_000));
    let label = format!("https://{}.com/", "a".repeat(64));
    let name = format!("https://{}example.com/", "a234567890.".repeat(23));
    let error = |url: &str| check_endpoint(url, &EgressPolicy::default()).unwrap_err();
    for (url, wanted) in [
        (long.as_str(), EndpointError::TooLong),
        (escaped_long.as_str(), EndpointError::TooLong),
        ("https://exam\nple.com/", EndpointError::Whitespace),
        (" https://example.com/", EndpointError::Whitespace),
        ("https://example.com/a b", EndpointError::Whitespace),
        ("https://example.com/\0", EndpointError::Whitespace),
        ("ftp://example.com/", EndpointError::Scheme),
        ("file:///etc/passwd", EndpointError::Scheme),
        ("http://example.com/", EndpointError::PlainHttp),
        ("https://user@example.com/", EndpointError::Credentials),
        ("https://:secret@example.com/", EndpointError::Credentials),
        ("https://example.com/#a", EndpointError::Fragment),
        ("https://example.com/#", EndpointError::Fragment),
        ("https://example.com:0/", EndpointError::Port),
        ("https://a..example.com/", EndpointError::Name),
        (label.as_str(), EndpointError::Name),
        (name.as_str(), EndpointError::Name),
    ] {
        assert_eq!(error(url), wanted, "{url}");
    }
    for url in [
        "",
        "example.com",
        "/hooks",
        "https://",
        "https://exa%mple.com/",
        "https://[::1/",
        "https://1.2.3.4.5/",
    ] {
        assert!(matches!(error(url), EndpointError::Syntax(_)), "{url}");
    }
    assert!(check_endpoint(&long[..2_048], &EgressPolicy::default()).is_ok());
}

#[test]
fn reasons_show_nothing_of_the_url() {
    for url in [
        "http://example.com/token-9",
        "https://u:token-9@example.com/",
        "https://example.com/#token-9",
        "https://127.0.0.1/token-9",
        "token-9",
    ] {
        let error = check_endpoint(url, &EgressPolicy::default()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("token-9"));
    }
    let endpoint = Endpoint::parse("https://example.com/token-9?token-9").unwrap();
    assert!(!format!("{endpoint:?}").contains("token-9"));
}

#[test]
fn plain_http_is_an_endpoint_only_where_it_is_allowed() {
    let (open, closed) = (policy(&[HERE], true), policy(&[HERE], false));
    assert!(check_endpoint("http://127.0.0.1:8080/", &open).is_ok());
    assert!(check_endpoint("http://localhost:8080/", &open).is_ok());
    // What this name means is only known at delivery.
    assert!(check_endpoint("http://receiver.internal:8080/", &open).is_ok());
    let refused = |url, policy| check_endpoint(url, policy).unwrap_err();
    assert_eq!(refused("http://8.8.8.8:8080/", &open), EndpointError::PlainHttp);
    assert_eq!(
        refused("http://10.0.0.1:8080/", &open),
        EndpointError::Address(AddressKind::Private)
    );
    assert_eq!(
        refused("http://10.0.0.1/x", &open),
        EndpointError::Address(AddressKind::Private),
        "another port would not mend it"
    );
    assert_eq!(
        refused("http://127.0.0.1:8080/", &closed),
        EndpointError::PlainHttp
    );
    assert!(check_endpoint("https://127.0.0.1/", &closed).is_ok());
    assert_eq!(
        refused("http://receiver.internal/", &open),
        EndpointError::HttpPort,
        "no port was typed"
    );
    assert_eq!(
        refused("http://receiver.internal:81/", &open),
        EndpointError::PortNotAllowed(81)
    );
}

#[tokio::test]
async fn plain_http_is_sent_only_where_it_is_allowed() {
    let receiver = Receiver::start(Conduct::Answer(answer("200 OK", ""))).await;
    let url = super::url_of(receiver.addr);
    let no_http = http_client::WebhookClient::new(&settings(policy(&[HERE], false))).unwrap();
    let (kind, message) = failure(send(&no_http, &url).await.outcome);
    assert_eq!(
        (kind, message.as_str()),
        (
            FailureKind::Egress,
            "plain http is not delivered to this address; use https"
        )
    );
    assert_eq!(
        failure(send(&client(), "http://8.8.8.8/").await.outcome).0,
        FailureKind::Egress
    );
    assert_eq!(receiver.connections(), 0);
    assert_eq!(
        super::status(&client().send(request(&url, LONG)).await.outcome),
        200
    );
}
