//! The bytes of a request, made once; only numbers and times in them change from one to the next.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Target, What};
use crate::epoch;

const NUMBER: &str = "################";
const TIME: &str = "@@@@@@@@@@@@@@@@";
const RESELLER: &str = "~~~~";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A request that renumbers itself.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    items: Vec<Item>,
    resellers: Range<u64>,
    serial: Arc<AtomicU64>,
}

/// Where the changing parts of one push or event are.
#[derive(Debug, Clone, Copy)]
struct Item {
    number: usize,
    time: Option<usize>,
    reseller: Option<usize>,
}

impl Request {
    pub(crate) fn new(target: &Target) -> Self {
        let Target {
            addresses,
            key,
            serial,
            what,
            ..
        } = target;
        let (path, body) = match what {
            What::Push => ("/push", push()),
            What::Events { batch: None, .. } => ("/events", event()),
            What::Events {
                batch: Some(count), ..
            } => ("/events/batch", batch(*count)),
        };
        let host = addresses.first().map_or(String::new(), ToString::to_string);
        let text = format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let places = |mark| text.match_indices(mark).map(|(at, _)| at).collect::<Vec<_>>();
        let (times, resellers) = (places(TIME), places(RESELLER));
        let items = places(NUMBER)
            .into_iter()
            .enumerate()
            .map(|(index, number)| Item {
                number,
                time: times.get(index).copied(),
                reseller: resellers.get(index).copied(),
            });
        Self {
            items: items.collect(),
            bytes: text.into_bytes(),
            resellers: match what {
                What::Push => 0..1,
                What::Events { first, resellers, .. } => u64::from(*first)..u64::from(first + resellers),
            },
            serial: Arc::clone(serial),
        }
    }

    /// How many pushes or events it is about.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.items.len()).unwrap_or(u32::MAX)
    }

    /// The bytes of the next request, which was due at `due`.
    pub(crate) fn next(&mut self, due: Instant) -> &[u8] {
        let due = epoch::nanos(due);
        for item in &self.items {
            let number = self.serial.fetch_add(1, Ordering::Relaxed);
            write_hex(&mut self.bytes[item.number..][..NUMBER.len()], number);
            if let Some(at) = item.time {
                write_hex(&mut self.bytes[at..][..TIME.len()], due);
            }
            if let Some(at) = item.reseller {
                let Range { start, end } = self.resellers;
                write_hex(
                    &mut self.bytes[at..][..RESELLER.len()],
                    start + number % (end - start),
                );
            }
        }
        &self.bytes
    }
}

fn push() -> String {
    format!(
        r#"{{"platform":"IOS","messagePrototypeKey":"Hello","pushKey":"bench-{NUMBER}","message":"Hello client!","cronExpression":null}}"#
    )
}

fn event() -> String {
    format!(
        r#"{{"type":"{EVENT_TYPE}","resellerId":"bench-{RESELLER}","data":{{"number":"{NUMBER}","posted":"{TIME}","domain":"a-domain-of-usual-length.example","status":"REGISTERED","expiresAt":"2027-03-29T00:00:00Z","nameservers":["ns1.example","ns2.example"]}}}}"#
    )
}

fn batch(count: usize) -> String {
    let events = vec![event(); count];
    format!(r#"{{"events":[{}]}}"#, events.join(","))
}

/// The type of every event that is posted here.
pub(crate) const EVENT_TYPE: &str = "bench.happened";

fn write_hex(digits: &mut [u8], mut value: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = HEX[(value % 16) as usize];
        value /= 16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(what: What) -> Target {
        Target {
            addresses: vec![([127, 0, 0, 1], 80).into()],
            key: "pr_key".to_owned(),
            serial: Arc::new(AtomicU64::new(0x1f)),
            what,
            gate: None,
        }
    }

    fn text(request: &mut Request) -> String {
        let text = String::from_utf8(request.next(Instant::now()).to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
        assert!(!text.contains(['#', '@', '~']), "{text}");
        text
    }

    #[test]
    fn every_push_has_a_number_of_its_own_and_the_same_length() {
        let target = target(What::Push);
        let (mut one, mut other) = (Request::new(&target), Request::new(&target));
        let (first, second) = (text(&mut one), text(&mut other));
        assert!(first.contains("bench-000000000000001f\""), "{first}");
        assert!(second.contains("bench-0000000000000020\""), "{second}");
        assert_eq!(one.count(), 1);
    }

    #[test]
    fn events_go_to_the_resellers_in_turn() {
        let mut request = Request::new(&target(What::Events {
            first: 0x100,
            resellers: 32,
            batch: None,
        }));
        for expected in ["bench-011f", "bench-0100"] {
            let text = text(&mut request);
            assert!(text.starts_with("POST /events HTTP/1.1"), "{text}");
            assert!(text.contains(&format!(r#""resellerId":"{expected}""#)), "{text}");
        }
    }

    #[test]
    fn the_events_of_a_batch_are_all_different_and_valid() {
        let mut request = Request::new(&target(What::Events {
            first: 0,
            resellers: 1000,
            batch: Some(3),
        }));
        assert_eq!(request.count(), 3);
        let text = text(&mut request);
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let events = body["events"].as_array().unwrap();
        let of = |field: &str| {
            events
                .iter()
                .map(|event| event["data"][field].as_str().unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("number"),
            ["000000000000001f", "0000000000000020", "0000000000000021"]
        );
        assert_eq!(of("posted")[0], of("posted")[2]);
        assert_eq!(events[2]["resellerId"], "bench-0021");
    }
}
