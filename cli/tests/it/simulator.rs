//! `sim swrve` and `sim report`.

use testkit::eventually;

use crate::postrider::postrider;

#[tokio::test]
async fn the_simulator_says_where_it_listens_serves_and_reports_at_the_end() {
    let mut process =
        postrider("sim swrve --listen 127.0.0.1:0 --response-time fixed:0 --rate-limit off").start();
    let line = process.line();
    let url = line
        .trim_end()
        .strip_prefix("listening on ")
        .expect("the address");
    let probe = format!("healthcheck {url}/healthz");
    eventually("the simulator to answer", async || {
        (postrider(&probe).run().code == Some(0)).then_some(())
    })
    .await;
    let asked = postrider(&format!("sim report {url} --json")).run();
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let (status, report) = process.stop().await;
    assert_eq!(status.code(), Some(0));
    assert_eq!(report, asked.stdout);
    assert!(report.contains("\"received\": 0"), "{report}");
}

#[test]
fn what_the_simulator_cannot_use_is_refused_with_the_way_to_write_it() {
    for (arguments, code, part) in [
        ("sim swrve --response-time 5s", 2, "fixed:MILLIS"),
        ("sim swrve --rate-limit none", 2, "off"),
        ("sim swrve --script /nowhere.json", 1, "/nowhere.json"),
    ] {
        let finished = postrider(arguments).run();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
}
