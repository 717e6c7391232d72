//! Tests of what a reseller is told.

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::push::AttemptStatus;
use domain::reason::{NotificationReason, StateReason};
use domain::subscription::{PausedBy, SubscriptionState};
use uuid::Uuid;

use super::{Sentence, Story, Teller, answered, notification, unanswered};
use crate::tests::{act, context, dead_letter, notification as row, now};
use store::timeline::NotificationTimeline;
use store::webhook::StateEntry;
use store::{AuditView, DeadLetterState, PausePeriod};

fn told(history: &NotificationTimeline, paused_by: Option<PausedBy>) -> Story {
    told_with(history, paused_by, &[])
}

fn told_with(history: &NotificationTimeline, paused_by: Option<PausedBy>, states: &[StateEntry]) -> Story {
    let context = context();
    let teller = Teller {
        now: now(),
        rules: &context.rules,
        paused_by,
        states,
        own_names: &["ann (1)".to_owned()],
    };
    notification(history, &teller)
}

#[test]
fn every_status_has_a_headline_and_what_comes_next() {
    for status in NotificationStatus::ALL {
        for attempts in [0, 2] {
            let story = told(&row(status, attempts), None);
            assert!(!story.headline.text.is_empty() && !story.next.sentence.text.is_empty());
            assert_eq!(story.status, status);
        }
    }
}

#[test]
fn a_replay_that_makes_a_notification_is_another_step_than_the_acceptance_of_its_event() {
    let mut replayed = row(NotificationStatus::Sent, 0);
    let accepted = now() - TimeDelta::days(2);
    replayed.accepted_at = Some(accepted);
    let story = told(&replayed, None).story;
    let steps: Vec<_> = story.iter().map(|step| (step.at, step.sentence.code)).collect();
    assert_eq!(
        steps[..2],
        [
            (Some(accepted), "accepted"),
            (Some(replayed.created_at), "made-by-replay")
        ]
    );
}

#[test]
fn faults_of_ours_are_ours_and_no_more() {
    let mut failed = row(NotificationStatus::GivenUp, 2);
    let last = &mut failed.history[1];
    last.error_type = Some("OTHER".to_owned());
    last.response_status = None;
    last.error = Some("the lease of worker-7 broke".to_owned());
    let story = told(&failed, None);
    assert_eq!(
        story.headline.text,
        "Given up: the last of 2 attempts failed: on our side."
    );
}

#[test]
fn an_answer_is_named_with_what_to_do_about_it() {
    let said = || Sentence::new("failing", "Active, but every attempt has failed.");
    for (status, part) in [
        (401, "did you rotate the signing secret?"),
        (404, "the path of the endpoint"),
        (413, "how large a body"),
        (422, "the JSON of every event type"),
        (503, "why it fails"),
        (302, "why it refuses"),
    ] {
        let told = answered(said(), status);
        assert_eq!(told.params["answer"], status);
        assert!(
            told.text.contains(&format!("It answers {status} of late")) && told.text.contains(part),
            "{}",
            told.text
        );
    }
}

#[test]
fn why_no_answer_came_is_named_with_what_to_do_about_it_unless_it_was_on_our_side() {
    let said = || Sentence::new("failing", "Active, but every attempt has failed.");
    for error_type in domain::notification::ERROR_TYPES {
        let told = unanswered(said(), error_type);
        if matches!(error_type, "HTTP" | "OTHER") {
            assert_eq!(told, said());
            continue;
        }
        assert_eq!(told.params["errorType"], error_type);
        assert!(told.text.contains(" of late"), "{}", told.text);
    }
    assert!(
        unanswered(said(), "TIMEOUT")
            .text
            .contains("It does not answer in time")
    );
}

#[test]
fn what_may_have_been_delivered_is_not_told_as_a_failure() {
    let mut held = row(NotificationStatus::GivenUp, 1);
    held.reason = "delivery/possibly-sent".parse().ok();
    assert_eq!(told(&held, None).headline.code, "possibly-sent");
}

#[test]
fn a_pause_is_told_as_whose_it_is_and_without_a_note() {
    let waiting = row(NotificationStatus::Pending, 0);
    for by in PausedBy::ALL {
        let code = told(&waiting, Some(by)).headline.code;
        assert_eq!(
            code,
            if by == PausedBy::Reseller {
                "paused"
            } else {
                "held"
            }
        );
    }
}

#[test]
fn what_a_pause_holds_is_told_until_when_it_may_wait() {
    let waiting = row(NotificationStatus::Pending, 0);
    let given_up_at = waiting.created_at + TimeDelta::days(30);
    let next = told(&waiting, Some(PausedBy::Reseller)).next.sentence;
    let begin = "It goes on when you resume the subscription. If it still waits at ";
    assert!(
        next.text.starts_with(begin) && next.text.ends_with("it is given up."),
        "{next:?}"
    );
    assert_eq!(next.params["givenUpAt"], serde_json::json!(given_up_at));
    let mut resent = waiting;
    resent.resent_at = Some(now());
    let next = told(&resent, Some(PausedBy::Lane)).next.sentence;
    let from_then = serde_json::json!(now() + TimeDelta::days(30));
    assert_eq!(next.params["givenUpAt"], from_then);
}

#[test]
fn what_waits_for_a_deactivated_subscription_is_given_up_unless_that_is_activated_before() {
    let mut waiting = row(NotificationStatus::Retry, 1);
    waiting.subscription.state = SubscriptionState::Deactivated;
    let story = told(&waiting, None);
    assert_eq!(
        story.headline.text,
        "Is not sent: the subscription is deactivated."
    );
    let next = story.next.sentence.text;
    assert!(
        next.starts_with("It is given up within seconds, unless the subscription is activated before that."),
        "{next}"
    );
}

#[test]
fn what_was_sent_again_is_told_with_who_had_it_sent() {
    let mut history = row(NotificationStatus::Retry, 2);
    let at = now() - TimeDelta::minutes(1);
    history.resent_at = Some(at);
    let reseller = format!("reseller {}", history.reseller);
    let visit = format!("Anna <user-17@{}>", history.reseller);
    for (by, code, text) in [
        (
            "ann (1)",
            "resent",
            "You had it sent again (with the API key ann).",
        ),
        (
            visit.as_str(),
            "resent",
            "You had it sent again (Anna, in the dashboard).",
        ),
        (
            reseller.as_str(),
            "replayed",
            "A replay or resend of yours had it sent again.",
        ),
        (
            "postrider",
            "sent-again-after-outage",
            "It was sent again by itself after the outage.",
        ),
        (
            "maria (2)",
            "sent-again-by-operators",
            "The operators of the platform had it sent again; its attempts count from the beginning.",
        ),
    ] {
        let mut letter = dead_letter(None, Some(history.id.uuid()));
        letter.state = DeadLetterState::Replayed;
        letter.resolved_at = Some(at);
        letter.resolved_by = Some(by.to_owned());
        history.dead_letters = vec![letter];
        let story = told(&history, None);
        let step = story.story.iter().find(|step| step.at == Some(at)).unwrap();
        assert_eq!((step.sentence.code, step.sentence.text.as_str()), (code, text));
    }
}

#[test]
fn each_time_that_it_was_sent_again_is_told_and_not_the_last_alone() {
    let mut history = row(NotificationStatus::Retry, 3);
    let (first, last) = (now() - TimeDelta::minutes(5), now() - TimeDelta::minutes(1));
    let reseller = format!("reseller {}", history.reseller);
    let replayed = |at, by: &str| {
        let mut letter = dead_letter(None, Some(history.id.uuid()));
        letter.state = DeadLetterState::Replayed;
        letter.resolved_at = Some(at);
        letter.resolved_by = Some(by.to_owned());
        letter
    };
    let letters = vec![replayed(first, "maria (2)"), replayed(last, &reseller)];
    history.dead_letters = letters;
    history.resent_at = Some(last);
    let story = told(&history, None).story;
    let said_at = |at| {
        let steps = story.iter().filter(|step| step.at == Some(at));
        steps.map(|step| step.sentence.code).collect::<Vec<_>>()
    };
    assert_eq!(said_at(first), ["sent-again-by-operators"]);
    assert_eq!(said_at(last), ["replayed"]);
}

#[test]
fn a_resend_of_several_is_told_with_who_had_them_sent() {
    let mut history = row(NotificationStatus::Retry, 2);
    let resent = act("subscription.resend");
    history.resent_at = Some(resent.at);
    for (actor, text) in [
        (
            "ann (1)",
            "A resend of several had it sent again (with the API key ann).",
        ),
        ("maria (2)", "A resend of several had it sent again."),
    ] {
        history.acts = vec![AuditView {
            actor: actor.to_owned(),
            ..resent.clone()
        }];
        let told = told(&history, None).story;
        let step = told.iter().find(|step| step.at == history.resent_at).unwrap();
        assert_eq!(
            (step.sentence.code, step.sentence.text.as_str()),
            ("replayed", text)
        );
        let by = step.sentence.params.get("by").and_then(|by| by.as_str());
        assert_eq!(by, (actor == "ann (1)").then_some(actor), "no name of the house");
    }
    history.acts.clear();
    let told = told(&history, None).story;
    assert!(told.iter().any(|step| step.sentence.code == "sent-again"));
}

#[test]
fn what_stays_delivered_is_told_with_who_cancelled_sending_it_again() {
    let mut history = row(NotificationStatus::Sent, 1);
    (history.history[0].status, history.history[0].error_type) = (AttemptStatus::Ok, None);
    (history.resent_after, history.resent_at) = (1, Some(now() - TimeDelta::minutes(4)));
    history.finished_at = Some(history.history[0].started_at + TimeDelta::seconds(5));
    history.updated_at = now() - TimeDelta::minutes(2);
    let cancelled = "Sending it again was cancelled.";
    for (actor, code, said) in [
        (Some("ann (1)"), "resend-cancelled-by-you", cancelled),
        (Some("maria (2)"), "resend-cancelled-by-operators", cancelled),
        (None, "resend-cancelled", "It was not sent again after all."),
    ] {
        let acts = actor.into_iter().map(|actor| AuditView {
            actor: actor.to_owned(),
            ..act("notification.cancel-many")
        });
        history.acts = acts.collect();
        let story = told(&history, None);
        assert_eq!(
            (story.headline.code, story.headline.text.as_str()),
            (
                "delivered",
                &*format!("Delivered: the endpoint took it at attempt 1. {said}")
            )
        );
        let last = story.story.last().unwrap();
        assert_eq!((last.at, last.sentence.code), (Some(history.updated_at), code));
        assert!(story.waited.is_empty(), "{story:?}");
    }
}

#[test]
fn what_was_refused_for_its_signature_hints_at_the_secret() {
    for (status, code) in [(401, "check-secret"), (403, "check-secret"), (404, "resend")] {
        let mut refused = row(NotificationStatus::Failed, 1);
        refused.history[0].response_status = Some(status);
        let next = told(&refused, None).next.sentence;
        assert_eq!(next.code, code);
        assert_eq!(
            next.text.contains("a secret that is valid now"),
            status != 404,
            "{next:?}"
        );
    }
}

#[test]
fn a_failed_attempt_names_its_parts() {
    let story = told(&row(NotificationStatus::Retry, 1), None);
    let failed = &story.story[1].sentence;
    assert_eq!(
        failed.text,
        "Attempt 1 failed after 5 s: the endpoint answered 503."
    );
    assert_eq!(
        serde_json::to_string(&failed.params).unwrap(),
        r#"{"attempt":1,"errorType":"HTTP","millis":5000,"status":503}"#
    );
}

/// What the time went to, each cause with its seconds.
fn waited(story: &Story) -> Vec<(&str, i64)> {
    let causes = story.waited.iter();
    causes
        .map(|told| (told.code, told.params["millis"].as_i64().unwrap() / 1_000))
        .collect()
}

fn state(minutes_ago: i64, paused: bool, held: bool) -> StateEntry {
    StateEntry {
        id: Uuid::nil(),
        at: now() - TimeDelta::minutes(minutes_ago),
        state: SubscriptionState::Active,
        reason: StateReason::Verified,
        paused,
        held,
    }
}

#[test]
fn what_is_late_says_what_its_time_went_to() {
    // Ten minutes old, tried eight and seven minutes ago for five seconds each.
    let story = told(&row(NotificationStatus::Retry, 2), None);
    let causes = [
        ("waited-retry", 8 * 60 - 10),
        ("waited-turn", 2 * 60),
        ("waited-attempts", 10),
    ];
    assert_eq!(waited(&story), causes);
    assert_eq!(
        story.waited[0].text,
        "7 min: between attempts, since the one before had failed."
    );
    let mut quick = row(NotificationStatus::Pending, 0);
    quick.created_at = now() - TimeDelta::seconds(9);
    assert!(told(&quick, None).waited.is_empty());
}

/// What it is; how many minutes ago it was tried for the second time, after a first attempt eight minutes ago; which states the subscription had
/// since when; and what the time went to. A retry follows after 75 s at most, unless the answer puts it off.
type PauseCase = (
    &'static str,
    Option<i64>,
    &'static [(i64, bool, bool)],
    &'static [(&'static str, i64)],
);

const PAUSES: &[PauseCase] = &[
    (
        "a pause wholly inside the wait for a retry takes nothing",
        Some(6),
        &[(8, true, false), (7, false, false)],
        &[
            ("waited-turn", 120),
            ("waited-retry", 115),
            ("waited-attempts", 10),
        ],
    ),
    (
        "a pause that is over when the answer had put the retry off takes nothing",
        Some(2),
        &[(6, true, false), (5, false, false)],
        &[
            ("waited-retry", 355),
            ("waited-turn", 120),
            ("waited-attempts", 10),
        ],
    ),
    (
        "a pause over the time at which the retry was due takes what it put off",
        Some(4),
        &[(7, true, false), (4, false, false)],
        &[
            ("waited-paused", 160),
            ("waited-turn", 120),
            ("waited-retry", 75),
            ("waited-attempts", 10),
        ],
    ),
    (
        "a pause that became that of an operator takes no more than it did",
        Some(4),
        &[(7, true, false), (5, false, true), (4, false, false)],
        &[
            ("waited-turn", 120),
            ("waited-paused", 100),
            ("waited-retry", 75),
            ("waited-held", 60),
            ("waited-attempts", 10),
        ],
    ),
    (
        "two pauses, one before the first attempt",
        Some(4),
        &[
            (11, true, false),
            (9, false, false),
            (7, true, false),
            (4, false, false),
        ],
        &[
            ("waited-paused", 220),
            ("waited-retry", 75),
            ("waited-turn", 60),
            ("waited-attempts", 10),
        ],
    ),
    (
        "a pause and nothing else, up to the first attempt",
        Some(4),
        &[(60, false, true), (8, false, false)],
        &[
            ("waited-retry", 235),
            ("waited-held", 120),
            ("waited-attempts", 10),
        ],
    ),
    (
        "a pause that goes on",
        None,
        &[(5, true, false)],
        &[
            ("waited-paused", 300),
            ("waited-retry", 175),
            ("waited-turn", 120),
            ("waited-attempts", 5),
        ],
    ),
];

#[test]
fn a_pause_takes_what_it_kept_back_and_no_wait_for_a_retry() {
    for (case, tried, states, waited_for) in PAUSES {
        let mut late = row(NotificationStatus::Retry, 1);
        if let Some(tried) = tried {
            late = row(NotificationStatus::Sent, 2);
            late.history[1].started_at = now() - TimeDelta::minutes(*tried);
            late.finished_at = Some(late.history[1].started_at + TimeDelta::seconds(5));
        }
        let states = states
            .iter()
            .map(|(minutes_ago, paused, held)| state(*minutes_ago, *paused, *held));
        let states: Vec<_> = states.collect();
        assert_eq!(waited(&told_with(&late, None, &states)), *waited_for, "{case}");
    }
}

#[test]
fn a_retry_that_is_due_later_is_kept_back_by_no_pause_before() {
    let mut late = row(NotificationStatus::Retry, 1);
    late.next_attempt_at = Some(now() + TimeDelta::minutes(5));
    let story = told_with(&late, None, &[state(5, true, false)]);
    let causes = [
        ("waited-retry", 475),
        ("waited-turn", 120),
        ("waited-attempts", 5),
    ];
    assert_eq!(waited(&story), causes);
}

#[test]
fn a_pause_of_all_deliveries_is_told_as_one_of_the_operators() {
    let mut late = row(NotificationStatus::Pending, 0);
    late.pauses = ["lane", "reseller"]
        .map(|scope| PausePeriod {
            scope: scope.to_owned(),
            paused_by: "ann (1)".to_owned(),
            note: "incident 17".to_owned(),
            paused_at: now() - TimeDelta::minutes(30),
            resumed_at: (scope == "lane").then(|| now() - TimeDelta::minutes(1)),
            until: None,
        })
        .into();
    let story = told(&late, Some(PausedBy::AllOfReseller));
    assert_eq!(waited(&story), [("waited-held", 540), ("waited-turn", 60)]);
    let said = format!("{story:?}");
    assert!(!said.contains("ann (1)") && !said.contains("incident"), "{said}");
}

#[test]
fn what_is_in_line_waits_for_it_from_then_on() {
    let mut waiting = row(NotificationStatus::Scheduled, 0);
    waiting.reason = Some(NotificationReason::Quota);
    waiting.updated_at = waiting.created_at + TimeDelta::seconds(1);
    let causes = [("waited-quota", 599), ("waited-turn", 1)];
    assert_eq!(waited(&told(&waiting, None)), causes);
    waiting.finished_at = Some(waiting.created_at + TimeDelta::minutes(1));
    assert_eq!(waited(&told(&waiting, None))[0], ("waited-quota", 59));
}

#[test]
fn what_was_in_line_for_the_quota_says_so_once_it_is_delivered() {
    let mut sent = row(NotificationStatus::Sent, 1);
    sent.reason = Some(NotificationReason::Quota);
    sent.history[0].started_at = sent.created_at + TimeDelta::minutes(2);
    sent.finished_at = Some(sent.created_at + TimeDelta::minutes(3));
    let story = told(&sent, None);
    assert_eq!(waited(&story)[0], ("waited-quota", 120));
    let codes: Vec<_> = story.story.iter().map(|step| step.sentence.code).collect();
    assert_eq!(
        codes[..3],
        ["accepted", "deferred-quota", "quota-has-room"],
        "{codes:?}"
    );
}

#[test]
fn an_attempt_that_began_before_its_event_by_another_clock_counts_as_one() {
    let mut late = row(NotificationStatus::Retry, 1);
    late.history[0].started_at = late.created_at - TimeDelta::seconds(2);
    let causes = [("waited-retry", 10 * 60 - 3), ("waited-attempts", 3)];
    assert_eq!(waited(&told(&late, None)), causes);
}

#[test]
fn what_came_before_attempts_that_are_not_told_any_more_is_no_first_turn() {
    let mut late = row(NotificationStatus::Retry, 2);
    late.history.remove(0);
    let causes = [("waited-retry", 10 * 60 - 5), ("waited-attempts", 5)];
    assert_eq!(waited(&told(&late, None)), causes);
}
