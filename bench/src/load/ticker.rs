//! A periodic timer with the resolution that an open loop of thousands a second needs; tokio's own has one millisecond.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Ticks until it is dropped.
#[derive(Debug)]
pub(crate) struct Ticker {
    fd: AsyncFd<OwnedFd>,
}

impl Ticker {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; an owned descriptor keeps what that one asks for"
    )]
    pub(crate) fn new(period: Duration) -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        let period = Timespec::try_from(period).map_err(io::Error::other)?;
        let ticks = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&fd, TimerfdTimerFlags::empty(), &ticks)?;
        Ok(Self {
            fd: AsyncFd::with_interest(fd, Interest::READABLE)?,
        })
    }

    /// Waits for the next tick, or returns at once when one has passed unseen.
    pub(crate) async fn tick(&self) -> io::Result<()> {
        loop {
            let mut ready = self.fd.readable().await?;
            let mut expirations = [0; size_of::<u64>()];
            if let Ok(read) = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?)) {
                return read.map(drop);
            }
        }
    }
}
