//! A corner of 127.0.0.0/8 that no other cluster uses at the same time: addresses for whatever must keep its port over restarts.
//!
//! Outgoing connections take their ports at 127.0.0.1, so a port at one of these addresses stays free while its server is down.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;

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
    pub(crate) fn reserve() -> anyhow::Result<Self> {
        let attempts = (0..ATTEMPTS).find_map(|_| {
            let corner = (rand::random_range(64..=126), rand::random_range(1..=254));
            let reservation = TcpListener::bind((host(corner, RESERVATION_HOST), RESERVATION_PORT)).ok()?;
            Some(Self {
                corner,
                _reservation: reservation,
            })
        });
        attempts.context("no corner of 127.0.0.0/8 is free")
    }

    /// An address of the corner.
    pub(crate) fn host(&self, number: u8) -> Ipv4Addr {
        host(self.corner, number)
    }

    /// A port that is free at all of these hosts.
    pub(crate) fn free_port(&self, hosts: &[Ipv4Addr]) -> anyhow::Result<u16> {
        let is_free = |port: &u16| hosts.iter().all(|host| TcpListener::bind((*host, *port)).is_ok());
        let mut ports = (0..ATTEMPTS).map(|_| rand::random_range(PORTS));
        ports
            .find(is_free)
            .with_context(|| format!("no port is free at {hosts:?}"))
    }
}

fn host(corner: (u8, u8), number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, corner.0, corner.1, number)
}
