//! Images that are built: by both builders, from Dockerfiles and from recipes, for us and for
//! OpenHands' clients.

use std::{
    fs::{self, File},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::fs::FlockOperation;
use tempfile::TempDir;
use tokio::sync::Notify;
use zareba_protocol::{ErrorClass, RuntimeStatus};
use zareba_runtime_docker::{
    BuildError, BuildEvent, BuildListener, BuildManner, BuildOrder, BuildSource, BuilderChoice,
    BuiltFrom, BuiltImage, ImageBuilder, PruneOrder, Recipe, RecipeFiles, Reuse, StepState,
    as_statuses,
};

use crate::fixture::{BUSYBOX, DEBIAN, Fixture, engine_socket, fixture, fixture_with};

/// An image name that no other test has, and that goes with the test.
pub(crate) struct Name<'a> {
    fixture: &'a Fixture,
    repository: String,
    _turn: File,
}

/// Who else may use the cache of builds meanwhile. BuildKit loses the context of a build when the
/// cache is removed under its hands.
#[derive(Clone, Copy)]
pub(crate) enum Cache {
    Shared,
    Alone,
}

/// Waits for a turn, which ends when the handle is dropped. Nothing is left of it: what is locked
/// is the directory of the Engine's socket.
pub(crate) fn turn(cache: Cache) -> File {
    let socket = engine_socket();
    let directory = File::open(socket.parent().unwrap()).unwrap();
    let operation = match cache {
        Cache::Shared => FlockOperation::LockShared,
        Cache::Alone => FlockOperation::LockExclusive,
    };
    rustix::fs::flock(&directory, operation).unwrap();
    directory
}

impl<'a> Name<'a> {
    pub(crate) fn new(fixture: &'a Fixture, purpose: &str) -> Self {
        Self::in_turn(fixture, purpose, Cache::Shared)
    }

    fn in_turn(fixture: &'a Fixture, purpose: &str, cache: Cache) -> Self {
        let repository = format!("zareba-test/built-{purpose}-{}", std::process::id());
        Self {
            fixture,
            repository,
            _turn: turn(cache),
        }
    }

    pub(crate) fn tagged(&self, tag: &str) -> String {
        format!("{}:{tag}", self.repository)
    }

    fn images(&self) -> Vec<String> {
        let format = "{{.Repository}}:{{.Tag}}";
        let listed = self
            .fixture
            .docker(&["images", "--format", format, &self.repository]);
        listed.lines().map(str::to_owned).collect()
    }
}

impl Drop for Name<'_> {
    fn drop(&mut self) {
        for image in self.images() {
            self.fixture.docker(&["rmi", "--force", &image]);
        }
    }
}

pub(crate) fn context(dockerfile: &str, files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("Dockerfile"), dockerfile).unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

pub(crate) fn order(context: &TempDir, name: String, builder: BuilderChoice) -> BuildOrder {
    BuildOrder {
        source: BuildSource::Directory {
            directory: context.path().to_owned(),
            dockerfile: None,
        },
        names: vec![name],
        platform: None,
        arguments: Vec::new(),
        manner: BuildManner {
            builder,
            ..BuildManner::default()
        },
    }
}

pub(crate) fn nobody() -> BuildListener {
    Arc::new(|_| {})
}

/// Keeps all that is told.
fn listening() -> (BuildListener, Arc<Mutex<Vec<BuildEvent>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let listener = move |event: &BuildEvent| kept.lock().unwrap().push(event.clone());
    (Arc::new(listener), told)
}

fn steps(told: &Mutex<Vec<BuildEvent>>, wanted: StepState) -> Vec<String> {
    let told = told.lock().unwrap();
    let texts = told.iter().filter_map(|event| match event {
        BuildEvent::Step {
            position: Some(_),
            text,
            state,
        } if *state == wanted => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

pub(crate) fn file_of(fixture: &Fixture, image: &str, path: &str) -> String {
    fixture.docker(&["run", "--rm", "--network", "none", image, "cat", path])
}

#[tokio::test(flavor = "multi_thread")]
async fn both_builders_build_a_dockerfile_and_tell_of_it() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let name = Name::new(&fixture, &format!("both-{choice:?}").to_lowercase());
        let dockerfile = format!(
            "FROM {BUSYBOX}\nARG WORD=none\nCOPY . /in\n\
             RUN echo \"said $WORD\" && echo $WORD > /word-{choice:?}\n"
        );
        let files = [
            (".dockerignore", "secret\n"),
            ("secret", "s"),
            ("kept/file", "k"),
        ];
        let context = context(&dockerfile, &files);
        std::os::unix::fs::symlink("/etc/hostname", context.path().join("link")).unwrap();
        let mut order = order(&context, name.tagged("one"), choice);
        order.names.push(name.tagged("two"));
        order
            .arguments
            .push(("WORD".to_owned(), "hello".to_owned()));
        let (listener, told) = listening();
        let built = builder.build(order, &listener).await.unwrap();
        assert!(built.id.starts_with("sha256:"), "{built:?}");
        assert_eq!(name.images().len(), 2);

        let image = name.tagged("two");
        let word = file_of(&fixture, &image, &format!("/word-{choice:?}"));
        assert_eq!(word, "hello\n");
        let list = [
            "run",
            "--rm",
            "--network",
            "none",
            &image,
            "ls",
            "-A",
            "/in",
        ];
        let names = fixture.docker(&list);
        assert!(!names.contains("secret"), "{choice:?}: {names}");
        assert!(names.contains("kept") && names.contains("link"), "{names}");

        let begun = steps(&told, StepState::Begun).join("\n");
        let ended = steps(&told, StepState::Done).join("\n");
        for deed in ["COPY . /in", "RUN echo"] {
            assert!(
                begun.contains(deed) && ended.contains(deed),
                "{choice:?}: {begun}"
            );
        }
        let told = told.lock().unwrap();
        let output = |event: &BuildEvent| matches!(event, BuildEvent::Output { text } if text.contains("said hello"));
        assert!(told.iter().any(output), "{told:#?}");
        let sent =
            |event: &BuildEvent| matches!(event, BuildEvent::Sending { bytes, of } if bytes == of);
        assert!(told.iter().any(sent), "{told:#?}");
    }
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_that_fails_is_told_with_what_it_wrote() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "fails");
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let context = context(
            &format!("FROM {BUSYBOX}\nRUN echo the reason {choice:?}; exit 3\n"),
            &[],
        );
        let order = order(&context, name.tagged("never"), choice);
        let (listener, told) = listening();
        let error = builder.build(order, &listener).await.unwrap_err();
        let BuildError::Failed { message, output } = &error else {
            panic!("{error:?}");
        };
        assert!(message.contains('3'), "{message}");
        let reason = format!("the reason {choice:?}");
        assert!(output.contains(&reason), "{output}");
        assert_eq!(steps(&told, StepState::Failed).len(), 1, "{told:#?}");
    }
    assert_eq!(name.images(), [""; 0]);
    let containers = fixture.docker(&["ps", "--all", "--quiet", "--filter", "status=exited"]);
    assert_eq!(containers, "", "a failed step left a container");
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_reach_no_network_unless_it_is_allowed() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "network");
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let dockerfile = format!("FROM {BUSYBOX}\nRUN ls /sys/class/net > /net-{choice:?}\n");
        let context = context(&dockerfile, &[]);
        let order = order(&context, name.tagged("it"), choice);
        builder.build(order, &nobody()).await.unwrap();
        let links = file_of(&fixture, &name.tagged("it"), &format!("/net-{choice:?}"));
        assert_eq!(links.trim(), "lo", "{choice:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_is_dropped_ends_on_the_engine() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "dropped");
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let mark = format!("{}7{}", std::process::id(), choice as u8);
        let context = context(&format!("FROM {BUSYBOX}\nRUN sleep {mark}\n"), &[]);
        let order = order(&context, name.tagged("never"), choice);
        let running = Arc::new(Notify::new());
        let seen = Arc::clone(&running);
        let listener: BuildListener = Arc::new(move |event| {
            let is_run = |text: &str| text.contains("RUN sleep");
            if matches!(event, BuildEvent::Step { text, state: StepState::Begun, .. } if is_run(text))
            {
                seen.notify_one();
            }
        });
        let building = builder.build(order, &listener);
        tokio::select! {
            built = building => panic!("{built:?}"),
            () = running.notified() => {}
        }
        wait_until_gone(&format!("sleep {mark}")).await;
    }
    assert_eq!(name.images(), [""; 0]);
}

/// The Engine hears of a closed connection when it looks at it; there is no event to wait for.
async fn wait_until_gone(command: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while is_running(command) {
        assert!(
            std::time::Instant::now() < deadline,
            "`{command}` still runs"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_running(command: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.into_iter().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line
            .split(|byte| *byte == 0)
            .map(String::from_utf8_lossy)
            .collect();
        words.join(" ").contains(command) && !words[0].ends_with("sh")
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_that_takes_too_long_is_ended() {
    let fixture = fixture(BUSYBOX);
    let name = Name::new(&fixture, "slow");
    let mark = format!("{}99", std::process::id());
    let context = context(&format!("FROM {BUSYBOX}\nRUN sleep {mark}\n"), &[]);
    let mut order = order(&context, name.tagged("never"), BuilderChoice::Best);
    order.manner.patience = Duration::from_millis(1500);
    let error = fixture
        .runtime
        .image_builder()
        .build(order, &nobody())
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    wait_until_gone(&format!("sleep {mark}")).await;
}

pub(crate) fn recipe(name: &Name<'_>, files: &TempDir) -> Recipe {
    Recipe {
        repository: name.repository.clone(),
        base: BUSYBOX.to_owned(),
        packages: Vec::new(),
        commands: vec![
            "echo \"it's $((6 * 7))\" > /made; cat /proc/sys/kernel/random/uuid > /when".to_owned(),
        ],
        files: Some(RecipeFiles {
            directory: files.path().to_owned(),
            target: "/opt/code".to_owned(),
        }),
    }
}

pub(crate) async fn make(builder: &ImageBuilder, recipe: &Recipe, reuse: Reuse) -> BuiltImage {
    let manner = BuildManner {
        reuse,
        ..BuildManner::default()
    };
    builder.make(recipe, None, manner, &nobody()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recipe_begins_with_the_best_that_is_there() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "recipe");
    let files = TempDir::new().unwrap();
    fs::write(files.path().join("main"), "one").unwrap();
    let mut recipe = recipe(&name, &files);

    let first = make(&builder, &recipe, Reuse::Everything).await;
    assert_eq!((first.from, first.names.len()), (BuiltFrom::Base, 3));
    let image = &first.names[0];
    assert_eq!(file_of(&fixture, image, "/made"), "it's 42\n");
    assert_eq!(file_of(&fixture, image, "/opt/code/main"), "one");
    let when = file_of(&fixture, image, "/when");

    // All of it is there.
    let again = make(&builder, &recipe, Reuse::Everything).await;
    assert_eq!((again.from, &again.id), (BuiltFrom::Nothing, &first.id));

    // Files differ: what was installed is there.
    fs::write(files.path().join("main"), "two").unwrap();
    let other = make(&builder, &recipe, Reuse::Everything).await;
    assert_eq!((other.from, other.names.len()), (BuiltFrom::Lock, 1));
    assert_eq!(file_of(&fixture, &other.names[0], "/opt/code/main"), "two");
    assert_eq!(file_of(&fixture, &other.names[0], "/when"), when);

    // A file is gone, and is not there from an earlier build.
    fs::rename(files.path().join("main"), files.path().join("other")).unwrap();
    let renamed = make(&builder, &recipe, Reuse::Everything).await;
    assert_eq!(renamed.from, BuiltFrom::Lock);
    let listed = fixture.docker(&[
        "run",
        "--rm",
        "--network",
        "none",
        &renamed.names[0],
        "ls",
        "/opt/code",
    ]);
    assert_eq!(listed, "other\n");

    // Dependencies differ: they are installed on top of the same base.
    recipe.commands.push("echo more > /more".to_owned());
    let more = make(&builder, &recipe, Reuse::Everything).await;
    assert_eq!(more.from, BuiltFrom::Versioned);
    assert_eq!(file_of(&fixture, &more.names[0], "/more"), "more\n");

    // Nothing of it is used, though all is there.
    let fresh = make(&builder, &recipe, Reuse::Nothing).await;
    assert_eq!(
        (fresh.from, &fresh.names[0]),
        (BuiltFrom::Base, &more.names[0])
    );
    assert_ne!(file_of(&fixture, &fresh.names[0], "/when"), when);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_callback_hears_that_a_runtime_is_built() {
    let fixture = fixture(BUSYBOX);
    let name = Name::new(&fixture, "status");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heard);
    let listener = as_statuses(Arc::new(move |update: &zareba_runtime::StatusUpdate| {
        kept.lock().unwrap().push(update.clone());
    }));
    let files = TempDir::new().unwrap();
    let recipe = recipe(&name, &files);
    let builder = fixture.runtime.image_builder();
    let manner = BuildManner {
        reuse: Reuse::Nothing,
        ..BuildManner::default()
    };
    let made = builder.make(&recipe, None, manner, &listener).await;
    made.unwrap();
    let heard = heard.lock().unwrap();
    assert!(
        heard
            .iter()
            .all(|it| it.status == RuntimeStatus::BuildingRuntime)
    );
    assert!(
        heard.iter().any(|it| it.message.contains("RUN")),
        "{heard:#?}"
    );
}

/// DK-10: the operator's list holds for what is built, and for all that it builds on.
#[tokio::test(flavor = "multi_thread")]
async fn the_operators_list_of_images_holds_for_builds() {
    let fixture = fixture_with(BUSYBOX, |options| {
        let images = [BUSYBOX, "zareba-test/built-*"];
        options.allowed.images = Some(images.map(str::to_owned).to_vec());
    });
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "listed");
    let attempt = async |dockerfile: &str, name: String| {
        let context = context(dockerfile, &[]);
        let order = order(&context, name, BuilderChoice::Best);
        builder.build(order, &nobody()).await
    };
    let allowed = format!("FROM {BUSYBOX} AS a\nFROM a\nCOPY --from=a /bin/busybox /copy\n");
    attempt(&allowed, name.tagged("it")).await.unwrap();
    for dockerfile in [
        format!("FROM {DEBIAN}"),
        format!("FROM {BUSYBOX}\nCOPY --from={DEBIAN} /etc /etc"),
        format!("FROM {BUSYBOX}\nRUN --mount=type=bind,from={DEBIAN},target=/d ls /d"),
        format!("ARG X={DEBIAN}\nFROM $X"),
        format!("# syntax={DEBIAN}\nFROM {BUSYBOX}"),
    ] {
        let error = attempt(&dockerfile, name.tagged("it")).await.unwrap_err();
        assert_eq!(
            error.class(),
            ErrorClass::Permission,
            "{dockerfile}: {error}"
        );
    }
    let hidden = format!("FROM {BUSYBOX}\nRUN <<\"E\\\\\"\nE\\\nFROM {DEBIAN}\n");
    let error = attempt(&hidden, name.tagged("it")).await.unwrap_err();
    assert!(matches!(error, BuildError::Dockerfile { .. }), "{error}");
    let error = attempt(&allowed, "elsewhere/name".to_owned())
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Permission, "{error}");
    assert!(builder.find(DEBIAN).await.is_err());
    assert!(builder.find(BUSYBOX).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_told_and_never_fetched_unasked() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::new(&fixture, "missing");
    let context = context("FROM zareba-test/none:1\n", &[]);
    for choice in [BuilderChoice::Classic, BuilderChoice::BuildKit] {
        let order = order(&context, name.tagged("it"), choice);
        let error = builder.build(order, &nobody()).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::NotFound, "{error}");
        assert!(error.to_string().contains("zareba-test/none:1"), "{error}");
    }
    assert_eq!(builder.find("zareba-test/none:1").await.unwrap(), None);
    let found = builder.find(BUSYBOX).await.unwrap().unwrap();
    assert!(
        found.bytes > 100_000 && found.created.starts_with("20"),
        "{found:?}"
    );
    // There is no network here: that is not the same as an image that is not there.
    assert!(builder.is_in_registry("zareba-test/none:1").await.is_err());
    for wrong in ["", "a b", "../../containers/json?", "a//b", "A:\u{e9}"] {
        let error = builder.find(wrong).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Invalid, "{wrong}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_platform_is_asked_for() {
    let fixture = fixture(BUSYBOX);
    let name = Name::new(&fixture, "platform");
    let context = context("FROM scratch\nCOPY Dockerfile /\n", &[]);
    let mut order = order(&context, name.tagged("it"), BuilderChoice::BuildKit);
    order.platform = Some("linux/arm64".to_owned());
    let builder = fixture.runtime.image_builder();
    builder.build(order, &nobody()).await.unwrap();
    let format = "{{.Os}}/{{.Architecture}}";
    let told = fixture.docker(&["inspect", "--format", format, &name.tagged("it")]);
    assert_eq!(told.trim(), "linux/arm64");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_of_builds_is_removed_when_asked() {
    let fixture = fixture(BUSYBOX);
    let builder = fixture.runtime.image_builder();
    let name = Name::in_turn(&fixture, "pruned", Cache::Alone);
    let text = format!("FROM {BUSYBOX}\nRUN head -c 3000000 /dev/urandom > /large\n");
    let context = context(&text, &[]);
    let order = order(&context, name.tagged("it"), BuilderChoice::BuildKit);
    builder.build(order, &nobody()).await.unwrap();
    let image = name.tagged("it");
    fixture.docker(&["rmi", "--force", &image]);
    let order = PruneOrder {
        all: true,
        keep_bytes: None,
    };
    let pruned = builder.prune(&order).await.unwrap();
    assert!(
        pruned.results > 0 && pruned.bytes >= 3_000_000,
        "{pruned:?}"
    );
}
