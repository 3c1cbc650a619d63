//! Both ends of a terminal.

use zareba_terminal::{Pty, Size};

use crate::{SIZE, screen, script, see};

#[tokio::test]
async fn there_is_nothing_to_read_until_a_program_writes() {
    let pty = Pty::open(SIZE).unwrap();
    assert_eq!(pty.read(&mut [0; 10]).unwrap(), None);
    let child = script("echo hello").on(&pty).unwrap();
    assert_eq!(see(&pty, &mut screen(), "hello").await, "hello");
    drop(child);
}

#[tokio::test]
async fn what_is_typed_is_echoed_and_reaches_the_program() {
    let pty = Pty::open(SIZE).unwrap();
    let _child = script("read line; echo \"got <$line>\"").on(&pty).unwrap();
    assert_eq!(pty.write(b"some words\r").unwrap(), 11);
    assert_eq!(
        see(&pty, &mut screen(), "got").await,
        "some words\ngot <some words>"
    );
}

#[tokio::test]
async fn a_backspace_takes_back_a_whole_character() {
    let pty = Pty::open(SIZE).unwrap();
    let _child = script("read line; echo \"got <$line>\"").on(&pty).unwrap();
    pty.write("aéü\x7f\x7fb\r".as_bytes()).unwrap();
    assert_eq!(see(&pty, &mut screen(), "got").await, "ab\ngot <ab>");
}

#[tokio::test]
async fn a_silent_line_is_read_and_never_shown() {
    let pty = Pty::open(SIZE).unwrap();
    pty.type_silently(b"secret\n").unwrap();
    pty.echo().unwrap();
    let _child = script("read line; echo \"read ${#line}\"; read line; echo \"then $line\"")
        .on(&pty)
        .unwrap();
    let mut screen = screen();
    assert_eq!(see(&pty, &mut screen, "read").await, "read 6");
    pty.write(b"shown\r").unwrap();
    assert_eq!(
        see(&pty, &mut screen, "then").await,
        "read 6\nshown\nthen shown"
    );
}

#[tokio::test]
async fn a_silent_line_takes_the_place_of_what_was_typed_ahead() {
    // Input is digested by the kernel in its own time, so one attempt would prove little.
    for _ in 0..50 {
        let pty = Pty::open(SIZE).unwrap();
        pty.write(b"typed ahead\rand more").unwrap();
        pty.type_silently(b"instead\n").unwrap();
        pty.echo().unwrap();
        let _child = script("read line; echo \"read <$line>\"").on(&pty).unwrap();
        assert!(
            see(&pty, &mut screen(), "read")
                .await
                .ends_with("read <instead>")
        );
    }
}

#[tokio::test]
async fn a_silent_line_is_read_whatever_a_program_did_to_the_terminal() {
    let pty = Pty::open(SIZE).unwrap();
    let set_up =
        "stty raw -echo -icrnl -opost intr x; printf ready; read a; read b; printf '|'; stty -a";
    let _child = script(set_up).on(&pty).unwrap();
    let mut screen = screen();
    see(&pty, &mut screen, "ready").await;
    assert!(!pty.reads_lines().unwrap());
    pty.type_silently(b"x\n").unwrap();
    assert!(pty.reads_lines().unwrap());
    pty.echo().unwrap();
    pty.write(b"y\r").unwrap();
    let modes = see(&pty, &mut screen, "echoke").await;
    let (_, modes) = modes.split_once('|').unwrap();
    assert!(modes.contains("intr = ^C;"), "{modes}");
    for mode in ["icanon", "echo", "icrnl", "opost", "iutf8"] {
        assert!(
            modes.split_whitespace().any(|word| word == mode),
            "{mode} in {modes}"
        );
    }
}

#[tokio::test]
async fn a_stopped_terminal_runs_again_with_the_next_silent_line() {
    for _ in 0..50 {
        let pty = Pty::open(SIZE).unwrap();
        let _child = script("read line; echo \"read $line\"").on(&pty).unwrap();
        pty.write(b"\x13").unwrap();
        pty.type_silently(b"on\n").unwrap();
        assert!(
            see(&pty, &mut screen(), "read on")
                .await
                .ends_with("read on")
        );
    }
}

#[tokio::test]
async fn programs_see_the_size_and_are_told_of_another() {
    let pty = Pty::open(Size {
        columns: 132,
        rows: 43,
    })
    .unwrap();
    let _child = script("trap 'stty size; exit' WINCH; stty size; while :; do read x; done")
        .on(&pty)
        .unwrap();
    let mut screen = screen();
    assert_eq!(see(&pty, &mut screen, "43 132").await, "43 132");
    pty.resize(Size {
        columns: 99,
        rows: 11,
    })
    .unwrap();
    pty.write(b"\r").unwrap();
    assert!(see(&pty, &mut screen, "11 99").await.ends_with("11 99"));
}

#[tokio::test]
async fn a_full_terminal_takes_no_more_and_says_how_much_it_took() {
    let pty = Pty::open(SIZE).unwrap();
    let _child = script("stty raw -echo; echo ready; sleep 1000")
        .on(&pty)
        .unwrap();
    see(&pty, &mut screen(), "ready").await;
    let mut taken = 0;
    loop {
        match pty.write(&[b'x'; 4096]).unwrap() {
            0 => break,
            length => taken += length,
        }
        assert!(taken < 64 * 1024 * 1024);
    }
    assert!(taken >= 4096);
}
