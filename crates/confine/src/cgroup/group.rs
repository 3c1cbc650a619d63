//! One sandbox's group: made with its limits, divided into leaves, ended as a whole.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use super::{
    CgroupError, Controller, Demand, FreezeMeans, HOME, Hierarchy, Host, Limit, Limits, OomWatch,
    Outcome, Report, Statistics, Version, check_name,
    directory::{Directory, is_gone},
    freeze, kill,
    proc_files::join,
    remove::{Home, remove_seats},
    reopen::current,
    seats::{Holder, Seat, Seats},
    statistics, v1, v2,
};

/// How often the directory that all sandboxes share is made again when another thread or server
/// removes it as its last sandbox ends, at the very moment in which this one begins.
const HOME_ATTEMPTS: usize = 1000;

/// How long the directories of a group that could not be made are tried to be removed.
const UNDO_WITHIN: Duration = Duration::from_millis(500);

/// The control groups of one sandbox, in every hierarchy that is of use.
///
/// Processes are never in the group itself but in its [leaves](super::Leaf). Dropping the value changes
/// nothing: a sandbox outlives the server that made it, and [`Group::open`] finds it again.
#[derive(Debug)]
pub struct Group {
    pub(super) id: String,
    pub(super) seats: Seats,
    /// Told for a group that was made, and asked for when somebody wants it of one that was found.
    pub(super) report: OnceLock<Report>,
    pub(super) demand: Demand,
}

impl Group {
    /// Makes the group `id`, which no process is in yet, and sets its limits.
    ///
    /// On a machine that lets this user make no groups the result is [`Group::unavailable`].
    ///
    /// # Errors
    /// When the name or a limit is senseless, the group exists, the kernel refuses a directory,
    /// or the policy demands a limit that is not enforced. Nothing is left behind then.
    pub fn create(host: &Host, id: &str, limits: &Limits) -> Result<Self, CgroupError> {
        check_name(id)?;
        limits.check()?;
        let mut seats = Seats::default();
        let taken = take_unified_seat(host, id, &mut seats)
            .and_then(|()| take_legacy_seats(host, id, limits, &mut seats));
        match taken.and_then(|()| hold_to(limits.demand, apply_all(host, &seats, limits))) {
            Ok(report) => Ok(Self {
                id: id.to_owned(),
                seats,
                report: report.into(),
                demand: limits.demand,
            }),
            Err(error) => {
                // The first failure is the one to tell; a leftover is found by `find_all`.
                let _ = remove_seats(&seats, UNDO_WITHIN, Home::RemoveWhenEmpty);
                Err(error)
            }
        }
    }

    /// A group that exists in no hierarchy: its leaves take every process and hold none.
    #[must_use]
    pub fn unavailable(id: &str, report: Report) -> Self {
        Self {
            id: id.to_owned(),
            seats: Seats::default(),
            report: report.into(),
            demand: Demand::BestEffort,
        }
    }

    /// Whether there is anything in the kernel behind this value.
    #[must_use]
    pub fn is_available(&self) -> bool {
        !self.seats.0.is_empty()
    }

    /// The name it was made with.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the kernel enforces, as of when the group was made, or was first asked for this after it was
    /// opened.
    pub fn report(&self) -> &Report {
        self.report.get_or_init(|| current(&self.seats))
    }

    /// Where the group is, to be recorded for [`Group::open_at`].
    #[must_use]
    pub fn directories(&self) -> Vec<PathBuf> {
        self.seats
            .own()
            .map(|seat| seat.directory.path().to_owned())
            .collect()
    }

    /// Stops all processes where they are. Returns when they stand still.
    ///
    /// # Errors
    /// When there is no means to, or they do not stand still `within` that time; those that do
    /// stay frozen.
    pub fn freeze(&self, within: Duration) -> Result<(), CgroupError> {
        freeze::freeze(&self.seats, within)
    }

    /// Lets them go on.
    ///
    /// # Errors
    /// When there is no means to, or the kernel does not let them go `within` that time.
    pub fn thaw(&self, within: Duration) -> Result<(), CgroupError> {
        freeze::thaw(&self.seats, within)
    }

    /// Kills every process, frozen or not, and returns when none is left; a group that was
    /// frozen is thawed then. Somebody else must reap them.
    ///
    /// # Errors
    /// [`CgroupError::Leftover`] when some outlive it by the time given.
    pub fn kill(&self, within: Duration) -> Result<(), CgroupError> {
        kill::kill(&self.seats, within)
    }

    /// What was used since the group was made. What leaves that are removed had counted of
    /// killed and refused processes is lost in the first generation, so read before removing.
    ///
    /// # Errors
    /// When a control file cannot be read.
    pub fn statistics(&self) -> Result<Statistics, CgroupError> {
        statistics::of(&self.seats)
    }

    /// Something to wait on until memory runs out in the group or in a leaf that it has now.
    ///
    /// # Errors
    /// When memory is not under control here.
    pub fn watch_oom(&self) -> Result<OomWatch, CgroupError> {
        OomWatch::new(&self.seats)
    }

    /// The processes in all leaves.
    ///
    /// # Errors
    /// When a control file cannot be read.
    pub fn processes(&self) -> Result<Vec<i32>, CgroupError> {
        Ok(self.seats.members()?.into_iter().collect())
    }

    /// Removes the leaves and the group. There must be no process left in it; the kernel may
    /// need a moment after the last is gone, and that is waited for.
    ///
    /// # Errors
    /// [`CgroupError::Busy`] when a directory is still in use when the time is up. The others
    /// are gone then, and it can be tried again.
    pub fn remove(&self, within: Duration) -> Result<(), CgroupError> {
        remove_seats(&self.seats, within, Home::RemoveWhenEmpty)
    }
}

/// Refuses what the policy does not accept.
pub(super) fn hold_to(demand: Demand, report: Report) -> Result<Report, CgroupError> {
    match demand {
        Demand::Enforced if report.missing().next().is_some() => Err(CgroupError::NotEnforced {
            report: Box::new(report),
        }),
        Demand::Enforced | Demand::BestEffort => Ok(report),
    }
}

/// Makes the group's directory of the second generation, pushed as soon as it is there.
pub(super) fn take_unified_seat(
    host: &Host,
    id: &str,
    seats: &mut Seats,
) -> Result<(), CgroupError> {
    if let Some(unified) = host.unified() {
        seats.0.push(take_seat(unified, id, Vec::new())?);
    }
    Ok(())
}

/// Makes those of the first, for what the second has no controllers for.
pub(super) fn take_legacy_seats(
    host: &Host,
    id: &str,
    limits: &Limits,
    seats: &mut Seats,
) -> Result<(), CgroupError> {
    let can_freeze = seats.freeze_means() == FreezeMeans::Unified;
    let can_account = seats.unified().is_some();
    for hierarchy in host
        .writable()
        .filter(|hierarchy| hierarchy.version == Version::V1)
    {
        let is_used = |controller: &Controller| match controller {
            Controller::Memory | Controller::Pids => true,
            Controller::Io => !limits.io.is_empty(),
            Controller::Cpu => limits.cpu_millis.is_some(),
            Controller::Freezer => !can_freeze,
            Controller::CpuAccounting => !can_account,
        };
        let used: Vec<Controller> = hierarchy
            .controllers
            .iter()
            .copied()
            .filter(is_used)
            .collect();
        if !used.is_empty() {
            seats.0.push(take_seat(hierarchy, id, used)?);
        }
    }
    Ok(())
}

fn take_seat(
    hierarchy: &Hierarchy,
    id: &str,
    mut controllers: Vec<Controller>,
) -> Result<Seat, CgroupError> {
    let directory = make_directory(hierarchy, id)?;
    match hierarchy.version {
        Version::V1 if controllers.contains(&Controller::Memory) => {
            let failure = directory.failure("set up", "");
            v1::prepare_memory(&directory).map_err(failure)?;
        }
        Version::V1 => {}
        Version::V2 => {
            controllers = v2::controllers_of(&directory);
            v2::hand_down(&directory, &controllers);
        }
    }
    Ok(Seat {
        hierarchy: hierarchy.name.clone(),
        version: hierarchy.version,
        controllers,
        directory: Arc::new(directory),
        path: join(&hierarchy.path, &format!("{HOME}/{id}")),
        holder: Holder::Own,
    })
}

fn make_directory(hierarchy: &Hierarchy, id: &str) -> Result<Directory, CgroupError> {
    let path = hierarchy.directory.join(HOME).join(id);
    let failure = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => CgroupError::Exists { path: path.clone() },
        _ => CgroupError::Io {
            deed: "make control group",
            path: path.clone(),
            source,
        },
    };
    let home = hierarchy.directory.join(HOME);
    let open_home = || match Directory::open(&home) {
        Err(error) if is_gone(&error) => Directory::open(&hierarchy.directory)?.ensure_child(HOME),
        opened => opened,
    };
    let mut last = io::ErrorKind::NotFound.into();
    for _ in 0..HOME_ATTEMPTS {
        let made = open_home().and_then(|home| {
            if hierarchy.version == Version::V2 {
                v2::prepare_home(hierarchy, &home);
            }
            home.create_child(id)
        });
        match made {
            Err(error) if is_gone(&error) => last = error,
            made => return made.map_err(failure),
        }
    }
    Err(failure(last))
}

/// Sets all limits of a group that has all its directories.
pub(super) fn apply_all(host: &Host, seats: &Seats, limits: &Limits) -> Report {
    Report {
        limits: Limit::ALL
            .map(|limit| (limit, apply(host, seats, limit, limits)))
            .into(),
        freeze: seats.freeze_means(),
        kill: seats.kill_means(),
    }
}

fn apply(host: &Host, seats: &Seats, limit: Limit, limits: &Limits) -> Outcome {
    if !limits.ask_for(limit) {
        return Outcome::NotRequested;
    }
    match seats.with(limit.controller()) {
        Some(seat) => apply_in(seat, limit, limits),
        None => Outcome::NotEnforced(host.reason_against(limit.controller())),
    }
}

pub(super) fn apply_in(seat: &Seat, limit: Limit, limits: &Limits) -> Outcome {
    match seat.version {
        Version::V1 => v1::apply(&seat.directory, limit, limits),
        Version::V2 => v2::apply(&seat.directory, limit, limits),
    }
}
