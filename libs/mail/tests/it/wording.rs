//! The words of every kind of mail.

use std::fmt::Write as _;

use domain::email::EmailKind;
use mail::StoredMail;
use serde_json::json;

use crate::{at, change, letter};

/// That of every letter.
const SUBSCRIPTION: &str = "01934c5e-0000-7000-8000-000000000002";

fn told(letter: &StoredMail) -> String {
    let mail = letter.render(None).unwrap();
    format!("Subject: {}\n\n{}", mail.subject, mail.text)
}

fn degraded() -> StoredMail {
    let mut letter = change("DEGRADED", "ACTIVE", "FAILING");
    letter.data["failingSince"] = json!("2026-11-19T08:45:10+00:00");
    letter.data["deactivatedAt"] = json!("2026-11-24T08:45:10Z");
    letter
}

#[test]
fn a_degraded_subscription() {
    insta::assert_snapshot!(told(&degraded()));
}

#[test]
fn the_html_form_says_the_same_and_escapes_what_is_not_ours() {
    let html = degraded().render(None).unwrap().html;
    assert!(
        html.contains("Billing &lt;main&gt;") && !html.contains("<main>"),
        "{html}"
    );
    insta::assert_snapshot!(html);
}

#[test]
fn every_other_change_of_state() {
    let mut mails = String::new();
    for (state, previous, reason) in [
        ("DEACTIVATED", "DEGRADED", "FAILING"),
        ("DEACTIVATED", "ACTIVE", "REDIRECTED"),
        ("DEACTIVATED", "ACTIVE", "GONE"),
        ("DEACTIVATED", "ACTIVE", "BY_RESELLER"),
        ("ACTIVE", "DEGRADED", "RECOVERED"),
        ("ACTIVE", "PENDING_VERIFICATION", "VERIFIED"),
        ("ACTIVE", "DEACTIVATED", "BY_RESELLER"),
        ("PENDING_VERIFICATION", "ACTIVE", "ENDPOINT_CHANGED"),
        ("PENDING_VERIFICATION", "DEACTIVATED", "VERIFICATION_REQUESTED"),
        ("RETIRED", "ACTIVE", "OF_A_LATER_VERSION"),
    ] {
        let _ = writeln!(mails, "{}\n==========", told(&change(state, previous, reason)));
    }
    insta::assert_snapshot!(mails);
}

#[test]
fn one_notification_that_was_given_up() {
    let data = json!({
        "eventType": "domain.created",
        "error": "the endpoint answered 503",
        "since": "2026-11-21T08:45:10Z",
    });
    insta::assert_snapshot!(told(&letter(EmailKind::RetriesExhausted, &data)));
}

#[test]
fn many_notifications_that_were_given_up() {
    let mut letter = letter(
        EmailKind::RetriesExhausted,
        &json!({ "eventType": null, "error": "no answer within 10 s", "since": "2026-11-21T07:50:00.123456+00:00", "description": "" }),
    );
    letter.occurrences = 1_234;
    insta::assert_snapshot!(told(&letter));
}

#[test]
fn what_was_given_up_on_our_side_is_not_called_a_fault_of_the_endpoint() {
    let data = json!({ "error": null, "since": "2026-11-21T07:50:00Z" });
    let mut letter = letter(EmailKind::RetriesExhausted, &data);
    for occurrences in [1, 2] {
        letter.occurrences = occurrences;
        // Lines are wrapped.
        let mail = told(&letter).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Your endpoint is not at fault",
            "failed on our side",
            "is not sent again by itself",
            "Last error: on our side, not at your endpoint",
            "POST /notifications/{id}/resend",
        ] {
            assert!(mail.contains(part), "{part}: {mail}");
        }
        for part in [
            "could not be reached",
            "TLS",
            "are sent again by themselves",
            "degraded",
        ] {
            assert!(!mail.contains(part), "{part}: {mail}");
        }
        let is_several = occurrences > 1;
        for part in [
            "not at fault for that one",
            "Others may have failed at your endpoint",
        ] {
            assert_eq!(mail.contains(part), is_several, "{part}: {mail}");
        }
    }
}

#[test]
fn an_endpoint_that_was_not_verified() {
    let data = json!({ "error": "the endpoint answered 404", "attempts": 5 });
    insta::assert_snapshot!(told(&letter(EmailKind::VerificationFailed, &data)));
}

#[test]
fn one_notification_that_was_refused() {
    let data = json!({ "eventType": "domain.created", "status": 401, "since": "2026-11-21T08:45:10Z" });
    insta::assert_snapshot!(told(&letter(EmailKind::DeliveryRefused, &data)));
}

#[test]
fn many_notifications_that_were_refused() {
    let data = json!({ "eventType": "domain.created", "status": 404, "since": "2026-11-21T07:50:00Z" });
    let mut letter = letter(EmailKind::DeliveryRefused, &data);
    letter.occurrences = 1_234;
    insta::assert_snapshot!(told(&letter));
}

/// One that a mail does not name would not be told within its hour.
#[test]
fn each_status_of_several_refusals_is_named() {
    let data = json!({ "status": 404, "codes": { "401": true, "404": true } });
    let mut letter = letter(EmailKind::DeliveryRefused, &data);
    letter.occurrences = 2;
    let mail = told(&letter);
    // Lines are wrapped.
    let mail = mail.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "the last with 404. Its answers were 401, 404. Did you rotate the signing secret?",
        "verifies with a secret that is valid now",
        "accepts POST",
    ] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
}

#[test]
fn a_refusal_that_is_tried_again_is_told_as_one() {
    let data = json!({ "status": 404, "since": "2026-11-21T07:50:00Z", "retried": true });
    let mail = told(&letter(EmailKind::DeliveryRefused, &data));
    assert!(mail.contains("tried again all the same"), "{mail}");
    assert!(mail.contains("--status RETRY,GIVEN_UP\n"), "{mail}");
    for part in ["not retried", "notifications resend", "all of these"] {
        assert!(!mail.contains(part), "{part}: {mail}");
    }
}

#[test]
fn refusals_are_sent_again_from_the_first_of_them_on() {
    let data = json!({ "status": 404, "since": "2026-11-21T07:50:00.987654Z" });
    let mail = letter(EmailKind::DeliveryRefused, &data);
    let command =
        format!("notifications resend {SUBSCRIPTION} --status FAILED --ended-since 2026-11-21T07:50:00Z\n");
    let text = mail.render(None).unwrap().text;
    assert!(text.contains(&command), "{text}");
    let page = format!("/app/s/{SUBSCRIPTION}/resend?status=FAILED&endedSince=2026-11-21T07:50:00Z\n");
    let text = mail.render(Some("https://portal.example/app")).unwrap().text;
    assert!(text.contains(&page), "{text}");
    // One of an earlier version does not know when that was.
    let text = told(&letter(EmailKind::DeliveryRefused, &json!({ "status": 404 })));
    assert!(
        text.contains("--status FAILED\n") && !text.contains("--ended-since"),
        "{text}"
    );
}

#[test]
fn each_status_of_a_refusal_has_a_place_to_look_at() {
    for (status, place) in [
        (401, "rotate the signing secret"),
        (405, "accepts POST"),
        (413, "how large a body"),
        (422, "the JSON of every event type"),
        (451, "the log of the endpoint"),
    ] {
        let mail = told(&letter(EmailKind::DeliveryRefused, &json!({ "status": status })));
        // Lines are wrapped.
        let mail = mail.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(mail.contains(place), "{status}: {mail}");
    }
}

#[test]
fn a_decided_quota_request() {
    let mut mails = String::new();
    for (asks_daily, granted, per_second, granted_per_second) in [
        (true, Some(5_000), None, None),
        (true, None, None, None),
        (true, Some(5_000), Some(40), Some(40)),
        (true, None, Some(40), None),
        (false, None, Some(40), Some(30)),
        (false, None, Some(40), None),
    ] {
        let data = json!({
            "requested": 10_000, "asksDaily": asks_daily, "granted": granted, "note": "Until the end of the sale.",
            "requestedPerSecond": per_second, "grantedPerSecond": granted_per_second,
        });
        let _ = writeln!(
            mails,
            "{}\n==========",
            told(&letter(EmailKind::QuotaDecided, &data))
        );
    }
    insta::assert_snapshot!(mails);
}

#[test]
fn nothing_of_a_stranger_forges_a_part_of_the_mail() {
    let mut letter = change("DEACTIVATED", "ACTIVE", "GONE");
    letter.data["description"] = json!("x\r\nBcc: victim@example.org\r\n\r\n<script>alert(1)</script>");
    letter.data["url"] = json!("https://example.org/\"onclick='x'");
    let mail = letter.render(None).unwrap();
    assert!(
        mail.subject.starts_with("[Postrider] example.org: "),
        "{}",
        mail.subject
    );
    assert!(!mail.subject.contains(['\r', '\n']));
    assert!(!mail.text.contains("\r\nBcc"));
    assert!(
        !mail.html.contains("<script>") && !mail.html.contains("'x'"),
        "{}",
        mail.html
    );
}

#[test]
fn an_address_that_has_to_be_confirmed() {
    let mut letter = letter(EmailKind::AddressConfirmation, &json!({ "code": "5F0C81A94D" }));
    letter.data["description"] = json!("URGENT: unpaid invoice");
    let told = told(&letter);
    assert!(
        !told.contains("invoice") && !told.contains("hooks.example.org"),
        "{told}"
    );
    insta::assert_snapshot!(told);
}

#[test]
fn settings_that_a_thief_would_change() {
    let at = "2026-11-21T08:45:10Z";
    let data = json!({ "changes": [
        { "what": "ENDPOINT", "from": "https://hooks.example.org", "to": "https://thief.example", "at": at },
        { "what": "SECRET_MADE", "at": at },
    ] });
    let mut letter = letter(EmailKind::SecurityChanged, &data);
    letter.occurrences = 7;
    insta::assert_snapshot!(told(&letter));
}

#[test]
fn each_change_of_settings_is_told_in_a_sentence_and_a_line() {
    for (what, sentence, line) in [
        ("ENDPOINT", "The endpoint of your", "endpoint: a -> b ("),
        ("ADDRESS", "The mail address of your", "mail address: a -> b ("),
        (
            "SECRET_MADE",
            "A new signing secret was",
            "new signing secret: a -> b (",
        ),
        (
            "SECRET_VIEWED",
            "A signing secret of your subscription was looked at.",
            "signing secret looked at: a -> b (",
        ),
        (
            "SECRET_REVOKED",
            "A signing secret of",
            "signing secret revoked: a -> b (",
        ),
        (
            "DELETED",
            "Your subscription was deleted.",
            "subscription deleted: a -> b (",
        ),
        ("LATER", "Your subscription was changed.", "LATER: a -> b ("),
    ] {
        let change = json!({ "what": what, "from": "a", "to": "b", "at": "2026-11-21T08:45:10Z" });
        let mail = told(&letter(
            EmailKind::SecurityChanged,
            &json!({ "changes": [change] }),
        ));
        assert!(
            mail.contains(&format!("\n\n{sentence}")) && mail.contains(line),
            "{mail}"
        );
    }
}

#[test]
fn notifications_that_were_sent_again_after_an_outage() {
    let mut mails = String::new();
    for (occurrences, remaining, because) in [
        (1, 0, None),
        (26, 79, Some("FAILING")),
        (26, 100_000, Some("INACTIVE")),
        (26, 4, Some("SWITCHED_OFF")),
        (26, 4, None),
    ] {
        let data = json!({ "remaining": remaining, "because": because, "completed": remaining == 0 });
        let mut letter = letter(EmailKind::DeliveriesRecovered, &data);
        letter.occurrences = occurrences;
        let _ = writeln!(mails, "{}\n==========", told(&letter));
    }
    insta::assert_snapshot!(mails);
}

#[test]
fn every_mail_leads_to_the_page_of_what_it_is_about_or_names_the_command() {
    let mut mails: Vec<(StoredMail, &str)> = [
        ("DEACTIVATED", "/app/s/{id}/settings"),
        ("DEGRADED", "/app/s/{id}/deliveries?status=GIVEN_UP"),
        ("PENDING_VERIFICATION", "/app/s/{id}/verify"),
        ("ACTIVE", "/app/s/{id}/deliveries"),
    ]
    .map(|(state, page)| (change(state, "ACTIVE", "OF_A_LATER_VERSION"), page))
    .into();
    let changed = json!({ "changes": [{ "what": "DELETED", "at": "2026-11-21T08:45:10Z" }] });
    mails.extend(
        [
            (
                EmailKind::RetriesExhausted,
                json!({}),
                "/app/s/{id}/deliveries?status=GIVEN_UP",
            ),
            (
                EmailKind::VerificationFailed,
                json!({ "error": "x" }),
                "/app/s/{id}/verify",
            ),
            (
                EmailKind::DeliveryRefused,
                json!({}),
                "/app/s/{id}/deliveries?status=FAILED",
            ),
            (
                EmailKind::QuotaDecided,
                json!({ "requested": 7 }),
                "/app/s/{id}/quota",
            ),
            (
                EmailKind::AddressConfirmation,
                json!({ "code": "5F0C81A94D" }),
                "/app/s/{id}/settings",
            ),
            (EmailKind::SecurityChanged, changed, "/app/activity"),
            (
                EmailKind::DeliveriesRecovered,
                json!({}),
                "/app/s/{id}/deliveries",
            ),
        ]
        .map(|(kind, data, page)| (letter(kind, &data), page)),
    );
    for kind in EmailKind::ALL {
        assert!(mails.iter().any(|(mail, _)| mail.kind == kind), "{kind}");
    }
    let routes = dashboard();
    for (mail, page) in mails {
        assert_page(&routes, page);
        let url = format!("https://portal.example{}", page.replace("{id}", SUBSCRIPTION));
        let with = mail.render(Some("https://portal.example/app")).unwrap();
        let is_page = |line: &str| line.starts_with("Page:") && line.ends_with(&format!(" {url}"));
        assert!(with.text.lines().any(is_page), "{url}: {}", with.text);
        assert!(!with.text.contains("\nCommand:"), "{}", with.text);
        assert!(
            with.html.contains(&format!("<a href=\"{url}\">{url}</a>")),
            "{}",
            with.html
        );
        let without = mail.render(None).unwrap();
        assert!(without.text.contains("\nCommand:"), "{}", without.text);
        assert!(!without.html.contains("<a "), "{}", without.html);
    }
}

#[test]
fn with_a_dashboard_what_can_be_done_is_named_by_its_page() {
    let mut mails: Vec<StoredMail> = [
        ("DEGRADED", "FAILING"),
        ("DEACTIVATED", "FAILING"),
        ("DEACTIVATED", "REDIRECTED"),
        ("DEACTIVATED", "GONE"),
        ("ACTIVE", "RECOVERED"),
        ("ACTIVE", "VERIFIED"),
        ("PENDING_VERIFICATION", "ENDPOINT_CHANGED"),
    ]
    .map(|(state, reason)| change(state, "ACTIVE", reason))
    .into();
    mails.extend(
        [
            (EmailKind::RetriesExhausted, json!({})),
            (EmailKind::VerificationFailed, json!({ "error": "x" })),
            (EmailKind::DeliveryRefused, json!({ "status": 401 })),
            (EmailKind::QuotaDecided, json!({ "requested": 7 })),
            (EmailKind::AddressConfirmation, json!({ "code": "5F0C81A94D" })),
            (EmailKind::DeliveriesRecovered, json!({ "remaining": 4 })),
        ]
        .map(|(kind, data)| letter(kind, &data)),
    );
    let routes = dashboard();
    for mail in mails {
        let text = mail.render(Some("https://portal.example/app")).unwrap().text;
        for word in text.split_whitespace() {
            assert!(
                !word.starts_with("/subscriptions/") && !word.starts_with("/notifications/"),
                "{word} is a request: {text}"
            );
            if let Some(page) = word.strip_prefix("https://portal.example") {
                assert!(
                    !page.ends_with('.'),
                    "the stop would be taken for a part of {word}"
                );
                let page = page.trim_end_matches(',');
                assert_page(&routes, &page.replace(SUBSCRIPTION, "{id}"));
            }
        }
    }
}

/// Fails unless the dashboard has this page, which may have a query.
fn assert_page(routes: &str, page: &str) {
    let path = page.split('?').next().unwrap();
    let is_route = ["page", "at"]
        .iter()
        .any(|made| routes.contains(&format!("{made}(\"{path}\",")));
    assert!(is_route, "the dashboard has no {path}");
}

/// The sources of the dashboard, in which its pages are.
fn dashboard() -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../services/reseller-portal/src/dashboard"
    );
    let files = std::fs::read_dir(folder).unwrap();
    files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect()
}

#[test]
fn several_changes_of_state_are_one_mail_that_says_so() {
    let mut letter = change("ACTIVE", "DEACTIVATED", "BY_RESELLER");
    letter.occurrences = 40;
    assert!(told(&letter).contains("40, of which this is the latest"));
}

#[test]
fn of_an_endpoint_neither_path_nor_query_is_mailed() {
    for mail in [
        degraded(),
        letter(EmailKind::VerificationFailed, &json!({ "error": "x" })),
    ] {
        let mail = mail.render(None).unwrap();
        for form in [&mail.text, &mail.html, &mail.subject] {
            assert!(
                !form.contains("tenant=7") && !form.contains("/postrider"),
                "{form}"
            );
        }
    }
}

#[test]
fn no_line_is_turned_round() {
    let mut letter = degraded();
    letter.data["description"] = json!("a\u{202e}b\u{2066}c");
    let mail = letter.render(None).unwrap();
    for form in [mail.text, mail.html] {
        assert!(!form.contains(['\u{202e}', '\u{2066}']), "{form}");
    }
}

#[test]
fn what_is_missing_from_the_data_is_an_error() {
    let mut letter = change("ACTIVE", "DEGRADED", "RECOVERED");
    letter.data.as_object_mut().unwrap().remove("state");
    assert!(matches!(letter.render(None), Err(mail::Unreadable::Data(_))));
}

#[test]
fn the_message_id_is_that_of_the_row_and_of_what_it_has_gathered() {
    let from = "Postrider <postrider@example.org>".parse().unwrap();
    let mut letter = degraded();
    let id = letter.message_id(&from);
    assert_eq!(id, "<01934c5e000070008000000000000001.1@example.org>");
    letter.created_at = at("2027-01-01T00:00:00Z");
    assert_eq!(letter.message_id(&from), id);
    letter.occurrences = 2;
    assert_ne!(letter.message_id(&from), id);
}
