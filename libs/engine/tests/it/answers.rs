//! What is kept of an answer.

use domain::notification::NotificationStatus::Retry;
use engine::webhook::Lane;
use simulators::receiver::Rule;
use testkit::Installation;

use crate::rig::Rig;

#[testkit::test]
async fn the_answers_first_bytes_are_kept(it: Installation) {
    let kept = it.config.reseller.delivery.response_body_bytes;
    let rig = Rig::new(it).await;
    rig.subscription().make(&rig.it.pool).await;
    let rule = Rule {
        status: Some(500),
        body: Some("x".repeat(3 * kept)),
        ..Rule::default()
    };
    rig.script(vec![rule]);
    let _engine = rig.start(Lane::First).await;
    let sent = rig.send(1).await;
    rig.settled(sent[0].id, Retry).await;
    let body: String = sqlx::query_scalar("SELECT response_body FROM delivery_attempts")
        .fetch_one(&rig.it.pool)
        .await
        .expect("there is an attempt");
    assert_eq!(body, "x".repeat(kept));
}
