//! Programs that take the whole terminal, or ask for secrets.
//!
//! They are part of what `make setup` installs; a program that is missing fails its test.

use crate::place::{Place, exit_code};

#[tokio::test]
async fn python_is_used_interactively() {
    let place = Place::new().await;
    place.start("python3 -q -u", ">>>").await;
    let observation = place.event(typed("print(6 * 7)")).await;
    assert!(observation.content.contains("\n42\n"), "{observation:?}");
    let ended = place.input("exit(5)").await;
    assert_eq!(exit_code(&ended), 5, "{ended:?}");
}

#[tokio::test]
async fn vim_edits_a_file_and_leaves_the_screen_as_it_was() {
    let place = Place::new().await;
    place.resize_for_a_person().await;
    place
        .start("echo before; vim -u NONE -i NONE -n note.txt", "note.txt")
        .await;
    place.event(typed("iwritten by hand")).await;
    place.event(keys("C-[")).await;
    let ended = place.input(":wq").await;
    assert_eq!(exit_code(&ended), 0, "{ended:?}");
    assert!(!ended.content.contains("~\n~"), "{ended:?}");
    assert_eq!(place.text("cat note.txt").await, "written by hand");
}

#[tokio::test]
async fn less_shows_a_page_and_goes_when_told() {
    let place = Place::new().await;
    place.run("seq 1 5000 > numbers").await;
    place.start("less numbers", "999").await;
    let ended = place.input("q").await;
    assert_eq!(exit_code(&ended), 0, "{ended:?}");
    assert!(!ended.content.contains("999"), "{ended:?}");
}

#[tokio::test]
async fn top_redraws_itself_and_ends_with_its_key() {
    let place = Place::new().await;
    place.start("top -d 0.2", "PID").await;
    let polled = place.run_for(0.5, "").await;
    assert!(polled.content.contains("PID"), "{polled:?}");
    assert_eq!(exit_code(&place.input("q").await), 0);
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn a_password_is_read_and_never_shown() {
    let place = Place::new().await;
    place
        .start(
            "read -r -s -p 'Password: ' word; echo; echo \"got ${#word} letters\"",
            "Password: ",
        )
        .await;
    let observation = place.input("s3cret-word").await;
    assert_eq!(
        observation,
        place.ended("s3cret-word", "Password:\ngot 11 letters", 0)
    );
    place
        .start(
            "python3 -c 'import getpass; print(len(getpass.getpass()))'",
            "Password: ",
        )
        .await;
    let observation = place.input("s3cret-word").await;
    assert_eq!(observation, place.ended("s3cret-word", "Password:\n11", 0));
}

#[tokio::test]
async fn a_program_that_asks_for_the_cursor_gets_an_answer() {
    let place = Place::new().await;
    let ask =
        "stty -echo; printf 'abc\\033[6n'; read -r -d R -t 20 answer; printf '%q\\n' \"$answer\"";
    assert_eq!(place.text(ask).await, "abc$'\\E[1;4'");
}

#[tokio::test]
async fn a_shell_within_the_shell_takes_input_until_it_ends() {
    let place = Place::new().await;
    place.start("PS1='inner> ' bash --norc", "inner> ").await;
    let inner = place.event(typed("echo inner $((40 + 2)); cd /")).await;
    assert!(inner.content.contains("inner 42"), "{inner:?}");
    assert_eq!(exit_code(&place.input("exit 3").await), 3);
    assert_eq!(place.run("true").await, place.ended("true", "", 0));
}

/// A line typed at a program that goes on.
fn typed(text: &str) -> zareba_protocol::ActionEvent {
    use zareba_protocol::{Action, ActionEvent, RunCommand};
    ActionEvent::from(Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::input(text)
    }))
    .with_timeout(0.5)
}

fn keys(name: &str) -> zareba_protocol::ActionEvent {
    crate::place::blocking(name).with_timeout(0.5)
}
