//! A request as a command line for curl.

use reqwest::Url;

use super::sample::Sample;

/// What a POSIX shell hands to curl is the request to the byte.
pub(super) fn command(to: &Url, sample: &Sample) -> String {
    let mut words = vec![format!("curl --include {}", quoted(to.as_str()))];
    words.extend(
        sample
            .headers
            .iter()
            .map(|(name, value)| format!("-H {}", quoted(&format!("{name}: {value}")))),
    );
    // --data would take off line ends, and read a file for what begins with @.
    words.push(format!("--data-raw {}", quoted(&sample.body)));
    words.join(" \\\n  ")
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_for_the_shell_to_understand() {
        let sample = Sample {
            id: "1".to_owned(),
            headers: vec![("webhook-id", "1".to_owned())],
            body: r#"{"owner":"O'Neill $HOME `x`"}"#.to_owned(),
            challenge: None,
        };
        let url = "http://127.0.0.1:8000/a?b=c".parse().unwrap();
        assert_eq!(
            command(&url, &sample),
            "curl --include 'http://127.0.0.1:8000/a?b=c' \\\n  -H 'webhook-id: 1' \\\n  --data-raw \
             '{\"owner\":\"O'\\''Neill $HOME `x`\"}'"
        );
    }
}
