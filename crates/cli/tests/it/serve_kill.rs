//! A server that is killed again and again, with clients that try again: nothing that was
//! acknowledged is lost, nothing is done twice (EL-2, EL-7).

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rand::RngExt as _;
use serde_json::json;

use crate::{
    serve_clients::{Worker, Working, check},
    serving::Serving,
    support::Place,
};

/// The longest that a server lives, by far more than one action takes.
const LIFE_MAX: Duration = Duration::from_millis(80);

const SESSION: &str = "loop";

/// Kills a server with these flags so often, `make soak` even more often, at any point of its
/// lives of at most `life_max`, while two clients go on. Then everything must be there, once.
pub(crate) fn kill_again_and_again(
    place: &Place,
    flags: &[&str],
    rounds: usize,
    life_max: Duration,
) -> Result<()> {
    let asked = std::env::var("ZAREBA_TEST_KILL_ROUNDS");
    let rounds = asked.map_or(Ok(rounds), |asked| asked.parse())?;
    let mut server = Serving::start(place, flags)?;
    let line = server.line()?;
    let session = json!({ "id": SESSION, "setup": "nothing" });
    line.ask("POST", "/v1/sessions", Some(&session))?;
    let working = ["one", "two"].map(|shell| Worker::new(SESSION, shell).start(line.clone()));
    for round in 0..rounds {
        if round % 4 == 0 {
            working[0].wait_for_progress()?;
        }
        // At any point of a server's life, its very start included.
        std::thread::sleep(rand::rng().random_range(Duration::ZERO..life_max));
        server.kill()?;
        server = Serving::start(place, flags).with_context(|| format!("after {round} kills"))?;
    }
    let workers: Result<Vec<Worker>> = working.into_iter().map(Working::stop).collect();
    let workers = workers?;
    check(place, flags, &line, SESSION, &workers)?;
    let done: u64 = workers.iter().map(Worker::done).sum();
    ensure!(
        done as usize > rounds / 2,
        "only {done} actions were done in {rounds} lives of a server"
    );
    drop(server);
    Ok(())
}

#[test]
fn nothing_is_lost_or_done_twice_however_often_the_server_is_killed() -> Result<()> {
    let place = Place::new();
    kill_again_and_again(&place, &[], 300, LIFE_MAX)?;
    // The sandbox was found again each time, and is gone now with its session.
    let kept = place.output(&["ps", "--quiet"]);
    ensure!(kept.stdout.trim().is_empty(), "{kept:?}");
    Ok(())
}
