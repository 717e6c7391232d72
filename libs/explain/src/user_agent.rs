//! The story of a user agent of Web Push, or of one message to it: what is stored, where it is connected, and what comes next. Pure.
//!
//! Never what a message says, nor the keys that go with it.

use store::webpush::{LISTED, StoredClient, StoredMessage};

use crate::explanation::{Context, Explanation, Line, Next};
use crate::reseller::Sentence;
use crate::words::{length, number, of};

/// What is stored of a user agent. With `sought`, the message id of one of its messages, it is told of that message first.
pub fn describe(stored: &StoredClient, sought: Option<&str>, context: &Context) -> Explanation {
    let client = &stored.client;
    let message = sought.and_then(|id| stored.messages.iter().find(|it| it.version == id));
    let state = if client.node.is_some() {
        "CONNECTED"
    } else {
        "AWAY"
    };
    let said = match (sought, message) {
        (Some(_), Some(message)) => of_message(message, context),
        (Some(_), None) if stored.messages.len() < LISTED as usize => Sentence::new(
            "message-not-stored",
            "The message is not stored: its user agent has acknowledged it, it had no TTL, a newer one replaced it, or it was \
             deleted.",
        ),
        (Some(_), None) => Sentence::new(
            "message-not-listed",
            format!("The message is not among the first {LISTED} that are stored for its user agent."),
        ),
        (None, _) => headline(stored, context),
    };
    let of = (client.uaid, "userAgent", state.to_owned());
    Explanation {
        story: story(stored, context),
        ..Explanation::new(of, said, next(stored, context))
    }
}

fn headline(stored: &StoredClient, context: &Context) -> Sentence {
    let client = &stored.client;
    let channels = of(client.channels.len() as u64, "channel", "channels");
    let waiting = stored
        .messages
        .iter()
        .filter(|it| it.expires_at > context.now)
        .count();
    let more = if stored.messages.len() < LISTED as usize {
        ""
    } else {
        "at least "
    };
    let messages = of(waiting as u64, "message waits", "messages wait");
    let (code, text) = match &client.node {
        Some(node) => (
            "connected",
            format!(
                "Was connected to {node} when it was last heard of, and has {channels}; {more}{messages} for it."
            ),
        ),
        None => (
            "away",
            format!("Is not connected, and has {channels}; {more}{messages} for it."),
        ),
    };
    Sentence::new(code, text)
        .with("node", &client.node)
        .with("channels", client.channels.len())
        .with("waiting", waiting)
}

fn of_message(message: &StoredMessage, context: &Context) -> Sentence {
    let at = message.expires_at;
    let when = context.when(at);
    let (code, text) = if at <= context.now {
        (
            "message-over",
            format!("Is stored, and its TTL was over at {when}: it will not be delivered."),
        )
    } else {
        ("message-waits", format!("Waits for its user agent until {when}."))
    };
    Sentence::new(code, text).with("expiresAt", at)
}

fn story(stored: &StoredClient, context: &Context) -> Vec<Line> {
    let client = &stored.client;
    let month = client.month.first_day().format("%Y-%m").to_string();
    let mut lines = vec![
        Line::new(
            client.created_at,
            Sentence::new("registered", "Registered its first channel."),
        ),
        Line::new(
            client.connected_at,
            Sentence::new(
                "connected",
                format!("Connected last; it reads the month {month}."),
            )
            .with("month", &month),
        ),
    ];
    lines.extend(stored.messages.iter().map(|message| {
        let topic = message
            .topic
            .as_ref()
            .map_or(String::new(), |topic| format!(", topic {topic}"));
        let size = message.bytes.map_or_else(
            || "without a body".to_owned(),
            |bytes| format!("{} bytes", number(u64::from(bytes))),
        );
        let ttl = (message.expires_at - message.received_at)
            .to_std()
            .unwrap_or_default();
        let over = if message.expires_at <= context.now {
            ", which is over"
        } else {
            ""
        };
        let text = format!(
            "Message to the channel {}{topic}, {size}, TTL {}{over}, in the month {}.",
            message.channel,
            length(ttl),
            message.month.first_day().format("%Y-%m")
        );
        let said = Sentence::new("message", text)
            .with("topic", &message.topic)
            .with("bytes", message.bytes)
            .with("ttlSeconds", ttl.as_secs());
        Line::new(message.received_at, said)
    }));
    lines.sort_by(|one, other| (one.at, &one.text).cmp(&(other.at, &other.text)));
    lines
}

fn next(stored: &StoredClient, context: &Context) -> Next {
    let client = &stored.client;
    let waits = stored.messages.iter().any(|it| it.expires_at > context.now);
    let ends = client
        .month
        .plus(3)
        .first_day()
        .and_time(chrono::NaiveTime::MIN)
        .and_utc();
    match (&client.node, waits) {
        (Some(_), true) => Next::some_time(
            "sent-in-batches",
            "Its node sends what waits, ten at a time, each batch when the one before is acknowledged. If it has left that node, the next \
             message finds that out, and it gets everything when it connects.",
        ),
        (Some(_), false) => Next::some_time(
            "handed-over",
            "A message is handed to that node, and stored if it is not acknowledged in time.",
        ),
        (None, _) => Next::at(
            ends,
            "sent-when-connected",
            "When it connects it gets what waits, and is moved to the present month. Until then messages are stored; if it does not come, \
             it is forgotten with its month.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
    use config::Config;
    use domain::month::Month;
    use store::webpush::Client;
    use uuid::Uuid;

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    fn context() -> Context {
        let config = Config::for_tests("postgres://a@b/c", "amqp://unused").unwrap();
        Context {
            now: now(),
            pauses: Vec::new(),
            holds: Vec::new(),
            rules: (&config).into(),
        }
    }

    fn stored(node: Option<&str>, expires_in: TimeDelta) -> StoredClient {
        let month = Month::containing(now());
        StoredClient {
            client: Client {
                uaid: Uuid::from_u128(1),
                month,
                node: node.map(str::to_owned),
                connected_at: now() - TimeDelta::hours(2),
                router_type: "webpush".to_owned(),
                channels: vec![Uuid::from_u128(2)],
                created_at: now() - TimeDelta::days(3),
            },
            messages: vec![StoredMessage {
                month,
                channel: Uuid::from_u128(2),
                topic: Some("news".to_owned()),
                version: "abc".to_owned(),
                received_at: now() - TimeDelta::hours(1),
                expires_at: now() + expires_in,
                bytes: Some(1_234),
            }],
        }
    }

    #[test]
    fn a_user_agent_is_told_with_its_node_its_month_and_what_waits() {
        let away = describe(&stored(None, TimeDelta::hours(1)), None, &context());
        assert_eq!(
            away.headline,
            "Is not connected, and has 1 channel; 1 message waits for it."
        );
        assert_eq!(
            (away.headline_code, away.next.code),
            ("away", "sent-when-connected")
        );
        let told: Vec<&str> = away.story.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            told,
            [
                "Registered its first channel.",
                "Connected last; it reads the month 2026-11.",
                "Message to the channel 00000000-0000-0000-0000-000000000002, topic news, 1,234 bytes, TTL 2 h, in the month \
                 2026-11.",
            ]
        );
        let forgotten = Utc.with_ymd_and_hms(2027, 2, 1, 0, 0, 0).unwrap();
        assert_eq!(
            away.next.at,
            Some(forgotten),
            "the month goes when two newer ones have passed"
        );
        let there = describe(
            &stored(Some("http://node-1:8085"), TimeDelta::hours(1)),
            None,
            &context(),
        );
        assert!(
            there.headline.contains("connected to http://node-1:8085"),
            "{}",
            there.headline
        );
    }

    #[test]
    fn a_message_waits_is_over_or_is_not_stored() {
        let told = |expires_in, id| describe(&stored(None, expires_in), Some(id), &context()).headline;
        let waits = describe(&stored(None, TimeDelta::hours(1)), Some("abc"), &context());
        assert_eq!(waits.headline_code, "message-waits");
        assert!(
            told(TimeDelta::hours(1), "abc")
                .starts_with("Waits for its user agent until 2026-11-21 13:00:00 UTC")
        );
        assert!(told(-TimeDelta::minutes(1), "abc").contains("will not be delivered"));
        assert!(told(TimeDelta::hours(1), "other").starts_with("The message is not stored"));
    }
}
