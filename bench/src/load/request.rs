//! The bytes of a `POST /push`, made once; only the number in the device id changes from push to push.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Target;

const DIGITS: usize = 16;
const PLACEHOLDER: &str = "################";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// A request that renumbers itself.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    number_at: usize,
    serial: Arc<AtomicU64>,
}

impl Request {
    pub(crate) fn new(target: &Target) -> Self {
        let body = format!(
            r#"{{"platform":"IOS","messagePrototypeKey":"Hello","pushKey":"bench-{PLACEHOLDER}","message":"Hello client!","cronExpression":null}}"#
        );
        let Target { address, key, serial } = target;
        let text = format!(
            "POST /push HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let number_at = text
            .find(PLACEHOLDER)
            .expect("invariant: the body holds the placeholder");
        Self {
            bytes: text.into_bytes(),
            number_at,
            serial: Arc::clone(serial),
        }
    }

    /// The bytes of the next push.
    pub(crate) fn next(&mut self) -> &[u8] {
        let mut number = self.serial.fetch_add(1, Ordering::Relaxed);
        for digit in self.bytes[self.number_at..][..DIGITS].iter_mut().rev() {
            *digit = HEX[(number % 16) as usize];
            number /= 16;
        }
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_push_has_a_number_of_its_own_and_the_same_length() {
        let target = Target {
            address: ([127, 0, 0, 1], 80).into(),
            key: "pr_key".to_owned(),
            serial: Arc::new(AtomicU64::new(0x1f)),
        };
        let (mut one, mut other) = (Request::new(&target), Request::new(&target));
        let first = String::from_utf8(one.next().to_vec()).unwrap();
        let second = String::from_utf8(other.next().to_vec()).unwrap();
        assert!(first.contains("bench-000000000000001f\""), "{first}");
        assert!(second.contains("bench-0000000000000020\""), "{second}");
        let (head, body) = first.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}", body.len())),
            "{head}"
        );
    }
}
