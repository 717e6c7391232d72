//! The two levels of a shutdown, and the signals that request them.

use std::process::Command;

use lifecycle::Shutdown;

use crate::soon;

/// Sends a signal to this very process.
fn signal_self(name: &str) {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(std::process::id().to_string())
        .status();
    assert!(status.expect("kill can be run").success());
}

// The only test that sends signals: every `on_signals` of the process would hear them.
#[tokio::test]
async fn first_signal_cancels_and_second_ends_the_grace_period() {
    let shutdown = Shutdown::on_signals().unwrap();

    signal_self("TERM");
    soon("cancelled", shutdown.cancelled()).await;
    assert!(!shutdown.is_hurried());

    signal_self("INT");
    soon("hurried", shutdown.hurried()).await;
}

#[tokio::test]
async fn child_follows_its_parent_but_not_the_other_way_round() {
    let parent = Shutdown::new();
    let (first, second) = (parent.child(), parent.child());

    first.trigger();
    assert!(first.is_cancelled());
    assert!(!parent.is_cancelled());
    assert!(!second.is_cancelled());

    parent.hurry();
    soon("cancelled", second.cancelled()).await;
    soon("hurried", second.hurried()).await;
    assert!(second.token().is_cancelled());
}
