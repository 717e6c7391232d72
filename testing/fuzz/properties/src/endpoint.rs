//! Webhook URLs. One that is taken is https to a name or a public address without credentials, fragment or port 0, means
//! the same when it is read again from the database and when the HTTP library reads it; and an address in any spelling
//! that old C libraries know is seen as the address.

use std::net::{IpAddr, Ipv4Addr};

use http::Uri;
use http_client::{EgressPolicy, Endpoint, check_endpoint};

use crate::address::is_public;

/// Checks the property.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    checked(text);
    // Most texts are not URLs, but any is a host, or a host and more.
    checked(&format!("https://{text}/hooks"));
}

fn checked(text: &str) {
    if let Err(error) = Endpoint::parse(text) {
        assert!(!error.to_string().is_empty());
        return;
    }
    match check_endpoint(text, &EgressPolicy::default()) {
        Ok(endpoint) => is_sound(text, &endpoint),
        Err(error) => {
            let said = error.to_string();
            let host = text.split("//").nth(1).unwrap_or_default();
            assert!(host.len() < 12 || !said.contains(host), "{said}");
        }
    }
}

fn is_sound(text: &str, endpoint: &Endpoint) {
    let url = endpoint.as_str();
    assert!(url.len() <= 2_048 && url.is_ascii() && !url.contains([' ', '\n', '\t', '#', '\0']));
    let rest = url.strip_prefix("https://").expect("only https is taken");
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    assert!(!authority.contains(['@', '\\']), "{url}");
    let again = check_endpoint(url, &EgressPolicy::default()).expect("what is stored is taken again");
    assert_eq!(again.as_str(), url);
    let uri: Uri = url.parse().expect("the HTTP library reads it");
    assert_eq!(uri.host(), Some(endpoint.host()), "{url}");
    assert_eq!(uri.port_u16().unwrap_or(443), endpoint.port(), "{url}");
    assert_ne!(endpoint.port(), 0);
    let host = endpoint.host().trim_start_matches('[').trim_end_matches(']');
    let name = host.trim_end_matches('.');
    if let Some(address) = address_of(name) {
        assert!(is_public(address), "{text}: {address}");
    }
    assert!(name != "localhost" && !name.ends_with(".localhost"), "{text}");
    assert!(!name.is_empty() && name.len() <= 253);
    let shown = format!("{endpoint:?}");
    let path = &rest[authority.len()..];
    assert!(path.len() < 8 || !shown.contains(path), "{shown}");
    if let Some(address) = raw_host(text).and_then(spelled) {
        assert_eq!(host.parse(), Ok(IpAddr::V4(address)), "{text}: {url}");
    }
}

fn address_of(name: &str) -> Option<IpAddr> {
    name.parse().ok().or_else(|| spelled(name).map(IpAddr::V4))
}

/// The host as it is written.
fn raw_host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest
        .trim_start_matches(['/', '\\'])
        .split(['/', '\\', '?', '#'])
        .next()?;
    let host = authority.rsplit('@').next()?;
    Some(host.split(':').next().unwrap_or(host))
}

/// What `inet_aton` reads: one to four numbers, decimal, octal or hexadecimal, the last of which fills what is left.
fn spelled(host: &str) -> Option<Ipv4Addr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let numbers = host.split('.').map(number).collect::<Option<Vec<u64>>>()?;
    let (last, first) = numbers.split_last()?;
    let bits = 8 * (4_u32.checked_sub(u32::try_from(first.len()).ok()?)?);
    if bits == 0 || *last >= 1 << bits || first.iter().any(|number| *number > 255) {
        return None;
    }
    let head = first.iter().fold(0, |sum, number| sum << 8 | number);
    let whole = u32::try_from(head.checked_shl(bits).unwrap_or(0) | last).ok()?;
    Some(Ipv4Addr::from_bits(whole))
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some("") => return Some(0),
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    valid.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
