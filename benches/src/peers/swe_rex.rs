//! SWE-ReX, measured by a program of its own language in the same run.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use serde_json::Value;

use super::cache;
use crate::quantity::Quantity;

/// SWE-ReX over its own HTTP server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Peer {
    pub(crate) true_p50: Quantity,
    pub(crate) true_p99: Quantity,
    pub(crate) echo_p50: Quantity,
    pub(crate) echo_p99: Quantity,
    pub(crate) start: Quantity,
    pub(crate) resident: Quantity,
}

/// What is said of a peer that nobody installed.
const NOT_INSTALLED: &str = "not installed (e2e/foreign/setup-swerex)";

/// Measures SWE-ReX where its environment was made.
pub(crate) fn swe_rex() -> Result<Peer, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/swerex_bench.py");
    let environment = cache().map(|cache| cache.join("zareba/venvs/swe-rex-1.4"));
    match environment {
        // The stamp is written when everything is in it.
        Some(environment) if environment.join(".zareba-stamp").exists() && script.exists() => {
            run(&environment.join("bin/python"), &script)
                .map_err(|error| format!("failed: {error:#}"))
        }
        _ => Err(NOT_INSTALLED.to_owned()),
    }
}

fn run(python: &Path, script: &Path) -> anyhow::Result<Peer> {
    let output = Command::new(python)
        .arg(script)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {}", python.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().next_back().unwrap_or("it said nothing"));
    }
    parse(&output.stdout)
}

fn parse(line: &[u8]) -> anyhow::Result<Peer> {
    let result: Value = serde_json::from_slice(line).context("its result is not JSON")?;
    let number = |name: &str| {
        result
            .get(name)
            .and_then(Value::as_f64)
            .with_context(|| format!("its result has no number `{name}`"))
    };
    Ok(Peer {
        true_p50: Quantity::milliseconds(number("true_ms_p50")?),
        true_p99: Quantity::milliseconds(number("true_ms_p99")?),
        echo_p50: Quantity::milliseconds(number("echo_ms_p50")?),
        echo_p99: Quantity::milliseconds(number("echo_ms_p99")?),
        start: Quantity::milliseconds(number("start_ms")?),
        resident: Quantity::mebibytes(number("rss_mib")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_the_script_is_understood() {
        let line = br#"{"peer": "swe-rex", "version": "1.4.0", "true_ms_p50": 110.0, "true_ms_p99": 150.5,
            "echo_ms_p50": 111.0, "echo_ms_p99": 151.0, "runs": 100, "start_ms": 1100.0, "rss_mib": 49.5}"#;
        let peer = Peer {
            true_p50: Quantity::milliseconds(110.0),
            true_p99: Quantity::milliseconds(150.5),
            echo_p50: Quantity::milliseconds(111.0),
            echo_p99: Quantity::milliseconds(151.0),
            start: Quantity::milliseconds(1100.0),
            resident: Quantity::mebibytes(49.5),
        };
        assert_eq!(parse(line).unwrap(), peer);
    }

    #[test]
    fn a_result_without_a_number_is_an_error() {
        let error = parse(b"{\"true_ms_p50\": \"fast\"}")
            .unwrap_err()
            .to_string();
        assert_eq!(error, "its result has no number `true_ms_p50`");
    }
}
