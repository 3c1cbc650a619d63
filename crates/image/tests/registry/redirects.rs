//! Where a registry may send us, and what we bring along.

use zareba_image::registry::PullError;

use crate::{
    server::{Answer, Server},
    shelf::{Built, Dialect, Shelf},
    workbench::{ClosedPort, Workbench},
};

/// `me:swordfish`
const BASIC: &str = "Basic bWU6c3dvcmRmaXNo";

fn shelf() -> Shelf {
    Shelf::of(&Built::new(Dialect::Oci, &[b"first", b"second"]))
}

/// A registry that wants a password, and has its blobs elsewhere.
async fn with_blobs_at(elsewhere: String) -> Server {
    Server::start(shelf(), move |seen| {
        if seen.authorization.as_deref() != Some(BASIC) {
            return Some(Answer::challenge("Basic"));
        }
        let to = format!("{elsewhere}{}", seen.target);
        seen.is_blob().then(|| Answer::redirect(&to))
    })
    .await
}

/// A registry that sends every blob to `to`.
async fn sending_to(to: String) -> Server {
    Server::start(shelf(), move |seen| {
        seen.is_blob().then(|| Answer::redirect(&to))
    })
    .await
}

#[tokio::test]
async fn blobs_are_fetched_from_elsewhere_without_the_password_rh_1() {
    let elsewhere = Server::start(shelf(), |_| None).await;
    let server = with_blobs_at(elsewhere.url("")).await;
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    workbench.pull(&server).await.unwrap();
    let asked = elsewhere.seen();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|seen| seen.authorization.is_none()));
}

#[tokio::test]
async fn a_challenge_from_elsewhere_is_not_answered_rh_1() {
    let trap = Server::start(Shelf::default(), |_| None).await;
    let realm = trap.url("/token");
    let challenges = [format!(r#"Bearer realm="{realm}""#), "Basic".to_owned()];
    for challenge in challenges {
        let elsewhere = Server::start(shelf(), move |_| Some(Answer::challenge(&challenge))).await;
        let server = with_blobs_at(elsewhere.url("")).await;
        let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
        let error = workbench.pull(&server).await.unwrap_err();
        assert!(matches!(error, PullError::Unauthorized { .. }), "{error}");
        assert!(
            elsewhere
                .seen()
                .iter()
                .all(|seen| seen.authorization.is_none())
        );
    }
    assert_eq!(trap.seen(), []);
}

#[tokio::test]
async fn a_way_back_home_brings_no_password_either_rh_1() {
    let back = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let target = std::sync::Arc::clone(&back);
    let elsewhere = Server::start(shelf(), move |_| {
        Some(Answer::redirect(&format!(
            "{}/private",
            target.get().unwrap()
        )))
    })
    .await;
    let server = with_blobs_at(elsewhere.url("")).await;
    back.set(server.url("")).unwrap();
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    let _ = workbench.pull(&server).await.unwrap_err();
    let requests = server.seen();
    let first = requests.iter().find(|seen| seen.target == "/private");
    assert_eq!(first.unwrap().authorization, None);
}

#[tokio::test]
async fn a_redirect_at_home_keeps_the_permission() {
    let server = Server::start(shelf(), |seen| {
        if seen.authorization.as_deref() != Some(BASIC) {
            return Some(Answer::challenge("Basic"));
        }
        let is_first = seen.is_blob() && !seen.target.contains('?');
        is_first.then(|| Answer::redirect(&format!("{}?again", seen.target)))
    })
    .await;
    let mut workbench = Workbench::new().with_credentials(&server.address.to_string());
    workbench.pull(&server).await.unwrap();
    assert!(
        server
            .seen()
            .iter()
            .any(|seen| seen.target.ends_with("?again"))
    );
}

#[tokio::test]
async fn a_chain_of_redirects_has_an_end() {
    let count = |seen: &crate::server::Seen| seen.target.matches("+").count();
    for (steps, is_good) in [(5, true), (6, false)] {
        let server = Server::start(shelf(), move |seen| {
            let is_on_the_way = seen.is_blob() && count(seen) < steps;
            let mark = if seen.target.contains('?') { "+" } else { "?+" };
            is_on_the_way.then(|| Answer::redirect(&format!("{}{mark}", seen.target)))
        })
        .await;
        let pulled = Workbench::new().pull(&server).await;
        match pulled {
            Ok(_) => assert!(is_good, "{steps} steps"),
            Err(PullError::Redirect { .. }) => assert!(!is_good, "{steps} steps"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn a_redirect_to_itself_is_given_up() {
    let server = Server::start(shelf(), |seen| Some(Answer::redirect(&seen.target))).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Redirect { .. }), "{error}");
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test]
async fn a_redirect_that_is_not_allowed_is_not_followed_rh_1() {
    for to in [
        "http://cdn.test/blob",
        "file:///etc/passwd",
        "ftp://127.0.0.1/blob",
        "http://me:pw@127.0.0.1/blob",
        "http://",
    ] {
        let server = sending_to(to.to_owned()).await;
        let error = Workbench::new().pull(&server).await.unwrap_err();
        assert!(matches!(error, PullError::Redirect { .. }), "{to}: {error}");
    }
}

#[tokio::test]
async fn a_redirect_that_leads_nowhere_is_refused() {
    let server = Server::start(shelf(), |_| Some(Answer::status(307))).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(
        matches!(error, PullError::Refused { status: 307, .. }),
        "{error}"
    );
}

#[tokio::test]
async fn the_secret_in_a_signed_address_is_in_no_error_rh_1() {
    let closed = ClosedPort::new();
    let nobody = closed.address();
    let server = sending_to(format!("http://{nobody}/blob?signature=swordfish")).await;
    let error = Workbench::new().pull(&server).await.unwrap_err();
    assert!(matches!(error, PullError::Unreachable { .. }), "{error}");
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("swordfish"), "{shown}");
    assert!(shown.contains(&nobody.to_string()), "{shown}");
}
