//! `GET /push/{id}`.

use domain::key::Role;
use domain::push::{PushId, PushState};
use testkit::Installation;
use testkit::push_factory::PushRow;
use uuid::Uuid;

use crate::running::{Running, make_key, problem};

#[testkit::test]
async fn every_state_is_shown_with_its_attempts_and_without_its_content(it: Installation) {
    let service = Running::ready(&it).await;
    for state in PushState::ALL {
        let made = PushRow::in_state(state).make(&it.pool).await;
        let view = service.look_up(made.id).await;
        assert_eq!(view["id"], made.id.to_string());
        assert_eq!(view["status"], state.status().as_str());
        assert_eq!(view["attempts"], view["history"].as_array().unwrap().len());
        assert_eq!(
            view["finishedAt"].is_string(),
            state.status().is_terminal(),
            "{view}"
        );
        assert!(view["explanation"].as_str().unwrap().ends_with('.'), "{view}");
        let text = view.to_string();
        assert!(
            !text.contains("device-1") && !text.contains("Hello client!"),
            "{text}"
        );
    }
}

#[testkit::test]
async fn a_failed_attempt_is_shown_with_what_swrve_said(it: Installation) {
    let service = Running::ready(&it).await;
    let row = PushRow::in_state(PushState::Retry)
        .attempts(2)
        .due_in(chrono::TimeDelta::minutes(1));
    let made = row.make(&it.pool).await.id;
    sqlx::query("UPDATE send_attempts SET response_status = 503, swrve_error_code = 77 WHERE number = 2")
        .execute(&it.pool)
        .await
        .unwrap();
    let view = service.look_up(made).await;
    assert_eq!(view["history"][0]["responseStatus"], serde_json::Value::Null);
    let last = &view["history"][1];
    assert_eq!((&last["number"], &last["status"]), (&2.into(), &"ERROR".into()));
    assert_eq!(
        (
            &last["errorType"],
            &last["responseStatus"],
            &last["swrveErrorCode"]
        ),
        (&"SWRVE".into(), &503.into(), &77.into())
    );
    assert_eq!(
        (&last["swrveErrorMessage"], &last["millis"]),
        (&"503 Service Unavailable".into(), &250.into())
    );
    let explanation = view["explanation"].as_str().unwrap();
    assert!(explanation.starts_with("Is tried again at 2"), "{explanation}");
    assert!(
        explanation.contains("attempt 2 of 5 failed: Swrve answered 503 Service Unavailable, code 77."),
        "{explanation}"
    );
    assert!(view["nextAttemptAt"].is_string(), "{view}");
}

#[testkit::test]
async fn a_push_that_waits_for_the_end_of_a_pause_says_so_and_not_who_paused_it(it: Installation) {
    let service = Running::ready(&it).await;
    let act = store::Act {
        by: "ann (1)",
        note: Some("incident 17"),
        at: domain::clock::Clock::now(&domain::clock::SystemClock),
    };
    let lane = store::Pausable::Lane(store::Lane::Push);
    it.store.pause(&lane, act).await.unwrap();
    for state in PushState::ALL {
        let made = PushRow::in_state(state).make(&it.pool).await;
        let view = service.look_up(made.id).await;
        let waits = !state.status().is_terminal() && state != PushState::Sending;
        assert_eq!(view["reason"] == "PAUSED", waits, "{view}");
        let text = view["explanation"].as_str().unwrap();
        let said = "Is held back: the lane push is paused by an operator since 2";
        assert_eq!(text.starts_with(said), waits, "{text}");
        assert!(
            !view.to_string().contains("ann") && !view.to_string().contains("incident"),
            "{view}"
        );
    }
    it.store.resume(&lane, act).await.unwrap();
    let made = PushRow::in_state(PushState::Queued).make(&it.pool).await;
    let view = service.look_up(made.id).await;
    assert_eq!(view["reason"], serde_json::Value::Null, "{view}");
}

#[testkit::test]
async fn what_does_not_exist_is_not_found_whatever_its_form(it: Installation) {
    let service = Running::ready(&it).await;
    let unknown = PushId::at(chrono::DateTime::UNIX_EPOCH).to_string();
    for id in [&unknown, &Uuid::nil().to_string(), "1", "..%2f", &"x".repeat(300)] {
        problem(
            service.get(&format!("/push/{id}")).send().await.unwrap(),
            404,
            "not-found",
        )
        .await;
    }
}

#[testkit::test]
async fn every_role_of_the_house_may_look_and_no_other(it: Installation) {
    let service = Running::ready(&it).await;
    let id = PushRow::in_state(PushState::Sent).make(&it.pool).await.id;
    let path = format!("/push/{id}");
    for role in Role::ALL {
        let (_, key) = make_key(&it.store, &[role]).await;
        let expected = if role.may_read() { 200 } else { 403 };
        assert_eq!(service.look_with(&key, &path).await, expected, "{role}");
    }
    problem(
        service.request("GET", &path).send().await.unwrap(),
        401,
        "unauthorized",
    )
    .await;
}
