//! Reads JSON without losing what a parser forgets.

use super::Json;

/// Values within values, at most: deeper ones are of no interest here, and the parser calls itself.
const DEPTH_MAX: usize = 100;

/// The document that these bytes are; `None` when they are none, or too deep a one.
pub(super) fn parse(bytes: &[u8]) -> Option<Json> {
    let mut parser = Parser {
        text: std::str::from_utf8(bytes).ok()?,
        at: 0,
    };
    let value = parser.value(0)?;
    parser.blanks();
    (parser.at == parser.text.len()).then_some(value)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, depth: usize) -> Option<Json> {
        self.blanks();
        if depth > DEPTH_MAX {
            return None;
        }
        match self.peek()? {
            b'{' => {
                let members = self.items((b'{', b'}'), |parser| {
                    parser.blanks();
                    let name = parser.string()?;
                    parser.take(b':')?;
                    Some((name, parser.value(depth + 1)?))
                });
                members.map(Json::Object)
            }
            b'[' => self
                .items((b'[', b']'), |parser| parser.value(depth + 1))
                .map(Json::Array),
            b'"' => self.string().map(Json::Text),
            _ => self.plain(),
        }
    }

    fn items<T>(
        &mut self,
        (open, close): (u8, u8),
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        self.take(open)?;
        let mut items = Vec::new();
        if self.take(close).is_some() {
            return Some(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close).is_some() {
                return Some(items);
            }
            self.take(b',')?;
        }
    }

    /// The end of a text is found here; what is in it is read by a parser that knows all escapes.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    fn plain(&mut self) -> Option<Json> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|character: char| !(character.is_ascii_alphanumeric() || "+-.".contains(character)))
            .unwrap_or(rest.len());
        let plain = &rest[..end];
        serde_json::from_str::<serde_json::Value>(plain).ok()?;
        self.at += end;
        Some(Json::Plain(plain.to_owned()))
    }
}
