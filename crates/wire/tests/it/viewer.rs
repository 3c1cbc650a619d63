//! The file viewer's pages.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::json;
use tokio::{sync::oneshot, task::JoinHandle};
use zareba_wire::{Endpoint, viewer::Viewer};

use crate::http::{Answer, get, post};

struct Viewing {
    endpoint: Endpoint,
    secret: String,
    _stop: oneshot::Sender<()>,
    _task: JoinHandle<()>,
}

fn start() -> Viewing {
    let viewer = Viewer::bind(0..=0).unwrap();
    let url = viewer.url();
    let place = url.strip_prefix("http://localhost:").unwrap();
    let (port, secret) = place.split_once('/').unwrap();
    let (port, secret) = (port.parse::<u16>().unwrap(), secret.to_owned());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(viewer.serve(async move { drop(stopped.await) }));
    Viewing {
        endpoint: Endpoint::Tcp(([127, 0, 0, 1], port).into()),
        secret,
        _stop: stop,
        _task: task,
    }
}

impl Viewing {
    async fn view(&self, path: &Path) -> Answer {
        let path = path
            .to_str()
            .unwrap()
            .replace('<', "%3C")
            .replace('>', "%3E")
            .replace('&', "%26");
        let target = format!("/{}/view?path={path}", self.secret);
        get(&target).of(&self.endpoint).await
    }
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

#[tokio::test]
async fn images_and_documents_are_shown_in_the_page_itself() {
    let viewing = start();
    let directory = tempfile::tempdir().unwrap();
    let png = directory.path().join("test_image.PNG");
    fs::write(&png, PNG).unwrap();
    let answer = viewing.view(&png).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = answer.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'; img-src data:; object-src data:"),
        "{policy}"
    );
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(
        text(&answer),
        "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>File Viewer - test_image.PNG\
         </title></head><body><img src=\"data:image/png;base64,iVBORw0KGgpyZXN0\" \
         alt=\"test_image.PNG\"></body></html>\n"
    );

    let pdf = directory.path().join("a.pdf");
    fs::write(&pdf, "%PDF-1.4").unwrap();
    let answer = viewing.view(&pdf).await;
    assert!(
        text(&answer).contains("<title>File Viewer - a.pdf</title>"),
        "{answer:?}"
    );
    assert!(
        text(&answer).contains("data=\"data:application/pdf;base64,JVBERi0xLjQ=\""),
        "{answer:?}"
    );
}

/// Every user of the machine can connect; the address is what they lack.
#[tokio::test]
async fn nothing_is_shown_to_one_who_does_not_know_the_address() {
    let viewing = start();
    let directory = tempfile::tempdir().unwrap();
    let png = directory.path().join("x.png");
    fs::write(&png, PNG).unwrap();
    let (shorter, longer) = (&viewing.secret[1..], format!("{}0", viewing.secret));
    let other = "0".repeat(32);
    for secret in ["", "/", shorter, longer.as_str(), &other] {
        let target = format!("/{secret}/view?path={}", png.display());
        let answer = get(&target).of(&viewing.endpoint).await;
        assert_eq!(answer.status, 404, "{target}");
    }
    let target = format!("/view?path={}", png.display());
    assert_eq!(get(&target).of(&viewing.endpoint).await.status, 404);
    assert_eq!(viewing.view(&png).await.status, 200);
    assert_eq!(viewing.secret.len(), 32);
    assert_ne!(viewing.secret, start().secret);
}

#[tokio::test]
async fn names_cannot_write_into_the_page() {
    let viewing = start();
    let directory = tempfile::tempdir().unwrap();
    let hostile = directory.path().join("<script>&.gif");
    fs::write(&hostile, "GIF89a").unwrap();
    let answer = viewing.view(&hostile).await;
    assert_eq!(answer.status, 200);
    assert!(!text(&answer).contains("<script>"), "{answer:?}");
    assert!(text(&answer).contains("<title>File Viewer - &lt;script&gt;&amp;.gif</title>"));
}

#[tokio::test]
async fn what_cannot_be_shown_has_its_page_and_status() {
    let viewing = start();
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes.txt");
    fs::write(&notes, "secret").unwrap();
    let disguised = directory.path().join("x.png");
    symlink(&notes, &disguised).unwrap();
    let pipe = directory.path().join("pipe.png");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR).unwrap();
    for (path, status, heading) in [
        (
            Path::new("relative.png"),
            400,
            "<h1>Error: Path must be absolute</h1>",
        ),
        (
            Path::new("/nope/x.png"),
            404,
            "<h1>Error: File not found</h1>",
        ),
        (directory.path(), 400, "<h1>Error: Path is a directory</h1>"),
        (
            &notes,
            500,
            "<h1>Error viewing file</h1><p>Unsupported file extension: .txt</p>",
        ),
        (&disguised, 500, "<h1>Error viewing file</h1>"),
        (
            &pipe,
            500,
            "<h1>Error viewing file</h1><p>Not a regular file</p>",
        ),
    ] {
        let answer = viewing.view(path).await;
        assert_eq!(answer.status, status, "{path:?}");
        assert!(text(&answer).contains(heading), "{path:?}: {answer:?}");
        assert!(!text(&answer).contains("secret") && !text(&answer).contains("c2VjcmV0"));
    }
}

#[tokio::test]
async fn only_this_machine_by_its_own_name_is_served() {
    let viewing = start();
    let running = get("/").of(&viewing.endpoint).await;
    assert_eq!(
        running.json(),
        json!({"status": "File viewer server is running"})
    );
    let rebound = get("/")
        .host(Some("rebound.example"))
        .of(&viewing.endpoint)
        .await;
    assert_eq!(rebound.status, 403);
    assert!(
        text(&rebound).contains("<h1>Access Denied</h1>"),
        "{rebound:?}"
    );
    assert_eq!(post("/view").of(&viewing.endpoint).await.status, 405);
    assert_eq!(get("/other").of(&viewing.endpoint).await.status, 404);
}

#[tokio::test]
async fn the_first_free_port_of_the_range_is_taken() {
    let taken = Viewer::bind(0..=0).unwrap();
    let url = taken.url();
    let place = url.rsplit(':').next().unwrap();
    let port: u16 = place.split('/').next().unwrap().parse().unwrap();
    assert!(Viewer::bind(port..=port).is_err());
    let next = Viewer::bind(port..=u16::MAX).unwrap();
    assert!(!next.url().starts_with(&format!("http://localhost:{port}/")));
}
