//! What a spawner does to its own memory, for the sake of its copies.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::fd::AsFd as _,
    process::Command,
};

use rustix::process::{WaitId, WaitIdOptions, waitid};
use zareba_confine::fork_off;
use zareba_terminal::HugeProgram;

const ALONE: &str = "ZAREBA_TEST_HUGE_PAGES";

/// In a process of its own, whose first thread runs the test when it is told to use only one.
#[test]
fn a_program_goes_on_in_huge_pages_and_so_do_its_copies() {
    if env::var_os(ALONE).is_some() {
        return hold_and_go_on();
    }
    let name = "spawner::memory::a_program_goes_on_in_huge_pages_and_so_do_its_copies";
    let alone = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--test-threads=1", "--nocapture"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    assert!(alone.status.success(), "{alone:?}");
    let told = String::from_utf8_lossy(&alone.stdout);
    assert!(told.contains("1 passed"), "{told}");
}

/// Goes the whole way, with copies of this process made on it.
fn hold() -> usize {
    let mut program = HugeProgram::default();
    // Whoever has no huge pages to give refuses.
    while program.step().unwrap_or(false) {
        assert_succeeds(|| ());
    }
    program.held()
}

fn assert_succeeds(work: impl FnOnce()) {
    let copy = fork_off(work).unwrap();
    let ended = waitid(WaitId::PidFd(copy.as_fd()), WaitIdOptions::EXITED);
    assert_eq!(ended.unwrap().unwrap().exit_status(), Some(0));
}

fn hold_and_go_on() {
    let held = hold();
    if held == 0 {
        assert!(!has_huge_pages());
        return;
    }
    assert!(executable_in_huge_pages() > 0);
    assert_cannot_be_changed();
    // Nothing of its file is left where they are.
    assert_eq!(hold(), 0);
    assert_succeeds(|| assert!(executable_in_huge_pages() > 0));
}

/// Whether the kernel joins pages of files in memory when it is told to.
fn has_huge_pages() -> bool {
    let setting = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let setting = fs::read_to_string(setting).unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse().ok());
    let release: [u32; 2] = [numbers.next().unwrap(), numbers.next().unwrap()];
    !setting.is_empty() && !setting.contains("[deny]") && release >= [6, 1]
}

/// All copies share them, and what one of them could write would be another's program.
fn assert_cannot_be_changed() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let held: Vec<&str> = maps
        .lines()
        .filter(|line| line.contains("memfd:zareba-program"))
        .collect();
    assert!(held.iter().any(|line| line.contains(" r-xp ")), "{maps}");
    for line in held {
        assert!(
            !line.split(' ').nth(1).unwrap().contains(['w', 's']),
            "{line}"
        );
        let range = line.split(' ').next().unwrap();
        let file = format!("/proc/self/map_files/{range}");
        let opened = OpenOptions::new().write(true).open(&file);
        let written = opened.and_then(|mut file| file.write_all(&[0]));
        let refused = written.unwrap_err().kind();
        assert_eq!(refused, ErrorKind::PermissionDenied, "{line}");
    }
}

/// Kilobytes of huge pages that this process has for programs.
fn executable_in_huge_pages() -> usize {
    let mappings = fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_executable = false;
    let mut sum = 0;
    for line in mappings.lines() {
        if let Some(amount) = line.strip_prefix("ShmemPmdMapped:") {
            let amount: usize = amount.trim().trim_end_matches(" kB").parse().unwrap();
            sum += if is_executable { amount } else { 0 };
        } else if line.contains(" r-xp ") {
            is_executable = true;
        } else if line
            .split(' ')
            .nth(1)
            .is_some_and(|word| word.len() == 4 && word.ends_with('p'))
        {
            is_executable = false;
        }
    }
    sum
}
