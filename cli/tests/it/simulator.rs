//! `sim swrve`, `sim smtp` and `sim report`.

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

#[tokio::test]
async fn the_mail_server_says_where_it_listens_keeps_mails_and_reports_at_the_end() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let folder = std::env::temp_dir().join(format!("postrider-mail-{}", uuid::Uuid::now_v7().simple()));
    let mut process = postrider(&format!(
        "sim smtp --listen 127.0.0.1:0 --dir {}",
        folder.display()
    ))
    .start();
    let line = process.line();
    let addr = line
        .trim_end()
        .strip_prefix("listening on smtp://")
        .expect("the address");
    let mut client = tokio::net::TcpStream::connect(addr).await.unwrap();
    let dialogue = "HELO me\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.org>\r\nDATA\r\n\
                    Subject: hello\r\n\r\nhello\r\n.\r\nQUIT\r\n";
    client.write_all(dialogue.as_bytes()).await.unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).await.unwrap();
    assert!(answers.ends_with("221 2.0.0 bye\r\n"), "{answers}");
    let (status, report) = process.stop().await;
    assert_eq!(status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["kept"], 1);
    let kept = std::fs::read_to_string(report["mails"][0]["file"].as_str().unwrap()).unwrap();
    assert_eq!(kept, "Subject: hello\r\n\r\nhello\r\n");
    std::fs::remove_dir_all(folder).unwrap();
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
