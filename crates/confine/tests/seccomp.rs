//! The filters that are kept ready are those that the profile compiles to.
#![cfg(target_arch = "x86_64")]

use std::{fs, path::Path};

use zareba_confine::{Permissions, SeccompProfile};

/// Set to `1`, this writes the files anew.
const UPDATE: &str = "ZAREBA_UPDATE_SECCOMP";

#[test]
fn what_is_ready_is_what_the_profile_compiles_to() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/seccomp");
    let profile = fs::read_to_string(directory.join("profile.toml")).unwrap();
    let profile = SeccompProfile::parse(&profile).unwrap();
    let all_inside = Permissions {
        set_id_files: true,
        ..Permissions::NONE
    };
    let cases = [
        (Permissions::NONE, "ready/x86_64-plain.bpf"),
        (all_inside, "ready/x86_64-set-id-files.bpf"),
    ];
    for (permissions, name) in cases {
        let compiled = profile.compile(permissions).unwrap();
        if std::env::var_os(UPDATE).is_some_and(|value| value == "1") {
            fs::write(directory.join(name), compiled.to_bytes()).unwrap();
            continue;
        }
        assert_eq!(
            SeccompProfile::builtin(permissions).unwrap(),
            compiled,
            "{name} is out of date: run this test with {UPDATE}=1"
        );
    }
}
