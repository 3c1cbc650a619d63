//! The commands of the README, as a user types them, and whether they did what it says.
//!
//! The caller runs the script on a machine of its own; the commands are unchanged. `make` is left to
//! those who build the program.

const README: &str = include_str!("../../../README.md");

/// A command of the README, and what the README says that it prints.
#[derive(Debug)]
struct Typed {
    command: String,
    printed: String,
}

/// A walk through the README.
#[derive(Debug)]
pub struct Walk {
    typed: Vec<Typed>,
}

impl Walk {
    /// The commands in the blocks of a terminal.
    ///
    /// # Panics
    /// If the README has hardly any: they are written in another way then.
    pub fn read() -> Self {
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
        assert!(typed.len() > 10, "{typed:?}");
        Self { typed }
    }

    /// A script of all commands. Behind each it writes a line with its number and its exit code.
    pub fn script(&self) -> String {
        // What runs in the background ends with the walk.
        let mut script = "exec 2>&1 </dev/null; trap 'kill $(jobs -p); wait' EXIT\n".to_owned();
        for (number, typed) in self.typed.iter().enumerate() {
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

    /// Compares what the script wrote with what the README says.
    ///
    /// # Panics
    /// If a command failed, or printed something else.
    pub fn check(&self, said: &str) {
        let mut rest = said;
        for (number, typed) in self.typed.iter().enumerate() {
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
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
