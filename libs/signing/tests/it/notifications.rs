//! The section `notifications` of `sdks/vectors.json`: what a receiver reads in a body whose signature is right, or refuses.
//!
//! The bodies that it refuses are what a lenient parser of some language takes: names of members in any case, a second value
//! behind the first, numbers that are none, bytes that are no UTF-8, times of many forms.

use serde_json::{Value, json};
use signing::{Secret, signature_header};

use crate::cases::{NOW, secret};
use crate::vector::{Body, Headers, NotificationVector, Read};

const ID: &str = "evt_1";
/// Of [`TIME`], in milliseconds since 1970.
const MILLIS: i64 = 1_752_999_999_250;
const TIME: &str = "2025-07-20T08:26:39.250Z";

pub(crate) fn all() -> Vec<NotificationVector> {
    let mut vectors = read();
    vectors.extend(times());
    vectors.extend(refused());
    vectors.push(unsigned());
    vectors
}

/// A message with this body in order, and a key in its headers that is not its own: that header is not signed.
fn vector(name: &str, body: &[u8], notification: Option<Read>) -> NotificationVector {
    let known = secret("a", 32);
    let parsed = Secret::parse(&known).expect("valid");
    let vector = NotificationVector {
        name: name.to_owned(),
        secrets: vec![known],
        headers: Headers {
            webhook_id: Some(ID.to_owned()),
            webhook_timestamp: Some(NOW.to_string()),
            webhook_signature: Some(signature_header(&[&parsed], ID, NOW, body)),
            idempotency_key: Some("0".repeat(64)),
        },
        body: Body::of(body),
        now: NOW + 2,
        tolerance_seconds: 300,
        result: if notification.is_some() { "ok" } else { "bad_body" }.to_owned(),
        notification,
    };
    assert_eq!(vector.outcome(), vector.wanted(), "{name}");
    vector
}

fn accepted(name: &str, body: &str, event_type: &str, millis: i64, data: Value) -> NotificationVector {
    let notification = Read {
        id: ID.to_owned(),
        event_type: event_type.to_owned(),
        timestamp_millis: millis,
        data,
        idempotency_key: signing::idempotency_key(body.as_bytes()),
        attempted_at: NOW,
    };
    vector(name, body.as_bytes(), Some(notification))
}

fn read() -> Vec<NotificationVector> {
    let body = |event_type: &str, data: &str| {
        format!(r#"{{"id":"{ID}","type":"{event_type}","timestamp":"{TIME}","data":{data}}}"#)
    };
    let taken = |name: &str, event_type: &str, data: &str, wanted: Value| {
        accepted(name, &body(event_type, data), event_type, MILLIS, wanted)
    };
    vec![
        taken(
            "an event",
            "domain.created",
            r#"{"domain":{"name":"example.org"}}"#,
            json!({"domain": {"name": "example.org"}}),
        ),
        taken("no attributes", "domain.created", "{}", json!({})),
        taken(
            "a challenge",
            "postrider.verification",
            r#"{"challenge":"1ef5997c"}"#,
            json!({"challenge": "1ef5997c"}),
        ),
        taken(
            "data of every kind",
            "a.b",
            r#"{"text":"Zo\u00eb \"日本語\" \ud83e\udd80","whole":42,"half":1.5,"no":false,"nothing":null,"list":[1,[],{"a":[]}]}"#,
            json!({"text": "Zoë \"日本語\" 🦀", "whole": 42, "half": 1.5, "no": false, "nothing": null, "list": [1, [], {"a": []}]}),
        ),
        taken(
            "data with members named as those around it",
            "a.b",
            r#"{"id":7,"type":null,"timestamp":"never","data":[]}"#,
            json!({"id": 7, "type": null, "timestamp": "never", "data": []}),
        ),
        accepted(
            "members that are not known, another order, and blanks",
            &format!(
                "\n{{ \"data\" : {{\"a\":1}} ,\t\"later\":[true],\r\n\"timestamp\":\"{TIME}\",\"type\":\"a.b\",\"id\":\"{ID}\"}} \n"
            ),
            "a.b",
            MILLIS,
            json!({"a": 1}),
        ),
        accepted(
            "escapes where none are needed",
            &format!(
                r#"{{"\u0069d":"\u0065vt_1","type":"a\u002eb","timestamp":"{TIME}","data":{{"a\/b":"\/"}}}}"#
            ),
            "a.b",
            MILLIS,
            json!({"a/b": "/"}),
        ),
    ]
}

fn with_time(timestamp: &str) -> String {
    format!(r#"{{"id":"{ID}","type":"a.b","timestamp":{timestamp},"data":{{}}}}"#)
}

fn times() -> Vec<NotificationVector> {
    let mut vectors: Vec<_> = [
        (
            "a time without a fraction",
            "2025-07-20T08:26:39Z",
            1_752_999_999_000,
        ),
        ("a time to a tenth", "2025-07-20T08:26:39.2Z", 1_752_999_999_200),
        (
            "a time to a microsecond",
            "2025-07-20T08:26:39.250999Z",
            1_752_999_999_250,
        ),
        (
            "a time to a nanosecond",
            "2025-07-20T08:26:39.250999999Z",
            1_752_999_999_250,
        ),
        (
            "a time east of UTC",
            "2025-07-20T10:26:39.250+02:00",
            1_752_999_999_250,
        ),
        (
            "a time west of UTC, on the day before",
            "2025-07-19T22:56:39.250-09:30",
            1_752_999_999_250,
        ),
        ("a leap day", "2024-02-29T00:00:00.000Z", 1_709_164_800_000),
        ("a time before 1970", "1969-12-31T23:59:59.500Z", -500),
    ]
    .into_iter()
    .map(|(name, text, millis)| accepted(name, &with_time(&format!("\"{text}\"")), "a.b", millis, json!({})))
    .collect();
    vectors.extend(
        [
            ("a time as a number", "1752999999"),
            ("a time as a number in a text", "\"1752999999\""),
            ("an empty time", "\"\""),
            ("a date without a time", "\"2025-07-20\""),
            ("a time without an offset", "\"2025-07-20T08:26:39.250\""),
            ("a time without seconds", "\"2025-07-20T08:26Z\""),
            ("a time with a blank for the T", "\"2025-07-20 08:26:39.250Z\""),
            ("a time in small letters", "\"2025-07-20t08:26:39.250z\""),
            ("a time with a comma", "\"2025-07-20T08:26:39,250Z\""),
            ("a time with blanks around it", "\" 2025-07-20T08:26:39.250Z\""),
            ("a letter behind the time", "\"2025-07-20T08:26:39.250Zx\""),
            (
                "a time in digits that are not ASCII",
                "\"２０２５-07-20T08:26:39.250Z\"",
            ),
            ("an offset of a day", "\"2025-07-20T10:26:39.250+24:00\""),
            ("an offset without a colon", "\"2025-07-20T10:26:39.250+0200\""),
            ("the thirteenth month", "\"2025-13-20T08:26:39.250Z\""),
            ("a leap day in another year", "\"2025-02-29T08:26:39.250Z\""),
            ("the hour 24", "\"2025-07-20T24:00:00.000Z\""),
            ("a leap second", "\"2016-12-31T23:59:60Z\""),
        ]
        .map(|(name, time)| vector(name, with_time(time).as_bytes(), None)),
    );
    vectors
}

fn refused() -> Vec<NotificationVector> {
    let whole = with_time(&format!("\"{TIME}\""));
    let changed = |from: &str, to: &str| whole.replace(from, to).into_bytes();
    [
        ("an empty body", Vec::new()),
        ("a body that is no JSON", b"id=evt_1&type=a.b".to_vec()),
        ("a body that is a text", br#""evt_1""#.to_vec()),
        ("a body that is null", b"null".to_vec()),
        ("a notification in a list", format!("[{whole}]").into_bytes()),
        ("a second value behind the first", whole.repeat(2).into_bytes()),
        ("a letter behind the end", format!("{whole}x").into_bytes()),
        ("a comma behind the last member", changed("{}}", "{},}")),
        ("a comment", format!("/* new */{whole}").into_bytes()),
        ("single quotation marks", changed("\"", "'")),
        ("a byte order mark", format!("\u{feff}{whole}").into_bytes()),
        (
            "UTF-16",
            whole.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        ),
        (
            "a byte that is no UTF-8",
            [
                whole.strip_suffix("}}").expect("an object").as_bytes(),
                b"\"a\":\"\xff\"}}",
            ]
            .concat(),
        ),
        ("a number that is none", changed("{}}", r#"{"a":NaN}}"#)),
        ("a number without an end", changed("{}}", r#"{"a":Infinity}}"#)),
        ("a line end in a text", changed("{}}", "{\"a\":\"\n\"}}")),
        ("no id", changed("\"id\"", "\"name\"")),
        ("an id of another message", changed("evt_1", "evt_2")),
        ("an id in capitals", changed("evt_1", "EVT_1")),
        ("an id that is a number", changed("\"evt_1\"", "1")),
        ("an id that is null", changed("\"evt_1\"", "null")),
        ("an empty id in the body", changed("evt_1", "")),
        ("no type", changed("\"type\"", "\"kind\"")),
        ("an empty type", changed("a.b", "")),
        ("a type that is a list", changed("\"a.b\"", "[\"a.b\"]")),
        ("no time", changed("\"timestamp\"", "\"time\"")),
        ("no data", changed("\"data\"", "\"payload\"")),
        ("data that is null", changed("{}", "null")),
        ("data that is a list", changed("{}", "[]")),
        ("data that is a text", changed("{}", "\"{}\"")),
        (
            "names of members in capitals",
            whole
                .replace("\"id\"", "\"ID\"")
                .replace("\"type\"", "\"Type\"")
                .into_bytes(),
        ),
    ]
    .into_iter()
    .map(|(name, body)| vector(name, &body, None))
    .collect()
}

/// A body is not looked into before its signature is known to be right.
fn unsigned() -> NotificationVector {
    let mut unsigned = vector("a body that is no JSON and was not signed", b"{", None);
    unsigned.secrets = vec![secret("b", 32)];
    unsigned.result = "no_match".to_owned();
    assert_eq!(unsigned.outcome(), unsigned.wanted());
    unsigned
}
