//! Programs in the home of the user who starts a sandbox, seen from inside.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
};

use tempfile::TempDir;
use zareba_runtime::Runtime as _;
use zareba_runtime_native::{HomeAccess, NativeOptions, NativeRuntime, Walls};

use crate::fixture::{self, output, spec};

/// A home with a tool, and with secrets beside it. Homes below `/tmp` are not shown.
fn home() -> TempDir {
    let home = TempDir::new_in("/var/tmp").unwrap();
    // As a home usually is; the sandbox of root is another user.
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let write = |name: &str, text: &str| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(".cargo/bin/made-tool", "#!/bin/sh\necho from $0\n");
    for secret in [
        ".cargo/credentials.toml",
        ".ssh/id_ed25519",
        ".netrc",
        ".npmrc",
    ] {
        write(secret, "planted-secret");
    }
    symlink("../../.ssh", home.path().join(".cargo/bin/ssh")).unwrap();
    symlink(".ssh", home.path().join(".deno")).unwrap();
    home
}

fn runtime(state: &TempDir, home: &Path, access: HomeAccess) -> NativeRuntime {
    let options = NativeOptions {
        environment: vec![("HOME".into(), home.into())],
        ..fixture::options(state)
    };
    let walls = Walls {
        home_tools: access,
        ..fixture::walls()
    };
    NativeRuntime::new(options, fixture::local_options(), walls)
}

async fn run(access: HomeAccess, home: &TempDir, command: &str) -> String {
    let state = fixture::state();
    let runtime = runtime(&state, home.path(), access);
    let sandbox = runtime.create(spec()).await.unwrap();
    let told = output(&*sandbox, command).await;
    sandbox.close().await.unwrap();
    told
}

#[tokio::test]
async fn a_tool_of_the_home_runs_and_secrets_beside_it_are_absent() {
    let home = home();
    let at = home.path().display();
    let told = run(HomeAccess::ReadOnly, &home, "made-tool").await;
    assert_eq!(told.trim_end(), format!("from {at}/.cargo/bin/made-tool"));
    let command =
        format!("cd {at}; find . | sort; cat .cargo/bin/ssh/id_ed25519 2>&1 | tail -c 26");
    let told = run(HomeAccess::ReadOnly, &home, &command).await;
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            ".",
            "./.cargo",
            "./.cargo/bin",
            "./.cargo/bin/made-tool",
            "./.cargo/bin/ssh",
            "No such file or directory"
        ]
    );
    let login = run(HomeAccess::ReadOnly, &home, "bash -lc made-tool").await;
    assert_eq!(login.trim_end(), format!("from {at}/.cargo/bin/made-tool"));
}

#[tokio::test]
async fn nothing_of_the_home_can_be_changed_and_without_the_setting_there_is_none() {
    let home = home();
    let at = home.path().display();
    let bin = home.path().join(".cargo/bin");
    let command = format!(
        "for deed in 'echo x >> {at}/.cargo/bin/made-tool' 'touch {at}/.cargo/bin/new' \
         'rm -f {at}/.cargo/bin/made-tool' 'chmod 777 {at}/.cargo/bin'; do \
         sh -c \"$deed\" 2>/dev/null && echo \"done: $deed\"; done; echo end"
    );
    let before = fs::read(bin.join("made-tool")).unwrap();
    let told = run(HomeAccess::ReadOnly, &home, &command).await;
    assert_eq!(told.trim_end(), "end");
    assert_eq!(fs::read(bin.join("made-tool")).unwrap(), before);
    assert!(!bin.join("new").exists());
    let hidden = run(
        HomeAccess::Hidden,
        &home,
        &format!("ls {at} 2>&1 | tail -c 26"),
    )
    .await;
    assert_eq!(hidden.trim_end(), "No such file or directory");
}
