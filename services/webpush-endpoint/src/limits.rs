//! How much one sender may ask in how much time. Each process counts for itself: the limits keep a loop in bounds, they are no quota.

use std::net::IpAddr;
use std::num::NonZeroU32;

use config::WebpushEndpoint;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http_api::AddressLimit;
use webpush::Refusal;

use crate::app::Target;

/// Counted before those are forgotten that have been quiet for a while.
const KEPT: usize = 100_000;

/// What has been asked lately.
pub(crate) struct Limits {
    messages: DefaultKeyedRateLimiter<Target>,
    senders: AddressLimit,
    registrations: AddressLimit,
}

impl Limits {
    pub(crate) fn new(config: &WebpushEndpoint) -> Self {
        let number = |count: u32| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        let messages = Quota::per_second(number(config.messages_per_second));
        let of_sender = number(config.messages_per_second_per_peer);
        Self {
            messages: RateLimiter::keyed(messages.allow_burst(number(config.message_burst))),
            senders: AddressLimit::per_second(of_sender, of_sender),
            registrations: AddressLimit::per_minute(number(config.registrations_per_minute)),
        }
    }

    /// Counts a message from an address, whatever is wrong with it.
    pub(crate) fn count_sender(&self, from: Option<IpAddr>) -> Result<(), Refusal> {
        count_from(&self.senders, from)
    }

    /// Counts a message to a channel. User agents name their channels themselves: one may have the name of another's.
    pub(crate) fn count_message(&self, target: Target) -> Result<(), Refusal> {
        if self.messages.len() > KEPT {
            self.messages.retain_recent();
        }
        self.messages.check_key(&target).map_err(|_| Refusal::TooMany)
    }

    /// Counts a registration from an address.
    pub(crate) fn count_registration(&self, from: Option<IpAddr>) -> Result<(), Refusal> {
        count_from(&self.registrations, from)
    }
}

fn count_from(limit: &AddressLimit, from: Option<IpAddr>) -> Result<(), Refusal> {
    if limit.admits_stranger(from) {
        Ok(())
    } else {
        Err(Refusal::TooMany)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn each_channel_and_each_address_has_its_own_bounds() {
        let mut config = config::Config::for_tests("postgres://a@b/c", "amqp://unused")
            .unwrap()
            .webpush
            .endpoint;
        config.messages_per_second = 1;
        config.message_burst = 2;
        config.registrations_per_minute = 1;
        config.messages_per_second_per_peer = 1;
        let limits = Limits::new(&config);
        let [uaid, another, channel, other] = [1, 2, 3, 4].map(Uuid::from_u128);
        let one = (uaid, channel);
        assert_eq!(limits.count_message(one), Ok(()));
        assert_eq!(limits.count_message(one), Ok(()));
        assert_eq!(limits.count_message(one), Err(Refusal::TooMany));
        assert_eq!(limits.count_message((uaid, other)), Ok(()));
        assert_eq!(limits.count_message((another, channel)), Ok(()));
        let from = |text: &str| Some(text.parse().unwrap());
        assert_eq!(limits.count_sender(from("192.0.2.1")), Ok(()));
        assert_eq!(limits.count_sender(from("192.0.2.1")), Err(Refusal::TooMany));
        assert_eq!(limits.count_sender(from("192.0.2.2")), Ok(()));
        assert_eq!(limits.count_registration(from("192.0.2.1")), Ok(()));
        assert_eq!(
            limits.count_registration(from("192.0.2.1")),
            Err(Refusal::TooMany)
        );
        assert_eq!(limits.count_registration(from("192.0.2.2")), Ok(()));
        for _ in 0..3 {
            assert_eq!(limits.count_registration(from("127.0.0.1")), Ok(()));
            assert_eq!(limits.count_sender(from("127.0.0.1")), Ok(()));
        }
    }
}
