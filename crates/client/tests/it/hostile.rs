//! Servers that misbehave.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use zareba_client::{Address, ApiKey, Client, ClientError, PageQuery};
use zareba_protocol::{Action, ErrorClass, RunCommand, SessionId};

/// Answers each connection with one text, the last one again and again, and counts them.
async fn server(answers: Vec<String>) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let number = counted.fetch_add(1, Ordering::Relaxed);
            let answer = answers[number.min(answers.len() - 1)].clone();
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).await;
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    let key = ApiKey::new("swordfish").unwrap();
    let client = Client::new(Address::parse(&address).unwrap(), key).unwrap();
    (client, count)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}connection: close\r\n\r\n{body}"
    )
}

fn session() -> SessionId {
    SessionId::new("s").unwrap()
}

/// RH-1: the key must not travel elsewhere.
#[tokio::test]
async fn redirects_are_not_followed_rh_1() {
    let elsewhere = answer("302 Found", "location: http://127.0.0.1:1/\r\n", "");
    let (client, count) = server(vec![elsewhere]).await;
    let error = client.status().await.unwrap_err();
    assert!(
        matches!(error, ClientError::Refused { status: 302, .. }),
        "{error}"
    );
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

/// RH-1: answers are capped, also when their length is not announced.
#[tokio::test]
async fn an_endless_answer_is_given_up_rh_1() {
    let mut endless = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n\"".to_owned();
    endless.push_str(&"x".repeat(20 * 1024 * 1024));
    let (client, _) = server(vec![endless]).await;
    let error = client.status().await.unwrap_err();
    assert!(matches!(error, ClientError::Nonsense { .. }), "{error}");
}

#[tokio::test]
async fn what_only_looks_is_asked_again_until_it_is_answered() {
    let busy = answer("503 Service Unavailable", "", "");
    let fine = answer("200 OK", "", r#"{"sessions":[]}"#);
    // The second connection breaks without a word.
    let (client, count) = server(vec![busy, String::new(), fine]).await;
    let page = client.sessions(&PageQuery::default()).await.unwrap();
    assert_eq!((page.sessions.len(), count.load(Ordering::Relaxed)), (0, 3));
}

/// RH-2: an action is asked for again under the same name after a broken connection.
#[tokio::test]
async fn an_action_whose_answer_is_lost_is_asked_for_again_rh_2() {
    let observation = r#"{"observation":"error","content":"told","extras":{"error_id":""}}"#;
    let (client, count) = server(vec![String::new(), answer("200 OK", "", observation)]).await;
    let action = Action::Run(RunCommand::new("true"));
    let told = client.run(&session(), action.into()).await.unwrap();
    assert_eq!(told.observation.content, "told");
    assert_eq!(count.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_might_have_happened_and_has_no_name_is_not_repeated() {
    let (client, count) = server(vec![String::new()]).await;
    let error = client
        .create_session_key(&session(), &zareba_client::CreateSessionKey::default())
        .await
        .unwrap_err();
    assert!(error.may_have_happened());
    assert_eq!(error.class(), ErrorClass::Disconnected);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
