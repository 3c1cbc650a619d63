//! How a program inside is reached.

use std::{
    net::{SocketAddr, TcpStream},
    thread,
    time::Instant,
};

use zareba_confine::{Network, network::DoorwayError};

use crate::{
    harness::Case,
    puppet::DONE,
    sandbox::{filtered, read_all, start},
};

pub(crate) fn cases() -> Vec<Case> {
    let cases: [(&'static str, fn()); 8] = [
        (
            "a_program_inside_is_reached_by_either_family_ns_1",
            either_family_is_reached,
        ),
        (
            "a_program_in_a_filtered_sandbox_is_reached_ns_1",
            a_filtered_sandbox_is_reached,
        ),
        (
            "several_threads_can_use_a_doorway_at_once",
            several_threads_use_a_doorway,
        ),
        (
            "a_port_inside_that_nobody_listens_on_is_refused",
            nobody_is_refused,
        ),
        (
            "the_proxys_ports_are_not_programs_inside_eg_6",
            the_proxys_ports_are_not_reached,
        ),
        (
            "a_program_that_does_not_accept_is_given_up",
            a_crowded_program_is_given_up,
        ),
        (
            "what_listens_inside_is_listed_without_the_proxys_ports",
            listeners_are_listed,
        ),
        (
            "a_sandbox_that_has_ended_is_not_reached",
            an_ended_sandbox_is_not_reached,
        ),
    ];
    cases.map(|(name, run)| Case { name, run }).to_vec()
}

fn either_family_is_reached() {
    let mut sandbox = start(Network::None).unwrap();
    for (address, from) in [("127.0.0.1:8080", "127.0.0.1"), ("[::1]:8081", "::1")] {
        assert_eq!(sandbox.ask(&format!("listen {address}")), DONE);
        let port = address.parse::<SocketAddr>().unwrap().port();
        let before = Instant::now();
        let stream = sandbox.doorway().connect(port).unwrap();
        println!("reached {address} after {:?}", before.elapsed());
        assert_eq!(sandbox.ask("greet"), format!("{DONE} {from}"));
        assert_eq!(read_all(stream), "from inside");
    }
}

fn a_filtered_sandbox_is_reached() {
    let mut sandbox = filtered();
    assert_eq!(sandbox.ask("listen 127.0.0.1:8080"), DONE);
    let stream = sandbox.doorway().connect(8080).unwrap();
    assert_eq!(sandbox.ask("greet"), format!("{DONE} 127.0.0.1"));
    assert_eq!(read_all(stream), "from inside");
}

fn several_threads_use_a_doorway() {
    let mut sandbox = filtered();
    assert_eq!(sandbox.ask("listen 127.0.0.1:8080"), DONE);
    let doorway = sandbox.doorway();
    let streams: Vec<TcpStream> = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| doorway.connect(8080).unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    for stream in streams {
        assert_eq!(sandbox.ask("greet"), format!("{DONE} 127.0.0.1"));
        drop(stream);
    }
}

fn nobody_is_refused() {
    for sandbox in [start(Network::None).unwrap(), filtered()] {
        let error = sandbox.doorway().connect(8080).unwrap_err();
        assert!(
            matches!(error, DoorwayError::Refused { port: 8080 }),
            "{error:?}"
        );
    }
}

fn the_proxys_ports_are_not_reached() {
    let sandbox = filtered();
    for port in [80, 443, 8443, 53] {
        let error = sandbox.doorway().connect(port).unwrap_err();
        assert!(matches!(error, DoorwayError::Refused { .. }), "{error:?}");
    }
}

fn a_crowded_program_is_given_up() {
    let mut sandbox = start(Network::None).unwrap();
    assert_eq!(sandbox.ask("crowd 127.0.0.1:8080"), DONE);
    let error = sandbox.doorway().connect(8080).unwrap_err();
    assert!(
        matches!(error, DoorwayError::TimedOut { port: 8080, .. }),
        "{error:?}"
    );
}

fn listeners_are_listed() {
    let mut sandbox = filtered();
    assert!(sandbox.doorway().listening().unwrap().addresses.is_empty());
    let addresses = ["127.0.0.1:8080", "[::1]:8081"];
    for address in addresses {
        assert_eq!(sandbox.ask(&format!("listen {address}")), DONE);
    }
    let listening = sandbox.doorway().listening().unwrap();
    let expected = addresses.map(|address| address.parse::<SocketAddr>().unwrap());
    assert_eq!(listening.addresses, expected);
    assert!(!listening.is_cut_short);
}

fn an_ended_sandbox_is_not_reached() {
    let mut sandbox = start(Network::None).unwrap();
    assert_eq!(sandbox.ask("listen 127.0.0.1:8080"), DONE);
    let doorway = sandbox.confined.doorway.take().unwrap();
    drop(sandbox);
    let error = doorway.connect(8080).unwrap_err();
    assert!(
        matches!(error, DoorwayError::Refused { port: 8080 }),
        "{error:?}"
    );
    let error = doorway.listening().unwrap_err();
    assert!(matches!(error, DoorwayError::List { .. }), "{error:?}");
}
