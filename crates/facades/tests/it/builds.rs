//! Builds as the stock client asks for them, with a builder that shows what reached it.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::{Arc, Mutex},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::StatusCode;
use reqwest::{Method, multipart};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use zareba_facades::openhands::{
    BuildService, ImageCatalog, ImageFacts, OpenHandsSettings, RemoteBuild, RemoteBuildError,
    RemoteBuildFault,
};
use zareba_session::Owner;
use zareba_wire::BoxFuture;

use crate::{
    client::{ALICE, Api, BOB, answer},
    provider::{Kind, Provider},
};

/// Builds nothing: it keeps what it got, and its images are those that were asked for.
struct Shelf {
    orders: Mutex<Vec<(Vec<String>, Vec<u8>)>>,
    /// One for each build that may end.
    ends: Semaphore,
}

impl Shelf {
    fn new(ends: usize) -> Arc<Self> {
        Arc::new(Self {
            orders: Mutex::default(),
            ends: Semaphore::new(ends),
        })
    }
}

/// The same by another name, because builds outlive the call that starts them.
struct Builder(Arc<Shelf>);

impl BuildService for Builder {
    fn scratch(&self) -> io::Result<File> {
        tempfile::tempfile()
    }

    fn build(
        &self,
        _owner: &Owner,
        mut order: RemoteBuild,
    ) -> BoxFuture<'static, Result<String, RemoteBuildError>> {
        let shelf = Arc::clone(&self.0);
        Box::pin(async move {
            let mut bytes = Vec::new();
            order.context.read_to_end(&mut bytes).unwrap();
            shelf.ends.acquire().await.unwrap().forget();
            if bytes == b"\x1f\x8bwrong" {
                return Err(RemoteBuildError {
                    reason: "step 1 failed".to_owned(),
                    kind: RemoteBuildFault::Failure,
                });
            }
            let name = order.names[0].clone();
            shelf.orders.lock().unwrap().push((order.names, bytes));
            Ok(name)
        })
    }
}

impl ImageCatalog for Builder {
    fn find<'a>(&'a self, image: &'a str) -> BoxFuture<'a, Option<ImageFacts>> {
        Box::pin(async move {
            let orders = self.0.orders.lock().unwrap();
            let found = orders
                .iter()
                .any(|(names, _)| names.iter().any(|it| it == image));
            found.then_some(ImageFacts {
                since: jiff::Timestamp::UNIX_EPOCH,
                bytes: 7,
            })
        })
    }
}

async fn provider(shelf: &Arc<Shelf>) -> Provider {
    let settings = OpenHandsSettings {
        images: Some(Arc::new(Builder(Arc::clone(shelf)))),
        builder: Some(Arc::new(Builder(Arc::clone(shelf)))),
        ..OpenHandsSettings::default()
    };
    Provider::with(Kind::Cli, settings).await
}

fn form(context: Vec<u8>) -> multipart::Form {
    multipart::Form::new()
        .part(
            "context",
            multipart::Part::bytes(context).file_name("context.tar.gz"),
        )
        .text("target_image", "zareba/runtime:source")
        .text("tags", "zareba/runtime:lock")
        .text("tags", "zareba/runtime:versioned")
}

async fn send(api: &Api<'_>, form: multipart::Form) -> (StatusCode, Value) {
    answer(api.request(Method::POST, "/build").multipart(form)).await
}

async fn status(api: &Api<'_>, build: &Value) -> (StatusCode, Value) {
    let id = build["build_id"].as_str().unwrap();
    api.get(&format!("/build_status?build_id={id}")).await
}

#[tokio::test]
async fn a_context_arrives_whole_and_its_image_is_there_afterwards() {
    let shelf = Shelf::new(2);
    let provider = provider(&shelf).await;
    let api = Api::new(&provider, ALICE);
    let exists = "/image_exists?image=zareba/runtime:lock";
    assert_eq!(api.get(exists).await.1, json!({ "exists": false }));

    let mut archive: Vec<u8> = (0..3_000_000_u32).map(|it| (it % 251) as u8).collect();
    archive[..2].copy_from_slice(&[0x1f, 0x8b]);
    for sent in [
        BASE64_STANDARD.encode(&archive).into_bytes(),
        archive.clone(),
    ] {
        let (code, build) = send(&api, form(sent)).await;
        assert_eq!(code, StatusCode::OK, "{build}");
        let told = json!({ "status": "SUCCESS", "image": "zareba/runtime:source" });
        assert_eq!(status(&api, &build).await, (StatusCode::OK, told));
        // Whoever else asks is told that there is no such build.
        let other = Api::new(&provider, BOB);
        assert_eq!(status(&other, &build).await.0, StatusCode::NOT_FOUND);
        let (names, bytes) = shelf.orders.lock().unwrap().pop().unwrap();
        let tags = ["source", "lock", "versioned"].map(|tag| format!("zareba/runtime:{tag}"));
        assert_eq!(names, tags);
        assert!(bytes == archive, "the archive changed on its way");
        shelf.orders.lock().unwrap().push((names, bytes));
    }
    let (_, found) = api.get(exists).await;
    assert_eq!(
        (&found["exists"], &found["image"]["image_size_bytes"]),
        (&json!(true), &json!(7))
    );
    provider.stop().await;
}

#[tokio::test]
async fn a_build_that_fails_says_why_and_too_many_are_put_off() {
    let shelf = Shelf::new(0);
    let provider = provider(&shelf).await;
    let api = Api::new(&provider, ALICE);
    let wrong = || form(b"\x1f\x8bwrong".to_vec());
    let (_, first) = send(&api, wrong()).await;
    let (_, second) = send(&api, wrong()).await;
    let (code, put_off) = send(&api, wrong()).await;
    assert_eq!(code, StatusCode::TOO_MANY_REQUESTS, "{put_off}");
    shelf.ends.add_permits(2);
    for build in [first, second] {
        let told = json!({ "status": "FAILURE", "error": "step 1 failed" });
        assert_eq!(status(&api, &build).await.1, told);
    }
    let (code, again) = send(&api, wrong()).await;
    assert_eq!(code, StatusCode::OK, "{again}");
    provider.stop().await;
}

#[tokio::test]
async fn forms_that_make_no_sense_are_refused() {
    let shelf = Shelf::new(0);
    let provider = provider(&shelf).await;
    let api = Api::new(&provider, ALICE);
    let (code, _) = send(&api, form(b"no base64 at all!".to_vec())).await;
    assert_eq!(code, StatusCode::BAD_REQUEST);
    let nameless = multipart::Form::new().text("context", "H4sIAAA=");
    assert_eq!(
        send(&api, nameless).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let unknown = form(Vec::new()).text("command", "x");
    assert_eq!(
        send(&api, unknown).await.0,
        StatusCode::UNPROCESSABLE_ENTITY
    );
    let long = form(Vec::new()).text("tags", "x".repeat(1000));
    assert_eq!(send(&api, long).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let request = api.request(Method::POST, "/build").body("{}");
    assert_eq!(answer(request).await.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    // None of them holds a place.
    shelf.ends.add_permits(1);
    let (_, build) = send(&api, form(vec![0x1f, 0x8b])).await;
    assert_eq!(status(&api, &build).await.1["status"], "SUCCESS");
    provider.stop().await;
}
