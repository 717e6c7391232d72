//! The body of `POST /push`: accepted exactly when the API's document says so, and what is accepted can be stored and
//! sent. The document's rules are written down here once more, by hand.

use chrono_tz::Tz;
use domain::push::{Limits, PushRequest, SendingWindow};

use crate::given::{is_explained, now};
use crate::raw_object::RawObject;

const LIMITS: Limits = Limits {
    message_max_bytes: 64,
    push_key_max_bytes: 32,
};
const MEMBERS: [&str; 5] = [
    "platform",
    "messagePrototypeKey",
    "pushKey",
    "message",
    "cronExpression",
];

/// Checks the property.
pub fn check(body: &[u8]) {
    let read = ingest_api::fuzzing::push(body, &LIMITS, (now(), Tz::UTC));
    let promised = promised(body);
    match (read, promised) {
        (Ok(push), Some(expected)) => assert_eq!(push, expected),
        (Err(problem), None) => is_explained(&problem),
        (Ok(push), None) => panic!("accepted against the rules: {push:?}"),
        (Err(problem), Some(push)) => panic!("refused against the rules: {push:?}: {}", problem.example()),
    }
}

/// What the documented rules make of a body.
fn promised(body: &[u8]) -> Option<PushRequest> {
    let object = RawObject::read(body).filter(|object| object.is_made_of(&MEMBERS))?;
    let [platform, prototype, key, message, cron] = MEMBERS.map(|name| object.text(name));
    let platform = match platform.ok()?.as_deref() {
        Some("IOS") => domain::push::Platform::Ios,
        Some("ANDROID") => domain::push::Platform::Android,
        _ => return None,
    };
    let needed = |text: Option<String>, limit| {
        text.filter(|text: &String| text.chars().any(|c| !c.is_whitespace()) && fits(text, limit))
    };
    let push_key = needed(key.ok()?, LIMITS.push_key_max_bytes)?;
    let message = needed(message.ok()?, LIMITS.message_max_bytes)?;
    let message_prototype_key = prototype.ok()?;
    let prototype_fits = message_prototype_key
        .as_ref()
        .is_none_or(|prototype| fits(prototype, LIMITS.push_key_max_bytes));
    let cron_expression = cron.ok()?;
    let first_window = match &cron_expression {
        None => None,
        Some(cron) if fits(cron, 256) => {
            let window = SendingWindow::parse(cron, Tz::UTC).ok()?;
            Some(window.opens_at_or_after(now()).ok()?)
        }
        Some(_) => return None,
    };
    prototype_fits.then_some(PushRequest {
        platform,
        message_prototype_key,
        push_key,
        message,
        cron_expression,
        first_window,
    })
}

fn fits(text: &str, limit: usize) -> bool {
    text.len() <= limit && text.bytes().all(|byte| byte != 0)
}
