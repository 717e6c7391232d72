//! Requests to a server that does nothing, from the same load generator.

use anyhow::{Result, ensure};

use super::{MEASURED, WARM_UP};
use crate::load::{self, Load};
use crate::rig::Rig;

/// Requests a second that the load generator and a bare server reach together.
pub(crate) async fn echoes(rig: &Rig, connections: usize) -> Result<f64> {
    let (process, target) = rig.echo().await?;
    load::put(Load::at_once(connections, WARM_UP), &target).await?;
    let tally = load::put(Load::at_once(connections, MEASURED), &target).await?;
    process.stop().await;
    ensure!(
        tally.errors() == 0,
        "the bare server refused: {}",
        tally.describe_errors()
    );
    Ok(tally.accepted_per_second())
}
