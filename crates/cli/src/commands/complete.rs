//! The hidden command `complete`: what the completion scripts ask while a command line is typed.
//!
//! Each answer is one line, a word and what it means with a tab between them. `:files` and
//! `:directories` leave the rest to the shell. What cannot be looked up is no candidate: no
//! message may appear in the middle of a line that is being typed.

mod line;

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use clap::CommandFactory as _;
use tokio::time::timeout;

use self::line::{Fitting, Line};
use crate::{
    arguments::{Arguments, CompleteArguments, GlobalArguments},
    commands::Context,
    exit::Exit,
    failure::Failure,
    sandbox::Fleet,
    say,
    settings::Notices,
};

/// How long a person waits for names.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints what fits at the end of the line.
pub(crate) fn perform(context: &Context, arguments: &CompleteArguments) -> Result<Exit, Failure> {
    let mut root = Arguments::command();
    root.build();
    let line = Line::read(&root, &arguments.words);
    let names = Names {
        context: &typed(context, &line.globals),
    };
    let mut text = String::new();
    for candidate in names.candidates(&line) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{candidate}");
    }
    say::data(text.as_bytes())?;
    Ok(Exit::Success)
}

/// What names are looked up with: the server and the files of the line that is typed.
fn typed(context: &Context, globals: &[(String, String)]) -> Context {
    let values = |name: &'static str| {
        let named = globals.iter().filter(move |(known, _)| known == name);
        named.map(|(_, value)| value.clone())
    };
    Context {
        surface: context.surface,
        globals: GlobalArguments {
            config: values("config").next_back().map(PathBuf::from),
            set: values("set").collect(),
            server: values("server").next_back(),
            output: context.globals.output,
        },
        environment: context.environment.clone(),
        notices: Notices::default(),
    }
}

struct Names<'a> {
    context: &'a Context,
}

impl Names<'_> {
    fn candidates(&self, line: &Line) -> Vec<String> {
        let (words, rest) = match &line.fitting {
            Fitting::Words(words) => (words.clone(), None),
            Fitting::Sandbox => (self.sandboxes(""), None),
            // The path after a name is inside, where nothing is looked up.
            Fitting::SandboxOrFile if line.begun.contains(':') => (Vec::new(), None),
            Fitting::SandboxOrFile => (self.sandboxes(":"), Some(":files")),
            Fitting::Image => (self.images(), None),
            Fitting::File => (Vec::new(), Some(":files")),
            Fitting::Directory => (Vec::new(), Some(":directories")),
            Fitting::Anything => (Vec::new(), None),
        };
        let fitting = words
            .into_iter()
            .filter(|(word, _)| word.starts_with(&line.begun) && !word.contains(['\n', '\t']));
        let lines = fitting.map(|(word, meaning)| match meaning.lines().next() {
            Some(meaning) => format!("{word}\t{meaning}"),
            None => word,
        });
        lines.chain(rest.map(str::to_owned)).collect()
    }

    /// Names of sandboxes, or of a server's sessions.
    fn sandboxes(&self, ending: &str) -> Vec<(String, String)> {
        let mut names = Vec::new();
        let looked = Fleet::visit(self.context, async |fleet| {
            if let Ok(members) = timeout(PATIENCE, fleet.members()).await {
                names = members?
                    .iter()
                    .map(|member| {
                        let meaning = member.summary.image.clone();
                        let meaning = meaning.unwrap_or_else(|| member.summary.runtime.to_owned());
                        (format!("{}{ending}", member.summary.id), meaning)
                    })
                    .collect();
            }
            Ok(Exit::Success)
        });
        if let Err(failure) = looked {
            tracing::debug!(%failure, "cannot look for sandboxes");
        }
        names
    }

    fn images(&self) -> Vec<(String, String)> {
        let mut names = Vec::new();
        let looked = Fleet::visit(self.context, async |fleet| {
            if let Some(store) = fleet.image_store() {
                let images = store?.list();
                let images = images.map_err(|error| Failure::of(Exit::Failure, &error))?;
                let all = images.iter().flat_map(|image| &image.names);
                names = all.map(|name| (name.to_string(), String::new())).collect();
            }
            Ok(Exit::Success)
        });
        if let Err(failure) = looked {
            tracing::debug!(%failure, "cannot look for images");
        }
        names
    }
}
