//! The command that repeats a request, as a shell takes it apart: its words are the texts that were put into it, nothing
//! in them is obeyed, and no credentials of a URL are among them.

use arbitrary::{Result, Unstructured};
use domain::dead_letter::curl::{NotificationRequest, PushRequest, of_notification, of_push};
use domain::dead_letter::fingerprint_part;
use url::Url;

use crate::given::now;

/// Checks the property.
pub fn check(input: &[u8]) {
    let _ = written(&mut Unstructured::new(input));
}

fn written(input: &mut Unstructured<'_>) -> Result<()> {
    let (url, id, body) = (
        input.arbitrary::<&str>()?,
        input.arbitrary::<&str>()?,
        input.arbitrary::<&str>()?,
    );
    copied(body);
    let notification = of_notification(&NotificationRequest {
        url,
        event_id: id,
        idempotency_key: id,
        signed_at: now(),
        body,
        traceparent: Some(id),
    });
    let words = words(&notification);
    assert_eq!(words.first().map(String::as_str), Some("curl"), "{notification}");
    assert_eq!(after(&words, "--data-raw"), Some(body.replace('\0', "\u{fffd}")));
    let header = format!(
        "event-id: {}",
        id.replace(['\r', '\n'], " ").replace('\0', "\u{fffd}")
    );
    assert!(words.contains(&header), "{notification}");
    let push = of_push(&PushRequest {
        base_url: url,
        message: body,
        test: true,
        traceparent: None,
    });
    let words = self::words(&push);
    assert!(words.contains(&format!("message={}", body.replace('\0', "\u{fffd}"))));
    shows_no_credentials(url, &words);
    Ok(())
}

/// Of a URL that pushes can be sent to.
fn shows_no_credentials(base: &str, words: &[String]) {
    // Control characters and blanks around it are dropped by the client that dials it, and shown by the command.
    if base.contains(char::is_control) || base.trim() != base {
        return;
    }
    let Ok(endpoint) = http_client::fuzzing::swrve_endpoint(base) else {
        return;
    };
    let shown = after(words, "--url").expect("a command has a URL");
    let Ok(shown) = Url::parse(&shown) else {
        panic!("a URL is shown as one: {shown}");
    };
    assert!(
        shown.username().is_empty() && shown.password().is_none(),
        "{shown}"
    );
    assert_eq!(
        (shown.host_str(), shown.port()),
        (endpoint.host_str(), endpoint.port()),
        "{base}"
    );
}

fn after(words: &[String], option: &str) -> Option<String> {
    let place = words.iter().position(|word| word == option)?;
    words.get(place + 1).cloned()
}

/// Splits a command as bash does, as far as quotes go: anything outside of them that a shell would obey is a fault.
fn words(command: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), None::<Vec<u8>>);
    let mut rest = command.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\'' => word
                .get_or_insert_default()
                .extend(until_quote(&mut rest).bytes()),
            '$' if rest.next_if_eq(&'\'').is_some() => escaped(word.get_or_insert_default(), &mut rest),
            '"' => {
                let variable: String = rest.by_ref().take_while(|c| *c != '"').collect();
                assert!(
                    variable.starts_with('$')
                        && variable[1..].bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                );
                word.get_or_insert_default().extend(variable.bytes());
            }
            '\\' => match rest.next() {
                Some('\n') => words.extend(word.take()),
                Some(literal) => word
                    .get_or_insert_default()
                    .extend(literal.encode_utf8(&mut [0; 4]).bytes()),
                None => panic!("a backslash at the end"),
            },
            ' ' => words.extend(word.take()),
            plain if plain.is_ascii_alphanumeric() || "-".contains(plain) => {
                word.get_or_insert_default().push(plain as u8);
            }
            other => panic!("{other:?} is not quoted: {command}"),
        }
    }
    words.extend(word);
    let text = |bytes| String::from_utf8(bytes).expect("the bytes of characters");
    words.into_iter().map(text).collect()
}

fn until_quote(rest: &mut impl Iterator<Item = char>) -> String {
    let text: String = rest.take_while(|c| *c != '\'').collect();
    let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(obeyed), "a terminal would obey {text:?}");
    text
}

/// `$'\x1b'`: bytes in hexadecimal.
fn escaped(word: &mut Vec<u8>, rest: &mut impl Iterator<Item = char>) {
    let text: String = rest.take_while(|c| *c != '\'').collect();
    for byte in text.split("\\x").skip(1) {
        word.push(u8::from_str_radix(byte, 16).expect("two digits"));
    }
}

/// A part of a fingerprint can be copied into a filter, where it means itself alone.
fn copied(text: &str) {
    let part = fingerprint_part(text);
    assert!(!part.contains('*') && !part.contains(char::is_control));
    let mut read = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
            let digits: String = digits.into_iter().collect();
            read.push(u8::from_str_radix(&digits, 16).expect("hexadecimal"));
        } else {
            read.push(byte);
        }
    }
    assert_eq!(read, text.as_bytes());
}
