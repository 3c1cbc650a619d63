//! A few connections for readers.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::link::{Address, Link, unread};
use crate::LogError;

/// How many read at the same time; others wait their turn.
const READERS_MAX: usize = 4;

/// Connections that are made when they are needed and kept.
#[derive(Debug)]
pub(super) struct Readers {
    address: Address,
    idle: Arc<Mutex<Vec<Arc<Link>>>>,
    turns: Arc<Semaphore>,
}

/// A connection for one question or a few; it goes back when this is dropped.
#[derive(Debug)]
pub(super) struct Lent {
    link: Arc<Link>,
    idle: Arc<Mutex<Vec<Arc<Link>>>>,
    _turn: OwnedSemaphorePermit,
}

impl Deref for Lent {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(Arc::clone(&self.link));
    }
}

impl Readers {
    pub(super) fn new(address: Address) -> Self {
        Self {
            address,
            idle: Arc::default(),
            turns: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }

    pub(super) async fn lend(&self) -> Result<Lent, LogError> {
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|_| LogError::Closed)?;
        let kept = self.take_idle();
        let link = match kept {
            Some(link) => link,
            None => Arc::new(self.address.connect().await.map_err(unread)?),
        };
        Ok(Lent {
            link,
            idle: Arc::clone(&self.idle),
            _turn: turn,
        })
    }

    /// One that is still connected; the others go.
    fn take_idle(&self) -> Option<Arc<Link>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|link| !link.client.is_closed())
    }

    /// Lets nobody in any more, waits for those inside and drops what they used.
    pub(super) async fn close(&self) {
        let all = self.turns.acquire_many(READERS_MAX as u32).await;
        self.turns.close();
        drop(all);
        (self.idle.lock().unwrap_or_else(PoisonError::into_inner)).clear();
    }
}
