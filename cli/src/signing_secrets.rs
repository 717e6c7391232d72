//! The signing secrets that a command is given: by option, environment or file.

use anyhow::{Context as _, bail};
use clap::Args;
use signing::Secret;

use crate::file;

#[derive(Debug, Clone, Args)]
pub(crate) struct SecretArgs {
    /// A signing secret (whsec_…); may be repeated, or hold several with commas between them.
    #[arg(
        long = "secret",
        value_name = "SECRET",
        env = "SIGNING_SECRET",
        hide_env_values = true,
        value_delimiter = ','
    )]
    secrets: Vec<String>,
    /// File with one secret a line; lines that begin with # are passed over. - for standard input.
    #[arg(long, value_name = "FILE")]
    secrets_file: Option<String>,
}

impl SecretArgs {
    /// The texts as they were given; they may be no secrets at all.
    pub(crate) fn texts(&self) -> anyhow::Result<Vec<String>> {
        let given = self.secrets.iter().filter(|text| !text.trim().is_empty());
        let mut texts: Vec<String> = given.cloned().collect();
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
                "no signing secret is given; pass the one that your endpoint knows with --secret or SIGNING_SECRET (`postrider \
                 listen` makes and prints one)"
            );
        }
        Ok(secrets)
    }
}
