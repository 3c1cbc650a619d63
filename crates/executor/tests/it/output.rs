//! What programs write, and what an agent is shown of it.

use tokio::sync::broadcast::error::RecvError;
use zareba_protocol::{
    Action, ActionEvent, LimitKind, OUTPUT_CHARS_MAX, RunCommand, ShellName, TRUNCATION_MARKER,
};

use crate::place::{LONG, Place, exit_code, metadata};

#[tokio::test]
async fn output_is_what_a_person_would_see() {
    let place = Place::new().await;
    let cases = [
        (r"printf '10%%\r50%%\r100%%\n'", "100%"),
        (
            r"printf '\033[1;31mred\033[0m \033]0;title\007plain\n'",
            "red plain",
        ),
        (r"printf 'typo\b\b\bXY\n'", "tXYo"),
        (r"printf 'abc\033[2D\033[K.\n'", "a."),
        (r"printf 'one\ntwo\n\033[1A\033[2Kthree\n'", "one\nthree"),
        (r"printf 'before\033[H\033[2Jafter\n'", "after"),
        (r"printf 'keep\n\033[?1049hgone\033[?1049l'", "keep"),
        (r"printf 'a\tb\n'", "a       b"),
        (
            "printf '%2000d' 7 | tr ' ' x",
            &format!("{}7", "x".repeat(1999)),
        ),
    ];
    for (command, content) in cases {
        assert_eq!(place.run(command).await, place.ended(command, content, 0));
    }
}

#[tokio::test]
async fn binary_output_is_shown_as_far_as_it_is_text() {
    let place = Place::new().await;
    assert_eq!(
        place.text(r"printf 'a\xffb\xc3(\xe2\x82\n'").await,
        "a\u{fffd}b\u{fffd}(\u{fffd}"
    );
    let random = place
        .run("head -c 200000 /dev/urandom; echo; echo end")
        .await;
    assert_eq!(exit_code(&random), 0);
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_whole_in_a_file() {
    let place = Place::new().await;
    let observation = place.run("seq 1 10000").await;
    let whole: String = (1..=10000).map(|number| format!("{number}\r\n")).collect();
    let shown = (1..=10000)
        .map(|number| number.to_string())
        .collect::<Vec<_>>()
        .join("\n");
    let half = OUTPUT_CHARS_MAX / 2;
    let expected = format!(
        "{}{TRUNCATION_MARKER}{}",
        &shown[..half],
        &shown[shown.len() - half..]
    );
    assert_eq!(observation.content, expected);
    let found = metadata(&observation);
    assert_eq!(
        (found.output_bytes, found.output_dropped),
        (Some(whole.len() as u64), None)
    );
    let [limit] = found.limits.as_slice() else {
        panic!("{:?}", found.limits);
    };
    assert_eq!(limit.kind, LimitKind::Truncated);
    let message = format!(
        "{} of {} bytes of the output are shown",
        expected.len(),
        whole.len()
    );
    assert_eq!(limit.message, message);
    let file = found.output_file.clone().unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), whole);
    assert_eq!(place.text(&format!("wc -l < {file}")).await, "10000");
    assert_eq!(place.text(&format!("sed -n 5000p {file}")).await, "5000");
}

#[tokio::test]
async fn output_beyond_the_history_tells_how_much_is_shown() {
    let place = Place::new().await;
    let observation = place
        .run("for i in {1..50000}; do echo \"Line $i\"; done")
        .await;
    let found = metadata(&observation);
    let prefix = "[Previous command outputs are truncated. Showing the last 10999 lines of the output below.]\n";
    assert_eq!((found.prefix.as_str(), found.exit_code), (prefix, 0));
    for line in ["Line 39002\n", "Line 40000\n", "\nLine 50000"] {
        assert!(observation.content.contains(line), "{line}");
    }
    let file = found.output_file.clone().unwrap();
    assert!(
        std::fs::read_to_string(file)
            .unwrap()
            .starts_with("Line 1\r\nLine 2\r\n")
    );
}

#[tokio::test]
async fn a_hundred_mebibytes_pass_and_memory_stays_bounded() {
    let place = Place::new().await;
    let before = resident_bytes();
    let observation = place
        .run("head -c 104857600 /dev/zero | tr '\\0' x | fold -w 99")
        .await;
    let found = metadata(&observation);
    assert_eq!(found.exit_code, 0);
    // Each newline is shown as two characters.
    let lines = 104_857_600_u64.div_ceil(99) - 1;
    assert_eq!(found.output_bytes, Some(104_857_600 + 2 * lines));
    assert_eq!(
        found.output_dropped,
        Some(104_857_600 + 2 * lines - 64 * 1024 * 1024)
    );
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 * 1024 * 1024, "grew by {grown} bytes");
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

#[tokio::test]
async fn a_background_job_goes_on_writing_and_is_shown_with_the_next_command() {
    let place = Place::new().await;
    let command = "mkfifo go; (cat go >/dev/null; echo from behind) & disown";
    assert_eq!(exit_code(&place.run(command).await), 0);
    let mut stream = place.executor.follow(&ShellName::default()).await.unwrap();
    std::fs::write(place.directory.join("go"), "").unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("behind") {
        seen.extend_from_slice(
            &tokio::time::timeout(LONG, stream.recv())
                .await
                .unwrap()
                .unwrap(),
        );
    }
    let observation = place.run("echo mine").await;
    assert_eq!(observation.content, "from behind\nmine");
}

#[tokio::test]
async fn a_background_job_that_never_stops_writing_does_not_delay_the_end_of_commands() {
    let place = Place::new().await;
    place.run("yes noise &").await;
    for number in 0..20 {
        let observation = place
            .run(&format!("echo mark{number}; (exit {number})"))
            .await;
        assert_eq!(
            exit_code(&observation),
            number,
            "{:?}",
            metadata(&observation)
        );
    }
    place.run("kill %1; wait").await;
    let mut quiet = place.text("echo quiet").await;
    if quiet != "quiet" {
        quiet = place.text("echo quiet").await;
    }
    assert_eq!(quiet, "quiet");
}

#[tokio::test]
async fn jobs_are_announced_as_in_any_shell() {
    let place = Place::new().await;
    let started = place.run("sleep 1000 &").await;
    let pid = metadata(&started).pid;
    assert_eq!(started.content, format!("[1] {pid}"));
    assert_eq!(
        place.text("jobs").await,
        "[1]+  Running                 sleep 1000 &"
    );
    let ended = place.text("kill %1; wait %1; true").await;
    assert_eq!(ended, "[1]+  Terminated              sleep 1000");
    assert_eq!(place.text("jobs").await, "");
}

#[tokio::test]
async fn output_can_be_followed_while_it_comes() {
    let place = Place::new().await;
    let seen = place
        .start("printf 'Name: '; read name; echo \"Hi $name\"", "Name: ")
        .await;
    assert_eq!(seen, "Name: ");
    let mut stream = place.executor.follow(&ShellName::default()).await.unwrap();
    assert_eq!(place.input("Ann").await.content, "Name: Ann\nHi Ann");
    let mut bytes = Vec::new();
    while let Ok(chunk) = stream.try_recv() {
        bytes.extend_from_slice(&chunk);
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), "Ann\r\nHi Ann\r\n");
}

#[tokio::test]
async fn a_follower_that_falls_behind_is_told_and_holds_nobody_up() {
    let place = Place::new().await;
    let mut stream = place.executor.follow(&ShellName::default()).await.unwrap();
    assert_eq!(exit_code(&place.run("seq 1 300000").await), 0);
    assert!(matches!(stream.recv().await, Err(RecvError::Lagged(missed)) if missed > 0));
    assert!(stream.recv().await.is_ok());
}

#[tokio::test]
async fn a_timeout_shows_a_progress_bar_once_in_its_latest_state() {
    let place = Place::new().await;
    place
        .start(
            "printf 'get\\n 10%%'; read x; printf '\\r 50%%'; read x; printf '\\r100%%\\n'",
            "10%",
        )
        .await;
    let typed = |seconds| {
        let action = RunCommand {
            blocking: true,
            ..RunCommand::input("x")
        };
        ActionEvent::from(Action::Run(action)).with_timeout(seconds)
    };
    let first = place.event(typed(0.3)).await.content;
    assert!(
        first.starts_with("get\n") && first.ends_with("50%"),
        "{first:?}"
    );
    assert!(
        place
            .event(typed(LONG.as_secs_f64()))
            .await
            .content
            .ends_with("100%")
    );
}

#[tokio::test]
async fn the_terminal_can_be_resized_while_a_program_runs() {
    let place = Place::new().await;
    let size = zareba_executor::Size {
        columns: 120,
        rows: 40,
    };
    place.start("trap 'stty size; exit_now=1' WINCH; echo ready; until [ \"$exit_now\" ]; do read -t 0.05 x; done", "ready").await;
    place
        .executor
        .resize(&ShellName::default(), size)
        .await
        .unwrap();
    let observation = place.run("").await;
    assert_eq!(observation.content.lines().last(), Some("40 120"));
    assert_eq!(place.text("trap - WINCH; stty size").await, "40 120");
}
