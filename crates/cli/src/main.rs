//! The `zareba` program: arguments, and one file per command.
//!
//! `arguments` says what can be typed, `commands` does it, `exit` lists what the program ends
//! with. Data goes to standard output and words to standard error, through `say`.

mod arguments;
mod commands;
mod detached;
mod enforcement;
mod exit;
mod failure;
mod handed_over;
mod home_hint;
mod lines;
mod logging;
mod offspring;
mod output_record;
mod play;
mod programs;
mod quote;
mod sandbox;
mod say;
mod settings;
mod signals;
mod table;
mod terminal_session;
mod user_terminal;

use std::process::ExitCode;

use zareba_config::Environment;

fn main() -> ExitCode {
    // Before the first thread, which all others have it from. A kernel that cannot do this cannot
    // start programs either, and whatever waits for a signal then says so.
    let _ = zareba_confine::let_signals_through();
    let environment = Environment::from_process();
    commands::run(std::env::args_os().collect(), environment).into()
}
