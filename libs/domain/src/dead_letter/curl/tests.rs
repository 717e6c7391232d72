//! Bash reads the commands as they are meant, whatever is in them.

use std::process::Command as Process;

use proptest::prelude::*;

use super::*;

const HOSTILE: [&str; 9] = [
    "it's",
    "a \"quoted\" word",
    "$(touch /tmp/owned) `id` ${HOME} $HOME",
    "two\nlines\r\nand\ttabs",
    "Sveiki, pasaule! 🎉 ñ",
    "\\ back \\\\ slashes \\'",
    "'; exit 1; '",
    "\u{1b}[2J\u{1b}]52;c;eA==\u{7}abc \u{9b}31m\u{7f}9 \r",
    "!history & | > < * ? [a-z] {a,b} # ~ @file",
];

/// The arguments that `curl` would get from bash.
fn arguments(command: &str) -> Vec<String> {
    let script = format!("curl() {{ printf '%s\\0' \"$@\"; }}\n{command}");
    let output = Process::new("bash")
        .args(["-c", &script])
        .env("SIGNATURE", "v1,sig nature")
        .env("SWRVE_PUSH_KEY", "key'\"$x")
        .env("DEVICE", "device 1")
        .env("ENDPOINT_CREDENTIALS", "user:word")
        .output()
        .expect("bash should run");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{command}\n{output:?}"
    );
    let text = String::from_utf8(output.stdout).expect("the arguments should be text");
    let mut arguments: Vec<String> = text.split('\0').map(str::to_owned).collect();
    arguments.pop();
    arguments
}

fn values_of<'a>(option: &str, arguments: &'a [String]) -> Vec<&'a str> {
    let pairs = arguments.windows(2).filter(|pair| pair[0] == option);
    pairs.map(|pair| &*pair[1]).collect()
}

fn notification<'a>(body: &'a str, url: &'a str, event_id: &'a str) -> NotificationRequest<'a> {
    NotificationRequest {
        url,
        event_id,
        idempotency_key: "0123abcd",
        signed_at: DateTime::from_timestamp(1_795_000_000, 999_000_000).expect("a time"),
        body,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    }
}

#[test]
fn a_shell_hands_curl_the_notification_as_it_was_sent() {
    for body in HOSTILE {
        let url = format!("https://acme.example/hook?q={}", body.replace('\n', "%0A"));
        let command = of_notification(&notification(body, &url, "event-1"));
        let obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!command.contains(obeyed), "{command:?}");
        let arguments = arguments(&command);
        assert_eq!(values_of("--data-raw", &arguments), [body]);
        assert_eq!(values_of("--url", &arguments), [url]);
        assert_eq!(
            values_of("--header", &arguments),
            [
                &*format!("user-agent: {USER_AGENT}"),
                "content-type: application/json",
                "webhook-id: event-1",
                "webhook-timestamp: 1795000000",
                "webhook-signature: v1,sig nature",
                "event-id: event-1",
                "idempotency-key: 0123abcd",
                "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ]
        );
    }
}

#[test]
fn a_shell_hands_curl_the_push_and_no_secret_is_in_the_text() {
    for message in HOSTILE {
        let command = of_push(&PushRequest {
            base_url: "https://swrve.example/api/1/",
            message,
            test: true,
            traceparent: None,
        });
        assert!(
            command.contains("\"$SWRVE_PUSH_KEY\"") && command.contains("\"$DEVICE\""),
            "{command}"
        );
        let arguments = arguments(&command);
        assert_eq!(
            values_of("--url", &arguments),
            ["https://swrve.example/api/1/push"]
        );
        assert_eq!(
            values_of("--data-urlencode", &arguments),
            [
                "push_key=key'\"$x",
                "user=device 1",
                &*format!("message={message}"),
                "test=1"
            ]
        );
    }
}

#[test]
fn credentials_in_a_url_become_a_variable() {
    for (url, shown) in [
        ("https://user:p%40ss@acme.example/a@b", "https://acme.example/a@b"),
        ("https://us@er@acme.example?x=@", "https://acme.example?x=@"),
    ] {
        let command = of_notification(&notification("{}", url, "e"));
        assert!(
            !command.contains("user:p") && !command.contains("us@er"),
            "{command}"
        );
        let arguments = arguments(&command);
        assert_eq!(values_of("--url", &arguments), [shown]);
        assert_eq!(values_of("--user", &arguments), ["user:word"]);
    }
    let plain = of_notification(&notification("{}", "https://acme.example/a@b", "e"));
    assert!(!plain.contains("--user "), "{plain}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_text_escapes_its_quotes(body in "[^\0]{0,200}", id in "\\PC{0,40}") {
        let arguments = arguments(&of_notification(&notification(&body, "https://acme.example/", &id)));
        prop_assert_eq!(values_of("--data-raw", &arguments), [&*body]);
        let wanted = format!("webhook-id: {id}");
        prop_assert!(values_of("--header", &arguments).contains(&&*wanted));
    }
}

#[test]
fn credentials_are_left_out_however_many_slashes_stand_before_them() {
    for url in [
        "https://user:hunter2@swrve.test/api",
        "https:///user:hunter2@swrve.test/api",
        "https:/\\user:hunter2@swrve.test/api",
        "https:user:hunter2@swrve.test/api",
        "https://user:hunter2@swrve.test\\api",
    ] {
        let (shown, had_some) = without_credentials(url);
        assert!(had_some && !shown.contains("hunter2"), "{shown}");
        assert!(shown.starts_with("https://swrve.test"), "{shown}");
    }
}
