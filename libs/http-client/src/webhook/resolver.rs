//! From names to addresses: the trait that tests script, and the one that asks the system's name servers. Nothing here
//! judges an address.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::ProtoError;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::read_system_conf;

use super::policy::NO_PUBLIC_ADDRESS;

/// How long one name server may take: two tries fit into usual deadlines.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// A name that was not there is asked for again after this time at the latest, so that mended records work soon.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(30);
/// An address is asked for again after this time at the latest, whatever its record says.
const MAX_POSITIVE_TTL: Duration = Duration::from_secs(60 * 60);

/// The addresses of a name, being looked up.
pub type Addresses = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, LookupError>> + Send>>;

/// Looks names up.
pub trait NameResolver: Send + Sync + 'static {
    /// All addresses of `name`, IPv4 and IPv6. The look-up ends when the future is dropped.
    fn addresses(&self, name: &str) -> Addresses;
}

/// Why a name has no addresses.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// There is no such name, or it has no address.
    #[error("{NO_PUBLIC_ADDRESS}")]
    NotFound,
    /// The name servers did not answer.
    #[error("the name servers did not answer")]
    TimedOut,
    /// The name breaks DNS's rules.
    #[error("the host name is not a valid DNS name")]
    Name(#[source] ProtoError),
    /// No name server could be asked, for want of a socket or of a way to one.
    #[error("the name servers could not be reached")]
    Unreachable(#[source] NetError),
    /// The name servers failed.
    #[error("the look-up failed")]
    Failed(#[source] NetError),
}

/// Asks the name servers of `/etc/resolv.conf`, after `/etc/hosts`; both are read once. Answers are kept as long as
/// their records say, within bounds.
///
/// Names are looked up as they are: the search list is for names that people type inside a network, and with it every
/// look-up of an external name would first ask for several that cannot exist.
#[derive(Clone)]
pub struct SystemResolver(Arc<TokioResolver>);

impl SystemResolver {
    /// A resolver with the system's configuration. Without any name server configured it asks the own machine, as the
    /// C library does.
    pub fn new() -> Result<Self, NetError> {
        let (config, system) = read_system_conf().unwrap_or_else(|_| {
            let own_machine = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
            let config = ResolverConfig::from_parts(None, Vec::new(), vec![own_machine]);
            (config, ResolverOpts::default())
        });
        Self::with(config, system)
    }

    fn with(config: ResolverConfig, system: ResolverOpts) -> Result<Self, NetError> {
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options(system);
        Ok(Self(Arc::new(builder.build()?)))
    }
}

fn options(mut options: ResolverOpts) -> ResolverOpts {
    // Both, as every address is to be judged. IPv4 first: it is what machines without IPv6 can reach.
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Always;
    options.timeout = options.timeout.min(QUERY_TIMEOUT);
    options.positive_max_ttl = Some(MAX_POSITIVE_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    // Only the addresses are of interest, not the aliases on the way to them.
    options.preserve_intermediates = false;
    // Many look-ups at once share one connection when answers are too long for UDP.
    options.max_active_requests = 1_024;
    options
}

impl NameResolver for SystemResolver {
    fn addresses(&self, name: &str) -> Addresses {
        let name = Name::from_ascii(name).map(|mut name| {
            name.set_fqdn(true);
            name
        });
        let resolver = Arc::clone(&self.0);
        Box::pin(async move {
            let found = resolver.lookup_ip(name.map_err(LookupError::Name)?).await;
            Ok(found.map_err(lookup_error)?.iter().collect())
        })
    }
}

fn lookup_error(error: NetError) -> LookupError {
    if error.is_nx_domain() || error.is_no_records_found() {
        return LookupError::NotFound;
    }
    match error {
        NetError::Timeout => LookupError::TimedOut,
        error @ (NetError::Io(_) | NetError::NoConnections | NetError::Busy) => {
            LookupError::Unreachable(error)
        }
        error => LookupError::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Mutex;

    use hickory_resolver::config::ConnectionConfig;
    use hickory_resolver::proto::op::{Message, ResponseCode};
    use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME};
    use hickory_resolver::proto::rr::{RData, Record, RecordType};
    use tokio::net::UdpSocket;

    use super::*;

    type Asked = Arc<Mutex<Vec<String>>>;

    /// A name server that knows the names of these tests.
    async fn name_server() -> (SocketAddr, Asked) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (addr, asked) = (socket.local_addr().unwrap(), Asked::default());
        let notes = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut buffer = [0; 4_096];
            loop {
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                let query = Message::from_vec(&buffer[..length]).unwrap();
                notes.lock().unwrap().push(query.queries[0].name().to_string());
                if let Some(answer) = answer_to(&query) {
                    socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
                }
            }
        });
        (addr, asked)
    }

    fn answer_to(query: &Message) -> Option<Message> {
        let question = query.queries[0].clone();
        let mut answer = Message::response(query.metadata.id, query.metadata.op_code);
        let mut add = |name: &str, data| {
            answer.add_answer(Record::from_rdata(Name::from_ascii(name).unwrap(), 60, data));
        };
        let v4 = RData::A(A::new(8, 8, 8, 8));
        let v6 = RData::AAAA(AAAA::new(0, 0, 0, 0, 0, 0, 0, 1));
        let mut code = ResponseCode::NoError;
        match (question.name().to_string().as_str(), question.query_type()) {
            ("both.test.", RecordType::A) => add("both.test.", v4),
            ("both.test.", RecordType::AAAA) => add("both.test.", v6),
            ("alias.test.", RecordType::A) => {
                let target = Name::from_ascii("target.test.").unwrap();
                add("alias.test.", RData::CNAME(CNAME(target)));
                add("target.test.", v4);
            }
            ("half.test.", RecordType::A) => add("half.test.", v4),
            ("half.test.", _) | ("broken.test.", _) => code = ResponseCode::ServFail,
            ("silent.test.", _) => return None,
            ("empty.test." | "alias.test.", _) => {}
            _ => code = ResponseCode::NXDomain,
        }
        answer.metadata.response_code = code;
        answer.add_query(question);
        Some(answer)
    }

    async fn resolver() -> (SystemResolver, Asked) {
        let (addr, asked) = name_server().await;
        let mut connection = ConnectionConfig::udp();
        connection.port = addr.port();
        let server = NameServerConfig::new(addr.ip(), true, vec![connection]);
        let search = vec![Name::from_ascii("search.test.").unwrap()];
        let mut system = ResolverOpts::default();
        system.timeout = Duration::from_millis(200);
        let config = ResolverConfig::from_parts(None, search, vec![server]);
        (SystemResolver::with(config, system).unwrap(), asked)
    }

    #[tokio::test]
    async fn addresses_of_both_families_are_found() {
        let (resolver, _) = resolver().await;
        let addresses = async |name| resolver.addresses(name).await.unwrap();
        let parse = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(addresses("both.test").await, [parse("8.8.8.8"), parse("::1")]);
        assert_eq!(addresses("alias.test").await, [parse("8.8.8.8")]);
        assert_eq!(addresses("half.test").await, [parse("8.8.8.8")]);
    }

    #[tokio::test]
    async fn names_are_looked_up_as_they_are_and_kept() {
        let (resolver, asked) = resolver().await;
        resolver.addresses("both.test").await.unwrap();
        resolver.addresses("both.test").await.unwrap();
        resolver.addresses("missing").await.unwrap_err();
        let mut asked = asked.lock().unwrap().clone();
        asked.dedup();
        assert_eq!(asked, ["both.test.", "missing."]);
    }

    /// A way to a port that refuses.
    async fn refusing(mut connection: ConnectionConfig) -> ConnectionConfig {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        connection.port = listener.local_addr().unwrap().port();
        connection
    }

    #[tokio::test]
    async fn failures_are_told_apart() {
        let (resolver, _) = resolver().await;
        let error = async |name| resolver.addresses(name).await.unwrap_err();
        assert!(matches!(error("missing.test").await, LookupError::NotFound));
        assert!(matches!(error("empty.test").await, LookupError::NotFound));
        assert!(matches!(error("silent.test").await, LookupError::TimedOut));
        // Over UDP nothing tells of it: there it is one that does not answer.
        let refusing = vec![refusing(ConnectionConfig::tcp()).await];
        let closed = NameServerConfig::new(Ipv4Addr::LOCALHOST.into(), true, refusing);
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![closed]);
        let unreachable = SystemResolver::with(config, ResolverOpts::default()).unwrap();
        let unasked = unreachable.addresses("both.test").await.unwrap_err();
        assert!(matches!(unasked, LookupError::Unreachable(_)), "{unasked:?}");
        let broken = error("broken.test").await;
        assert!(matches!(broken, LookupError::Failed(_)), "{broken:?}");
    }
}
