//! What becomes of an entry whose outcome is unknown and whose record cannot be read back.

use std::path::PathBuf;

use rusqlite::Connection;
use serde_json::json;
use zareba_protocol::SessionId;

use super::{
    readers::Alone,
    side::{Opened, Side},
};
use crate::{
    Appended, Entry, EntryKind, Health, LogError, Options, Patience,
    writer::{Backend, Conductor, Deed, Done, Failure, Settled, Shared, Writer, conduct},
};

/// A file whose second transaction is committed and then damaged, while its outcome is lost.
struct Unlucky {
    side: Side,
    file: PathBuf,
    writes: usize,
}

impl Backend for Unlucky {
    async fn write(
        &mut self,
        deeds: &mut [&mut Deed],
    ) -> Result<Vec<Result<Done, LogError>>, Failure> {
        let written = self.side.write(deeds).await;
        self.writes += 1;
        if self.writes != 2 {
            return written;
        }
        let damage = "UPDATE events SET payload = '{\"n\":99}' WHERE sequence = 1";
        let connection = Connection::open(&self.file).unwrap();
        assert_eq!(connection.execute(damage, []).unwrap(), 1);
        Err(Failure::Lost {
            reason: "the answer to the commit is lost".to_owned(),
            in_doubt: true,
        })
    }

    async fn settle(&mut self, deed: &Deed) -> Result<Settled, Failure> {
        self.side.settle(deed).await
    }

    async fn reopen(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn open_reserve(&mut self) -> bool {
        self.side.open_reserve()
    }

    fn refill_reserve(&mut self) -> Result<(), Failure> {
        self.side.refill_reserve()
    }

    async fn tidy(&mut self) -> bool {
        self.side.tidy().await
    }

    async fn close(&mut self) -> Result<(), LogError> {
        self.side.close().await
    }
}

fn entry(number: u64) -> Entry {
    let payload = json!({ "n": number });
    Entry {
        kind: EntryKind::Note,
        cause: None,
        key: None,
        payload: payload.as_object().cloned().unwrap(),
    }
}

#[tokio::test]
async fn el_4_what_cannot_be_found_out_is_told_and_later_entries_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("events.db");
    let Ok(Opened { side, .. }) = Side::open(&file, Options::default(), &Alone::default()) else {
        panic!("the file cannot be opened");
    };
    let (shared, (writer, queue)) = (Shared::new(), Writer::new());
    let writes = 0;
    let unlucky = Unlucky { side, file, writes };
    let post = Conductor::begin(unlucky, shared.clone(), None);
    let conducting = tokio::spawn(conduct(post, queue));
    let session = SessionId::new("s").unwrap();
    let mut outcomes = Vec::new();
    for number in 0..3 {
        let appended = writer.append(session.clone(), entry(number), Patience::Kept);
        outcomes.push(appended.await);
    }
    let [first, second, third] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    let number = |appended: &Result<Appended, LogError>| match appended {
        Ok(Appended::New(record)) => Some(record.sequence),
        _ => None,
    };
    assert_eq!((number(first), number(third)), (Some(0), Some(2)));
    assert!(
        matches!(second, Err(LogError::Damaged { sequence: 1, .. })),
        "{second:?}"
    );
    assert_eq!(*shared.health.borrow(), Health::Durable);
    writer.close().await.unwrap();
    conducting.await.unwrap();
}
