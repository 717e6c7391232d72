//! What is counted of deliveries.

use broker::Queue;
use chrono::TimeDelta;
use domain::clock::{Clock as _, SystemClock};
use domain::notification::NotificationStatus::Sent;
use engine::webhook::Lane;
use store::webhook::NewEvent;
use testkit::Installation;

use crate::rig::{Rig, event};

#[testkit::test]
async fn deliveries_are_counted_by_event_type_with_how_long_after_their_event_they_came(it: Installation) {
    let rig = Rig::new(it).await;
    let subscription = rig.subscription().make(&rig.it.pool).await;
    let engine = rig.start(Lane::First).await;
    let now = SystemClock.now();
    let made = |event_type: &str, at| NewEvent {
        event_type: event_type.to_owned(),
        ..event(at)
    };
    let earlier = now - TimeDelta::hours(3);
    let accepted = vec![
        event(now),
        made("contact.changed", earlier),
        made("domain.renewed", earlier),
        made("domain.expired", earlier),
    ];
    let accepted = rig.accept_all(accepted).await;
    // As they are after they were given up without an attempt and sent again, and after a replay of what was missed.
    for change in [
        "UPDATE notifications SET resent_at = now() WHERE event_type = 'domain.renewed'",
        "UPDATE notifications SET created_at = now() WHERE event_type = 'domain.expired'",
    ] {
        sqlx::query(change)
            .execute(&rig.it.pool)
            .await
            .expect("the notification is there");
    }
    rig.publish(Queue::ResellerReady, &accepted).await;
    rig.count_becomes(Sent, 4).await;
    // What was gathered is written before it ends.
    engine.stop().await;
    let counted = rig
        .it
        .store
        .type_sums(subscription, now - TimeDelta::hours(1), 1)
        .await
        .expect("the numbers can be read")
        .types;
    let delay_of = |name: &str| {
        let of_type = counted.iter().find(|of| of.event_type == name);
        let of_type = of_type.unwrap_or_else(|| panic!("{name} is counted: {counted:?}"));
        assert_eq!((of_type.attempts, of_type.delivered), (1, 1));
        of_type.delays.percentile(1.0)
    };
    let hour = 3_600_000.0;
    assert!(delay_of("domain.created").is_some_and(|delay| delay < hour));
    let late = delay_of("contact.changed").expect("it has a delay");
    assert!((2.0 * hour..5.0 * hour).contains(&late), "{late}");
    assert_eq!(delay_of("domain.renewed"), None, "it was sent again");
    assert_eq!(delay_of("domain.expired"), None, "it was replayed");
}
