//! Says where a program is that a command did not find in a sandbox: in the user's home.
//!
//! The shell's own words do not tell `command not found` of a mistyped name from that of a tool whose
//! place is not seen inside. So it is looked for outside, after the command has ended.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use zareba_config::{Configuration, HomeTools as Setting, RuntimeKind};
use zareba_runtime_native::HomeTools;

use crate::{commands::Context, exit::Exit, failure::Failure, say};

/// The exit code of a shell that did not find a program.
const NOT_FOUND: Exit = Exit::Command(127);

/// Directories with programs that every sandbox sees.
const OF_THE_MACHINE: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Words that a shell reads before the name of a program.
const BEFORE_A_NAME: [&str; 14] = [
    "!", "command", "do", "elif", "else", "env", "exec", "if", "nice", "nohup", "then", "time",
    "until", "while",
];

/// Adds what there is to say to the end of a command: to its failure, or after its output.
pub(crate) fn tell(
    ended: Result<Exit, Failure>,
    hint: impl Fn(Exit) -> Option<String>,
) -> Result<Exit, Failure> {
    match ended {
        Ok(exit) => {
            if let Some(hint) = hint(exit) {
                say::words(format_args!("hint: {hint}"));
            }
            Ok(exit)
        }
        Err(failure) => Err(match hint(failure.exit()) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }),
    }
}

/// What to do about a command that has ended, if it is one of a fresh sandbox without tools of the home.
pub(crate) fn for_fresh(
    context: &Context,
    configuration: &Configuration,
    command: &[String],
    exit: Exit,
) -> Option<String> {
    let settings = &configuration.settings;
    let lacks_tools = settings.runtime.kind == RuntimeKind::Native
        && settings.runtime.image.is_none()
        && settings.native.home_tools == Setting::Off;
    if !lacks_tools {
        return None;
    }
    let workspace = settings.runtime.workspace.as_deref();
    look(
        context,
        workspace,
        command,
        exit,
        "`--home-tools` shows it, read-only",
    )
}

/// The same of a sandbox that was there before: of this runtime, and with this image.
pub(crate) fn for_existing(
    context: &Context,
    (runtime, image): (&str, Option<&str>),
    command: &[String],
    exit: Exit,
) -> Option<String> {
    if runtime != RuntimeKind::Native.as_str() || image.is_some() {
        return None;
    }
    let remedy = "`zareba create --home-tools` makes one that does, read-only";
    look(context, None, command, exit, remedy)
}

fn look(
    context: &Context,
    workspace: Option<&Path>,
    command: &[String],
    exit: Exit,
    remedy: &str,
) -> Option<String> {
    if exit != NOT_FOUND || context.server().is_some() {
        return None;
    }
    let variable = |name| context.environment.get_os(name);
    let home = variable("HOME")?;
    let workspace = workspace.and_then(|path| path.canonicalize().ok());
    let path = variable("PATH").unwrap_or(OsStr::new(""));
    let tools = HomeTools::find(Path::new(home), path, workspace.as_deref())?;
    let names = names(command);
    names.into_iter().find_map(|name| {
        let Some((_, file)) = name.rsplit_once('/') else {
            return of_program(&tools, name, remedy);
        };
        let is_python = file.starts_with("python");
        is_python.then(|| of_interpreter(&tools, workspace.as_deref()?, name, remedy))?
    })
}

fn of_program(tools: &HomeTools, name: &str, remedy: &str) -> Option<String> {
    let is_seen = OF_THE_MACHINE
        .iter()
        .any(|directory| Path::new(directory).join(name).exists());
    let program = tools.program(name).filter(|_| !is_seen)?;
    let directory = in_short(tools, program.parent()?);
    Some(format!(
        "`{name}` is in `{directory}`, which sandboxes do not see; {remedy}"
    ))
}

/// Of an environment in the workspace, by its path inside or by that from the workspace.
fn of_interpreter(tools: &HomeTools, workspace: &Path, name: &str, remedy: &str) -> Option<String> {
    let below = name.strip_prefix("/workspace/").unwrap_or(name);
    let target = workspace.join(below).canonicalize().ok()?;
    if below.starts_with('/') || !target.starts_with(&tools.home) || target.starts_with(workspace) {
        return None;
    }
    let remedy = match tools.shows(&target) {
        true => remedy,
        false => "make the environment with the system's Python",
    };
    let target = in_short(tools, &target);
    Some(format!(
        "`{name}` leads to `{target}`, which sandboxes do not see; {remedy}"
    ))
}

/// A path as people write it.
fn in_short(tools: &HomeTools, path: &Path) -> String {
    let below = path.strip_prefix(&tools.home);
    let path = below.map_or_else(|_| path.to_owned(), |below| PathBuf::from("~").join(below));
    path.display().to_string()
}

/// Names of programs in a command. Quotes and expansions are not read: a name in them is one that no
/// program has.
fn names(command: &[String]) -> Vec<&str> {
    let text = match command {
        [text] => text,
        [program, ..] => return vec![program],
        [] => return Vec::new(),
    };
    let commands = text.split([';', '&', '|', '(', ')', '{', '}', '\n']);
    let is_before = |word: &str| word.contains('=') || BEFORE_A_NAME.contains(&word);
    commands
        .filter_map(|command| command.split_whitespace().find(|word| !is_before(word)))
        .collect()
}

/// What doctor says of programs in the home.
pub(crate) fn found(home: Option<&OsStr>, path: Option<&OsStr>, setting: Setting) -> String {
    let tools = home
        .and_then(|home| HomeTools::find(Path::new(home), path.unwrap_or(OsStr::new("")), None));
    let Some(tools) = tools.filter(|tools| !tools.search.is_empty()) else {
        return "there are none that sandboxes can be shown".to_owned();
    };
    let directories = tools.search.iter().map(|path| in_short(&tools, path));
    let directories = directories.collect::<Vec<_>>().join(", ");
    match setting {
        Setting::ReadOnly => format!("{directories}: sandboxes see them, read-only"),
        Setting::Off => {
            format!("{directories}: sandboxes see them with `native.home_tools = \"read-only\"`")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_command_are_found_by_their_places_in_it() {
        let names_of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            names(&words).join(" ")
        };
        assert_eq!(names_of(&["cargo", "build; x"]), "cargo");
        assert_eq!(
            names_of(&["cd a && RUSTFLAGS=x cargo build | tee log"]),
            "cd cargo tee"
        );
        assert_eq!(
            names_of(&["if ! uv --version; then exit; fi"]),
            "uv exit fi"
        );
        assert_eq!(names_of(&[]), "");
    }
}
