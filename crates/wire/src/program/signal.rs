//! The signals that may be sent to a program.

/// A signal that a client may send to a program of its own. The list is fixed, and there is no
/// way to name another process (BS-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramSignal {
    /// `SIGHUP`
    Hup,
    /// `SIGINT`
    Int,
    /// `SIGQUIT`
    Quit,
    /// `SIGABRT`
    Abrt,
    /// `SIGKILL`
    Kill,
    /// `SIGUSR1`
    Usr1,
    /// `SIGUSR2`
    Usr2,
    /// `SIGALRM`
    Alrm,
    /// `SIGTERM`
    Term,
    /// `SIGCONT`
    Cont,
    /// `SIGSTOP`
    Stop,
    /// `SIGTSTP`
    Tstp,
    /// `SIGWINCH`
    Winch,
}

impl ProgramSignal {
    /// All that there are.
    pub const ALL: [Self; 13] = [
        Self::Hup,
        Self::Int,
        Self::Quit,
        Self::Abrt,
        Self::Kill,
        Self::Usr1,
        Self::Usr2,
        Self::Alrm,
        Self::Term,
        Self::Cont,
        Self::Stop,
        Self::Tstp,
        Self::Winch,
    ];

    /// Its name without `SIG`, as it travels.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hup => "HUP",
            Self::Int => "INT",
            Self::Quit => "QUIT",
            Self::Abrt => "ABRT",
            Self::Kill => "KILL",
            Self::Usr1 => "USR1",
            Self::Usr2 => "USR2",
            Self::Alrm => "ALRM",
            Self::Term => "TERM",
            Self::Cont => "CONT",
            Self::Stop => "STOP",
            Self::Tstp => "TSTP",
            Self::Winch => "WINCH",
        }
    }

    /// The signal of that name, with or without `SIG`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.strip_prefix("SIG").unwrap_or(name);
        Self::ALL.into_iter().find(|signal| signal.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_found_by_its_name_and_no_other_bs_8() {
        for signal in ProgramSignal::ALL {
            assert_eq!(ProgramSignal::from_name(signal.name()), Some(signal));
        }
        assert_eq!(
            ProgramSignal::from_name("SIGTERM"),
            Some(ProgramSignal::Term)
        );
        for other in ["", "SIG", "term", "9", "SEGV", "SIGSIGINT", "INT\0"] {
            assert_eq!(ProgramSignal::from_name(other), None, "{other:?}");
        }
    }
}
