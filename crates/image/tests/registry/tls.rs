//! A certificate that nobody vouches for opens nothing, not even on this machine.

use std::{
    error::Error,
    io::Read as _,
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread::JoinHandle,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use zareba_image::registry::PullError;

use crate::{
    server::{Answer, Server},
    shelf::{Built, Dialect, Shelf},
    workbench::Workbench,
};

/// For `127.0.0.1` and a hundred years, signed by itself. Its key is beside it, for this test.
const CERTIFICATE: &[u8] = include_bytes!("fixtures/self_signed.der");
const KEY: &[u8] = include_bytes!("fixtures/self_signed_key.der");

/// How a handshake ended, as the server saw it, and what the client then asked for.
struct Met {
    failure: Option<rustls::Error>,
    request: Vec<u8>,
}

/// Meets clients until one of them does not even greet.
fn serve_tls() -> (SocketAddr, JoinHandle<Vec<Met>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    let config = Arc::new(config);
    let server = std::thread::spawn(move || {
        let mut all = Vec::new();
        while let Some(met) = meet(&listener, &config) {
            all.push(met);
        }
        all
    });
    (address, server)
}

/// `None` for a connection that ends before it has begun, which ends the server.
fn meet(listener: &TcpListener, config: &Arc<ServerConfig>) -> Option<Met> {
    let (stream, _) = listener.accept().unwrap();
    if stream.peek(&mut [0]).unwrap() == 0 {
        return None;
    }
    let connection = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = StreamOwned::new(connection, stream);
    let mut request = Vec::new();
    let failure = stream.read_to_end(&mut request).err();
    let failure = failure.and_then(|error| {
        let inner = error.into_inner()?;
        inner.downcast::<rustls::Error>().ok().map(|error| *error)
    });
    Some(Met { failure, request })
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_not_accepted_rh_1() {
    let (address, tls) = serve_tls();
    let shelf = Shelf::of(&Built::new(Dialect::Oci, &[b"layer"]));
    let server = Server::start(shelf, move |seen| {
        let to = format!("https://{address}{}", seen.target);
        seen.is_blob().then(|| Answer::redirect(&to))
    })
    .await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    let causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let reasons: Vec<_> = causes.map(ToString::to_string).collect();
    assert!(reasons.join(": ").contains("certificate"), "{reasons:?}");

    drop(TcpStream::connect(address).unwrap());
    let met = tls.join().unwrap();
    assert_eq!(met.len(), 3, "as often as any place that cannot be reached");
    for met in met {
        let is_alert = matches!(met.failure, Some(rustls::Error::AlertReceived(_)));
        assert!(is_alert, "{:?}", met.failure);
        assert!(met.request.is_empty(), "nothing is asked of a stranger");
    }
}
