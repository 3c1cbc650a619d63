//! Who may read: challenges, tokens, passwords, and to whom they are shown.

use zareba_image::registry::{PullError, Sought};

use crate::{
    server::{Answer, Seen, Server},
    shelf::{Built, Dialect, Shelf},
    workbench::Workbench,
};

/// `me:swordfish`
const BASIC: &str = "Basic bWU6c3dvcmRmaXNo";

fn shelf() -> Shelf {
    Shelf::of(&Built::new(Dialect::Oci, &[b"first", b"second", b"third"]))
}

fn is_allowed(seen: &Seen, authorization: &str) -> bool {
    seen.authorization.as_deref() == Some(authorization)
}

/// A registry that takes tokens from the service at `realm`.
async fn with_tokens(realm: String, token: &'static str) -> Server {
    let challenge = format!(
        r#"Bearer realm="{realm}",service="the registry",scope="repository:team/tool:pull""#
    );
    Server::start(shelf(), move |seen| {
        let is_allowed = is_allowed(seen, &format!("Bearer {token}"));
        (!is_allowed).then(|| Answer::challenge(&challenge))
    })
    .await
}

async fn token_service(answer: Answer) -> Server {
    Server::start(Shelf::default(), move |_| Some(answer.clone())).await
}

#[tokio::test]
async fn a_token_is_fetched_once_and_used_for_everything() {
    let tokens = token_service(Answer::ok(r#"{"token":"abc","expires_in":300}"#)).await;
    let server = with_tokens(tokens.url("/token?x=1"), "abc").await;
    Workbench::new().pull(&server).await.unwrap();
    let asked = tokens.seen();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        asked[0].target,
        "/token?x=1&scope=repository%3Ateam%2Ftool%3Apull&service=the+registry"
    );
    assert_eq!(asked[0].authorization, None);
    let refused = server
        .seen()
        .into_iter()
        .filter(|seen| seen.authorization.is_none());
    assert_eq!(refused.count(), 1);
}

#[tokio::test]
async fn the_other_name_of_a_token_is_as_good_and_a_missing_scope_is_ours() {
    let tokens = token_service(Answer::ok(r#"{"access_token":"abc"}"#)).await;
    let challenge = format!(r#"Bearer realm="{}""#, tokens.url("/token"));
    let server = Server::start(shelf(), move |seen| {
        (!is_allowed(seen, "Bearer abc")).then(|| Answer::challenge(&challenge))
    })
    .await;
    Workbench::new().pull(&server).await.unwrap();
    assert_eq!(
        tokens.seen()[0].target,
        "/token?scope=repository%3Ateam%2Ftool%3Apull"
    );
}

#[tokio::test]
async fn a_password_goes_to_the_token_service_and_not_to_the_registry_rh_1() {
    let tokens = token_service(Answer::ok(r#"{"token":"abc"}"#)).await;
    let server = with_tokens(tokens.url("/token"), "abc").await;
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    workbench.pull(&server).await.unwrap();
    assert_eq!(tokens.seen()[0].authorization.as_deref(), Some(BASIC));
    assert!(tokens.seen()[0].target.ends_with("&account=me"));
    assert!(server.seen().iter().all(|seen| !is_allowed(seen, BASIC)));
}

#[tokio::test]
async fn a_token_that_runs_out_is_renewed_on_the_way() {
    let tokens = Server::start(Shelf::default(), |seen| {
        let number = seen.before;
        Some(Answer::ok(format!(r#"{{"token":"token{number}"}}"#)))
    })
    .await;
    let challenge = format!(r#"Bearer realm="{}""#, tokens.url("/token"));
    let server = Server::start(shelf(), move |seen| {
        // The first is good for the manifest only.
        let wanted = if seen.is_manifest() {
            "Bearer token0"
        } else {
            "Bearer token1"
        };
        (!is_allowed(seen, wanted)).then(|| Answer::challenge(&challenge))
    })
    .await;
    Workbench::new().pull(&server).await.unwrap();
    assert_eq!(tokens.seen().len(), 2);
}

#[tokio::test]
async fn requests_that_find_out_together_renew_once() {
    let tokens = Server::start(Shelf::default(), |seen| {
        let number = seen.before;
        Some(Answer::ok(format!(r#"{{"token":"token{number}"}}"#)))
    })
    .await;
    let configuration = Built::new(Dialect::Oci, &[b"first", b"second", b"third"]).configuration;
    let configuration = crate::shelf::digest(&configuration);
    let challenge = format!(r#"Bearer realm="{}""#, tokens.url("/token"));
    let server = Server::start(shelf(), move |seen| {
        let is_layer = seen.is_blob() && !seen.target.ends_with(&configuration);
        let wanted = if is_layer {
            "Bearer token1"
        } else {
            "Bearer token0"
        };
        (!is_allowed(seen, wanted)).then(|| Answer::challenge(&challenge))
    })
    .await;
    Workbench::new().pull(&server).await.unwrap();
    assert_eq!(tokens.seen().len(), 2);
}

#[tokio::test]
async fn a_password_is_shown_only_to_a_registry_that_asks() {
    let server = Server::start(shelf(), |seen| {
        (!is_allowed(seen, BASIC)).then(|| Answer::challenge(r#"Basic realm="here""#))
    })
    .await;
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    workbench.pull(&server).await.unwrap();
    assert_eq!(server.seen()[0].authorization, None);

    let open = Server::start(shelf(), |_| None).await;
    let mut workbench = Workbench::new().with_credentials(&open.address.to_string());
    workbench.pull(&open).await.unwrap();
    assert!(open.seen().iter().all(|seen| seen.authorization.is_none()));
}

#[tokio::test]
async fn the_password_of_another_registry_is_never_shown_rh_1() {
    let server = Server::start(shelf(), |_| Some(Answer::challenge("Basic"))).await;
    let mut workbench = Workbench::new().with_credentials("images.test");
    let error = workbench.pull(&server).await.unwrap_err();
    let file = workbench.options.credentials.clone().unwrap();
    match &error {
        PullError::Unauthorized { sought, status, .. } => {
            assert_eq!((sought, *status), (&Sought::NoneIn(file), 401));
        }
        other => panic!("{other}"),
    }
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.authorization.is_none())
    );
}

#[tokio::test]
async fn a_refused_password_is_said_to_be_that_without_showing_it() {
    for challenge in ["Basic", "Negotiate", ""] {
        let server = Server::start(shelf(), move |_| Some(Answer::challenge(challenge))).await;
        let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
        let error = workbench.pull(&server).await.unwrap_err();
        assert!(matches!(
            error,
            PullError::Unauthorized {
                sought: Sought::FoundIn(_),
                ..
            }
        ));
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("swordfish"), "{shown}");
        assert!(shown.contains("config.json"), "{shown}");
        assert!(server.seen().len() <= 2);
    }
}

#[tokio::test]
async fn a_forbidden_image_is_told_apart_from_a_missing_one() {
    let server = Server::start(shelf(), |_| Some(Answer::status(403))).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    match &error {
        PullError::Unauthorized { sought, status, .. } => {
            assert_eq!((sought, *status), (&Sought::Nowhere, 403));
        }
        other => panic!("{other}"),
    }
    assert!(
        error.to_string().contains("~/.docker/config.json"),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_service_that_refuses_is_named() {
    let tokens = token_service(Answer::status(401)).await;
    let server = with_tokens(tokens.url("/token"), "abc").await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
    assert!(
        error.to_string().contains(&tokens.address.to_string()),
        "{error}"
    );
    assert_eq!(tokens.seen().len(), 1);
}

#[tokio::test]
async fn a_token_service_may_not_send_us_elsewhere_rh_1() {
    let elsewhere = token_service(Answer::ok(r#"{"token":"abc"}"#)).await;
    let tokens = token_service(Answer::redirect(&elsewhere.url("/"))).await;
    let server = with_tokens(tokens.url("/token"), "abc").await;
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(
        matches!(error, PullError::Refused { status: 307, .. }),
        "{error}"
    );
    assert_eq!(elsewhere.seen(), []);
}

#[tokio::test]
async fn a_token_service_in_the_clear_is_not_asked_rh_1() {
    for realm in [
        "http://auth.test/token",
        "ftp://127.0.0.1/token",
        "http://me:pw@127.0.0.1/token",
        "/token",
        "",
    ] {
        let server = with_tokens(realm.to_owned(), "abc").await;
        let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
        let error = workbench.pull(&server).await.unwrap_err();
        assert!(matches!(error, PullError::Permission { .. }), "{error}");
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_without_a_usable_token_is_an_error_that_does_not_show_it() {
    let huge = format!(r#"{{"token":"{}"}}"#, "a".repeat(300 * 1024));
    for body in [
        "",
        "{}",
        r#"{"token":""}"#,
        r#"{"token":"swordfish\u0000"}"#,
        r#"{"token":"a\r\nX-Injected: swordfish"}"#,
        r#"{"token":{"swordfish":1}}"#,
        &huge,
    ] {
        let tokens = token_service(Answer::ok(body)).await;
        let server = with_tokens(tokens.url("/token"), "abc").await;
        let error = Workbench::new().pull(&server).await.unwrap_err();
        let is_fitting = matches!(
            error,
            PullError::Permission { .. } | PullError::TooLarge { .. }
        );
        assert!(is_fitting, "{error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("swordfish"), "{shown}");
    }
}

#[tokio::test]
async fn a_credentials_file_that_cannot_be_read_stops_before_the_network() {
    let server = Server::start(shelf(), |_| None).await;
    let mut workbench = Workbench::new().with_credentials("images.test");
    std::fs::write(workbench.options.credentials.as_ref().unwrap(), "swordfish").unwrap();
    let error = workbench.pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Credentials { .. }), "{error}");
    assert_eq!(server.seen(), []);
}
