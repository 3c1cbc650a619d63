//! A root that is an image's, down to one with a single program in it.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use zareba_confine::{Overlay, Policy, Root, Step};

use crate::{
    harness::Case,
    sandbox::{Ground, start},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "an_image_with_one_program_is_a_whole_root",
            run: an_image_with_one_program_is_a_whole_root,
        },
        Case {
            name: "layers_of_an_image_lie_on_one_another",
            run: layers_of_an_image_lie_on_one_another,
        },
        Case {
            name: "a_mount_is_not_led_along_a_link_of_an_image_ns_3",
            run: a_mount_is_not_led_along_a_link_of_an_image_ns_3,
        },
    ]
}

/// A program that needs nothing else.
const BUSYBOX: &str = "/bin/busybox";

/// A root of these directories, with plain ones for mounts above them.
fn over(ground: &Ground, layers: &[&Path]) -> Policy {
    let points = ground.ours("points");
    for point in ["dev", "proc", "tmp"] {
        ground.ours(&format!("points/{point}"));
    }
    let lower = [points.as_path()]
        .iter()
        .chain(layers)
        .map(|layer| ground.mapped(layer))
        .collect();
    Policy {
        root: Root::Overlay(Overlay {
            lower,
            layer: ground.layer(),
            own: Vec::new(),
        }),
        entries: Vec::new(),
        ..ground.policy(Vec::new())
    }
}

fn image(ground: &Ground) -> PathBuf {
    let image = ground.ours("image");
    fs::copy(BUSYBOX, image.join("busybox")).unwrap();
    image
}

fn run(policy: &Policy, script: &str) -> String {
    let arguments = ["busybox", "sh", "-c", script];
    let running = start(policy, Path::new(BUSYBOX), &arguments).unwrap();
    running.finish()
}

fn an_image_with_one_program_is_a_whole_root() {
    let ground = Ground::new(0);
    let image = image(&ground);
    // Where a link leads must not matter.
    symlink("/busybox", image.join("tmp")).unwrap();
    symlink("../../..", image.join("proc")).unwrap();
    let said = run(
        &over(&ground, &[&image]),
        "b() { /busybox \"$@\"; }; b id -u; b ls /; b stat -c %u /busybox; echo own > /own; b cat /own; echo x > /tmp/x
         b rm /busybox; test -e /busybox || echo removed; echo /proc/self/mounts; echo > /dev/null && echo devices",
    );
    assert_eq!(
        said,
        "0\nbusybox\ndev\nproc\ntmp\n0\nown\nremoved\n/proc/self/mounts\ndevices"
    );
    assert!(image.join("busybox").exists());
    assert!(!image.join("own").exists());
}

fn layers_of_an_image_lie_on_one_another() {
    let ground = Ground::new(0);
    let image = image(&ground);
    fs::write(image.join("text"), "below").unwrap();
    fs::write(image.join("gone"), "below").unwrap();
    let above = ground.ours("above");
    fs::write(above.join("text"), "above").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        above.join("gone"),
        rustix::fs::FileType::CharacterDevice,
        rustix::fs::Mode::empty(),
        0,
    )
    .unwrap();
    let said = run(
        &over(&ground, &[&above, &image]),
        "/busybox cat /text; echo; test -e /gone || echo gone",
    );
    assert_eq!(said, "above\ngone");
}

fn a_mount_is_not_led_along_a_link_of_an_image_ns_3() {
    let ground = Ground::new(0);
    let image = image(&ground);
    ground.ours("image/elsewhere");
    symlink("/elsewhere", image.join("proc")).unwrap();
    let policy = Policy {
        root: Root::Overlay(Overlay {
            lower: vec![ground.mapped(&image)],
            layer: ground.layer(),
            own: Vec::new(),
        }),
        ..over(&ground, &[])
    };
    let error = start(&policy, Path::new(BUSYBOX), &["busybox", "true"])
        .map(|running| running.finish())
        .unwrap_err();
    assert_eq!((error.step, error.object.as_str()), (Step::Proc, "/proc"));
}
