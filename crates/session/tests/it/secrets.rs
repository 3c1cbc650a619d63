//! Secrets are in the shells and nowhere else.

use std::fs;

use zareba_eventlog::EntryKind;
use zareba_session::{HIDDEN, NewSession, Secret, SessionError, event_json};

use crate::{
    fixture::{Place, client, keyed, observe, on, output, owner, records, request, run, text},
    recovery::{in_another_life, only},
};

const SECRET: &str = "s3cr3t/+value==\"quoted\"";

/// Every way in which a program may print it.
const PRINTING: &str = r#"
    printf '%s\n' "$TOKEN"
    printf '%s' "$TOKEN" | base64 -w0; echo
    printf 'a%s' "$TOKEN" | base64 -w0; echo
    printf 'ab%s' "$TOKEN" | base64 -w0; echo
    printf '%s' "$TOKEN" | base64 -w0 | tr '+/' '-_'; echo
    printf '%s' "$TOKEN" | od -An -tx1 | tr -d ' \n'; echo
    printf '%s' "$TOKEN" | od -An -tx1 | tr -d ' \n' | tr a-f A-F; echo
    echo 's3cr3t%2F%2Bvalue%3D%3D%22quoted%22'
    echo 's3cr3t/+value==\"quoted\"'
"#;

#[tokio::test]
async fn no_form_of_a_secret_reaches_the_log_el_9() {
    let place = Place::new();
    let sessions = place.serve().await;
    let new = NewSession {
        secrets: vec![("TOKEN".to_owned(), Secret(SECRET.to_owned()))],
        labels: [("note".to_owned(), format!("has {SECRET}"))].into(),
        ..on("cli")
    };
    let session = sessions.create_ready(new, owner()).await.unwrap();
    assert_eq!(
        output(&session, "printf %s \"$TOKEN\" | wc -c").await,
        SECRET.len().to_string()
    );
    for line in PRINTING.trim().lines() {
        let shown = output(&session, line.trim()).await;
        assert!(shown.contains(HIDDEN), "{line}: {shown}");
    }
    // Also what the agent itself writes, and what a failed command repeats.
    let spoken = observe(&session, run(&format!("echo '{SECRET}' | cat - nowhere"))).await;
    assert!(text(&spoken).contains(HIDDEN));
    let keyed = session.run(keyed(SECRET, run("true"))).await;
    assert!(keyed.is_err());
    let mut stream = session.mask().stream();
    let (half, rest) = SECRET.as_bytes().split_at(9);
    let streamed = [stream.push(half), stream.push(rest), stream.finish()].concat();
    assert_eq!(streamed, HIDDEN.as_bytes());

    let submitted = session
        .submit(request(run(&format!("echo '{SECRET}'"))))
        .await
        .unwrap();
    assert_eq!(event_json(&submitted)["masked"], true);
    session.answer(submitted.sequence).await.unwrap();
    session.close().await.unwrap();
    sessions.log().store().close().await.unwrap();
    drop((sessions, session));
    assert_no_trace(&place);
}

/// Has a server make a session with the secret that outlives it.
async fn leave_a_session(place: &Place) {
    in_another_life(place, async |sessions| {
        let new = NewSession {
            secrets: vec![("TOKEN".to_owned(), Secret(SECRET.to_owned()))],
            ..on("local")
        };
        let session = sessions.create_ready(new, owner()).await.unwrap();
        assert_eq!(output(&session, "echo \"$TOKEN\"").await, HIDDEN);
    })
    .await;
}

fn kept(place: &Place) -> Vec<fs::DirEntry> {
    let kept = fs::read_dir(place.path("secrets")).unwrap();
    kept.map(Result::unwrap).collect()
}

#[tokio::test]
async fn a_server_that_takes_a_session_up_hides_its_secrets_el_9() {
    let place = Place::new();
    leave_a_session(&place).await;
    assert_eq!(kept(&place).len(), 1);
    let sessions = place.serve().await;
    let session = only(&sessions).await;
    for line in PRINTING.trim().lines() {
        let shown = output(&session, line.trim()).await;
        assert!(shown.contains(HIDDEN), "{line}: {shown}");
    }
    let mut stream = session.mask().stream();
    let streamed = [stream.push(SECRET.as_bytes()), stream.finish()].concat();
    assert_eq!(streamed, HIDDEN.as_bytes());
    session.close().await.unwrap();
    assert_eq!(kept(&place).len(), 0);
    sessions.log().store().close().await.unwrap();
    drop((sessions, session));
    assert_no_trace(&place);
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_does_not_know_the_secrets_only_reads_and_closes_el_9() {
    let place = Place::new();
    leave_a_session(&place).await;
    fs::remove_file(kept(&place)[0].path()).unwrap();
    let sessions = place.serve().await;
    let session = only(&sessions).await;
    let refused = [
        session.run(request(run("echo $TOKEN"))).await.map(drop),
        session.access(client()).await.map(drop),
        session.pause().await,
    ];
    for refused in refused {
        let error = refused.unwrap_err();
        assert!(
            matches!(error, SessionError::SecretsUnknown { .. }),
            "{error}"
        );
    }
    let noted = records(&session).await;
    assert!(noted.iter().any(|record| record.kind == EntryKind::Note
        && record.payload["note"] == "taken up by a server that does not know its secrets"));
    session.close().await.unwrap();
    assert_eq!(place.leftovers(), [""; 0]);
}

#[tokio::test]
async fn secrets_that_nobody_needs_any_more_are_removed_el_9() {
    let place = Place::new();
    leave_a_session(&place).await;
    let of_nobody = place.path("secrets").join("of-nobody");
    fs::write(&of_nobody, "[]").unwrap();
    let sessions = place.serve().await;
    assert!(!of_nobody.exists());
    assert_eq!(kept(&place).len(), 1);
    only(&sessions).await.close().await.unwrap();
}

/// Looks at the bytes of the database, its journal and whatever else lies there.
fn assert_no_trace(place: &Place) {
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    // The heart of each form, without what depends on its neighbours.
    let base64 = [
        "czNjcjN0LyB2YWx1ZT09InF1b3RlZC",
        "czNjcjN0Lyt2YWx1ZT09InF1b3RlZC",
        "MzY3IzdC8rdmFsdWU9PSJxdW90ZW",
    ];
    let mut forms = vec!["s3cr3t".to_owned(), hex.to_uppercase(), hex];
    forms.extend(base64.map(str::to_owned));
    let mut looked_at = 0;
    for entry in fs::read_dir(place.path("")).unwrap().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("events.db") {
            continue;
        }
        let bytes = fs::read(entry.path()).unwrap();
        looked_at += bytes.len();
        for form in &forms {
            let found = bytes
                .windows(form.len())
                .any(|window| window == form.as_bytes());
            assert!(!found, "{form} is in {:?}", entry.path());
        }
    }
    assert!(looked_at > 0);
}
