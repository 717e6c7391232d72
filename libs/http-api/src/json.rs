//! From the bytes of a body to the fields of a payload, with everything that cannot be read: its name, its place, and why.
//!
//! It deliberately judges no value: it tells JSON from what is none, and a form from another one.

use std::borrow::Cow;
use std::fmt;
use std::iter;
use std::marker::PhantomData;

use domain::nearest;
use http::HeaderMap;
use serde::de::value::{MapAccessDeserializer, MapDeserializer};
use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::value::RawValue;

use crate::problem::{FieldProblem, Problem};
use crate::{FieldCode, ProblemKind};

/// What becomes of fields that a payload does not have. A slip in the name of an optional one would else do something that its
/// caller never meant, such as to send at once what was to be sent later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling {
    /// They are refused.
    Strict,
    /// They are ignored, for a caller that says so: it may be ahead of the service.
    Lenient,
}

impl Handling {
    /// As the caller prefers (RFC 7240): `Prefer: handling=lenient`, or strict.
    pub fn preferred(headers: &HeaderMap) -> Self {
        let preferences = headers.get_all("prefer").into_iter();
        let lenient = preferences
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .filter_map(|preference| preference.split(';').next()?.split_once('='))
            .any(|(name, value)| {
                name.trim().eq_ignore_ascii_case("handling")
                    && value.trim().trim_matches('"').eq_ignore_ascii_case("lenient")
            });
        if lenient { Self::Lenient } else { Self::Strict }
    }
}

/// Wrong fields that are told, and looked for: each costs a look at all of the body.
const TOLD_MAX: usize = 100;

/// The fields of a body that cannot be read, or that its payload does not have.
#[derive(Debug, Default)]
#[must_use]
pub struct Wrong(Vec<FieldProblem>);

impl Wrong {
    /// What was made of the fields that could be read, or everything that is wrong with any of them.
    pub fn merge<T>(self, checked: Result<T, Problem>) -> Result<T, Problem> {
        match checked {
            checked if self.0.is_empty() => checked,
            Ok(_) => Err(Problem::fields(self.0)),
            Err(problem) if problem.kind() == ProblemKind::VALIDATION => {
                Err(Problem::fields(self.and(problem.into_errors())))
            }
            Err(problem) => Err(problem),
        }
    }

    /// With what is wrong with the values of the others. What could not be read looks to them as if it were missing.
    pub fn and(self, values: Vec<FieldProblem>) -> Vec<FieldProblem> {
        let mut all = self.0;
        let unread = all.len();
        for problem in values {
            if !all[..unread]
                .iter()
                .any(|known| root(&known.field) == root(&problem.field))
            {
                all.push(problem);
            }
        }
        all
    }
}

/// The field of a payload that a path leads into.
fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// Reads a payload, which is a JSON object, as far as it can be read.
///
/// # Errors
///
/// A [`ProblemKind::MALFORMED_BODY`] for what is not JSON, a [`ProblemKind::VALIDATION`] for what is no object, or lacks a field
/// without which there is no payload.
pub fn read<'a, T: Deserialize<'a>>(body: &'a [u8], handling: Handling) -> Result<(T, Wrong), Problem> {
    // An array would be read as the fields in the order of their declaration.
    if body.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::new(
            ProblemKind::VALIDATION,
            "the body must be an object, but is a list",
        ));
    }
    let fields = fields_of::<T>();
    match serde_json::from_slice(body) {
        Ok(payload) if handling == Handling::Lenient || knows_all(body, fields) => {
            Ok((payload, Wrong::default()))
        }
        _ => read_what_can_be(body, fields, handling),
    }
}

/// A value within a body that has to be an object. A list would be read as the fields in the order of their
/// declaration, which no caller means and no document tells.
#[derive(Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer.deserialize_map(Fields(PhantomData)).map(Object)
    }
}

/// Reads a body once more, field by field: too slow for the good ones.
fn read_what_can_be<'a, T: Deserialize<'a>>(
    body: &'a [u8],
    fields: &'static [&'static str],
    handling: Handling,
) -> Result<(T, Wrong), Problem> {
    let members: Members<'a> = serde_json::from_slice(body).map_err(|error| unreadable(body, &error))?;
    let (mut good, mut wrong) = (Vec::new(), Vec::new());
    for (name, value) in members.0 {
        let problem = if !fields.is_empty() && !fields.contains(&name.as_ref()) {
            match handling {
                Handling::Lenient => continue,
                Handling::Strict => unknown(&name, fields),
            }
        } else if good.iter().any(|(known, _): &(Cow<'a, str>, _)| *known == name) {
            FieldProblem::new(name.into_owned(), "is there twice").coded(FieldCode::Duplicate)
        } else if let Some(problem) = refused::<T>(&name, value) {
            problem
        } else {
            good.push((name, value));
            continue;
        };
        wrong.push(at(problem, body, value));
        if wrong.len() == TOLD_MAX {
            return Err(Problem::fields(wrong));
        }
    }
    let payload = MapDeserializer::new(good.into_iter());
    match T::deserialize(payload) {
        Ok(payload) => Ok((payload, Wrong(wrong))),
        Err(error) if wrong.is_empty() => Err(Problem::new(ProblemKind::VALIDATION, said(&error))),
        Err(_) => Err(Problem::fields(wrong)),
    }
}

fn unknown(name: &str, fields: &[&str]) -> FieldProblem {
    let question = nearest::question(name, fields.iter().copied());
    FieldProblem::new(name.to_owned(), format!("is no field of this request{question}")).unknown_field(fields)
}

/// What is wrong with one field, if it is that the value has another form than it should.
fn refused<'a, T: Deserialize<'a>>(name: &str, value: &'a RawValue) -> Option<FieldProblem> {
    let alone = MapDeserializer::new(iter::once((name, value)));
    let error = serde_path_to_error::deserialize::<_, T>(alone).err()?;
    let (path, error) = (error.path().to_string(), error.into_inner());
    // The path of a field that is missing is the body, and the others are looked at by themselves.
    path.starts_with(name)
        .then(|| FieldProblem::new(path, said(&error)).coded(FieldCode::of_parser(&error)))
}

/// The error without its place, which would count from the beginning of the value.
fn said(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text
        .rfind(" at line ")
        .map_or(text.as_str(), |place| &text[..place]);
    plain(text)
}

/// What a parser expected, in words that are not its own: `must be a whole number, but is the text "5"`.
pub(crate) fn plain(text: &str) -> String {
    let Some((found, wanted)) = text.rsplit_once(", expected ") else {
        return alone(text).to_owned();
    };
    // What was found may quote the caller, whose words stay as they are.
    let wanted = named_wanted(wanted);
    for begin in ["invalid type: ", "invalid value: "] {
        if let Some(found) = found.strip_prefix(begin) {
            return format!("must be {wanted}, but is {}", named(found));
        }
    }
    match found.strip_prefix("unknown variant ") {
        Some(found) => format!(
            "must be {}, but is {}",
            wanted.replace('`', ""),
            found.trim_matches('`')
        ),
        None => format!("{found}, expected {wanted}"),
    }
}

/// What a parser found, as it calls it, in words that are not its own.
fn named(found: &str) -> String {
    const KINDS: [(&str, &str); 4] = [
        ("string ", "the text "),
        ("integer ", "the number "),
        ("floating point ", "the number "),
        ("boolean ", ""),
    ];
    let mut kinds = KINDS.into_iter();
    let known = kinds.find_map(|(kind, ours)| {
        let value = found.strip_prefix(kind)?;
        Some(format!("{ours}{}", value.trim_matches('`')))
    });
    known.unwrap_or_else(|| match found {
        "map" => "an object".to_owned(),
        "sequence" => "a list".to_owned(),
        found => found.to_owned(),
    })
}

/// What a parser expected, as it calls it, in words that are not its own.
fn named_wanted(wanted: &str) -> &str {
    match wanted {
        "i64" | "u64" | "i32" | "u32" => "a whole number",
        "a sequence" => "a list",
        "a string" => "a text",
        "a map" => "an object",
        wanted => wanted,
    }
}

/// What parsers say of a value without telling what they expected.
fn alone(text: &str) -> &str {
    match text {
        "invalid digit found in string" => "must be a whole number",
        "premature end of input" | "input contains invalid characters" => {
            "must be a time such as 2026-11-21T12:00:00Z"
        }
        text if text.starts_with("UUID parsing failed: ") => "must be a UUID",
        text => text,
    }
}

/// With the place of `value`, which is a part of `body`.
fn at(problem: FieldProblem, body: &[u8], value: &RawValue) -> FieldProblem {
    let offset = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    let before = body.get(..offset).unwrap_or_default();
    let line_begins = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    FieldProblem {
        line: Some(before.iter().filter(|byte| **byte == b'\n').count() + 1),
        column: Some(before.len() - line_begins + 1),
        ..problem
    }
}

/// Why a body is no object at all.
fn unreadable(body: &[u8], error: &serde_json::Error) -> Problem {
    let (kind, detail, of_body) = if error.is_data() {
        let said = said(error);
        (ProblemKind::VALIDATION, format!("the body {said}"), said)
    } else {
        let detail = if body.trim_ascii().is_empty() {
            String::from("the body is empty")
        } else {
            format!("the body is not JSON: {error}")
        };
        (ProblemKind::MALFORMED_BODY, detail, error.to_string())
    };
    Problem::new(kind, detail).with_errors(vec![FieldProblem {
        line: Some(error.line()),
        column: Some(error.column()),
        ..FieldProblem::new("", of_body).coded(FieldCode::of_parser(error))
    }])
}

/// The members of an object in their order, each with what it holds as it stands in the body.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A name as it stands in the body.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for All<'a> {
            type Value = Members<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'a>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(All(PhantomData))
    }
}

/// Whether every member of an object is one of `fields`. Without fields there is nothing to compare with.
fn knows_all(body: &[u8], fields: &'static [&'static str]) -> bool {
    struct Known(&'static [&'static str]);

    impl<'de> Visitor<'de> for Known {
        type Value = bool;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
            let mut known = true;
            while let Some((Name(name), IgnoredAny)) = map.next_entry()? {
                known &= self.0.contains(&name.as_ref());
            }
            Ok(known)
        }
    }

    let mut reader = serde_json::Deserializer::from_slice(body);
    fields.is_empty() || reader.deserialize_map(Known(fields)).unwrap_or(false)
}

/// The names of the fields of `T`, which its derived reader asks for; none when it is no plain struct.
pub(crate) fn fields_of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    struct Asked;

    impl<'de> Deserializer<'de> for Asked {
        type Error = Names;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Names> {
            Err(Names(&[]))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Names> {
            Err(Names(fields))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    T::deserialize(Asked).err().map_or(&[], |Names(fields)| fields)
}

/// What [`fields_of`] asks for comes back as an error: nothing is read.
#[derive(Debug)]
struct Names(&'static [&'static str]);

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("only asked for its fields")
    }
}

impl std::error::Error for Names {}

impl de::Error for Names {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Self(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", expecting = "an object")]
    struct Payload {
        push_key: Option<String>,
        message: Option<String>,
        tags: Option<Vec<String>>,
    }

    fn refused(body: &str) -> serde_json::Value {
        let read = read::<Payload>(body.as_bytes(), Handling::Strict);
        let whole = read.and_then(|(payload, wrong)| wrong.merge(Ok(payload)));
        whole.unwrap_err().example()
    }

    fn fields(problem: &serde_json::Value) -> Vec<&str> {
        let errors = problem["errors"].as_array().unwrap();
        errors
            .iter()
            .map(|error| error["field"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn every_field_of_the_wrong_type_is_named_with_its_place() {
        let problem = refused("{\"message\": [],\n \"pushKey\": 5, \"tags\": [\"a\", {}]}");
        assert_eq!(fields(&problem), ["message", "pushKey", "tags[1]"]);
        let error = &problem["errors"][1];
        let place = (error["line"].as_u64(), error["column"].as_u64());
        assert_eq!(place, (Some(2), Some(13)));
        assert_eq!(error["detail"], "must be a text, but is the number 5");
    }

    #[test]
    fn every_refusal_of_a_form_begins_with_what_it_must_be() {
        for (parsers, ours) in [
            (
                "unknown variant `LONG`, expected `SHORT` or `DAY`",
                "must be SHORT or DAY, but is LONG",
            ),
            (
                "unknown variant `x`, expected one of `A`, `B`, `C`",
                "must be one of A, B, C, but is x",
            ),
            (
                r#"invalid type: string "5000", expected u64"#,
                r#"must be a whole number, but is the text "5000""#,
            ),
            (
                "invalid type: sequence, expected a map",
                "must be an object, but is a list",
            ),
            (
                "invalid type: boolean `true`, expected a string",
                "must be a text, but is true",
            ),
            (
                "invalid type: null, expected a string",
                "must be a text, but is null",
            ),
            ("invalid digit found in string", "must be a whole number"),
            (
                r#"invalid type: string "a, expected u64, expected a map", expected a sequence"#,
                r#"must be a list, but is the text "a, expected u64, expected a map""#,
            ),
        ] {
            assert_eq!(plain(parsers), ours);
        }
    }

    #[test]
    fn what_is_wrong_with_the_values_is_told_with_what_could_not_be_read() {
        let (payload, wrong) =
            read::<Payload>(br#"{"pushKey": 5, "message": ""}"#, Handling::Strict).unwrap();
        assert_eq!((payload.push_key, payload.message.as_deref()), (None, Some("")));
        assert!(payload.tags.is_none());
        let missing = ["pushKey", "message"].map(|field| FieldProblem::new(field, "must not be empty"));
        let problem = wrong
            .merge::<()>(Err(Problem::fields(missing.into())))
            .unwrap_err();
        let problem = problem.example();
        assert_eq!(fields(&problem), ["pushKey", "message"]);
        assert_eq!(problem["detail"], "2 fields cannot be accepted");
        assert!(
            problem["errors"][0]["detail"]
                .as_str()
                .unwrap()
                .starts_with("must be a text")
        );
    }

    #[test]
    fn a_field_of_which_a_part_cannot_be_read_is_not_called_missing_as_well() {
        let (_, wrong) = read::<Payload>(br#"{"tags": ["a", 5]}"#, Handling::Strict).unwrap();
        let missing = vec![FieldProblem::new("tags", "must not be empty")];
        let problem = wrong.merge::<()>(Err(Problem::fields(missing))).unwrap_err();
        assert_eq!(fields(&problem.example()), ["tags[1]"]);
    }

    /// Each wrong member costs a look at all of the body.
    #[test]
    fn a_body_of_nothing_but_wrong_members_is_refused_after_the_first_hundred() {
        let members: Vec<String> = (0..200_000).map(|number| format!("\"m{number}\":1")).collect();
        let problem = refused(&format!("{{{}}}", members.join(",")));
        assert_eq!(problem["errors"].as_array().unwrap().len(), TOLD_MAX);
    }

    #[test]
    fn what_is_not_json_is_shown_with_its_place() {
        for body in [
            "",
            "{",
            "{\"message\": \"a",
            "{} x",
            "\u{feff}{}",
            "{\"message\": tru}",
        ] {
            let problem = refused(body);
            assert_eq!(problem["type"], "urn:postrider:problem:malformed-body", "{body}");
            assert!(problem["errors"][0]["line"].is_u64(), "{problem}");
        }
        assert_eq!(refused(" ")["detail"], "the body is empty");
    }

    #[test]
    fn json_that_is_no_object_is_refused() {
        for body in ["[\"IOS\"]", " []", "\"IOS\"", "5", "null"] {
            let problem = refused(body);
            assert!(
                problem["detail"].as_str().unwrap().contains("object"),
                "{problem}"
            );
        }
        let problem = refused("5");
        let detail = &problem["errors"][0]["detail"];
        assert_eq!(detail, "must be an object, but is the number 5");
        assert_eq!(
            problem["detail"],
            "the body must be an object, but is the number 5"
        );
    }

    #[test]
    fn a_list_in_the_place_of_an_object_is_refused_wherever_it_stands() {
        #[derive(Debug, Deserialize)]
        struct Many {
            payloads: Vec<Object<Payload>>,
        }
        let read = |body: &'static str| {
            let (many, wrong) = read::<Many>(body.as_bytes(), Handling::Strict)?;
            wrong.merge(Ok(many))
        };
        let many = read(r#"{"payloads": [{"message": "a"}]}"#).unwrap();
        assert_eq!(many.payloads[0].0.message.as_deref(), Some("a"));
        let problem = read(r#"{"payloads": [["key", "a"]]}"#).unwrap_err().example();
        assert_eq!(fields(&problem), ["payloads[0]"]);
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.contains("must be an object, but is a list"), "{detail}");
    }

    #[test]
    fn a_field_given_twice_is_refused() {
        let problem = refused(r#"{"message": "a", "message": "b"}"#);
        assert_eq!(fields(&problem), ["message"]);
        assert_eq!(problem["errors"][0]["detail"], "is there twice");
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_with_what_may_be_meant_unless_the_caller_prefers_otherwise() {
        let body = r#"{"message": "a", "pushKye": "k", "priority": {"high": true}}"#;
        let problem = refused(body);
        assert_eq!(fields(&problem), ["pushKye", "priority"]);
        assert_eq!(
            problem["errors"][0]["detail"],
            "is no field of this request; did you mean pushKey?"
        );
        let (payload, wrong) = read::<Payload>(body.as_bytes(), Handling::Lenient).unwrap();
        assert_eq!(wrong.merge(Ok(payload)).unwrap().message.as_deref(), Some("a"));
    }

    #[test]
    fn a_caller_says_that_it_may_be_ahead() {
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(http::HeaderName::from_static("prefer"), value.parse().unwrap())])
        };
        assert_eq!(Handling::preferred(&HeaderMap::new()), Handling::Strict);
        assert_eq!(Handling::preferred(&headers("handling=strict")), Handling::Strict);
        assert_eq!(
            Handling::preferred(&headers("wait=5; handling=lenient")),
            Handling::Strict,
            "a parameter of another preference"
        );
        for value in [
            "handling=lenient",
            "respond-async, Handling = \"Lenient\"; wait=5",
        ] {
            assert_eq!(Handling::preferred(&headers(value)), Handling::Lenient, "{value}");
        }
    }
}
