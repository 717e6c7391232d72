//! The nodes of the broker: which there are, and which to try next. Connecting to one is not done here.

use lapin::uri::AMQPUri;

use crate::Error;

/// Heartbeat interval in seconds. A peer that is silent for two intervals is taken for dead.
const HEARTBEAT_SECONDS: u16 = 6;
/// Largest frame in bytes. The AMQP client keeps a buffer of 32 frames for each direction of a connection, which are 8 MiB with what the
/// server proposes (128 KiB). Messages of ours fit into one frame of this size with all their properties; longer bodies come in several.
const FRAME_BYTES: u32 = 16 * 1024;
const SEPARATOR: char = ',';
const SCHEMES: [&str; 2] = ["amqp://", "amqps://"];

/// Nodes of one broker, in the order in which they are tried.
#[derive(Debug)]
pub(crate) struct Addresses {
    uris: Vec<AMQPUri>,
    next: usize,
}

impl Addresses {
    /// Reads one URL or several. The first to be tried is taken at random, so that processes spread over the nodes.
    pub(crate) fn parse(urls: &str) -> Result<Self, Error> {
        let uris: Vec<AMQPUri> = split(urls).map(parse).collect::<Result<_, _>>()?;
        let next = rand::random_range(0..uris.len());
        Ok(Self { uris, next })
    }

    pub(crate) fn count(&self) -> usize {
        self.uris.len()
    }

    /// The one whose turn it is.
    pub(crate) fn current(&self) -> &AMQPUri {
        &self.uris[self.next]
    }

    /// It is the next one's turn.
    pub(crate) fn advance(&mut self) {
        self.next = (self.next + 1) % self.uris.len();
    }
}

/// `host:port`.
pub(crate) fn location(uri: &AMQPUri) -> String {
    format!("{}:{}", uri.authority.host, uri.authority.port)
}

/// Separates URLs. A comma separates only where a URL begins behind it: a password may hold one, too. Never empty.
fn split(urls: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(urls);
    std::iter::from_fn(move || {
        let text = rest?;
        let border = text.match_indices(SEPARATOR).map(|(at, _)| at).find(|at| {
            let behind = text[at + SEPARATOR.len_utf8()..].trim_start();
            SCHEMES.iter().any(|scheme| behind.starts_with(scheme))
        });
        rest = border.map(|at| &text[at + SEPARATOR.len_utf8()..]);
        Some(text[..border.unwrap_or(text.len())].trim())
    })
}

fn parse(url: &str) -> Result<AMQPUri, Error> {
    // The parser's own messages can hold the whole URL, so none of them is passed on.
    let mut uri: AMQPUri = url.parse().map_err(|_| Error::InvalidUrl {
        reason: "expected amqp[s]://user:password@host:port/vhost, or several of them separated by commas",
    })?;
    let authority = url.split('/').nth(2).unwrap_or_default();
    let location = authority.rsplit('@').next().unwrap_or_default();
    if location.starts_with('[') {
        // The parser would silently replace it by localhost.
        return Err(Error::InvalidUrl {
            reason: "an IPv6 address must be given as a host name",
        });
    }
    if location.contains(SEPARATOR) {
        return Err(Error::InvalidUrl {
            reason: "of several nodes each needs a whole URL, amqp[s]:// and credentials included",
        });
    }
    uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
    uri.query.frame_max.get_or_insert(FRAME_BYTES);
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(urls: &str) -> Vec<String> {
        let addresses = Addresses::parse(urls).expect("valid");
        addresses.uris.iter().map(location).collect()
    }

    #[test]
    fn url_without_heartbeat_gets_ours() {
        let uri = parse("amqp://u:p@localhost:5673/%2f").expect("valid");
        assert_eq!(uri.query.heartbeat, Some(HEARTBEAT_SECONDS));
        let uri = parse("amqp://localhost?heartbeat=2").expect("valid");
        assert_eq!(uri.query.heartbeat, Some(2));
    }

    #[test]
    fn url_without_a_size_of_frames_gets_ours_and_a_message_of_ours_fits_into_one() {
        let uri = parse("amqp://u:p@localhost:5673/%2f").expect("valid");
        let size = uri.query.frame_max.expect("given");
        // Smaller ones are refused by RabbitMQ since 4.1.
        assert!(size >= 8 * 1024);
        assert!(size as usize > 2 * crate::envelope::MAX_BYTES);
        let uri = parse("amqp://localhost?frame_max=131072").expect("valid");
        assert_eq!(uri.query.frame_max, Some(131_072));
    }

    #[test]
    fn several_urls_are_several_nodes() {
        assert_eq!(hosts("amqp://u:p@one:1/%2f"), ["one:1"]);
        assert_eq!(
            hosts("amqp://u:p@one:1/%2f, amqps://u:p@two:2/%2f,amqp://three"),
            ["one:1", "two:2", "three:5672"]
        );
    }

    #[test]
    fn comma_in_a_password_separates_nothing() {
        let addresses = Addresses::parse("amqp://u:a,b@one:1,amqp://u:c@two:2").expect("valid");
        let passwords: Vec<&str> = addresses
            .uris
            .iter()
            .map(|uri| uri.authority.userinfo.password.as_str())
            .collect();
        assert_eq!(passwords, ["a,b", "c"]);
    }

    #[test]
    fn every_node_has_its_turn_whichever_comes_first() {
        for _ in 0..20 {
            let mut addresses = Addresses::parse("amqp://a,amqp://b,amqp://c").expect("valid");
            let mut turns = Vec::new();
            for _ in 0..addresses.count() {
                turns.push(addresses.current().authority.host.clone());
                addresses.advance();
            }
            assert_eq!(turns[0], addresses.current().authority.host);
            turns.sort();
            assert_eq!(turns, ["a", "b", "c"]);
        }
    }

    #[test]
    fn first_turns_spread_over_the_nodes() {
        let first = || Addresses::parse("amqp://a,amqp://b").expect("valid").next;
        // Fails once in 2^199 runs.
        let sum: usize = (0..200).map(|_| first()).sum();
        assert!(0 < sum && sum < 200, "{sum} of 200 began with the second");
    }

    #[test]
    fn invalid_urls_are_refused_without_being_repeated() {
        for url in [
            "",
            ",",
            "nonsense:hunter2",
            "http://u:hunter2@host",
            "amqp://u:hunter2@[::1]:5672",
            "amqp://u:hunter2@one,two",
            "amqp://u:hunter2@one:5672,two:5672/%2f",
            "amqp://u:hunter2@one,amqp://u:hunter2@[::1]",
            "amqp://u:hunter2@one:port,amqp://u:hunter2@two",
            "http://u:hunter2@one,amqp://u:hunter2@two",
        ] {
            let error = Addresses::parse(url).expect_err(url).to_string();
            assert!(!error.contains("hunter2"), "{error}");
        }
    }
}
