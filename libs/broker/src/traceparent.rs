//! Recognising a W3C `traceparent`. Creating and continuing traces is not done in this crate.

/// Longest value that is passed on; a valid one of version `00` has 55 bytes.
const MAX_BYTES: usize = 128;

/// `version-trace_id-parent_id-flags` in lower-case hexadecimal, with neither id all zero; see the W3C
/// recommendation "Trace Context", section 3.2. Versions after `00` may append fields.
pub(crate) fn is_traceparent(value: &str) -> bool {
    let mut fields = value.split('-');
    let mut field = |digits: usize| {
        let found = fields.next().filter(|field| {
            field.len() == digits
                && field
                    .bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        found.unwrap_or_default()
    };
    let (version, trace, parent, flags) = (field(2), field(32), field(16), field(2));
    let named = |id: &str| id.bytes().any(|byte| byte != b'0');
    let complete = !version.is_empty() && !flags.is_empty() && named(trace) && named(parent);
    complete && version != "ff" && value.len() <= MAX_BYTES && (version != "00" || fields.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn valid_values_are_recognised() {
        assert!(is_traceparent(TRACE));
        assert!(is_traceparent(&format!("{}-more", TRACE.replacen("00", "01", 1))));
    }

    #[test]
    fn invalid_values_are_not() {
        let zero_trace = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
        let zero_parent = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
        let upper = TRACE.to_uppercase();
        let extended = format!("{TRACE}-more");
        let forbidden = TRACE.replacen("00", "ff", 1);
        let long = format!("{}-{}", TRACE.replacen("00", "01", 1), "x".repeat(MAX_BYTES));
        for value in [
            "",
            "x",
            "00-",
            &zero_trace,
            &zero_parent,
            &upper,
            &extended,
            &forbidden,
            &long,
        ] {
            assert!(!is_traceparent(value), "{value}");
        }
    }
}
