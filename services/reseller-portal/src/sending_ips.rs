//! `/.well-known/postrider-ips.json`: where requests come from, for firewalls. A reader needs no key for it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ipnet::IpNet;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;

/// Where requests come from.
#[derive(Serialize, ToSchema)]
#[schema(as = SendingIps)]
pub(crate) struct SendingIpsDocument {
    /// Addresses, and networks with their length.
    #[schema(example = json!(["203.0.113.7", "2001:db8::/48"]))]
    pub(crate) ips: Vec<String>,
}

/// Lists the addresses that requests come from.
///
/// An address is listed before anything is sent from it.
#[utoipa::path(
    get, path = "/.well-known/postrider-ips.json", tag = "service", operation_id = "sendingIps",
    responses((status = 200, description = "Addresses and networks.", body = SendingIpsDocument))
)]
pub(crate) async fn list(State(app): State<Arc<App>>) -> Json<SendingIpsDocument> {
    let ips = app.config.reseller.sending_ips.iter().map(written).collect();
    Json(SendingIpsDocument { ips })
}

/// A network of one address is that address.
fn written(network: &IpNet) -> String {
    if network.prefix_len() == network.max_prefix_len() {
        network.addr().to_string()
    } else {
        network.to_string()
    }
}
