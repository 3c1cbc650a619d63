//! The README as an ordinary user types it, from the first sandbox to the end of the executor.
//!
//! Its commands run unchanged, in namespaces made for the walk: the user has no rights, and the ports
//! that the README names are free. `make` is left to those who build the program.

use std::{fs, os::unix::fs::symlink, process::Command};

use crate::support::{Place, Told, ZAREBA};

const README: &str = include_str!("../../../../README.md");

/// A command of the README, and what the README says that it prints.
#[derive(Debug)]
struct Typed {
    command: String,
    printed: String,
}

/// The commands in the blocks of a terminal.
fn commands() -> Vec<Typed> {
    let mut typed: Vec<Typed> = Vec::new();
    let blocks = README.split("```console\n").skip(1);
    for line in blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines()) {
        let last = typed.last_mut();
        if let Some(command) = line.strip_prefix("$ ") {
            typed.push(Typed {
                command: command.to_owned(),
                printed: String::new(),
            });
        } else if let Some(last) = last.filter(|last| last.command.ends_with('\\')) {
            last.command.push_str(&format!("\n{line}"));
        } else if let Some(last) = typed.last_mut().filter(|_| !line.is_empty()) {
            last.printed.push_str(&format!("{line}\n"));
        }
    }
    typed.retain(|typed| !typed.command.starts_with("make "));
    typed
}

/// A script of all commands. Behind each it writes a line with its number and its exit code.
fn script(typed: &[Typed]) -> String {
    // What runs in the background ends with the walk.
    let mut script = "exec 2>&1 </dev/null; trap 'kill $(jobs -p); wait' EXIT\n".to_owned();
    for (number, typed) in typed.iter().enumerate() {
        let command = if typed.command.contains(" -it ") {
            // A person sits at a terminal, and leaves.
            format!("echo exit | script -qec '{}' /dev/null", typed.command)
        } else {
            typed.command.clone()
        };
        script.push_str(&format!("{command}\necho \"@{number} $?\"\n"));
    }
    script
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// Walks through the README on a machine where `prepare` was done as root of a namespace.
fn walk(prepare: &str) {
    let place = Place::new();
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    symlink(ZAREBA, bin.join("zareba")).unwrap();
    let typed = commands();
    // The next user is a number that the machine knows, so that it has a name.
    let inner = "set -e; ip link set lo up; eval \"$1\"; exec unshare --user --map-user=65534 --map-group=65534 bash -c \"$2\"";
    let output = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "bash",
            "-c",
        ])
        .args([inner, "bash", prepare, &script(&typed)])
        .env_clear()
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin:/sbin", bin.display()),
        )
        .env("HOME", place.path("home"))
        .env("TMPDIR", place.path("tmp"))
        .env("LANG", "C.UTF-8")
        .current_dir(place.path("workspace"))
        .output()
        .unwrap();
    let told = Told::from(output);
    let mut rest = told.stdout.as_str();
    for (number, typed) in typed.iter().enumerate() {
        let end = format!("@{number} ");
        let (printed, after) = rest.split_once(&end).unwrap_or((rest, "ended early"));
        let (code, after) = after.split_once('\n').unwrap_or((after, ""));
        rest = after;
        if typed.printed.is_empty() {
            assert_eq!(code, "0", "{}\n{printed}", typed.command);
        } else {
            // Standard output and standard error come by ways of their own.
            assert_eq!(sorted(printed), sorted(&typed.printed), "{}", typed.command);
        }
        if typed.command.contains("6 * 7") {
            assert!(printed.contains("42"), "{}\n{printed}", typed.command);
        }
    }
    assert!(typed.len() > 10, "{typed:?}");
}

#[test]
fn an_ordinary_user_can_type_what_it_says() {
    walk("");
}

#[test]
fn it_holds_where_file_systems_are_mounted_in_system_directories() {
    walk("mount -t tmpfs none /usr/local/src; mount -t tmpfs none /opt");
}
