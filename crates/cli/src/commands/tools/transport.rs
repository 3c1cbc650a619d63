//! What keeps others from reading along: only this machine can, TLS, or a proxy that does it.

use std::{
    net::{SocketAddr, ToSocketAddrs as _},
    sync::Arc,
};

use zareba_server::{Tls, TlsFiles};
use zareba_wire::serving::Secure;

use crate::{
    arguments::ServeToolsArguments,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Where to listen, and with which handshake.
pub(super) struct Transport {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Arc<dyn Secure>>,
}

impl Transport {
    /// What was asked for. Addresses that others can reach need TLS, or somebody who says that it
    /// is done elsewhere.
    pub(super) fn of(arguments: &ServeToolsArguments) -> Result<Self, Failure> {
        let address = address(&arguments.host, arguments.port)?;
        let tls = match (&arguments.tls_cert, &arguments.tls_key) {
            (Some(certificates), Some(key)) => {
                let files = TlsFiles {
                    certificates: certificates.clone(),
                    key: key.clone(),
                };
                let loaded = Tls::load(&files);
                Some(loaded.map_err(|error| Failure::of(Exit::Usage, &error))?)
            }
            _ => None,
        };
        let is_local = address.ip().to_canonical().is_loopback();
        if !is_local && tls.is_none() && !arguments.behind_tls_proxy {
            let message = format!("refusing to listen on `{address}` without TLS");
            return Err(Failure::new(Exit::Usage, message).hint(
                "give `--tls-cert` and `--tls-key`, or `--behind-tls-proxy` when a proxy in front \
                 does TLS",
            ));
        }
        let tls = tls.map(|tls| Arc::new(tls) as Arc<dyn Secure>);
        Ok(Self { address, tls })
    }
}

fn address(host: &str, port: u16) -> Result<SocketAddr, Failure> {
    let deed = || format!("cannot listen on the host `{host}`");
    let mut addresses = (host, port)
        .to_socket_addrs()
        .or_fail(Exit::Usage, deed())?;
    let first = addresses.next();
    first.ok_or_else(|| Failure::new(Exit::Usage, deed()).hint("use an address of this machine"))
}
