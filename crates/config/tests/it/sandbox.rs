//! The settings of sandboxes: sizes, shares, rules, and a section inside another.

use zareba_config::{NetworkReach, RuntimeKind, SystemMode, WorkspaceMode};

use crate::case::Case;

#[test]
fn a_sandbox_is_native_and_can_do_little_unless_something_else_is_said() {
    let settings = Case::new().load().settings;
    assert_eq!(settings.runtime.kind, RuntimeKind::Native);
    let native = settings.native;
    assert_eq!(native.workspace_mode, WorkspaceMode::CopyOnWrite);
    assert_eq!(native.system, SystemMode::CopyOnWrite);
    assert_eq!(native.network, NetworkReach::None);
    assert_eq!(
        (native.memory.bytes(), native.disk.bytes()),
        (2 << 30, 4 << 30)
    );
    assert_eq!((native.pids, native.inodes), (512, 200_000));
    assert_eq!(native.cpus.millis(), 2000);
    assert_eq!(
        (settings.pool.native.size, settings.state.directory),
        (0, None)
    );
}

#[test]
fn sizes_and_shares_are_read_from_every_source() {
    let case = Case::new()
        .file(
            "zareba.toml",
            "[native]\nmemory = 536870912\ndisk = \"8G\"\ncpus = 0.5\n",
        )
        .variable("ZAREBA_NATIVE_CPUS", "1.5")
        .set("native.disk=10GiB");
    let native = case.load().settings.native;
    assert_eq!(
        (native.memory.bytes(), native.disk.bytes()),
        (512 << 20, 10 << 30)
    );
    assert_eq!(native.cpus.millis(), 1500);
    assert_eq!(case.origin("native.cpus"), "$ZAREBA_NATIVE_CPUS");
}

#[test]
fn what_is_no_size_is_told_what_one_is() {
    let case = Case::new()
        .set("native.memory=2GB")
        .set("native.memory=-1")
        .set("native.memory=1M")
        .set("native.cpus=many")
        .set("native.cpus=0")
        .set("native.pids=3");
    assert_eq!(
        case.complaints(),
        [
            "flag `--set native.memory`: `native.memory` must be a number of bytes, or one with a unit of \
             1024s such as \"512MiB\" or \"2G\", not \"2GB\"",
            "flag `--set native.memory`: `native.memory` must be a number of bytes, or one with a unit of \
             1024s such as \"512MiB\" or \"2G\", not \"-1\"",
            "flag `--set native.memory`: `native.memory` must be at least 16MiB",
            "flag `--set native.cpus`: `native.cpus` must be a number, not \"many\"",
            "flag `--set native.cpus`: `native.cpus` must be from 0.01 to 1024",
            "flag `--set native.pids`: `native.pids` must be at least 16",
        ]
    );
}

#[test]
fn a_section_inside_another_is_read_from_every_source() {
    let size = |case: Case| case.load().settings.pool.native.size;
    for text in [
        "[pool.native]\nsize = 3\n",
        "[pool]\nnative.size = 3\n",
        "pool = { native = { size = 3 } }\n",
    ] {
        assert_eq!(size(Case::new().file("zareba.toml", text)), 3, "{text}");
    }
    assert_eq!(
        size(Case::new().variable("ZAREBA_POOL_NATIVE_SIZE", "4")),
        4
    );
    assert_eq!(size(Case::new().set("pool.native.size=5")), 5);
}

#[test]
fn mistakes_in_a_section_inside_another_are_told_like_any() {
    for (text, complaint) in [
        (
            "[pool.native]\nsizes = 3\n",
            "2:1: unknown key `pool.native.sizes`; did you mean `pool.native.size`?",
        ),
        (
            "[pool.native]\nsize = 257\n",
            "2:1: `pool.native.size` must be at most 256",
        ),
        ("[pool]\nnative = 3\n", "2:1: `pool.native` must be a table"),
        ("pool = 3\n", "1:1: `pool` must be a table"),
    ] {
        let case = Case::new().file("zareba.toml", text);
        assert_eq!(
            case.complaints(),
            [format!("zareba.toml:{complaint}")],
            "{text}"
        );
    }
    let case = Case::new().variable("ZAREBA_POOL_NATIVE_SIZES", "1");
    let complaint = "did you mean `ZAREBA_POOL_NATIVE_SIZE`?";
    assert!(
        case.complaints()[0].ends_with(complaint),
        "{:?}",
        case.complaints()
    );
}

#[test]
fn rules_are_lists_of_texts() {
    let native = Case::new()
        .file(
            "zareba.toml",
            "[native]\nnetwork = \"filtered\"\nallow = [\"*.example.com\"]\n",
        )
        .set("native.deny=[\"bad.example.com\"]")
        .load()
        .settings
        .native;
    assert_eq!(native.network, NetworkReach::Filtered);
    assert_eq!(
        (native.allow, native.deny),
        (
            vec!["*.example.com".to_owned()],
            vec!["bad.example.com".to_owned()]
        )
    );
}

#[test]
fn guarded_names_are_names_directly_in_the_workspace_ns_6() {
    let usual = Case::new().load().settings.native.guarded_names;
    assert!(usual.contains(&".vscode".to_owned()) && usual.contains(&".envrc".to_owned()));
    let none = Case::new().set("native.guarded_names=[]").load();
    assert_eq!(none.settings.native.guarded_names, [""; 0]);
    for bad in ["a/b", "..", "."] {
        let set = format!("native.guarded_names=[\"ok\", \"{bad}\"]");
        assert_eq!(
            Case::new().set(&set).complaints(),
            [
                "flag `--set native.guarded_names`: `native.guarded_names` must be names directly in the \
                 workspace, such as `.envrc`, without `/`"
            ]
        );
    }
}
