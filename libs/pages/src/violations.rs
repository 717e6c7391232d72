//! What browsers report of pages that wanted more than the policy allows: counted, and told in the log. None is expected.
//!
//! Strangers can send reports too, so that this deliberately changes nothing and is not kept.

use std::num::NonZeroU32;

use axum::extract::Request;
use http::StatusCode;
use http_api::{AddressLimit, Problem, ProblemKind, TakesBodies, read_body};
use serde_json::Value;
use telemetry::Metric;

/// Largest report, or bundle of them.
const MAX_BYTES: usize = 16 * 1024;
/// Most violations that are counted of one bundle.
const COUNTED_AT_ONCE: usize = 20;
/// Longest text of a report in the log, in characters.
const TOLD_MAX_CHARS: usize = 200;

/// Takes reports, a bounded number of each address.
pub struct Violations(AddressLimit);

impl Default for Violations {
    fn default() -> Self {
        const RATE: NonZeroU32 = NonZeroU32::MIN;
        const BURST: NonZeroU32 = NonZeroU32::new(20).expect("invariant: 20 is not zero");
        Self(AddressLimit::per_second(RATE, BURST))
    }
}

impl Violations {
    /// Takes reports, in the form of `report-uri`, or in that of `report-to` should a proxy in front ask for it.
    ///
    /// # Errors
    ///
    /// A problem when the address has sent too many, or what it sends is no report.
    pub async fn take(&self, request: Request, app: &impl TakesBodies) -> Result<StatusCode, Problem> {
        self.0.take("reports")?;
        let (head, body) = request.into_parts();
        let body = read_body(&head.headers, body, MAX_BYTES, app.deadline()).await?;
        let report: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Some(violations) = violations(&report) else {
            let detail = "this is no report of a violation of the policy, as browsers send them";
            return Err(Problem::new(ProblemKind::MALFORMED_BODY, detail));
        };
        for violation in violations {
            Metric::CspViolations.increment(1);
            let told = |names: [&str; 2]| {
                let said = names.iter().find_map(|name| violation.get(*name)?.as_str());
                let seen = said.unwrap_or_default().chars().filter(|it| !it.is_control());
                seen.take(TOLD_MAX_CHARS).collect::<String>()
            };
            tracing::warn!(
                directive = told(["effective-directive", "effectiveDirective"]),
                blocked = told(["blocked-uri", "blockedURL"]),
                page = told(["document-uri", "documentURL"]),
                "a page wanted more than the policy allows"
            );
        }
        Ok(StatusCode::NO_CONTENT)
    }
}

/// The violations in a report; none when it is no report at all.
fn violations(report: &Value) -> Option<Vec<&Value>> {
    if let Some(one) = report.get("csp-report") {
        return Some(vec![one]);
    }
    let of_policy = report
        .as_array()?
        .iter()
        .filter(|report| report["type"] == "csp-violation");
    Some(
        of_policy
            .filter_map(|report| report.get("body"))
            .take(COUNTED_AT_ONCE)
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_of_reports_are_read() {
        let one = json!({"csp-report": {"blocked-uri": "inline"}});
        assert_eq!(violations(&one).unwrap().len(), 1);
        let violation = json!({"type": "csp-violation", "body": {"blockedURL": "inline"}});
        let several = json!([violation, {"type": "deprecation", "body": {}}, violation]);
        assert_eq!(violations(&several).unwrap().len(), 2);
        let many = Value::Array(vec![violation; 1_000]);
        assert_eq!(violations(&many).unwrap().len(), COUNTED_AT_ONCE);
        for other in [json!({}), json!(7), json!("csp-report"), json!(null)] {
            assert_eq!(violations(&other), None, "{other}");
        }
    }
}
