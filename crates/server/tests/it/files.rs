//! Files of a session: bytes in and out, conditions, listings, archives and changes.

use std::time::Duration;

use rustix::thread::CapabilitySet;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{
    fixture::Site,
    http::{Request, Response},
};

const PATIENCE: Duration = Duration::from_secs(30);

/// A session's files, as a client asks for them.
struct Files<'a> {
    site: &'a Site,
    session: String,
}

impl<'a> Files<'a> {
    async fn new(site: &'a Site) -> Self {
        let session = site.session().await;
        Self { site, session }
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/sessions/{}/files{rest}", self.session)
    }

    fn request(&self, method: &str, rest: &str) -> Request {
        Request::new(method, &self.path(rest)).key(&self.site.admin)
    }

    async fn get(&self, rest: &str) -> Response {
        self.site.send(self.request("GET", rest)).await
    }

    async fn put(&self, rest: &str, body: &[u8]) -> Response {
        self.site.send(self.putting(rest, body)).await
    }

    fn putting(&self, rest: &str, body: &[u8]) -> Request {
        self.request("PUT", rest)
            .header("Content-Type", "application/octet-stream")
            .body(body.to_vec())
    }

    async fn post(&self, rest: &str, body: Value) -> Response {
        self.site.post(self.path(rest), body).await
    }

    async fn delete(&self, rest: &str) -> Response {
        self.site.send(self.request("DELETE", rest)).await
    }
}

/// FA-4, FA-10.
#[tokio::test]
async fn a_file_is_written_and_read_in_parts() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    let written = files
        .put(
            "/content?path=d/a%20b.html&parents=true&mode=640",
            b"<b>0123456789",
        )
        .await;
    let status = written.expect(200);
    assert_eq!(status["size"], 13);
    assert_eq!(status["mode"], "0640");
    let tag = written.header("etag").unwrap().to_owned();

    let read = files.get("/content?path=d/a%20b.html").await;
    assert_eq!((read.status, read.text().as_str()), (200, "<b>0123456789"));
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        (
            "content-disposition",
            "attachment; filename*=UTF-8''a%20b.html",
        ),
        ("x-content-type-options", "nosniff"),
        ("content-length", "13"),
        ("accept-ranges", "bytes"),
        ("etag", &tag),
    ] {
        assert_eq!(read.header(name), Some(value), "{name}");
    }
    let part = |range: &str| {
        files
            .request("GET", "/content?path=d/a%20b.html")
            .header("Range", range)
    };
    let middle = site.send(part("bytes=3-5")).await;
    assert_eq!((middle.status, middle.text().as_str()), (206, "012"));
    assert_eq!(middle.header("content-range"), Some("bytes 3-5/13"));
    let last = site.send(part("bytes=-2")).await;
    assert_eq!((last.status, last.text().as_str()), (206, "89"));
    let beyond = site.send(part("bytes=13-")).await;
    assert_eq!(beyond.error(416), "range_not_satisfiable");
    assert_eq!(beyond.header("content-range"), Some("bytes */13"));
    let several = site.send(part("bytes=0-1,3-4")).await;
    assert_eq!((several.status, several.body.len()), (200, 13));
    let unchanged = files
        .request("GET", "/content?path=d/a%20b.html")
        .header("If-None-Match", &tag);
    let unchanged = site.send(unchanged).await;
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));

    let listed = files.get("?path=d").await.expect(200);
    assert_eq!(listed["entries"][0]["name"], "a b.html");
    assert_eq!(listed["entries"][0]["status"]["kind"], "file");
    site.stop().await;
}

/// FA-6, §14: a stale tag changes nothing, and the tag that holds is told.
#[tokio::test]
async fn a_stale_write_is_a_conflict() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    let write = |name: &str, tag: &str, body: &str| {
        files
            .putting("/content?path=f", body.as_bytes())
            .header(name, tag)
    };
    let first = site.send(write("If-None-Match", "*", "one")).await;
    first.expect(200);
    let tag = first.header("etag").unwrap();
    let again = site.send(write("If-None-Match", "*", "two")).await;
    assert_eq!(again.error(409), "conflict");
    assert_eq!(again.header("etag"), Some(tag));
    site.send(write("If-Match", tag, "two")).await.expect(200);
    let stale = site.send(write("If-Match", tag, "three")).await;
    assert_eq!(stale.error(409), "conflict");
    assert_ne!(stale.header("etag"), Some(tag));

    let hashed = files.get("/content?path=f&digest=sha256").await;
    let hash = hashed.header("etag").unwrap();
    assert!(hash.starts_with("\"sha256:"), "{hash}");
    site.send(write("If-Match", hash, "four")).await.expect(200);
    assert_eq!(files.get("/content?path=f").await.text(), "four");
    for (name, tag) in [
        ("If-Match", "two"),
        ("If-Match", "*"),
        ("If-None-Match", "\"x\""),
    ] {
        let refused = site.send(write(name, tag, "five")).await;
        assert_eq!(refused.error(400), "invalid_request", "{name}: {tag}");
    }
    site.stop().await;
}

/// FA-11, §14.
#[tokio::test]
async fn refusals_have_codes_of_their_own() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    site.run(
        &files.session,
        "mkdir d && mkfifo pipe && ln -s loop loop && touch d/x",
    )
    .await;
    for (rest, status, code) in [
        ("/content?path=none", 404, "not_found"),
        ("/content?path=d", 422, "is_a_directory"),
        ("/content?path=pipe", 422, "not_a_regular_file"),
        ("/content?path=loop", 400, "too_many_links"),
        ("/content?path=", 400, "invalid_path"),
        ("/content?path=a%00b", 400, "invalid_path"),
        (
            &format!("/content?path={}", "n".repeat(256)),
            400,
            "name_too_long",
        ),
        ("/content?path=d&pth=x", 400, "invalid_request"),
        ("/content", 400, "invalid_request"),
        ("?path=d/x", 422, "not_a_directory"),
        ("/archive?path=none", 404, "not_found"),
        ("/archive?path=d&format=rar", 400, "invalid_request"),
        ("/watch?path=none", 404, "not_found"),
    ] {
        assert_eq!(files.get(rest).await.error(status), code, "{rest}");
    }
    assert_eq!(
        files.delete("/content?path=d").await.error(409),
        "directory_not_empty"
    );
    let plain = files.request("PUT", "/content?path=f").body(b"x".to_vec());
    assert_eq!(site.send(plain).await.error(415), "unsupported_media_type");
    let set_id = files.put("/content?path=f&mode=4755", b"x").await;
    assert_eq!(set_id.error(400), "invalid_request");
    assert_eq!(files.get("/status?path=f").await.error(404), "not_found");
    site.stop().await;
}

#[tokio::test]
async fn directories_are_made_listed_renamed_and_removed() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    let made = files
        .post("/directories", json!({ "path": "a/b", "parents": true }))
        .await;
    assert_eq!(made.expect(201)["kind"], "directory");
    for name in ["a/3", "a/1", "a/2"] {
        files
            .put(&format!("/content?path={name}"), b"")
            .await
            .expect(200);
    }
    let (mut names, mut after) = (Vec::new(), String::new());
    loop {
        let page = files
            .get(&format!("?path=a&limit=2{after}"))
            .await
            .expect(200);
        for entry in page["entries"].as_array().unwrap() {
            names.push(entry["name"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(names, ["1", "2", "3", "b"]);
    let rename = |replace: bool| json!({ "from": "a/1", "to": "a/2", "replace": replace });
    assert_eq!(
        files.post("/rename", rename(false)).await.error(409),
        "exists"
    );
    files.post("/rename", rename(true)).await.expect(204);
    files
        .delete("/content?path=a&recursive=true")
        .await
        .expect(204);
    assert_eq!(files.get("/status?path=a").await.error(404), "not_found");
    site.stop().await;
}

#[tokio::test]
async fn archives_go_out_and_come_in() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    site.run(
        &files.session,
        "mkdir -p d/e && echo one > d/e/f && chmod 750 d/e/f",
    )
    .await;
    for format in ["tar", "zip"] {
        let packing = files.request("GET", &format!("/archive?path=d&format={format}"));
        let (head, mut rest) = packing.open(site.address).await;
        assert_eq!(head.status, 200);
        let disposition = format!("attachment; filename*=UTF-8''d.{format}");
        assert_eq!(
            head.header("content-disposition"),
            Some(disposition.as_str())
        );
        let mut archive = Vec::new();
        rest.read_to_end(&mut archive).await.unwrap();
        let into = format!("/archive?path=again-{format}&format={format}");
        files.put(&into, &archive).await.expect(204);
        let read = files
            .get(&format!("/content?path=again-{format}/e/f"))
            .await;
        assert_eq!(read.text(), "one\n");
        // FA-9: all of it or nothing.
        let broken = format!("/archive?path=broken-{format}&format={format}");
        let half = &archive[..archive.len() / 2];
        assert_eq!(files.put(&broken, half).await.status / 100, 4, "{format}");
        assert_eq!(
            files
                .get(&format!("/status?path=broken-{format}"))
                .await
                .error(404),
            "not_found"
        );
    }
    site.stop().await;
}

/// FA-11: what may not be read is said before an archive begins. As an ordinary user, since root
/// may read everything: a thread has a user of its own, and so has all that it starts.
#[test]
fn a_tree_that_may_not_be_read_is_refused_as_a_whole() {
    let worker = std::thread::spawn(|| {
        // Root may read everything by these, and nobody else has them.
        let past_modes = CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        let mut sets = rustix::thread::capabilities(None).unwrap();
        sets.effective.remove(past_modes);
        rustix::thread::set_capabilities(None, sets).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(pack_what_is_closed());
    });
    worker.join().unwrap();
}

async fn pack_what_is_closed() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    let made = "mkdir -p d/e && head -c 5000000 /dev/zero > d/a && echo s > d/e/s && chmod 0 d/e/s";
    site.run(&files.session, made).await;
    for format in ["tar", "zip"] {
        let refused = files.get(&format!("/archive?path=d&format={format}")).await;
        assert_eq!(refused.error(403), "permission_denied", "{format}");
        assert!(refused.text().contains("d/e/s"), "{}", refused.text());
    }
    site.run(&files.session, "chmod 600 d/e/s").await;
    let packed = files.get("/archive?path=d&format=tar").await;
    assert_eq!(packed.status, 200);
    assert!(packed.body.len() > 5_000_000);
    site.stop().await;
}

async fn event(lines: &mut BufReader<TcpStream>) -> (String, Value) {
    let (mut name, mut line) = (String::new(), String::new());
    loop {
        line.clear();
        timeout(PATIENCE, lines.read_line(&mut line))
            .await
            .unwrap()
            .unwrap();
        if let Some(found) = line.strip_prefix("event: ") {
            name = found.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            return (name, serde_json::from_str(data).unwrap());
        }
    }
}

#[tokio::test]
async fn changes_are_told_as_they_happen() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    let watching = files.request("GET", "/watch?recursive=true");
    let (head, mut lines) = watching.open(site.address).await;
    assert_eq!(head.status, 200);
    assert_eq!(event(&mut lines).await.0, "ready");
    files
        .put("/content?path=new/f&parents=true", b"x")
        .await
        .expect(200);
    let wanted = json!({ "change": "created", "path": "new", "kind": "directory" });
    assert_eq!(event(&mut lines).await, ("change".to_owned(), wanted));
    let rename = json!({ "from": "new/f", "to": "new/g" });
    files.post("/rename", rename).await.expect(204);
    let wanted = json!({ "change": "renamed", "path": "new/f", "to": "new/g", "kind": "file" });
    while event(&mut lines).await.1 != wanted {}
    files.delete("/content?path=new/g").await.expect(204);
    let wanted = json!({ "change": "removed", "path": "new/g", "kind": "file" });
    while event(&mut lines).await.1 != wanted {}
    drop(lines);
    site.stop().await;
}

/// FA-5: an upload that breaks off in the middle changes nothing.
#[tokio::test]
async fn an_upload_that_breaks_off_leaves_the_file_alone() {
    let site = Site::start().await;
    let files = Files::new(&site).await;
    files.put("/content?path=f", b"old").await.expect(200);
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    let head = format!(
        "PUT {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nnew",
        files.path("/content?path=f"),
        site.address,
        site.admin
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    drop(stream);
    assert_eq!(files.get("/content?path=f").await.text(), "old");
    let listed = async {
        // What was written of it so far is removed once the end is noticed.
        loop {
            let listed = files.get("").await.expect(200);
            if listed["entries"].as_array().unwrap().len() == 1 {
                return;
            }
        }
    };
    timeout(PATIENCE, listed).await.unwrap();
    site.stop().await;
}
