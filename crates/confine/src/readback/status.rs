//! The fields of `/proc/PID/status` that say how a process is confined.

use super::error::ReadBackError;

const FILE: &str = "status";

/// How a process is confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its user numbers, as the reader's user namespace sees them.
    pub user: Ids,
    /// Its group numbers, likewise.
    pub group: Ids,
    /// Its five sets of capabilities.
    pub capabilities: Capabilities,
    /// Whether an exec can give it anything.
    pub no_new_privileges: bool,
    /// What is done with its system calls.
    pub seccomp: SeccompMode,
    /// How many filters look at each of them; kernels before 5.9 do not say.
    pub seccomp_filters: Option<u32>,
}

/// The four numbers that a process has of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Who started it.
    pub real: u32,
    /// As whom it acts.
    pub effective: u32,
    /// To whom it can return.
    pub saved: u32,
    /// As whom it opens files.
    pub filesystem: u32,
}

/// Five sets, one bit per capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What an exec of a marked program keeps.
    pub inheritable: u64,
    /// What it may turn on.
    pub permitted: u64,
    /// What it may do now.
    pub effective: u64,
    /// The most that an exec may ever give.
    pub bounding: u64,
    /// What any exec keeps.
    pub ambient: u64,
}

impl Capabilities {
    /// Whether there are none, now or ever.
    pub fn are_empty(self) -> bool {
        let Self {
            inheritable,
            permitted,
            effective,
            bounding,
            ambient,
        } = self;
        inheritable | permitted | effective | bounding | ambient == 0
    }
}

/// What is done with system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeccompMode {
    /// All of them are made.
    Disabled,
    /// Only reading, writing and ending.
    Strict,
    /// Filters decide.
    Filter,
}

impl Status {
    /// Understands what the kernel wrote. Fields of no interest are passed over.
    ///
    /// # Errors
    /// When a field of interest is missing, there twice, or not written as the kernel writes it.
    pub fn parse(text: &str) -> Result<Self, ReadBackError> {
        Ok(Self {
            user: required(text, "Uid", ids)?,
            group: required(text, "Gid", ids)?,
            capabilities: Capabilities {
                inheritable: required(text, "CapInh", set)?,
                permitted: required(text, "CapPrm", set)?,
                effective: required(text, "CapEff", set)?,
                bounding: required(text, "CapBnd", set)?,
                ambient: required(text, "CapAmb", set)?,
            },
            no_new_privileges: required(text, "NoNewPrivs", flag)?,
            seccomp: required(text, "Seccomp", mode)?,
            seccomp_filters: optional(text, "Seccomp_filters", decimal)?,
        })
    }
}

fn required<T>(
    text: &str,
    field: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<T, ReadBackError> {
    optional(text, field, parse)?.ok_or(ReadBackError::MissingField { file: FILE, field })
}

fn optional<T>(
    text: &str,
    field: &'static str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, ReadBackError> {
    let mut values = text
        .split('\n')
        .filter_map(|line| line.strip_prefix(field)?.strip_prefix(":\t"));
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(ReadBackError::RepeatedField { file: FILE, field });
    }
    match parse(value) {
        Some(parsed) => Ok(Some(parsed)),
        None => Err(ReadBackError::bad_value(FILE, field, value)),
    }
}

/// Sixteen hexadecimal digits.
fn set(text: &str) -> Option<u64> {
    let is_plain = text.len() == 16
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_plain.then(|| u64::from_str_radix(text, 16).ok())?
}

fn ids(text: &str) -> Option<Ids> {
    let mut numbers = text.split('\t').map(decimal);
    let ids = Ids {
        real: numbers.next()??,
        effective: numbers.next()??,
        saved: numbers.next()??,
        filesystem: numbers.next()??,
    };
    numbers.next().is_none().then_some(ids)
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

fn mode(text: &str) -> Option<SeccompMode> {
    match text {
        "0" => Some(SeccompMode::Disabled),
        "1" => Some(SeccompMode::Strict),
        "2" => Some(SeccompMode::Filter),
        _ => None,
    }
}

/// Digits only: the standard parser would take a sign as well.
pub(super) fn decimal(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok())?
}
