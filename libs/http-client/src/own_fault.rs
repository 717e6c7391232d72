//! Tells failures of ours from those of the other end, by the errors of the operating system: no descriptor, no
//! port, no memory or no route for a connection says nothing of its other end.

use std::error::Error;
use std::io;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use rustix::io::Errno;

/// What every connection would fail for at this moment.
const OURS: [Errno; 6] = [
    Errno::MFILE,
    Errno::NFILE,
    Errno::NOBUFS,
    Errno::NOMEM,
    Errno::ADDRNOTAVAIL,
    Errno::NETDOWN,
];
/// Of the prefixes for documentation: covered by a route to everything, and by nothing else.
const ANYWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Whether an error of the HTTP client is a failure of ours before anything was sent.
pub(crate) fn is_own(error: &reqwest::Error) -> bool {
    error.is_connect() && codes(error).any(is_own_code)
}

fn codes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = Errno> + 'a {
    chain(error).filter_map(|error| Errno::from_io_error(error.downcast_ref()?))
}

fn is_own_code(code: Errno) -> bool {
    // One network may be out of reach while others are not, as that of an endpoint without IPv4 is for a machine without IPv6.
    OURS.contains(&code) || (code == Errno::NETUNREACH && !ANYWHERE.into_iter().any(has_route))
}

/// Whether this machine has a route to an address, and an address of its own to begin with. Nothing is sent. When that cannot be
/// found out, it has.
pub(crate) fn has_route(address: IpAddr) -> bool {
    let own: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let asked = UdpSocket::bind((own, 0)).and_then(|socket| socket.connect((address, 9)));
    asked
        .err()
        .and_then(|error| Errno::from_io_error(&error))
        .is_none_or(|code| {
            !matches!(
                code,
                Errno::NETUNREACH
                    | Errno::HOSTUNREACH
                    | Errno::ADDRNOTAVAIL
                    | Errno::AFNOSUPPORT
                    | Errno::NETDOWN
            )
        })
}

/// `error` and its causes, outermost first. An I/O error gives its content's cause as its own, so the content itself has
/// to be asked for.
pub(crate) fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(Some(error), |error| {
        let error: &'a (dyn Error + 'static) = *error;
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(content) => Some(content as &(dyn Error + 'static)),
            None => error.source(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_lacks_is_ours_and_a_refusal_is_not() {
        let io = |code: Errno| io::Error::from(code);
        let is_own_io = |error: &io::Error| codes(error).any(is_own_code);
        for code in OURS {
            assert!(is_own_io(&io(code)), "{code:?}");
            assert!(is_own_io(&io::Error::other(io(code))), "wrapped: {code:?}");
        }
        for code in [
            Errno::CONNREFUSED,
            Errno::CONNRESET,
            Errno::HOSTUNREACH,
            Errno::TIMEDOUT,
        ] {
            assert!(!is_own_io(&io(code)), "{code:?}");
        }
        assert!(!is_own_io(&io::ErrorKind::ConnectionRefused.into()));
    }

    #[test]
    fn the_own_machine_is_always_within_reach() {
        assert!(has_route(Ipv4Addr::LOCALHOST.into()));
    }
}
