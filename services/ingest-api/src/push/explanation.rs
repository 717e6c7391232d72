//! One sentence on where a push stands, for people who do not know its states.

use chrono::{DateTime, Utc};
use domain::push::{ErrorType, PushStatus};
use domain::reason::PushReason;
use store::push::{AttemptView, PushView};

/// Where `push` stands at `now`, in a sentence. `max_attempts` is what the configuration allows now.
pub(crate) fn explain(push: &PushView, max_attempts: u32, now: DateTime<Utc>) -> String {
    match push.status {
        PushStatus::Scheduled => match push.next_attempt_at {
            Some(at) if at > now => format!("Waits for its sending window, which opens at {}.", time(at)),
            _ => "Its sending window is open; waits to be put into the queue.".to_owned(),
        },
        PushStatus::Pending => pending(push),
        PushStatus::InMemory => in_memory(push, now),
        PushStatus::Retry => retry(push, max_attempts, now),
        PushStatus::Sent if push.attempts > 1 => {
            format!("Swrve accepted it at attempt {}.", push.attempts)
        }
        PushStatus::Sent => "Swrve accepted it.".to_owned(),
        PushStatus::Failed => {
            format!(
                "Will not be sent: attempt {} failed {}.",
                push.attempts,
                last_cause(push)
            )
        }
        PushStatus::GivenUp if push.reason == Some(PushReason::Cancelled) => {
            "Given up: it was cancelled.".to_owned()
        }
        PushStatus::GivenUp => format!(
            "Given up: the last of {} attempts failed {}.",
            push.attempts,
            last_cause(push)
        ),
    }
}

/// A push that has had attempts is pending because a retry found the queue full, or because an outcome was lost.
fn pending(push: &PushView) -> String {
    match push.history.last() {
        Some(last) => format!(
            "Waits for room in the queue, to be sent again: attempt {} failed {}.",
            last.number,
            cause(last)
        ),
        None => "Waits for room in the queue.".to_owned(),
    }
}

fn in_memory(push: &PushView, now: DateTime<Utc>) -> String {
    let overdue = push.leased_until.is_some_and(|until| until < now);
    match (push.claimed, overdue) {
        (true, false) => format!("Is being sent: attempt {}.", push.attempts),
        (true, true) => format!(
            "The outcome of attempt {} is overdue; the push will be rescued and sent again if attempts are left.",
            push.attempts
        ),
        (false, false) => "Is in the queue.".to_owned(),
        (false, true) => "Is overdue in the queue; will be rescued and put there again.".to_owned(),
    }
}

fn retry(push: &PushView, max_attempts: u32, now: DateTime<Utc>) -> String {
    let when = match push.next_attempt_at {
        Some(at) if at > now => format!("Will be tried again after {}", time(at)),
        _ => "Is due to be tried again and waits to be put into the queue".to_owned(),
    };
    format!(
        "{when}: attempt {} of {} failed {}.",
        push.attempts,
        (push.replayed_after + max_attempts).max(push.attempts),
        last_cause(push)
    )
}

fn last_cause(push: &PushView) -> String {
    push.history
        .iter()
        .rev()
        .find(|attempt| attempt.error_type.is_some())
        .map_or_else(|| "for a reason that was not recorded".to_owned(), cause)
}

fn cause(attempt: &AttemptView) -> String {
    match (attempt.error_type, attempt.swrve_error_code) {
        (Some(ErrorType::MessagePrototypeKey), _) => {
            "because no Swrve push key is configured for its platform and message prototype".to_owned()
        }
        (Some(ErrorType::Swrve), Some(code)) => format!("with {code}"),
        (Some(ErrorType::Swrve), None) => "because Swrve could not be reached".to_owned(),
        (Some(ErrorType::Other) | None, _) => match &attempt.other_error {
            Some(error) => format!("on our side: {error}"),
            None => "on our side".to_owned(),
        },
    }
}

fn time(at: DateTime<Utc>) -> impl std::fmt::Display {
    at.format("%Y-%m-%d %H:%M:%S UTC")
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, TimeZone as _};
    use domain::push::{AttemptStatus, Platform, PushId};

    use super::*;

    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(2026, 11, 21, 12, 0, 0).unwrap()
    }

    fn push(status: PushStatus, attempts: u32) -> PushView {
        PushView {
            id: PushId::at(now()),
            status,
            claimed: false,
            platform: Platform::Ios,
            message_prototype_key: None,
            cron_expression: None,
            attempts,
            replayed_after: 0,
            reason: None,
            next_attempt_at: None,
            leased_until: None,
            created_at: now(),
            updated_at: now(),
            finished_at: None,
            history: Vec::new(),
        }
    }

    fn failed(error_type: ErrorType, code: Option<i64>) -> AttemptView {
        AttemptView {
            number: 1,
            status: AttemptStatus::Error,
            started_at: now(),
            millis: Some(10),
            error_type: Some(error_type),
            swrve_error_code: code,
            swrve_error_message: None,
            other_error: None,
        }
    }

    fn said(push: &PushView) -> String {
        explain(push, 5, now())
    }

    #[test]
    fn a_push_that_waits_says_for_what() {
        let minute = TimeDelta::minutes(1);
        let mut scheduled = push(PushStatus::Scheduled, 0);
        scheduled.next_attempt_at = Some(now() + minute);
        assert_eq!(
            said(&scheduled),
            "Waits for its sending window, which opens at 2026-11-21 12:01:00 UTC."
        );
        scheduled.next_attempt_at = Some(now() - minute);
        assert!(said(&scheduled).starts_with("Its sending window is open"));
        assert_eq!(
            said(&push(PushStatus::Pending, 0)),
            "Waits for room in the queue."
        );
        let mut again = push(PushStatus::Pending, 1);
        again.history.push(failed(ErrorType::Swrve, Some(503)));
        assert!(said(&again).ends_with("to be sent again: attempt 1 failed with 503."));
        again.history[0] = failed(ErrorType::Other, None);
        again.history[0].other_error = Some("the lease ran out".to_owned());
        assert!(said(&again).ends_with("attempt 1 failed on our side: the lease ran out."));
    }

    #[test]
    fn in_memory_tells_the_queue_from_the_sender_and_late_from_lost() {
        let mut queued = push(PushStatus::InMemory, 0);
        assert_eq!(said(&queued), "Is in the queue.");
        queued.leased_until = Some(now() - TimeDelta::seconds(1));
        assert!(said(&queued).contains("rescued"));
        let mut sending = push(PushStatus::InMemory, 2);
        sending.claimed = true;
        assert_eq!(said(&sending), "Is being sent: attempt 2.");
        sending.leased_until = queued.leased_until;
        assert!(said(&sending).contains("attempt 2 is overdue"));
    }

    #[test]
    fn a_retry_names_the_time_the_attempt_and_the_cause() {
        let mut retry = push(PushStatus::Retry, 2);
        retry.next_attempt_at = Some(now() + TimeDelta::seconds(90));
        retry.history = vec![
            failed(ErrorType::Swrve, None),
            failed(ErrorType::Swrve, Some(503)),
        ];
        assert_eq!(
            said(&retry),
            "Will be tried again after 2026-11-21 12:01:30 UTC: attempt 2 of 5 failed with 503."
        );
        retry.replayed_after = 1;
        assert!(said(&retry).ends_with("attempt 2 of 6 failed with 503."));
        retry.replayed_after = 0;
        retry.next_attempt_at = Some(now());
        retry.history.truncate(1);
        assert!(said(&retry).ends_with("attempt 2 of 5 failed because Swrve could not be reached."));
    }

    #[test]
    fn an_end_names_its_cause() {
        assert_eq!(said(&push(PushStatus::Sent, 1)), "Swrve accepted it.");
        assert_eq!(
            said(&push(PushStatus::Sent, 3)),
            "Swrve accepted it at attempt 3."
        );
        let mut ended = push(PushStatus::Failed, 1);
        ended.history = vec![failed(ErrorType::MessagePrototypeKey, None)];
        assert!(said(&ended).contains("no Swrve push key is configured"));
        ended.history = vec![failed(ErrorType::Other, None)];
        assert!(said(&ended).contains("on our side"));
        let mut given_up = push(PushStatus::GivenUp, 5);
        given_up.history = vec![failed(ErrorType::Swrve, Some(429))];
        assert_eq!(
            said(&given_up),
            "Given up: the last of 5 attempts failed with 429."
        );
    }

    #[test]
    fn a_cancelled_push_does_not_blame_an_attempt() {
        let mut cancelled = push(PushStatus::GivenUp, 2);
        cancelled.reason = Some(PushReason::Cancelled);
        assert_eq!(said(&cancelled), "Given up: it was cancelled.");
    }
}
