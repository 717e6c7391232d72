//! What the sink takes, and that it keeps exactly that.

use crate::smtp::Sink;

#[tokio::test]
async fn a_mail_is_kept_as_it_came_without_the_dots_of_its_transport() {
    let sink = Sink::start().await;
    let mut client = sink.client().await;
    assert!(client.answer().await.starts_with("220 "));
    let mut answer = client.ask("EHLO test").await;
    while answer.starts_with("250-") {
        answer = client.answer().await;
    }
    assert!(answer.starts_with("250 "), "{answer}");
    client
        .expect("mail from:<a@example.org> SIZE=10 BODY=8BITMIME", "250 ")
        .await;
    client.expect("RCPT TO:<b@example.org>", "250 ").await;
    client.expect("RCPT TO:<c@example.org>", "250 ").await;
    client.expect("DATA", "354 ").await;
    client
        .write(b"Subject: x\r\n\r\n..two dots\r\n...\r\n.\n\xff\x00\r\n.\r\n")
        .await;
    assert!(client.answer().await.starts_with("250 "));
    client.expect("QUIT", "221 ").await;
    assert!(client.is_closed().await);
    assert_eq!(
        sink.files(),
        [b"Subject: x\r\n\r\n.two dots\r\n..\r\n\n\xff\x00\r\n"]
    );
    let report = sink.running.report();
    assert_eq!((report.connections, report.kept, report.refused), (1, 1, 0));
    assert_eq!(report.mails[0].sender, "a@example.org");
    assert_eq!(report.mails[0].recipients, ["b@example.org", "c@example.org"]);
    assert_eq!(
        std::fs::read(&report.mails[0].file).unwrap().len(),
        report.mails[0].bytes
    );
}

#[tokio::test]
async fn a_connection_takes_many_mails_and_many_connections_do_at_once() {
    let sink = Sink::start().await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(sink.greeted().await);
    }
    for round in 0..3 {
        for (n, client) in clients.iter_mut().enumerate() {
            client.begin("b@example.org").await;
            client.write(format!("{round}-{n}\r\n.\r\n").as_bytes()).await;
        }
        for client in &mut clients {
            assert!(client.answer().await.starts_with("250 "));
        }
    }
    let mut kept = sink.files();
    kept.sort();
    let expected: Vec<_> = (0..3)
        .flat_map(|round| (0..5).map(move |n| format!("{round}-{n}\r\n").into_bytes()))
        .collect();
    assert_eq!(kept, expected);
}

#[tokio::test]
async fn what_is_out_of_order_is_refused_and_the_dialogue_goes_on() {
    let sink = Sink::start().await;
    let mut client = sink.greeted().await;
    client.expect("DATA", "503 ").await;
    client.expect("RCPT TO:<b@example.org>", "503 ").await;
    client.expect("MAIL FROM:a@example.org", "501 ").await;
    client.expect("MAIL FRÖM", "501 ").await;
    client.expect("TURN", "500 ").await;
    client.expect(&"x".repeat(100_000), "500 ").await;
    client.begin("b@example.org").await;
    client.expect("kept\r\n.", "250 ").await;
    client.expect("MAIL FROM:<a@example.org>", "250 ").await;
    client.expect("RSET", "250 ").await;
    client.expect("RCPT TO:<b@example.org>", "503 ").await;
    client.expect("NOOP", "250 ").await;
    assert_eq!(sink.files(), [b"kept\r\n"]);
}

#[tokio::test]
async fn a_mail_that_is_too_large_or_cut_is_not_kept() {
    let sink = Sink::start().await;
    let mut client = sink.greeted().await;
    client.begin("b@example.org").await;
    let line = [&[b'x'; 60_000][..], b"\r\n"].concat();
    for _ in 0..200 {
        client.write(&line).await;
    }
    client.expect(".", "552 ").await;
    client.begin("b@example.org").await;
    client.write(b"half of\r\n").await;
    drop(client);
    let mut client = sink.greeted().await;
    client.begin("b@example.org").await;
    client.expect("whole\r\n.", "250 ").await;
    assert_eq!(sink.files(), [b"whole\r\n"]);
}
