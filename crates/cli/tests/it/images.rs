//! `zareba image`: from a directory, from a registry, and away again.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    thread::JoinHandle,
};

use serde_json::{Value, json};
use zareba_image::Digest;

use crate::support::{Lasting, Place, ZAREBA};

/// A root file system with a file in it.
fn root(place: &Place, content: &str) -> String {
    let root = place.path("workspace/root");
    fs::create_dir_all(root.join("etc")).unwrap();
    fs::write(root.join("etc/motd"), content).unwrap();
    root.to_str().unwrap().to_owned()
}

#[test]
fn a_directory_is_imported_listed_and_removed() {
    let place = Place::new();
    let root = root(&place, "hello\n");
    let told = place.output(&["image", "import", "--name", "mine:1", &root]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "mine:1\n"),
        "{}",
        told.stderr
    );
    let told = place.output(&["image", "ls"]);
    let rows: Vec<Vec<&str>> = told
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(rows[0], ["NAME", "ID", "SIZE", "BUILT"]);
    assert_eq!((rows[1][0], rows.len()), ("mine:1", 2));
    let told = place.output(&["image", "ls", "-o", "json"]);
    let image: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(image["names"], json!(["mine:1"]));
    assert!(
        image["id"]
            .as_str()
            .unwrap()
            .starts_with(&format!("sha256:{}", rows[1][1]))
    );

    let told = place.output(&["image", "rm", "mine:2", "mine:1"]);
    assert_eq!((told.code, told.stdout.as_str()), (Some(120), "mine:1\n"));
    assert!(
        told.stderr.contains("there is no image `mine:2`"),
        "{}",
        told.stderr
    );
    // Advice to import it first is for those who want it.
    let told = place.output(&["image", "rm", "nope"]);
    assert_eq!(
        told.stderr,
        "error: there is no image `nope`\n  hint: `zareba image ls` lists images\n"
    );
    assert_eq!(place.output(&["image", "ls", "-o", "json"]).stdout, "");
    let layers = fs::read_dir(place.path("state/images/layers")).unwrap();
    assert_eq!(layers.count(), 0);
}

/// A root file system with busybox, and with the libraries that the program under test needs;
/// the program that is released needs none.
fn small_root(place: &Place) -> String {
    let root = root(place, "from the image\n");
    let program = Path::new(&root).join("bin/busybox");
    fs::create_dir(program.parent().unwrap()).unwrap();
    // From the package busybox-static.
    fs::copy("/bin/busybox", &program).unwrap();
    for name in ["sh", "cat", "test", "env"] {
        symlink("busybox", program.with_file_name(name)).unwrap();
    }
    let users = "root:x:0:0:root:/root:/bin/sh\n";
    fs::write(Path::new(&root).join("etc/passwd"), users).unwrap();
    let listed = Command::new("ldd").arg(ZAREBA).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries = listed.split_whitespace();
    for library in libraries.filter(|word| word.starts_with('/')) {
        let inside = format!("{root}{library}");
        fs::create_dir_all(Path::new(&inside).parent().unwrap()).unwrap();
        fs::copy(library, inside).unwrap();
    }
    root
}

#[test]
fn a_command_and_a_sandbox_that_lives_on_have_the_files_of_an_image() {
    let place = Place::new();
    let root = small_root(&place);
    let told = place.output(&["image", "import", "--name", "small", &root]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let command = "cat /etc/motd; test -e /usr/bin/python3 || echo none";
    let told = place.output(&["run", "--image", "small", "--", command]);
    let end = (told.code, told.stdout.as_str());
    assert_eq!(end, (Some(0), "from the image\nnone\n"), "{}", told.stderr);

    let sandbox = Lasting::create(&place, &["--image", "small"]);
    let told = place.output(&["exec", sandbox.id(), "--", "cat", "/etc/motd"]);
    assert_eq!(told.stdout, "from the image\n", "{}", told.stderr);
    let ps = place.output(&["ps", "-o", "json"]).stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&ps).unwrap()["image"],
        "small"
    );
    // What is in use stays.
    let told = place.output(&["image", "rm", "small"]);
    assert_eq!(told.code, Some(125));
    assert!(
        told.stderr.contains("is in use by a sandbox"),
        "{}",
        told.stderr
    );
    assert_eq!(place.output(&["stop", sandbox.id()]).code, Some(0));
    assert_eq!(place.output(&["image", "rm", "small"]).code, Some(0));
}

#[test]
fn what_is_no_image_is_refused() {
    let place = Place::new();
    fs::write(place.path("workspace/text"), "no image\n").unwrap();
    let told = place.output(&["image", "import", "text"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(120), ""),
        "{}",
        told.stderr
    );
    assert!(told.stderr.contains("is not an image"), "{}", told.stderr);
    assert_eq!(place.output(&["image", "import", "none"]).code, Some(120));
    assert_eq!(
        place.output(&["image", "pull", "Not A Name"]).code,
        Some(120)
    );
}

#[test]
fn an_image_is_pulled_from_a_registry_with_its_layers_told() {
    let place = Place::new();
    let registry = Registry::start();
    let name = format!("{}/tool:1", registry.address);
    let told = place.output(&["image", "pull", &name]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(told.stdout, format!("{name}\n"));
    let digest = Digest::of(&layer());
    let short = &digest.hex()[..12];
    assert!(
        told.stderr
            .contains(&format!("zareba: {short} downloading ")),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.contains(&format!("zareba: {short} unpacking")),
        "{}",
        told.stderr
    );
    assert!(
        !told.stderr.contains('\x1b'),
        "bars are for terminals: {}",
        told.stderr
    );
    let told = place.output(&["image", "ls", "-o", "json"]);
    let image: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (&image["names"], &image["layers"]),
        (&json!([name]), &json!(1))
    );
    // Layers that are here are not fetched again.
    let told = place.output(&["image", "pull", "-o", "json", &name]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let blob = format!("/v2/tool/blobs/{digest}");
    let seen = registry.stop();
    assert_eq!(
        seen.iter().filter(|path| **path == blob).count(),
        1,
        "{seen:?}"
    );
}

#[test]
fn a_registry_that_is_not_there_is_a_failure_that_leaves_nothing() {
    let place = Place::new();
    let told = place.output(&["image", "pull", "127.0.0.1:1/tool:1"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(125), ""),
        "{}",
        told.stderr
    );
    // One cause, and not what each layer of the HTTP client says of it.
    let cause = "\n  caused by: Connection refused (os error 111)\n";
    assert!(told.stderr.contains(cause), "{}", told.stderr);
    assert_eq!(
        told.stderr.matches("caused by").count(),
        1,
        "{}",
        told.stderr
    );
    let staging = fs::read_dir(place.path("state/images/staging")).unwrap();
    assert_eq!(staging.count(), 0);
}

/// One file in an archive.
fn layer() -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(6);
    header.set_mode(0o644);
    archive
        .append_data(&mut header, "hello", &b"hello\n"[..])
        .unwrap();
    archive.into_inner().unwrap()
}

/// A registry on this machine with one image, `tool:1`.
struct Registry {
    address: SocketAddr,
    server: JoinHandle<Vec<String>>,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || serve(&listener));
        Self { address, server }
    }

    /// Ends it, and returns what it was asked for.
    fn stop(self) -> Vec<String> {
        let mut connection = TcpStream::connect(self.address).unwrap();
        connection.write_all(b"GET /stop HTTP/1.1\r\n\r\n").unwrap();
        self.server.join().unwrap()
    }
}

fn serve(listener: &TcpListener) -> Vec<String> {
    let (layer, configuration, manifest) = documents();
    let mut seen = Vec::new();
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        let path = asked_for(&connection);
        if path == "/stop" {
            break;
        }
        let (kind, body) = match path.rsplit_once('/').unwrap() {
            (_, "1") => ("application/vnd.oci.image.manifest.v1+json", &manifest),
            (_, digest) if digest == Digest::of(&layer).to_string() => ("a/b", &layer),
            _ => ("a/b", &configuration),
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        // Whoever asks for a head, or goes away early, is not our concern.
        let _ = connection.write_all(head.as_bytes());
        let _ = connection.write_all(body);
        seen.push(path);
    }
    seen
}

/// The path of a request, which is read to the end of its head.
fn asked_for(connection: &TcpStream) -> String {
    let mut lines = BufReader::new(connection).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let _ = lines.find(String::is_empty);
    first.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn documents() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let layer = layer();
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let configuration = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {},
        "rootfs": { "type": "layers", "diff_ids": [Digest::of(&layer).to_string()] },
    });
    let configuration = configuration.to_string().into_bytes();
    let described = |kind: &str, content: &[u8]| {
        json!({
            "mediaType": kind,
            "digest": Digest::of(content).to_string(),
            "size": content.len(),
        })
    };
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", &configuration),
        "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
    });
    (layer, configuration, manifest.to_string().into_bytes())
}
