//! `zareba trust`: the user's word that the file of a project may set everything.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write as _},
    path::{Path, PathBuf},
};

use serde_json::json;
use zareba_config::{LeftOut, ProjectFile, TrustError, TrustedFile, TrustedFiles};

use crate::{
    arguments::{OutputFormat, TrustArguments},
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
    table::table,
};

/// How much of an answer is read: `yes` is enough.
const ANSWER_MAX: u64 = 64;

/// Trusts a file, no longer trusts it, or lists those that are trusted.
pub(crate) fn perform(context: &Context, arguments: &TrustArguments) -> Result<Exit, Failure> {
    if arguments.list {
        return list(context);
    }
    if arguments.remove {
        return remove(context, arguments.file.as_deref());
    }
    trust(context, arguments)
}

fn trust(context: &Context, arguments: &TrustArguments) -> Result<Exit, Failure> {
    let file = find(arguments.file.as_deref())?;
    let settings = file
        .settings_that_need_trust()
        .or_fail(Exit::Configuration, "cannot use the file")?;
    let trusted = TrustedFiles::load(&context.environment).map_err(|error| unrecorded(&error))?;
    let name = shown_path(&file);
    if trusted.hold(&file) {
        say::note(format_args!("`{name}` is trusted already"));
        return Ok(Exit::Success);
    }
    if settings.is_empty() {
        say::note(format_args!("`{name}` sets nothing that needs your trust"));
        return Ok(Exit::Success);
    }
    show(&name, &file, &settings);
    match &arguments.hash {
        Some(hash) => expect(&file, hash)?,
        None if !ask(&file)? => return Ok(Exit::Negative),
        None => {}
    }
    TrustedFiles::trust(&context.environment, &file).map_err(|error| unrecorded(&error))?;
    say::note(format_args!(
        "trusted; `zareba trust --remove {name}` takes it back"
    ));
    Ok(Exit::Success)
}

/// The file that is named, or the one of the current directory.
fn find(named: Option<&Path>) -> Result<ProjectFile, Failure> {
    let directory = match named {
        None => Path::new("."),
        Some(path) if path.is_dir() => path,
        Some(path) => {
            return ProjectFile::read(path).map_err(|error| Failure::of(Exit::Usage, &error));
        }
    };
    let found = ProjectFile::find(directory).map_err(|error| Failure::of(Exit::Usage, &error))?;
    found.ok_or_else(|| {
        let message = "there is no `zareba.toml` here, and no `config.toml` of OpenHands";
        Failure::new(Exit::Usage, message).hint("name the file: `zareba trust FILE`")
    })
}

/// Shows what the user is about to allow, one line for each setting whatever its value is.
fn show(name: &str, file: &ProjectFile, settings: &[LeftOut]) {
    say::words(format_args!("`{name}` sets what only a trusted file may:"));
    for setting in settings {
        let value = setting.value.as_ref().map(ToString::to_string);
        let line = setting.origin.line().unwrap_or_default();
        let text = format!("{} = {}", setting.key, value.unwrap_or_default());
        say::words(format_args!(
            "  line {line}: {}",
            say::printable_line(&text)
        ));
    }
    say::words(format_args!("SHA-256 of the file: {}", file.sha256()));
}

/// Refuses content other than that of the hash that the user gave.
fn expect(file: &ProjectFile, hash: &str) -> Result<(), Failure> {
    if hash.trim().eq_ignore_ascii_case(file.sha256()) {
        return Ok(());
    }
    let message = format!(
        "`{}` has another content: its SHA-256 is not `{}`",
        shown_path(file),
        hash.trim()
    );
    Err(Failure::new(Exit::Negative, message))
}

/// Asks the user at the terminal, and refuses without one.
fn ask(file: &ProjectFile) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = "whether to trust the file is asked at a terminal, and there is none";
        return Err(Failure::new(Exit::Usage, message).hint(format!(
            "read the file; `zareba trust {} --hash SHA256` trusts the content with that hash",
            file.path().display()
        )));
    }
    let deed = "cannot ask at the terminal";
    let mut stderr = io::stderr().lock();
    write!(stderr, "Trust this content? [y/N] ")
        .and_then(|()| stderr.flush())
        .or_fail(Exit::Failure, deed)?;
    let mut answer = String::new();
    io::Read::take(io::stdin().lock(), ANSWER_MAX)
        .read_line(&mut answer)
        .or_fail(Exit::Failure, deed)?;
    let answer = answer.trim().to_ascii_lowercase();
    Ok(matches!(answer.as_str(), "y" | "yes"))
}

fn remove(context: &Context, named: Option<&Path>) -> Result<Exit, Failure> {
    let path = match named {
        Some(path) if !path.is_dir() => path.to_owned(),
        other => find(other)?.path().to_owned(),
    };
    let was_trusted =
        TrustedFiles::forget(&context.environment, &path).map_err(|error| unrecorded(&error))?;
    if !was_trusted {
        let message = format!("`{}` is not trusted", path.display());
        return Err(Failure::new(Exit::Negative, message)
            .hint("`zareba trust --list` lists the files that are"));
    }
    say::note(format_args!("`{}` is not trusted any more", path.display()));
    Ok(Exit::Success)
}

fn list(context: &Context) -> Result<Exit, Failure> {
    let trusted = TrustedFiles::load(&context.environment).map_err(|error| unrecorded(&error))?;
    let files = trusted.files().iter().map(|file| (file, state(file)));
    match context.globals.output {
        OutputFormat::Json => {
            for (file, state) in files {
                say::line(json!({ "path": file.path, "sha256": file.sha256, "state": state }))?;
            }
        }
        OutputFormat::Text => {
            let rows: Vec<[String; 3]> = files
                .map(|(file, state)| {
                    let path = file.path.display().to_string();
                    [file.sha256.clone(), state.to_owned(), path]
                })
                .collect();
            say::data(table(["SHA-256", "NOW", "FILE"], &rows).as_bytes())?;
        }
    }
    Ok(Exit::Success)
}

/// Whether the file still is what was trusted.
fn state(trusted: &TrustedFile) -> &'static str {
    match ProjectFile::read(&trusted.path) {
        Ok(file) if file.sha256() == trusted.sha256 => "trusted",
        Ok(_) => "changed",
        Err(_) => "gone",
    }
}

fn shown_path(file: &ProjectFile) -> String {
    let path: PathBuf = file.canonical_path().unwrap_or(file.path()).to_owned();
    path.display().to_string()
}

fn unrecorded(error: &TrustError) -> Failure {
    Failure::of(Exit::Failure, error)
}
