//! A reseller's URL, taken apart and checked once. Names are not resolved here: what a name means can change at any
//! time, so it is judged whenever a connection is opened.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::Uri;
use url::{Host, ParseError, Url};

use super::address::AddressKind;
use super::policy::{EgressPolicy, Refusal, Transport};

/// What DNS allows in a name, and between two of its dots.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Where notifications are sent to: an https or http URL without user, password and fragment. Cloning it is cheap.
///
/// Its `Debug` shows the host alone: paths and queries of such URLs often hold tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(Arc<Parts>);

#[derive(PartialEq, Eq)]
struct Parts {
    url: Url,
    transport: Transport,
    /// The address, when the host is one: in whatever notation, the parser has it normalised.
    literal: Option<IpAddr>,
}

/// Why a URL cannot be an endpoint, and what to do about it. Never shows the URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// Too long.
    #[error("the URL has more than 2048 characters; use a shorter one")]
    TooLong,
    /// Parsers differ in what they make of these.
    #[error("the URL has spaces, line breaks or control characters in it; remove or percent-encode them")]
    Whitespace,
    /// No URL at all.
    #[error("this is not a complete URL ({0}); give one like https://hooks.example.com/postrider")]
    Syntax(ParseError),
    /// Another scheme than https and http.
    #[error("the URL must begin with https://")]
    Scheme,
    /// Plain http where it is not allowed.
    #[error("the URL begins with http://, which is not secure; use https://")]
    PlainHttp,
    /// A user name or a password.
    #[error(
        "the URL holds a user name or password; remove it, and verify the signature of each request instead"
    )]
    Credentials,
    /// A fragment, which is never sent.
    #[error("the URL has a fragment (#), which would never be sent; remove it")]
    Fragment,
    /// Port 0 cannot be dialled.
    #[error("the URL has port 0; use the port that your server listens on")]
    Port,
    /// A port of another service than HTTP.
    #[error(
        "the URL has a port that is not delivered to; use 443, or another one that the operator has opened"
    )]
    PortNotAllowed(u16),
    /// The same of a URL that names no port: it is the scheme that has it.
    #[error(
        "the URL begins with http://, whose port 80 is not delivered to; use https://, or name a port that the operator has opened"
    )]
    HttpPort,
    /// Characters that HTTP has no place for.
    #[error("the URL has characters that HTTP does not allow; percent-encode them")]
    Characters,
    /// A host name that DNS cannot know.
    #[error("the URL's host is not a valid DNS name; check it for empty or overlong parts")]
    Name,
    /// An address that the operator keeps closed.
    #[error("the URL points to an address that is not delivered to")]
    Denied,
    /// An address that is not public.
    #[error("the URL points to {0}; use a host that is reachable from the internet")]
    Address(AddressKind),
}

/// Parses `url` and checks everything about it that can be known without resolving its name.
pub fn check_endpoint(url: &str, policy: &EgressPolicy) -> Result<Endpoint, EndpointError> {
    let endpoint = Endpoint::parse(url)?;
    endpoint.check(policy)?;
    Ok(endpoint)
}

impl Endpoint {
    /// Longer URLs are refused: some receivers and most log formats cut them.
    pub const MAX_LENGTH: usize = 2_048;

    /// Takes `url` apart, without regard to a policy.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        if url.len() > Self::MAX_LENGTH {
            return Err(EndpointError::TooLong);
        }
        // The parser would drop some of these silently and take the rest for part of the URL.
        if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(EndpointError::Whitespace);
        }
        let url = Url::parse(url).map_err(EndpointError::Syntax)?;
        let transport = match url.scheme() {
            "https" => Transport::Tls,
            "http" => Transport::Plain,
            _ => return Err(EndpointError::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EndpointError::Credentials);
        }
        if url.fragment().is_some() {
            return Err(EndpointError::Fragment);
        }
        if url.port() == Some(0) {
            return Err(EndpointError::Port);
        }
        // Normalising can make it longer.
        if url.as_str().len() > Self::MAX_LENGTH {
            return Err(EndpointError::TooLong);
        }
        let literal = literal_of(&url)?;
        // The HTTP client takes the URL in this form, and is stricter than the parser.
        if url.as_str().parse::<Uri>().is_err() {
            return Err(EndpointError::Characters);
        }
        Ok(Self(Arc::new(Parts {
            url,
            transport,
            literal,
        })))
    }

    /// Checks against `policy` what can be known without resolving the name.
    pub fn check(&self, policy: &EgressPolicy) -> Result<(), EndpointError> {
        if self.0.transport == Transport::Plain && !policy.allow_http {
            return Err(EndpointError::PlainHttp);
        }
        // An address that nothing is delivered to first: another port would not mend it.
        if let Some(address) = self.known_address() {
            policy
                .check_for(self.0.transport, address)
                .map_err(|refusal| match refusal {
                    Refusal::NotPublic(kind) => EndpointError::Address(kind),
                    Refusal::Denied => EndpointError::Denied,
                    Refusal::Port => EndpointError::PortNotAllowed(self.port()),
                    Refusal::PlainHttp => EndpointError::PlainHttp,
                })?;
        }
        if policy.check_port(self.port()).is_err() {
            let is_of_http = self.0.transport == Transport::Plain && self.0.url.port().is_none();
            return Err(if is_of_http {
                EndpointError::HttpPort
            } else {
                EndpointError::PortNotAllowed(self.port())
            });
        }
        Ok(())
    }

    /// The address that it leads to, when that needs no look-up.
    pub(super) fn known_address(&self) -> Option<IpAddr> {
        match self.0.literal {
            None if self.is_localhost() => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            literal => literal,
        }
    }

    /// The registered domain that the host belongs to, as far as that shows without a list of all
    /// registries: its last two parts, or three under suffixes such as co.uk. An address is its own.
    pub fn site(&self) -> String {
        let host = self.host().trim_end_matches('.');
        if self.0.literal.is_some() {
            return host.to_owned();
        }
        let mut labels: Vec<&str> = host.rsplit('.').take(3).collect();
        let is_national = labels.first().is_some_and(|top| top.len() == 2);
        if !(is_national && labels.get(1).is_some_and(|second| second.len() <= 3)) {
            labels.truncate(2);
        }
        labels.reverse();
        labels.join(".")
    }

    /// The normalised URL.
    pub fn as_str(&self) -> &str {
        self.0.url.as_str()
    }

    /// The host, without the port; an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        self.0.url.host_str().unwrap_or_default()
    }

    /// The port, also when it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.0.url.port_or_known_default().unwrap_or_default()
    }

    pub(super) fn url(&self) -> &Url {
        &self.0.url
    }

    pub(super) fn transport(&self) -> Transport {
        self.0.transport
    }

    pub(super) fn literal(&self) -> Option<IpAddr> {
        self.0.literal
    }

    /// Names that mean the own machine whatever DNS says (RFC 6761).
    fn is_localhost(&self) -> bool {
        let host = self.host().trim_end_matches('.');
        host == "localhost" || host.ends_with(".localhost")
    }
}

/// Whether the host of a URL is a name, so that what it means is ours to keep. What is no URL counts as one.
pub fn is_of_name(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host);
    !matches!(host, Some(Host::Ipv4(_) | Host::Ipv6(_)))
}

/// The host if it is an address; an error if it is neither an address nor a possible name.
fn literal_of(url: &Url) -> Result<Option<IpAddr>, EndpointError> {
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(Some(address.into())),
        Some(Host::Ipv6(address)) => return Ok(Some(address.into())),
        Some(Host::Domain(name)) => name,
        None => return Err(EndpointError::Syntax(ParseError::EmptyHost)),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    let labels_fit = name
        .split('.')
        .all(|label| (1..=MAX_LABEL).contains(&label.len()));
    if !labels_fit || name.len() > MAX_NAME {
        return Err(EndpointError::Name);
    }
    Ok(None)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("host", &self.host())
            .finish_non_exhaustive()
    }
}
