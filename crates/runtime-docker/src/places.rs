//! Places in memory, and how large each may become (NS-17).
//!
//! What lies in them counts as memory of the sandbox, and the kernel gets nothing of it back by killing
//! a process: places that could take all of it would leave none for any later command, and none for the
//! executor. So they share a part of it.

use crate::{DockerOptions, RootMode, Usage, extra, plan::Plan, request};

/// The part of the memory that all places together may take.
const TOGETHER: (u64, u64) = (3, 4);

/// And the part of an empty workspace, which comes first: its size is a setting.
const WORKSPACE: (u64, u64) = (1, 2);

/// Sizes are whole pages, and none is 0, which would be no bound.
const PAGE: u64 = 4096;

const MIB: u64 = 1024 * 1024;
/// What the executor keeps is little.
const STATE_MAX: u64 = 128 * MIB;
/// Places for passing files that few programs use.
const PASSING_MAX: u64 = 64 * MIB;
const VARIABLE_MAX: u64 = 256 * MIB;
/// A socket takes no room.
const DOOR: u64 = 64 * 1024;

/// Shared memory of programs. The Engine would mount it by itself, without a bound on the number of files.
const SHARED: &str = "/dev/shm";

/// An empty file takes more than a kibibyte of the kernel's memory, which counts like what is in files and
/// which no process holds either. With one file for so many bytes, empty files can take an eighth of what a
/// place may hold, and a file of usual size meets the other bound first.
const BYTES_PER_FILE: u64 = 8192;
/// A small place still holds its directory and a few files; 0 would be no bound.
const FILES_MIN: u64 = 16;

/// A place, before it is known which user it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) mode: &'static str,
}

impl Place {
    /// How many files and directories it may hold.
    pub(crate) fn files(&self) -> u64 {
        (self.bytes / BYTES_PER_FILE).max(FILES_MIN)
    }

    /// Whether programs can be started from it. The Engine lets none in shared memory be started.
    pub(crate) fn has_programs(&self) -> bool {
        self.path != SHARED
    }
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) mounted: Vec<Place>,
    pub(crate) shared_bytes: u64,
}

impl Places {
    /// Those of a sandbox. The image's own volumes are among them: the Engine would make them without a
    /// bound.
    pub(crate) fn of(
        options: &DockerOptions,
        plan: &Plan,
        image_volumes: &[String],
        has_door: bool,
    ) -> Self {
        let usage = &options.usage;
        let memory = extra::bytes(&options.extra, "mem_limit").unwrap_or(usage.memory_bytes);
        let mut places = wanted(options, usage, image_volumes, has_door);
        let workspace = options.workspace_path.to_string_lossy();
        let is_mounted = |path: &str| {
            let mut targets = plan.volumes.iter().map(|volume| &volume.target);
            targets.any(|target| target.to_string_lossy() == path)
        };
        places.retain(|place| place.path != workspace && !is_mounted(&place.path));
        let mut left = part(memory, TOGETHER);
        let mut first = None;
        if plan.workspace.is_none() && !is_mounted(&workspace) {
            let bytes = usage.workspace_bytes.min(part(memory, WORKSPACE)).max(PAGE);
            left = left.saturating_sub(bytes);
            let path = workspace.into_owned();
            first = Some(Place {
                path,
                bytes,
                mode: "755",
            });
        }
        share(&mut places, left);
        let shared = places.iter().find(|place| place.path == SHARED);
        let shared_bytes = shared.map_or(PAGE, |place| place.bytes);
        places.extend(first);
        Self {
            mounted: places,
            shared_bytes,
        }
    }
}

/// The places beside the workspace, as large as they may be where there is memory enough.
fn wanted(
    options: &DockerOptions,
    usage: &Usage,
    image_volumes: &[String],
    has_door: bool,
) -> Vec<Place> {
    let scratch = usage.scratch_bytes;
    let shared = extra::bytes(&options.extra, "shm_size").unwrap_or(usage.shm_bytes);
    let mut places = Vec::new();
    let mut add = |path: &str, bytes, mode| {
        let path = path.to_owned();
        places.push(Place { path, bytes, mode });
    };
    add(SHARED, shared, "1777");
    add(request::STATE, scratch.min(STATE_MAX), "700");
    if options.relaxed.root == RootMode::ReadOnly {
        add("/tmp", scratch, "1777");
        add("/var/tmp", scratch.min(VARIABLE_MAX), "1777");
        add("/run", scratch.min(PASSING_MAX), "1777");
        add(request::HOME, scratch, "700");
    }
    if has_door {
        add(request::DOOR, DOOR, "700");
    }
    for volume in image_volumes {
        add(volume, scratch, "700");
    }
    places
}

/// Makes them smaller, each by the same part, until they fit.
fn share(places: &mut [Place], bytes: u64) {
    let sum: u128 = places.iter().map(|place| u128::from(place.bytes)).sum();
    for place in places {
        if sum > u128::from(bytes) {
            let fair = u128::from(place.bytes) * u128::from(bytes) / sum;
            place.bytes = u64::try_from(fair).unwrap_or(bytes);
        }
        place.bytes = (place.bytes / PAGE * PAGE).max(PAGE);
    }
}

fn part(bytes: u64, (some, of): (u64, u64)) -> u64 {
    bytes / of * some
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(wanted: &[u64], bytes: u64) -> Vec<u64> {
        let place = |bytes: &u64| Place {
            path: String::new(),
            bytes: *bytes,
            mode: "700",
        };
        let mut places: Vec<Place> = wanted.iter().map(place).collect();
        share(&mut places, bytes);
        places.into_iter().map(|place| place.bytes).collect()
    }

    #[test]
    fn places_keep_their_sizes_where_they_fit_and_shrink_alike_where_not() {
        assert_eq!(shared(&[8 * PAGE, PAGE], 9 * PAGE), [8 * PAGE, PAGE]);
        assert_eq!(
            shared(&[80 * PAGE, 20 * PAGE], 50 * PAGE),
            [40 * PAGE, 10 * PAGE]
        );
        // None is without a bound.
        assert_eq!(shared(&[80 * PAGE, 0], 50 * PAGE), [50 * PAGE, PAGE]);
        assert_eq!(
            shared(&[u64::MAX, u64::MAX], 8 * PAGE),
            [4 * PAGE, 4 * PAGE]
        );
    }
}
