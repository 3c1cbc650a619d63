//! TLS of the server's own.

use std::sync::Arc;

use futures_util::StreamExt as _;
use rcgen::generate_simple_self_signed;
use rustls::{ClientConfig, RootCertStore, crypto::ring, pki_types::ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::{client_async, tungstenite::client::IntoClientRequest as _};
use zareba_server::{BindError, Listen, Server, ServerSettings, TlsFiles, Transport};
use zareba_session::{NewSession, Owner};

use crate::{
    fixture::Site,
    http::{Request, send_raw},
};

fn files(directory: &std::path::Path) -> (TlsFiles, RootCertStore) {
    let made = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        certificates: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    };
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    (files, roots)
}

#[tokio::test]
async fn requests_come_through_tls_and_no_other_way() {
    let directory = tempfile::tempdir().unwrap();
    let (files, roots) = files(directory.path());
    let site = Site::start_with(|settings| {
        settings.listen = Listen::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
            transport: Transport::Tls(files),
        };
    })
    .await;
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = TcpStream::connect(site.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let request = Request::get("/v1/status").key(&site.admin);
    let host = format!("localhost:{}", site.address.port());
    request.send_on(stream, &host).await.expect(200);

    let session = site
        .sessions
        .create_ready(NewSession::default(), Owner("admin".to_owned()));
    let session = session.await.unwrap();
    let stream = TcpStream::connect(site.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    let path = format!("/v1/sessions/{}/events/socket", session.id());
    let mut request = format!("wss://{host}{path}").into_client_request().unwrap();
    let key = format!("Bearer {}", site.admin).parse().unwrap();
    request.headers_mut().insert("authorization", key);
    let (mut socket, _) = client_async(request, stream).await.unwrap();
    let first = socket.next().await.unwrap().unwrap();
    assert!(
        first.to_text().unwrap().contains("\"sequence\":0"),
        "{first:?}"
    );

    let plain = send_raw(
        site.address,
        b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    .await;
    assert!(!plain.starts_with(b"HTTP/"), "{plain:?}");
    site.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let (good, _) = files(directory.path());
    let site = Site::start().await;
    let missing = TlsFiles {
        key: directory.path().join("missing.pem"),
        ..good.clone()
    };
    let swapped = TlsFiles {
        certificates: good.key.clone(),
        key: good.key.clone(),
    };
    for (files, expected) in [(missing, "missing.pem"), (swapped, "key.pem")] {
        let settings = ServerSettings::new(Listen::Tcp {
            address: ([127, 0, 0, 1], 0).into(),
            transport: Transport::Tls(files),
        });
        let error = Server::bind(settings, site.sessions.clone())
            .await
            .unwrap_err();
        assert!(matches!(error, BindError::Tls(_)), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    site.stop().await;
}
