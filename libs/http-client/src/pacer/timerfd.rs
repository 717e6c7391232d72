//! Waits to the microsecond with a timerfd: tokio's own timer has a resolution of one millisecond, which alone would
//! cost a fifth of the rate.
//!
//! It promises no exactness: the gate is asked again afterwards.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// How long before the deadline the thread is woken. Waking it and getting through the runtime takes some tens of
/// microseconds, more on a busy machine; what is left of the lead is spent in turns with the runtime's other tasks.
const WAKE_LEAD: Duration = Duration::from_micros(150);

#[derive(Debug)]
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    #[expect(
        deprecated,
        reason = "its replacement is unsafe; an owned descriptor keeps what that one asks for"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        Ok(Self {
            fd: AsyncFd::with_interest(fd, Interest::READABLE)?,
        })
    }

    /// Waits for the deadline. Cancel-safe.
    pub(super) async fn wait_until(&mut self, deadline: Instant) {
        while let Some(time) = time_to_sleep(deadline) {
            // Arming a timer of our own cannot fail while the runtime lives; if it does, the loop below still waits.
            if self.sleep(time).await.is_err() {
                break;
            }
        }
        while Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
    }

    async fn sleep(&self, time: Duration) -> io::Result<()> {
        let it_value = Timespec::try_from(time).map_err(io::Error::other)?;
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value,
        };
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        let mut ready = self.fd.readable().await?;
        let mut expirations = [0; size_of::<u64>()];
        // Readiness left over from a cancelled wait ends here as "would block": the caller then looks at the clock.
        match ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?)) {
            Ok(read) => read.map(drop),
            Err(_would_block) => Ok(()),
        }
    }
}

/// `None` when the deadline is no further away than the lead. Never zero, which would disarm the timer.
fn time_to_sleep(deadline: Instant) -> Option<Duration> {
    let time = deadline
        .saturating_duration_since(Instant::now())
        .saturating_sub(WAKE_LEAD);
    (!time.is_zero()).then_some(time)
}
