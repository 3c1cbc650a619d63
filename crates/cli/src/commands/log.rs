//! `zareba log`: the event log of the server, checked, written out and read in.

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use serde_json::json;
use tokio::{
    fs::File,
    io::{AsyncWriteExt as _, BufReader},
    runtime,
};
use zareba_config::Settings;
use zareba_eventlog::{EventLog, Verified};
use zareba_protocol::SessionId;

use super::serve::{log_file, open_log};
use crate::{
    arguments::{
        ExportLogArguments, ImportLogArguments, LogArguments, LogCommand, OutputFormat,
        VerifyLogArguments,
    },
    commands::Context,
    exit::Exit,
    failure::{Failure, OrFail as _},
    sandbox::Place,
    say,
    table::{age, table},
};

/// Does what was asked for.
pub(crate) fn perform(context: &Context, arguments: &LogArguments) -> Result<Exit, Failure> {
    let configuration = context.configuration(Vec::new())?;
    let place = Place::new(context, &configuration.settings);
    let runtime = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .or_fail(Exit::Start, "cannot start")?;
    let desk = Desk {
        settings: &configuration.settings,
        state: place.state(),
        format: context.globals.output,
    };
    runtime.block_on(async {
        match &arguments.command {
            LogCommand::Ls => desk.list().await,
            LogCommand::Verify(arguments) => desk.verify(arguments).await,
            LogCommand::Export(arguments) => desk.export(arguments).await,
            LogCommand::Import(arguments) => desk.import(arguments).await,
        }
    })
}

/// Where logs are looked at.
struct Desk<'a> {
    settings: &'a Settings,
    state: &'a Path,
    format: OutputFormat,
}

impl Desk<'_> {
    /// The log, to look at, also while a server writes to it.
    async fn open(&self) -> Result<EventLog, Failure> {
        if self.settings.log.database.is_some() {
            return open_log(self.settings, self.state).await;
        }
        let file = log_file(self.state);
        let opened = EventLog::open_file_to_read(&file).await;
        opened.map_err(|error| Failure::of(Exit::Failure, &error))
    }

    async fn list(&self) -> Result<Exit, Failure> {
        let mut usages = self
            .open()
            .await?
            .usage()
            .await
            .or_fail(Exit::Failure, "cannot read the log")?;
        usages.sort_by_key(|usage| usage.changed);
        if self.format == OutputFormat::Json {
            for usage in usages {
                say::line(json!({
                    "session": usage.session,
                    "events": usage.records,
                    "bytes": usage.bytes,
                    "changed": usage.changed.to_string(),
                }))?;
            }
            return Ok(Exit::Success);
        }
        let rows: Vec<[String; 4]> = usages
            .iter()
            .map(|usage| {
                [
                    usage.session.to_string(),
                    usage.records.to_string(),
                    usage.bytes.to_string(),
                    since(usage.changed),
                ]
            })
            .collect();
        say::text(&table(["SESSION", "EVENTS", "BYTES", "CHANGED"], &rows))?;
        Ok(Exit::Success)
    }

    async fn verify(&self, arguments: &VerifyLogArguments) -> Result<Exit, Failure> {
        let log = self.open().await?;
        let sessions = match arguments.sessions.as_slice() {
            [] => log
                .store()
                .sessions()
                .await
                .or_fail(Exit::Failure, "cannot read the log")?,
            names => {
                let mut sessions = Vec::new();
                for name in names {
                    sessions.push(recorded(&log, name).await?);
                }
                sessions
            }
        };
        let mut exit = Exit::Success;
        for session in sessions {
            let deed = || format!("cannot verify the log of `{session}`");
            let verified = log.verify(&session).await.or_fail(Exit::Failure, deed())?;
            self.tell(&session, &verified)?;
            if !verified.is_sound() {
                exit = Exit::Negative;
            }
        }
        Ok(exit)
    }

    fn tell(&self, session: &SessionId, verified: &Verified) -> Result<(), Failure> {
        if self.format == OutputFormat::Json {
            let damage: Vec<_> = verified
                .damage
                .iter()
                .map(|damage| json!({ "event": damage.sequence, "reason": damage.reason }))
                .collect();
            return say::line(json!({
                "session": session,
                "events": verified.records,
                "last": verified.last.to_string(),
                "sound": verified.is_sound(),
                "damage": damage,
            }));
        }
        if verified.is_sound() {
            return say::line(format_args!(
                "{session}: {} events, all in order; the last is {}",
                verified.records, verified.last
            ));
        }
        for damage in &verified.damage {
            say::line(format_args!(
                "{session}: event {} is wrong: {}",
                damage.sequence, damage.reason
            ))?;
        }
        if verified.more > 0 {
            say::line(format_args!("{session}: and {} more", verified.more))?;
        }
        Ok(())
    }

    async fn export(&self, arguments: &ExportLogArguments) -> Result<Exit, Failure> {
        let log = self.open().await?;
        let session = recorded(&log, &arguments.session).await?;
        let deed = format!("cannot export the log of `{session}`");
        if let Some(directory) = &arguments.openhands {
            let written = log.export_openhands(&session, directory).await;
            let written = written.or_fail(Exit::Failure, deed)?;
            say::note(format_args!(
                "wrote {written} events to {}",
                directory.display()
            ));
            return Ok(Exit::Success);
        }
        let mut out = tokio::io::stdout();
        log.export(&session, &mut out)
            .await
            .or_fail(Exit::Failure, deed.clone())?;
        out.flush().await.or_fail(Exit::Failure, deed)?;
        Ok(Exit::Success)
    }

    async fn import(&self, arguments: &ImportLogArguments) -> Result<Exit, Failure> {
        let name = arguments.file.display();
        let file = File::open(&arguments.file)
            .await
            .or_fail(Exit::Usage, format!("cannot open `{name}`"))?;
        let log = open_log(self.settings, self.state).await?;
        let imported = log.import(&mut BufReader::new(file)).await;
        let closed = log.store().close().await;
        let imported = imported.or_fail(Exit::Failure, format!("cannot import `{name}`"))?;
        closed.or_fail(Exit::Failure, "cannot close the event log")?;
        say::note(format_args!(
            "read {} events of {} sessions",
            imported.records,
            imported.sessions.len()
        ));
        Ok(Exit::Success)
    }
}

/// The session of this name, if anything is recorded of it: a misspelt name is not an empty log.
async fn recorded(log: &EventLog, name: &str) -> Result<SessionId, Failure> {
    let session = SessionId::new(name).map_err(|error| Failure::of(Exit::Usage, &error))?;
    let first = log.store().read(session.clone(), 0, 1).await;
    match first.or_fail(Exit::Failure, "cannot read the log")?.first() {
        Some(_) => Ok(session),
        None => {
            let message = format!("there is no log of a session `{session}` here");
            Err(Failure::new(Exit::Lost, message)
                .hint("`zareba log ls` lists those that there are"))
        }
    }
}

fn since(time: Timestamp) -> String {
    let passed = Timestamp::now().duration_since(time);
    age(Duration::try_from(passed).unwrap_or_default())
}
