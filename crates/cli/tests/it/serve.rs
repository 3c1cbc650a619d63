//! `zareba serve`, `zareba key` and `zareba log` as their users meet them.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    serving::Serving,
    support::{Place, Told},
};

fn run(command: &str) -> Value {
    json!({ "action": "run", "args": { "command": command } })
}

#[test]
fn a_session_is_made_used_and_remembered() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let made = line.ask("POST", "/v1/sessions", Some(&json!({ "id": "first" })))?;
    assert_eq!(
        (&made["id"], &made["state"]),
        (&json!("first"), &json!("ready"))
    );
    let seen = line.ask(
        "POST",
        "/v1/sessions/first/actions",
        Some(&run("echo hello")),
    )?;
    assert_eq!(seen["content"], "hello");
    let events = line.ask("GET", "/v1/sessions/first/events", None)?;
    let numbers: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());

    // While the server writes to it, the log can be looked at.
    let told = place.output(&["log", "verify", "first"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(told.stdout.contains("all in order"), "{}", told.stdout);
    let told = place.output(&["log", "export", "first"]);
    let recording = place.path("first.jsonl");
    fs::write(&recording, &told.stdout)?;
    let told = place.output(&["replay", recording.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{}{}", told.stdout, told.stderr);

    for command in ["verify", "export"] {
        let told = place.output(&["log", command, "frist"]);
        assert_eq!(
            (told.code, told.stdout.as_str()),
            (Some(123), ""),
            "{command}"
        );
        let expected = "there is no log of a session `frist` here";
        assert!(told.stderr.contains(expected), "{}", told.stderr);
    }

    line.ask("DELETE", "/v1/sessions/first", None)?;
    assert_eq!(server.stop()?, Some(0));
    assert!(!place.path("state").join("server.json").exists());
    Ok(())
}

#[test]
fn the_administrators_key_is_for_its_owner_only() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let file = place.path("state").join("admin.key");
    assert_eq!(fs::metadata(&file)?.permissions().mode() & 0o777, 0o600);
    let line = server.line()?;
    assert_eq!(line.send("GET", "/v1/sessions", "", None)?.status, 200);
    let stranger =
        line.with_key("zrb_0000000000000000_0000000000000000000000000000000000000000000");
    assert_eq!(stranger.send("GET", "/v1/sessions", "", None)?.status, 401);
    Ok(())
}

/// HS-2: a key that was cut off or that others can read is not used as it is.
#[test]
fn a_file_of_the_administrators_key_that_was_spoilt_is_refused_with_the_remedy() -> Result<()> {
    let place = Place::new();
    assert_eq!(Serving::start(&place, &[])?.stop()?, Some(0));
    let file = place.path("state").join("admin.key");
    let key = fs::read_to_string(&file)?;
    for (content, mode, expected, hint) in [
        ("", 0o600, "holds no whole key", "zareba key rm KEY"),
        (&key[..31], 0o600, "holds no whole key", "zareba key rm KEY"),
        (&key, 0o604, "can be used by other users", "chmod 600"),
        (&key, 0o660, "can be used by other users", "chmod 600"),
    ] {
        fs::write(&file, content)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
        let told = place.output(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(told.code, Some(122), "{}", told.stderr);
        assert!(told.stderr.contains(expected), "{}", told.stderr);
        assert!(told.stderr.contains(hint), "{}", told.stderr);
    }
    fs::write(&file, &key)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    let server = Serving::start(&place, &[])?;
    fs::write(&file, &key[..31])?;
    let told = place.output(&["key", "ls"]);
    assert_eq!(told.code, Some(125), "{}", told.stderr);
    assert!(
        told.stderr.contains("holds no whole key"),
        "{}",
        told.stderr
    );
    assert_eq!(server.stop()?, Some(0));
    Ok(())
}

#[test]
fn a_second_server_is_refused_and_says_why() -> Result<()> {
    let place = Place::new();
    let _server = Serving::start(&place, &[])?;
    let told = place.output(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    assert!(
        told.stderr.contains("in use by another server"),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.contains("zareba serve --stop"),
        "{}",
        told.stderr
    );
    Ok(())
}

#[test]
fn an_address_that_others_can_reach_needs_tls() {
    let place = Place::new();
    let told = place.output(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    assert!(told.stderr.contains("without TLS"), "{}", told.stderr);
}

#[test]
fn keys_are_made_listed_and_removed_with_and_without_a_server() -> Result<()> {
    let place = Place::new();
    let made = place.output(&["key", "create", "--owner", "alice"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let alice = made.stdout.trim_end().to_owned();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    assert_eq!(
        line.with_key(&alice)
            .send("GET", "/v1/sessions", "", None)?
            .status,
        200
    );
    assert_eq!(
        line.with_key(&alice)
            .send("GET", "/v1/keys", "", None)?
            .status,
        403
    );

    let made = place.output(&["key", "create", "--owner", "bob", "--scope", "read"]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let bob = made.stdout.trim_end().to_owned();
    assert_eq!(
        line.with_key(&bob)
            .send("GET", "/v1/sessions", "", None)?
            .status,
        200
    );
    let refused = line
        .with_key(&bob)
        .send("POST", "/v1/sessions", "", Some(&json!({})))?;
    assert_eq!(refused.status, 403);

    let listed = place.output(&["key", "ls", "-o", "json"]);
    let of_bob = listed
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .find(|key| key["owner"] == "bob")
        .context("bob's key is not listed")?;
    ensure!(!listed.stdout.contains(&bob), "a secret is listed");
    let removed = place.output(&["key", "rm", of_bob["id"].as_str().unwrap()]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    assert_eq!(
        line.with_key(&bob)
            .send("GET", "/v1/sessions", "", None)?
            .status,
        401
    );
    Ok(())
}

#[test]
fn a_server_goes_on_in_the_background_until_it_is_stopped() -> Result<()> {
    let place = Place::new();
    let socket = format!("unix:{}", place.path("socket").display());
    let started = place.output(&["serve", "--listen", &socket, "--detach"]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    assert!(
        started.stderr.contains("listening on unix:"),
        "{}",
        started.stderr
    );
    let stopped = place.output(&["serve", "--stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    let again = place.output(&["serve", "--stop"]);
    assert_eq!(again.code, Some(123), "{}", again.stderr);
    assert!(again.stderr.contains("no server runs"), "{}", again.stderr);
    Ok(())
}

#[test]
fn a_server_in_the_background_says_why_it_did_not_start() -> Result<()> {
    let place = Place::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = taken.local_addr()?.to_string();
    let told = place.output(&["serve", "--listen", &address, "--detach"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    let log = place.path("state/server.log");
    let expected = format!(
        "error: the server did not start\n  caused by: cannot start the server\n  \
         caused by: cannot listen on `http://{address}`\n  \
         caused by: Address already in use (os error 98)\n  \
         hint: `--listen ADDRESS:PORT` names another address; `zareba serve --stop` ends a server \
         of yours in the background\n  hint: all that it said is in {}\n",
        log.display()
    );
    assert_eq!(told.stderr, expected);
    // A caller that waits for the ready word reads the reason at the end of that wait.
    let words = ["serve", "--listen", &address, "--ready-fd", "1"];
    let mut child = place
        .zareba(&words)
        .stdout(std::process::Stdio::piped())
        .stderr(std::fs::File::create(place.path("said"))?)
        .spawn()?;
    let mut word = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut word)?;
    let said = std::fs::read_to_string(place.path("said"))?;
    assert!(
        word.is_empty() && said.contains("Address already in use"),
        "{word}{said}"
    );
    assert_eq!(child.wait()?.code(), Some(122));
    Ok(())
}

#[test]
fn a_server_ends_with_whoever_holds_its_lifeline() -> Result<()> {
    let place = Place::new();
    let socket = format!("unix:{}", place.path("socket").display());
    let mut child = place
        .zareba(&["serve", "--listen", &socket, "--lifeline-fd", "0"])
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    drop(child.stdin.take());
    assert_eq!(child.wait()?.code(), Some(0));
    Ok(())
}

#[test]
fn commands_work_on_a_server_as_they_do_here() -> Result<()> {
    let place = Place::new();
    let _server = Serving::start(&place, &[])?;
    let url = format!("unix:{}", place.path("socket").display());
    let on_server = |arguments: &[&str]| {
        let told = place.output(&[&["--server", &url], arguments].concat());
        assert_eq!(told.code, Some(0), "{arguments:?}: {}", told.stderr);
        told.stdout
    };
    assert_eq!(on_server(&["run", "--", "echo", "hello"]), "hello\n");
    assert_eq!(on_server(&["create", "--name", "lasting"]), "lasting\n");
    assert!(on_server(&["ps"]).contains("lasting"));
    fs::write(place.path("workspace").join("note"), "from here")?;
    on_server(&["cp", "note", "lasting:/workspace"]);
    let update = ["update", "lasting", "--ends-in", "2h", "--label", "task=17"];
    assert_eq!(on_server(&update), "lasting\n");
    let told = place.output(&["update", "lasting", "--ends-in", "2h"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(told.stderr.contains("use `--server`"), "{}", told.stderr);
    on_server(&["pause", "lasting"]);
    on_server(&["resume", "lasting"]);
    assert_eq!(
        on_server(&["exec", "lasting", "--", "cat", "/workspace/note"]),
        "from here"
    );
    let inspected = on_server(&["inspect", "lasting"]);
    for row in [
        "  its runtime       native\n",
        "  labels            task=17\n",
        "  workspace         /workspace",
        "  network           none\n",
    ] {
        assert!(inspected.contains(row), "{row}: {inspected}");
    }
    let listed = on_server(&["ps"]);
    let row = listed
        .lines()
        .find(|row| row.starts_with("lasting"))
        .unwrap();
    assert!(row.contains("  none  "), "{row}");
    assert!(row.contains("  /workspace"), "{row}");
    on_server(&["stop", "lasting"]);

    let told = place.output(&["--server", &url, "gc"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(
        told.stderr.contains("works on this machine"),
        "{}",
        told.stderr
    );
    let told = place.output(&["--server", "http://127.0.0.1:1", "ps"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(told.stderr.contains("ZAREBA_API_KEY"), "{}", told.stderr);
    Ok(())
}

/// What a flag asks of a server holds there, whatever the server gives by itself.
#[test]
fn what_flags_ask_of_a_server_holds_there_and_is_shown() -> Result<()> {
    let place = Place::new();
    let flags = [
        "--set",
        "native.network=host",
        "--set",
        "sessions.runtimes=[\"local\"]",
    ];
    let server = Serving::start(&place, &flags)?;
    let url = format!("unix:{}", place.path("socket").display());
    let on_server = |arguments: &[&str]| place.output(&[&["--server", &url], arguments].concat());
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    let reach = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
    let reach = ["--", "bash", "-c", &reach];
    let told = on_server(&[&["run"], &reach[..]].concat());
    assert_eq!(told.stdout, "reached\n", "{}", told.stderr);
    let told = on_server(&[&["run", "--network", "none"], &reach[..]].concat());
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(1), ""),
        "{}",
        told.stderr
    );

    let made = "create --name small --runtime native --network none --life-max 1h --when-idle close \
                --label task=17";
    let told = on_server(&made.split_whitespace().collect::<Vec<_>>());
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let session = server.line()?.ask("GET", "/v1/sessions/small", None)?;
    assert_eq!(session["runtime"], "native");
    assert_eq!(session["network"]["mode"], "none");
    assert_eq!(session["limits"]["life_max"], 3600.0);
    assert_eq!(session["limits"]["when_idle"], "close");
    assert_eq!(session["labels"], json!({ "task": "17" }));
    let told = on_server(&["inspect", "small"]);
    let network = "    network         a loopback of its own, and nothing else";
    assert!(
        told.stdout.lines().any(|line| line == network),
        "{}",
        told.stdout
    );
    assert_eq!(on_server(&["stop", "small"]).code, Some(0));

    // What cannot hold is refused, or told of with `--best-effort`.
    let loose = "create --name loose --runtime local --memory 64M";
    let loose: Vec<&str> = loose.split_whitespace().collect();
    let told = on_server(&loose);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    assert!(told.stderr.contains("memory"), "{}", told.stderr);
    let told = on_server(&[&loose[..], &["--best-effort"]].concat());
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let told = on_server(&["inspect", "loose"]);
    assert!(
        told.stdout.contains("  not held          memory\n"),
        "{}",
        told.stdout
    );
    assert_eq!(on_server(&["stop", "loose"]).code, Some(0));
    Ok(())
}

/// Only where control groups can be made: an ordinary user may have none.
#[test]
#[ignore = "needs root"]
fn the_memory_that_a_flag_asks_of_a_server_holds_there() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let url = format!("unix:{}", place.path("socket").display());
    let on_server = |arguments: &[&str]| place.output(&[&["--server", &url], arguments].concat());
    let told = on_server(&["create", "--name", "small", "--memory", "64M"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let session = server.line()?.ask("GET", "/v1/sessions/small", None)?;
    assert_eq!(session["resources"]["memory"], 64 << 20);
    let told = on_server(&["inspect", "-o", "json", "small"]);
    let document: Value = serde_json::from_str(&told.stdout)?;
    let told = document["enforcement"].to_string();
    assert!(told.contains(&(64 << 20).to_string()), "{told}");
    let hog = [
        "exec",
        "small",
        "--",
        "python3",
        "-c",
        "len(bytearray(200 << 20))",
    ];
    assert_eq!(on_server(&hog).code, Some(137));
    assert_eq!(on_server(&["stop", "small"]).code, Some(0));
    Ok(())
}

/// A client of OpenHands names an image in every request.
#[test]
fn an_image_that_is_not_there_is_refused_to_openhands_clients_unless_the_operator_says_otherwise()
-> Result<()> {
    let start = json!({ "session_id": "theirs", "image": "nobody/has:this" });
    let exists = "/image_exists?image=nobody/has:this";
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    assert_eq!(line.ask("GET", exists, None)?["exists"], false);
    let refused = line.send("POST", "/start", "", Some(&start))?;
    assert_eq!(refused.status, 404, "{}", refused.text());
    assert!(
        refused.text().contains("nobody/has:this"),
        "{}",
        refused.text()
    );
    assert_eq!(server.stop()?, Some(0));

    let flags = ["--set", "server.openhands_unknown_image=this-machine"];
    let server = Serving::start(&place, &flags)?;
    let line = server.line()?;
    assert_eq!(line.ask("GET", exists, None)?["exists"], true);
    assert_eq!(
        line.ask("POST", "/start", Some(&start))?["status"],
        "running"
    );
    Ok(())
}

#[test]
fn logs_of_a_session_are_the_outputs_of_its_actions() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    line.ask("POST", "/v1/sessions", Some(&json!({ "id": "worked" })))?;
    let url = format!("unix:{}", place.path("socket").display());
    let logs = |more: &[&str]| {
        let told = place.output(&[&["--server", &url, "logs", "worked"], more].concat());
        assert_eq!(told.code, Some(0), "{more:?}: {}", told.stderr);
        told
    };
    let told = logs(&[]);
    assert_eq!(told.stdout, "");
    assert!(
        told.stderr.contains("no action has run in `worked`"),
        "{}",
        told.stderr
    );
    let target = "/v1/sessions/worked/actions";
    for command in [
        "echo one; echo two",
        "seq 1 30000",
        "exit_code() { return 3; }; exit_code",
    ] {
        let action = json!({ "action": "run", "args": { "command": command } });
        line.ask("POST", target, Some(&action))?;
    }
    let missing = json!({ "action": "read", "args": { "path": "/none" } });
    line.ask("POST", target, Some(&missing))?;
    let all = logs(&[]).stdout;
    assert!(
        all.starts_with("$ echo one; echo two\none\ntwo\n$ seq 1 30000\n"),
        "{all:.80}"
    );
    assert!(all.contains("\n$ exit_code() { return 3; }; exit_code\n[exit code 3]\n"));
    assert!(all.contains("\n# read /none\nFile not found: /none"));
    assert_eq!(logs(&["--tail", "2"]).stdout.lines().count(), 2);
    let rows: Vec<Value> = logs(&["-o", "json"])
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    assert_eq!(rows.len(), 4);
    assert_eq!(
        (&rows[0]["kind"], &rows[0]["output"], &rows[2]["exit_code"]),
        (&json!("run"), &json!("one\ntwo"), &json!(3))
    );
    // One that is closed can still be read, and is followed to its end.
    let told = place.output(&["--server", &url, "stop", "worked"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert_eq!(logs(&["--follow"]).stdout, all);
    let told = place.output(&["--server", &url, "logs", "--executor", "worked"]);
    assert_eq!(told.code, Some(120), "{}", told.stderr);
    Ok(())
}

#[test]
fn an_action_that_is_none_and_a_body_that_is_none_are_told_in_plain_words() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    line.ask("POST", "/v1/sessions", Some(&json!({ "id": "plain" })))?;
    let message = |body: &Value| -> Result<String> {
        let answer = line.send("POST", "/v1/sessions/plain/actions", "", Some(body))?;
        let message = answer.json()?["error"]["message"]
            .as_str()
            .map(str::to_owned);
        message.context("no message")
    };
    let unknown = message(&json!({ "action": "dance" }))?;
    assert!(
        unknown.starts_with("there is no action `dance`; there are `run`, "),
        "{unknown}"
    );
    let lacking = message(&json!({ "action": "run" }))?;
    assert_eq!(lacking, "the action `run` needs `command` in `args`");
    Ok(())
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_look_at() {
    let place = Place::new();
    let asked = |url: &str| {
        let mut command = place.zareba(&["--server", url, "ps"]);
        command.env("ZAREBA_API_KEY", "key");
        Told::from(command.output().unwrap())
    };
    let told = asked("http://127.0.0.1:1");
    insta::assert_snapshot!(told.stderr, @r"
    error: cannot ask the server for its sandboxes
      caused by: the server at `http://127.0.0.1:1/` cannot be reached
      caused by: Connection refused (os error 111)
      hint: is `zareba serve` running there, and is this its address?
    ");
    // One that speaks without TLS, to a client that wants it.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        // The client asks more than once.
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut some = [0; 5];
            std::io::Read::read_exact(&mut client, &mut some).unwrap();
            let answer = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
            std::io::Write::write_all(&mut client, answer).unwrap();
        }
    });
    let told = asked(&url);
    assert!(
        told.stderr
            .contains("it answers without TLS; use its address with `http://`"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_session_gets_a_sandbox_that_was_started_ahead_and_keeps_it_over_a_kill() -> Result<()> {
    let place = Place::new();
    let flags = ["--set", "pool.native.size=1"];
    let server = Serving::start(&place, &flags)?;
    let line = server.line()?;
    let pool = |line: &crate::serving::Line| -> Result<Value> {
        Ok(line.ask("GET", "/v1/status", None)?["pools"]["native"].clone())
    };
    let deadline = std::time::Instant::now() + crate::support::PATIENCE;
    while pool(&line)?["ready"] != 1 {
        ensure!(std::time::Instant::now() < deadline, "{}", pool(&line)?);
    }
    let made = line.ask("POST", "/v1/sessions", Some(&json!({})))?;
    assert_eq!(pool(&line)?["hits"], 1);
    let id = made["id"].as_str().context("no name")?;
    let actions = format!("/v1/sessions/{id}/actions");
    line.ask("POST", &actions, Some(&run("echo here > note")))?;
    server.kill()?;

    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let seen = line.ask("POST", &actions, Some(&run("cat note")))?;
    assert_eq!(seen["content"], "here", "{seen}");
    // The one that waited has ended with the server that had started it.
    let kept = place.output(&["ps", "--quiet"]);
    assert_eq!(kept.stdout.trim(), id, "{}", kept.stderr);
    Ok(())
}
