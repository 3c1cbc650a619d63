//! What a program inside reaches.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use zareba_confine::{
    Network, Step,
    network::{DNS_PORT, DNS_V4, DNS_V6, OWN_V4, OWN_V6, TCP_PORTS_MAX},
};

use crate::{
    harness::Case,
    puppet::DONE,
    sandbox::{self, Sandbox, filtered, read_line, start},
};

const REFUSED: &str = "errno 111";
pub(crate) const NO_RIGHT: &str = "errno 1";
const NO_ACCESS: &str = "errno 13";
const TAKEN: &str = "errno 98";
pub(crate) const UNREACHABLE: &str = "errno 101";

pub(crate) fn cases() -> Vec<Case> {
    let cases: [(&'static str, fn()); 14] = [
        (
            "a_connection_to_any_address_reaches_the_listener_with_that_address_eg_1",
            any_address_reaches_the_listener,
        ),
        (
            "connections_come_from_the_sandboxs_own_address_eg_1",
            connections_come_from_the_own_address,
        ),
        (
            "a_port_without_a_listener_is_refused_at_once_eg_1",
            other_ports_are_refused,
        ),
        (
            "other_datagrams_are_refused_eg_1",
            other_datagrams_are_refused,
        ),
        (
            "names_are_asked_and_answered_at_one_address_eg_1",
            names_are_answered,
        ),
        (
            "names_can_be_asked_over_tcp_too_eg_1",
            names_are_answered_over_tcp,
        ),
        (
            "the_sandbox_keeps_no_copy_of_the_sockets_eg_9",
            no_copies_are_kept,
        ),
        (
            "a_listeners_place_cannot_be_taken_inside_eg_1",
            places_cannot_be_taken,
        ),
        (
            "routes_cannot_be_changed_inside_ns_1",
            routes_cannot_be_changed,
        ),
        (
            "lookups_for_configured_families_find_something_eg_1",
            lookups_find_something,
        ),
        (
            "without_a_filter_nothing_is_reached_ns_1",
            nothing_is_reached_without_a_filter,
        ),
        (
            "ports_that_cannot_be_had_fail_the_launch_with_their_step_ns_12",
            impossible_ports_fail,
        ),
        ("as_many_ports_as_allowed_can_be_had_eg_1", many_ports),
        ("what_a_filtered_network_costs_is_printed", print_costs),
    ];
    cases.map(|(name, run)| Case { name, run }).to_vec()
}

/// Addresses that are not ours, of both families.
const FOREIGN: [&str; 5] = [
    "93.184.216.34:443",
    "8.8.8.8:80",
    "10.1.2.3:8443",
    "169.254.169.254:80",
    "[2606:2800:220:1::1]:443",
];

fn any_address_reaches_the_listener() {
    let mut sandbox = filtered();
    for text in FOREIGN {
        let address: SocketAddr = text.parse().unwrap();
        assert!(
            sandbox.ask(&format!("connect {text}")).starts_with(DONE),
            "{text}"
        );
        let (stream, _) = sandbox.listener(address).accept().unwrap();
        assert_eq!(stream.local_addr().unwrap(), address);
        assert_eq!(read_line(stream), text);
    }
}

fn connections_come_from_the_own_address() {
    let mut sandbox = filtered();
    let own = sandbox.ask("connect 93.184.216.34:443");
    assert_eq!(own, format!("{DONE} {OWN_V4}"));
    let own = sandbox.ask("connect [2606:2800:220:1::1]:443");
    assert_eq!(own, format!("{DONE} {OWN_V6}"));
    let own = sandbox.ask("connect 127.0.0.1:443");
    assert_eq!(own, format!("{DONE} 127.0.0.1"));
}

fn other_ports_are_refused() {
    let mut sandbox = filtered();
    let others = [
        "93.184.216.34:22",
        "127.0.0.1:22",
        "[2606:2800:220:1::1]:22",
        "8.8.8.8:53",
        "[2001:4860:4860::8888]:53",
    ];
    for address in others {
        let before = Instant::now();
        assert_eq!(
            sandbox.ask(&format!("connect {address}")),
            REFUSED,
            "{address}"
        );
        println!("refused {address} after {:?}", before.elapsed());
    }
}

fn other_datagrams_are_refused() {
    let mut sandbox = filtered();
    let others = [
        "8.8.8.8:53",
        "93.184.216.34:443",
        "[2001:4860:4860::8888]:53",
        "[2606:2800:220:1::1]:443",
    ];
    for address in others {
        assert_eq!(sandbox.ask(&format!("ask {address}")), REFUSED, "{address}");
    }
}

fn resolvers() -> [SocketAddr; 2] {
    [
        SocketAddr::new(DNS_V4.into(), DNS_PORT),
        SocketAddr::new(DNS_V6.into(), DNS_PORT),
    ]
}

fn names_are_answered() {
    let mut sandbox = filtered();
    for address in resolvers() {
        let resolver = sandbox.resolver(address);
        sandbox.tell(&format!("ask {address}"));
        let mut question = [0; 64];
        let (length, from) = resolver.recv_from(&mut question).unwrap();
        assert_eq!(&question[..length], b"question");
        resolver.send_to(b"answer", from).unwrap();
        assert_eq!(sandbox.hear(), format!("{DONE} answer"));
    }
}

fn names_are_answered_over_tcp() {
    let mut sandbox = filtered();
    for address in resolvers() {
        assert!(sandbox.ask(&format!("connect {address}")).starts_with(DONE));
        let (stream, _) = sandbox.listener(address).accept().unwrap();
        assert_eq!(stream.local_addr().unwrap(), address);
    }
}

fn no_copies_are_kept() {
    let mut sandbox = filtered();
    let open = sandbox.ask("descriptors");
    let sockets = open.split(' ').filter(|open| open.contains("socket:"));
    // Its standard input and output.
    assert_eq!(sockets.count(), 2, "{open}");
    let dns = resolvers()[0];
    assert!(sandbox.ask("connect 93.184.216.34:443").starts_with(DONE));
    // Neither it nor its first process, or somebody would still listen.
    drop(sandbox.confined.network.take());
    assert_eq!(sandbox.ask("connect 93.184.216.34:443"), REFUSED);
    assert_eq!(sandbox.ask("connect [2606:2800:220:1::1]:443"), REFUSED);
    assert_eq!(sandbox.ask(&format!("ask {dns}")), REFUSED);
}

fn places_cannot_be_taken() {
    let mut sandbox = filtered();
    let mut check = |address: &str, expected: &str| {
        for order in ["listen", "listen-beside"] {
            let answer = sandbox.ask(&format!("{order} {address}"));
            assert_eq!(answer, expected, "{order} {address}");
        }
    };
    for address in [
        "0.0.0.0:8443",
        "1.2.3.4:8443",
        "127.0.0.1:8443",
        "[::]:8443",
        "[::1]:8443",
    ] {
        check(address, TAKEN);
    }
    check("1.2.3.4:443", NO_ACCESS);
    check(&resolvers()[0].to_string(), NO_ACCESS);
}

fn routes_cannot_be_changed() {
    let mut sandbox = filtered();
    assert_eq!(sandbox.ask("delete-routes"), NO_RIGHT);
    assert!(sandbox.ask("connect 93.184.216.34:443").starts_with(DONE));
}

fn lookups_find_something() {
    let look_up = |mut sandbox: Sandbox| sandbox.ask("look-up 93.184.216.34");
    assert_eq!(look_up(filtered()), format!("{DONE} true"));
    // Where there is no address but that of loopback, they do not.
    let unfiltered = start(Network::None).unwrap();
    assert_eq!(look_up(unfiltered), format!("{DONE} false"));
}

fn nothing_is_reached_without_a_filter() {
    let mut sandbox = start(Network::None).unwrap();
    assert!(sandbox.confined.network.is_none());
    assert_eq!(sandbox.ask("connect 93.184.216.34:443"), UNREACHABLE);
    assert_eq!(sandbox.ask("connect [2606:2800:220:1::1]:443"), UNREACHABLE);
    assert_eq!(sandbox.ask("connect 127.0.0.1:443"), REFUSED);
}

fn impossible_ports_fail() {
    let too_many = (1000..).take(TCP_PORTS_MAX + 1).collect();
    for tcp_ports in [vec![0], too_many] {
        let failed = start(Network::Filtered { tcp_ports });
        let error = failed.map(|_| ()).unwrap_err();
        assert_eq!(error.step, Step::Listeners);
        assert_eq!(error.source.raw_os_error(), Some(libc::EINVAL));
    }
}

fn many_ports() {
    let tcp_ports: Vec<u16> = (1000..).take(TCP_PORTS_MAX).collect();
    let last = *tcp_ports.last().unwrap();
    let mut sandbox = start(Network::Filtered { tcp_ports }).unwrap();
    let sockets = sandbox.confined.network.as_ref().unwrap();
    let families = if sockets.v6 { 2 } else { 1 };
    assert_eq!(sockets.tcp.len(), (TCP_PORTS_MAX + 1) * families);
    assert_eq!(sockets.udp.len(), families);
    assert!(
        sandbox
            .ask(&format!("connect 1.2.3.4:{last}"))
            .starts_with(DONE)
    );
}

fn print_costs() {
    let time = |network: fn() -> Network| {
        let mut times: Vec<Duration> = (0..9)
            .map(|_| {
                let before = Instant::now();
                let sandbox = sandbox::start(network()).unwrap();
                let taken = before.elapsed();
                drop(sandbox);
                taken
            })
            .collect();
        times.sort();
        times[times.len() / 2]
    };
    let none = time(|| Network::None);
    let filtered = time(|| Network::Filtered {
        tcp_ports: vec![80, 443],
    });
    println!("median of a launch: {none:?} without a network, {filtered:?} with a filtered one");
}
