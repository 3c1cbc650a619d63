//! Commands that outlast the patience of whoever asked.

use zareba_protocol::{Action, ActionEvent, RunCommand};

use crate::place::{
    ADVICE, BELOW, Place, blocking, exit_code, metadata, running, silent, timed_out,
};

#[tokio::test]
async fn a_hard_timeout_tells_the_output_so_far_and_leaves_the_command_running() {
    let place = Place::new().await;
    let command = "echo first; read line; echo \"got $line\"";
    assert_eq!(
        place.run_for(0.5, command).await,
        running(command, "first", "", timed_out("0.5"))
    );
    assert_eq!(
        place.input("more").await,
        place.ended("more", "got more", 0)
    );
}

#[tokio::test]
async fn the_seconds_of_a_timeout_are_written_as_the_original_writes_them() {
    let place = Place::new().await;
    for (seconds, text) in [(0.25, "0.25"), (1.0, "1.0"), (0.0, "0.0"), (-3.0, "0.0")] {
        assert_eq!(
            place.run_for(seconds, "cat").await,
            running("cat", "", "", timed_out(text))
        );
        assert_eq!(place.input("C-d").await, place.pressed("C-d", "", 0));
    }
}

#[tokio::test]
async fn a_silent_command_is_told_after_the_time_without_new_output() {
    let place = Place::new().await;
    let command = "read -p 'Enter name: ' name && echo \"Hello $name\"";
    let asked = place.event(Action::Run(RunCommand::new(command))).await;
    assert_eq!(asked, running(command, "Enter name:", "", silent(1)));
    assert_eq!(
        place.input("John").await,
        place.ended("John", "Hello John", 0)
    );
}

#[tokio::test]
async fn output_that_keeps_coming_is_no_silence() {
    let place = Place::new().await;
    // Each pause is shorter than the time without output, all together are longer.
    let command = "for i in 1 2 3 4; do echo $i; sleep 0.5; done";
    let observation = place.event(Action::Run(RunCommand::new(command))).await;
    assert_eq!(observation, place.ended(command, "1\n2\n3\n4", 0));
}

#[tokio::test]
async fn a_blocking_command_may_be_silent() {
    let place = Place::new().await;
    let command = "sleep 1.2; echo late";
    assert_eq!(place.run(command).await, place.ended(command, "late", 0));
}

#[tokio::test]
async fn an_empty_command_polls_for_exactly_what_is_new() {
    let place = Place::new().await;
    let command =
        "for i in 1 2 3; do echo $i; read x; done; echo end; exit_code() { return 5; }; exit_code";
    assert_eq!(
        place.run_for(0.3, command).await,
        running(command, "1", "", timed_out("0.3"))
    );
    let poll = || place.event(blocking("").with_timeout(0.3));
    assert_eq!(poll().await, running("", "", BELOW, timed_out("0.3")));
    let typed = ActionEvent::from(Action::Run(RunCommand {
        blocking: true,
        ..RunCommand::input("go")
    }));
    assert_eq!(
        place.event(typed.clone().with_timeout(0.3)).await,
        running("go", "2", BELOW, timed_out("0.3"))
    );
    assert_eq!(
        place.event(typed.with_timeout(0.3)).await,
        running("go", "3", BELOW, timed_out("0.3"))
    );
    assert_eq!(place.input("go").await, place.ended("go", "end", 5));
}

#[tokio::test]
async fn a_command_that_ended_in_the_meantime_is_told_by_the_next_poll() {
    let place = Place::new().await;
    let command = "echo one; sleep 0.4; echo two; (exit 6)";
    assert_eq!(
        place.run_for(0.1, command).await,
        running(command, "one", "", timed_out("0.1"))
    );
    assert_eq!(place.run("").await, place.ended("", "two", 6));
    let nothing = place.run("").await;
    assert_eq!(
        nothing,
        running(
            "",
            "ERROR: No previous running command to retrieve logs from.",
            "",
            String::new()
        )
    );
}

#[tokio::test]
async fn another_command_is_not_executed_while_one_runs() {
    let place = Place::new().await;
    place.start("echo here; cat >/dev/null", "here").await;
    let text = format!(
        "\n[Your command \"touch x\" is NOT executed. The previous command is still running - You CANNOT send new \
         commands until the previous command is completed. By setting `is_input` to `true`, you can interact with \
         the current process: {ADVICE}]"
    );
    assert_eq!(
        place.run("touch x").await,
        running("touch x", "here", BELOW, text.clone())
    );
    assert_eq!(
        place.run("touch x").await,
        running("touch x", "", BELOW, text)
    );
    assert_eq!(place.input("C-d").await, place.pressed("C-d", "", 0));
    assert_eq!(place.run("ls").await, place.ended("ls", "", 0));
}

#[tokio::test]
async fn the_end_of_an_unwatched_command_is_told_before_the_next_one() {
    let place = Place::new().await;
    let mut stream = place.stream().await;
    // The mark comes a good while after the command's end, from a background job.
    let command = "mkfifo go; cat go; echo tail; (sleep 0.3; echo mark) & (exit 9)";
    assert_eq!(place.run_for(0.2, command).await.content, "");
    std::fs::write(place.directory.join("go"), "").unwrap();
    stream.until("mark").await;
    let observation = place.run("echo mine").await;
    let pid = metadata(&observation).pid;
    let prefix = format!(
        "[The previous command completed with exit code 9. Its remaining output:]\ntail\n[1] {pid}\nmark\n\
         [Below is the output of your command.]\n"
    );
    assert_eq!(metadata(&observation).prefix, prefix);
    assert_eq!(exit_code(&observation), 0);
    assert!(observation.content.starts_with("mine"), "{observation:?}");
    assert_eq!(metadata(&place.run("true").await).prefix, "");
}

#[tokio::test]
async fn nothing_runs_and_nothing_can_be_asked_of_it() {
    let place = Place::new().await;
    let cases = [
        (
            RunCommand::new(""),
            "ERROR: No previous running command to retrieve logs from.",
        ),
        (
            RunCommand::new("  \n "),
            "ERROR: No previous running command to retrieve logs from.",
        ),
        (
            RunCommand::input("x"),
            "ERROR: No previous running command to interact with.",
        ),
        (
            RunCommand::input("C-c"),
            "ERROR: No previous running command to interact with.",
        ),
    ];
    for (action, text) in cases {
        assert_eq!(
            place.event(Action::Run(action)).await,
            running("", text, "", String::new())
        );
    }
}

#[tokio::test]
async fn a_command_with_a_shell_of_its_own_ends_at_its_timeout_and_the_limit_says_so() {
    let place = Place::new().await;
    let action = RunCommand {
        is_static: true,
        blocking: true,
        ..RunCommand::new("exec sleep 600.25")
    };
    let observed = place
        .event(ActionEvent::from(Action::Run(action)).with_timeout(0.5))
        .await;
    let [limit] = &metadata(&observed).limits[..] else {
        panic!("{observed:?}");
    };
    assert_eq!(
        limit.message,
        "the command did not end within 0.5 s and was ended with its shell"
    );
    let gone = "while pgrep -f 'sleep 600.2[5]'; do sleep 0.1; done; echo gone";
    assert_eq!(place.run(gone).await.content, "gone");
}
