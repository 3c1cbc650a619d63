//! Terminals and the programs on them, as a user of the crate sees them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper that cannot do its work fails the test"
)]

mod child;
mod pty;
mod spawn;

use std::{ffi::OsString, path::Path, time::Duration};

use zareba_terminal::{Limits, Pty, Screen, Size, Spawn};

const SIZE: Size = Size {
    columns: 80,
    rows: 24,
};

/// How long anything may take before the test fails; nothing waits for it to pass.
const LONG: Duration = Duration::from_secs(30);

/// A POSIX shell with a script, in `/`, with a search path and nothing else.
fn script(text: &str) -> Spawn {
    let mut spawn = Spawn::new(Path::new("/bin/sh"), Path::new("/"));
    spawn.arguments = vec!["-c".into(), text.into()];
    spawn.environment = vec![(
        "PATH".into(),
        OsString::from("/usr/local/bin:/usr/bin:/bin"),
    )];
    spawn
}

/// What a person at the terminal sees once `expected` is there.
async fn see(pty: &Pty, screen: &mut Screen, expected: &str) -> String {
    let looking = async {
        let mut chunk = [0; 4096];
        loop {
            while let Some(length @ 1..) = pty.read(&mut chunk).unwrap() {
                screen.feed(&chunk[..length]);
            }
            if screen.text().text.contains(expected) {
                return;
            }
            pty.readable().await.unwrap();
        }
    };
    if tokio::time::timeout(LONG, looking).await.is_err() {
        panic!("{expected:?} never came, only {:?}", screen.text().text);
    }
    screen.text().text
}

fn screen() -> Screen {
    Screen::new(
        SIZE,
        Limits {
            lines: 1000,
            history_bytes: 1 << 20,
        },
    )
}
