//! The configuration. Any file with any variables: a configuration or errors, each with its subject and what to do. And
//! secrets in every shape that YAML has for a value: whatever is said about them, they are not in it.

use arbitrary::{Result, Unstructured};
use config::{Secret, Sources};
use url::Url;

/// What no output may hold.
const HIDDEN: &str = "hunter2secret";

/// Checks the property. The first byte chooses between any configuration, secrets in it, and a URL that holds one.
pub fn check(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else {
        return;
    };
    match choice % 3 {
        0 => {
            any(rest);
        }
        1 => {
            let _ = with_secrets(&mut Unstructured::new(rest));
        }
        _ => masked(rest),
    }
}

/// A file and variables, a NUL between any two of them.
fn any(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let mut parts = text.split('\0');
    let mut sources = Sources::default().with_yaml("postrider.yaml", parts.next().unwrap_or_default());
    for (name, value) in parts.filter_map(|variable| variable.split_once('=')).take(20) {
        sources = sources.with_variable(format!("POSTRIDER__{name}"), value);
    }
    checked(&sources);
}

/// All that is ever printed of a configuration.
fn checked(sources: &Sources) -> String {
    match config::load(sources) {
        Ok(config) => {
            let again = Sources::default().with_yaml("shown.yaml", config.redacted_yaml());
            if let Err(errors) = config::load(&again) {
                let said = errors.to_string();
                assert!(
                    !said.contains("not valid YAML"),
                    "{said}\n{}",
                    config.redacted_yaml()
                );
                assert!(!said.contains("unknown key"), "{said}");
            }
            format!("{config:?}\n{}", config.redacted_yaml())
        }
        Err(errors) => {
            let said = errors.to_string();
            assert!(!errors.problems().is_empty());
            for problem in errors.problems() {
                assert!(
                    !problem.subject.is_empty() && !problem.mend.is_empty(),
                    "{problem:?}"
                );
                assert!(said.contains(&problem.to_string()), "{said}");
            }
            format!("{said}\n{errors:?}\n{sources:?}")
        }
    }
}

fn with_secrets(input: &mut Unstructured<'_>) -> Result<()> {
    const KEYS: [(&str, &str); 7] = [
        ("database", "url"),
        ("amqp", "url"),
        ("mail", "smtpUrl"),
        ("swrve", "messagePrototypePushKeys"),
        ("reseller", "secrets: { key"),
        ("reseller", "secrets: { previousKeys"),
        ("swrve", "url"),
    ];
    let (section, key) = *input.choose(&KEYS[..6])?;
    let value = shaped(input, 3)?;
    let end = if key.contains('{') { " }" } else { "" };
    let yaml = format!("{section}:\n  {key}: {value}{end}\n");
    let printed = checked(&Sources::default().with_yaml("postrider.yaml", yaml.clone()));
    assert!(!printed.contains(HIDDEN), "{yaml}\n{printed}");
    let variable = *input.choose(&[
        "DATABASE__URL",
        "AMQP__URL",
        "MAIL__SMTP_URL",
        "SWRVE__MESSAGE_PROTOTYPE_PUSH_KEYS",
        "RESELLER__SECRETS__KEY",
        "RESELLER__SECRETS__PREVIOUS_KEYS",
    ])?;
    let printed = checked(&Sources::default().with_variable(format!("POSTRIDER__{variable}"), &value));
    assert!(!printed.contains(HIDDEN), "{variable}={value}\n{printed}");
    Ok(())
}

/// The secret as a value: alone, in a URL, in lists and mappings, quoted, tagged, anchored, or where YAML wants
/// something else.
fn shaped(input: &mut Unstructured<'_>, depth: usize) -> Result<String> {
    let simple = [
        HIDDEN.to_owned(),
        format!("'{HIDDEN}'"),
        format!("\"{HIDDEN}\""),
        format!("postgres://user:{HIDDEN}@localhost/postrider"),
        format!("amqp://user:{HIDDEN}@localhost"),
        format!("smtp://user:{HIDDEN}@localhost"),
        format!("postgres://user:{HIDDEN}"),
        format!("*{HIDDEN}"),
        format!("&{HIDDEN} x"),
        format!("!{HIDDEN} x"),
        format!("!!int {HIDDEN}"),
        format!("\"\\{HIDDEN}\""),
        format!("\"{HIDDEN}"),
        format!("%{HIDDEN}"),
        format!("@{HIDDEN}"),
        format!("`{HIDDEN}"),
        format!("| {HIDDEN}"),
        format!(": {HIDDEN}"),
        format!("{HIDDEN}: {HIDDEN}: x"),
    ];
    let kind = input.int_in_range(0..=if depth == 0 { 0 } else { 4 })?;
    Ok(match kind {
        1 => format!("[{}, {}]", shaped(input, depth - 1)?, shaped(input, depth - 1)?),
        2 => format!("{{ Hello: {} }}", shaped(input, depth - 1)?),
        3 => format!(
            "{{ Hello: {{ IOS: {}, ANDROID: {} }} }}",
            shaped(input, depth - 1)?,
            shaped(input, depth - 1)?
        ),
        4 => format!(
            "{{ {}: {} }}",
            input.choose(&["IOS", "x", "Hello"])?,
            shaped(input, depth - 1)?
        ),
        _ => input.choose(&simple)?.clone(),
    })
}

/// A URL as it may be shown has no password.
fn masked(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let shown = Secret::new(text).masked_url();
    let Ok(url) = Url::parse(text) else { return };
    let Some(password) = url.password().filter(|password| password.len() >= 4) else {
        return;
    };
    let elsewhere = [url.scheme(), url.host_str().unwrap_or_default(), url.path()];
    if elsewhere.iter().all(|part| !part.contains(password)) {
        assert!(!shown.contains(password), "{shown}");
    }
}
