//! Commands that, by accident or not, get in the way of how shells are driven.

use std::path::Path;

use crate::place::{Place, SLEEPER, exit_code, metadata};

/// The next commands are what they should be.
async fn check_usable(place: &Place) {
    assert_eq!(
        place.run("echo usable").await,
        place.ended("echo usable", "usable", 0)
    );
    assert_eq!(
        place.run("(exit 77)").await,
        place.ended("(exit 77)", "", 77)
    );
    assert_eq!(place.run("echo $?").await, place.ended("echo $?", "77", 0));
}

#[tokio::test]
async fn reports_cannot_be_forged_by_writing_to_the_channels() {
    let place = Place::new().await;
    let attempts = [
        r"for n in /proc/$$/fd/*; do printf 'garbage' 2>/dev/null >$n; done; (exit 5)",
        r"for n in /proc/$$/fd/1?; do printf 'guess\0001\0000\0\0/\0/bin\0' 2>/dev/null >$n; done; (exit 5)",
        r"for n in /proc/$$/fd/1?; do printf 'run\n1\ngo 1\nrun\n' 2>/dev/null >$n; done; (exit 5)",
        r"sh -c 'for n in 7 8 9 57 58 59; do printf x 2>/dev/null >/proc/$PPID/fd/$n; done'; (exit 5)",
        r"for n in /proc/$$/fd/1?; do head -c 400000 /dev/zero | tr '\0' x 2>/dev/null | timeout 1 dd of=$n 2>/dev/null; done; (exit 5)",
    ];
    for attempt in attempts {
        let observation = place.run(attempt).await;
        assert_eq!(exit_code(&observation), 5, "{attempt}: {observation:?}");
        assert_eq!(
            metadata(&observation).working_dir.as_deref(),
            place.directory.to_str(),
            "{attempt}"
        );
        check_usable(&place).await;
    }
}

/// The shell is still reading what somebody has left there when the next command is put in its place.
#[tokio::test]
async fn a_command_is_found_behind_what_is_in_its_way() {
    const TRIES: usize = 100;
    let place = Place::new().await;
    let in_the_way =
        "head -c 400000 /dev/zero | tr '\\0' x >/proc/$$/fd/11; echo run >/proc/$$/fd/10";
    // What is not the whole of it would not say so.
    let long = format!("letters={}; echo usable", "x".repeat(100_000));
    // In one that ends at the first failure, too.
    for setting in [":", "set -eu"] {
        let shell = place.text(&format!("{setting}; echo $$")).await;
        for _ in 0..TRIES {
            assert_eq!(place.text(in_the_way).await, "");
            assert_eq!(place.text("echo usable").await, "usable");
            assert_eq!(place.text(&long).await, "usable");
        }
        assert_eq!(place.text("echo $$").await, shell);
    }
}

/// The shell runs what somebody has put in the place of a command, and then the command.
#[tokio::test]
async fn a_command_is_not_lost_when_another_is_taken_in_its_place() {
    let place = Place::new().await;
    let replace_the_next = r"mkfifo go stopped; (
        read <go; kill -STOP $$; echo >stopped
        until [[ $(tr '\0' ' ' </proc/$$/fd/58) == *usabl[e]* ]]; do :; done
        printf '77777\0echo mine\00077777\0' >/proc/$$/fd/58; kill -CONT $$
    ) >/dev/null 2>&1 & disown";
    assert_eq!(exit_code(&place.run(replace_the_next).await), 0);
    // Both wait for the other side.
    std::fs::write(place.directory.join("go"), "\n").unwrap();
    std::fs::read(place.directory.join("stopped")).unwrap();
    let observation = place.run("echo usable").await;
    assert_eq!(observation.content, "mine\nusable", "{observation:?}");
    assert_eq!(exit_code(&observation), 0);
    assert_eq!(place.text("echo again").await, "again");
}

#[tokio::test]
async fn output_that_looks_like_our_protocol_is_just_output() {
    let place = Place::new().await;
    let command = r#"printf '%s\0' "$__zareba_token" "$__zareba_id" 0 '' / /bin; echo; echo __zareba_done 0; (exit 5)"#;
    let observation = place.run(command).await;
    assert_eq!(exit_code(&observation), 5);
    assert!(
        observation.content.ends_with("\n__zareba_done 0"),
        "{observation:?}"
    );
    check_usable(&place).await;
}

#[tokio::test]
async fn tracing_and_verbosity_show_the_commands_and_nothing_of_ours() {
    let place = Place::new().await;
    assert_eq!(place.text("set -x").await, "");
    assert_eq!(place.text("echo traced").await, "++ echo traced\ntraced");
    assert_eq!(place.text("set +x").await, "++ set +x");
    assert_eq!(place.text("set -v").await, "");
    assert_eq!(place.text("echo shown").await, "echo shown\nshown");
    assert_eq!(place.text("set +v").await, "set +v");
    check_usable(&place).await;
}

#[tokio::test]
async fn aliases_are_expanded_in_commands_and_in_nothing_of_ours() {
    let place = Place::new().await;
    let aliases = "alias builtin='echo ours' case='echo ours' if='echo ours' until='echo ours'";
    assert_eq!(place.text(aliases).await, "");
    assert_eq!(place.text("set -x").await, "");
    assert_eq!(place.text("echo traced").await, "++ echo traced\ntraced");
    assert_eq!(place.text("set +x").await, "++ set +x");
    assert_eq!(place.text("set -a").await, "");
    let exported = place.text("env | grep -c ^__zareba || true").await;
    assert_eq!(exported, "0");
    assert_eq!(place.text("set +a; builtin too").await, "ours too");
    check_usable(&place).await;
}

/// The shell asks for its next command with a `read`, which splits lines at whatever words are split at.
#[tokio::test]
async fn wherever_words_are_split_the_next_command_is_run() {
    let place = Place::new().await;
    for separators in ["n", "nu", "run", "ru", "r", "0", "10", "", " \t\n"] {
        let command = format!("IFS=$'{}'", separators.escape_debug());
        assert_eq!(place.text(&command).await, "");
        let told = place.text("echo \"${#IFS} of them\"").await;
        assert_eq!(told, format!("{} of them", separators.len()));
    }
    check_usable(&place).await;
}

#[tokio::test]
async fn options_that_make_shells_strict_do_not_end_them_on_our_account() {
    let place = Place::new().await;
    for option in [
        "-u",
        "-e",
        "-E",
        "-T",
        "-f",
        "-eu",
        "-o pipefail",
        "-o posix",
        "-euo pipefail",
    ] {
        assert_eq!(place.text(&format!("set {option}")).await, "", "{option}");
        assert_eq!(place.text("echo fine").await, "fine", "{option}");
        assert_eq!(place.text("false || true").await, "", "{option}");
        assert_eq!(
            place
                .text(&format!("set {}", option.replace('-', "+")))
                .await,
            "",
            "{option}"
        );
    }
    place.run("set -u").await;
    assert_eq!(
        place.run("echo $undefined").await,
        place.ended("echo $undefined", "bash: undefined: unbound variable", 1)
    );
    assert_eq!(place.text("set +u; echo kept").await, "kept");
    check_usable(&place).await;
}

#[tokio::test]
async fn exporting_everything_exports_nothing_of_ours() {
    let place = Place::new().await;
    place.run("set -a; mine=1").await;
    let environment = place.text("env").await;
    assert!(environment.contains("mine=1"), "{environment}");
    assert!(
        !environment.contains("__zareba") && !environment.contains("PS1"),
        "{environment}"
    );
    check_usable(&place).await;
}

#[tokio::test]
async fn prompts_that_were_changed_are_not_shown_and_do_not_hide_the_end() {
    let place = Place::new().await;
    for command in [
        "PS1='$ ' PS2='> ' PS0='zero ' PROMPT_COMMAND='echo prompt'",
        "PROMPT_COMMAND=('echo one' 'echo two')",
        "unset PROMPT_COMMAND PS1 PS2",
        "readonly PS1",
    ] {
        assert_eq!(place.run(command).await, place.ended(command, "", 0));
        check_usable(&place).await;
    }
    place
        .start(&format!("PROMPT_COMMAND='echo prompt'; {SLEEPER}"), "here")
        .await;
    assert_eq!(exit_code(&place.input("C-c").await), 130);
    check_usable(&place).await;
}

#[tokio::test]
async fn functions_with_the_names_of_builtins_are_not_called_by_us() {
    let place = Place::new().await;
    let names = "printf read eval unset set cd export exit return local test mapfile trap echo";
    let define: String = names
        .split(' ')
        .map(|name| format!("{name}() {{ command echo fake; }}; "))
        .collect();
    assert_eq!(place.text(define.trim_end_matches("; ")).await, "");
    assert_eq!(place.text("command echo real").await, "real");
    assert_eq!(place.run("false").await, place.ended("false", "", 1));
    assert_eq!(place.text(&format!("builtin unset -f {names}")).await, "");
    check_usable(&place).await;
}

#[tokio::test]
async fn traps_run_and_do_not_get_in_the_way() {
    let place = Place::new().await;
    place
        .run("trap 'echo usr1' USR1; trap '' INT; trap 'echo bye' EXIT")
        .await;
    assert_eq!(place.text("kill -USR1 $$; true").await, "usr1");
    place.start(SLEEPER, "here").await;
    // Ctrl-C is ignored by the shell and by what it runs, as it asked for.
    assert_eq!(
        exit_code(
            &place
                .event(crate::place::blocking("C-c").with_timeout(0.2))
                .await
        ),
        -1
    );
    assert_eq!(exit_code(&place.input("C-\\").await), 131);
    let ended = place.run("exit 4").await;
    assert_eq!(
        (ended.content.as_str(), exit_code(&ended)),
        ("exit\nbye", 4)
    );
    place.run("trap 'echo failed' ERR").await;
    assert_eq!(place.run("true").await, place.ended("true", "", 0));
    assert_eq!(place.text("trap - ERR").await, "");
    check_usable(&place).await;
}

#[tokio::test]
async fn signals_to_an_idle_shell_do_not_lose_the_next_command() {
    let place = Place::new().await;
    let pid = rustix::process::Pid::from_raw(
        place
            .text("trap 'x=1' USR1; echo $$")
            .await
            .parse()
            .unwrap(),
    )
    .unwrap();
    for round in 0..50i64 {
        for signal in [
            rustix::process::Signal::INT,
            rustix::process::Signal::USR1,
            rustix::process::Signal::TERM,
        ] {
            rustix::process::kill_process(pid, signal).unwrap();
        }
        let command = format!("echo mark{round}; (exit {round})");
        let observation = place.run(&command).await;
        // One that arrives while the command runs interrupts it, as it should.
        if exit_code(&observation) != 130 {
            assert_eq!(exit_code(&observation), round, "{observation:?}");
            assert!(
                observation.content.ends_with(&format!("mark{round}")),
                "{observation:?}"
            );
        }
    }
    place.run("trap - USR1").await;
    assert_eq!(
        place.text("echo $$").await,
        pid.as_raw_nonzero().to_string()
    );
}

#[tokio::test]
async fn interrupts_do_not_end_an_idle_shell_that_ends_at_the_first_failure() {
    let place = Place::new().await;
    let shell = place.text("set -e; echo $$").await;
    let pid = rustix::process::Pid::from_raw(shell.parse().unwrap()).unwrap();
    for _ in 0..100 {
        for _ in 0..2 {
            rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        }
        let told = place.run("echo on").await;
        // One that arrives while the command runs interrupts it, as it should.
        let is_interrupted = exit_code(&told) == 130;
        assert!(is_interrupted || told.content == "on", "{told:?}");
    }
    assert_eq!(place.text("echo $$").await, shell);
    place.run("set +e").await;
    check_usable(&place).await;
}

#[tokio::test]
async fn an_impatient_terminal_does_not_end_an_idle_shell() {
    let place = Place::new().await;
    assert_eq!(place.text("TMOUT=1; kept=yes").await, "");
    // The other shell is the clock.
    let other = zareba_protocol::ShellName::new("clock").unwrap();
    place
        .event(crate::place::blocking("sleep 1.5").with_shell(other))
        .await;
    assert_eq!(
        place.run("echo $kept").await,
        place.ended("echo $kept", "yes", 0)
    );
}

#[tokio::test]
async fn a_terminal_left_in_any_mode_is_put_right_for_the_next_command() {
    let place = Place::new().await;
    for modes in [
        "stty raw -echo",
        "stty -icanon -isig -opost",
        "stty intr x eof y",
        "stty cols 10 rows 2; stty size",
    ] {
        assert_eq!(exit_code(&place.run(&format!("{modes}; true")).await), 0);
        check_usable(&place).await;
    }
    assert_eq!(
        place
            .text("stty -a | grep -o -e ' icanon' -e ' echo ' -e 'intr = ^C'")
            .await
            .lines()
            .count(),
        3
    );
}

#[tokio::test]
async fn output_stopped_with_ctrl_s_runs_again_with_the_next_command() {
    let place = Place::new().await;
    place.start("echo here; read -t 0.5 x; true", "here").await;
    place
        .event(crate::place::blocking("C-s").with_timeout(0.0))
        .await;
    let ended = place.run("").await;
    assert_eq!(exit_code(&ended), 0, "{ended:?}");
    check_usable(&place).await;
}

#[tokio::test]
async fn descriptors_that_were_closed_or_limited_leave_the_shell_usable() {
    let place = Place::new().await;
    place.run("ulimit -n 64").await;
    check_usable(&place).await;
    assert_eq!(place.text("ulimit -n").await, "64");
    assert_eq!(exit_code(&place.run("exec 2>&-").await), 0);
    assert_eq!(place.run("echo out; ls /nowhere").await.content, "out");
    assert_eq!(
        exit_code(
            &place
                .run("exec 2>/dev/tty 57>&- 58>&- 59>&- 3>&- 9>&-")
                .await
        ),
        0
    );
    check_usable(&place).await;
    place.run("exec >hidden.txt").await;
    assert_eq!(place.run("echo hidden").await.content, "");
    assert_eq!(place.text("exec >/dev/tty; cat hidden.txt").await, "hidden");
    check_usable(&place).await;
}

#[tokio::test]
async fn a_shell_that_loses_its_channels_can_be_got_rid_of() {
    let place = Place::new().await;
    let closing = place
        .run_for(0.5, "for n in {3..254}; do eval \"exec $n>&-\"; done")
        .await;
    if exit_code(&closing) == -1 {
        let ended = place.input("C-c").await;
        assert!(metadata(&ended).shell_restarted, "{ended:?}");
    }
    check_usable(&place).await;
}

#[tokio::test]
async fn the_current_directory_may_have_any_name() {
    let place = Place::new().await;
    let name = "a\nb 'c' \"d\" $e \\f é \u{1b}[31m";
    std::fs::create_dir(place.directory.join(name)).unwrap();
    let command = "cd a*";
    assert_eq!(
        place.run(command).await,
        place.ended_in(&place.directory.join(name), command, "", 0)
    );
    assert_eq!(place.run("exit").await.content, "exit");
    assert_eq!(
        place.run("true").await,
        place.ended_in(&place.directory.join(name), "true", "", 0)
    );
    assert_eq!(
        place.run("cd /").await,
        place.ended_in(Path::new("/"), "cd /", "", 0)
    );
}

#[tokio::test]
async fn a_fork_storm_of_background_jobs_keeps_the_order_of_things() {
    let place = Place::new().await;
    place.run("for i in {1..50}; do (sleep 0.0$((RANDOM % 9)); echo bg) & done 2>/dev/null; disown -a").await;
    for round in 0..30 {
        let observation = place.run(&format!("echo fg{round}; (exit {round})")).await;
        assert_eq!(exit_code(&observation), round);
        assert!(
            observation.content.contains(&format!("fg{round}")),
            "{observation:?}"
        );
    }
}
