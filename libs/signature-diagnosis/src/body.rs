//! Bodies as they may have been before something was done to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::accident::BodyAccident as Accident;
use super::json::{Escapes, Json, Layout, Style};

/// Larger bodies are not written again in every way: that would take too long.
const JSON_MAX_BYTES: usize = 1 << 20;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The members of every body of Postrider's, in their order.
const ENVELOPE: [&str; 4] = ["id", "type", "timestamp", "data"];
/// What Windows-1252 has from 0x80 to 0x9F; what it lacks is read as Latin-1.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// A body that may have been the one that was signed, and what would have been done to it since.
#[derive(Debug, Clone)]
pub(super) struct Earlier {
    pub(super) body: Vec<u8>,
    pub(super) accidents: Vec<Accident>,
}

impl Earlier {
    fn new(body: Vec<u8>, accident: Accident) -> Self {
        Self {
            body,
            accidents: vec![accident],
        }
    }

    /// The same, with what happened before.
    fn after(mut self, earlier: &[Accident]) -> Self {
        let mut accidents = earlier.to_vec();
        accidents.append(&mut self.accidents);
        accidents.dedup();
        self.accidents = accidents;
        self
    }
}

/// Every body that this one may have been, the simplest accidents first; `visit` ends it by saying true.
pub(super) fn each_earlier(body: &[u8], mut visit: impl FnMut(&Earlier) -> bool) -> bool {
    let simple = of_bytes(body);
    if simple.iter().any(&mut visit) {
        return true;
    }
    // Two of them together, such as UTF-16 with a line end more.
    let twice = simple.iter().flat_map(|first| {
        let second = of_bytes(&first.body).into_iter();
        second.map(|second| second.after(&first.accidents))
    });
    // One after the other: all at once would be a hundred copies of the body.
    if twice
        .filter(|earlier| earlier.body != body)
        .any(|earlier| visit(&earlier))
    {
        return true;
    }
    let unchanged = Earlier {
        body: body.to_vec(),
        accidents: Vec::new(),
    };
    // Blanks around a document are nothing to a parser: only what it could not read is tried once more.
    let readable = simple.iter().filter(|earlier| {
        use Accident::{Base64, MarkAdded, Quoted, ReadAsLatin1, WrittenAsUtf16};
        matches!(
            earlier.accidents[..],
            [Base64 | MarkAdded | Quoted | ReadAsLatin1 | WrittenAsUtf16]
        )
    });
    std::iter::once(&unchanged)
        .chain(readable)
        .any(|start| of_json(start, &mut visit))
}

/// Whether this is how every body of Postrider's begins: the envelope, compact and in its order.
pub(super) fn has_the_envelope(body: &[u8]) -> bool {
    let Some(Json::Object(members)) = Json::parse(body) else {
        return false;
    };
    let names = members.iter().map(|(name, _)| name.as_str());
    let head = Json::Object(members[..members.len().min(3)].to_vec()).write(COMPACT);
    let head = head.trim_end_matches('}');
    names.eq(ENVELOPE) && body.starts_with(format!("{head},\"data\":").as_bytes())
}

/// Whether all of the envelope is there, in whatever form.
pub(super) fn is_a_notification(body: &[u8]) -> bool {
    let Some(Json::Object(members)) = Json::parse(body) else {
        return false;
    };
    ENVELOPE
        .iter()
        .all(|wanted| members.iter().any(|(name, _)| name == wanted))
}

/// The member `id`.
pub(super) fn id(body: &[u8]) -> Option<String> {
    let Some(Json::Object(members)) = Json::parse(body) else {
        return None;
    };
    members.into_iter().find_map(|(name, value)| match value {
        Json::Text(id) if name == "id" => Some(id),
        _ => None,
    })
}

fn of_bytes(body: &[u8]) -> Vec<Earlier> {
    let mut found = Vec::new();
    let mut add = |body: Option<Vec<u8>>, accident| {
        found.extend(body.map(|body| Earlier::new(body, accident)));
    };
    if let Some(stripped) = body.strip_suffix(b"\n") {
        add(Some(stripped.to_vec()), Accident::BlanksAdded);
        add(
            stripped.strip_suffix(b"\r").map(<[u8]>::to_vec),
            Accident::BlanksAdded,
        );
    }
    let trimmed = body.trim_ascii();
    add(
        (trimmed.len() < body.len()).then(|| trimmed.to_vec()),
        Accident::BlanksAdded,
    );
    add(Some([body, b"\n"].concat()), Accident::NewlineRemoved);
    add(Some([body, b"\r\n"].concat()), Accident::NewlineRemoved);
    add(
        body.strip_prefix(BYTE_ORDER_MARK).map(<[u8]>::to_vec),
        Accident::MarkAdded,
    );
    add(without_carriage_returns(body), Accident::LinesBecameCrLf);
    add(with_carriage_returns(body), Accident::LinesBecameLf);
    add(from_utf_16(body), Accident::WrittenAsUtf16);
    add(from_latin_1(body), Accident::ReadAsLatin1);
    add(
        serde_json::from_slice::<String>(body)
            .ok()
            .map(String::into_bytes),
        Accident::Quoted,
    );
    add(STANDARD.decode(body.trim_ascii()).ok(), Accident::Base64);
    found.retain(|earlier| !earlier.body.is_empty());
    found
}

fn without_carriage_returns(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    text.contains("\r\n")
        .then(|| text.replace("\r\n", "\n").into_bytes())
}

fn with_carriage_returns(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok()?;
    (text.contains('\n') && !text.contains('\r')).then(|| text.replace('\n', "\r\n").into_bytes())
}

fn from_utf_16(body: &[u8]) -> Option<Vec<u8>> {
    let decode = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
        Some(text.into_bytes())
    };
    match body {
        [0xff, 0xfe, rest @ ..] => decode(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => decode(rest, u16::from_be_bytes),
        [first, 0, ..] if first.is_ascii() => decode(body, u16::from_le_bytes),
        [0, first, ..] if first.is_ascii() => decode(body, u16::from_be_bytes),
        _ => None,
    }
}

/// The bytes whose characters in Latin-1 or Windows-1252 these are.
fn from_latin_1(body: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(body).ok().filter(|text| !text.is_ascii())?;
    let byte = |character: char| {
        let windows = WINDOWS.iter().position(|known| *known == character);
        match windows.and_then(|place| u8::try_from(0x80 + place).ok()) {
            Some(byte) => Some(byte),
            None => u8::try_from(u32::from(character)).ok(),
        }
    };
    text.chars().map(byte).collect()
}

const COMPACT: Style = Style {
    layout: Layout::Compact,
    data: Layout::Compact,
    escapes: Escapes::None,
};

fn of_json(start: &Earlier, visit: &mut impl FnMut(&Earlier) -> bool) -> bool {
    if start.body.len() > JSON_MAX_BYTES {
        return false;
    }
    let Some(json) = Json::parse(&start.body) else {
        return false;
    };
    let orders = [
        json.clone(),
        json.led_by(&ENVELOPE),
        json.sorted(),
        json.sorted().led_by(&ENVELOPE),
    ];
    for (place, json) in orders.iter().enumerate() {
        if orders[..place].contains(json) {
            continue;
        }
        for style in styles() {
            // Blanks go without saying when the order is another one.
            let mut accidents = vec![if place > 0 {
                Accident::Reordered
            } else {
                Accident::Respaced
            }];
            if place == 0 && style.escapes != Escapes::None {
                accidents = vec![Accident::Reescaped];
            }
            let body = json.write(style).into_bytes();
            if visit(&Earlier { body, accidents }.after(&start.accidents)) {
                return true;
            }
        }
    }
    false
}

/// Every way to write a document, the likeliest first.
fn styles() -> impl Iterator<Item = Style> {
    use Layout::{Compact, Lines, Spaced};
    let escapes = [
        Escapes::None,
        Escapes::Ascii,
        Escapes::AsciiAndHtml,
        Escapes::Html,
        Escapes::Slashes,
    ];
    // The envelope is always compact; the data is as the caller that reported the event wrote it.
    let layouts = [
        (Compact, Compact),
        (Compact, Spaced),
        (Compact, Lines(2)),
        (Compact, Lines(4)),
        (Spaced, Spaced),
        (Lines(2), Lines(2)),
        (Lines(4), Lines(4)),
    ];
    escapes.into_iter().flat_map(move |escapes| {
        layouts.into_iter().map(move |(layout, data)| Style {
            layout,
            data,
            escapes,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_is_recognised_however_the_data_is_written() {
        let compact = br#"{"id":"1","type":"a.b","timestamp":"t","data":{ "a" : 1 }}"#;
        assert!(has_the_envelope(compact) && is_a_notification(compact));
        let spaced = br#"{"id": "1","type":"a.b","timestamp":"t","data":{}}"#;
        assert!(!has_the_envelope(spaced) && is_a_notification(spaced));
        let other = br#"{"type":"a.b","id":"1","timestamp":"t","data":{}}"#;
        assert!(!has_the_envelope(other) && is_a_notification(other));
        for none in [&b"{}"[..], b"[]", b"", b"\xff", br#"{"id":1}"#] {
            assert!(!has_the_envelope(none) && !is_a_notification(none));
        }
    }

    #[test]
    fn no_body_has_too_many_pasts() {
        let mut count = 0;
        each_earlier("{\"é\": [1, 2], \"a\": \"x/y\"}\r\n".as_bytes(), |_| {
            count += 1;
            false
        });
        assert!((50..2_000).contains(&count), "{count}");
    }
}
