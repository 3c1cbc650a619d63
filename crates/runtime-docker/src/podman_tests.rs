//! What is said to Podman, and what it answers, where there is none to see it by.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::*;

fn sent() -> ContainerCreateBody {
    let body = json!({
        "HostConfig": {
            "SecurityOpt": ["no-new-privileges", "seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\"}"],
            "Tmpfs": { "/tmp": "rw,nosuid,size=5,mode=1777,uid=1000,gid=1000" },
            "Ulimits": [{ "Name": "nofile", "Soft": 1, "Hard": 2 }],
            "Mounts": [{ "Type": "bind", "Source": "/a", "Target": "/b", "ReadOnly": true }],
            "IpcMode": "private",
            "PidMode": "",
            "CapDrop": ["ALL"],
        },
    });
    serde_json::from_value(body).unwrap()
}

#[test]
fn a_filter_becomes_a_file_that_is_written_once() {
    let place = tempfile::tempdir().unwrap();
    let adapted = || {
        let mut body = sent();
        adapt(&mut body, place.path()).unwrap();
        body.host_config.unwrap()
    };
    let options = adapted().security_opt.unwrap();
    assert_eq!(adapted().security_opt.unwrap(), options);
    let path = options[1].strip_prefix("seccomp=").unwrap();
    assert_eq!(
        fs::read_to_string(path).unwrap(),
        r#"{"defaultAction":"SCMP_ACT_ERRNO"}"#
    );
    assert_eq!(
        fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o644
    );
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    // Another one in its place is not taken for it.
    fs::write(path, "{}").unwrap();
    assert_eq!(adapted().security_opt.unwrap(), options);
    assert_ne!(fs::read_to_string(path).unwrap(), "{}");
    assert!(options[2].starts_with("mask=/proc/acpi:"), "{}", options[2]);
}

#[test]
fn what_podman_tells_is_compared_in_the_same_words() {
    let place = tempfile::tempdir().unwrap();
    let mut body = sent();
    adapt(&mut body, place.path()).unwrap();
    let told = |change: fn(&mut Value)| {
        let mut wanted = serde_json::to_value(&body.host_config).unwrap();
        let nproc = &wanted["Ulimits"][1];
        assert_eq!(nproc["Name"], "nproc");
        let mut found = json!({
            "SecurityOpt": [wanted["SecurityOpt"][0], wanted["SecurityOpt"][1]],
            "Tmpfs": { "/tmp": "rw,nosuid,size=5,mode=1777,U,rprivate" },
            "Ulimits": [
                { "Name": "RLIMIT_NOFILE", "Soft": 1, "Hard": 2 },
                { "Name": "RLIMIT_NPROC", "Soft": nproc["Soft"], "Hard": nproc["Hard"] },
            ],
            "IpcMode": "shareable",
            "PidMode": "private",
        });
        change(&mut found);
        translate(&mut wanted, &mut found);
        wanted == found || {
            // Empty words and missing ones are the same to whoever compares them.
            forget(&mut wanted, "PidMode");
            forget(&mut found, "PidMode");
            wanted == found
        }
    };
    assert!(told(|_| {}));
    let wrong: [fn(&mut Value); 4] = [
        |it| it["Tmpfs"]["/tmp"] = "rw,nosuid,mode=1777,U".into(),
        |it| it["Ulimits"][0]["Hard"] = 3.into(),
        |it| it["IpcMode"] = "host".into(),
        |it| it["SecurityOpt"][1] = "seccomp=unconfined".into(),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        assert!(!told(change), "{number}");
    }
}

#[test]
fn mounts_are_those_that_were_asked_for_and_no_others() {
    let seen = |mounts: Value| -> ContainerInspectResponse {
        serde_json::from_value(json!({ "Mounts": mounts })).unwrap()
    };
    let right = json!({ "Type": "bind", "Source": "/a", "Destination": "/b", "RW": false });
    let writable = json!({ "Type": "bind", "Source": "/a", "Destination": "/b", "RW": true });
    assert_eq!(compare_mounts(&sent(), &seen(json!([right]))), [""; 0]);
    assert_eq!(compare_mounts(&sent(), &seen(json!([writable]))).len(), 1);
    assert_eq!(compare_mounts(&sent(), &seen(json!([]))).len(), 1);
    assert_eq!(
        compare_mounts(&sent(), &seen(json!([right, writable]))).len(),
        1
    );
}

#[test]
fn the_last_mount_at_a_path_counts() {
    let table = "1 0 0:1 / /proc rw - proc proc rw\n\
                 2 1 0:1 /sys /proc/sys ro,nosuid - proc proc rw\n\
                 3 1 0:1 /sys /proc/sys rw - proc proc rw\n";
    assert_eq!(options_of(table, "/proc/sys"), Some("rw"));
    assert_eq!(options_of(table, "/proc/fs"), None);
}

/// A process that is held by nothing: our own.
#[test]
fn whoever_shares_our_namespaces_is_not_held() {
    let error = check(i64::from(std::process::id())).unwrap_err();
    assert!(error.to_string().contains("shares a namespace"), "{error}");
}
