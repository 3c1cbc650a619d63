//! The list of what is looked for, in the order in which it is printed.

use std::path::Path;

use zareba_config::{Environment, Settings};
use zareba_terminal::{Pty, Size};

use super::{
    check::{Check, Finding, Need, TRIAL_START},
    docker, kernel,
    trial::{self, Trial},
};
use crate::{commands::Context, home_hint, programs};

/// Looks for everything. Must be called inside a runtime.
pub(super) async fn examine(context: &Context, settings: &Settings) -> Vec<Check> {
    let environment = &context.environment;
    let mut checks = needed(environment).await;
    checks.extend(useful(environment).await);
    checks.extend(sandbox(context, settings).await);
    checks.extend(docker::examine(context, settings).await);
    checks.extend(later(environment).await);
    checks
}

async fn needed(environment: &Environment) -> Vec<Check> {
    let check = |name, found, advice| Check {
        name,
        need: Need::Now,
        finding: Finding::of(found, advice),
    };
    let terminals = Pty::open(Size {
        columns: 80,
        rows: 24,
    })
    .ok()
    .map(|_| "pseudo-terminals can be opened".to_owned());
    let processes = Path::new("/proc/self/stat")
        .is_file()
        .then(|| "mounted".to_owned());
    let temporary = tempfile::tempdir()
        .ok()
        .map(|_| std::env::temp_dir().display().to_string());
    vec![
        check(
            "shell",
            shell(environment).await,
            "install bash: apt-get install bash",
        ),
        check(
            "terminals",
            terminals,
            "mount devpts: mount -t devpts devpts /dev/pts",
        ),
        check("/proc", processes, "mount it: mount -t proc proc /proc"),
        check(
            "temporary files",
            temporary,
            "set TMPDIR to a directory that can be written to",
        ),
    ]
}

async fn useful(environment: &Environment) -> Vec<Check> {
    let mut checks = vec![Check {
        name: "kernel",
        need: Need::Useful,
        finding: Finding::Present(kernel::release()),
    }];
    let programs = [
        (
            "bash",
            &["bash"][..],
            "apt-get install bash; without it shells are POSIX sh, which can do less",
        ),
        (
            "python3",
            &["python3"],
            "apt-get install python3; used to check edited Python files",
        ),
        (
            "flake8",
            &["flake8"],
            "pip install flake8; checks edited Python files more closely",
        ),
        ("git", &["git"], "apt-get install git"),
        (
            "pwsh",
            &["pwsh"],
            "install PowerShell 7; driving it is untested",
        ),
    ];
    for (name, programs, advice) in programs {
        checks.push(program(environment, Need::Useful, name, programs, advice).await);
    }
    checks
}

async fn sandbox(context: &Context, settings: &Settings) -> Vec<Check> {
    let check = |name, finding| Check {
        name,
        need: Need::Sandbox,
        finding,
    };
    let overlay = Finding::of(kernel::file_system("overlay"), "modprobe overlay");
    let mut checks = vec![
        check("user namespaces", kernel::user_namespaces()),
        check("overlay", overlay),
    ];
    let Trial { start, layers } = trial::sandbox(context, settings).await;
    checks.push(check(TRIAL_START, start));
    if layers.is_empty() {
        checks.extend(guesses());
    }
    let layers = layers.into_iter();
    checks.extend(layers.map(|(name, finding)| check(name, finding)));
    checks.extend([
        check("filtered network", trial::network(context, settings).await),
        check("images", trial::images(context, settings)),
        check(
            "home tools",
            Finding::Present(home_tools(context, settings)),
        ),
    ]);
    checks
}

fn home_tools(context: &Context, settings: &Settings) -> String {
    let variable = |name| context.environment.get_os(name);
    home_hint::found(
        variable("HOME"),
        variable("PATH"),
        settings.native.home_tools,
    )
}

/// What can be told of the layers without a sandbox.
fn guesses() -> Vec<Check> {
    let check = |name, finding| Check {
        name,
        need: Need::Sandbox,
        finding,
    };
    let filters = Finding::of(
        kernel::seccomp(),
        "boot a kernel with CONFIG_SECCOMP_FILTER",
    );
    let groups = Finding::of(
        kernel::control_groups(),
        "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
    );
    vec![
        check("Landlock", kernel::landlock()),
        check("seccomp", filters),
        check("control groups", groups),
    ]
}

async fn later(environment: &Environment) -> Vec<Check> {
    let mut checks = Vec::new();
    let programs = [
        (
            "chromium",
            &["chromium", "chromium-browser", "google-chrome"][..],
            "apt-get install chromium",
        ),
        ("jupyter", &["jupyter"], "pip install jupyter ipykernel"),
        ("kubectl", &["kubectl"], "install kubectl"),
    ];
    for (name, programs, advice) in programs {
        checks.push(program(environment, Need::Later, name, programs, advice).await);
    }
    checks
}

async fn shell(environment: &Environment) -> Option<String> {
    if let Some(bash) = programs::find("bash", environment) {
        return Some(described(&bash, &["--version"]).await);
    }
    programs::find("sh", environment).map(|shell| format!("{} (POSIX sh)", shell.display()))
}

async fn program(
    environment: &Environment,
    need: Need,
    name: &'static str,
    programs: &[&str],
    advice: &str,
) -> Check {
    let found = programs
        .iter()
        .find_map(|program| programs::find(program, environment));
    let found = match found {
        // Its version is printed by a subcommand.
        Some(path) if name == "kubectl" => Some(path.display().to_string()),
        Some(path) => Some(described(&path, &["--version"]).await),
        None => None,
    };
    Check {
        name,
        need,
        finding: Finding::of(found, advice),
    }
}

/// What the program says of itself, or at least where it is.
async fn described(program: &Path, arguments: &[&str]) -> String {
    let version = programs::ask(program, arguments).await;
    version.unwrap_or_else(|| program.display().to_string())
}
