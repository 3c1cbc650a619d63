//! Package managers inside: apt-get, pip, npm and cargo install what was made beside them, without a
//! network. In containers, in the native sandbox with an image, and in the native sandbox with the
//! programs of its machine, for a user without rights.
//!
//! `docs/packages.md` has these commands.

use std::{process::Command, time::Duration};

use zareba_runtime::{Runtime as _, Sandbox, SandboxSpec};
use zareba_runtime_docker::{RootMode, SandboxUser, VolumeRequest};

use crate::{
    fixture::{
        DEBIAN, docker_at, engine_socket, fixture, fixture_with, output, program, run, spec,
    },
    inside::{LIFTED, USER, in_container},
};

/// A repository of one package, and the package from it.
const APT: &str = r#"(set -e
mkdir -p repository greeting/DEBIAN greeting/usr/bin
printf '#!/bin/sh\necho hello from apt\n' > greeting/usr/bin/greeting
chmod 755 greeting/usr/bin/greeting
printf 'Package: greeting\nVersion: 1.0\nArchitecture: all\nMaintainer: A <a@example.com>\nDescription: hello\n' \
  > greeting/DEBIAN/control
dpkg-deb --root-owner-group --build greeting repository/greeting.deb >/dev/null
cd repository
{ cat ../greeting/DEBIAN/control
  echo "Filename: ./greeting.deb"; echo "Size: $(stat -c %s greeting.deb)"
  echo "SHA256: $(sha256sum greeting.deb | cut -d ' ' -f 1)"; } > Packages
rm -rf /etc/apt/sources.list.d
echo "deb [trusted=yes] file:$PWD ./" > /etc/apt/sources.list
apt-get update 2>&1
apt-get install -y greeting 2>&1
greeting)"#;

/// A wheel, installed into a virtual environment and for the user.
const PIP: &str = r#"(set -e
mkdir -p wheels
python3 - <<'END'
import zipfile
entry = "greeting-1.0.dist-info/"
with zipfile.ZipFile("wheels/greeting-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("greeting.py", "def main(): print('hello from pip')\n")
    wheel.writestr(entry + "METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    wheel.writestr(entry + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(entry + "entry_points.txt", "[console_scripts]\ngreeting = greeting:main\n")
    wheel.writestr(entry + "RECORD", "")
END
python3 -m venv venv
venv/bin/pip install --quiet --no-index --find-links wheels greeting
venv/bin/greeting
pip3 install --quiet --user --break-system-packages --no-warn-script-location \
  --no-index --find-links wheels greeting
"$HOME/.local/bin/greeting")"#;

/// A tarball, installed for the user and into a project.
const NPM: &str = r#"(set -e
mkdir -p package project
printf '{"name": "greeting", "version": "1.0.0", "bin": "greeting.js"}' > package/package.json
printf '#!/usr/bin/env node\nconsole.log("hello from npm")\n' > package/greeting.js
(cd package && npm pack --loglevel error >/dev/null)
npm install --loglevel error --offline --global --prefix "$HOME/node" ./package/greeting-1.0.0.tgz >/dev/null
"$HOME/node/bin/greeting"
cd project
npm install --loglevel error --offline --no-audit ../package/greeting-1.0.0.tgz >/dev/null
npx --offline greeting)"#;

/// A package that needs another one beside it. There is no linker, so both are libraries.
const CARGO: &str = r#"(set -e
mkdir -p greeting/src user/src
printf '[package]\nname = "greeting"\nversion = "1.0.0"\nedition = "2021"\n' > greeting/Cargo.toml
echo 'pub const TEXT: &str = "hello";' > greeting/src/lib.rs
printf '[package]\nname = "user"\nversion = "1.0.0"\nedition = "2021"\n' > user/Cargo.toml
printf '[dependencies]\ngreeting = { path = "../greeting" }\n' >> user/Cargo.toml
echo 'pub fn text() -> &'"'static str { greeting::TEXT }" > user/src/lib.rs
cd user
export PATH="/usr/local/rust/bin:$PATH"
cargo build --quiet --offline
ls target/debug/libuser.rlib
echo hello from cargo)"#;

/// The toolchain that builds this, mounted where the scripts look for it.
fn toolchain() -> String {
    let told = Command::new("rustc").args(["--print", "sysroot"]).output();
    let path = String::from_utf8(told.unwrap().stdout).unwrap();
    format!("{}:/usr/local/rust:ro", path.trim())
}

/// Package managers may be silent for long on a busy machine.
fn patient() -> SandboxSpec {
    let patience = Duration::from_secs(300);
    SandboxSpec {
        no_change_timeout: patience,
        timeout: patience,
        ..spec()
    }
}

async fn prints(sandbox: &dyn Sandbox, script: &str, lines: &[&str]) {
    let said = output(sandbox, script).await;
    for line in lines {
        assert!(said.contains(line), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pip_npm_and_cargo_install_for_the_user_of_a_container() {
    let fixture = fixture_with(DEBIAN, |options| {
        options.volumes = VolumeRequest::parse_list(&toolchain()).unwrap();
    });
    let sandbox = fixture.runtime.create(patient()).await.unwrap();
    prints(&*sandbox, PIP, &["hello from pip\nhello from pip"]).await;
    prints(&*sandbox, NPM, &["hello from npm\nhello from npm"]).await;
    prints(&*sandbox, CARGO, &["hello from cargo"]).await;
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// An image in which apt was used by a root with all rights, as in most.
fn image_where_apt_was_used() -> String {
    let docker = |arguments: &[&str]| docker_at(&engine_socket(), arguments);
    let used =
        "install -d -o _apt -m 700 /var/cache/apt/archives/partial /var/lib/apt/lists/partial";
    let container = docker(&["create", "--network", "none", DEBIAN, "sh", "-ec", used]);
    docker(&["start", "--attach", container.trim()]);
    let image = docker(&["commit", container.trim()]);
    docker(&["rm", container.trim()]);
    image.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn apt_get_installs_in_a_container_for_root_with_a_writable_root() {
    let image = image_where_apt_was_used();
    let fixture = fixture_with(&image, |options| {
        options.user = SandboxUser::Numbers { uid: 0, gid: 0 };
        options.relaxed.root = RootMode::Writable;
    });
    let sandbox = fixture.runtime.create(patient()).await.unwrap();
    prints(&*sandbox, APT, &["hello from apt"]).await;
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
    docker_at(&engine_socket(), &["rmi", &image]);
}

/// Nothing is written into containers that could not use it.
#[tokio::test(flavor = "multi_thread")]
async fn the_setting_of_apt_is_there_for_root_only() {
    let fixture = fixture(DEBIAN);
    let sandbox = fixture.sandbox().await;
    let (code, _) = run(&*sandbox, "test -e /etc/apt/apt.conf.d/99zareba").await;
    assert_eq!(code, 1);
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// A machine whose programs are those of the Debian image, and a user without rights on it.
#[test]
fn pip_npm_and_cargo_install_for_the_user_of_a_native_sandbox() {
    let toolchain = toolchain();
    let options = [&USER[..], &LIFTED, &["--volume", &toolchain]].concat();
    for (script, line) in [
        (PIP, "hello from pip\nhello from pip\n"),
        (NPM, "hello from npm\nhello from npm\n"),
        (CARGO, "hello from cargo\n"),
    ] {
        let told = in_container(&options, DEBIAN, &["zareba", "run", "--", script]);
        assert!(
            told.code == Some(0) && told.stdout.ends_with(line),
            "{told:?}"
        );
    }
}

#[test]
fn apt_get_pip_and_npm_install_in_a_native_sandbox_with_an_image() {
    let place = tempfile::Builder::new().prefix("zr").tempdir().unwrap();
    let archive = place.path().join("debian.tar");
    let archive = archive.to_str().unwrap();
    docker_at(&engine_socket(), &["save", "--output", archive, DEBIAN]);
    let zareba = |arguments: &[&str]| {
        let output = Command::new(program())
            .args(arguments)
            .env_clear()
            .env("ZAREBA_STATE_DIRECTORY", place.path().join("state"))
            .env("HOME", place.path())
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    zareba(&["image", "import", "--name", "debian", archive]);
    for (script, line) in [
        (APT, "hello from apt\n"),
        (PIP, "hello from pip\nhello from pip\n"),
        (NPM, "hello from npm\nhello from npm\n"),
    ] {
        let said = zareba(&["run", "--best-effort", "--image", "debian", "--", script]);
        assert!(said.ends_with(line), "{said}");
    }
}
