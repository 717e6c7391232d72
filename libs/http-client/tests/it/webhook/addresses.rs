//! Which addresses are public, and what an allow-list changes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http_client::{AddressKind, EgressPolicy, Endpoint, EndpointError, Refusal, check_endpoint};
use proptest::prelude::{any, proptest};
use proptest::{prop_assert, prop_assert_eq};

/// Every special network with its kind, written down a second time and differently: the judge matches octets.
const SPECIAL: [(&str, AddressKind); 18] = [
    ("0.0.0.0/8", AddressKind::Unspecified),
    ("10.0.0.0/8", AddressKind::Private),
    ("100.64.0.0/10", AddressKind::CarrierShared),
    ("127.0.0.0/8", AddressKind::Loopback),
    ("168.63.129.16/32", AddressKind::CloudPlatform),
    ("169.254.0.0/16", AddressKind::LinkLocal),
    ("172.16.0.0/12", AddressKind::Private),
    ("192.0.0.0/24", AddressKind::Reserved),
    ("192.0.2.0/24", AddressKind::Documentation),
    ("192.88.99.0/24", AddressKind::Reserved),
    ("192.168.0.0/16", AddressKind::Private),
    ("198.18.0.0/15", AddressKind::Benchmarking),
    ("198.51.100.0/24", AddressKind::Documentation),
    ("203.0.113.0/24", AddressKind::Documentation),
    ("224.0.0.0/4", AddressKind::Multicast),
    ("255.255.255.255/32", AddressKind::Multicast),
    ("240.0.0.0/4", AddressKind::Reserved),
    ("0.0.0.0/0", AddressKind::Public),
];

fn kind(text: &str) -> AddressKind {
    AddressKind::of(text.parse().unwrap())
}

fn expected(address: Ipv4Addr) -> AddressKind {
    SPECIAL
        .into_iter()
        .find(|(network, _)| network.parse::<ipnet::Ipv4Net>().unwrap().contains(&address))
        .unwrap()
        .1
}

/// `address` in the last 32 bits behind `prefix`.
fn behind(prefix: &str, address: Ipv4Addr) -> IpAddr {
    let prefix: Ipv6Addr = prefix.parse().unwrap();
    Ipv6Addr::from_bits(prefix.to_bits() | u128::from(address.to_bits())).into()
}

fn six_to_four(address: Ipv4Addr, rest: u128) -> IpAddr {
    let high = 0x2002_u128 << 112 | u128::from(address.to_bits()) << 80;
    Ipv6Addr::from_bits(high | rest & ((1 << 80) - 1)).into()
}

/// Random addresses rarely hit small networks, so every special one is visited as often as the rest.
fn somewhere(bits: u32, network: usize) -> Ipv4Addr {
    let network: ipnet::Ipv4Net = SPECIAL[network % SPECIAL.len()].0.parse().unwrap();
    Ipv4Addr::from_bits(network.network().to_bits() | bits & network.hostmask().to_bits())
}

proptest! {
    #[test]
    fn ipv4_is_judged_by_the_list_of_special_networks(bits in any::<u32>(), network in any::<usize>()) {
        let address = somewhere(bits, network);
        prop_assert_eq!(AddressKind::of(address.into()), expected(address));
    }

    #[test]
    fn an_embedded_ipv4_address_is_what_counts(
        bits in any::<u32>(), network in any::<usize>(), rest in any::<u128>(),
    ) {
        let address = somewhere(bits, network);
        let kind = AddressKind::of(address.into());
        prop_assert_eq!(AddressKind::of(behind("::ffff:0:0", address)), kind);
        prop_assert_eq!(AddressKind::of(behind("64:ff9b::", address)), kind);
        // Nowhere else does an embedded address make anything public.
        prop_assert!(AddressKind::of(behind("::", address)) != AddressKind::Public);
        prop_assert!(AddressKind::of(behind("64:ff9b:1::", address)) != AddressKind::Public);
        prop_assert!(AddressKind::of(six_to_four(address, rest)) != AddressKind::Public);
        prop_assert!(AddressKind::of(behind("2001::", address)) != AddressKind::Public);
    }

    #[test]
    fn outside_global_unicast_no_ipv6_address_is_public(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let global = address.segments()[0] & 0xe000 == 0x2000;
        let embedding = address.to_ipv4_mapped().is_some() || address.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
        prop_assert!(global || embedding || AddressKind::of(address.into()) != AddressKind::Public);
    }

    #[test]
    fn an_allow_list_opens_its_networks_and_nothing_else(bits in any::<u32>(), network in any::<usize>()) {
        let address = somewhere(bits, network);
        let policy = EgressPolicy { allow: vec!["10.1.0.0/16".parse().unwrap()], ..EgressPolicy::default() };
        let wanted = match expected(address) {
            AddressKind::Public => Ok(()),
            _ if address.octets()[..2] == [10, 1] => Ok(()),
            kind => Err(Refusal::NotPublic(kind)),
        };
        prop_assert_eq!(policy.check(address.into()), wanted);
        prop_assert_eq!(policy.check(behind("::ffff:0:0", address)), wanted);
    }
}

#[test]
fn the_edges_of_the_special_networks_are_exact() {
    let edges = "
        1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15
        168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.255 192.0.3.0
        192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255
        198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8 2606:4700:4700::1111
        2001:4860:4860::8888 2001:200:: 2000:: 3ffe:ffff:: 3fff:1000:: ::ffff:8.8.8.8 64:ff9b::8.8.8.8
        2001:ffff:: 2003::";
    for public in edges.split_whitespace() {
        assert_eq!(kind(public), AddressKind::Public, "{public}");
    }
}

#[test]
fn special_ipv6_networks_have_their_kinds() {
    for (address, wanted) in [
        ("::", AddressKind::Unspecified),
        ("::1", AddressKind::Loopback),
        ("::2", AddressKind::Reserved),
        ("::7f00:1", AddressKind::Reserved),
        ("100::1", AddressKind::Reserved),
        ("64:ff9b:1::", AddressKind::Translated),
        ("64:ff9b:1:ffff:ffff:ffff:ffff:ffff", AddressKind::Translated),
        ("64:ff9b::1:7f00:1", AddressKind::Reserved),
        ("2001::1", AddressKind::Translated),
        ("2002:808:808::1", AddressKind::Translated),
        ("2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff", AddressKind::Translated),
        ("2001:2::1", AddressKind::Benchmarking),
        ("2001:10::1", AddressKind::Reserved),
        ("2001:1ff:ffff::", AddressKind::Reserved),
        ("2001:db8::1", AddressKind::Documentation),
        ("3fff:fff:ffff::", AddressKind::Documentation),
        ("5f00::1", AddressKind::Reserved),
        ("4000::", AddressKind::Reserved),
        ("fc00::1", AddressKind::Private),
        ("fd00:ec2::254", AddressKind::Private),
        ("fe80::1", AddressKind::LinkLocal),
        ("febf::1", AddressKind::LinkLocal),
        ("fec0::1", AddressKind::Private),
        ("ff02::1", AddressKind::Multicast),
    ] {
        assert_eq!(kind(address), wanted, "{address}");
    }
}

#[test]
fn an_allowed_network_says_nothing_about_what_a_translator_makes_of_it() {
    let policy = EgressPolicy {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ..EgressPolicy::default()
    };
    for address in ["64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1", "::1"] {
        assert!(policy.check(address.parse().unwrap()).is_err(), "{address}");
    }
}

#[test]
fn what_is_denied_is_denied_though_it_is_public_or_allowed() {
    let policy = EgressPolicy {
        allow: vec!["10.0.0.0/8".parse().unwrap()],
        deny: vec!["198.20.0.0/16".parse().unwrap(), "10.1.0.0/16".parse().unwrap()],
        ..EgressPolicy::default()
    };
    for (address, wanted) in [
        ("198.20.3.4", Err(Refusal::Denied)),
        ("::ffff:198.20.3.4", Err(Refusal::Denied)),
        ("10.1.2.3", Err(Refusal::Denied)),
        ("10.2.2.3", Ok(())),
        ("198.21.3.4", Ok(())),
    ] {
        assert_eq!(policy.check(address.parse().unwrap()), wanted, "{address}");
    }
    let denied = check_endpoint("https://198.20.3.4/hook", &policy);
    assert_eq!(denied.unwrap_err(), EndpointError::Denied);
}

#[test]
fn ports_of_other_services_are_no_endpoints() {
    let policy = EgressPolicy::default();
    for (url, closed) in [
        ("https://hooks.example/", None),
        ("https://hooks.example:8443/", None),
        ("https://hooks.example:1024/", None),
        ("https://hooks.example:22/", Some(22)),
        ("https://hooks.example:25/", Some(25)),
        ("https://hooks.example:1023/", Some(1023)),
    ] {
        let checked = check_endpoint(url, &policy);
        assert_eq!(checked.err(), closed.map(EndpointError::PortNotAllowed), "{url}");
    }
}

#[test]
fn a_site_is_a_registered_domain() {
    for (url, site) in [
        ("https://a.b.hooks.example/", "hooks.example"),
        ("https://hooks.example./", "hooks.example"),
        ("https://shop.acme.co.uk/", "acme.co.uk"),
        ("https://acme.co.uk/", "acme.co.uk"),
        ("https://hooks.acme.lv/", "acme.lv"),
        ("https://single/", "single"),
        ("https://8.8.8.8/", "8.8.8.8"),
    ] {
        assert_eq!(Endpoint::parse(url).unwrap().site(), site, "{url}");
    }
}

#[test]
fn a_refusal_names_the_kind_and_not_the_address() {
    let refusal = EgressPolicy::default()
        .check("10.20.30.40".parse().unwrap())
        .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the endpoint has a private address; only public addresses are delivered to"
    );
}
