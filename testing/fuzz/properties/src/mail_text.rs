//! Mails, from whatever resellers and their endpoints have put into them: no line of theirs becomes a header, no tag of
//! theirs markup; and refusals of mail servers are told apart.

use arbitrary::{Result, Unstructured};
use domain::email::EmailKind;
use mail::StoredMail;
use serde_json::json;
use uuid::Uuid;

use crate::given::now;

/// The headers of every mail, and those of its two parts.
const HEADERS: [&str; 9] = [
    "From",
    "To",
    "Subject",
    "Message-ID",
    "Date",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
];

/// Checks the property.
pub fn check(input: &[u8]) {
    let _ = composed(&mut Unstructured::new(input));
    let _ = refused(&mut Unstructured::new(input));
}

fn composed(input: &mut Unstructured<'_>) -> Result<()> {
    let kind = *input.choose(&EmailKind::ALL)?;
    let occurrences = input.arbitrary()?;
    let mut text = || input.arbitrary::<&str>();
    let (url, description, reseller) = (text()?, text()?, text()?);
    let (error, state, reason) = (text()?, text()?, text()?);
    let letter = StoredMail {
        id: Uuid::from_u128(1),
        kind,
        subscription_id: Uuid::from_u128(2),
        recipient: "ops@reseller.example".to_owned(),
        data: json!({
            "url": url, "description": description, "resellerId": reseller, "error": error, "state": state,
            "previous": state, "reason": reason, "eventType": error, "attempts": 1, "status": 401, "requested": 1,
            "note": reason,
            "code": reason, "changes": [{"what": state, "from": error, "to": reason, "at": now()}],
        }),
        occurrences,
        created_at: now(),
    };
    let rendered = letter.render(None).expect("these data are what a mail needs");
    assert!(
        !rendered.subject.contains(char::is_control),
        "{:?}",
        rendered.subject
    );
    is_markup_of_ours(&rendered.html);
    let content = mail::fuzzing::composed(&letter, "postrider@example.com").expect("and can be composed");
    let content = String::from_utf8_lossy(&content);
    let (head, _) = content.split_once("\r\n\r\n").expect("a head and a body");
    for line in head.split("\r\n").filter(|line| !line.starts_with([' ', '\t'])) {
        let name = line.split(':').next().unwrap_or_default();
        assert!(HEADERS.contains(&name), "{line}");
        assert!(!line.contains(['\r', '\n']), "{line:?}");
    }
    Ok(())
}

/// Only tags that our page has, whatever stands between them.
fn is_markup_of_ours(html: &str) {
    for tag in html.split('<').skip(1) {
        let name: String = tag
            .trim_start_matches('/')
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        let known = [
            "html", "head", "meta", "title", "body", "p", "a", "ul", "li", "h1", "h2", "table", "tr", "td",
            "th", "strong", "br", "div", "span", "hr", "style", "small", "tbody", "thead", "em", "code", "b",
            "ol", "",
        ];
        assert!(known.contains(&name.to_ascii_lowercase().as_str()), "{tag}");
    }
    assert!(!html.to_ascii_lowercase().contains("javascript:\""));
}

fn refused(input: &mut Unstructured<'_>) -> Result<()> {
    let code = input.int_in_range(400..=599)?;
    let text = input.arbitrary::<&str>()?;
    let ours = mail::fuzzing::is_policy(code, text);
    let by_code = [503, 530, 534, 535].contains(&code);
    let first = text.split_whitespace().next().unwrap_or_default();
    assert_eq!(
        ours,
        by_code || first == "5.7" || first.starts_with("5.7."),
        "{code} {text}"
    );
    Ok(())
}
