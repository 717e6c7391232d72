//! One delivery as the receiver saw it, and what many of them say.

/// A delivery that has arrived. Times are nanoseconds of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The number of the endpoint.
    pub(crate) to: usize,
    /// The number of the event.
    pub(crate) number: u64,
    /// When its `POST /events` was due.
    pub(crate) posted: u64,
    /// When the head of the delivery had been read.
    pub(crate) arrived: u64,
}

impl Arrival {
    pub(crate) fn millis(&self) -> f64 {
        self.arrived.saturating_sub(self.posted) as f64 / 1e6
    }
}

/// Number and time of the event that a delivery is about.
pub(super) fn read(body: &[u8]) -> Option<(u64, u64)> {
    Some((
        hex_after(body, br#""number":""#)?,
        hex_after(body, br#""posted":""#)?,
    ))
}

fn hex_after(body: &[u8], key: &[u8]) -> Option<u64> {
    let at = body.windows(key.len()).position(|window| window == key)? + key.len();
    let digits = std::str::from_utf8(body.get(at..at + 16)?).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_a_delivery_is_found_in_its_body() {
        let body = br#"{"id":"x","type":"bench.happened","timestamp":"t","data":{"number":"000000000000001f","posted":"00000000000000ff"}}"#;
        assert_eq!(read(body), Some((0x1f, 0xff)));
        assert_eq!(read(br#"{"data":{"number":"1f"}}"#), None);
        assert_eq!(read(b""), None);
    }
}
