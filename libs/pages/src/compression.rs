//! Makes what browsers load smaller on its way: gzip, for those that take it.
//!
//! How long a compressed answer is tells whether something stands in it twice. An attacker who can put text into a page, have a browser ask for it
//! again and again, and see how long the answers are, finds out the rest of it bit by bit (BREACH). So pages are compressed only where no other site
//! can have asked for them, and never as the answer of a form: those are the ones that show a secret.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, Method, header};

use crate::guard::is_followed_here;

/// What is shorter is sent with the head of its answer anyway.
const WORTH_IT_BYTES: usize = 1_024;

/// Whether the page that a request of this method and with these headers asks for may be compressed.
pub(crate) fn may_compress(method: &Method, headers: &HeaderMap, public_url: Option<&str>) -> bool {
    *method == Method::GET && is_followed_here(headers, public_url) && takes_gzip(headers)
}

/// Whether the sender of these headers takes gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT_ENCODING).into_iter();
    let mut codings = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        is_gzip && quality.is_none_or(|quality| quality > 0.0)
    })
}

/// A page for a browser that takes gzip, with what its head then has to say. A page is made for one request, so that it is compressed quickly and
/// not as far as it could be.
pub(crate) fn page(head: &mut HeaderMap, page: Bytes) -> Body {
    if page.len() < WORTH_IT_BYTES {
        return Body::from(page);
    }
    match gzip(&page, Compression::fast()) {
        Some(small) => {
            say(head);
            vary(head);
            Body::from(small)
        }
        None => Body::from(page),
    }
}

/// What an answer says that is compressed.
pub(crate) fn say(head: &mut HeaderMap) {
    head.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// What an answer says that is compressed for some, in both forms: a cache would give those that take no gzip what it has kept of another one.
pub(crate) fn vary(head: &mut HeaderMap) {
    head.append(header::VARY, HeaderValue::from_static("accept-encoding"));
}

/// The same by gzip.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::guard::tests::headers;

    #[test]
    fn gzip_is_for_those_who_say_that_they_take_it() {
        let takes = |said| takes_gzip(&headers(&[("accept-encoding", said)]));
        for said in [
            "gzip",
            "gzip, deflate, br, zstd",
            "br;q=1.0, GZIP;q=0.5",
            "deflate,gzip",
        ] {
            assert!(takes(said), "{said}");
        }
        for said in ["", "br", "gzip;q=0", "gzip; q=0.000, br", "x-gzipped", "identity"] {
            assert!(!takes(said), "{said}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn no_other_site_and_no_form_gets_a_compressed_page() {
        let may = |method: Method, site| {
            let headers = headers(&[("accept-encoding", "gzip"), ("sec-fetch-site", site)]);
            may_compress(&method, &headers, None)
        };
        assert!(may(Method::GET, "same-origin"));
        assert!(may(Method::GET, "none"));
        assert!(!may(Method::POST, "same-origin"));
        for site in ["cross-site", "same-site"] {
            assert!(!may(Method::GET, site), "{site}");
        }
        assert!(!may_compress(
            &Method::GET,
            &headers(&[("accept-encoding", "gzip")]),
            None
        ));
    }

    #[test]
    fn what_is_compressed_is_the_same_when_it_is_read() {
        let text = "a row of a table, ".repeat(1_000);
        let small = gzip(text.as_bytes(), Compression::fast()).unwrap();
        assert!(small.len() * 10 < text.len());
        let mut read = String::new();
        GzDecoder::new(small.as_slice())
            .read_to_string(&mut read)
            .unwrap();
        assert_eq!(read, text);
    }

    #[test]
    fn a_short_page_is_sent_as_it_is() {
        let mut head = HeaderMap::new();
        let _ = page(&mut head, Bytes::from_static(b"<h1>short</h1>"));
        assert!(head.is_empty());
        let _ = page(&mut head, Bytes::from(vec![b' '; WORTH_IT_BYTES]));
        assert_eq!(head[header::CONTENT_ENCODING], "gzip");
        assert_eq!(head[header::VARY], "accept-encoding");
    }
}
