//! An Engine that does not see the files of this machine: over TLS, over SSH, and with our program
//! sent to it.

use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::Command,
    sync::Arc,
};

use zareba_protocol::ErrorClass;
use zareba_runtime::{Runtime as _, SandboxSpec};
use zareba_runtime_docker::{
    DockerOptions, EngineAddress, EnginePlace, EngineSources, Lifetime, NetworkChoice, Reach,
    VolumeRequest,
};

use crate::{
    engine::OwnEngine,
    faults::engine_fault,
    fixture::{BUSYBOX, DEBIAN, Fixture, container, fixture_in, fixture_with, output, spec, state},
};

pub(crate) fn elsewhere(options: &mut DockerOptions) {
    options.place = EnginePlace::Elsewhere;
}

/// The conformance suite but for the case of a given workspace, which is refused.
mod conformance {
    use super::{DEBIAN, Fixture, elsewhere, fixture_with};

    async fn make() -> Fixture {
        fixture_with(DEBIAN, elsewhere)
    }

    macro_rules! all_but_one {
        ($($group:ident::$case:ident)+) => {
            zareba_testkit::conformance_cases! { make: $($group::$case)+ }

            /// What is run here, in the words of the suite.
            const CASES: &[&str] = &[$(concat!(stringify!($group), "::", stringify!($case))),+];
        };
    }

    all_but_one! {
        lifecycle::a_new_sandbox_is_ready_and_knows_its_place
        lifecycle::closing_twice_is_no_error
        lifecycle::statuses_come_in_order
        lifecycle::nothing_can_be_done_after_closing
        lifecycle::closing_stops_an_action_under_way
        lifecycle::closing_ends_everything_inside
        lifecycle::a_dropped_handle_closes_in_the_background
        lifecycle::two_sandboxes_share_nothing
        lifecycle::a_spec_with_a_bad_variable_is_refused
        lifecycle::what_a_backend_cannot_do_it_says
        lifecycle::a_sandbox_is_found_again_where_that_is_promised
        shells::state_is_kept_between_commands
        shells::exit_codes_are_told
        shells::a_silent_command_is_told_of_and_takes_input
        shells::a_command_outlives_its_timeout
        shells::keys_reach_the_running_program
        shells::shells_run_at_the_same_time
        shells::actions_on_one_shell_run_in_the_order_they_were_asked_for
        shells::many_actions_at_once_are_each_answered
        shells::a_dropped_future_does_not_wedge_the_shell
        shells::a_shell_that_ends_is_replaced
        shells::long_output_is_cut_in_the_middle_and_kept_whole
        shells::text_of_any_language_passes
        shells::an_action_that_nobody_can_perform_is_answered
        files::a_file_is_written_read_and_edited
        files::files_are_read_while_a_command_runs
        files::directories_are_listed
        files::a_directory_is_copied_both_ways
        files::one_file_is_copied_both_ways
        files::what_is_not_there_cannot_be_copied
        environment::variables_of_the_spec_reach_every_shell
        environment::added_variables_are_taken_as_they_are
        environment::added_variables_reach_every_shell_and_program
        environment::a_busy_shell_gets_variables_with_its_next_command
    }

    /// Nothing is forgotten here when the suite grows.
    #[test]
    fn every_other_case_of_the_suite_is_run() {
        let suite = include_str!("../../../testkit/src/conformance.rs");
        let (_, cases) = suite.split_once("conformance_cases! { $make:").unwrap();
        let (cases, _) = cases.split_once('}').unwrap();
        let refused = "lifecycle::a_given_workspace_is_used_and_stays";
        let mut cases: Vec<&str> = cases.split_whitespace().collect();
        assert!(cases.contains(&refused));
        cases.retain(|case| *case != refused);
        assert_eq!(cases, CASES);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_over_tls_is_used_and_knows_us_by_our_certificate() {
    let engine = OwnEngine::start_with_tls();
    let fixture = fixture_with(BUSYBOX, |options| {
        options.engine = engine.tls_address();
        options.place = options.engine.usual_place();
    });
    let sandbox = fixture.sandbox().await;
    assert_eq!(output(&*sandbox, "echo over TLS").await, "over TLS");
    assert_eq!(
        sandbox.inspect().await.unwrap()["walls"]["reached"],
        "through the Engine"
    );
    sandbox.close().await.unwrap();
    assert_eq!(engine.leftovers(&fixture), [""; 0]);

    // Somebody without a certificate of theirs gets nowhere.
    let stranger = fixture_with(BUSYBOX, |options| {
        let EngineAddress::Tcp { address, .. } = engine.tls_address() else {
            panic!("it listens on TCP");
        };
        options.engine = EngineAddress::Tcp { address, tls: None };
    });
    let refused = stranger.runtime.create(spec()).await.err().unwrap();
    assert!(engine_fault(&refused).is_some(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_of_the_docker_command_names_an_engine_over_tls() {
    let engine = OwnEngine::start_with_tls();
    let EngineAddress::Tcp { address, tls } = engine.tls_address() else {
        panic!("it listens on TCP");
    };
    let files = tls.unwrap();
    let config = tempfile::tempdir().unwrap();
    let made = Command::new("docker")
        .env("DOCKER_CONFIG", config.path())
        .args(["context", "create", "far", "--docker"])
        .arg(format!(
            "host=tcp://{address},ca={},cert={},key={}",
            files.authority.display(),
            files.certificate.display(),
            files.key.display()
        ))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
    fs::write(
        config.path().join("config.json"),
        r#"{"currentContext": "far"}"#,
    )
    .unwrap();
    let found = EngineAddress::resolve(&EngineSources {
        host: None,
        context: None,
        config_dir: config.path().to_owned(),
        tls_verify: false,
        cert_path: None,
        runtime_dir: None,
    });
    let fixture = fixture_with(BUSYBOX, |options| options.engine = found.unwrap());
    let report = fixture.runtime.probe().await.unwrap();
    assert!(!report.version.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_is_sent_once_and_another_one_replaces_it() {
    let state = state();
    let first = fixture_in(Arc::clone(&state), BUSYBOX, elsewhere);
    let sandboxes = [first.sandbox().await, first.sandbox().await];
    let sent = first.programs();
    assert_eq!(sent.len(), 1);
    let made = |volume: &str| {
        let format = ["volume", "inspect", "--format", "{{.CreatedAt}}", volume];
        first.docker(&format)
    };
    let when = made(&sent[0]);
    // Another process finds it there.
    let second = fixture_in(Arc::clone(&state), BUSYBOX, elsewhere);
    let third = second.sandbox().await;
    assert_eq!((second.programs(), made(&sent[0])), (sent.clone(), when));
    // Nobody inside can change it for the others.
    let (code, _) = crate::fixture::run(&*third, "echo > /.zareba/program/zareba").await;
    assert_ne!(code, 0);
    for sandbox in sandboxes.into_iter().chain([third]) {
        sandbox.close().await.unwrap();
    }
    // A newer program is sent beside it, and the older one goes when nobody needs it.
    let newer = state.path().join("newer");
    fs::copy(crate::fixture::program(), &newer).unwrap();
    let mut file = fs::File::options().append(true).open(&newer).unwrap();
    file.write_all(b"\n").unwrap();
    drop(file);
    let third = fixture_in(Arc::clone(&state), BUSYBOX, |options| {
        elsewhere(options);
        options.program = newer.clone();
    });
    third.sandbox().await.close().await.unwrap();
    assert_eq!(third.programs().len(), 2);
    third.runtime.reap().await.unwrap();
    let left = third.programs();
    assert_eq!(left.len(), 1);
    assert_ne!(left, sent);
    assert_eq!(third.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_cannot_bring_a_program_in_the_place_of_ours() {
    const IMAGE: &str = "zareba-test/impostor";
    let fixture = fixture_with(IMAGE, elsewhere);
    let files = tempfile::tempdir().unwrap();
    let place = files.path().join(".zareba/program");
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("zareba"), "#!/bin/sh\necho impostor\n").unwrap();
    fs::write(place.join("whole"), "").unwrap();
    let maker = fixture.docker(&["create", BUSYBOX, "true"]);
    let source = files.path().join(".zareba");
    let target = format!("{}:/", maker.trim());
    fixture.docker(&["cp", source.to_str().unwrap(), &target]);
    fixture.docker(&["commit", maker.trim(), IMAGE]);
    fixture.docker(&["rm", maker.trim()]);
    let sandbox = fixture.sandbox().await;
    let beginning = output(&*sandbox, "head -c 4 /.zareba/program/zareba | tail -c 3").await;
    assert_eq!(beginning, "ELF");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
    fixture.docker(&["rmi", IMAGE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_was_cut_off_on_its_way_is_sent_again() {
    let state = state();
    let first = fixture_in(Arc::clone(&state), BUSYBOX, elsewhere);
    first.sandbox().await.close().await.unwrap();
    let volume = first.programs().remove(0);
    // As a sender leaves it who is killed: a part of the program, no mark, and the carrier.
    let mount = format!("type=volume,source={volume},target=/v");
    let cut = "echo part > /v/zareba; rm /v/whole";
    let run = ["run", "--rm", "--network", "none", "--mount", &mount];
    first.docker(&[&run[..], &[BUSYBOX, "sh", "-c", cut]].concat());
    let owner = fs::read_to_string(state.path().join("docker/.instance")).unwrap();
    let carrier = format!("zareba-carrier-{owner}");
    first.docker(&["create", "--name", &carrier, BUSYBOX, "true"]);
    let second = fixture_in(state, BUSYBOX, elsewhere);
    let sandbox = second.sandbox().await;
    assert_eq!(output(&*sandbox, "echo whole").await, "whole");
    sandbox.close().await.unwrap();
    assert_eq!(second.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_this_machines_is_refused_with_another_way() {
    let here = tempfile::tempdir().unwrap();
    let fixture = fixture_with(BUSYBOX, elsewhere);
    let given = SandboxSpec {
        workspace: Some(here.path().to_owned()),
        ..spec()
    };
    let error = fixture.runtime.create(given).await.err().unwrap();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("copy the files in"), "{error}");
    let mounting = fixture_with(BUSYBOX, |options| {
        elsewhere(options);
        let volume = format!("{}:/data:ro", here.path().display());
        options.volumes = VolumeRequest::parse_list(&volume).unwrap();
    });
    let error = mounting.runtime.create(spec()).await.err().unwrap();
    assert!(
        error.to_string().contains("volumes of the Engine"),
        "{error}"
    );
    assert_eq!(fixture.leftovers(), [""; 0]);
    assert_eq!(mounting.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_inside_are_reached_through_the_engine_without_any_network() {
    let fixture = fixture_with(DEBIAN, elsewhere);
    let sandbox = fixture.sandbox().await;
    output(&*sandbox, "mkdir site && echo through > site/index.html").await;
    output(
        &*sandbox,
        "cd site && (python3 -u -m http.server 8000 --bind 127.0.0.1 >log 2>&1 &) ; \
         while ! grep -q Serving log; do sleep 0.05; done; cd ..",
    )
    .await;
    let stream = sandbox.connect_port(8000).await.unwrap();
    let mut stream = stream.into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.ends_with("through\n"), "{answer}");
    let error = sandbox.connect_port(9).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(error.to_string().contains("refused"), "{error}");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

/// The program that carries our connection belongs to the agent's user.
#[tokio::test(flavor = "multi_thread")]
async fn the_carrier_of_a_connection_cannot_be_looked_into_and_its_end_costs_one_connection_ns_7() {
    let fixture = fixture_with(DEBIAN, |options| {
        elsewhere(options);
        options.network = NetworkChoice::Own(Reach::Inside);
    });
    let sandbox = fixture.sandbox().await;
    let dials = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null \
                 | grep -q 'zareba dial' && echo ${p#/proc/}; done; true";
    let found = output(&*sandbox, dials).await;
    let pid = found.lines().next().unwrap().trim();
    for file in ["mem", "environ", "maps", "fd/0"] {
        let (code, said) =
            crate::fixture::run(&*sandbox, &format!("head -c1 /proc/{pid}/{file}")).await;
        assert_ne!(code, 0, "{file}: {said}");
    }
    let command = format!("for p in $({dials}); do kill -9 $p; done");
    let action = zareba_protocol::Action::Run(zareba_protocol::RunCommand::new(command));
    // The answer went with the connection, or was faster.
    let _ = sandbox.run_action(action.into()).await;
    assert_eq!(output(&*sandbox, "echo still here").await, "still here");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_sandbox_is_found_again_stopped_and_started_elsewhere() {
    let kept = |options: &mut DockerOptions| {
        elsewhere(options);
        options.lifetime = Lifetime::KeptAlive { idle_timeout: None };
    };
    let first = fixture_with(BUSYBOX, kept);
    let sandbox = first.sandbox().await;
    let id = sandbox.id().clone();
    output(&*sandbox, "A=kept").await;
    drop(sandbox);
    let second = fixture_in(Arc::clone(&first.state), BUSYBOX, kept);
    let again = second.runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*again, "echo $A").await, "kept");
    second.runtime.stop(&id).await.unwrap();
    let started = second.runtime.attach(&id).await.unwrap();
    assert_eq!(output(&*started, "echo new").await, "new");
    let place = second.state.path().join("docker").join(id.as_str());
    assert!(relays(&place) >= 1);
    started.close().await.unwrap();
    assert_eq!(second.leftovers(), [""; 0]);
}

fn relays(place: &Path) -> usize {
    let entries = fs::read_dir(place).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("relay-")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_walls_are_the_same_elsewhere_dk_1() {
    let fixture = fixture_with(DEBIAN, elsewhere);
    let sandbox = fixture.sandbox().await;
    let status = output(&*sandbox, "cat /proc/1/status").await;
    let words: Vec<&str> = status.split_whitespace().collect();
    for pair in [
        ["CapEff:", "0000000000000000"],
        ["CapBnd:", "0000000000000000"],
        ["NoNewPrivs:", "1"],
        ["Seccomp:", "2"],
    ] {
        assert!(words.windows(2).any(|it| it == pair), "{pair:?}: {status}");
    }
    assert_eq!(output(&*sandbox, "id -u").await, "1000");
    let format = "{{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{json .HostConfig.PortBindings}}";
    let seen = fixture.docker(&["inspect", "--format", format, &container(&*sandbox)]);
    assert_eq!(seen.trim(), "none true {}");
    sandbox.close().await.unwrap();
    assert_eq!(fixture.leftovers(), [""; 0]);
}
