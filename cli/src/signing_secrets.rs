//! The signing secrets that a command is given: by option, environment or file.

use anyhow::{Context as _, bail};
use clap::Args;
use signing::Secret;

use crate::file;

#[derive(Debug, Clone, Args)]
pub(crate) struct SecretArgs {
    /// A signing secret (whsec_…); may be repeated, or hold several with commas or blanks between them [env: SIGNING_SECRET, when neither
    /// this nor --secrets-file is given].
    #[arg(long = "secret", value_name = "SECRET")]
    secrets: Vec<String>,
    /// File with one secret a line; lines that begin with # are passed over. - for standard input.
    #[arg(long, value_name = "FILE", visible_alias = "secret-file")]
    secrets_file: Option<String>,
    /// What the environment holds, for when the command line names none: a secret that was exported for something else would make a wrong
    /// one look right.
    #[arg(long, env = "SIGNING_SECRET", hide = true, hide_env_values = true)]
    signing_secret: Option<String>,
}

impl SecretArgs {
    /// The texts as they were given; they may be no secrets at all.
    pub(crate) fn texts(&self) -> anyhow::Result<Vec<String>> {
        let is_named = !self.secrets.is_empty() || self.secrets_file.is_some();
        let exported = self.signing_secret.iter().filter(|_| !is_named);
        let separate = |c: char| c == ',' || c.is_whitespace();
        let given = self
            .secrets
            .iter()
            .chain(exported)
            .flat_map(|text| text.split(separate));
        let mut texts: Vec<String> = given.filter(|text| !text.is_empty()).map(str::to_owned).collect();
        if let Some(path) = &self.secrets_file {
            let content = file::read(path)?;
            let lines = content.lines().filter(|line| !line.trim().is_empty());
            let before = texts.len();
            texts.extend(
                lines
                    .filter(|line| !line.trim_start().starts_with('#'))
                    .map(str::to_owned),
            );
            if texts.len() == before {
                bail!("{path} holds no secret; write one a line, from whsec_ to its end");
            }
        }
        Ok(texts)
    }

    /// The secrets, which may be none; what is given must be usable.
    pub(crate) fn secrets(&self) -> anyhow::Result<Vec<Secret>> {
        let texts = self.texts()?;
        let read = |(place, text): (usize, &String)| {
            Secret::parse(text).with_context(|| {
                format!(
                    "secret {} of --secret, SIGNING_SECRET and --secrets-file cannot be used; copy it again, from whsec_ to \
                     its end",
                    place + 1
                )
            })
        };
        texts.iter().enumerate().map(read).collect()
    }

    /// The same of a command that can do nothing without one.
    pub(crate) fn required(&self) -> anyhow::Result<Vec<Secret>> {
        let secrets = self.secrets()?;
        if secrets.is_empty() {
            bail!(
                "no signing secret is given; SIGNING_SECRET or --secrets-file takes the one that your endpoint knows \
                 (`postrider listen` makes and prints one)"
            );
        }
        Ok(secrets)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn given(secrets: &[&str], file: Option<&str>, exported: Option<&str>) -> Vec<String> {
        let args = SecretArgs {
            secrets: secrets.iter().map(|&secret| secret.to_owned()).collect(),
            secrets_file: file.map(str::to_owned),
            signing_secret: exported.map(str::to_owned),
        };
        args.texts().unwrap()
    }

    #[test]
    fn several_are_told_apart_and_the_command_line_replaces_the_environment() {
        assert_eq!(given(&["a,b", "c d"], None, None), ["a", "b", "c", "d"]);
        assert_eq!(given(&[], None, Some("a\nb")), ["a", "b"]);
        assert_eq!(given(&["a"], None, Some("b")), ["a"]);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"# old\nwhsec_c\n").unwrap();
        let path = file.path().to_str();
        assert_eq!(given(&[], path, Some("b")), ["whsec_c"]);
        assert_eq!(given(&["a"], path, None), ["a", "whsec_c"]);
    }
}
