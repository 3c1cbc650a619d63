//! The machine's own directories, under a skeleton and a layer.

use std::{fs, os::unix::net::UnixListener, path::Path};

use zareba_confine::{Access, Entry, EntryKind, Layer, Overlay, OwnFile, Policy, Step};

use crate::{
    harness::Case,
    sandbox::{Ground, as_it_is, bind, overlay, run, run_connect, start, start_ours},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "files_are_added_and_replaced_where_a_skeleton_lies_and_the_machine_stays",
            run: files_are_added_and_replaced_where_a_skeleton_lies_and_the_machine_stays,
        },
        Case {
            name: "a_directory_that_is_not_mirrored_cannot_be_added_to",
            run: a_directory_that_is_not_mirrored_cannot_be_added_to,
        },
        Case {
            name: "what_only_root_can_read_stays_unread_whatever_is_tried_ns_4",
            run: what_only_root_can_read_stays_unread_whatever_is_tried_ns_4,
        },
        Case {
            name: "an_overlay_without_a_layer_takes_no_changes",
            run: an_overlay_without_a_layer_takes_no_changes,
        },
        Case {
            name: "files_of_its_own_lie_above_everything_below_ns_4",
            run: files_of_its_own_lie_above_everything_below_ns_4,
        },
        Case {
            name: "places_in_memory_share_a_cap_and_nothing_else_ns_5",
            run: places_in_memory_share_a_cap_and_nothing_else_ns_5,
        },
        Case {
            name: "what_is_put_into_a_place_comes_to_lie_on_top_of_its_mount",
            run: what_is_put_into_a_place_comes_to_lie_on_top_of_its_mount,
        },
        Case {
            name: "a_program_that_cannot_be_run_is_told_of_and_leaves_nothing",
            run: a_program_that_cannot_be_run_is_told_of_and_leaves_nothing,
        },
        Case {
            name: "a_socket_below_an_overlay_has_nobody_behind_it_ns_4",
            run: a_socket_below_an_overlay_has_nobody_behind_it_ns_4,
        },
        Case {
            name: "a_pipe_below_an_overlay_is_another_one_ns_4",
            run: a_pipe_below_an_overlay_is_another_one_ns_4,
        },
        Case {
            name: "a_whiteout_hides_what_is_below_for_good_ns_4",
            run: a_whiteout_hides_what_is_below_for_good_ns_4,
        },
    ]
}

/// The machine's `/usr` at `/system`, with `bin` mirrored.
fn over_usr(ground: &Ground) -> Policy {
    let skeleton = ground.ours("skeleton");
    ground.ours("skeleton/bin");
    let lower = vec![ground.mapped(&skeleton), as_it_is("/usr")];
    ground.policy(vec![overlay("/system", lower, ground.layer())])
}

fn files_are_added_and_replaced_where_a_skeleton_lies_and_the_machine_stays() {
    let ground = Ground::new(1000);
    let before = fs::read("/usr/bin/env").unwrap();
    let said = run(
        &over_usr(&ground),
        "cd /system/bin
         echo 'echo added' > zareba-added; chmod +x zareba-added; sh zareba-added
         mkdir ../zareba-directory && echo made
         rm env && test ! -e env && echo removed
         echo replaced > new; mv -f new yes; cat yes
         (echo more >> sort) 2>/dev/null || echo not-written
         chmod 777 sort 2>/dev/null || echo not-changed
         stat -c %u sort",
    );
    assert_eq!(
        said,
        "added\nmade\nremoved\nreplaced\nnot-written\nnot-changed\n65534"
    );
    assert_eq!(fs::read("/usr/bin/env").unwrap(), before);
    assert!(!Path::new("/usr/bin/zareba-added").exists());
    assert!(!Path::new("/usr/zareba-directory").exists());
}

fn a_directory_that_is_not_mirrored_cannot_be_added_to() {
    let ground = Ground::new(1000);
    let said = run(
        &over_usr(&ground),
        "touch /system/lib/x 2>/dev/null || echo refused; rm -f /system/lib/os-release 2>/dev/null || echo refused",
    );
    assert_eq!(said, "refused\nrefused");
}

fn what_only_root_can_read_stays_unread_whatever_is_tried_ns_4() {
    let ground = Ground::new(1000);
    let skeleton = ground.ours("skeleton");
    let lower = vec![ground.mapped(&skeleton), as_it_is("/etc")];
    let policy = ground.policy(vec![overlay("/etc", lower, ground.layer())]);
    let said = run(
        &policy,
        "cd /etc; test -e shadow && echo there
         exec 2>/dev/null
         cat shadow; cp shadow copy && cat copy; chmod 644 shadow; cat shadow
         ln shadow link; cat link; mv shadow moved && cat moved; cat shadow; mv -T shadow /tmp/shadow; cat /tmp/shadow
         echo changed >> shadow; cat shadow
         ls -ln shadow | cut -c1-4
         # What everyone can read can be read, and so it was not the overlay that refused.
         test -s passwd && echo readable",
    );
    assert_eq!(said, "there\n-rw-\nreadable");
}

fn an_overlay_without_a_layer_takes_no_changes() {
    let ground = Ground::new(1000);
    let skeleton = ground.ours("skeleton");
    ground.ours("skeleton/bin");
    let lower = vec![ground.mapped(&skeleton), as_it_is("/usr")];
    let policy = ground.policy(vec![overlay("/system", lower, None)]);
    let said = run(
        &policy,
        "test -x /system/bin/env && echo there
         for path in /system/x /system/bin/x; do touch $path 2>&1 | grep -o 'Read-only file system'; done",
    );
    assert_eq!(said, "there\nRead-only file system\nRead-only file system");
}

fn files_of_its_own_lie_above_everything_below_ns_4() {
    let ground = Ground::new(1000);
    let below = ground.ours("below");
    ground.ours("second");
    fs::write(below.join("name"), "the machine's").unwrap();
    let lower = || vec![ground.mapped(&below), ground.mapped(&ground.ours("second"))];
    let with = |layer: Option<Layer>| {
        let own = vec![OwnFile {
            name: "name".to_owned(),
            text: "its own\n".to_owned(),
        }];
        let kind = EntryKind::Overlay(Overlay {
            lower: lower(),
            layer,
            own,
        });
        ground.policy(vec![Entry {
            inside: "/covered".into(),
            kind,
        }])
    };
    let script =
        "cd /covered; cat name; stat -c '%a %u' name; (echo more >> name) 2>/dev/null; cat name";
    assert_eq!(
        run(&with(Some(Layer::Memory)), script),
        "its own\n644 1000\nits own\nmore"
    );
    assert_eq!(run(&with(None), script), "its own\n644 1000\nits own");
    assert_eq!(
        fs::read_to_string(below.join("name")).unwrap(),
        "the machine's"
    );
    // A layer on the disk would keep them.
    let error = start(&with(ground.layer()), Path::new("/bin/sh"), &["sh"])
        .map(|running| running.finish())
        .unwrap_err();
    assert_eq!(error.step, Step::Entry);
}

/// They are directories of one file system; whoever is in one of them sees nothing of another.
fn places_in_memory_share_a_cap_and_nothing_else_ns_5() {
    let ground = Ground::new(1000);
    let place = |inside: &str, mode| Entry {
        inside: inside.into(),
        kind: EntryKind::Memory { mode },
    };
    let policy = ground.policy(vec![place("/one", 0o700), place("/two", 0o1777)]);
    let script = "stat -c %a /one /two /tmp; echo one > /one/file; ls -A /tmp /two; \
                  ls /two/../one/file; \
                  ln /one/file /two/file 2>/dev/null || echo apart; \
                  head -c 2000000 /dev/zero 2>/dev/null > /tmp/big || echo full; \
                  (echo more > /two/file) 2>/dev/null; wc -c < /two/file; rm /tmp/big; \
                  echo more > /two/file; cat /one/file /two/file";
    assert_eq!(
        run(&policy, script),
        "700\n1777\n1777\n/tmp:\n\n/two:\n/two/../one/file\napart\nfull\n0\none\nmore"
    );
}

fn what_is_put_into_a_place_comes_to_lie_on_top_of_its_mount() {
    let ground = Ground::new(1000);
    let entry = |inside: &str, kind| Entry {
        inside: inside.into(),
        kind,
    };
    let policy = ground.policy(vec![
        entry("/place/below", EntryKind::Directory { mode: 0o755 }),
        entry("/place", EntryKind::Memory { mode: 0o755 }),
        entry("/place/above", EntryKind::Directory { mode: 0o755 }),
    ]);
    assert_eq!(run(&policy, "ls /place"), "above");
}

fn a_program_that_cannot_be_run_is_told_of_and_leaves_nothing() {
    let ground = Ground::new(1000);
    // No table of descriptors is that long.
    let descriptors = vec![(fs::File::open("/dev/null").unwrap().into(), i32::MAX - 1)];
    let error = start_ours(&ground.policy(Vec::new()), &|| 0, descriptors)
        .map(|running| running.finish())
        .unwrap_err();
    assert_eq!(error.step, Step::Exec);
    assert_eq!(
        error.source.raw_os_error(),
        Some(rustix::io::Errno::BADF.raw_os_error())
    );
    let children = rustix::process::wait(rustix::process::WaitOptions::NOHANG);
    assert_eq!(children.err(), Some(rustix::io::Errno::CHILD));
}

fn a_socket_below_an_overlay_has_nobody_behind_it_ns_4() {
    let ground = Ground::new(1000);
    let directory = ground.ours("sockets");
    let path = directory.join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let covered = overlay("/covered", vec![ground.mapped(&directory)], ground.layer());
    assert_eq!(
        run_connect(&ground.policy(vec![covered]), "/covered/socket"),
        "ConnectionRefused\nmade our own\nConnectionRefused"
    );
    // Why it matters: the same socket, through a bind that cannot be written to.
    let bound = bind("/bound", &directory, Access::ReadOnly);
    assert_eq!(
        run_connect(&ground.policy(vec![bound]), "/bound/socket"),
        "connected"
    );
}

fn a_pipe_below_an_overlay_is_another_one_ns_4() {
    let ground = Ground::new(1000);
    let directory = ground.ours("pipes");
    let path = directory.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let outside = fs::File::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    rustix::io::write(&outside, b"secret").unwrap();
    let lower = vec![ground.mapped(&directory)];
    let policy = ground.policy(vec![overlay("/covered", lower, ground.layer())]);
    // Opened for both, because for reading alone it would wait for a writer.
    let said = run(
        &policy,
        "test -p /covered/pipe && echo pipe; exec 3<>/covered/pipe; echo own >&3; head -n 1 <&3",
    );
    assert_eq!(said, "pipe\nown");
}

fn a_whiteout_hides_what_is_below_for_good_ns_4() {
    let ground = Ground::new(1000);
    let (above, below) = (ground.ours("above"), ground.ours("below"));
    fs::write(below.join("secret"), "secret").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        above.join("secret"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::empty(),
        0,
    )
    .unwrap();
    let lower = vec![ground.mapped(&above), ground.mapped(&below)];
    let policy = ground.policy(vec![overlay("/covered", lower, ground.layer())]);
    let said = run(
        &policy,
        "cd /covered; ls -A; test -e secret || echo hidden
         echo own > secret; cat secret; rm secret; test -e secret || echo hidden
         mkdir secret; ls -A secret; rmdir secret; test -e secret || echo hidden",
    );
    assert_eq!(said, "hidden\nown\nhidden\nhidden");
}
