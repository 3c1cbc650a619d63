//! What is admitted to a sandbox, and what is not.

use std::fs;

use tempfile::TempDir;

use super::*;

const MIB: u64 = 1024 * 1024;

fn room() -> (TempDir, Arc<Room>) {
    let layer = tempfile::tempdir().unwrap();
    let limit = DiskLimit {
        bytes: 8 * MIB,
        inodes: 100,
    };
    let room = Room::new(layer.path().to_owned(), limit, DiskLimit::NOTHING);
    (layer, Arc::new(room))
}

fn is_full<T>(result: Result<T, RuntimeError>) -> bool {
    matches!(result, Err(RuntimeError::File(error)) if error.reason == FileFailure::Quota)
}

#[tokio::test]
async fn what_others_have_written_counts_when_there_is_little_left_ns_16() {
    let (layer, room) = room();
    room.admit(MIB, 1).await.unwrap();
    fs::write(layer.path().join("others"), vec![1; 6 << 20]).unwrap();
    assert!(is_full(room.admit(3 * MIB, 1).await));
    room.admit(MIB, 1).await.unwrap();
    fs::remove_file(layer.path().join("others")).unwrap();
    room.admit(6 * MIB, 1).await.unwrap();
}

#[test]
fn uploads_at_once_do_not_get_the_same_room_twice_ns_16() {
    let (_layer, room) = room();
    let mut unnamed = room.intake(Spooled::Unnamed);
    let mut named = room.intake(Spooled::Named);
    room.measure();
    assert!(unnamed.admits(3 * MIB, 0, Trust::Wholly));
    assert!(named.admits(3 * MIB, 0, Trust::Wholly));
    assert!(!named.admits(3 * MIB, 0, Trust::Wholly));
    // Nothing of it has come to the disk yet; of what has a name, only so much can be on its way.
    room.measure();
    assert!(!named.admits(4 * MIB, 0, Trust::Wholly));
    drop(unnamed);
    room.measure();
    assert!(named.admits(6 * MIB, 0, Trust::Wholly));
}

#[tokio::test]
async fn files_are_counted_as_well_as_bytes_ns_16() {
    let (layer, room) = room();
    for number in 0..100 {
        fs::write(layer.path().join(number.to_string()), "").unwrap();
    }
    assert!(is_full(room.admit(0, 1).await));
}

#[tokio::test]
async fn directories_on_the_way_are_counted_ns_16() {
    let (_layer, room) = room();
    let way = "d/".repeat(90);
    assert_eq!(inodes_of(Path::new(&format!("/./{way}f"))), 91);
    room.admit(0, inodes_of(Path::new(&way))).await.unwrap();
    assert!(is_full(room.admit(0, 101).await));
}
