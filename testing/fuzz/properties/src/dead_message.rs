//! The headers of dead-lettered messages: whatever is in them becomes JSON that can be written and read again, and the
//! first death is one of those that are listed.

use arbitrary::{Result, Unstructured};
use lapin::types::{AMQPValue, DecimalValue, FieldTable, LongString};
use serde_json::Value;

/// Levels of tables in tables.
const DEPTH: usize = 16;

/// Checks the property.
pub fn check(input: &[u8]) {
    let Ok(headers) = table(&mut Unstructured::new(input), DEPTH) else {
        return;
    };
    let (shown, reason, queue, count) = broker::fuzzing::dead_letter(&headers);
    let text = shown.to_string();
    assert_eq!(
        serde_json::from_str::<Value>(&text).expect("JSON").to_string(),
        text
    );
    assert_eq!(
        shown.as_object().map(serde_json::Map::len),
        Some(headers.inner().len())
    );
    let deaths = shown["x-death"].as_array().map(Vec::as_slice).unwrap_or_default();
    let listed = |name: &str, told: &Option<String>| {
        deaths.iter().any(|death| death[name].as_str() == told.as_deref())
    };
    if deaths.is_empty() {
        assert_eq!(count, 0);
        assert_eq!(reason.as_deref(), shown["x-first-death-reason"].as_str());
    } else {
        assert!(listed("reason", &reason) && listed("queue", &queue));
    }
}

fn table(input: &mut Unstructured<'_>, depth: usize) -> Result<FieldTable> {
    const NAMES: [&str; 8] = [
        "x-death",
        "x-first-death-reason",
        "x-first-death-queue",
        "reason",
        "queue",
        "count",
        "traceparent",
        "\0",
    ];
    let mut table = FieldTable::default();
    for _ in 0..input.int_in_range(0..=6)? {
        let name = *input.choose(&NAMES)?;
        table.insert(name.into(), value(input, depth)?);
    }
    Ok(table)
}

fn value(input: &mut Unstructured<'_>, depth: usize) -> Result<AMQPValue> {
    Ok(match input.int_in_range(0..=if depth == 0 { 7 } else { 11 })? {
        0 => AMQPValue::Boolean(input.arbitrary()?),
        1 => AMQPValue::LongLongInt(input.arbitrary()?),
        2 => AMQPValue::Double(input.arbitrary()?),
        3 => AMQPValue::Float(input.arbitrary()?),
        4 => AMQPValue::DecimalValue(DecimalValue {
            scale: input.arbitrary()?,
            value: input.arbitrary()?,
        }),
        5 => AMQPValue::Timestamp(input.arbitrary()?),
        6 => AMQPValue::LongString(LongString::from(input.arbitrary::<&[u8]>()?)),
        7 => AMQPValue::LongString((*input.choose(&["rejected", "push.ready", "expired"])?).into()),
        8 => AMQPValue::Void,
        9 => AMQPValue::FieldTable(table(input, depth - 1)?),
        _ => {
            let values = (0..input.int_in_range(0..=4)?).map(|_| value(input, depth - 1));
            AMQPValue::FieldArray(values.collect::<Result<Vec<_>>>()?.into())
        }
    })
}
