//! Subscription filters and names of event types, against a comparison word by word.

use domain::event;
use domain::subscription::{EventFilter, is_event_type, patterns_of};

/// Checks the property. A line end separates a filter from a type.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (filter, name) = text.split_once('\n').unwrap_or((text, text));
    if is_event_type(name) {
        is_a_name(name);
    }
    let Ok(read) = EventFilter::parse(filter) else {
        assert!(!is_event_type(filter) && filter != "*");
        return;
    };
    assert_eq!(read.as_str(), filter);
    assert_eq!(read.exact().is_some(), is_event_type(filter));
    assert!(filter.len() <= 100 && filter.bytes().all(|byte| byte.is_ascii_graphic()));
    if is_event_type(name) {
        assert_eq!(read.matches(name), by_words(filter, name), "{filter} {name}");
    }
}

fn is_a_name(name: &str) {
    assert!(name.len() <= 100 && name.split('.').count() >= 2);
    // It stands in JSON and in a signed header without an escape.
    let body = event::body("id", name, crate::given::now(), "{}");
    let told: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(told["type"], name);
    let patterns = patterns_of(name);
    assert_eq!(patterns.len(), name.split('.').count() + 1);
    for pattern in patterns {
        let filter = EventFilter::parse(&pattern);
        // A prefix of the longest names is longer than a filter may be: it is no filter of anybody.
        assert!(
            filter.is_ok_and(|filter| filter.matches(name)) || pattern.len() > 100,
            "{pattern}"
        );
    }
}

fn by_words(filter: &str, name: &str) -> bool {
    let (mut wanted, mut words) = (filter.split('.'), name.split('.'));
    loop {
        match (wanted.next(), words.next()) {
            (Some("*"), Some(_)) => return true,
            (Some(wanted), Some(word)) if wanted == word => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}
