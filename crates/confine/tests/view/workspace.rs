//! Names in a workspace that cannot be changed although the rest can.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use zareba_confine::{Access, Entry, EntryKind, Lower, Policy, Step};

use crate::{
    harness::Case,
    sandbox::{Ground, bind, overlay, owner, run, start},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "hooks_stay_as_they_are_in_a_workspace_that_can_be_changed_ns_6",
            run: hooks_stay_as_they_are_in_a_workspace_that_can_be_changed_ns_6,
        },
        Case {
            name: "a_place_with_a_mount_can_be_neither_moved_nor_removed_ns_6",
            run: a_place_with_a_mount_can_be_neither_moved_nor_removed_ns_6,
        },
        Case {
            name: "a_link_that_took_the_place_of_a_workspace_is_not_followed_ns_4",
            run: a_link_that_took_the_place_of_a_workspace_is_not_followed_ns_4,
        },
    ]
}

fn guarded(ground: &Ground) -> Policy {
    let workspace = ground.ours("workspace");
    ground.ours("workspace/.git/hooks");
    fs::write(workspace.join(".git/config"), "config\n").unwrap();
    let again = |inside: &str, access| Entry {
        inside: inside.into(),
        kind: EntryKind::Again { access },
    };
    ground.policy(vec![
        bind("/workspace", &workspace, Access::ReadWrite),
        again("/workspace/.git", Access::ReadWrite),
        again("/workspace/.git/hooks", Access::ReadOnly),
        again("/workspace/.git/config", Access::ReadOnly),
    ])
}

fn hooks_stay_as_they_are_in_a_workspace_that_can_be_changed_ns_6() {
    let ground = Ground::new(1000);
    let said = run(
        &guarded(&ground),
        "cd /workspace/.git; exec 2>/dev/null
         echo yes > ../file && echo written; echo ref > HEAD && echo written
         touch hooks/pre-commit || echo refused
         echo evil >> config || echo refused
         rm -f config || echo refused; echo x > new; mv new config || echo refused; cat config",
    );
    assert_eq!(
        said,
        "written\nwritten\nrefused\nrefused\nrefused\nrefused\nconfig"
    );
    let workspace = ground.ours("workspace");
    assert_eq!(fs::read_to_string(workspace.join("file")).unwrap(), "yes\n");
    assert_eq!(
        fs::read_dir(workspace.join(".git/hooks")).unwrap().count(),
        0
    );
}

fn a_place_with_a_mount_can_be_neither_moved_nor_removed_ns_6() {
    let ground = Ground::new(1000);
    let said = run(
        &guarded(&ground),
        "cd /workspace; exec 2>/dev/null
         mv -T .git moved || echo refused; rm -rf .git || echo refused
         mv -T .git/hooks .git/moved || echo refused; mkdir x && mv -T x .git || echo refused
         ls -A .git",
    );
    assert_eq!(said, "refused\nrefused\nrefused\nrefused\nconfig\nhooks");
}

/// A workspace below a directory that another sandbox can write to, which replaces a part of its path.
fn a_link_that_took_the_place_of_a_workspace_is_not_followed_ns_4() {
    let ground = Ground::new(1000);
    let chosen = ground.ours("shared/project");
    fs::write(ground.ours("other/project").join("key"), "secret").unwrap();
    let entries = |path: PathBuf| {
        let lower = Lower {
            path: path.clone(),
            owner: owner(),
            is_direct: true,
        };
        let bound = EntryKind::Bind {
            source: path,
            access: Access::ReadOnly,
            owner: owner(),
            is_direct: true,
        };
        [
            Entry {
                inside: "/workspace".into(),
                kind: bound,
            },
            overlay("/workspace", vec![lower], ground.layer()),
        ]
    };
    for entry in entries(chosen.clone()) {
        assert_eq!(
            run(&ground.policy(vec![entry]), "ls /workspace; echo ran"),
            "ran"
        );
    }

    let shared = ground.ours("shared");
    fs::rename(&shared, shared.with_file_name("moved")).unwrap();
    symlink(ground.ours("other"), &shared).unwrap();
    assert!(chosen.join("key").exists());
    for entry in entries(chosen) {
        let error = start(
            &ground.policy(vec![entry]),
            Path::new("/bin/true"),
            &["true"],
        )
        .map(|running| running.finish())
        .unwrap_err();
        assert_eq!(error.step, Step::Entry, "{error}");
    }
}
