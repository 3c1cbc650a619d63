//! A shell keeps what commands do to it, and takes all that a person could type.

use std::os::unix::fs::PermissionsExt as _;

use zareba_protocol::{Action, ActionEvent, CommandMetadata, Observation, RunCommand};

use crate::place::{Place, observed};

#[tokio::test]
async fn directory_variables_functions_aliases_options_and_status_are_kept() {
    let place = Place::new().await;
    let inner = place.directory.join("inner dir");
    let steps = [
        ("mkdir 'inner dir' && cd 'inner dir'", "", 0),
        ("pwd", inner.to_str().unwrap(), 0),
        (
            "plain=1; export shown=2; declare -a list=(a 'b c'); declare -A map=([key]=value)",
            "",
            0,
        ),
        (
            "echo $plain $shown ${list[1]} ${map[key]}; env | grep ^shown",
            "1 2 b c value\nshown=2",
            0,
        ),
        ("greet() { echo \"hello $1\"; return 3; }", "", 0),
        ("greet you", "hello you", 3),
        ("echo $?", "3", 0),
        ("alias say='echo said'", "", 0),
        ("say so", "said so", 0),
        ("set -o noglob; shopt -s nullglob", "", 0),
        ("echo *; shopt nullglob", "*\nnullglob        on", 0),
        ("umask 027", "", 0),
        ("umask", "0027", 0),
        ("false", "", 1),
        ("(exit 42)", "", 42),
        ("echo $?", "42", 0),
    ];
    let mut directory = place.directory.clone();
    for (command, content, code) in steps {
        if command.contains("cd ") {
            directory.clone_from(&inner);
        }
        assert_eq!(
            place.run(command).await,
            place.ended_in(&directory, command, content, code)
        );
    }
}

#[tokio::test]
async fn bash_goes_by_its_short_name_and_knows_where_it_is() {
    let place = Place::new().await;
    let told = place.run("echo $0 $BASH; no-such-program").await.content;
    let (name, refusal) = told.split_once('\n').unwrap();
    let (short, whole) = name.split_once(' ').unwrap();
    assert_eq!(short, "bash");
    assert!(
        whole.starts_with('/') && whole.ends_with("/bash"),
        "{whole}"
    );
    assert_eq!(refusal, "bash: no-such-program: command not found");
}

#[tokio::test]
async fn the_metadata_tell_user_host_directory_python_and_the_last_background_process() {
    let place = Place::new().await;
    assert_eq!(
        place.run("cd /usr && true").await,
        place.ended_in("/usr".as_ref(), "cd /usr && true", "", 0)
    );
    assert_eq!(place.text("id -un; uname -n").await.lines().count(), 2);
    let command = "sleep 1000 & echo $!";
    let observation = place.run(command).await;
    let pid: i64 = observation.content.lines().last().unwrap().parse().unwrap();
    let expected = place.ended_in("/usr".as_ref(), command, &format!("[1] {pid}\n{pid}"), 0);
    assert_eq!(observation, with_pid(expected, pid));
    assert_eq!(
        place.run("true").await,
        with_pid(place.ended_in("/usr".as_ref(), "true", "", 0), pid)
    );
    let bare = place.run("PATH=/nowhere").await;
    let mut expected = with_pid(place.ended_in("/usr".as_ref(), "PATH=/nowhere", "", 0), pid);
    change(&mut expected, |metadata| {
        metadata.py_interpreter_path = Some(String::new())
    });
    assert_eq!(bare, expected);
}

fn with_pid(mut observation: Observation, pid: i64) -> Observation {
    change(&mut observation, |metadata| metadata.pid = pid);
    observation
}

fn change(observation: &mut Observation, with: impl FnOnce(&mut CommandMetadata)) {
    if let zareba_protocol::ObservationKind::Run(output) = &mut observation.kind {
        with(&mut output.metadata);
    }
}

#[tokio::test]
async fn all_that_a_person_could_type_reaches_the_shell_unharmed() {
    let place = Place::new().await;
    let cases = [
        ("echo a\\;b a\\|b a\\&b a\\>b", "a;b a|b a&b a>b"),
        ("find . -maxdepth 0 -exec echo {} \\;", "."),
        ("printf '%s\\n' 'a\tb' \"\tc\" | cat -A", "a^Ib$\n^Ic$"),
        ("\techo tab\tbefore", "tab before"),
        ("echo !! !$ !echo \"!x\"", "!! !$ !echo !x"),
        (
            "echo 'it'\\''s' \"$((1 + 2))\" `echo x` $(echo y)",
            "it's 3 x y",
        ),
        ("echo héllo 世界 🎉 e\u{301}", "héllo 世界 🎉 e\u{301}"),
        ("echo one \\\n  two", "one two"),
        ("echo 'first\nsecond'", "first\nsecond"),
        (
            "for i in 1 2; do\n  for j in a b; do\n    echo $i$j\n  done\ndone",
            "1a\n1b\n2a\n2b",
        ),
        ("if true; then\n\n  echo yes\nfi", "yes"),
        (
            "cat <<EOF\none $((1 + 1))\n\ttwo\nEOF",
            "one 2\n        two",
        ),
        (
            "cat <<'EOF' | tr a-z A-Z\nkeep $this `and` that\nEOF",
            "KEEP $THIS `AND` THAT",
        ),
        ("cat <<-EOF\n\tno tabs\n\tEOF", "no tabs"),
        ("cat <<A; cat <<B\na\nA\nb\nB", "a\nb"),
        ("echo done # with a comment", "done"),
        ("# nothing but a comment", ""),
        (
            "[[ abc == a* ]] && echo matched; case x in x) echo x;; esac",
            "matched\nx",
        ),
        ("printf 'no newline at the end'", "no newline at the end"),
        ("echo -e 'a\\n\\n\\nz'", "a\n\n\nz"),
        ("true && echo yes || echo no; ! false", "yes"),
        ("{ echo out; echo err >&2; }", "out\nerr"),
    ];
    for (command, content) in cases {
        let asked = command.trim();
        assert_eq!(place.run(command).await, place.ended(asked, content, 0));
    }
}

#[tokio::test]
async fn a_command_that_is_no_command_says_so_and_leaves_the_shell_usable() {
    let place = Place::new().await;
    let cases = [
        (
            "echo 'unterminated",
            2,
            "unexpected EOF while looking for matching",
        ),
        ("if true; then", 2, "syntax error"),
        (")", 2, "syntax error near unexpected token"),
        (
            "nonexistent_command",
            127,
            "bash: nonexistent_command: command not found",
        ),
        ("/", 126, "Is a directory"),
        ("echo ${bad substitution}", 1, "bad substitution"),
    ];
    for (command, code, text) in cases {
        let observation = place.run(command).await;
        assert_eq!(
            crate::place::exit_code(&observation),
            code,
            "{observation:?}"
        );
        assert!(observation.content.contains(text), "{observation:?}");
        assert_eq!(place.run("echo ok").await, place.ended("echo ok", "ok", 0));
    }
}

#[tokio::test]
async fn several_commands_in_one_action_are_refused_and_none_is_run() {
    let place = Place::new().await;
    let refused = place.run("touch a\ncd /tmp;\n# note\ntouch b").await;
    let text = "ERROR: Cannot execute multiple commands at once.\nPlease run each command separately OR chain \
                them into a single command via && or ;\nProvided commands:\n(1) touch a\n(2) cd /tmp;\n# note\n(3) touch b";
    assert_eq!(refused, Observation::error(text));
    assert_eq!(place.run("ls -A").await, place.ended("ls -A", "", 0));
    let hidden = RunCommand {
        hidden: true,
        ..RunCommand::new("echo a\necho b")
    };
    let observation = place.event(Action::Run(hidden)).await;
    assert!(
        observation
            .content
            .starts_with("ERROR: Cannot execute multiple commands"),
        "{observation:?}"
    );
    assert_eq!(crate::place::exit_code(&observation), -1);
}

#[tokio::test]
async fn a_command_with_a_nul_or_of_monstrous_size_is_refused() {
    let place = Place::new().await;
    let nul = place.run("echo a\0b").await;
    assert_eq!(
        nul,
        Observation::error("ERROR: The command contains a NUL character, which no shell can take.")
    );
    let monster = place
        .run(&format!(": {}", "x".repeat(17 * 1024 * 1024)))
        .await;
    assert_eq!(
        monster,
        Observation::error(
            "ERROR: The command has 17825794 bytes; the limit is 16777216. Write it to a file and run that."
        )
    );
    assert_eq!(place.text("echo ok").await, "ok");
}

#[tokio::test]
async fn a_command_line_of_a_mebibyte_arrives_whole() {
    let place = Place::new().await;
    let word: String = (0..1024 * 1024)
        .map(|index| char::from(b'a' + (index % 26) as u8))
        .collect();
    let command = format!("x='{word}'; echo ${{#x}} ${{x:0:3}} ${{x: -3}}");
    assert_eq!(
        place.run(&command).await.content,
        format!("{} abc {}", word.len(), &word[word.len() - 3..])
    );
    let lines = format!("echo {}\n", "x".repeat(1024)).repeat(1024);
    let script = format!("{{\n{lines}}} | wc");
    assert_eq!(
        place
            .run(&script)
            .await
            .content
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["1024", "1024", "1049600"]
    );
}

#[tokio::test]
async fn an_empty_workspace_shows_nothing_of_ours() {
    let place = Place::new().await;
    assert_eq!(place.text("ls -lA").await, "total 0");
}

#[tokio::test]
async fn the_environment_is_the_same_twice_and_has_nothing_of_ours() {
    let place = Place::new().await;
    let (first, second) = (
        place.text("env | sort").await,
        place.text("env | sort").await,
    );
    assert_eq!(first, second);
    let lower = first.to_lowercase();
    for ours in [
        "__zareba",
        "\nzareba_",
        "session_api_key",
        "bash_env",
        "prompt_command",
        "\nps1=",
    ] {
        assert!(!lower.contains(ours), "{ours} in {first}");
    }
    assert!(
        first.lines().any(|line| line == "TERM=xterm-256color"),
        "{first}"
    );
    assert!(
        first
            .lines()
            .any(|line| line == format!("HOME={}", place.home.path().display())),
        "{first}"
    );
}

#[tokio::test]
async fn programs_get_the_terminal_and_no_other_descriptor() {
    let place = Place::new().await;
    assert_eq!(place.text("ls -m /proc/self/fd").await, "0, 1, 2, 3");
    assert_eq!(
        place.text("bash -c 'echo /proc/self/fd/*'").await,
        "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3"
    );
    assert_eq!(
        place
            .text("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size")
            .await,
        "1000 1000"
    );
    place
        .run("sh -c 'ls -m /proc/$$/fd; :' >listing & wait")
        .await;
    assert_eq!(place.text("cat listing").await, "0, 1, 2");
}

#[tokio::test]
async fn a_start_up_file_is_read_and_cannot_spoil_the_shell() {
    let home = tempfile::tempdir().unwrap();
    let start_up = "echo noise; alias ll='ls -l'; export FROM_RC=yes; PS1='> '; PROMPT_COMMAND='echo prompt'\n\
                    alias printf=false builtin=false eval=false; read() { false; }; trap 'echo dbg' DEBUG; trap - DEBUG\n\
                    sleep 1000 & disown";
    std::fs::write(home.path().join(".bashrc"), start_up).unwrap();
    let place = Place::in_home(home, |_| {}).await;
    assert_eq!(
        place
            .text("echo $FROM_RC; type -t ll; unalias printf")
            .await,
        "yes\nalias"
    );
    assert_eq!(place.run("false").await.content, "");
    let kept = "ls -l /proc/$(pgrep -s $$ -x sleep)/fd | grep -c -e pipe: -e memfd:";
    assert_eq!(place.run(kept).await.content, "0");
}

#[tokio::test]
async fn a_static_command_has_a_shell_of_its_own() {
    let place = Place::new().await;
    place.run("variable=set").await;
    let ask = |command: &str, cwd: Option<&str>| {
        let action = RunCommand {
            is_static: true,
            cwd: cwd.map(str::to_owned),
            ..RunCommand::new(command)
        };
        ActionEvent::from(Action::Run(action))
    };
    let elsewhere = place
        .event(ask("pwd; echo \"<$variable>\"; cd /", Some("/usr")))
        .await;
    assert_eq!(
        elsewhere,
        place.ended_in(
            "/".as_ref(),
            "pwd; echo \"<$variable>\"; cd /",
            "/usr\n<>",
            0
        )
    );
    // Not run elsewhere instead.
    let missing = place.directory.join("missing");
    let refused = place
        .event(ask("touch ran", Some(missing.to_str().unwrap())))
        .await;
    let expected = format!(
        "ERROR: there is no directory `{}` to run the command in",
        missing.display()
    );
    assert_eq!(refused, Observation::error(expected));
    assert_eq!(
        place.event(ask("touch ran", Some("missing"))).await,
        refused
    );
    assert_eq!(place.run("ls").await.content, "");
    assert_eq!(
        place.event(ask("pwd", None)).await,
        place.ended("pwd", place.directory.to_str().unwrap(), 0)
    );
    assert_eq!(place.text("echo $variable").await, "set");
}

#[tokio::test]
async fn a_hidden_command_is_not_cut_and_says_that_it_is_hidden() {
    let place = Place::new().await;
    let command = "seq -w 1 8000";
    let observation = place
        .event(Action::Run(RunCommand {
            hidden: true,
            ..RunCommand::new(command)
        }))
        .await;
    let content: Vec<String> = (1..=8000).map(|number| format!("{number:04}")).collect();
    let mut expected = place.ended(command, &content.join("\n"), 0);
    if let zareba_protocol::ObservationKind::Run(output) = &mut expected.kind {
        output.hidden = true;
    }
    assert_eq!(observation, expected);
}

#[tokio::test]
async fn a_directory_that_was_deleted_under_the_shell_keeps_its_name() {
    let place = Place::new().await;
    let gone = place.directory.join("gone");
    let command = "mkdir gone && cd gone && rmdir ../gone";
    assert_eq!(
        place.run(command).await,
        place.ended_in(&gone, command, "", 0)
    );
    assert_eq!(
        place.run("echo here").await,
        place.ended_in(&gone, "echo here", "here", 0)
    );
    assert_eq!(place.run("cd ..").await, place.ended("cd ..", "", 0));
}

#[tokio::test]
async fn a_static_or_unknown_start_directory_is_made_and_used() {
    let place =
        Place::with(|options| options.working_dir = options.working_dir.join("a/b c/ü'\"$x")).await;
    assert_eq!(place.text("pwd").await, place.directory.to_str().unwrap());
    assert!(place.directory.ends_with("a/b c/ü'\"$x"));
    let metadata = place.metadata(&place.directory);
    let suffix = "\n[The command completed with exit code 0.]".to_owned();
    assert_eq!(
        place.run("true").await,
        observed(
            "true",
            "",
            CommandMetadata {
                exit_code: 0,
                suffix,
                ..metadata
            }
        )
    );
}

/// Where a password is needed, it would be waited for until the command is given up.
#[tokio::test]
async fn sudo_never_asks_for_a_password_and_a_backslash_lets_it() {
    for shell in ["bash", "sh"] {
        let place = Place::with(|options| options.shell = Some(shell.into())).await;
        let sudo = place.home.path().join("bin/sudo");
        std::fs::write(&sudo, "#!/bin/sh\nprintf '%s\\n' \"$*\"\n").unwrap();
        std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(place.text("sudo true").await, "-n true", "{shell}");
        assert_eq!(place.text("\\sudo true").await, "true", "{shell}");
    }
}
