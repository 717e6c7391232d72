//! Which addresses are public, against the registries of special networks, written down here as networks.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use http_client::{AddressKind, EgressPolicy};
use ipnet::{Ipv4Net, Ipv6Net};

/// IANA's registry of special IPv4 networks and multicast, without those that are marked as globally reachable; and the
/// platform address of a cloud.
const SPECIAL_V4: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 \
    192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 \
    168.63.129.16/32";
/// The same of IPv6 within global unicast, 2000::/3.
const SPECIAL_V6: &str = "2001::/23 2001:db8::/32 2002::/16 3fff::/20";

static V4: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| networks(SPECIAL_V4));
static V6: LazyLock<Vec<Ipv6Net>> = LazyLock::new(|| networks(SPECIAL_V6));

fn networks<T: std::str::FromStr>(list: &str) -> Vec<T> {
    let parse = |text: &str| text.parse().ok();
    list.split_whitespace()
        .map(|text| parse(text).expect("invariant: it is a network"))
        .collect()
}

/// Checks the property: of 4 bytes as IPv4, of 16 as IPv6, and of the 4 in everything that embeds them.
pub fn check(input: &[u8]) {
    if let Some(address) = input.first_chunk::<16>() {
        checked(Ipv6Addr::from(*address).into());
    }
    if let Some(octets) = input.first_chunk::<4>() {
        let v4 = Ipv4Addr::from(*octets);
        checked(v4.into());
        let [high, low] = [0, 2].map(|at| u16::from_be_bytes([octets[at], octets[at + 1]]));
        for embedding in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
        ] {
            checked(embedding.into());
        }
    }
}

fn checked(address: IpAddr) {
    let public = AddressKind::of(address) == AddressKind::Public;
    assert_eq!(public, is_public(address), "{address}");
    assert_eq!(
        EgressPolicy::default().check(address).is_ok(),
        public,
        "{address}"
    );
}

/// The same by networks.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            let within = |network: &str| {
                network
                    .parse()
                    .is_ok_and(|network: Ipv6Net| network.contains(&address))
            };
            if within("::ffff:0:0/96") || within("64:ff9b::/96") {
                let four = address.octets()[12..].try_into().map(u32::from_be_bytes);
                is_public(Ipv4Addr::from_bits(four.expect("invariant: four octets")).into())
            } else {
                within("2000::/3") && !V6.iter().any(|network| network.contains(&address))
            }
        }
    }
}
