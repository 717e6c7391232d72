//! One request as it came to a receiver, in 16 bytes.

/// How a request was answered there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// With this status. The sender may still never have seen it.
    Status(u16),
    /// Not at all: the connection was closed, or the sender had gone.
    None,
}

/// A request that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When, in microseconds since the receiver's start, by a clock that no one can set.
    pub at_micros: u64,
    /// Its answer.
    pub answer: Answer,
}

impl Arrival {
    /// Whether the receiver has accepted it.
    pub fn is_accepted(&self) -> bool {
        matches!(self.answer, Answer::Status(200..=299))
    }
}
