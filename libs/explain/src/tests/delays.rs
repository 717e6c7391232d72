//! Where the time went.

use chrono::TimeDelta;
use domain::notification::NotificationStatus;
use domain::push::PushStatus;
use domain::reason::NotificationReason;

use super::{context, notification, now, paused, push};
use crate::Explanation;

#[test]
fn a_story_says_where_the_time_went_and_what_it_waits_for() {
    let delay = |story: Explanation| story.delay.map(|delay| delay.text).unwrap_or_default();
    let pending = push(PushStatus::Pending, 2);
    assert_eq!(
        delay(crate::push(&pending, &context())),
        "10 min since it was accepted: 6 min 59 s waiting for its turn in the queue, 2 min before the first attempt, \
         59 s between attempts."
    );
    let story = crate::push(&pending, &paused("lane", "push"));
    assert!(delay(story).contains("waiting while the lane sends nothing"));
    let mut deferred = notification(NotificationStatus::Scheduled, 0);
    deferred.reason = Some(NotificationReason::Quota);
    assert_eq!(
        delay(crate::notification(&deferred, &context())),
        "10 min since it was accepted: 10 min waiting for the daily quota."
    );
    let story = crate::notification(&deferred, &paused("reseller", "acme"));
    assert!(delay(story).ends_with("10 min waiting for the end of a pause."));
    let mut sent = notification(NotificationStatus::Sent, 2);
    sent.finished_at = Some(now() - TimeDelta::minutes(7) + TimeDelta::seconds(5));
    assert_eq!(
        delay(crate::notification(&sent, &context())),
        "3 min 5 s until it ended: 2 min before the first attempt, 55 s between attempts, 10 s in 2 attempts."
    );
}
