//! What is kept, what comes back, and what never does.

use super::*;

fn popped(history: &History, path: &str) -> Option<Vec<u8>> {
    match history.last(path) {
        Recalled::Entry(entry) => {
            history.forget(&entry.id);
            Some(entry.content)
        }
        Recalled::Nothing => None,
        Recalled::Damaged => panic!("damaged"),
    }
}

#[test]
fn the_last_ten_entries_come_back_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let history = History::new(directory.path().join("undo"));
    for number in 0..13 {
        history.push("/f", format!("{number}").as_bytes());
        history.push("/other", b"x");
    }
    let back: Vec<String> = std::iter::from_fn(|| popped(&history, "/f"))
        .map(|content| String::from_utf8(content).unwrap())
        .collect();
    assert_eq!(back, ["12", "11", "10", "9", "8", "7", "6", "5", "4", "3"]);
    assert_eq!(
        fs::read_dir(directory.path().join("undo")).unwrap().count(),
        10
    );
}

#[test]
fn a_new_process_finds_what_the_old_one_kept() {
    let directory = tempfile::tempdir().unwrap();
    let history = History::new(directory.path().to_owned());
    history.push("/f", b"one");
    history.push("/f", b"two");
    let history = History::new(directory.path().to_owned());
    assert_eq!(popped(&history, "/f"), Some(b"two".to_vec()));
    history.push("/f", b"three");
    assert_eq!(popped(&history, "/f"), Some(b"three".to_vec()));
    assert_eq!(popped(&history, "/f"), Some(b"one".to_vec()));
    assert_eq!(history.last("/f"), Recalled::Nothing);
}

#[test]
fn two_processes_with_one_directory_do_not_overwrite_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let one = History::new(directory.path().to_owned());
    let other = History::new(directory.path().to_owned());
    one.push("/f", b"first");
    other.push("/f", b"second");
    one.push("/f", b"third");
    let after = History::new(directory.path().to_owned());
    assert_eq!(popped(&after, "/f"), Some(b"third".to_vec()));
    assert_eq!(popped(&after, "/f"), Some(b"second".to_vec()));
    assert_eq!(popped(&after, "/f"), Some(b"first".to_vec()));
}

#[test]
fn damaged_and_foreign_files_are_never_brought_back() {
    let directory = tempfile::tempdir().unwrap();
    let history = History::new(directory.path().to_owned());
    history.push("/f", b"old");
    history.push("/f", b"new");
    fs::write(directory.path().join("notes.txt"), "foreign").unwrap();
    fs::write(directory.path().join("x-ffffffffffffffff.undo"), "foreign").unwrap();
    fs::write(
        history.entry_path(&EntryId {
            number: 1,
            key: key("/f"),
        }),
        "nonsense",
    )
    .unwrap();
    let history = History::new(directory.path().to_owned());
    assert_eq!(history.last("/f"), Recalled::Damaged);
    assert_eq!(popped(&history, "/f"), Some(b"old".to_vec()));
    assert_eq!(history.last("/f"), Recalled::Nothing);
}

#[test]
fn a_history_that_cannot_be_written_is_an_empty_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let history = History::new(file);
    history.push("/f", b"x");
    assert_eq!(history.last("/f"), Recalled::Nothing);
}

#[test]
fn an_entry_under_another_number_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let history = History::new(directory.path().to_owned());
    history.push("/f", b"old");
    let at = |number| {
        let key = key("/f");
        history.entry_path(&EntryId { number, key })
    };
    fs::rename(at(0), at(1)).unwrap();
    let history = History::new(directory.path().to_owned());
    assert_eq!(history.last("/f"), Recalled::Damaged);
}

#[test]
fn a_place_that_is_used_again_keeps_nothing_of_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let history = History::new(directory.path().to_owned());
    let content = |number: usize| vec![b'x'; 100 - number];
    for number in 0..25 {
        history.push("/f", &content(number));
    }
    // Found again by their names and sizes alone.
    let history = History::new(directory.path().to_owned());
    for number in (15..25).rev() {
        assert_eq!(popped(&history, "/f"), Some(content(number)));
    }
    assert_eq!(history.last("/f"), Recalled::Nothing);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
