//! Reading and writing of `traceparent`.

use telemetry::traceparent;

use crate::shared;

const INBOUND: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn only_well_formed_texts_are_valid() {
    for valid in [
        INBOUND,
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later",
    ] {
        assert!(traceparent::is_valid(valid), "{valid}");
    }
    for invalid in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
        "00-0af7651916cd43dd8448eb211c80319é-b7ad6b7169203331-01",
    ] {
        assert!(!traceparent::is_valid(invalid), "{invalid}");
    }
}

#[test]
fn a_text_that_no_message_would_carry_on_is_not_taken() {
    let of = |bytes: usize| {
        let begun = format!("01{}-", &INBOUND[2..]);
        format!("{begun}{}", "x".repeat(bytes - begun.len()))
    };
    assert!(traceparent::is_valid(&of(128)));
    assert!(!traceparent::is_valid(&of(129)));
}

#[test]
fn only_the_lowest_flag_tells_whether_a_trace_is_recorded() {
    for (flags, is_sampled) in [
        ("00", false),
        ("01", true),
        ("02", false),
        ("03", true),
        ("ff", true),
    ] {
        let text = format!("{}{flags}", &INBOUND[..53]);
        assert_eq!(traceparent::is_sampled(&text), is_sampled, "{text}");
    }
    for broken in ["", "00", &INBOUND[..54]] {
        assert!(!traceparent::is_sampled(broken), "{broken}");
    }
}

#[test]
fn span_goes_on_with_the_trace_of_its_remote_parent() {
    shared();
    let span = tracing::info_span!("receive");
    traceparent::set_parent(&span, INBOUND);

    let outbound = span.in_scope(traceparent::current).expect("traces are on");

    assert!(traceparent::is_valid(&outbound), "{outbound}");
    assert_eq!(outbound[..36], INBOUND[..36], "the trace id stays");
    assert_ne!(outbound[36..52], INBOUND[36..52], "the span id is the span's own");
    assert!(
        outbound.ends_with("-01"),
        "the caller's decision to sample stays: {outbound}"
    );
}

#[test]
fn trace_that_the_caller_does_not_sample_is_carried_on_unsampled() {
    shared();
    let span = tracing::info_span!("receive");
    traceparent::set_parent(&span, &format!("{}00", &INBOUND[..53]));

    let outbound = traceparent::of(&span).expect("traces are on");

    assert_eq!(outbound[..36], INBOUND[..36]);
    assert!(outbound.ends_with("-00"), "{outbound}");
}

#[test]
fn broken_traceparent_leaves_the_span_alone() {
    shared();
    let span = tracing::info_span!("receive");
    traceparent::set_parent(&span, "nonsense");
    assert!(traceparent::of(&span).is_some());
}

#[test]
fn without_traces_there_is_no_traceparent() {
    tracing::subscriber::with_default(tracing_subscriber::registry(), || {
        let span = tracing::info_span!("receive");
        traceparent::set_parent(&span, INBOUND);
        assert_eq!(span.in_scope(traceparent::current), None);
    });
}
