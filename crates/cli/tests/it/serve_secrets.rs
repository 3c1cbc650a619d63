//! Secrets of a session stay hidden when its server was killed (EL-9).

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Result, ensure};
use serde_json::json;

use crate::{serve_clients::all_events, serving::Serving, support::Place};

const SECRET: &str = "hunter22-and-more";
const HIDDEN: &str = "<secret_hidden>";

#[test]
fn el_9_what_a_killed_server_had_to_hide_the_next_one_hides() -> Result<()> {
    let place = Place::new();
    let server = Serving::start(&place, &[])?;
    let line = server.line()?;
    let session = json!({ "id": "safe", "setup": "nothing", "secrets": { "TOKEN": SECRET } });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    let actions = "/v1/sessions/safe/actions";
    let tell = json!({ "action": "run", "args": { "command": "echo told: $TOKEN" } });
    let seen = line.ask("POST", actions, Some(&tell))?;
    ensure!(seen["content"] == format!("told: {HIDDEN}"), "{seen}");
    let kept = place.path("state").join("secrets/safe");
    let mode = fs::metadata(&kept)?.permissions().mode();
    ensure!(mode & 0o777 == 0o600, "{mode:o}");
    server.kill()?;

    let server = Serving::start(&place, &[])?;
    let seen = line.ask("POST", actions, Some(&tell))?;
    ensure!(seen["content"] == format!("told: {HIDDEN}"), "{seen}");
    let events = json!(all_events(&line, "safe")?).to_string();
    ensure!(
        events.contains(HIDDEN) && !events.contains(SECRET),
        "{events}"
    );
    let exported = place.output(&["log", "export", "safe"]).stdout;
    ensure!(
        exported.contains(HIDDEN) && !exported.contains(SECRET),
        "{exported}"
    );
    line.ask("DELETE", "/v1/sessions/safe", None)?;
    ensure!(!kept.exists(), "its secrets outlive the session");
    ensure!(server.stop()? == Some(0), "it did not end in order");
    for entry in fs::read_dir(place.path("state"))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("events.db") {
            let bytes = fs::read(entry.path())?;
            let found = bytes
                .windows(SECRET.len())
                .any(|window| window == SECRET.as_bytes());
            ensure!(!found, "it is in {:?}", entry.path());
        }
    }
    Ok(())
}
