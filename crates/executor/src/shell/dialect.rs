//! The shells that can be driven, and how.
//!
//! All are driven by one protocol. The shell gets, beside its terminal, a *command pipe*, a
//! *body file* in memory and a *report pipe*. While it is idle, one constant
//! line, the *trigger*, has been typed at it: it calls a function that blocks on the command
//! pipe. To run a command, its number and text are put into the body file and the pipe is rung;
//! the function reports which command it has `taken` and returns, and the rest of the trigger
//! evaluates the text, with all three descriptors closed for it, and reports number, status and
//! state on the report pipe. Nothing is typed at a command that the shell has not taken.
//!
//! When the trigger is cut short (Ctrl-C, a syntax error, an unbound variable), the prompt hook
//! reports instead. When the shell ends, its process tells.
//!
//! Ctrl-C may come when the command that it was meant for has just ended, and take the trigger
//! with it. Then, and always in a shell that edits lines itself and would show the trigger, the
//! shell waits at its prompt until it is let go, after the trigger was typed; see [`Arming`].
//!
//! Nothing of this passes through the terminal, so output cannot forge an end, and the length
//! of a command is not limited by a terminal's line.
//!
//! Design: docs/design/shell-protocol.md.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The numbers of the three channels in the shell.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelNumbers {
    pub(super) commands: i32,
    pub(super) body: i32,
    pub(super) reports: i32,
}

/// How a shell gets from a command's end to waiting for the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arming {
    /// The trigger is typed, and that is all.
    Typed,
    /// The shell waits before every prompt for a line on the command pipe, so that the trigger
    /// can be typed first, and reports `begun` when it has read it.
    HandShake,
}

/// How a kind of shell is started and told what to run.
///
/// Implementors hold no state; everything that changes lives in the shell's own process.
pub(super) trait Dialect: Send + Sync + std::fmt::Debug {
    /// The numbers of its channels.
    fn channels(&self) -> ChannelNumbers;

    /// How it is made to wait for a command.
    fn arming(&self) -> Arming {
        Arming::Typed
    }

    /// The program's arguments.
    fn arguments(&self) -> Vec<String>;

    /// Variables that the program needs to find its start-up file.
    fn environment(&self) -> Vec<(&'static str, String)>;

    /// The start-up file, which must report number 0 once the shell can take commands.
    fn start_up(&self, token: &str, directory: &Path) -> Vec<u8>;

    /// What the shell is told to be its own name.
    fn own_name<'a>(&self, program: &'a Path) -> &'a OsStr {
        program.file_name().unwrap_or(program.as_os_str())
    }

    /// The line that is typed while the shell is idle.
    fn trigger(&self) -> &'static [u8];

    /// The body file for a command. The shell sets and removes the variables before the command,
    /// in silence whatever the command's own options are.
    fn body(&self, id: u64, command: &str, variables: &[Variable]) -> Vec<u8>;

    /// What an agent should know of this shell, when it can do less than bash.
    fn shortcomings(&self) -> Option<&'static str>;
}

/// A variable that changes, and its value; `None` when it is removed.
pub(super) type Variable = (String, Option<Arc<str>>);

/// A shell that was found on this machine.
#[derive(Debug)]
pub(super) struct FoundShell {
    /// Where it is.
    pub(super) program: PathBuf,
    /// How to talk to it.
    pub(super) dialect: &'static dyn Dialect,
}

/// Not single digits, which scripts use, and low, because with `ulimit -n 64` bash could not
/// put back a higher one.
const HIGH_NUMBERS: ChannelNumbers = ChannelNumbers {
    commands: 57,
    body: 58,
    reports: 59,
};

/// dash knows only descriptors of one digit.
const LOW_NUMBERS: ChannelNumbers = ChannelNumbers {
    commands: 7,
    body: 8,
    reports: 9,
};

/// bash 4.4 and later.
#[derive(Debug)]
pub(super) struct Bash;

/// A POSIX shell such as dash or busybox ash.
#[derive(Debug)]
pub(super) struct PosixShell;

/// PowerShell 7, where it is installed and asked for by name.
#[derive(Debug)]
pub(super) struct PowerShell;

impl FoundShell {
    /// Looks at `wanted`, or for bash and then for sh, along `search_path`.
    pub(super) fn find(wanted: Option<&Path>, search_path: &str) -> Option<Self> {
        if let Some(program) = wanted {
            let program = if program.components().count() > 1 {
                program.to_owned()
            } else {
                find_program(&program.to_string_lossy(), search_path)?
            };
            let dialect = dialect_of(&program);
            return is_executable(&program).then_some(Self { program, dialect });
        }
        ["bash", "sh"].into_iter().find_map(|name| {
            let program = find_program(name, search_path)?;
            let dialect = dialect_of(&program);
            Some(Self { program, dialect })
        })
    }
}

/// The shell `wanted`, or bash or sh, along `search_path`, for those who only start it.
pub(crate) fn find_shell(wanted: Option<&Path>, search_path: &str) -> Option<PathBuf> {
    FoundShell::find(wanted, search_path).map(|found| found.program)
}

fn dialect_of(program: &Path) -> &'static dyn Dialect {
    match program.file_name().and_then(|name| name.to_str()) {
        Some("bash") => &Bash,
        Some("pwsh") => &PowerShell,
        _ => &PosixShell,
    }
}

/// The first executable `name` along a colon-separated search path.
pub(crate) fn find_program(name: &str, search_path: &str) -> Option<PathBuf> {
    const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";
    let search_path = if search_path.is_empty() {
        USUAL
    } else {
        search_path
    };
    search_path
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(name))
        .find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    program
        .metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

impl Dialect for Bash {
    fn channels(&self) -> ChannelNumbers {
        HIGH_NUMBERS
    }

    fn arguments(&self) -> Vec<String> {
        // Long options must stand before `-i`.
        let start_up = format!("/proc/self/fd/{}", HIGH_NUMBERS.body);
        ["--noprofile", "--noediting", "--rcfile", &start_up, "-i"]
            .map(str::to_owned)
            .to_vec()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        // bash takes a variable from its environment without looking into it. Its start-up file takes
        // it from the environment of others.
        vec![("__zareba_rare", without_notes(include_str!("bash.rare")))]
    }

    fn start_up(&self, token: &str, directory: &Path) -> Vec<u8> {
        fill_in(include_str!("bash.rc"), token, directory)
    }

    /// The whole path: bash would look for itself along `PATH`. Its start-up file makes `$0` short.
    fn own_name<'a>(&self, program: &'a Path) -> &'a OsStr {
        program.as_os_str()
    }

    fn trigger(&self) -> &'static [u8] {
        // The first word must be a plain one: after an unclosed quote bash does not know a
        // reserved word for what it is. In a list, the status that it returns for `$?` is no
        // failure to `set -e` and to a trap on ERR. The blanks are for a late Ctrl-C to take.
        b"        __zareba_begin && [[ -n 1 ]]; \\builtin eval \"$__zareba_body\" 57<&- 58<&- 59>&-; \
          { __zareba_done \"$?\"; } 2>/dev/null\n"
    }

    fn body(&self, id: u64, command: &str, variables: &[Variable]) -> Vec<u8> {
        let mut body = format!("{id}\0{command}\0").into_bytes();
        if !variables.is_empty() {
            for variable in variables {
                assign("builtin ", variable, &mut body);
                body.push(b'\n');
            }
            body.push(0);
        }
        body.extend_from_slice(format!("{id}\0").as_bytes());
        body
    }

    fn shortcomings(&self) -> Option<&'static str> {
        None
    }
}

impl Dialect for PosixShell {
    fn channels(&self) -> ChannelNumbers {
        LOW_NUMBERS
    }

    fn arming(&self) -> Arming {
        Arming::HandShake
    }

    fn arguments(&self) -> Vec<String> {
        vec!["-i".to_owned()]
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("ENV", format!("/proc/self/fd/{}", LOW_NUMBERS.body))]
    }

    fn start_up(&self, token: &str, directory: &Path) -> Vec<u8> {
        fill_in(include_str!("sh.rc"), token, directory)
    }

    fn trigger(&self) -> &'static [u8] {
        b"        __zareba_begin; eval \"$__zareba_body\" 7<&- 8<&- 9>&-; \
          { __zareba_done \"$?\"; } 2>/dev/null\n"
    }

    /// A body that was run already is read again: then the variables stay as they are. `command`
    /// keeps a variable that is read-only from ending the shell.
    fn body(&self, id: u64, command: &str, variables: &[Variable]) -> Vec<u8> {
        let mut body = format!("__zareba_number={id} __zareba_body=").into_bytes();
        quote(command.as_bytes(), &mut body);
        body.push(b'\n');
        if !variables.is_empty() {
            body.extend_from_slice(b"[ \"$__zareba_number\" = \"$__zareba_id\" ] || {\n");
            for variable in variables {
                assign("command ", variable, &mut body);
                body.extend_from_slice(b" || :\n");
            }
            body.extend_from_slice(b"} 2>/dev/null\n");
        }
        body
    }

    fn shortcomings(&self) -> Option<&'static str> {
        Some(
            "no bash was found, so commands run in a POSIX sh: no arrays, no [[ ]], no brace expansion",
        )
    }
}

impl Dialect for PowerShell {
    fn channels(&self) -> ChannelNumbers {
        HIGH_NUMBERS
    }

    fn arguments(&self) -> Vec<String> {
        let start_up = format!("/proc/self/fd/{}", HIGH_NUMBERS.body);
        let load = format!(". ([ScriptBlock]::Create([IO.File]::ReadAllText('{start_up}')))");
        ["-NoLogo", "-NoProfile", "-NoExit", "-Command", &load]
            .map(str::to_owned)
            .to_vec()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("POWERSHELL_TELEMETRY_OPTOUT", "1".to_owned())]
    }

    fn start_up(&self, token: &str, directory: &Path) -> Vec<u8> {
        let directory = format!("'{}'", directory.display().to_string().replace('\'', "''"));
        include_str!("pwsh.rc")
            .replace("@TOKEN@", token)
            .replace("@DIRECTORY@", &directory)
            .into_bytes()
    }

    fn trigger(&self) -> &'static [u8] {
        b". (__zareba_begin); __zareba_done $?\n"
    }

    /// The second line is a script of its own, so that a command with a syntax error does not keep
    /// the variables from being set.
    fn body(&self, id: u64, command: &str, variables: &[Variable]) -> Vec<u8> {
        let mut body = format!("{id}\n");
        for (name, value) in variables {
            body.push_str(&match value {
                Some(value) => {
                    let value = in_percents(value);
                    format!("$env:{name} = [Uri]::UnescapeDataString('{value}'); ")
                }
                None => format!("Remove-Item -LiteralPath 'Env:{name}' -ErrorAction Ignore; "),
            });
        }
        body.push('\n');
        body.push_str(command);
        body.into_bytes()
    }

    fn shortcomings(&self) -> Option<&'static str> {
        Some("commands run in PowerShell")
    }
}

fn fill_in(template: &str, token: &str, directory: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let template = without_notes(template);
    let (before, after) = template
        .split_once("@DIRECTORY@")
        .unwrap_or((template.as_str(), ""));
    let mut text = before.replace("@TOKEN@", token).into_bytes();
    quote(directory.as_os_str().as_bytes(), &mut text);
    text.extend_from_slice(after.as_bytes());
    text
}

/// Notes are for people; they would take a shell a twentieth of its start to read.
fn without_notes(text: &str) -> String {
    let lines = text.lines().map(str::trim_start);
    let told = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    told.flat_map(|line| [line, "\n"]).collect()
}

/// Adds the command that sets or removes a variable, for a POSIX shell.
fn assign(prefix: &str, (name, value): &Variable, text: &mut Vec<u8>) {
    text.extend_from_slice(prefix.as_bytes());
    match value {
        Some(value) => {
            text.extend_from_slice(format!("export {name}=").as_bytes());
            quote(value.as_bytes(), text);
        }
        None => text.extend_from_slice(format!("unset -v {name}").as_bytes()),
    }
}

/// A text of letters, digits and percent signs, which no quote can end.
fn in_percents(text: &str) -> String {
    let bytes = text.bytes();
    let parts = bytes.map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    parts.collect()
}

/// Adds `word` as POSIX shells read it back unchanged.
fn quote(word: &[u8], text: &mut Vec<u8>) {
    text.push(b'\'');
    for &byte in word {
        match byte {
            b'\'' => text.extend_from_slice(br"'\''"),
            other => text.push(other),
        }
    }
    text.push(b'\'');
}
