//! `zareba inspect`: what stands around a sandbox, and what it uses.

mod container;

use std::{fmt::Write as _, time::SystemTime};

use serde_json::{Value, json};
use zareba_runtime::{RuntimeError, SandboxState, SandboxSummary};

use super::ps;
use crate::{
    arguments::{InspectArguments, OutputFormat},
    commands::Context,
    enforcement,
    exit::Exit,
    failure::Failure,
    sandbox::{self, Fleet, Member},
    say,
    table::{age, size},
};

/// Hosts that are told in words; JSON has them all.
const HOSTS_TOLD_MAX: usize = 8;

/// Paths of the home that are told in words.
const HOME_TOOLS_TOLD_MAX: usize = 12;

/// Tells of each of them.
pub(crate) fn perform(context: &Context, arguments: &InspectArguments) -> Result<Exit, Failure> {
    Fleet::visit(context, async |fleet| {
        let mut exit = Exit::Success;
        for id in &arguments.ids {
            match inspect(fleet, id).await {
                Ok(Inspected {
                    summary,
                    about,
                    document,
                }) => {
                    let text = match context.globals.output {
                        OutputFormat::Json => format!("{:#}\n", whole(&summary, about, &document)),
                        OutputFormat::Text => in_words(&summary, about.as_ref(), &document),
                    };
                    say::data(text.as_bytes())?;
                }
                Err(failure) => {
                    say::failure(&failure);
                    if exit == Exit::Success {
                        exit = failure.exit();
                    }
                }
            }
        }
        Ok(exit)
    })
}

/// What is known of one sandbox.
struct Inspected {
    summary: SandboxSummary,
    /// What it was made with.
    about: Option<Value>,
    /// What the runtime says.
    document: Value,
}

async fn inspect(fleet: &Fleet, id: &str) -> Result<Inspected, Failure> {
    let member = fleet.find(id).await?;
    let document = document(&member).await?;
    Ok(Inspected {
        about: member.about(),
        document,
        summary: member.summary,
    })
}

/// What is known beside the summary: nothing of one that has ended, and of one without walls only what was
/// asked for and does not hold.
async fn document(member: &Member<'_>) -> Result<Value, Failure> {
    if member.summary.state == SandboxState::Lost {
        return match member.engine() {
            Some(docker) => container::ended(docker, &member.summary.id).await,
            None => Ok(Value::Null),
        };
    }
    let sandbox = member.attach().await?;
    let inspected = match sandbox.inspect().await {
        Err(RuntimeError::Unsupported { .. }) => json!({}),
        inspected => inspected.map_err(|error| sandbox::failure(&error))?,
    };
    let not_held: Vec<&str> = sandbox.not_held().iter().map(|it| it.as_str()).collect();
    Ok(with_not_held(inspected, &not_held))
}

fn with_not_held(mut document: Value, not_held: &[&str]) -> Value {
    if let Value::Object(document) = &mut document
        && !not_held.is_empty()
    {
        document.insert("not_held".to_owned(), json!(not_held));
    }
    document
}

/// What was asked for and does not hold.
fn not_held(document: &Value) -> Option<String> {
    let fields = document.get("not_held")?.as_array()?;
    let fields: Vec<&str> = fields.iter().filter_map(Value::as_str).collect();
    (!fields.is_empty()).then(|| fields.join(", "))
}

fn whole(summary: &SandboxSummary, about: Option<Value>, document: &Value) -> Value {
    let mut all = ps::as_json(summary, about);
    if let (Value::Object(all), Value::Object(more)) = (&mut all, document) {
        all.extend(more.clone());
    }
    all
}

fn in_words(summary: &SandboxSummary, about: Option<&Value>, document: &Value) -> String {
    let lived = SystemTime::now().duration_since(summary.created);
    let mut text = format!("{}\n", summary.id);
    let mut row = |name: &str, what: &str| {
        // Writing to a string cannot fail.
        let line = format!("  {name:<18}{}", say::printable_line(what));
        let _ = writeln!(text, "{}", line.trim_end());
    };
    row("runtime", summary.runtime);
    row("state", ps::state(summary.state));
    let image = summary.image.as_deref();
    row("image", image.unwrap_or("the system of this machine"));
    row(
        "created",
        &format!("{} ago", age(lived.unwrap_or_default())),
    );
    for (name, what) in about.into_iter().flat_map(made_with) {
        row(name, &what);
    }
    if let Some(fields) = not_held(document) {
        row("not held", &fields);
    }
    if let Some((name, what)) = decisions(document) {
        row(name, &what);
    }
    if let Some(what) = home_tools(document) {
        row("home tools", &what);
    }
    for (name, what) in usage(document) {
        row(name, &what);
    }
    for (name, what) in container::rows(document) {
        row(name, &what);
    }
    let Some(report) = document.get("enforcement") else {
        return text;
    };
    row("walls", "");
    for layer in enforcement::layers(report) {
        row(&format!("  {}", layer.name), &layer.what);
        for missing in layer.missing {
            row("", &format!("missing: {missing}"));
        }
    }
    text
}

/// What it was made with.
fn made_with(about: &Value) -> Vec<(&'static str, String)> {
    let text = |path: &str| about.pointer(path).and_then(Value::as_str);
    let list = |path: &str| {
        let texts = about.pointer(path).and_then(Value::as_array);
        let texts: Vec<&str> = texts
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        (!texts.is_empty()).then(|| texts.join(", "))
    };
    let labels = about.get("labels").and_then(Value::as_object);
    let labels = labels.filter(|labels| !labels.is_empty()).map(|labels| {
        let labels = labels
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_str()?)));
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        labels.join(", ")
    });
    let rows = [
        ("its runtime", text("/runtime").map(str::to_owned)),
        ("labels", labels),
        ("workspace", ps::workspace(about)),
        ("command", ps::command(about)),
        ("variables", list("/environment")),
        ("network", text("/network/reach").map(str::to_owned)),
        ("  allowed", list("/network/allow")),
        ("  denied", list("/network/deny")),
    ];
    let known = rows.into_iter();
    known
        .filter_map(|(name, what)| Some((name, what?)))
        .collect()
}

/// What the proxy of a filtered network has decided so far, and about which hosts.
fn decisions(document: &Value) -> Option<(&'static str, String)> {
    let counts = |counts: &Value| {
        let number = |name: &str| counts.get(name).and_then(Value::as_u64);
        let (allowed, denied) = (number("allowed")?, number("denied")?);
        Some(format!("{allowed} allowed, {denied} denied"))
    };
    let all = document.get("egress")?;
    let hosts = all.get("hosts").and_then(Value::as_object);
    let hosts: Vec<String> = hosts
        .into_iter()
        .flatten()
        .take(HOSTS_TOLD_MAX)
        .filter_map(|(host, of_host)| Some(format!("{host}: {}", counts(of_host)?)))
        .collect();
    let hosts = if hosts.is_empty() {
        String::new()
    } else {
        format!(" ({})", hosts.join("; "))
    };
    Some(("  decisions", format!("{}{hosts}", counts(all)?)))
}

/// What is shown of the user's home, where anything may be.
fn home_tools(document: &Value) -> Option<String> {
    let shown = document.get("home_tools")?.as_array()?;
    let mut paths: Vec<&str> = shown
        .iter()
        .filter_map(Value::as_str)
        .take(HOME_TOOLS_TOLD_MAX)
        .collect();
    let more = format!("and {} more", shown.len().saturating_sub(paths.len()));
    if shown.len() > paths.len() {
        paths.push(&more);
    }
    Some(match paths.is_empty() {
        true => "none found".to_owned(),
        false => format!("{} (read-only)", paths.join(", ")),
    })
}

fn usage(document: &Value) -> Vec<(&'static str, String)> {
    let number = |path: &str| document.pointer(path).and_then(Value::as_u64);
    let mut rows = Vec::new();
    if let Some(pid) = number("/pid") {
        rows.push(("first process", pid.to_string()));
    }
    if let Some(bytes) = number("/usage/memory/bytes") {
        let peak = number("/usage/memory/peak_bytes");
        let peak = peak.map_or_else(String::new, |peak| format!(", at most {}", size(peak)));
        rows.push(("memory", format!("{}{peak}", size(bytes))));
    }
    if let Some(count) = number("/usage/pids/current") {
        rows.push(("processes", count.to_string()));
    }
    let seconds = document.pointer("/usage/cpu/seconds");
    if let Some(seconds) = seconds.and_then(Value::as_f64) {
        rows.push(("processor time", format!("{seconds:.2} s")));
    }
    let held = number("/usage/disk/bytes").zip(number("/usage/disk/inodes"));
    if let Some((bytes, files)) = held {
        rows.push(("changes", format!("{} in {files} files", size(bytes))));
    }
    let listening = document.get("listening").and_then(Value::as_array);
    let listening: Vec<&str> = listening
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !listening.is_empty() {
        rows.push(("listening", listening.join(", ")));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sandbox_was_made_with_is_told_by_name() {
        let about = json!({
            "workspace": { "directory": "/w", "mode": "copy-on-write" },
            "network": { "reach": "filtered", "allow": ["a", "b:1"], "deny": [] },
            "environment": ["A", "B"],
            "command": ["echo", "a b"],
        });
        let expected = [
            ("workspace", "/w (copy-on-write)"),
            ("command", "echo 'a b'"),
            ("variables", "A, B"),
            ("network", "filtered"),
            ("  allowed", "a, b:1"),
        ];
        assert_eq!(
            made_with(&about),
            expected.map(|(name, what)| (name, what.to_owned()))
        );
        assert_eq!(made_with(&json!({ "workspace": null })), []);
        let of_host = json!({ "allowed": 0, "denied": 1 });
        let counted = json!({ "egress": { "allowed": 3, "denied": 1, "hosts": { "a": of_host } } });
        let told = "3 allowed, 1 denied (a: 0 allowed, 1 denied)".to_owned();
        let expected = ("  decisions", told);
        assert_eq!(decisions(&counted), Some(expected));
        assert_eq!(decisions(&Value::Null), None);
    }

    #[test]
    fn what_is_shown_of_a_home_is_told_by_its_paths() {
        let told = |tools: Value| home_tools(&json!({ "home_tools": tools }));
        assert_eq!(told(Value::Null), None);
        assert_eq!(told(json!([])).unwrap(), "none found");
        let few = told(json!(["/h/.cargo/bin", "/h/go/bin"])).unwrap();
        assert_eq!(few, "/h/.cargo/bin, /h/go/bin (read-only)");
        let many = told(json!(vec!["/h"; 14])).unwrap();
        assert!(many.ends_with(", and 2 more (read-only)"), "{many}");
    }

    #[test]
    fn what_a_document_does_not_say_is_left_out() {
        assert_eq!(usage(&Value::Null), []);
        let document = json!({
            "pid": 7,
            "usage": { "memory": { "bytes": 1024, "peak_bytes": 2048 }, "cpu": null },
            "listening": ["0.0.0.0:80"],
        });
        let rows = usage(&document);
        let rows: Vec<(&str, &str)> = rows
            .iter()
            .map(|(name, what)| (*name, what.as_str()))
            .collect();
        let expected = [
            ("first process", "7"),
            ("memory", "1.0 KiB, at most 2.0 KiB"),
            ("listening", "0.0.0.0:80"),
        ];
        assert_eq!(rows, expected);
    }
}
