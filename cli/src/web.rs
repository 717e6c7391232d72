//! The HTTP client of the commands that talk to running services and to endpoints of resellers.

use std::net::IpAddr;
use std::sync::Once;
use std::time::Duration;

use anyhow::{Context as _, bail};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use uuid::Uuid;

use crate::output;
use crate::refusal::IDENTIFIER;

/// A client whose requests take no longer than `limit`. As Postrider itself it follows no redirects: what is handed in would go elsewhere.
pub(crate) fn client(limit: Duration) -> anyhow::Result<Client> {
    Client::builder()
        .timeout(limit)
        .redirect(Policy::none())
        // Mostly it talks to this machine, where a proxy for the outside would only be in the way.
        .no_proxy()
        .build()
        .context("failed to build an HTTP client")
}

/// The address of a service as it was given, without what it ends with too much.
pub(crate) fn address<'a>(name: &str, text: &'a str) -> anyhow::Result<&'a str> {
    let is_http = |url: Url| matches!(url.scheme(), "http" | "https");
    if !text.parse().is_ok_and(is_http) {
        bail!(
            "{name} {text:?} is no HTTP URL; write it with its scheme, such as https://portal.example or http://127.0.0.1:8081"
        );
    }
    Ok(text.trim_end_matches('/'))
}

/// An identifier, or the one at the end of the path or address at which a thing is looked up, such as `/push/ID`.
pub(crate) fn identifier(text: &str) -> Option<Uuid> {
    text.rsplit('/').next()?.parse().ok()
}

/// The same as an argument of commands that take it of more than one kind.
pub(crate) fn any_identifier(text: &str) -> Result<Uuid, &'static str> {
    identifier(text).ok_or(IDENTIFIER)
}

/// What is said once, however many callers a command has.
static TOLD: Once = Once::new();

/// Says that the API key goes to this address unencrypted, where it does.
pub(crate) fn note_what_is_in_the_clear(url: &str) {
    if let Some(host) = reached_in_the_clear(url) {
        TOLD.call_once(|| {
            output::note(format_args!(
                "note: the API key goes to {} unencrypted; write https:// where the way is not your own",
                output::harmless(&host)
            ));
        });
    }
}

/// Has nothing said of it: what a shell asks for must not stand in the line that is being typed.
pub(crate) fn say_nothing_of_what_is_in_the_clear() {
    TOLD.call_once(|| {});
}

/// The other machine that is spoken to without TLS.
fn reached_in_the_clear(url: &str) -> Option<String> {
    let url: Url = url.parse().ok()?;
    let host = url.host_str()?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    let is_here = host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback());
    (url.scheme() == "http" && !is_here).then(|| host.to_owned())
}

/// Sends a request to `url`, which names it in the error.
pub(crate) async fn send(request: RequestBuilder, url: &str) -> anyhow::Result<Response> {
    reach(request, url, "is it running?").await
}

/// The same of a service, where `address` names what its address comes from.
pub(crate) async fn send_to(request: RequestBuilder, url: &str, address: &str) -> anyhow::Result<Response> {
    let advice = format!("is it running? {address} sets its address");
    reach(request, url, &advice).await
}

async fn reach(request: RequestBuilder, url: &str, advice: &str) -> anyhow::Result<Response> {
    request
        .send()
        .await
        .map_err(reqwest::Error::without_url)
        .with_context(|| format!("failed to reach {url} ({advice})"))
}

/// What a part of a path may hold as it is. A dot is not among them: parts of dots alone would lead elsewhere.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// A path of these parts, whatever is in them.
pub(crate) fn path(parts: &[&str]) -> String {
    parts
        .iter()
        .map(|part| format!("/{}", utf8_percent_encode(part, PLAIN)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_also_the_end_of_a_path_or_an_address() {
        let id = "019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
        for before in ["", "/push/", "/events/", "http://127.0.0.1:8080/push/"] {
            let text = format!("{before}{id}");
            assert_eq!(
                any_identifier(&text).map(|id| id.to_string()).as_deref(),
                Ok(id),
                "{text}"
            );
        }
        for none in ["", "/push/", "/push/nonsense", "/push/019aa2f0"] {
            assert!(any_identifier(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn a_name_cannot_lead_to_another_path() {
        assert_eq!(path(&["resellers", "a/../b c"]), "/resellers/a%2F%2E%2E%2Fb%20c");
        assert_eq!(
            path(&["explain", "order/17?x=ä"]),
            "/explain/order%2F17%3Fx%3D%C3%A4"
        );
        assert_eq!(path(&[".."]), "/%2E%2E");
        assert_eq!(path(&["019aa2f0-5b1c"]), "/019aa2f0-5b1c");
    }

    #[test]
    fn http_to_another_machine_is_in_the_clear() {
        for (url, host) in [
            ("http://portal.example:8081/", Some("portal.example")),
            ("HTTP://10.0.0.7", Some("10.0.0.7")),
            ("http://[2001:db8::1]:8082", Some("[2001:db8::1]")),
            (
                "http://localhost.portal.example",
                Some("localhost.portal.example"),
            ),
            ("https://portal.example", None),
            ("http://127.0.0.1:8081", None),
            ("http://[::1]:8081", None),
            ("http://localhost:8081", None),
            ("portal", None),
        ] {
            assert_eq!(reached_in_the_clear(url).as_deref(), host, "{url}");
        }
    }
}
