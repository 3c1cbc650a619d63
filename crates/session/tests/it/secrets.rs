//! Secrets are in the shells and nowhere else.

use std::fs;

use zareba_session::{HIDDEN, NewSession, Secret, event_json};

use crate::fixture::{Place, keyed, observe, on, output, owner, request, run, text};

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
