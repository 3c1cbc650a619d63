//! What was accepted stays accepted, for those who have accepted it and for nobody else.

use std::fs;

use super::*;

fn tool(description: &str, schema: Value) -> Tool {
    let schema = schema.as_object().cloned().unwrap_or_default();
    Tool::new("t", description.to_owned(), schema)
}

fn server(name: &str, command: &str) -> ServerSpec {
    ServerSpec::program(name, command, Vec::new(), Vec::new()).unwrap()
}

/// How the tool `t` of a server compares.
async fn seen(pins: &Pins, server: &ServerSpec, hash: &str) -> Pinned {
    let definitions = [("t".to_owned(), hash.to_owned())];
    pins.compare(server, &definitions).await.unwrap().remove(0)
}

#[test]
fn a_definition_is_known_by_all_that_is_told_of_it() {
    let one = tool(
        "a",
        json!({"type": "object", "properties": {"x": {"type": "string"}}}),
    );
    let same = tool(
        "a",
        json!({"properties": {"x": {"type": "string"}}, "type": "object"}),
    );
    let other = tool(
        "a",
        json!({"type": "object", "properties": {"x": {"type": "number"}}}),
    );
    assert_eq!(hash(&one), hash(&same));
    assert_ne!(hash(&one), hash(&other));
    assert_ne!(hash(&one), hash(&tool("b", json!({"type": "object"}))));
}

#[tokio::test]
async fn what_has_changed_stays_out_until_it_is_approved_also_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state/pins");
    let server = server("s", "uvx");
    let pins = Pins::in_directory(&path).unwrap();
    assert_eq!(seen(&pins, &server, "one").await, Pinned::Accepted);
    assert_eq!(seen(&pins, &server, "two").await, Pinned::Changed);
    let pins = Pins::in_directory(&path).unwrap();
    assert_eq!(seen(&pins, &server, "two").await, Pinned::Changed);
    assert_eq!(seen(&pins, &server, "one").await, Pinned::Accepted);
    pins.approve("s").unwrap();
    assert_eq!(seen(&pins, &server, "two").await, Pinned::Accepted);
    let pins = Pins::in_directory(&path).unwrap();
    assert_eq!(seen(&pins, &server, "one").await, Pinned::Changed);
}

#[tokio::test]
async fn nobody_accepts_for_another_tenant_or_another_server_of_the_name() {
    let directory = tempfile::tempdir().unwrap();
    let pins = Pins::in_directory(&directory.path().join("pins")).unwrap();
    let (one, other) = (pins.of_tenant("one"), pins.of_tenant("other"));
    let (uvx, npx) = (server("s", "uvx"), server("s", "npx"));
    assert_eq!(seen(&one, &uvx, "poisoned").await, Pinned::Accepted);
    // What one tenant's sandbox shows neither counts for others nor keeps theirs out.
    assert_eq!(seen(&other, &uvx, "fine").await, Pinned::Accepted);
    assert_eq!(seen(&other, &uvx, "poisoned").await, Pinned::Changed);
    // The same name for another program is another server.
    assert_eq!(seen(&one, &npx, "fine").await, Pinned::Accepted);
    assert_eq!(seen(&one, &uvx, "fine").await, Pinned::Changed);
    let http = ServerSpec::http("http://s/", None).unwrap();
    assert_eq!(seen(&one, &http, "fine").await, Pinned::Accepted);
    // An operator approves for everybody.
    pins.approve("s").unwrap();
    assert_eq!(seen(&one, &uvx, "fine").await, Pinned::Accepted);
    assert_eq!(seen(&other, &uvx, "new").await, Pinned::Accepted);
}

#[tokio::test]
async fn what_another_process_approves_is_seen_with_the_next_use() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins");
    let server = server("s", "uvx");
    let running = Pins::in_directory(&path).unwrap();
    assert_eq!(seen(&running, &server, "one").await, Pinned::Accepted);
    assert_eq!(seen(&running, &server, "two").await, Pinned::Changed);
    let before = running.generation().unwrap();
    Pins::in_directory(&path).unwrap().approve("s").unwrap();
    assert_ne!(running.generation().unwrap(), before);
    assert_eq!(seen(&running, &server, "two").await, Pinned::Accepted);
    // Also what is taken away altogether.
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(seen(&running, &server, "three").await, Pinned::Accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_write_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins");
    // Each with a view of the file of its own, as processes have.
    let writers = (0..16).map(|number| {
        let pins = Pins::in_directory(&path).unwrap();
        tokio::spawn(async move {
            for round in 0..4 {
                let server = server(&format!("s{number}"), &format!("c{round}"));
                assert_eq!(seen(&pins, &server, "one").await, Pinned::Accepted);
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let pins = Pins::in_directory(&path).unwrap();
    for number in 0..16 {
        for round in 0..4 {
            let server = server(&format!("s{number}"), &format!("c{round}"));
            assert_eq!(seen(&pins, &server, "two").await, Pinned::Changed);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_remembered_is_not_accepted() {
    let pins = Pins::in_memory();
    let made_up = |number: usize| (format!("t{number}"), "one".to_owned());
    let definitions: Vec<_> = (0..=SERVER_PINS_MAX).map(made_up).collect();
    let compared = async |pins: &Pins, name: &str| {
        let server = server(name, "uvx");
        pins.compare(&server, &definitions).await.unwrap()
    };
    let verdicts = compared(&pins, "s").await;
    assert_eq!(verdicts[SERVER_PINS_MAX - 1], Pinned::Accepted);
    assert_eq!(verdicts[SERVER_PINS_MAX], Pinned::NoRoom);
    assert_eq!(compared(&pins, "other").await[0], Pinned::Accepted);
    // However many servers it has, a tenant leaves room for others.
    for number in 0..TENANT_PINS_MAX / SERVER_PINS_MAX {
        compared(&pins, &format!("s{number}")).await;
    }
    assert_eq!(compared(&pins, "last").await[0], Pinned::NoRoom);
    let another = pins.of_tenant("another");
    assert_eq!(compared(&another, "last").await[0], Pinned::Accepted);
}

#[tokio::test]
async fn each_tenant_fills_its_own_file_whatever_tools_are_called() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pins");
    let pins = Pins::in_directory(&path).unwrap().of_tenant("../greedy");
    // Names that take six times their length when they are written down.
    let name = |number: usize| format!("{number}{}", "\u{1}".repeat(100));
    let definitions = (0..SERVER_PINS_MAX).map(|number| (name(number), "h".repeat(64)));
    let definitions: Vec<_> = definitions.collect();
    let mut last = Vec::new();
    for number in 0..=TENANT_PINS_MAX / SERVER_PINS_MAX {
        let server = server(&format!("s{number}"), "uvx");
        last = pins.compare(&server, &definitions).await.unwrap();
    }
    assert_eq!(last.first(), Some(&Pinned::Accepted));
    assert_eq!(last.last(), Some(&Pinned::NoRoom));
    let files = fs::read_dir(&path).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let sizes: Vec<u64> = sizes.collect();
    assert!(sizes.iter().sum::<u64>() < 1024 * 1024, "{sizes:?}");
    let other = Pins::in_directory(&path).unwrap().of_tenant("other");
    let uvx = server("s", "uvx");
    assert_eq!(seen(&other, &uvx, "one").await, Pinned::Accepted);
    assert_eq!(seen(&other, &uvx, "two").await, Pinned::Changed);
    // An operator forgets it for both, without knowing them.
    let operator = Pins::in_directory(&path).unwrap();
    operator.approve("s").unwrap();
    operator.approve("s0").unwrap();
    assert_eq!(seen(&other, &uvx, "two").await, Pinned::Accepted);
    assert_eq!(seen(&pins, &uvx, "one").await, Pinned::Accepted);
}

#[tokio::test]
async fn what_is_only_checked_is_not_accepted() {
    let pins = Pins::in_memory();
    let server = server("s", "uvx");
    let checked = |hash: &str| pins.check(&server, "t", hash).unwrap();
    assert_eq!(checked("old"), None);
    assert_eq!(checked("other"), None);
    assert_eq!(seen(&pins, &server, "one").await, Pinned::Accepted);
    assert_eq!(checked("one"), Some(Pinned::Accepted));
    assert_eq!(checked("other"), Some(Pinned::Changed));
}

#[tokio::test]
async fn nobody_waits_without_end_for_a_file_that_others_keep_locked() {
    let directory = tempfile::tempdir().unwrap();
    let server = server("s", "uvx");
    let pins = Pins::in_directory(directory.path()).unwrap();
    assert_eq!(seen(&pins, &server, "one").await, Pinned::Accepted);
    let name = format!("{}.json.lock", tenant_hash(""));
    let lock = fs::File::open(directory.path().join(&name)).unwrap();
    lock.lock().unwrap();
    // What is known needs no lock.
    assert_eq!(seen(&pins, &server, "two").await, Pinned::Changed);
    let new = [("new".to_owned(), "one".to_owned())];
    let late = pins.compare(&server, &new).await.unwrap_err();
    let told = std::error::Error::source(&late).unwrap().to_string();
    assert!(told.contains(&name), "{told}");
    drop(lock);
    let verdicts = pins.compare(&server, &new).await.unwrap();
    assert_eq!(verdicts, [Pinned::Accepted]);
}

#[test]
fn a_file_of_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let name = format!("{}.json", tenant_hash(""));
    fs::write(directory.path().join(name), "[1]").unwrap();
    let error = Pins::in_directory(directory.path()).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
}
