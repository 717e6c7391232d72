//! `postrider healthcheck`: a probe for containers, whose images need no HTTP client for it.

use std::time::Duration;

use anyhow::bail;
use clap::Args;

use crate::{output, web};

/// A container that takes longer than this to say that it is alive is not well.
const LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  postrider healthcheck http://127.0.0.1:9090/readyz")]
pub(crate) struct HealthcheckArgs {
    /// What to ask, for example http://127.0.0.1:9090/healthz.
    url: String,
}

/// Fails unless the URL answers with a 2xx status.
pub(crate) async fn run(args: &HealthcheckArgs) -> anyhow::Result<()> {
    let request = web::client(LIMIT)?.get(&args.url);
    let response = web::send(request, &args.url).await?;
    let status = response.status();
    if !status.is_success() {
        let body = response.text().await.unwrap_or_default();
        let said = output::harmless(body.trim());
        bail!("{} answered {status}: {said}", args.url);
    }
    Ok(())
}
