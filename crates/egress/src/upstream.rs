//! What the proxy asks of the machine's own network: addresses of names, routes, connections.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::config::{ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::{TokioResolver, system_conf};
use thiserror::Error;
use tokio::net::TcpStream;

use crate::host::HostName;

/// Answers that the resolver keeps; the sandbox has few names that it may ask for.
const CACHE_ENTRIES: u64 = 512;
/// How long one name server may take, and how often each is asked.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
const LOOKUP_ATTEMPTS: usize = 2;

/// A future that a trait object can return.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The network outside of the sandbox. The other implementation is the tests' script.
pub(crate) trait Upstream: Send + Sync {
    /// Addresses of one family. The name is all that leaves this machine.
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
        family: Family,
    ) -> Pending<'a, Result<Addresses, ResolveError>>;

    /// Where a packet to this address would go.
    fn route(&self, address: IpAddr) -> Route;

    /// Connects to exactly this address. The caller sets the deadline by dropping the future.
    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>>;
}

/// Which kind of addresses is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// What a name was resolved to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    /// May be empty: the name exists and has no address of that family.
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ttl: Duration,
}

/// Why a name was not resolved.
#[derive(Debug, Error)]
pub(crate) enum ResolveError {
    #[error("there is no such name")]
    NoSuchName,
    #[error("the name servers of this machine gave no answer")]
    Failed {
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// Out to another machine.
    Out,
    /// To this machine, by whatever address it has.
    Own,
    /// Nowhere: there is no route, as for IPv6 on a machine without it.
    None,
}

/// The network of this machine.
pub(crate) struct System {
    resolver: TokioResolver,
}

impl System {
    /// With the name servers that the machine is configured for.
    pub(crate) fn new() -> io::Result<Self> {
        let (config, options) = system_conf::read_system_conf().map_err(io::Error::other)?;
        Self::asking(config, options)
    }

    /// With these name servers.
    fn asking(config: ResolverConfig, mut options: ResolverOpts) -> io::Result<Self> {
        let provider = TokioRuntimeProvider::default();
        options.cache_size = CACHE_ENTRIES;
        options.timeout = LOOKUP_TIMEOUT;
        options.attempts = LOOKUP_ATTEMPTS;
        let builder = TokioResolver::builder_with_config(config, provider);
        let resolver = builder.with_options(options).build();
        let resolver = resolver.map_err(io::Error::other)?;
        Ok(Self { resolver })
    }
}

impl Upstream for System {
    fn resolve<'a>(
        &'a self,
        name: &'a HostName,
        family: Family,
    ) -> Pending<'a, Result<Addresses, ResolveError>> {
        Box::pin(async move {
            let mut query = Name::from_ascii(name.as_str()).map_err(failed)?;
            // Fully qualified, so that the machine's search domains stay out of it.
            query.set_fqdn(true);
            let record_type = match family {
                Family::V4 => RecordType::A,
                Family::V6 => RecordType::AAAA,
            };
            match self.resolver.lookup(query, record_type).await {
                Ok(lookup) => Ok(addresses(lookup.answers())),
                Err(error) if error.is_nx_domain() => Err(ResolveError::NoSuchName),
                Err(error) if is_empty(&error) => Ok(addresses(&[])),
                Err(error) => Err(failed(error)),
            }
        })
    }

    fn route(&self, address: IpAddr) -> Route {
        match source_towards(address) {
            Ok(source) if source == address || source.is_loopback() => Route::Own,
            Ok(_) => Route::Out,
            Err(_) => Route::None,
        }
    }

    fn connect(&self, address: SocketAddr) -> Pending<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ResolveError {
    let source = error.into();
    ResolveError::Failed { source }
}

/// The name servers know the name and say that it has no such address. The same library error
/// stands for refusals of theirs, which are failures.
fn is_empty(error: &NetError) -> bool {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none)) => {
            none.response_code == ResponseCode::NoError
        }
        _ => false,
    }
}

fn addresses(records: &[Record]) -> Addresses {
    let ttl = records.iter().map(|record| record.ttl).min().unwrap_or(0);
    let addresses = records.iter().filter_map(|record| match &record.data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    });
    Addresses {
        addresses: addresses.collect(),
        ttl: Duration::from_secs(ttl.into()),
    }
}

/// The address that the kernel would send from. Connecting a datagram socket looks up the route
/// and sends nothing; towards an address of this machine the source is that address itself, or a
/// loopback address.
fn source_towards(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Any port would do; discard is nobody's.
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use hickory_resolver::config::NameServerConfig;
    use hickory_resolver::proto::op::{Message, Query};

    use super::*;

    /// Answers every question for an address with 93.184.215.14, and says what it was asked.
    async fn name_server(socket: tokio::net::UdpSocket) -> Message {
        let mut buffer = [0; 1500];
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let question = Message::from_vec(&buffer[..length]).unwrap();
        let mut answer = question.clone().into_response();
        let name = question.queries[0].name().clone();
        let address = RData::A(Ipv4Addr::new(93, 184, 215, 14).into());
        answer.add_answer(Record::from_rdata(name, 77, address));
        let bytes = answer.to_vec().unwrap();
        socket.send_to(&bytes, from).await.unwrap();
        question
    }

    #[tokio::test]
    async fn a_name_server_is_asked_for_the_name_and_nothing_else_eg_5() {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut server = NameServerConfig::udp(Ipv4Addr::LOCALHOST.into());
        let port = socket.local_addr().unwrap().port();
        server
            .connections
            .iter_mut()
            .for_each(|connection| connection.port = port);
        let search = vec![Name::from_ascii("corp.example.").unwrap()];
        let config = ResolverConfig::from_parts(None, search, vec![server]);
        let asked = tokio::spawn(name_server(socket));

        let system = System::asking(config, ResolverOpts::default()).unwrap();
        let name = HostName::parse("www.example.com").unwrap();
        let found = system.resolve(&name, Family::V4).await.unwrap();

        let addresses = vec!["93.184.215.14".parse().unwrap()];
        let ttl = Duration::from_secs(77);
        assert_eq!(found, Addresses { addresses, ttl });
        let asked = asked.await.unwrap();
        let query = Query::query(Name::from_ascii("www.example.com.").unwrap(), RecordType::A);
        assert_eq!(asked.queries, [query]);
    }

    #[tokio::test]
    async fn an_address_of_this_machine_is_known_as_its_own_eg_6() {
        let system = System::asking(ResolverConfig::default(), ResolverOpts::default()).unwrap();
        assert_eq!(system.route(Ipv4Addr::LOCALHOST.into()), Route::Own);
        assert_eq!(system.route("127.1.2.3".parse().unwrap()), Route::Own);
    }
}
