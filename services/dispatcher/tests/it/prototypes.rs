//! Swrve push keys, by message prototype and platform.

use config::Secret;
use domain::push::{AttemptStatus, ErrorType, Platform, PushRequest, PushStatus};
use testkit::{Installation, push_request};

use crate::rig::{DeadLetter, dead_letters, start};

fn request(platform: Platform, prototype: Option<&str>) -> PushRequest {
    PushRequest {
        platform,
        message_prototype_key: prototype.map(str::to_owned),
        ..push_request("device-1", "Hello client!")
    }
}

async fn fails_for_its_prototype(it: &Installation, request: PushRequest, fingerprint: &str) {
    let broker = it.broker();
    let id = it.accept(PushStatus::InMemory, request).await;
    it.publish(&broker, &[id]).await;
    let push = it.settled(id, PushStatus::Failed).await;
    let [attempt] = &push.history[..] else {
        panic!("{push:?}")
    };
    assert_eq!((push.attempts, push.next_attempt_at), (1, None));
    assert_eq!(
        (attempt.status, attempt.error_type),
        (AttemptStatus::Error, Some(ErrorType::MessagePrototypeKey))
    );
    assert_eq!(attempt.millis, Some(0));
    assert_eq!(
        (attempt.swrve_error_code, &attempt.swrve_error_message),
        (None, &None)
    );
    let detail = attempt.other_error.clone().expect("an explanation");
    let letter = DeadLetter {
        reason: "FAILED".to_owned(),
        fingerprint: fingerprint.to_owned(),
        attempts: Some(1),
        error_type: Some("MESSAGE_PROTOTYPE_KEY".to_owned()),
        detail,
    };
    assert_eq!(dead_letters(&it.pool, id).await, [letter]);
}

#[testkit::test]
async fn a_push_without_a_push_key_for_its_prototype_and_platform_fails_unsent(mut it: Installation) {
    let keys = &mut it.config.swrve.message_prototype_push_keys;
    keys.insert("Half", Platform::Android, Secret::new("half-android".to_owned()));
    let _dispatcher = start(&it.config);
    for (prototype, fingerprint) in [
        (Some("Unheard of"), "prototype-key/IOS/Unheard of"),
        (Some("Half"), "prototype-key/IOS/Half"),
        (None, "prototype-key/IOS/none"),
    ] {
        fails_for_its_prototype(&it, request(Platform::Ios, prototype), fingerprint).await;
    }
    assert_eq!(it.sim.report().received, 0);
}

#[testkit::test]
async fn a_push_is_sent_with_the_push_key_of_its_prototype_and_platform(it: Installation) {
    let (_dispatcher, broker) = (start(&it.config), it.broker());
    for (platform, key) in [
        (Platform::Ios, "Good bye-IOS"),
        (Platform::Android, "Good bye-ANDROID"),
    ] {
        let after = it.sim.report().received;
        let id = it
            .accept(PushStatus::InMemory, request(platform, Some("Good bye")))
            .await;
        it.publish(&broker, &[id]).await;
        it.settled(id, PushStatus::Sent).await;
        let page = it.sim.received(after, 10);
        let [sent] = &page.items[..] else {
            panic!("{page:?}")
        };
        assert_eq!(
            (&*sent.push_key, &*sent.user, &*sent.message, sent.test),
            (key, "device-1", "Hello client!", false)
        );
    }
}
