//! Who commands run as: what a client of `/start` asks for, compared with what is so.
//!
//! A runtime gives its sandboxes one user, which nobody inside or outside changes afterwards. So
//! the one that is asked for is either that one, or the client is told who runs commands instead;
//! what can be no user at all is refused before anything is started.

use zareba_protocol::{Action, ActionEvent, EventSource, ObservationKind, RunCommand};
use zareba_session::{ActionRequest, EventLog, Session};

use super::{answer::Refusal, service::observation_of};

/// What a user's name may have in characters.
const NAME_LENGTH_MAX: usize = 32;

/// The user that a client asks for, as far as it does.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    wishes: Vec<Wish>,
}

/// One thing that is asked for, and how it is called.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    option: &'static str,
    user: User,
}

#[derive(Debug, PartialEq, Eq)]
enum User {
    Name(String),
    Id(u32),
    Group(u32),
}

/// Who runs commands in a sandbox.
struct Actual {
    name: String,
    id: u32,
    group: u32,
}

impl Wanted {
    /// Adds a name.
    pub(super) fn name(&mut self, option: &'static str, name: Option<&str>) -> Result<(), Refusal> {
        let Some(name) = name else {
            return Ok(());
        };
        let is_first = |letter: u8| letter.is_ascii_alphabetic() || letter == b'_';
        let is_name = name.len() <= NAME_LENGTH_MAX
            && name.bytes().next().is_some_and(is_first)
            && (name.bytes())
                .all(|letter| letter.is_ascii_alphanumeric() || b"_-.".contains(&letter));
        if !is_name {
            let shown: String = name.chars().take(NAME_LENGTH_MAX).collect();
            return Err(Refusal::invalid(format!(
                "{option} {shown:?}: a user's name has 1 to {NAME_LENGTH_MAX} letters, digits, `_`, `-` and `.`"
            )));
        }
        let user = User::Name(name.to_owned());
        self.wishes.push(Wish { option, user });
        Ok(())
    }

    /// Adds a number that comes as text.
    pub(super) fn id(&mut self, option: &'static str, id: Option<&str>) -> Result<(), Refusal> {
        let Some(id) = id else {
            return Ok(());
        };
        let Ok(id) = id.parse() else {
            let shown: String = id.chars().take(NAME_LENGTH_MAX).collect();
            let most = u32::MAX;
            return Err(Refusal::invalid(format!(
                "{option} {shown:?}: the number of a user is from 0 to {most}"
            )));
        };
        self.number(option, Some(id));
        Ok(())
    }

    /// Adds a number.
    pub(super) fn number(&mut self, option: &'static str, id: Option<u32>) {
        let user = id.map(User::Id);
        self.wishes.extend(user.map(|user| Wish { option, user }));
    }

    /// Adds a group.
    pub(super) fn group(&mut self, option: &'static str, group: Option<u32>) {
        let user = group.map(User::Group);
        self.wishes.extend(user.map(|user| Wish { option, user }));
    }

    /// What of it is not so, in words.
    pub(super) async fn not_applied(&self, session: &Session, log: &EventLog) -> Vec<String> {
        if self.wishes.is_empty() {
            return Vec::new();
        }
        let actual = Actual::of(session, log).await;
        let unmet = (self.wishes.iter()).filter_map(|wish| wish.unmet(actual.as_ref()));
        unmet.collect()
    }
}

impl Wish {
    fn unmet(&self, actual: Option<&Actual>) -> Option<String> {
        let Self { option, user } = self;
        let asked = match user {
            User::Name(name) => name.clone(),
            User::Id(number) | User::Group(number) => number.to_string(),
        };
        let Some(actual) = actual else {
            return Some(format!(
                "{option} {asked}: the runtime decides who runs commands"
            ));
        };
        let is_met = match user {
            User::Name(name) => *name == actual.name,
            User::Id(id) => *id == actual.id,
            User::Group(group) => *group == actual.group,
        };
        let Actual { name, id, group } = actual;
        (!is_met).then(|| {
            format!(
                "{option} {asked}: commands run as `{name}` ({id}:{group}), which the runtime decides"
            )
        })
    }
}

impl Actual {
    /// Asked of the shell: files of the image say what a number is called.
    async fn of(session: &Session, log: &EventLog) -> Option<Self> {
        let command = RunCommand {
            hidden: true,
            blocking: true,
            ..RunCommand::new("id -un; id -u; id -g")
        };
        let action = ActionEvent {
            source: Some(EventSource::Environment),
            ..Action::Run(command).into()
        };
        let record = session
            .run(ActionRequest {
                action,
                key: None,
                requester: None,
            })
            .await
            .ok()?;
        let answer = observation_of(log, &record).await.ok()?;
        match answer.observation.kind {
            ObservationKind::Run(output) if output.metadata.exit_code == 0 => {
                Self::read(&answer.observation.content)
            }
            _ => None,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(str::trim);
        let actual = Self {
            name: lines.next()?.to_owned(),
            id: lines.next()?.parse().ok()?,
            group: lines.next()?.parse().ok()?,
        };
        lines.next().is_none().then_some(actual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_no_user_is_refused() {
        for name in ["", "-x", "a b", "0root", "a:b", &"a".repeat(33)] {
            let refused = Wanted::default().name("--username", Some(name));
            assert!(refused.is_err(), "{name:?}");
        }
        for id in ["", "-1", "root", "4294967296", "1.0"] {
            let refused = Wanted::default().id("--user-id", Some(id));
            assert!(refused.is_err(), "{id:?}");
        }
        let mut wanted = Wanted::default();
        assert!(wanted.name("--username", Some("open-hands_1")).is_ok());
        assert!(wanted.id("--user-id", Some("0")).is_ok());
        assert!(wanted.id("--user-id", None).is_ok());
        assert_eq!(wanted.wishes.len(), 2);
    }

    #[test]
    fn only_what_is_not_so_is_told() {
        let actual = Actual::read("root\r\n0\n0\n").unwrap();
        let unmet = |user| {
            let option = "--user";
            Wish { option, user }.unmet(Some(&actual))
        };
        assert_eq!(unmet(User::Name("root".to_owned())), None);
        assert_eq!(unmet(User::Id(0)), None);
        assert_eq!(unmet(User::Group(0)), None);
        let told = unmet(User::Id(1000)).unwrap();
        assert!(
            told.contains("--user 1000") && told.contains("`root` (0:0)"),
            "{told}"
        );
        assert!(Actual::read("id: no name\n0").is_none());
    }
}
