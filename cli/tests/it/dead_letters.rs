//! `dead-letters list`, `dead-letters groups`, `dead-letters show`: as the engineer on call types them.

use domain::key::Role;
use domain::push::PushState;
use serde_json::Value;
use testkit::push_factory::PushRow;
use testkit::{Installation, key_of_the_house};

use crate::postrider::{Finished, postrider};

#[testkit::test]
async fn dead_letters_are_grouped_listed_by_pages_and_shown(it: Installation) {
    let service = postrider("serve operator-api").within(&it).start();
    let url = format!("http://{}", service.address_logged_with("listening"));
    let key = key_of_the_house(&it.store, &[Role::Viewer]).await;
    let run = |arguments: &str| -> Finished {
        let call = postrider(arguments).env("OPERATOR_URL", &url);
        call.env("OPERATOR_KEY", &key).run()
    };
    let json = |arguments: &str| -> Value {
        let finished = run(arguments);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        serde_json::from_str(&finished.stdout).expect("JSON")
    };
    let nothing = run("dead-letters list");
    assert!(
        nothing.stdout.is_empty() && nothing.stderr.contains("no dead letter matches"),
        "{nothing:?}"
    );
    for _ in 0..3 {
        PushRow::in_state(PushState::GivenUp)
            .attempts(2)
            .make(&it.pool)
            .await;
    }

    let groups = run("dead-letters groups --newer-than 1h");
    assert!(
        groups.stdout.contains("swrve-5xx") && groups.stderr.contains("3 dead letters"),
        "{groups:?}"
    );
    for command in ["groups", "list"] {
        let nothing = run(&format!(
            "dead-letters {command} --target https://hooks.example/a/path"
        ));
        assert!(
            nothing.stderr.contains(
                "no subscription has the endpoint https://hooks.example/a/path; a target is a code of Swrve"
            ),
            "{nothing:?}"
        );
    }
    let first = run("dead-letters list --limit 2 --lane push");
    let cursor = first.stderr.rsplit("--cursor ").next().expect("a cursor").trim();
    let rest = json(&format!("dead-letters list --lane push --cursor {cursor} --json"));
    assert_eq!(
        (rest["items"].as_array().map(Vec::len), &rest["next"]),
        (Some(1), &Value::Null)
    );
    let id = rest["items"][0]["id"].as_str().expect("an identifier");
    assert!(!first.stdout.contains(id));
    assert_eq!(
        json("dead-letters list --older-than 1h --json")["items"],
        serde_json::json!([])
    );

    let shown = run(&format!("dead-letters show {id}"));
    for part in [
        id,
        "GIVEN_UP",
        "swrve/503",
        "503 Service Unavailable",
        "250 ms",
        "--url",
    ] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    let curl = run(&format!("dead-letters show {id} --curl")).stdout;
    assert!(
        curl.starts_with("curl ") && curl.contains("\"$SWRVE_PUSH_KEY\""),
        "{curl}"
    );
    assert_eq!(
        json(&format!("dead-letters show {id} --json"))["curl"],
        curl.trim_end()
    );

    for (wrong, code, said) in [
        ("dead-letters list --lane fast", 2, "push, reseller"),
        ("dead-letters list --older-than soon", 2, "such as 90s"),
        ("dead-letters list --event-type X", 1, "eventType"),
        ("dead-letters list --cursor x", 1, "cursor"),
        (
            "dead-letters show 019aa2f0-5b1c-7c3e-9d41-6f1f2a3b4c5d",
            1,
            "no dead letter has this identifier",
        ),
        ("dead-letters show x", 2, "invalid value"),
    ] {
        let finished = run(wrong);
        assert_eq!(finished.code, Some(code), "{wrong}: {finished:?}");
        assert!(finished.stderr.contains(said), "{wrong}: {finished:?}");
    }
}
