//! Why the node ends a connection, as the close frame and a metric say it.

/// Why a connection ends by the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    HelloTimeout,
    NoHello,
    SecondHello,
    Malformed,
    NotText,
    PingTooSoon,
    PongTimeout,
    /// The client has connected again.
    Replaced,
    /// The client had too many messages and was forgotten.
    Reset,
    TooManyRegistrations,
    TooManyCommands,
    Storage,
    /// The client has stayed for so long that its month is about to be dropped: it is moved when it comes back.
    MonthOver,
    /// The node stops.
    GoingAway,
}

impl Close {
    /// The code of RFC 6455, section 7.4.
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Reset => 1000,
            Self::GoingAway | Self::MonthOver => 1001,
            Self::NotText => 1003,
            Self::TooManyRegistrations | Self::TooManyCommands => 1008,
            _ => 1011,
        }
    }

    /// As it stands in the close frame and in a metric.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::HelloTimeout => "hello_timeout",
            Self::NoHello => "no_hello",
            Self::SecondHello => "second_hello",
            Self::Malformed => "malformed",
            Self::NotText => "not_text",
            Self::PingTooSoon => "ping_too_soon",
            Self::PongTimeout => "pong_timeout",
            Self::Replaced => "replaced",
            Self::Reset => "reset",
            Self::TooManyRegistrations => "too_many_registrations",
            Self::TooManyCommands => "too_many_commands",
            Self::Storage => "storage",
            Self::MonthOver => "month_over",
            Self::GoingAway => "going_away",
        }
    }
}
