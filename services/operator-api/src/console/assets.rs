//! What pages load: the style sheet and scripts, kept in the tree. Their addresses hold their digests, so that browsers may keep them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header;
use http_api::{Problem, ProblemKind};
use sha2::{Digest as _, Sha256};

struct Asset {
    name: &'static str,
    media_type: &'static str,
    content: &'static [u8],
}

const ASSETS: [Asset; 3] = [
    Asset {
        name: "console.css",
        media_type: "text/css; charset=utf-8",
        content: include_bytes!("../../assets/console.css"),
    },
    Asset {
        name: "htmx.min.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../assets/htmx.min.js"),
    },
    Asset {
        name: "console.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../../assets/console.js"),
    },
];

/// A digest of all of them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut digest = Sha256::new();
    for asset in &ASSETS {
        digest.update(asset.content);
    }
    let digest: [u8; 32] = digest.finalize().into();
    digest[..8].iter().map(|byte| format!("{byte:02x}")).collect()
});

/// Where an asset is.
pub(super) fn address(name: &str) -> String {
    format!("/console/assets/{}/{name}", *VERSION)
}

/// Serves one. Of another version than this, as a page of the version before asks for, it answers what it has, which is not to be kept.
pub(super) async fn serve(Path((version, name)): Path<(String, String)>) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|asset| asset.name == name);
    let asset = found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND, "the console has no such asset"))?;
    let kept = if version == *VERSION {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let headers = [
        (header::CONTENT_TYPE, asset.media_type),
        (header::CACHE_CONTROL, kept),
    ];
    Ok((headers, asset.content).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_unchanged() {
        let sums = include_str!("../../assets/SHA256SUMS");
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a digest and a name");
            let asset = ASSETS
                .iter()
                .find(|asset| asset.name == name)
                .expect("an asset that is served");
            let digest: [u8; 32] = Sha256::digest(asset.content).into();
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, sum, "{name}");
        }
    }
}
