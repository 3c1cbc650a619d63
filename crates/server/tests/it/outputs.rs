//! Reading what an action writes, as server-sent events.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::TcpStream,
};

use crate::{
    fixture::{Site, run},
    http::Request,
};

/// An event: its `id`, its kind and its data.
type Event = (u64, String, Value);

struct Reader(BufReader<TcpStream>);

impl Reader {
    async fn open(site: &Site, path: &str) -> Self {
        let request = Request::get(path).key(&site.admin);
        let (head, lines) = request.open(site.address).await;
        assert_eq!(head.status, 200, "{head:?}");
        Self(lines)
    }

    async fn next(&mut self) -> Option<Event> {
        let (mut id, mut kind) = (0, String::new());
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).await.unwrap() == 0 {
                return None;
            }
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.trim().parse().unwrap();
            } else if let Some(word) = line.strip_prefix("event: ") {
                kind = word.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((id, kind, serde_json::from_str(data).unwrap()));
            }
        }
    }

    /// The text of all that is left, and the last event.
    async fn rest(mut self) -> (String, Event) {
        let mut text = String::new();
        loop {
            let event = self.next().await.unwrap();
            match event.1.as_str() {
                "output" => text.push_str(event.2["text"].as_str().unwrap()),
                _ => return (text, event),
            }
        }
    }
}

async fn begin(site: &Site, session: &str, command: &str) -> String {
    let actions = format!("/v1/sessions/{session}/actions");
    let accepted = site
        .post(format!("{actions}?wait=false"), run(command))
        .await;
    let number = accepted.expect(202)["action"].clone();
    format!("{actions}/{number}/output")
}

#[tokio::test]
async fn pieces_come_while_the_command_runs_and_join_to_what_it_wrote() {
    let site = Site::start().await;
    let session = site.session().await;
    site.post(
        format!("/v1/sessions/{session}/actions"),
        run("mkfifo go; exec 3<>go"),
    )
    .await
    .expect(200);
    let command = "printf 'a  \\n\\n\\n20%%\\r'; read -u 3; printf '40%%\\r\\n  b\\n\\n'";
    let path = begin(&site, &session, command).await;
    let mut reader = Reader::open(&site, &path).await;
    let mut text = String::new();
    while !text.contains("20%") {
        let (_, kind, data) = reader.next().await.unwrap();
        assert_eq!(kind, "output");
        text.push_str(data["text"].as_str().unwrap());
    }
    let go = json!({ "action": "run", "args": { "command": "echo > go" }, "shell": "other" });
    site.post(format!("/v1/sessions/{session}/actions"), go)
        .await
        .expect(200);
    let (rest, end) = reader.rest().await;
    let whole = "a  \n\n\n20%\r40%\r\n  b\n\n";
    assert_eq!(text + &rest, whole);
    let length = whole.len() as u64;
    let said = json!({ "whole": true, "skipped": 0 });
    assert_eq!(end, (length, "end".to_owned(), said.clone()));

    // Afterwards too, and from where somebody was.
    let (again, end) = Reader::open(&site, &format!("{path}?from=4"))
        .await
        .rest()
        .await;
    assert_eq!(again, whole[4..]);
    assert_eq!(end, (length, "end".to_owned(), said));

    // No look is an action: there are the three that were asked for.
    let events = site.get(format!("/v1/sessions/{session}/events")).await;
    let events = events.expect(200)["events"].clone();
    let is_asked =
        |event: &&Value| event["kind"] == "action" && event["payload"]["source"] != "environment";
    let commands: Vec<&Value> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(is_asked)
        .map(|event| &event["payload"]["args"]["command"])
        .filter(|command| !command.as_str().is_some_and(|text| text.contains("PYTHON")))
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    site.stop().await;
}

#[tokio::test]
async fn output_is_without_secrets_also_when_they_come_in_pieces() {
    let site = Site::start().await;
    let new = json!({ "id": "s", "secrets": { "TOKEN": "hunter2-hunter2" } });
    site.post("/v1/sessions", new).await.expect(201);
    let path = begin(
        &site,
        "s",
        "printf hunter2-; sleep 0.3; echo hunter2 ${TOKEN}",
    )
    .await;
    let (text, _) = Reader::open(&site, &path).await.rest().await;
    assert_eq!(text, "<secret_hidden> <secret_hidden>\n");
    site.stop().await;
}

#[tokio::test]
async fn an_action_without_output_ends_at_once_and_one_that_is_none_is_not_found() {
    let site = Site::start().await;
    let session = site.session().await;
    let path = begin(&site, &session, "true").await;
    let (text, (_, kind, said)) = Reader::open(&site, &path).await.rest().await;
    assert_eq!((text.as_str(), kind.as_str()), ("", "end"));
    assert_eq!(said, json!({ "whole": true, "skipped": 0 }));
    let missing = site
        .get(format!("/v1/sessions/{session}/actions/999/output"))
        .await;
    assert_eq!(missing.error(404), "not_found");
    site.stop().await;
}
