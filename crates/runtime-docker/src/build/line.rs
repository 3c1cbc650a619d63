//! Builds of clients in line: nobody keeps all others waiting.
//!
//! Each client has one build at a time, however many it asks for, and of those who wait the first
//! one that may run does. Two builds never make the same name at once.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::BuildError;

/// Builds at once. One can keep all processors busy.
const RUNNING_MAX: usize = 2;
/// Builds that wait, of all clients and of each.
const WAITING_MAX: usize = 16;
const WAITING_EACH_MAX: usize = 4;

/// Those that run and those that wait. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    running: Vec<Build>,
    waiting: VecDeque<(Build, oneshot::Sender<()>)>,
    /// How many there ever were.
    count: u64,
}

#[derive(Clone, Debug)]
struct Build {
    number: u64,
    client: String,
    names: Vec<String>,
}

/// A place in the line, which is given up when it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    line: Line,
    number: u64,
}

impl Line {
    /// Waits until a build may begin. Dropping the future leaves the line.
    ///
    /// # Errors
    /// When too many wait already.
    pub(super) async fn turn(&self, client: &str, names: &[String]) -> Result<Turn, BuildError> {
        let (turn, begun) = self.join(client, names)?;
        // Not answered only if the place was given up, and it is ours.
        let _ = begun.await;
        Ok(turn)
    }

    fn join(
        &self,
        client: &str,
        names: &[String],
    ) -> Result<(Turn, oneshot::Receiver<()>), BuildError> {
        let mut state = self.lock();
        let waiting = state.waiting.iter();
        let ours = waiting.filter(|(build, _)| build.client == client).count();
        if state.waiting.len() >= WAITING_MAX || ours >= WAITING_EACH_MAX {
            return Err(BuildError::Busy);
        }
        let number = state.count;
        state.count += 1;
        let (begin, begun) = oneshot::channel();
        let build = Build {
            number,
            client: client.to_owned(),
            names: names.to_vec(),
        };
        state.waiting.push_back((build, begin));
        state.advance();
        let line = self.clone();
        Ok((Turn { line, number }, begun))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Begins what may begin.
    fn advance(&mut self) {
        while self.running.len() < RUNNING_MAX {
            let running = &self.running;
            let may_begin = |build: &Build| running.iter().all(|other| !build.is_against(other));
            let next = self.waiting.iter().position(|(build, _)| may_begin(build));
            let Some((build, begin)) = next.and_then(|at| self.waiting.remove(at)) else {
                return;
            };
            self.running.push(build);
            // Whoever has gone gives its place up in a moment.
            let _ = begin.send(());
        }
    }
}

impl Build {
    fn is_against(&self, other: &Self) -> bool {
        self.client == other.client || self.names.iter().any(|name| other.names.contains(name))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        state.running.retain(|build| build.number != self.number);
        state
            .waiting
            .retain(|(build, _)| build.number != self.number);
        state.advance();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(line: &Line, client: &str, name: &str) -> (Turn, oneshot::Receiver<()>) {
        line.join(client, &[name.to_owned()]).unwrap()
    }

    fn has_begun((_, begun): &mut (Turn, oneshot::Receiver<()>)) -> bool {
        begun.try_recv().is_ok()
    }

    #[test]
    fn a_client_has_one_build_at_a_time_and_others_pass_it() {
        let line = Line::default();
        let mut first = join(&line, "alice", "a/1");
        let mut second = join(&line, "alice", "a/2");
        let mut other = join(&line, "bob", "b/1");
        let mut third = join(&line, "carol", "c/1");
        assert!(has_begun(&mut first));
        assert!(has_begun(&mut other));
        assert!(!has_begun(&mut second) && !has_begun(&mut third));
        drop(first);
        // Whoever came first, of those who may.
        assert!(has_begun(&mut second));
        drop(other);
        assert!(has_begun(&mut third));
    }

    #[test]
    fn the_same_name_is_never_built_twice_at_once() {
        let line = Line::default();
        let mut first = join(&line, "alice", "shared");
        let mut other = join(&line, "bob", "shared");
        assert!(has_begun(&mut first) && !has_begun(&mut other));
        drop(first);
        assert!(has_begun(&mut other));
    }

    #[test]
    fn whoever_leaves_the_line_is_passed() {
        let line = Line::default();
        let running = [join(&line, "a", "1"), join(&line, "b", "2")];
        let gone = join(&line, "c", "3");
        let mut last = join(&line, "d", "4");
        drop(gone);
        assert!(!has_begun(&mut last));
        drop(running);
        assert!(has_begun(&mut last));
    }

    #[test]
    fn the_line_has_an_end() {
        let line = Line::default();
        let own: Vec<_> = (0..=WAITING_EACH_MAX)
            .map(|number| join(&line, "alice", &number.to_string()))
            .collect();
        let refused = line.join("alice", &[]);
        assert!(matches!(refused, Err(BuildError::Busy)));
        let mut others = Vec::new();
        while let Ok(joined) = line.join(&format!("client {}", others.len()), &[]) {
            others.push(joined);
        }
        // One of the others runs beside alice's first.
        assert_eq!(own.len() + others.len(), WAITING_MAX + RUNNING_MAX);
    }
}
