//! Thousands of random commands in one shell: each observation belongs to its command.
//!
//! The seed is printed; `ZAREBA_TEST_SEED` and `ZAREBA_TEST_COMMANDS` choose another run.

use zareba_protocol::{Action, ActionEvent, Observation, RunCommand};

use crate::place::{Place, blocking, exit_code, metadata};

/// A small generator, so that a seed means the same run everywhere and for ever.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    /// A line without blanks at its ends, of all that has a meaning to shells.
    fn line(&mut self) -> String {
        let pieces = [
            "a",
            "Z9",
            "'",
            "\"",
            "\\",
            "$x",
            "`",
            "!",
            "!!",
            "#",
            ";",
            "|",
            "&",
            "(",
            ")",
            "{",
            "*",
            "~",
            "é",
            "世界",
            "🎉",
            "e\u{301}",
            " ",
            "  ",
            "<<EOF",
            "EOF",
            "%s",
            "\\n",
            "__zareba_done",
        ];
        let count = self.below(12);
        let middle: String = (0..count).map(|_| self.pick(&pieces)).collect();
        format!("<{middle}>")
    }
}

fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        if "\"\\$`".contains(character) {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted + "\""
}

/// The shell, what is known of it, and the command that is due.
struct Walk {
    place: Place,
    random: Random,
    number: u64,
    /// The shell's variable `count`.
    count: u64,
}

impl Walk {
    /// A walk of so many steps, unless the environment says otherwise, and how many those are.
    #[expect(
        clippy::print_stdout,
        reason = "whoever reads a failure repeats it with these"
    )]
    async fn begin(steps: u64) -> (Self, u64) {
        let seed = number_from_environment("ZAREBA_TEST_SEED").unwrap_or(1);
        let steps = number_from_environment("ZAREBA_TEST_COMMANDS").unwrap_or(steps);
        println!("ZAREBA_TEST_SEED={seed} ZAREBA_TEST_COMMANDS={steps}");
        let walk = Self {
            place: Place::new().await,
            random: Random(seed),
            number: 0,
            count: 0,
        };
        (walk, steps)
    }

    /// Appears in the output of this command and of no other.
    fn mark(&self) -> String {
        format!("m{}.", self.number)
    }

    fn code(&mut self) -> i64 {
        i64::try_from(self.random.below(120)).unwrap()
    }

    /// The content without what background jobs wrote, what the shell says of them, and the echo
    /// of a key that came when the command before had just ended.
    fn own(&self, observation: &Observation) -> String {
        let is_own = |line: &&str| {
            !line.starts_with("bg") && !line.starts_with('[') && !line.starts_with("(wd now")
        };
        observation
            .content
            .lines()
            .filter(is_own)
            .collect::<Vec<_>>()
            .join("\n")
            .trim_start_matches(['^', 'C', '\\', '\n'])
            .trim()
            .to_owned()
    }

    #[track_caller]
    fn check(&self, command: &str, observation: &Observation, content: &str, code: i64) {
        assert_eq!(
            (exit_code(observation), self.own(observation).as_str()),
            (code, content),
            "{command:?}: {observation:?}"
        );
    }

    async fn quotes(&mut self) {
        let (line, mark, code) = (self.random.line(), self.mark(), self.code());
        let quoted = if self.random.below(2) == 0 {
            single_quoted(&line)
        } else {
            double_quoted(&line)
        };
        let command = format!("printf '%s\\n' {quoted} {mark}; (exit {code})");
        self.check(
            &command,
            &self.place.run(&command).await,
            &format!("{line}\n{mark}"),
            code,
        );
    }

    async fn here_document(&mut self) {
        let lines: Vec<String> = (0..1 + self.random.below(4))
            .map(|_| self.random.line())
            .collect();
        let (text, mark) = (lines.join("\n"), self.mark());
        let command = format!("cat <<'E{mark}'\n{text}\n{mark}\nE{mark}");
        self.check(
            &command,
            &self.place.run(&command).await,
            &format!("{text}\n{mark}"),
            0,
        );
    }

    async fn state(&mut self) {
        self.count += 1;
        let mark = self.mark();
        let command = format!("count=$((count + 1)); echo {mark} $count");
        self.check(
            &command,
            &self.place.run(&command).await,
            &format!("{mark} {}", self.count),
            0,
        );
    }

    async fn lines(&mut self) {
        let (mark, code) = (self.mark(), self.code());
        let command = format!(
            "for i in 1 2 3; do\n  if [ $i = 2 ]; then\n    echo {mark} $i # two\n  fi\ndone && (exit {code})"
        );
        self.check(
            &command,
            &self.place.run(&command).await,
            &format!("{mark} 2"),
            code,
        );
    }

    async fn broken(&mut self) {
        let mark = self.mark();
        let (command, code) = match self.random.below(5) {
            0 => (format!("echo '{mark}"), 2),
            1 => (format!("echo \"{mark}"), 2),
            2 => (format!("if {mark}; then"), 2),
            3 => (format!("{mark}no_such"), 127),
            _ => (format!("echo {mark} )"), 2),
        };
        let observation = self.place.run(&command).await;
        assert_eq!(
            exit_code(&observation),
            code,
            "{command:?}: {observation:?}"
        );
        assert!(
            self.own(&observation).starts_with("bash: "),
            "{command:?}: {observation:?}"
        );
    }

    async fn directory(&mut self) {
        let (mark, directory) = (
            self.mark(),
            self.random.pick(&["/", "/usr", "/tmp", "/usr/bin"]),
        );
        let command = format!("cd {directory}; echo {mark}");
        let observation = self.place.run(&command).await;
        self.check(&command, &observation, &mark, 0);
        assert_eq!(
            metadata(&observation).working_dir.as_deref(),
            Some(directory)
        );
    }

    async fn much(&mut self) {
        let (mark, code) = (self.mark(), self.code());
        let lines = self.random.below(20_000);
        let command = format!("seq {lines}; echo {mark}; (exit {code})");
        let observation = self.place.run(&command).await;
        assert_eq!(exit_code(&observation), code, "{command:?}");
        assert!(self.own(&observation).ends_with(&mark), "{command:?}");
    }

    async fn background(&mut self) {
        let (mark, number, delay) = (self.mark(), self.number, self.random.below(9));
        let command = format!("{{ sleep 0.00{delay}; echo bg{number}; }} & echo {mark}");
        self.check(&command, &self.place.run(&command).await, &mark, 0);
    }

    async fn signals(&mut self) {
        let mark = self.mark();
        let (signal, code) = if self.random.below(2) == 0 {
            ("INT", 130)
        } else {
            ("TERM", 0)
        };
        let command = format!("echo {mark}; kill -{signal} $$");
        self.check(&command, &self.place.run(&command).await, &mark, code);
    }

    async fn exits(&mut self) {
        let (mark, code) = (self.mark(), self.code());
        let (command, content, code) = match self.random.below(3) {
            0 => (
                format!("echo {mark}; exit {code}"),
                format!("{mark}\nexit"),
                code,
            ),
            1 => (
                format!("echo {mark}; exec bash -c 'exit {code}'"),
                mark,
                code,
            ),
            _ => (format!("echo {mark}; kill -9 $$"), mark, 137),
        };
        let observation = self.place.run(&command).await;
        self.check(&command, &observation, &content, code);
        assert!(metadata(&observation).shell_restarted, "{observation:?}");
        self.count = 0;
    }

    /// A command that is polled until it ends.
    async fn polled(&mut self) {
        let (mark, code, delay) = (self.mark(), self.code(), self.random.below(9));
        let command = format!("echo {mark}; sleep 0.00{delay}; echo {mark}end; (exit {code})");
        let moment = self.moment();
        let mut observation = self.place.run_for(moment, &command).await;
        let mut shown = self.own(&observation);
        while exit_code(&observation) == -1 {
            let moment = self.moment();
            observation = self.place.event(blocking("").with_timeout(moment)).await;
            shown.push('\n');
            shown.push_str(&self.own(&observation));
        }
        let words: Vec<&str> = shown.split_whitespace().collect();
        assert_eq!(
            (words, exit_code(&observation)),
            (vec![mark.as_str(), &format!("{mark}end")], code),
            "{observation:?}"
        );
    }

    async fn typed(&mut self) {
        let (mark, word) = (self.mark(), self.random.below(1000));
        let command = format!("read -r line; echo \"{mark}$line\"");
        let moment = self.moment();
        let observation = self.place.run_for(moment, &command).await;
        assert_eq!(exit_code(&observation), -1, "{observation:?}");
        let observation = self.place.input(&word.to_string()).await;
        let own = self.own(&observation);
        assert_eq!(exit_code(&observation), 0, "{observation:?}");
        assert_eq!(
            own.lines().last(),
            Some(format!("{mark}{word}").as_str()),
            "{observation:?}"
        );
    }

    /// A key that comes while the command runs, or just when it ends.
    async fn interrupted(&mut self) {
        let (mark, delay) = (self.mark(), self.random.below(9));
        let ends = self.random.below(2) == 0;
        let sleep = if ends {
            format!("0.00{delay}")
        } else {
            "1000".to_owned()
        };
        let command = format!("echo {mark}; sleep {sleep}");
        let moment = self.moment();
        let observation = self.place.run_for(moment, &command).await;
        let (mut last, mut shown) = (observation.clone(), self.own(&observation));
        let key = self.random.pick(&["C-c", "C-c", "C-\\"]);
        while exit_code(&last) == -1 {
            let press = Action::Run(RunCommand {
                blocking: true,
                ..RunCommand::input(key)
            });
            last = self
                .place
                .event(ActionEvent::from(press).with_timeout(1.0))
                .await;
            shown.push_str(&self.own(&last));
        }
        let code = exit_code(&last);
        let killed = if key == "C-c" { 130 } else { 131 };
        assert!(
            code == killed || (ends && code == 0),
            "{command:?} {key}: {last:?}"
        );
        // What a key makes the kernel forget may have been this.
        let marks = shown.matches(&mark).count();
        assert!(marks <= 1, "{command:?}: {shown:?}");
    }

    /// A client that goes away; the command's end is fetched by the next one.
    async fn abandoned(&mut self) {
        let (mark, code) = (self.mark(), self.code());
        let command = format!("echo {mark}; (exit {code})");
        let moment = std::time::Duration::from_secs_f64(self.moment());
        let dropped =
            tokio::time::timeout(moment, self.place.executor.execute(blocking(&command))).await;
        if let Ok(answer) = dropped {
            self.check(&command, &answer.observation, &mark, code);
            return;
        }
        let observation = self.place.run("").await;
        let never = "ERROR: No previous running command to retrieve logs from.";
        if observation.content != never {
            self.check(&command, &observation, &mark, code);
        }
    }

    /// A few milliseconds at most, in seconds.
    fn moment(&mut self) -> f64 {
        f64::from(u32::try_from(self.random.below(8000)).unwrap()) / 1e6
    }

    async fn step(&mut self) {
        self.number += 1;
        match self.random.below(1000) {
            0..250 => self.quotes().await,
            250..400 => self.here_document().await,
            400..550 => self.state().await,
            550..650 => self.lines().await,
            650..720 => self.broken().await,
            720..770 => self.directory().await,
            770..780 => self.much().await,
            780..830 => self.background().await,
            830..850 => self.signals().await,
            850..855 => self.exits().await,
            855..900 => self.polled().await,
            900..940 => self.typed().await,
            940..980 => self.interrupted().await,
            _ => self.abandoned().await,
        }
    }
}

fn number_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_random_commands_in_one_shell_never_desynchronise() {
    let (mut walk, commands) = Walk::begin(10_000).await;
    for _ in 0..commands {
        walk.step().await;
    }
    // What the shell says of jobs that end just now would be in the way of the last look.
    walk.place.run("wait").await;
    walk.number += 1;
    walk.state().await;
    assert_eq!(walk.place.run("cd /usr").await, {
        let mut expected = walk.place.ended_in("/usr".as_ref(), "cd /usr", "", 0);
        let last = walk.place.run("true").await;
        if let zareba_protocol::ObservationKind::Run(output) = &mut expected.kind {
            output.metadata.pid = metadata(&last).pid;
        }
        expected
    });
}

/// What a key that came late has left behind would be read by the next command.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_come_late_leave_nothing_for_the_next_command_to_read() {
    let (mut walk, commands) = Walk::begin(1_000).await;
    for _ in 0..commands {
        walk.number += 1;
        walk.interrupted().await;
        walk.number += 1;
        walk.typed().await;
    }
}
