//! Sandboxes that were started before anybody asked for one: taking one, beside starting one.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use zareba_runtime::{Runtime, RuntimeError};
use zareba_runtime_docker::DockerRuntime;
use zareba_runtime_native::NativeRuntime;

use crate::{lane::Subject, sandboxes::Sandboxes};

/// A runtime that can start sandboxes ahead.
pub(crate) trait Ahead: Runtime + 'static {
    /// Returns when as many wait as there shall be.
    fn start_ahead(&self) -> impl Future<Output = Result<(), RuntimeError>>;
}

impl Ahead for NativeRuntime {
    fn start_ahead(&self) -> impl Future<Output = Result<(), RuntimeError>> {
        self.warm_up()
    }
}

impl Ahead for DockerRuntime {
    fn start_ahead(&self) -> impl Future<Output = Result<(), RuntimeError>> {
        self.warm_up()
    }
}

/// Returns when as many wait as there shall be.
pub(crate) fn fill(sandboxes: &Sandboxes<impl Ahead>) -> anyhow::Result<()> {
    let filled = sandboxes.wait(sandboxes.runtime().start_ahead());
    filled.context("cannot start sandboxes ahead")
}

/// Takes one, while nothing else happens.
pub(crate) struct Taking<'a, R>(pub(crate) &'a Sandboxes<R>);

impl<R: Ahead> Subject for Taking<'_, R> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        let elapsed = create(self.0)?;
        fill(self.0)?;
        Ok(elapsed)
    }
}

/// Starts one.
pub(crate) struct Starting<'a, R>(pub(crate) &'a Sandboxes<R>);

impl<R: Runtime + 'static> Subject for Starting<'_, R> {
    fn once(&mut self) -> anyhow::Result<Duration> {
        create(self.0)
    }
}

fn create(sandboxes: &Sandboxes<impl Runtime + 'static>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let sandbox = sandboxes.create()?;
    let elapsed = start.elapsed();
    sandboxes.ask(&*sandbox, "echo hi", "hi")?;
    sandboxes.close(&*sandbox)?;
    Ok(elapsed)
}
