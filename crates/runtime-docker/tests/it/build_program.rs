//! The program that builds images: by hand, and as a server for OpenHands' remote builder.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use reqwest::{Client, multipart};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    build::{Cache, turn},
    fixture::{BUSYBOX, docker_at, engine_socket, program},
};

/// Private directories for one test, and images that go with it.
struct Place {
    directory: TempDir,
    repository: String,
    _turn: fs::File,
}

impl Place {
    fn new(purpose: &str, cache: Cache) -> Self {
        let directory = tempfile::Builder::new().prefix("zb").tempdir().unwrap();
        for name in ["home", "tmp", "context"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self {
            directory,
            repository: format!("zareba-test/program-{purpose}-{}", std::process::id()),
            _turn: turn(cache),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn zareba(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        let engine = format!("unix://{}", engine_socket().display());
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("DOCKER_HOST", engine)
            .env("ZAREBA_STATE_DIRECTORY", self.path("state"))
            .current_dir(self.path("context"))
            .stdin(Stdio::null());
        command
    }

    /// The exit code, and what it wrote to both outputs.
    fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.zareba(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn file_of(&self, image: &str, path: &str) -> String {
        let run = ["run", "--rm", "--network", "none", image, "cat", path];
        docker_at(&engine_socket(), &run)
    }

    fn is_clean(&self) {
        let temporary = fs::read_dir(self.path("tmp")).unwrap();
        assert_eq!(temporary.count(), 0, "temporary files are left");
        let kept = fs::read_dir(self.path("state/docker")).unwrap().flatten();
        let kept: Vec<_> = kept.map(|entry| entry.file_name()).collect();
        let others = kept
            .iter()
            .filter(|name| !name.as_encoded_bytes().starts_with(b"."));
        assert_eq!(others.count(), 0, "{kept:?}");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let format = "{{.Repository}}:{{.Tag}}";
        let list = ["images", "--format", format, &self.repository];
        for image in docker_at(&engine_socket(), &list).lines() {
            docker_at(&engine_socket(), &["rmi", "--force", image]);
        }
    }
}

#[test]
fn a_dockerfile_is_built_and_its_steps_are_told() {
    let place = Place::new("file", Cache::Shared);
    let name = format!("{}:one", place.repository);
    let dockerfile = format!("FROM {BUSYBOX}\nARG A\nCOPY f /f\nRUN echo saying $A\n");
    fs::write(place.path("context/Dockerfile"), &dockerfile).unwrap();
    fs::write(place.path("context/f"), "content").unwrap();
    let arguments = ["image", "build", "--tag", &name, "--build-arg", "A=b"];
    let (code, stdout, stderr) = place.run(&arguments);
    assert_eq!(
        (code, stdout.trim_end()),
        (Some(0), name.as_str()),
        "{stderr}"
    );
    assert!(stderr.contains("] RUN echo saying"), "{stderr}");
    assert!(stderr.contains("  saying b\n"), "{stderr}");
    assert_eq!(place.file_of(&name, "/f"), "content");

    // A Dockerfile from elsewhere, and the classic builder.
    fs::write(place.path("other"), dockerfile.replace("saying", "other")).unwrap();
    let other = place.path("other");
    let other = ["--file", other.to_str().unwrap(), "--builder", "classic"];
    let (code, stdout, stderr) = place.run(&[&arguments[..], &other, &["-o", "json"]].concat());
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let told: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&told["name"], &told["from"]),
        (&json!(name), &json!("base"))
    );

    fs::write(
        place.path("context/Dockerfile"),
        format!("FROM {BUSYBOX}\nRUN exit 7\n"),
    )
    .unwrap();
    let (code, stdout, stderr) = place.run(&arguments);
    assert_eq!((code, stdout.as_str()), (Some(125), ""), "{stderr}");
    assert!(
        stderr.contains("the build failed") && stderr.contains('7'),
        "{stderr}"
    );
    let (code, _, stderr) = place.run(&["image", "build"]);
    assert_eq!(code, Some(120), "{stderr}");
    place.is_clean();
}

#[test]
fn an_image_is_made_of_a_base_and_found_again() {
    let place = Place::new("base", Cache::Alone);
    fs::write(place.path("context/f"), "content").unwrap();
    let arguments = [
        "image",
        "build",
        "--base",
        BUSYBOX,
        "--tag",
        &place.repository,
        "--run",
        "echo made > /made",
        "--copy",
        ".:/opt/here",
        "-o",
        "json",
    ];
    let make = || {
        let (code, stdout, stderr) = place.run(&arguments);
        assert_eq!(code, Some(0), "{stderr}");
        let told: Value = serde_json::from_str(&stdout).unwrap();
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        (text("name"), text("from"))
    };
    let (name, from) = make();
    assert_eq!(from, "base");
    assert!(
        name.starts_with(&format!("{}:zr_v", place.repository)),
        "{name}"
    );
    assert_eq!(place.file_of(&name, "/made"), "made\n");
    assert_eq!(place.file_of(&name, "/opt/here/f"), "content");
    assert_eq!(make(), (name, "nothing".to_owned()));
    fs::write(place.path("context/f"), "other").unwrap();
    assert_eq!(make().1, "lock");
    let (code, stdout, stderr) = place.run(&["image", "prune", "--builder", "-o", "json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(serde_json::from_str::<Value>(&stdout).unwrap()["size_bytes"].is_u64());
    place.is_clean();
}

/// A server that ends with its test.
struct Serving {
    child: Child,
    url: String,
    key: String,
    http: Client,
}

impl Serving {
    fn start(place: &Place) -> Self {
        let allowed = json!([BUSYBOX, format!("{}:*", place.repository)]).to_string();
        let mut child = place
            .zareba(&["serve", "--listen", "127.0.0.1:0", "--ready-fd", "1"])
            .env("ZAREBA_RUNTIME_KIND", "docker")
            .env("ZAREBA_DOCKER_IMAGE", BUSYBOX)
            .env("ZAREBA_DOCKER_ALLOWED_IMAGES", allowed)
            .env("ZAREBA_DOCKER_BUILD", "true")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let ready = child.stdout.take().unwrap();
        BufReader::new(ready).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let published = fs::read_to_string(place.path("state/server.json")).unwrap();
        let published: Value = serde_json::from_str(&published).unwrap();
        let key = fs::read_to_string(place.path("state/admin.key")).unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            child,
            url: published["url"]
                .as_str()
                .unwrap()
                .trim_end_matches('/')
                .to_owned(),
            key: key.trim().to_owned(),
            http: Client::builder().no_proxy().build().unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}{path}", self.url));
        let answer = request.header("x-api-key", &self.key).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.url));
        let request = request.header("x-api-key", &self.key);
        let request = request.header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }

    /// Asks for a build as the stock client does, and for its end until there is one.
    async fn build(&self, dockerfile: &str, names: &[String]) -> Value {
        let archive = BASE64_STANDARD.encode(archive(dockerfile));
        let context = multipart::Part::text(archive).file_name("context.tar.gz");
        let mut form = multipart::Form::new()
            .part("context", context)
            .text("target_image", names[0].clone());
        for name in &names[1..] {
            form = form.text("tags", name.clone());
        }
        let request = self.http.post(format!("{}/build", self.url));
        let request = request.header("x-api-key", &self.key).multipart(form);
        let answer = request.send().await.unwrap().bytes().await.unwrap();
        let begun: Value = serde_json::from_slice(&answer).unwrap();
        let id = begun["build_id"]
            .as_str()
            .unwrap_or_else(|| panic!("{begun}"));
        loop {
            let told = self.get(&format!("/build_status?build_id={id}")).await;
            if told["status"] != "WORKING" {
                return told;
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let number = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(number, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

fn archive(dockerfile: &str) -> Vec<u8> {
    let compressed = GzEncoder::new(Vec::new(), Compression::fast());
    let mut archive = tar::Builder::new(compressed);
    for (name, text) in [("./Dockerfile", dockerfile), ("./code/file", "from far")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, name, text.as_bytes())
            .unwrap();
    }
    let mut compressed = archive.into_inner().unwrap();
    compressed.flush().unwrap();
    compressed.finish().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_builds_for_clients_and_runs_what_it_built() {
    let place = Place::new("served", Cache::Shared);
    let serving = Serving::start(&place);
    let names = ["source", "lock"].map(|tag| format!("{}:{tag}", place.repository));
    let exists = format!("/image_exists?image={}", names[0]);
    assert_eq!(serving.get(&exists).await, json!({ "exists": false }));
    assert_eq!(
        serving.get("/registry_prefix").await["registry_prefix"],
        "zareba"
    );

    let dockerfile = format!("FROM {BUSYBOX}\nCOPY code /code\nRUN echo built > /built\n");
    let told = serving.build(&dockerfile, &names).await;
    assert_eq!(told, json!({ "status": "SUCCESS", "image": names[0] }));
    for name in &names {
        let found = serving.get(&format!("/image_exists?image={name}")).await;
        assert_eq!(found["exists"], true);
        assert!(found["image"]["image_size_bytes"].as_u64().unwrap() > 100_000);
        assert!(found["image"]["upload_time"].is_string());
    }

    let started = json!({ "session_id": "built", "image": names[0] });
    let started = serving.post("/start", &started).await;
    assert_eq!(started["zareba"]["image"]["used"], names[0], "{started}");
    let url = started["url"].as_str().unwrap();
    let action = json!({ "action": { "action": "run",
        "args": { "command": "cat /code/file /built" } } });
    let request = serving.http.post(format!("{url}/execute_action"));
    let request = request.header(
        "x-session-api-key",
        started["session_api_key"].as_str().unwrap(),
    );
    let request = request.header("content-type", "application/json");
    let answer = request.body(action.to_string()).send().await.unwrap();
    let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert_eq!(answer["content"], "from farbuilt", "{answer}");
    let which = json!({ "runtime_id": started["runtime_id"] });
    serving.post("/stop", &which).await;
    drop(serving);
    place.is_clean();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_builds_nothing_that_is_not_allowed() {
    let place = Place::new("refused", Cache::Shared);
    let serving = Serving::start(&place);
    let name = [format!("{}:it", place.repository)];
    let from = |image: &str| format!("FROM {image}\nRUN true\n");
    let told = serving.build(&from("zareba-test/debian"), &name).await;
    assert_eq!(told["status"], "FAILURE", "{told}");
    assert!(
        told["error"].as_str().unwrap().contains("allowed images"),
        "{told}"
    );
    let told = serving
        .build(&from(BUSYBOX), &["other/name:1".to_owned()])
        .await;
    assert!(
        told["error"].as_str().unwrap().contains("allowed images"),
        "{told}"
    );
    let failing = format!("FROM {BUSYBOX}\nRUN echo why; exit 5\n");
    let told = serving.build(&failing, &name).await;
    assert_eq!(told["status"], "FAILURE", "{told}");
    assert!(told["error"].as_str().unwrap().contains("why"), "{told}");
    drop(serving);
    place.is_clean();
}
