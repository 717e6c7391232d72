//! A name daemon that tells a node to find its peer at the near end of a link, instead of where the peer really listens.
//!
//! The link cannot simply have the peer's port at another address: a node does not start while anybody on the host listens at its
//! port, at whichever address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// `PORT2_RESP` of the protocol between nodes and name daemons, with the result 0: the port follows.
const FOUND: [u8; 2] = [119, 0];

/// Passes questions on to the true name daemon, and puts another port into its answers.
pub(super) struct Names {
    pub(super) address: SocketAddr,
    _answering: AbortOnDropHandle<()>,
}

impl Names {
    pub(super) async fn telling(port: u16, daemon: SocketAddr) -> anyhow::Result<Self> {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = TcpListener::bind(here).await.context("no free port")?;
        let address = listener.local_addr()?;
        let answering = tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                // A node that gets no answer asks again.
                tokio::spawn(answer(node, daemon, port));
            }
        });
        Ok(Self {
            address,
            _answering: AbortOnDropHandle::new(answering),
        })
    }
}

/// One question and its answer, after which the name daemon ends the connection.
async fn answer(mut node: TcpStream, daemon: SocketAddr, port: u16) -> io::Result<()> {
    let mut daemon = TcpStream::connect(daemon).await?;
    let length = node.read_u16().await?;
    let mut question = vec![0; length.into()];
    node.read_exact(&mut question).await?;
    daemon.write_all(&length.to_be_bytes()).await?;
    daemon.write_all(&question).await?;
    let mut answer = Vec::new();
    daemon.read_to_end(&mut answer).await?;
    node.write_all(&with_port(answer, port)).await?;
    node.shutdown().await
}

fn with_port(mut answer: Vec<u8>, port: u16) -> Vec<u8> {
    if answer.starts_with(&FOUND)
        && let Some(place) = answer.get_mut(2..4)
    {
        place.copy_from_slice(&port.to_be_bytes());
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_port_that_was_found_is_replaced() {
        assert_eq!(with_port(vec![119, 0, 1, 2, 77], 0x0304), [119, 0, 3, 4, 77]);
        for other in [vec![119, 1], vec![119, 0, 1], vec![110, 0, 1, 2], vec![]] {
            assert_eq!(with_port(other.clone(), 0x0304), other);
        }
    }
}
