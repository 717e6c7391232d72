//! Reading and writing.

use super::*;

const STYLE: Style = Style {
    layout: Layout::Compact,
    data: Layout::Compact,
    escapes: Escapes::None,
};

fn rewritten(text: &str, style: Style) -> String {
    Json::parse(text.as_bytes()).unwrap().write(style)
}

#[test]
fn order_and_numbers_survive() {
    let text = r#"{"z":1.10,"a":[1e5,-0,1e999,true,null,"ü\n\u0001"],"a":1,"empty":{},"none":[]}"#;
    assert_eq!(rewritten(text, STYLE), text);
    let blanks = " { \"z\" : [ 1.10 , { } ] , \"a\" : null }\r\n\t";
    assert_eq!(rewritten(blanks, STYLE), r#"{"z":[1.10,{}],"a":null}"#);
}

#[test]
fn layouts_are_those_of_common_serialisers() {
    let text = r#"{"a":[1,2],"b":{}}"#;
    let spaced = Style {
        layout: Layout::Spaced,
        ..STYLE
    };
    assert_eq!(rewritten(text, spaced), r#"{"a": [1, 2], "b": {}}"#);
    let lines = Style {
        layout: Layout::Lines(2),
        ..STYLE
    };
    assert_eq!(
        rewritten(text, lines),
        "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}"
    );
    let data = Style {
        data: Layout::Spaced,
        ..STYLE
    };
    assert_eq!(
        rewritten(r#"{"id":"1","data":{"a":1,"data":{"b":2}}}"#, data),
        r#"{"id":"1","data":{"a": 1, "data": {"b": 2}}}"#
    );
}

#[test]
fn escapes_are_those_of_common_serialisers() {
    let written = |escapes| rewritten(r#""ü<é/\ud83e\udd80""#, Style { escapes, ..STYLE });
    assert_eq!(written(Escapes::None), r#""ü<é/🦀""#);
    assert_eq!(written(Escapes::Ascii), r#""\u00fc<\u00e9/\ud83e\udd80""#);
    assert_eq!(
        written(Escapes::AsciiAndHtml),
        r#""\u00FC\u003C\u00E9/\uD83E\uDD80""#
    );
    assert_eq!(written(Escapes::Html), r#""ü\u003cé/🦀""#);
    assert_eq!(written(Escapes::Slashes), r#""ü<é\/🦀""#);
}

#[test]
fn what_is_no_json_is_none() {
    let deep = "[".repeat(100_000);
    for text in [
        "",
        "{",
        r#"{"a" 1}"#,
        "[1,]",
        r#"{"a":1,}"#,
        r#"{"a":[1,{"b":tru}]}"#,
        "\u{feff}1",
        "01",
        "nul",
        r#""\x""#,
        "\"\\",
        "1 2",
        deep.as_str(),
    ] {
        assert_eq!(Json::parse(text.as_bytes()), None);
    }
}

#[test]
fn members_can_be_put_in_order() {
    let json = Json::parse(br#"{"timestamp":1,"data":{"b":1,"a":2},"type":2,"id":3}"#).unwrap();
    let led = json.led_by(&["id", "type", "timestamp", "data"]);
    assert_eq!(
        led.write(STYLE),
        r#"{"id":3,"type":2,"timestamp":1,"data":{"b":1,"a":2}}"#
    );
    assert_eq!(
        json.sorted().write(STYLE),
        r#"{"data":{"a":2,"b":1},"id":3,"timestamp":1,"type":2}"#
    );
}
