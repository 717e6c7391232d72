//! The promise of the pacer by the real clock. Nothing here depends on how fast the machine is.

use std::time::{Duration, Instant};

use http_client::{Pacer, PacerError};

const DELAY: Duration = Duration::from_millis(4);

/// Keeps the thread busy, as a preempted thread would be.
fn block_thread(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

async fn start(pacer: &mut Pacer) -> Instant {
    pacer.turn().await.start().at
}

#[tokio::test]
async fn starts_are_never_closer_than_the_delay_even_when_the_thread_is_blocked() {
    let mut pacer = Pacer::new(DELAY).unwrap();
    let mut last = None;
    for round in 0..300_u32 {
        let turn = pacer.turn().await;
        // Between the decision and the start: the case that the limiter alone would get wrong.
        if round % 7 == 0 {
            block_thread(Duration::from_micros(u64::from(round % 5) * 1_500));
        }
        let start = turn.start();
        if round % 11 == 0 {
            block_thread(Duration::from_millis(6));
        }
        if let Some(last) = last {
            let gap = start.at.duration_since(last);
            assert!(gap >= DELAY, "round {round}: {gap:?}");
            assert_eq!(start.gap, Some(gap));
        }
        last = Some(start.at);
    }
}

#[tokio::test]
async fn idleness_allows_no_burst() {
    let mut pacer = Pacer::new(DELAY).unwrap();
    start(&mut pacer).await;
    block_thread(DELAY * 10);
    let mut last = start(&mut pacer).await;
    for _ in 0..10 {
        let next = start(&mut pacer).await;
        assert!(next - last >= DELAY);
        last = next;
    }
}

#[tokio::test]
async fn a_cancelled_wait_leaves_its_turn_to_the_next_call() {
    let mut pacer = Pacer::new(DELAY).unwrap();
    let first = start(&mut pacer).await;
    for _ in 0..20 {
        tokio::select! {
            biased;
            _ = pacer.turn() => {}
            () = tokio::task::yield_now() => {}
        }
    }
    let second = tokio::time::timeout(Duration::from_secs(10), start(&mut pacer))
        .await
        .unwrap();
    assert!(second - first >= DELAY);
}

#[tokio::test]
async fn a_hold_delays_the_next_start() {
    let mut pacer = Pacer::new(DELAY).unwrap();
    let first = start(&mut pacer).await;
    let handed_over = first + Duration::from_millis(30);
    pacer.hold(handed_over);
    assert!(start(&mut pacer).await >= handed_over + DELAY);
}

#[tokio::test]
async fn a_successor_starts_only_after_the_forbidden_time() {
    let mut pacer = Pacer::new(DELAY).unwrap();
    let lease_end = Instant::now() + Duration::from_millis(40);
    pacer.forbid_before(lease_end);
    assert!(start(&mut pacer).await >= lease_end);
}

#[tokio::test]
async fn other_tasks_run_while_a_turn_is_awaited() {
    let mut pacer = Pacer::new(Duration::from_millis(50)).unwrap();
    start(&mut pacer).await;
    let other = tokio::spawn(async { Instant::now() });
    let second = start(&mut pacer).await;
    assert!(other.await.unwrap() < second);
}

#[tokio::test]
async fn a_zero_delay_is_an_error() {
    assert!(matches!(Pacer::new(Duration::ZERO), Err(PacerError::ZeroDelay)));
}

#[test]
fn a_pacer_outside_a_runtime_is_an_error() {
    assert!(matches!(Pacer::new(DELAY), Err(PacerError::NoRuntime(_))));
}
