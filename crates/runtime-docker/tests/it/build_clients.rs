//! Clients that share an Engine: none of them gets its image into the place of another one.

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use zareba_protocol::ErrorClass;
use zareba_runtime_docker::{
    BuildError, BuildManner, BuilderChoice, BuiltFrom, ImageBuilder, PullPolicy, Reuse,
};

use crate::{
    build::{Name, context, file_of, make, nobody, order, recipe},
    fixture::{BUSYBOX, DEBIAN, fixture, fixture_with},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_client_gives_no_name_that_is_somebody_elses() {
    let fixture = fixture_with(BUSYBOX, |options| {
        let allowed = [BUSYBOX, "zareba-test/listed:1", "zareba-test/*"];
        options.allowed.images = Some(allowed.map(str::to_owned).to_vec());
    });
    let builder = fixture.runtime.image_builder();
    let (alice, bob) = (builder.on_behalf_of("alice"), builder.on_behalf_of("bob"));
    let name = Name::new(&fixture, "owned");
    let image = name.tagged("it");
    // Whatever a Dockerfile says of it.
    let text = format!("FROM {BUSYBOX}\nLABEL dev.zareba.built-for=x dev.zareba.built-as=y\n");
    let context = context(&text, &[]);
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let build = |builder: ImageBuilder, image: &str| {
            let order = order(&context, image.to_owned(), choice);
            async move { builder.build(order, &nobody()).await }
        };
        // Its own, once and again.
        build(alice.clone(), &image).await.unwrap();
        build(alice.clone(), &image).await.unwrap();
        // Another client's, one of the operator's, and those that the operator has listed.
        let copy = name.tagged("copy");
        fixture.docker(&["tag", &image, &copy]);
        for (who, taken) in [
            (&bob, image.as_str()),
            (&builder, &image),
            (&alice, DEBIAN),
            (&alice, &copy),
            (&alice, BUSYBOX),
            (&alice, "zareba-test/listed:1"),
            (&alice, "docker.io/zareba-test/listed:1"),
        ] {
            let refused = build(who.clone(), taken).await;
            let error = refused.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Permission, "{taken}: {error}");
        }
        // The operator's own builds are bound by nothing.
        build(builder.for_operator(), &copy).await.unwrap();
        fixture.docker(&["rmi", &copy, &image]);
    }
}

/// Anybody can tell beforehand what the parts of a recipe will be called.
#[tokio::test(flavor = "multi_thread")]
async fn a_recipe_begins_with_nothing_that_another_client_has_built() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let operator = builder.for_operator();
    let (alice, bob) = (builder.on_behalf_of("alice"), builder.on_behalf_of("bob"));
    let name = Name::new(&fixture, "planted");
    let files = TempDir::new().unwrap();
    let recipe = recipe(&name, &files);
    let names = make(&operator, &recipe, Reuse::Everything).await.names;
    assert_eq!(names.len(), 3);

    for planted in &names {
        for name in &names {
            fixture.docker(&["rmi", "--force", name]);
        }
        let context = context(&format!("FROM {BUSYBOX}\nRUN echo planted > /made\n"), &[]);
        let order = order(&context, planted.clone(), BuilderChoice::Best);
        alice.build(order, &nobody()).await.unwrap();
        let manner = BuildManner::default();
        let refused = bob.make(&recipe, None, manner, &nobody()).await;
        let error = refused.unwrap_err();
        assert!(matches!(error, BuildError::NotYours { .. }), "{error}");
        let made = make(&operator, &recipe, Reuse::Everything).await;
        assert_eq!(made.from, BuiltFrom::Base, "{planted}");
        assert_eq!(file_of(&fixture, &names[0], "/made"), "it's 42\n");
    }
    // What the operator has built is there for all.
    let same = make(&bob, &recipe, Reuse::Everything).await;
    assert_eq!(same.from, BuiltFrom::Nothing);
}

/// A registry on loopback that has one image, `taken`, under every tag.
struct Registry {
    address: String,
    serving: JoinHandle<()>,
}

impl Registry {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The Engine tries it with TLS first, and hangs up.
                let _ = answer(stream).await;
            }
        });
        Self { address, serving }
    }

    fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text);
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hash}")
}

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request).await?;
    let mut line = request.clone();
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line).await?;
    }
    let kind = "application/vnd.docker.distribution.manifest.v2+json";
    let none = digest("");
    let manifest = format!(
        r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{"mediaType":"{config}","size":0,"digest":"{none}"}},"layers":[]}}"#,
        config = "application/vnd.docker.container.image.v1+json",
    );
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next().unwrap_or_default());
    let (status, kind, body) = match path {
        "/v2/" => ("200 OK", "application/json", "{}"),
        path if path.starts_with("/v2/taken/manifests/") => ("200 OK", kind, manifest.as_str()),
        _ => (
            "404 Not Found",
            "application/json",
            r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"none"}]}"#,
        ),
    };
    let digest = digest(body);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Docker-Content-Digest: {digest}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if method != Some("HEAD") {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// Whoever names such an image expects the registry's.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_gives_no_name_that_others_would_fetch() {
    let fixture = fixture_with(BUSYBOX, |options| options.pull = PullPolicy::Missing);
    let name = Name::new(&fixture, "fetched");
    let builder = fixture.runtime.image_builder();
    let alice = builder.on_behalf_of("alice");
    let registry = Registry::start().await;
    let (free, taken) = (registry.image("free:1"), registry.image("taken:1"));
    let context = context(&format!("FROM {BUSYBOX}\n"), &[]);
    let build = |builder: ImageBuilder, image: &str| {
        let order = order(&context, image.to_owned(), BuilderChoice::Best);
        async move { builder.build(order, &nobody()).await }
    };
    assert!(alice.is_in_registry(&taken).await.unwrap());
    let error = build(alice.clone(), &taken).await.unwrap_err();
    assert!(matches!(error, BuildError::InRegistry { .. }), "{error}");
    assert_eq!(error.class(), ErrorClass::Permission);
    build(alice.clone(), &free).await.unwrap();
    // There is no way to this one's registry from here.
    let error = build(alice.clone(), &name.tagged("it")).await.unwrap_err();
    assert!(
        matches!(error, BuildError::RegistryUnsure { .. }),
        "{error}"
    );
    // The operator's own builds are bound by nothing.
    build(builder.for_operator(), &taken).await.unwrap();
    build(builder.for_operator(), &name.tagged("it"))
        .await
        .unwrap();
    // A name that is its own already stays so, whatever becomes of the registry.
    drop(registry);
    build(alice, &free).await.unwrap();
    fixture.docker(&["rmi", "--force", &free, &taken]);
}
