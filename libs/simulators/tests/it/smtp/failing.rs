//! How the sink fails when it is told to.

use simulators::smtp::{Action, Rule, Stage};

use crate::smtp::Sink;

fn refusing(stage: Stage) -> Rule {
    Rule::always(stage, Action::Answer(451, "4.3.0 not now".to_owned()))
}

#[tokio::test]
async fn every_stage_can_be_refused_and_works_again_afterwards() {
    let sink = Sink::start().await;
    let mut client = sink.greeted().await;
    sink.running.script(
        [
            Stage::Hello,
            Stage::Auth,
            Stage::Sender,
            Stage::Recipient,
            Stage::Data,
            Stage::Message,
        ]
        .map(|stage| refusing(stage).times(1))
        .to_vec(),
    );
    for command in ["EHLO test", "AUTH PLAIN x", "MAIL FROM:<a@example.org>"] {
        client.expect(command, "451 4.3.0 not now").await;
    }
    client.expect("MAIL FROM:<a@example.org>", "250 ").await;
    client.expect("RCPT TO:<b@example.org>", "451 ").await;
    client.expect("RCPT TO:<b@example.org>", "250 ").await;
    client.expect("DATA", "451 ").await;
    client.expect("DATA", "354 ").await;
    client.expect("lost\r\n.", "451 ").await;
    client.begin("b@example.org").await;
    client.expect("kept\r\n.", "250 ").await;
    assert_eq!(sink.files(), [b"kept\r\n"]);
    assert_eq!(sink.running.report().refused, 6);
}

#[tokio::test]
async fn a_connection_can_be_left_hanging_or_closed() {
    let sink = Sink::start().await;
    sink.running.script(vec![
        Rule::always(Stage::Connect, Action::Hang).times(1),
        Rule::always(Stage::Connect, Action::Close).times(1),
        Rule::always(Stage::Hello, Action::Answer(421, "going down".to_owned())).times(1),
    ]);
    assert!(sink.client().await.is_silent().await);
    assert!(sink.client().await.is_closed().await);
    let mut client = sink.client().await;
    client.answer().await;
    client.expect("EHLO test", "421 going down").await;
    assert!(client.is_closed().await);
}

#[tokio::test]
async fn a_mail_can_be_kept_without_its_sender_learning_of_it() {
    let sink = Sink::start().await;
    sink.running.script(vec![
        Rule::always(Stage::Message, Action::KeepAndClose).to("b@example.org"),
    ]);
    let mut client = sink.greeted().await;
    client.begin("b@example.org").await;
    client.write(b"kept\r\n.\r\n").await;
    assert!(client.is_closed().await);
    assert_eq!(sink.files(), [b"kept\r\n"]);
}

#[tokio::test]
async fn a_sink_that_is_stopped_closes_its_connections_and_leaves_its_port() {
    let sink = Sink::start().await;
    let mut client = sink.greeted().await;
    let addr = sink.running.addr();
    sink.running.shutdown().await;
    assert!(client.is_closed().await);
    assert!(tokio::net::TcpListener::bind(addr).await.is_ok());
}
