//! `dead-letters replay`, `dead-letters discard`, `jobs`, `audit`: as the engineer on call types them.

use domain::key::Role;
use domain::notification::NotificationState;
use domain::push::PushState;
use serde_json::Value;
use testkit::notification_factory::NotificationRow;
use testkit::push_factory::PushRow;
use testkit::subscription_factory::SubscriptionRow;
use testkit::{Installation, key_of_the_house};
use uuid::Uuid;

use crate::postrider::{Finished, Running, postrider};

/// The operator API as a process, and an operator's key.
struct Desk {
    service: Running,
    url: String,
    key: String,
}

impl Desk {
    async fn open(it: &Installation) -> Self {
        let service = postrider("serve operator-api").within(it).start();
        let url = format!("http://{}", service.address_logged_with("listening"));
        let key = key_of_the_house(&it.store, &[Role::Operator]).await;
        Self { service, url, key }
    }

    fn run(&self, arguments: &str, note: Option<&str>) -> Finished {
        let call = postrider(arguments)
            .env("OPERATOR_URL", &self.url)
            .env("OPERATOR_KEY", &self.key);
        match note {
            Some(note) => call.arg("--note").arg(note).run(),
            None => call.run(),
        }
    }

    fn json(&self, arguments: &str) -> Value {
        let run = self.run(&format!("{arguments} --json"), None);
        assert_eq!(run.code, Some(0), "{run:?}");
        serde_json::from_str(&run.stdout).expect("JSON")
    }
}

async fn failed_pushes(it: &Installation, count: usize) -> Vec<Uuid> {
    for _ in 0..count {
        PushRow::in_state(PushState::Failed).make(&it.pool).await;
    }
    sqlx::query_scalar("SELECT id FROM dead_letters WHERE state = 'OPEN' ORDER BY id")
        .fetch_all(&it.pool)
        .await
        .expect("the rows can be read")
}

/// As the lane would have left them.
async fn end_all(it: &Installation, status: &str) {
    sqlx::query(
        "UPDATE push_notifications
         SET status = $1, finished_at = now(), next_attempt_at = NULL, leased_until = NULL, lease_token = NULL",
    )
    .bind(status)
    .execute(&it.pool)
    .await
    .expect("the rows can be changed");
}

#[testkit::test]
async fn a_filter_that_matches_nothing_fails_and_says_what_may_have_been_meant(it: Installation) {
    let desk = Desk::open(&it).await;
    failed_pushes(&it, 1).await;
    sqlx::query("UPDATE dead_letters SET target = 'https://hooks.acme.example'")
        .execute(&it.pool)
        .await
        .expect("the row can be changed");
    let run = desk.run(
        "dead-letters replay --target https://hooks.acme.example/postrider --dry-run",
        None,
    );
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(
        run.stderr.contains("no open dead letter matches")
            && run.stderr.contains("such as https://hooks.acme.example;"),
        "{run:?}"
    );
}

#[testkit::test]
async fn a_dry_run_of_a_replay_says_what_waits_for_a_retry_and_is_passed_by(it: Installation) {
    let desk = Desk::open(&it).await;
    let subscription = SubscriptionRow::active().make(&it.pool).await;
    for state in [NotificationState::Failed, NotificationState::Retry] {
        NotificationRow::in_state(state, subscription)
            .make(&it.pool)
            .await;
    }
    let passed_by =
        "1 notification of the subscription waits for a retry and no dead letter, so that this passes by";
    let of = |verb: &str| format!("dead-letters {verb} --subscription {subscription} --dry-run");
    let counted = desk.run(&of("replay"), None);
    assert_eq!(counted.code, Some(0), "{counted:?}");
    assert!(
        counted.stdout.contains("1 dead letter,") && counted.stderr.contains(passed_by),
        "{counted:?}"
    );
    let discarded = desk.run(&of("discard"), Some("a test"));
    assert_eq!(discarded.code, Some(0), "{discarded:?}");
    assert!(!discarded.stderr.contains("for a retry"), "{discarded:?}");
}

#[testkit::test]
async fn dead_letters_are_counted_then_replayed_while_an_operator_waits(it: Installation) {
    let desk = Desk::open(&it).await;
    failed_pushes(&it, 3).await;
    let counted = desk.json("dead-letters replay --lane push --newer-than 1h --dry-run");
    assert_eq!(counted["matching"], 3);
    let shown = desk.run("dead-letters replay --all --dry-run", None);
    assert!(
        shown.stdout.contains("swrve/503") && shown.stdout.contains("3 dead letters"),
        "{shown:?}"
    );

    let refused = desk.run("dead-letters replay --lane push", None);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("3 dead letters; add --yes"),
        "{refused:?}"
    );
    let nothing = desk.run("dead-letters replay --lane reseller --yes", None);
    assert_eq!(nothing.code, Some(1));
    assert!(
        nothing.stderr.contains("no open dead letter matches"),
        "{nothing:?}"
    );
    assert_eq!(desk.json("jobs list")["items"], serde_json::json!([]));

    let worker = postrider("serve retry-worker").within(&it).start();
    let waited = desk.run(
        "dead-letters replay --lane push --yes --wait --outcome-within 0s",
        Some("Swrve is back"),
    );
    assert_eq!(waited.code, Some(4), "nothing sends them: {waited:?}");
    assert!(
        waited.stdout.contains("COMPLETED")
            && waited.stdout.contains("3 of 3")
            && waited.stdout.contains("0 delivered, 3 waiting, 0 failed again"),
        "{waited:?}"
    );
    assert!(
        waited.stderr.contains("the time is over: 3 still wait") && waited.stderr.contains("one of them, "),
        "{waited:?}"
    );
    let jobs = desk.json("jobs list --status completed");
    assert_eq!(
        (&jobs["items"][0]["done"], &jobs["items"][0]["note"]),
        (&3.into(), &"Swrve is back".into())
    );
    let until = &jobs["items"][0]["filter"]["until"];
    assert!(until.is_string(), "only what was counted is meant: {jobs}");
    let id = jobs["items"][0]["id"].as_str().unwrap().to_owned();
    worker.stop().await;
    end_all(&it, "SENT").await;
    let watched = desk.run(&format!("jobs watch {id}"), None);
    assert_eq!(watched.code, Some(0), "{watched:?}");
    assert!(watched.stdout.contains("3 delivered, 0 waiting"), "{watched:?}");
    end_all(&it, "FAILED").await;
    let watched = desk.run(&format!("jobs watch {id}"), None);
    assert_eq!(watched.code, Some(4), "{watched:?}");
    assert!(watched.stdout.contains("3 failed again"), "{watched:?}");
    let late = desk.run(&format!("jobs pause {id}"), None);
    assert!(
        late.code == Some(1) && late.stderr.contains("COMPLETED"),
        "{late:?}"
    );

    let log = desk.run("audit --action dead-letter-job", None);
    assert!(
        log.stdout.contains("dead-letter-job.complete") && log.stdout.contains("Swrve is back"),
        "{log:?}"
    );
    let log = desk.json(&format!("audit --subject dead-letter-job/{id} --newer-than 1h"));
    assert_eq!(log["items"].as_array().unwrap().len(), 2);
    desk.service.stop().await;
}

#[testkit::test]
async fn single_dead_letters_are_resolved_at_once_and_mistakes_are_told(it: Installation) {
    let desk = Desk::open(&it).await;
    let letters = failed_pushes(&it, 2).await;
    for wrong in [
        "dead-letters replay".to_owned(),
        format!("dead-letters replay {} --lane push", letters[0]),
        format!("dead-letters discard {}", letters[0]),
        "dead-letters replay x".to_owned(),
        "dead-letters replay --all --rate 0".to_owned(),
        "dead-letters replay --all --lane push".to_owned(),
        "dead-letters replay --all --newer-than soon".to_owned(),
    ] {
        let run = desk.run(&wrong, None);
        assert_eq!(run.code, Some(2), "{wrong}: {run:?}");
    }
    let unknown = desk.run(&format!("dead-letters replay {}", Uuid::now_v7()), None);
    assert!(
        unknown.code == Some(1) && unknown.stderr.contains("no dead letter has this identifier"),
        "{unknown:?}"
    );

    let replayed = desk.run(&format!("dead-letters replay {}", letters[0]), None);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    assert!(replayed.stdout.contains("postrider explain"), "{replayed:?}");
    let again = desk.run(&format!("dead-letters replay {}", letters[0]), None);
    assert!(
        again.code == Some(1) && again.stderr.contains("was replayed before"),
        "{again:?}"
    );
    let discarded = desk.run(
        &format!("dead-letters discard {} --json", letters[1]),
        Some("over"),
    );
    let discarded: Value = serde_json::from_str(&discarded.stdout).unwrap();
    assert_eq!(
        (&discarded["state"], &discarded["note"]),
        (&"DISCARDED".into(), &"over".into())
    );
    desk.service.stop().await;
}
