//! Attempts on files, as far as Landlock and the filter decide about them; mounts are tested
//! elsewhere.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::PermissionsExt as _,
    process::Command,
};

use libc::{EACCES, EPERM};
use rustix::fs::{CWD, FileType, Mode};

use crate::victim::{Case, Control, Outcome};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::refused(
            "ns11_reading_a_file_that_is_not_listed_is_refused",
            EACCES,
            |setting| Outcome::of(File::open(setting.outside.join("file"))),
        ),
        Case::refused(
            "ns11_reading_through_a_symbolic_link_is_refused",
            EACCES,
            |setting| {
                let link = setting.inside.join("link");
                std::os::unix::fs::symlink(setting.outside.join("file"), &link).unwrap();
                Outcome::of(File::open(link))
            },
        ),
        Case::refused(
            "ns11_reading_through_proc_self_root_is_refused",
            EACCES,
            |setting| {
                let outside = setting.outside.join("file");
                let relative = outside.strip_prefix("/").unwrap();
                Outcome::of(File::open(
                    std::path::Path::new("/proc/self/root").join(relative),
                ))
            },
        ),
        Case::refused(
            "ns11_creating_a_file_outside_is_refused",
            EACCES,
            |setting| Outcome::of(File::create(setting.outside.join("new"))),
        ),
        Case::refused(
            "ns11_a_hard_link_to_the_outside_is_refused",
            libc::EXDEV,
            |setting| {
                Outcome::of(fs::hard_link(
                    setting.outside.join("file"),
                    setting.inside.join("file"),
                ))
            },
        ),
        Case::refused("ns11_moving_a_file_out_is_refused", EACCES, |setting| {
            fs::write(setting.inside.join("file"), "inside").unwrap();
            Outcome::of(fs::rename(
                setting.inside.join("file"),
                setting.outside.join("moved"),
            ))
        }),
        // Root may write there, an ordinary user may not anyway.
        Case::refused("ns11_changing_a_system_file_is_refused", EACCES, |_| {
            Outcome::of(OpenOptions::new().append(true).open("/etc/passwd"))
        })
        .control(Control::AsRoot),
        Case::refused(
            "ns11_running_a_program_that_is_not_listed_is_refused",
            EACCES,
            |setting| {
                let program = setting.inside.join("program");
                fs::copy("/bin/true", &program).unwrap();
                fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
                Outcome::of(Command::new(program).status())
            },
        ),
        // Number 0:0, which an ordinary user may make: in an upper layer it deletes a file below.
        Case::refused("ns10_a_device_node_is_refused", EPERM, |setting| {
            let path = setting.inside.join("whiteout");
            Outcome::of(rustix::fs::mknodat(
                CWD,
                &path,
                FileType::CharacterDevice,
                Mode::RUSR,
                0,
            ))
        }),
        Case::works("a_named_pipe_can_be_made", |setting| {
            Outcome::of(rustix::fs::mknodat(
                CWD,
                setting.inside.join("pipe"),
                FileType::Fifo,
                Mode::RUSR,
                0,
            ))
        }),
        Case::works("files_inside_can_be_written_moved_and_removed", |setting| {
            let [one, two] = ["one", "two"].map(|name| setting.inside.join(name));
            fs::create_dir(&one).unwrap();
            fs::create_dir(&two).unwrap();
            let moved = fs::write(one.join("file"), "text")
                .and_then(|()| fs::rename(one.join("file"), two.join("file")))
                .and_then(|()| File::create(two.join("file")))
                .and_then(|_| fs::remove_dir_all(&two));
            Outcome::of(moved)
        }),
    ]
}
