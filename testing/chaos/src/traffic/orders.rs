//! What is handed in. Everything about a push or event follows from its name, so that nothing about it need be remembered.

use serde_json::json;

/// Whose events come.
pub const RESELLERS: [&str; 2] = ["acme", "globex"];
/// Types of the catalogue whose payloads hold one name.
const TYPES: [&str; 3] = ["domain.unsuspended", "contact.deleted", "host.deleted"];
/// When all of them happened, which makes the bytes that are to arrive known beforehand.
const OCCURRED_AT: &str = "2026-01-31T23:59:59.250Z";

/// A push; its user, who gets no other one, is its Idempotency-Key too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushOrder {
    /// Such as `plain-17`.
    pub user: String,
}

impl PushOrder {
    /// The push of a number.
    pub fn number(number: u64) -> Self {
        let kind = match number % 20 {
            3 => "refused",
            7 => "nokey",
            11 | 15 => "windowed",
            _ => "plain",
        };
        Self {
            user: format!("{kind}-{number}"),
        }
    }

    /// The push of a user.
    pub fn of(user: &str) -> Option<Self> {
        let number = user.rsplit_once('-')?.1.parse().ok()?;
        let order = Self::number(number);
        (order.user == user).then_some(order)
    }

    /// Whether Swrve takes it when it is well.
    pub fn is_taken(&self) -> bool {
        !self.user.starts_with("refused-") && !self.user.starts_with("nokey-")
    }

    /// What Swrve must get.
    pub fn message(&self) -> String {
        format!("Grüße & 100 % für {} = \"ja\" + 🎉", self.user)
    }

    /// The push key that Swrve must get.
    pub const fn push_key(&self) -> &'static str {
        "Hello-IOS"
    }

    /// The request.
    pub fn body(&self) -> String {
        let prototype = (!self.user.starts_with("nokey-")).then_some("Hello");
        let cron = self.user.starts_with("windowed-").then_some("0/2 * * * * ?");
        json!({
            "platform": "IOS",
            "messagePrototypeKey": prototype,
            "pushKey": self.user,
            "message": self.message(),
            "cronExpression": cron,
        })
        .to_string()
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventOrder {
    /// Such as `e-17`.
    pub id: String,
    /// Of the catalogue.
    pub event_type: &'static str,
    /// Whose it is.
    pub reseller: &'static str,
}

impl EventOrder {
    /// The event of a number.
    pub fn number(number: u64) -> Self {
        let at = |length: usize| usize::try_from(number % length as u64).unwrap_or(0);
        Self {
            id: format!("e-{number}"),
            event_type: TYPES[at(TYPES.len())],
            reseller: RESELLERS[at(RESELLERS.len())],
        }
    }

    /// The event of an identifier.
    pub fn of(id: &str) -> Option<Self> {
        Some(Self::number(id.strip_prefix("e-")?.parse().ok()?))
    }

    /// As no serialiser would write it.
    fn data(&self) -> String {
        let Self { id, event_type, .. } = self;
        match event_type.split('.').next() {
            Some("host") => format!(r#"{{ "host":{{"name":"ns1.{id}.example"}}}}"#),
            Some("domain") => format!(r#"{{"domain": {{"name":"{id}.example" }} }}"#),
            _ => format!(r#"{{ "contact" :{{"id" :"{id}"}}}}"#),
        }
    }

    /// The bytes that are to arrive.
    pub fn delivered(&self) -> String {
        let Self { id, event_type, .. } = self;
        let data = self.data();
        format!(r#"{{"id":"{id}","type":"{event_type}","timestamp":"{OCCURRED_AT}","data":{data}}}"#)
    }

    /// The request.
    pub fn body(&self) -> String {
        let Self {
            id,
            event_type,
            reseller,
        } = self;
        let data = self.data();
        format!(
            r#"{{"eventId":"{id}","type":"{event_type}","resellerId":"{reseller}","occurredAt":"{OCCURRED_AT}","data":{data}}}"#
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_in_follows_from_its_name() {
        for number in 0..100 {
            let push = PushOrder::number(number);
            assert_eq!(PushOrder::of(&push.user), Some(push));
            let event = EventOrder::number(number);
            assert_eq!(EventOrder::of(&event.id), Some(event));
        }
        assert_eq!(PushOrder::of("plain-3"), None, "3 is one that is refused");
    }
}
