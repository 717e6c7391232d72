//! What an IP address is for, as far as it matters to a client that is asked to dial it. It allows and forbids nothing: that
//! is the policy's part.
//!
//! IPv4 is judged by the list of special networks (IANA's registry and a few that it lacks). IPv6 is judged the other
//! way round: only global unicast is public, so that whatever is assigned in future is refused until a maintainer looks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kinds of addresses that are told apart. The words that strum gives are for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum AddressKind {
    /// An address that anybody on the internet can be reached at.
    Public,
    /// `0.0.0.0/8` and `::`: "this network", which many systems take for the own machine.
    Unspecified,
    /// The own machine.
    Loopback,
    /// A network of one organisation (RFC 1918, RFC 4193, site-local).
    Private,
    /// Shared by a carrier's customers (RFC 6598). Some clouds have their metadata service in it.
    CarrierShared,
    /// The own link, with the metadata services of most clouds in it.
    LinkLocal,
    /// An address of a cloud's own services to its machines, public by number alone.
    CloudPlatform,
    /// Only for texts.
    Documentation,
    /// Only for measurements in laboratories.
    Benchmarking,
    /// More than one receiver, broadcast included.
    Multicast,
    /// A tunnel or a translation to an address that cannot be told or is not public.
    Translated,
    /// For protocols or for the future.
    Reserved,
}

impl AddressKind {
    /// The kind of `address`. An IPv4 address inside an IPv6 one (mapped, NAT64) is what counts.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::CarrierShared,
        [169, 254, ..] => AddressKind::LinkLocal,
        // Azure's "WireServer": DNS, metadata and health of every virtual machine there.
        [168, 63, 129, 16] => AddressKind::CloudPlatform,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressKind::Documentation,
        [198, 18..=19, ..] => AddressKind::Benchmarking,
        [224..=239, ..] | [255, 255, 255, 255] => AddressKind::Multicast,
        // Protocol assignments, the relays of 6to4, and the former class E.
        [192, 0, 0, _] | [192, 88, 99, _] | [240..=255, ..] => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    if let Some(mapped) = address.to_ipv4_mapped() {
        return of_v4(mapped);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // The well-known prefix of NAT64 (RFC 6052): what DNS64 answers with, so public ones must work.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        // 6to4, whose relays RFC 7526 has retired: it leads to the router with the embedded address, and to whatever is behind that.
        [0x2002, ..] => AddressKind::Translated,
        // Local NAT64 (RFC 8215), where the embedded address has no fixed place.
        [0x64, 0xff9b, 1, ..] => AddressKind::Translated,
        // Teredo.
        [0x2001, 0, ..] => AddressKind::Translated,
        [0x2001, 2, 0, ..] => AddressKind::Benchmarking,
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressKind::Documentation,
        // The rest of the protocol assignments, 2001::/23.
        [0x2001, 0..=0x01ff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        // fc00::/7, fd00:ec2::254 (metadata) included, and fec0::/10, the former site-local.
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        _ => AddressKind::Reserved,
    }
}

/// The kind of an address that only leads to the IPv4 address in it.
fn embedded(high: u16, low: u16) -> AddressKind {
    of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::CarrierShared => "a carrier's shared address",
            Self::LinkLocal => "a link-local address",
            Self::CloudPlatform => "an address of the cloud platform",
            Self::Documentation => "a documentation address",
            Self::Benchmarking => "a benchmarking address",
            Self::Multicast => "a multicast or broadcast address",
            Self::Translated => "an address behind a translation",
            Self::Reserved => "a reserved address",
        })
    }
}
