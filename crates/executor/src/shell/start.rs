//! Waiting until a shell that was started is ready.

use std::time::Duration;

use tokio::time::Instant;
use zareba_terminal::{Screen, Size};

use super::{
    actor::SCREEN_LIMITS,
    process::{ShellProcess, StartShellError},
    report::{Report, Subject},
};

/// A start-up file of the user's own may take its time, but not for ever.
const START_MAX: Duration = Duration::from_secs(20);

/// The report number that means "ready".
const READY: u64 = 0;

/// Returns a shell with its first report.
pub(super) async fn until_ready(
    mut process: ShellProcess,
    size: Size,
) -> Result<(ShellProcess, Report), StartShellError> {
    let mut screen = Screen::new(size, SCREEN_LIMITS);
    let deadline = Instant::now() + START_MAX;
    let mut chunk = [0; 4096];
    loop {
        let ShellProcess {
            pty,
            child,
            reports,
            ..
        } = &mut process;
        tokio::select! {
            biased;
            () = reports.arrived() => {
                while let Some(report) = reports.reader.next() {
                    if report.subject == Subject::Ended(READY) {
                        // What start-up files print is nobody's output.
                        while let Ok(Some(1..)) = pty.read(&mut chunk) {}
                        return Ok((process, report));
                    }
                }
            }
            _ = child.wait() => {
                while let Ok(Some(length @ 1..)) = pty.read(&mut chunk) {
                    screen.feed(&chunk[..length]);
                }
                let output = screen.text().text;
                return Err(StartShellError::EndedEarly { program: process.program, output });
            }
            _ = pty.readable() => {
                while let Ok(Some(length @ 1..)) = pty.read(&mut chunk) {
                    screen.feed(&chunk[..length]);
                }
            }
            () = tokio::time::sleep_until(deadline) => {
                let seconds = START_MAX.as_secs();
                return Err(StartShellError::TooSlow { program: process.program, seconds });
            }
        }
    }
}
