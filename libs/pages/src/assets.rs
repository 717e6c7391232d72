//! What pages load: the style sheet and scripts, kept in the tree. Their addresses hold their digests, so that browsers may keep them for ever.

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use http::{HeaderMap, header};
use http_api::{Problem, ProblemKind};
use sha2::{Digest as _, Sha256};

use crate::compression::{gzip, say, takes_gzip, vary};

/// A file that pages load.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// The last part of its address.
    pub name: &'static str,
    /// What it is.
    pub media_type: &'static str,
    /// Its bytes.
    pub content: &'static [u8],
}

const SHARED: [Asset; 3] = [
    Asset {
        name: "pages.css",
        media_type: "text/css; charset=utf-8",
        content: include_bytes!("../assets/pages.css"),
    },
    Asset {
        name: "htmx.min.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../assets/htmx.min.js"),
    },
    Asset {
        name: "pages.js",
        media_type: "text/javascript; charset=utf-8",
        content: include_bytes!("../assets/pages.js"),
    },
];

/// What the pages of a service load.
#[derive(Debug)]
pub struct Assets {
    at: &'static str,
    /// Each, and the same by gzip.
    all: Vec<(Asset, Option<Bytes>)>,
    /// A digest of all of them.
    version: String,
}

impl Assets {
    /// Those that all pages share, and a service's own. They are served at `{at}/{version}/{name}`.
    pub fn new(at: &'static str, own: &[Asset]) -> Self {
        let all = [&SHARED, own].concat();
        let mut digest = Sha256::new();
        for asset in &all {
            digest.update(asset.content);
        }
        let digest: [u8; 32] = digest.finalize().into();
        Self {
            at,
            version: digest[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
            all: all.into_iter().map(|asset| (asset, smaller(&asset))).collect(),
        }
    }

    /// Where an asset is.
    pub fn address(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.at, self.version)
    }

    /// Serves one, by gzip to browsers that take it so. Of another version than this, as a page of the version before asks for, it answers what it
    /// has, which is not to be kept.
    ///
    /// # Errors
    ///
    /// A [`ProblemKind::NOT_FOUND`] for one that is not there.
    pub fn serve(&self, version: &str, name: &str, asked: &HeaderMap) -> Result<Response, Problem> {
        let found = self.all.iter().find(|(asset, _)| asset.name == name);
        let (asset, small) =
            found.ok_or_else(|| Problem::new(ProblemKind::NOT_FOUND, "there is no such asset"))?;
        let kept = if version == self.version {
            "public, max-age=31536000, immutable"
        } else {
            "no-store"
        };
        let headers = [
            (header::CONTENT_TYPE, asset.media_type),
            (header::CACHE_CONTROL, kept),
        ];
        let mut response = match small {
            Some(small) if takes_gzip(asked) => {
                let mut response = (headers, small.clone()).into_response();
                say(response.headers_mut());
                response
            }
            _ => (headers, asset.content).into_response(),
        };
        vary(response.headers_mut());
        Ok(response)
    }
}

/// An asset as small as gzip makes it: it is compressed once, and sent often.
fn smaller(asset: &Asset) -> Option<Bytes> {
    gzip(asset.content, Compression::best()).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::path::Path;

    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn an_asset_is_compressed_for_browsers_that_take_it_so() {
        let assets = Assets::new("/assets", &[]);
        let serve = |asked: &HeaderMap| assets.serve(&assets.version, "pages.css", asked).unwrap();
        let plain = serve(&HeaderMap::new());
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        assert_eq!(
            plain.headers()[header::VARY],
            "accept-encoding",
            "a cache keeps both"
        );
        let mut asked = HeaderMap::new();
        asked.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        let answer = serve(&asked);
        let told = |name: HeaderName| &answer.headers()[name];
        assert_eq!(told(header::CONTENT_ENCODING), "gzip");
        assert_eq!(told(header::CONTENT_TYPE), "text/css; charset=utf-8");
        assert_eq!(told(header::VARY), "accept-encoding");
    }

    /// Ours are read by the people who change them, and by no compiler: what needs more belongs into the HTML that the server makes.
    #[test]
    fn our_own_scripts_have_600_lines_at_most() {
        let foreign = include_str!("../assets/SHA256SUMS");
        let is_ours = |path: &Path| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap();
            name.ends_with(".js") && !foreign.contains(name)
        };
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let services = fs::read_dir(here.join("../../services")).unwrap();
        let services = services.map(|service| service.unwrap().path());
        let folders = services.chain([here.to_owned()]);
        let scripts: Vec<_> = folders
            .map(|folder| folder.join("assets"))
            .filter(|folder| folder.is_dir())
            .flat_map(|folder| fs::read_dir(folder).unwrap())
            .map(|file| file.unwrap().path())
            .filter(|path| is_ours(path))
            .collect();
        assert!(scripts.len() >= 2, "{scripts:?}");
        let lines = scripts
            .iter()
            .map(|path| fs::read_to_string(path).unwrap().lines().count());
        assert!(lines.sum::<usize>() <= 600, "{scripts:?}");
    }

    #[test]
    fn what_is_not_ours_is_unchanged() {
        let sums = include_str!("../assets/SHA256SUMS");
        for line in sums.lines() {
            let (sum, name) = line.split_once("  ").expect("a digest and a name");
            let asset = SHARED
                .iter()
                .find(|asset| asset.name == name)
                .expect("an asset that is served");
            let digest: [u8; 32] = Sha256::digest(asset.content).into();
            let found: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, sum, "{name}");
        }
    }
}
