//! What the settings may look like, and that they give no password away.

use std::time::Duration;

use mail::{MailServer, Settings, SettingsError};

fn settings(url: &str, from: &str) -> Settings {
    Settings {
        url: url.to_owned(),
        from: from.to_owned(),
        timeout: Duration::from_secs(1),
        dashboard: None,
    }
}

#[test]
fn every_form_of_url_is_understood_and_shown_without_its_password() {
    for url in [
        "smtp://localhost",
        "smtp://user:hush%2Fhush@localhost:2525",
        "smtp://mail.example.org:2525",
        "smtp://user:hush@mail.example.org?tls=required",
        "smtp://[::1]:25?tls=opportunistic",
        "smtps://user:hush@127.0.0.1",
    ] {
        let server = MailServer::new(&settings(url, "Postrider <a@example.org>")).unwrap();
        assert!(!format!("{server:?}").contains("hush"), "{server:?}");
    }
}

#[test]
fn other_settings_are_refused_without_being_shown() {
    for (url, from) in [
        ("no url", "a@example.org"),
        ("http://hush@localhost", "a@example.org"),
        ("smtp://user:hush@localhost?tls=maybe", "a@example.org"),
        ("smtps://user:hush@localhost?tls=required", "a@example.org"),
        ("smtp://user:hush@mail.example.org:2525", "a@example.org"),
        (
            "smtp://user:hush@mail.example.org?tls=opportunistic",
            "a@example.org",
        ),
        ("smtp://user:hush@192.0.2.1", "a@example.org"),
        ("smtp://localhost", "nobody"),
    ] {
        let error = MailServer::new(&settings(url, from)).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"), "{url}");
        assert_eq!(matches!(error, SettingsError::From(_)), from == "nobody", "{url}");
    }
}
