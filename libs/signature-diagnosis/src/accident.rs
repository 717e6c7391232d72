//! What happens to secrets, signatures and bodies, by its name.

use std::fmt;

/// What a secret would have to be freed of to fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAccident {
    /// Quotation marks around it, as an `.env` file or a shell leaves them.
    Quoted,
    /// Blanks or line ends within it.
    Blanks,
    /// `whsec_` is missing.
    NoPrefix,
    /// Written with the URL-safe alphabet of base64.
    UrlSafe,
    /// The equals signs at its end are missing.
    NoPadding,
    /// Written in hexadecimal.
    Hexadecimal,
}

/// How a signature is written instead of `v1,` and base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignatureAccident {
    /// In hexadecimal.
    Hexadecimal,
    /// With the URL-safe alphabet, or without padding.
    UrlSafe,
    /// Without `v1,` before it, or with something else.
    NoVersion,
    /// Several, with something else than a blank between them.
    Separator,
}

/// What keyed the signature instead of the bytes that the secret's base64 stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAccident {
    /// The text of the secret, with `whsec_`.
    WholeText,
    /// The text after `whsec_`, not decoded.
    TextAfterPrefix,
}

/// What was signed instead of identifier, timestamp and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentAccident {
    /// The body alone.
    BodyAlone,
    /// Timestamp and body, without the identifier.
    NoId,
    /// Timestamp, identifier and body, in this order.
    Swapped,
}

/// What was done to a body on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyAccident {
    /// A line end, or other blanks, were added at an end.
    BlanksAdded,
    /// The line end at its end is gone.
    NewlineRemoved,
    /// A byte order mark was put before it.
    MarkAdded,
    /// Line ends became CR LF.
    LinesBecameCrLf,
    /// Line ends became LF.
    LinesBecameLf,
    /// The bytes were read as Latin-1 or Windows-1252 and written as UTF-8.
    ReadAsLatin1,
    /// It was written as UTF-16.
    WrittenAsUtf16,
    /// It stands as a text within JSON.
    Quoted,
    /// It stands as base64, as some gateways hand bodies on.
    Base64,
    /// It was parsed as JSON and written again: with other blanks.
    Respaced,
    /// The same with members in another order.
    Reordered,
    /// The same with other escapes for the same characters.
    Reescaped,
}

impl fmt::Display for SecretAccident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Quoted => "has quotation marks around it",
            Self::Blanks => "has blanks or line ends within it",
            Self::NoPrefix => "lacks whsec_ at its start",
            Self::UrlSafe => "is written in the URL-safe alphabet of base64 (- and _ for + and /)",
            Self::NoPadding => "lacks the equals signs at its end",
            Self::Hexadecimal => "is written in hexadecimal",
        })
    }
}

impl fmt::Display for SignatureAccident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hexadecimal => "is written in hexadecimal instead of base64",
            Self::UrlSafe => "is written in another base64 (URL-safe, or without padding)",
            Self::NoVersion => "does not stand after \"v1,\"",
            Self::Separator => "is not separated from the others by one blank",
        })
    }
}

impl fmt::Display for KeyAccident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WholeText => "the text of the secret, whsec_ included",
            Self::TextAfterPrefix => "the text after whsec_ without decoding it",
        })
    }
}

impl fmt::Display for ContentAccident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BodyAlone => "the body alone",
            Self::NoId => "{timestamp}.{body}, without the id",
            Self::Swapped => "{timestamp}.{id}.{body}, with id and timestamp exchanged",
        })
    }
}

impl fmt::Display for BodyAccident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BlanksAdded => "a line end or blanks were added before or after it",
            Self::NewlineRemoved => "the line end at its end was removed",
            Self::MarkAdded => "a byte order mark (BOM) was put before it",
            Self::LinesBecameCrLf => "its line ends were turned into CR LF",
            Self::LinesBecameLf => "its line ends were turned from CR LF into LF",
            Self::ReadAsLatin1 => "its bytes were read as Latin-1 (or Windows-1252) and written as UTF-8",
            Self::WrittenAsUtf16 => "it was written as UTF-16",
            Self::Quoted => "it was put into JSON as a text",
            Self::Base64 => "it was encoded as base64",
            Self::Respaced => "it was parsed as JSON and written again with other blanks",
            Self::Reordered => "it was parsed as JSON and written again with its members in another order",
            Self::Reescaped => "it was parsed as JSON and written again with other escapes",
        })
    }
}

impl BodyAccident {
    /// What keeps it from happening.
    pub(super) fn mend(self) -> &'static str {
        match self {
            Self::Respaced | Self::Reordered | Self::Reescaped => {
                "check the signature over the bytes as they arrived, before anything parses them; in most frameworks \
                 that is the raw body, which has to be read before the JSON middleware"
            }
            Self::BlanksAdded | Self::NewlineRemoved | Self::LinesBecameCrLf | Self::LinesBecameLf => {
                "hand the bytes on as they are: an editor, `echo` (use printf %s), a here-document or a text mode of a \
                 file changes line ends"
            }
            Self::MarkAdded | Self::WrittenAsUtf16 => {
                "write the body to a file as bytes; editors and PowerShell's > add marks or turn text into UTF-16"
            }
            Self::ReadAsLatin1 => "take the body as bytes, or decode and encode it as UTF-8 throughout",
            Self::Quoted => "check the text that the JSON holds and not the JSON around it",
            Self::Base64 => {
                "decode the body before checking it; gateways say so with a field such as isBase64Encoded"
            }
        }
    }
}
