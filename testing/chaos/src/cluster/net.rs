//! A corner of 127.0.0.0/8 that no other cluster uses at the same time: addresses for whatever must keep its port over restarts.
//!
//! Outgoing connections take their ports at 127.0.0.1, so a port at one of these addresses stays free while its server is down.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use super::Error;

/// Below the ports that outgoing connections get.
const PORTS: std::ops::Range<u16> = 10_000..32_000;
const RESERVATION_HOST: u8 = 250;
const RESERVATION_PORT: u16 = 9_999;
const ATTEMPTS: usize = 100;

pub(crate) struct Net {
    corner: (u8, u8),
    /// Held for as long as the corner is used.
    _reservation: TcpListener,
}

impl Net {
    pub(crate) fn reserve() -> Result<Self, Error> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let corner = (rand::random_range(64..=126), rand::random_range(1..=254));
            let address = SocketAddr::from((host(corner, RESERVATION_HOST), RESERVATION_PORT));
            match TcpListener::bind(address) {
                Ok(reservation) => {
                    return Ok(Self {
                        corner,
                        _reservation: reservation,
                    });
                }
                Err(source) => {
                    last = Some(Error::Listen {
                        address: address.to_string(),
                        source,
                    });
                }
            }
        }
        Err(last.expect("invariant: there was an attempt"))
    }

    /// An address of the corner.
    pub(crate) fn host(&self, number: u8) -> Ipv4Addr {
        host(self.corner, number)
    }

    /// A port that is free at all of these hosts.
    pub(crate) fn free_port(&self, hosts: &[Ipv4Addr]) -> Result<u16, Error> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let port = rand::random_range(PORTS);
            let refused = hosts.iter().find_map(|host| {
                TcpListener::bind((*host, port))
                    .err()
                    .map(|source| (*host, source))
            });
            match refused {
                None => return Ok(port),
                Some((host, source)) => {
                    last = Some(Error::Listen {
                        address: format!("{host}:{port}"),
                        source,
                    });
                }
            }
        }
        Err(last.expect("invariant: there was an attempt"))
    }
}

fn host(corner: (u8, u8), number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, corner.0, corner.1, number)
}
