//! `push`, `push show` and `demo` against all services in one process.

use axum::http::{StatusCode, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;
use testkit::{Installation, eventually};

use crate::kit::pretended;
use crate::postrider::{Finished, Postrider, Running, is_put_off, key_of, postrider, until_ready};

const PUSH_KEYS: &str = r#"{"Hello": {"IOS": "key-for-ios", "ANDROID": "key-for-android"}}"#;

/// All services, and what a caller needs to reach them.
struct Up {
    _process: Running,
    ingest_url: String,
    admin_url: String,
    key: String,
    sim_url: String,
    /// Where user agents connect, and where senders send to.
    webpush: (String, String),
}

impl Up {
    async fn start(it: &Installation, push_keys: &str) -> Self {
        let process = postrider("up")
            .within(it)
            .env("POSTRIDER__SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS", push_keys)
            .env("POSTRIDER__PUSH__RETRY__DELAY_IN_SECONDS", "0")
            .env("POSTRIDER__PUSH__JOB__SEND_SCHEDULED__REPEAT_INTERVAL", "200")
            .env("POSTRIDER__PUSH__JOB__SEND_SCHEDULED__PORTION_SIZE", "40")
            .env(
                "POSTRIDER__WEBPUSH__KEYS",
                "ahsxBmOXR-N04gL44_0nsRjzEQI_YdZ4xObdHcC0HVM=",
            )
            .env("POSTRIDER__WEBPUSH__ENDPOINT__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__WEBPUSH__CONNECTION__LISTEN", "127.0.0.1:0")
            .env("POSTRIDER__WEBPUSH__CONNECTION__ROUTER_LISTEN", "127.0.0.1:0")
            // On a slow machine, too, a user agent that acknowledges does so in time.
            .env("POSTRIDER__WEBPUSH__CONNECTION__ACK_WAIT_MILLIS", "2000")
            .start();
        let admin = process.address_logged_with("serving /healthz, /readyz and /metrics");
        let admin_url = format!("http://{admin}");
        // In the order in which `postrider up` starts those that listen.
        let [ingest, _, _, senders, agents] = [(); 5].map(|()| process.address_logged_with("listening"));
        let ingest_url = format!("http://{ingest}");
        until_ready(&admin).await;
        Self {
            _process: process,
            ingest_url,
            admin_url,
            key: key_of(&it.pool, "ingest"),
            sim_url: format!("http://{}", it.sim.addr()),
            webpush: (format!("ws://{agents}"), format!("http://{senders}")),
        }
    }

    fn caller(&self, arguments: &str) -> Postrider {
        postrider(arguments)
            .env("INGEST_URL", &self.ingest_url)
            .env("INGEST_KEY", &self.key)
            .env("METRICS_URL", format!("{}/metrics", self.admin_url))
            .env("SWRVE_SIM_URL", &self.sim_url)
            .env("WEBPUSH_SOCKET_URL", &self.webpush.0)
            .env("WEBPUSH_URL", &self.webpush.1)
    }

    /// Asks again when it is told to.
    async fn post(&self, message: &str) -> Finished {
        let push =
            "push --platform ios --prototype Hello --push-key device-1 --idempotency-key once --message";
        eventually("an answer", async || {
            let finished = self.caller(push).arg(message).run();
            (!is_put_off(&finished)).then_some(finished)
        })
        .await
    }

    async fn demo(&self) -> Finished {
        eventually("the demo to get answers", async || {
            let finished = self.caller("demo --pushes 20").run();
            (!is_put_off(&finished)).then_some(finished)
        })
        .await
    }
}

#[testkit::test]
async fn several_pushes_are_handed_in_together_and_waited_for(it: Installation) {
    let up = Up::start(&it, PUSH_KEYS).await;
    let pushes = tempfile::NamedTempFile::new().expect("a file");
    let text = r#"{"platform": "IOS", "messagePrototypeKey": "Hello", "pushKey": "device-1", "message": "one"}
                  {"platform": "IOS", "pushKey": "device-2", "message": "without a prototype there is no key"}"#;
    std::fs::write(pushes.path(), text).expect("written");
    let command = format!("push --wait --data @{}", pushes.path().display());
    let waited = eventually("an answer", async || {
        let finished = up.caller(&command).run();
        (!is_put_off(&finished)).then_some(finished)
    })
    .await;
    assert_eq!(waited.code, Some(1), "{waited:?}");
    assert!(waited.stderr.contains("1 of 2 pushes not sent"), "{waited:?}");
    let ids: Vec<&str> = waited.stdout.lines().collect();
    let [sent, failed] = ids[..] else {
        panic!("{waited:?}")
    };
    for (id, status) in [(sent, "status\tSENT"), (failed, "status\tFAILED")] {
        let shown = up.caller(&format!("push show /push/{id} -o tsv")).run();
        assert!(shown.stdout.lines().any(|line| line == status), "{shown:?}");
    }
}

/// What is refused is named by its place, the others are stored, and the mended file stores nothing twice.
#[testkit::test]
async fn a_mistake_among_several_pushes_is_mended_without_handing_any_in_twice(it: Installation) {
    let up = Up::start(&it, PUSH_KEYS).await;
    let pushes = tempfile::NamedTempFile::new().expect("a file");
    let write = |second: &str| {
        let push = |device: &str, field: &str| {
            format!(
                r#"{{"platform": "IOS", "messagePrototypeKey": "Hello", "pushKey": "{device}", "{field}": "x"}}"#
            )
        };
        let text = [push("b1", "message"), push("b2", second), push("b3", "message")].join("\n");
        std::fs::write(pushes.path(), text).expect("written");
    };
    let command = format!("push --idempotency-key once --data @{}", pushes.path().display());
    let run = async || {
        eventually("an answer", async || {
            let finished = up.caller(&command).run();
            (!is_put_off(&finished)).then_some(finished)
        })
        .await
    };
    write("mesage");
    let refused = run().await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    for part in [
        "push 2 of 3: the push was refused with 422",
        "did you mean message?",
        "1 of 3 pushes refused, the others are stored; mend it and repeat the whole with --idempotency-key once",
    ] {
        assert!(refused.stderr.contains(part), "{refused:?}");
    }
    write("message");
    let mended = run().await;
    assert_eq!(mended.code, Some(0), "{mended:?}");
    let (before, after): (Vec<&str>, Vec<&str>) =
        (refused.stdout.lines().collect(), mended.stdout.lines().collect());
    assert_eq!((before.len(), after.len()), (2, 3), "{refused:?} {mended:?}");
    assert_eq!([before[0], before[1]], [after[0], after[2]]);
}

/// What is beyond the pace of the key is handed in as soon as there is more of it.
#[testkit::test]
async fn several_pushes_are_handed_in_at_the_pace_of_the_key(it: Installation) {
    let up = Up::start(&it, PUSH_KEYS).await;
    let slow = key_of(&it.pool, "ingest --per-second 1");
    let pushes = tempfile::NamedTempFile::new().expect("a file");
    let push =
        r#"{"platform": "IOS", "messagePrototypeKey": "Hello", "pushKey": "device-1", "message": "one"}"#;
    std::fs::write(pushes.path(), [push; 4].join("\n")).expect("written");
    let command = format!("push --data @{}", pushes.path().display());
    let finished = eventually("an answer", async || {
        let finished = up.caller(&command).env("INGEST_KEY", &slow).run();
        (!is_put_off(&finished)).then_some(finished)
    })
    .await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(finished.stdout.lines().count(), 4, "{finished:?}");
}

#[testkit::test]
async fn the_demo_finds_everything_as_it_should_be(it: Installation) {
    let up = Up::start(&it, PUSH_KEYS).await;
    let finished = up.demo().await;
    assert_eq!(finished.code, Some(0), "{}\n{}", finished.stdout, finished.stderr);
    for part in [
        "GIVEN_UP",
        "SCHEDULED",
        "202 replayed",
        "422",
        "Smallest gap between send starts: ",
        "user agent connected",
        "away, three of one topic",
        "410",
    ] {
        assert!(finished.stdout.contains(part), "{}", finished.stdout);
    }
}

#[testkit::test]
async fn the_demo_says_what_deviates(it: Installation) {
    let up = Up::start(&it, r#"{"Hello": {"IOS": "key-for-ios"}}"#).await;
    let finished = up.demo().await;
    assert_eq!(finished.code, Some(1), "{}\n{}", finished.stdout, finished.stderr);
    let wanted = "plain, ANDROID: 10 of 10 should be SENT after 1 attempt, but for example ";
    assert!(finished.stderr.contains(wanted), "{}", finished.stderr);
    assert!(!finished.stderr.contains("plain, IOS"), "{}", finished.stderr);
}

#[testkit::test]
async fn a_push_is_handed_in_once_per_idempotency_key_and_shown(it: Installation) {
    let up = Up::start(&it, PUSH_KEYS).await;
    let posted = up.post("Hello client!").await;
    assert_eq!(posted.code, Some(0), "{posted:?}");
    assert_eq!(up.post("Hello client!").await.stdout, posted.stdout);
    let other = up.post("Something else").await;
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("422"), "{}", other.stderr);
    let show = format!("push show {}", posted.stdout);
    let shown = eventually("the push to be sent", async || {
        let shown = up.caller(&show).run();
        shown.stdout.contains("SENT").then_some(shown)
    })
    .await;
    assert!(shown.stdout.contains(posted.stdout.trim()), "{}", shown.stdout);
    let json = up.caller(&show).arg("--json").run().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["status"], "SENT");
    assert_eq!(it.sim.report().accepted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_push_of_an_expression_that_repeats_is_said_to_be_sent_once() {
    const PUSH: &str = "/push/019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d";
    let accepted = post(async || (StatusCode::ACCEPTED, [(header::LOCATION, PUSH)]));
    let view = get(async || {
        Json(
            json!({"id": &PUSH[6..], "status": "SCHEDULED", "explanation": "Waits for its sending window.", "platform": "IOS",
                    "cronExpression": "0 0 9 ? * MON-FRI", "createdAt": "2026-11-21T12:00:00Z", "attempts": 0, "history": [],
                    "nextAttemptAt": "2026-11-23T09:00:00Z"}),
        )
    });
    let url = pretended(Router::new().route("/push", accepted).route("/push/{id}", view)).await;
    let push = format!(
        "push --key x --url {url} --platform ios --prototype Hello --push-key device-1 --message Hello"
    );
    let cron = "0 0 9 ? * MON-FRI";
    let once = postrider(&push).arg("--cron").arg(cron).run();
    assert_eq!(once.stdout.trim(), &PUSH[6..], "{once:?}");
    let said = "it is sent once, at the first time of `0 0 9 ? * MON-FRI`: 2026-11-23T09:00:00.000Z";
    assert!(once.stderr.contains(said), "{once:?}");
    let at_once = postrider(&push).run();
    assert!(!at_once.stderr.contains("sent once"), "{at_once:?}");
    let help = postrider("push --help").run().stdout;
    let help: Vec<&str> = help.split_whitespace().collect();
    let help = help.join(" ");
    for said in [
        "Sends it once",
        "second, minute, hour, day of the month, month, day of the week",
        "push.timeZone",
    ] {
        assert!(help.contains(said), "{help}");
    }
}
