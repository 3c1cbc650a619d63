//! Machines that are set up in another way than most, for users without root: with file systems mounted
//! in system directories, without user namespaces, with a home that cannot be written to.
//!
//! Each is made by mounts in namespaces that end with the command, so these tests are the same for root:
//! it is an ordinary user there, too.

use crate::support::{Place, Told};

/// What the program says on a machine where this was done before it starts.
fn on_a_machine(place: &Place, done: &str, arguments: &[&str]) -> Told {
    const AS_ROOT: &str = r#"
        set -e
        eval "$1"; shift
        exec unshare --user --map-user=1000 --map-group=1000 "$@""#;
    let starter = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        AS_ROOT,
        "sh",
        done,
    ];
    let output = place.zareba_below(&starter, arguments).output().unwrap();
    Told::from(output)
}

/// What the program says when this starts it.
fn on_machine_of(place: &Place, starter: &[&str], arguments: &[&str]) -> Told {
    Told::from(place.zareba_below(starter, arguments).output().unwrap())
}

/// What a command prints that must end well.
fn printed(done: &str, command: &str) -> String {
    let place = Place::new();
    let told = on_a_machine(&place, done, &["run", "--", command]);
    assert_eq!(told.code, Some(0), "{done}\n{}{}", told.stdout, told.stderr);
    told.stdout
}

const MOUNTED: &str = "mount -t tmpfs none /usr/local/src; echo here > /usr/local/src/file";

#[test]
fn what_is_mounted_below_a_system_directory_is_there_and_changes_stay_inside() {
    let command = "cat /usr/local/src/file; touch /usr/local/src/new /usr/local/bin/new /usr/bin/new && echo changed; ls /usr/bin/env";
    assert_eq!(printed(MOUNTED, command), "here\nchanged\n/usr/bin/env\n");
    for path in ["/usr/bin/new", "/usr/local/bin/new"] {
        assert!(!std::path::Path::new(path).exists(), "{path}");
    }
}

#[test]
fn a_system_that_cannot_be_changed_cannot_be_changed_in_parts_either() {
    let place = Place::new();
    let attempt = "for at in /usr /usr/bin /usr/local /usr/local/src; do touch $at/new && echo $at; done; true";
    let arguments = ["run", "--set", "native.system=read-only", "--", attempt];
    let told = on_a_machine(&place, MOUNTED, &arguments);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    assert!(!told.stdout.contains("\n/usr"), "{}", told.stdout);
    assert_eq!(
        told.stderr.matches("Read-only file system").count(),
        4,
        "{}",
        told.stderr
    );
}

#[test]
fn files_of_etc_that_are_mounts_of_their_own_are_no_obstacle() {
    let mounts = "for name in hosts hostname resolv.conf; do mount --bind /etc/passwd /etc/$name 2>/dev/null || true; done; \
                  mount --bind /etc/passwd /etc/group";
    let command = "cat /etc/hostname; grep -c agent /etc/group; ls -d /etc/shadow /etc/sudoers 2>/dev/null; ls -d /etc/ssl; \
                   echo x >> /etc/profile && echo changed";
    assert_eq!(printed(mounts, command), "sandbox\n1\n/etc/ssl\nchanged\n");
}

/// As with programs that a container's runtime puts into `/usr/bin`.
#[test]
fn a_directory_of_many_files_with_a_mount_in_it_is_shown_as_it_is() {
    let command = "/usr/bin/yes && echo is true; touch /usr/bin/new 2>/dev/null || echo unchanged; touch /usr/new && echo changed";
    let mounts = "mount --bind /bin/true /usr/bin/yes";
    assert_eq!(printed(mounts, command), "is true\nunchanged\nchanged\n");
}

#[test]
fn a_system_directory_may_be_a_file_system_of_its_own() {
    let mounts =
        "mount --bind /usr /usr; mount -t tmpfs none /usr/local; echo here > /usr/local/file";
    let command = "cat /usr/local/file; touch /usr/bin/new && echo changed";
    assert_eq!(printed(mounts, command), "here\nchanged\n");
}

/// A user outside sees only processes of their own; inside, `/proc` shows those of the sandbox.
#[test]
fn processes_of_others_may_be_hidden() {
    let place = Place::new();
    let hidden = "mount -t proc -o hidepid=2 none /proc || exit; exec unshare --user --map-user=1000 --map-group=1000 \"$@\"";
    let starter = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--pid",
        "--fork",
        "sh",
        "-c",
        hidden,
        "sh",
    ];
    let told = on_machine_of(&place, &starter, &["run", "--", "cat /proc/1/comm"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "init\n"),
        "{}",
        told.stderr
    );
}

/// The same with processes that really belong to another user, and with a user that is not mapped.
#[test]
#[ignore = "needs root"]
fn processes_of_another_user_may_be_hidden() {
    let place = Place::new();
    let hidden = r#"
        mount -t proc -o hidepid=2 none /proc
        touch "$HOME/zareba"
        chown -R 1000:1000 "$HOME/.."
        mount --bind "$1" "$HOME/zareba"; shift
        setpriv --reuid=1000 --regid=1000 --clear-groups --inh-caps=-all \
          sh -c 'test ! -e /proc/1 && exec "$HOME/zareba" "$@"' sh "$@" || exit"#;
    let starter = [
        "unshare", "--mount", "--pid", "--fork", "sh", "-ec", hidden, "sh",
    ];
    let told = on_machine_of(&place, &starter, &["run", "--", "cat /proc/1/comm"]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "init\n"),
        "{}",
        told.stderr
    );
}

/// What is listed in `/etc/subuid`, and the programs that read it, are for users who need more than one.
#[test]
fn further_users_are_not_needed() {
    let without = "for at in /etc/subuid /etc/subgid /usr/bin/newuidmap /usr/bin/newgidmap; do \
                   [ ! -e $at ] || mount --bind /dev/null $at; done; ! newuidmap 2>/dev/null";
    assert_eq!(printed(without, "id -u"), "1000\n");
}

/// Others see what is mounted there: theirs are shown in parts, and root's never are.
#[test]
#[ignore = "needs root"]
fn root_finds_an_empty_place_where_something_is_mounted_below_a_system_directory() {
    let place = Place::new();
    let starter = [
        "unshare",
        "--mount",
        "sh",
        "-ec",
        &format!("{MOUNTED}; exec \"$@\""),
        "sh",
    ];
    let command = "ls -A /usr/local/src; touch /usr/local/bin/new && echo changed";
    let told = on_machine_of(&place, &starter, &["run", "--best-effort", "--", command]);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "changed\n"),
        "{}",
        told.stderr
    );
}

const SPENT: &str = "echo 1 > /proc/sys/user/max_user_namespaces";

#[test]
fn namespaces_that_are_used_up_are_told_with_what_helps() {
    let place = Place::new();
    let told = on_a_machine(&place, SPENT, &["run", "--", "true"]);
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    assert!(
        told.stderr.contains("cannot make the namespaces"),
        "{}",
        told.stderr
    );
    let advice = "as root, `sysctl -w user.max_user_namespaces=15000`";
    assert!(told.stderr.contains(advice), "{}", told.stderr);
    assert!(
        told.stderr.contains("`--runtime cli` runs"),
        "{}",
        told.stderr
    );
}

/// Both checks of `doctor` and `run` say the same.
#[test]
fn a_switch_that_forbids_namespaces_is_told_with_the_command_that_allows_them() {
    let place = Place::new();
    let off = "echo 0 > /proc/sys/user/max_user_namespaces; exec \"$@\"";
    let starter = [
        "unshare",
        "--user",
        "--map-root-user",
        "sh",
        "-ec",
        off,
        "sh",
    ];
    let advice = "`sudo sysctl -w user.max_user_namespaces=15000`";
    let told = on_machine_of(&place, &starter, &["doctor"]);
    for check in ["missing  user namespaces", "missing  a trial start"] {
        let mut lines = told.stdout.lines();
        let line = lines.find(|line| line.contains(check));
        assert!(
            line.is_some_and(|line| line.contains(advice)),
            "{}",
            told.stdout
        );
    }
    let told = on_machine_of(&place, &starter, &["run", "--", "true"]);
    assert!(told.stderr.contains(advice), "{}", told.stderr);
}

#[test]
fn doctor_fails_where_no_sandbox_can_start_and_says_why() {
    let place = Place::new();
    let told = on_a_machine(&place, SPENT, &["doctor"]);
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert!(told.stderr.ends_with("what to do\n"), "{}", told.stderr);
    assert!(
        told.stdout.contains("missing  a trial start"),
        "{}",
        told.stdout
    );
    // For a user of another runtime it is no failure.
    let told = on_a_machine(&place, SPENT, &["doctor", "--set", "runtime.kind=cli"]);
    assert_eq!(told.code, Some(0), "{}", told.stderr);
}

#[test]
fn a_home_that_cannot_be_written_to_needs_another_state_directory() {
    let place = Place::new();
    let unwritable = r#"mount -t tmpfs -o ro none "$HOME""#;
    let command = ["run", "--", "echo works"];
    let told = on_a_machine(
        &place,
        &format!("unset ZAREBA_STATE_DIRECTORY; {unwritable}"),
        &command,
    );
    assert_eq!(told.code, Some(122), "{}", told.stderr);
    let advice = "set `state.directory` to a directory that can be written to";
    assert!(told.stderr.contains(advice), "{}", told.stderr);
    let told = on_a_machine(
        &place,
        &format!("unset ZAREBA_STATE_DIRECTORY; {unwritable}"),
        &["doctor"],
    );
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    let trial = told
        .stdout
        .lines()
        .find(|line| line.contains("a trial start"));
    assert!(
        trial.is_some_and(|line| line.contains(advice)),
        "{}",
        told.stdout
    );
    let told = on_a_machine(&place, unwritable, &command);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "works\n"),
        "{}",
        told.stderr
    );
}

/// Root in a container without root is an ordinary user outside.
#[test]
fn root_of_a_user_namespace_is_an_ordinary_user() {
    let place = Place::new();
    let starter = ["unshare", "--user", "--map-root-user", "--mount"];
    let told = on_machine_of(
        &place,
        &starter,
        &["run", "--", "id -u; echo x > file && cat file"],
    );
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "1000\nx\n"),
        "{}",
        told.stderr
    );
}

/// As in a container: user 0 and all users are there, and what root may do elsewhere is not.
#[test]
#[ignore = "needs root"]
fn root_without_capabilities_is_told_which_are_missing() {
    let place = Place::new();
    let starter = [
        "setpriv",
        "--bounding-set=-sys_admin,-sys_ptrace",
        "--inh-caps=-all",
    ];
    for (arguments, code) in [(["run", "--", "true"].as_slice(), 122), (&["doctor"], 1)] {
        let told = on_machine_of(&place, &starter, arguments);
        assert_eq!(told.code, Some(code), "{}{}", told.stdout, told.stderr);
        let advice = "root lacks SYS_ADMIN, SYS_PTRACE here: start it as an ordinary user, or give root these";
        assert!(
            told.stdout.contains(advice) || told.stderr.contains(advice),
            "{}{}",
            told.stdout,
            told.stderr
        );
    }
}

/// As in a container that sees its control groups and cannot change them.
#[test]
#[ignore = "needs root"]
fn root_without_control_groups_has_a_sandbox_only_as_a_best_effort_that_is_told() {
    let place = Place::new();
    let unwritable = "mount --make-rprivate /; for at in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do \
                      mount -o remount,bind,ro $at; done; exec \"$@\"";
    let starter = ["unshare", "--mount", "sh", "-ec", unwritable, "sh"];
    let refused = on_machine_of(&place, &starter, &["run", "--", "true"]);
    assert_eq!(refused.code, Some(122), "{}", refused.stderr);
    let advice = "`--best-effort` goes on without";
    assert!(refused.stderr.contains(advice), "{}", refused.stderr);
    let arguments = [
        "run",
        "--best-effort",
        "--memory",
        "64MiB",
        "--cpus",
        "1",
        "--",
        "echo works",
    ];
    let told = on_machine_of(&place, &starter, &arguments);
    assert_eq!(
        (told.code, told.stdout.as_str()),
        (Some(0), "works\n"),
        "{}",
        told.stderr
    );
    assert!(
        told.stderr.contains("cpus") && !told.stderr.contains("memory"),
        "{}",
        told.stderr
    );
}
