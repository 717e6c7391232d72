//! `events`, and the samples that `trigger` makes of them.

use serde_json::Value;

use super::SECRET;
use crate::postrider::postrider;

fn catalogue() -> Vec<Value> {
    let listed = postrider("events list --json").run();
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let mut listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    serde_json::from_value(listed["items"].take()).expect("items")
}

#[test]
fn every_event_type_has_a_sample_that_is_verified() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("request");
    let types = catalogue();
    assert!(types.len() > 30, "{}", types.len());
    for event_type in types {
        let name = event_type["name"].as_str().expect("a name");
        let variant = event_type["variants"][0]["name"].as_str();
        let variant = variant
            .map(|variant| format!("--variant {variant}"))
            .unwrap_or_default();
        let sample = postrider(&format!(
            "trigger {name} --to http://x --dry-run --secret {SECRET} {variant}"
        ))
        .run();
        assert_eq!((sample.code, sample.stderr.as_str()), (Some(0), ""), "{name}");
        std::fs::write(&saved, &sample.stdout).expect("it can be written");
        let found = postrider(&format!("verify --secret {SECRET} --request {}", saved.display())).run();
        assert_eq!(found.code, Some(0), "{name}: {found:?}");
    }
}

#[test]
fn event_types_are_shown_with_attributes_variants_and_data() {
    let shown = postrider("events show domain.deleted").run().stdout;
    for part in [
        "domain.deleted: ",
        "restorableUntil",
        "policy",
        "\"name\": \"example.org\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let variant = postrider("events show domain.deleted --variant policy --json")
        .run()
        .stdout;
    let variant: Value = serde_json::from_str(&variant).expect("JSON");
    assert_eq!(variant["reason"], "policy");
    let schema = postrider("events show domain.deleted --schema").run().stdout;
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    assert_eq!(schema["type"], "object", "{schema}");
    let some = postrider("events list transfer").run().stdout;
    assert!(
        some.contains("domain.transfer.completed") && !some.contains("domain.created"),
        "{some}"
    );
}

#[test]
fn unknown_names_are_answered_with_those_that_are_like_them() {
    let unknown = postrider("events show domain.craeted").run();
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("did you mean domain.created"),
        "{unknown:?}"
    );
    let unknown = postrider("events show domain.deleted --variant polcy").run();
    assert!(unknown.stderr.contains("it has expired, "), "{unknown:?}");
}

#[test]
fn edits_that_the_catalogue_does_not_know_are_sent_with_a_note() {
    let sample = postrider(&format!(
        "trigger domain.created --to http://x --dry-run --secret {SECRET}"
    ))
    .arg("--set")
    .arg("domain.nmae=x")
    .arg("--set")
    .arg("domain.periodInYears=many")
    .run();
    assert_eq!(sample.code, Some(0), "{sample:?}");
    assert!(sample.stdout.contains(r#""nmae":"x""#), "{sample:?}");
    assert!(sample.stderr.contains("did you mean domain.name?"), "{sample:?}");
    assert!(
        sample
            .stderr
            .contains("would never send this data: data/domain/periodInYears"),
        "{sample:?}"
    );
    let lost = postrider(&format!(
        "trigger domain.created --to http://x --secret {SECRET} --set domian.name=x"
    ))
    .run();
    assert!(
        lost.stderr
            .contains("the data has no domian; did you mean domain?"),
        "{lost:?}"
    );
}

#[test]
fn completions_and_help_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = postrider(&format!("completions {shell}")).run();
        assert_eq!(script.code, Some(0), "{script:?}");
        assert!(script.stdout.contains("POSTRIDER_COMPLETE"), "{}", script.stdout);
    }
    for (line, offered) in [
        ("tri", "trigger"),
        ("listen --for", "--forward-to"),
        // What is built in, since no portal is there to be asked.
        ("trigger domain.cr", "domain.created"),
        (
            "subscriptions create --event-types contact.deleted,domain.cr",
            "contact.deleted,domain.created",
        ),
    ] {
        assert_eq!(completed(line), offered, "{line}");
    }
    // Keys are there, and nothing answers: nothing but options is offered, and nothing said.
    let offered = completed("jobs show ");
    assert!(offered.lines().all(|word| word.starts_with("--")), "{offered}");
    assert_eq!(completed("dead-letters list --fingerprint "), "");
    let help = postrider("--help").run();
    assert_eq!(help.code, Some(0));
    assert!(
        help.stdout
            .contains("For resellers' developers, without any server:\n  listen"),
        "{}",
        help.stdout
    );
}

/// What a shell offers for the last word of a line, where no service answers.
fn completed(line: &str) -> String {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let words: Vec<&str> = line.split(' ').collect();
    let asked = postrider("-- postrider")
        .env("POSTRIDER_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("PORTAL_URL", &url)
        .env("RESELLER_KEY", "key")
        .env("OPERATOR_URL", &url)
        .env("OPERATOR_KEY", "key");
    let done = words.iter().fold(asked, |asked, word| asked.arg(word)).run();
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""), "{line}");
    done.stdout
}
