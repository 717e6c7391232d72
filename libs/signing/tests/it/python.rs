//! Runs `verify.py` in the Python environment of this checkout, which `scripts/python` makes when it is missing.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// A message as the independent implementation gets it.
pub(crate) struct Message<'a> {
    pub(crate) secrets: Vec<&'a str>,
    /// An object.
    pub(crate) headers: Value,
    pub(crate) body: &'a [u8],
    /// Seconds since 1970; the real time for `None`.
    pub(crate) now: Option<i64>,
}

/// What the package says of each message: `ok`, or what it has against it.
///
/// # Panics
///
/// When Python or the package cannot be had. It says what to install: a check that silently does not take place would be worse.
pub(crate) fn verdicts(messages: &[Message<'_>]) -> Vec<String> {
    let mut input = String::new();
    for message in messages {
        let line = json!({
            "secrets": message.secrets,
            "headers": message.headers,
            "bodyBase64": STANDARD.encode(message.body),
            "now": message.now,
        });
        input.push_str(&line.to_string());
        input.push('\n');
    }
    let output = run(input);
    let verdicts: Vec<_> = output.lines().map(str::to_owned).collect();
    assert_eq!(
        verdicts.len(),
        messages.len(),
        "one verdict for each message:\n{output}"
    );
    verdicts
}

fn run(input: String) -> String {
    let script = checkout().join("libs/signing/tests/verify.py");
    let mut child = Command::new(interpreter())
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter can be run");
    let mut stdin = child.stdin.take().expect("it is piped");
    // From another thread: Python answers while it is still being asked, and both pipes would fill up.
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the script ends");
    writer
        .join()
        .expect("nothing panics")
        .expect("the script reads everything");
    assert!(output.status.success(), "verify.py failed: {}", output.status);
    String::from_utf8(output.stdout).expect("verdicts are UTF-8")
}

fn interpreter() -> PathBuf {
    let script = checkout().join("scripts/python");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .unwrap_or_else(|error| panic!("{} cannot be run: {error}", script.display()));
    assert!(
        output.status.success(),
        "no Python with the package standardwebhooks: scripts/python says above what to install"
    );
    let path = String::from_utf8(output.stdout).expect("a path");
    PathBuf::from(path.trim_end())
}

/// Wherever in the checkout the crate is that includes this module.
fn checkout() -> &'static Path {
    let is_root = |folder: &&Path| folder.join("scripts/python").exists();
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(is_root).expect("the crate is in its checkout")
}
