//! What the kernel says of a process and of the machine.

use std::{fs, io, path::PathBuf};

use anyhow::{Context, bail};

use crate::quantity::Quantity;

/// Memory of a process as `smaps_rollup` counts it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Memory {
    /// Its share of every page, those of its own program file included.
    pub(crate) proportional: Quantity,
    /// Pages that are nobody else's and no copy of a file.
    pub(crate) anonymous: Quantity,
}

pub(crate) fn memory(pid: u32) -> anyhow::Result<Memory> {
    let text = read(pid, "smaps_rollup")?;
    Ok(Memory {
        proportional: kibibytes(&text, "Pss")?,
        anonymous: kibibytes(&text, "Anonymous")?,
    })
}

pub(crate) fn resident(pid: u32) -> anyhow::Result<Quantity> {
    kibibytes(&read(pid, "status")?, "VmRSS")
}

/// The most that was resident since the start or the last [`forget_peak`].
pub(crate) fn peak_resident(pid: u32) -> anyhow::Result<Quantity> {
    kibibytes(&read(pid, "status")?, "VmHWM")
}

pub(crate) fn forget_peak(pid: u32) -> anyhow::Result<()> {
    fs::write(path(pid, "clear_refs"), "5").context("cannot reset the peak of resident memory")
}

/// The processes that any thread of `pid` started and that still live.
pub(crate) fn children(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut children = Vec::new();
    for task in fs::read_dir(path(pid, "task")).context("cannot list the threads")? {
        let list = match fs::read_to_string(task?.path().join("children")) {
            Ok(list) => list,
            // The thread ended meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error).context("cannot list the children of a thread"),
        };
        for child in list.split_ascii_whitespace() {
            children.push(child.parse().context("not the number of a process")?);
        }
    }
    Ok(children)
}

/// Those that we have started for sandboxes: all but a spawner, which starts them and is none.
pub(crate) fn supervisors() -> anyhow::Result<Vec<u32>> {
    let mut supervisors = Vec::new();
    for child in children(std::process::id())? {
        if !read(child, "cmdline")?.contains("\0spawner\0--for\0") {
            supervisors.push(child);
        }
    }
    Ok(supervisors)
}

/// A process and all that descend from it.
pub(crate) fn family(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut family = vec![pid];
    let mut seen = 0;
    while let Some(member) = family.get(seen).copied() {
        family.extend(children(member)?);
        seen += 1;
    }
    Ok(family)
}

/// The name of the program that a process runs, at most 15 letters of it.
pub(crate) fn name(pid: u32) -> anyhow::Result<String> {
    Ok(read(pid, "comm")?.trim_end().to_owned())
}

/// What new programs could take without anything being swapped.
pub(crate) fn memory_available() -> anyhow::Result<Quantity> {
    let text = fs::read_to_string("/proc/meminfo").context("cannot read /proc/meminfo")?;
    kibibytes(&text, "MemAvailable")
}

/// One line on the machine, without which no number here means anything.
pub(crate) fn machine() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&cpus, "model name").unwrap_or("unknown processor");
    let system = rustix::system::uname();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_ascii_whitespace().next().unwrap_or("unknown");
    format!(
        "{} cores ({model}), {} {}, load before the run {load}",
        cores(),
        system.sysname().to_string_lossy(),
        system.release().to_string_lossy(),
    )
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

fn path(pid: u32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

fn read(pid: u32, name: &str) -> anyhow::Result<String> {
    let path = path(pid, name);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim_end() == name).then_some(value.trim())
    })
}

fn kibibytes(text: &str, name: &str) -> anyhow::Result<Quantity> {
    let Some(amount) = field(text, name).and_then(|value| value.strip_suffix("kB")) else {
        bail!("the kernel does not say `{name}`");
    };
    let kibibytes: f64 = amount.trim().parse().context("not an amount of memory")?;
    Ok(Quantity::Bytes(kibibytes * 1024.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLLUP: &str = "00400000-7fff [rollup]\nRss:      4512 kB\nPss:      2048 kB\n\
                          Pss_Dirty: 100 kB\nAnonymous:  512 kB\n";

    #[test]
    fn amounts_are_found_by_their_whole_name() {
        let found = ["Rss", "Pss", "Anonymous"].map(|name| kibibytes(ROLLUP, name).unwrap());
        assert_eq!(found, [4.40625, 2.0, 0.5].map(Quantity::mebibytes));
    }

    #[test]
    fn an_amount_that_is_not_there_is_an_error() {
        let error = kibibytes(ROLLUP, "Swap").unwrap_err().to_string();
        assert_eq!(error, "the kernel does not say `Swap`");
    }

    #[test]
    fn a_family_is_a_process_with_its_children_and_theirs() {
        // A job in the background would have no input otherwise, and end at once.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo started; wait"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = [0; 8];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
        let family = family(std::process::id()).unwrap();
        assert!(family.contains(&child.id()), "{family:?}");
        let grandchild = children(child.id()).unwrap()[0];
        assert!(family.contains(&grandchild), "{family:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn the_memory_of_this_process_is_known() {
        let memory = memory(std::process::id()).unwrap();
        assert!(memory.anonymous.amount() > 0.0, "{memory:?}");
        assert!(
            memory.proportional.amount() > memory.anonymous.amount() / 2.0,
            "{memory:?}"
        );
    }
}
