use proptest::prelude::*;

use super::*;

/// What becomes of something in each state, by event: not tried yet, under way or tried for the first time, for the second, and as often
/// as it may; once, where that makes no difference. A hyphen is a refusal. Nothing was sent again here, so that no such sending ends.
const PUSHES: &str = "
    event           Scheduled Pending   Queued    Sending                         Retry     Sent Failed  GivenUp Cancelled
    Enqueue         Queued    Queued    -         -                               Queued    -    -       -       -
    Spill           -         -         Pending   -                               -         -    -       -       -
    Claim           -         Sending   Sending   -                               -         -    -       -       -
    Defer           -         -         -         -                               -         -    -       -       -
    Hold            -         -         -         -                               -         -    -       -       -
    HandBack        -         -         -         Queued                          -         -    -       -       -
    Postpone        -         -         -         Scheduled                       -         -    -       -       -
    Succeed         -         -         -         Sent                            -         -    -       -       -
    FailRetryable   -         -         -         Retry/Retry/Retry/GivenUp       -         -    -       -       -
    FailPermanently -         -         -         Failed                          -         -    -       -       -
    Rescue          -         -         Pending   Pending/Pending/Pending/GivenUp -         -    -       -       -
    Abandon         -         -         -         -                               -         -    -       -       -
    Resend          -         -         -         -                               -         -    Pending Pending -
    Cancel          Cancelled Cancelled Cancelled -                               Cancelled -    -       -       -
    EndResend       -         -         -         -                               -         -    -       -       -
    Quarantine      GivenUp   GivenUp   GivenUp   GivenUp                         GivenUp   -    -       -       -
";

const NOTIFICATIONS: &str = "
    event           Scheduled Pending                     Queued                      Sending
    Enqueue         Queued    Queued                      -                           -
    Spill           -         -                           Pending/Retry/Retry/Retry   -
    Claim           -         Sending                     Sending                     -
    Defer           -         Scheduled/Retry/Retry/Retry Scheduled/Retry/Retry/Retry -
    Hold            -         Pending/Retry/Retry/Retry   Pending/Retry/Retry/Retry   -
    HandBack        -         -                           -                           Pending/Pending/Retry/Retry
    Postpone        -         -                           -                           Scheduled/Scheduled/Retry/Retry
    Succeed         -         -                           -                           Sent
    FailRetryable   -         -                           -                           Retry/Retry/Retry/GivenUp
    FailPermanently -         -                           -                           Failed
    Rescue          -         -                           Pending/Retry/Retry/Retry   Retry/Retry/Retry/GivenUp
    Abandon         GivenUp   GivenUp                     GivenUp                     -
    Resend          -         -                           -                           -
    Cancel          Cancelled Cancelled                   Cancelled                   -
    EndResend       -         -                           -                           -
    Quarantine      GivenUp   GivenUp                     GivenUp                     GivenUp

    event           Retry                       Sent  Failed GivenUp Cancelled
    Enqueue         Queued                      -     -      -       -
    Spill           -                           -     -      -       -
    Claim           Sending                     -     -      -       -
    Defer           Scheduled/Retry/Retry/Retry -     -      -       -
    Hold            Pending/Retry/Retry/Retry   -     -      -       -
    HandBack        -                           -     -      -       -
    Postpone        -                           -     -      -       -
    Succeed         -                           -     -      -       -
    FailRetryable   -                           -     -      -       -
    FailPermanently -                           -     -      -       -
    Rescue          -                           -     -      -       -
    Abandon         GivenUp                     -     -      -       -
    Resend          -                           Retry Retry  Retry   -
    Cancel          Cancelled                   -     -      -       -
    EndResend       -                           -     -      -       -
    Quarantine      GivenUp                     -     -      -       -
";

/// Attempts that either lane allows here.
const MAX: u32 = 4;

fn lanes() -> [(&'static str, LaneRules); 2] {
    [
        (PUSHES, LaneRules::pushes(MAX)),
        (NOTIFICATIONS, LaneRules::notifications(MAX - 1)),
    ]
}

fn tried(total: u32) -> Attempts {
    Attempts {
        total,
        before_resend: 0,
    }
}

#[test]
fn each_lane_has_its_table_whatever_the_state_and_the_event() {
    for (table, rules) in lanes() {
        let mut cells = 0;
        let mut states = Vec::new();
        for line in table.lines().filter(|line| !line.is_empty()) {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap();
            if first == "event" {
                let named = |name: &str| State::ALL.into_iter().find(|state| format!("{state:?}") == name);
                states = words.map(|name| named(name).unwrap()).collect();
                continue;
            }
            let event = Event::ALL.into_iter().find(|event| format!("{event:?}") == first);
            for (state, cell) in states.iter().zip(words) {
                let becomes = |total| match transition(*state, event.unwrap(), tried(total), &rules) {
                    Ok(next) => format!("{next:?}"),
                    Err(refused) => {
                        assert_eq!((refused.state, Some(refused.event)), (*state, event));
                        "-".to_owned()
                    }
                };
                let found = [0, 1, 2, MAX].map(becomes);
                let expected: Vec<&str> = cell.split('/').cycle().take(4).collect();
                assert_eq!(
                    found.each_ref().map(String::as_str)[..],
                    expected,
                    "{state:?} {first}, {rules:?}"
                );
                cells += 1;
            }
        }
        assert_eq!(cells, State::ALL.len() * Event::ALL.len(), "{rules:?}");
    }
}

#[test]
fn the_last_attempt_gives_up_and_what_is_sent_again_begins_at_zero() {
    for (_, rules) in lanes() {
        for event in [Event::FailRetryable, Event::Rescue] {
            let gives_up = |total, before_resend| {
                let attempts = Attempts { total, before_resend };
                transition(State::Sending, event, attempts, &rules) == Ok(State::GivenUp)
            };
            assert!(!gives_up(3, 0) && gives_up(4, 0), "{event:?}, {rules:?}");
            assert!(!gives_up(7, 4) && gives_up(8, 4), "{event:?}, {rules:?}");
        }
    }
}

#[test]
fn what_was_delivered_stays_so_when_it_is_not_sent_again_after_all() {
    for (_, rules) in lanes() {
        for state in State::ALL {
            for total in [4, 6] {
                let attempts = Attempts {
                    total,
                    before_resend: 4,
                };
                let waits = rules.resends_sent && matches!(state, State::Queued | State::Retry);
                let next = transition(state, Event::EndResend, attempts, &rules).ok();
                assert_eq!(
                    next,
                    waits.then_some(State::Sent),
                    "{state:?}, {attempts:?}, {rules:?}"
                );
            }
        }
    }
}

#[test]
fn what_has_ended_accepts_nothing_but_to_be_sent_again_and_what_was_cancelled_not_even_that() {
    for (_, rules) in lanes() {
        for state in State::ALL
            .into_iter()
            .filter(|state| state.status().is_terminal())
        {
            for event in Event::ALL {
                let again = match state {
                    State::Failed | State::GivenUp => event == Event::Resend,
                    State::Sent => event == Event::Resend && rules.resends_sent,
                    _ => false,
                };
                let next = transition(state, event, tried(1), &rules);
                assert_eq!(next.is_ok(), again, "{state:?} {event:?}, {rules:?}");
            }
        }
    }
}

#[test]
fn what_was_tried_before_never_waits_among_first_attempts_where_those_are_apart() {
    let rules = LaneRules::notifications(MAX - 1);
    for state in State::ALL {
        for event in Event::ALL {
            // One of them may be under way.
            let next = transition(state, event, tried(2), &rules);
            assert!(
                !matches!(next, Ok(State::Pending | State::Scheduled)),
                "{state:?} {event:?}"
            );
        }
    }
}

#[test]
fn a_state_is_read_back_from_what_is_stored_of_it() {
    for state in State::ALL {
        let (claimed, cancelled) = (state == State::Sending, state == State::Cancelled);
        assert_eq!(State::of(state.status(), claimed, cancelled), state);
    }
}

proptest! {
    /// However events arrive, there are at most `max_attempts` attempts until it is sent again by hand.
    #[test]
    fn attempts_are_bounded(events in proptest::collection::vec(proptest::sample::select(&Event::ALL[..]), 0..300)) {
        for (_, rules) in lanes() {
            let (mut state, mut attempts) = (State::Pending, Attempts::default());
            for event in &events {
                let mut counted = attempts;
                counted.total += u32::from(*event == Event::Claim);
                let Ok(next) = transition(state, *event, counted, &rules) else { continue };
                attempts = counted;
                match event {
                    Event::HandBack | Event::Postpone => attempts.total -= 1,
                    Event::Resend => attempts.before_resend = attempts.total,
                    _ => {}
                }
                state = next;
                prop_assert!(attempts.counted() <= rules.max_attempts);
                if state == State::Retry {
                    let next = Attempts { total: attempts.total + 1, ..attempts };
                    let failed = transition(State::Sending, Event::FailRetryable, next, &rules);
                    prop_assert_eq!(failed == Ok(State::GivenUp), rules.next_is_last(attempts));
                }
            }
        }
    }
}
