//! Questions and answers as bytes. Pure; what to answer is decided in `service`.

use std::net::IpAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::opt::EdnsOption;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::host::HostName;
use crate::upstream::Family;

/// Longest question that is read. A question for one name takes less than 300 bytes.
pub(crate) const QUESTION_BYTES_MAX: usize = 4096;
/// Addresses in one answer.
pub(crate) const ANSWERS_MAX: usize = 16;
/// How long a program may keep an answer, whatever the name server said: less than we remember
/// it, and not so short that every connection asks again.
const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(300);
/// What fits in a datagram without EDNS, and the most that we send with it.
const DATAGRAM_BYTES: u16 = 512;
const DATAGRAM_BYTES_MAX: u16 = 1232;
/// The EDNS option for reasons, and the reason "blocked by the operator" (RFC 8914).
const EXTENDED_ERROR: u16 = 15;
const BLOCKED: u16 = 15;

/// What came in.
#[derive(Debug)]
pub(crate) enum Received {
    /// Not worth an answer: too short to be a question, or an answer itself.
    Nothing,
    /// A question that can only be refused.
    Bad(Reply),
    /// A lookup.
    Lookup(Lookup),
}

/// Somebody wants to know something about a name.
#[derive(Debug)]
pub(crate) struct Lookup {
    pub(crate) name: HostName,
    pub(crate) wanted: Wanted,
    pub(crate) reply: Reply,
}

/// What somebody wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Addresses(Family),
    /// How to connect. Browsers ask with every lookup and do well without an answer.
    Service,
    /// Anything else: text, mail, names of addresses, all that could carry data.
    Other(RecordType),
}

/// An answer in the making: it repeats the question and says nothing yet.
#[derive(Debug)]
pub(crate) struct Reply {
    message: Message,
    question: Option<Name>,
    datagram_bytes: u16,
}

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// Reads a question.
pub(crate) fn read(packet: &[u8]) -> Received {
    let Some([high, low]) = packet.get(..2) else {
        return Received::Nothing;
    };
    let id = u16::from_be_bytes([*high, *low]);
    let is_answer = packet.get(2).is_none_or(|flags| flags & 0x80 != 0);
    if is_answer || packet.len() < 12 {
        return Received::Nothing;
    }
    let Ok(message) = Message::from_vec(packet) else {
        return Received::Bad(Reply::bare(id, ResponseCode::FormErr));
    };
    if message.metadata.message_type != MessageType::Query {
        return Received::Nothing;
    }
    if message.metadata.op_code != OpCode::Query {
        return Received::Bad(Reply::bare(id, ResponseCode::NotImp));
    }
    let [query] = message.queries.as_slice() else {
        return Received::Bad(Reply::bare(id, ResponseCode::FormErr));
    };
    let mut reply = Reply::to(&message, query);
    match host_name(query.name()) {
        Some(name) if query.query_class() == DNSClass::IN => Received::Lookup(Lookup {
            name,
            wanted: wanted(query.query_type()),
            reply,
        }),
        _ => {
            reply.message.metadata.response_code = ResponseCode::NXDomain;
            Received::Bad(reply)
        }
    }
}

impl Reply {
    fn bare(id: u16, code: ResponseCode) -> Self {
        Self {
            message: Message::error_msg(id, OpCode::Query, code),
            question: None,
            datagram_bytes: DATAGRAM_BYTES,
        }
    }

    fn to(request: &Message, query: &Query) -> Self {
        let mut message = Message::response(request.metadata.id, OpCode::Query);
        message.metadata.recursion_desired = request.metadata.recursion_desired;
        message.metadata.recursion_available = true;
        message.add_query(query.clone());
        let mut datagram_bytes = DATAGRAM_BYTES;
        if let Some(asked) = &request.edns {
            datagram_bytes = asked
                .max_payload()
                .clamp(DATAGRAM_BYTES, DATAGRAM_BYTES_MAX);
            let mut edns = Edns::new();
            edns.set_max_payload(DATAGRAM_BYTES_MAX);
            message.set_edns(edns);
        }
        Self {
            message,
            question: Some(query.name().clone()),
            datagram_bytes,
        }
    }

    /// Says that it failed, or that there is no such name.
    pub(crate) fn code(mut self, code: ResponseCode) -> Self {
        self.message.metadata.response_code = code;
        self
    }

    /// Adds addresses.
    pub(crate) fn addresses(mut self, addresses: &[IpAddr], ttl: Duration) -> Self {
        let Some(name) = &self.question else {
            return self;
        };
        let ttl = ttl.clamp(TTL_MIN, TTL_MAX).as_secs();
        let ttl = u32::try_from(ttl).unwrap_or(u32::MAX);
        for address in addresses.iter().take(ANSWERS_MAX) {
            let data = match address {
                IpAddr::V4(address) => RData::A((*address).into()),
                IpAddr::V6(address) => RData::AAAA((*address).into()),
            };
            self.message
                .add_answer(Record::from_rdata(name.clone(), ttl, data));
        }
        self
    }

    /// Adds a reason, for whoever can read one.
    pub(crate) fn because(mut self, reason: &str) -> Self {
        if let Some(edns) = &mut self.message.edns {
            let mut option = BLOCKED.to_be_bytes().to_vec();
            option.extend_from_slice(reason.as_bytes());
            edns.options_mut()
                .insert(EdnsOption::Unknown(EXTENDED_ERROR, option));
        }
        self
    }

    /// The bytes to send; `None` if they cannot be written, which no answer of ours is.
    pub(crate) fn encode(&self, transport: Transport) -> Option<Vec<u8>> {
        let whole = self.message.to_vec().ok()?;
        let is_too_long = whole.len() > usize::from(self.datagram_bytes);
        if transport == Transport::Udp && is_too_long {
            return self.message.truncate().to_vec().ok();
        }
        Some(whole)
    }
}

/// A name of the wire, if it can be a host's. Its labels are compared as they are: one with a
/// dot, a blank or a byte that would have to be translated is not looked up.
fn host_name(name: &Name) -> Option<HostName> {
    let mut text = String::new();
    for label in name.iter() {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !label.iter().all(is_plain) {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(str::from_utf8(label).ok()?);
    }
    HostName::parse(&text).ok()
}

fn wanted(record_type: RecordType) -> Wanted {
    match record_type {
        RecordType::A => Wanted::Addresses(Family::V4),
        RecordType::AAAA => Wanted::Addresses(Family::V6),
        RecordType::HTTPS | RecordType::SVCB => Wanted::Service,
        other => Wanted::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn question(name: &str, record_type: RecordType) -> Message {
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
        message
    }

    fn lookup(message: &Message) -> Option<(String, Wanted)> {
        match read(&message.to_vec().unwrap()) {
            Received::Lookup(lookup) => Some((lookup.name.as_str().to_owned(), lookup.wanted)),
            Received::Bad(_) | Received::Nothing => None,
        }
    }

    #[test]
    fn questions_are_read_in_canonical_form_eg_2() {
        let found = lookup(&question("WWW.ExAmple.com.", RecordType::AAAA));
        let expected = ("www.example.com".to_owned(), Wanted::Addresses(Family::V6));
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn names_that_are_no_hosts_are_not_looked_up_eg_5() {
        for label in [&b"a.example"[..], b"a b", b"\xff", b"a\0"] {
            let name = Name::from_labels([label, b"com"]).unwrap();
            let mut message = question("x.", RecordType::A);
            message.queries = vec![Query::query(name, RecordType::A)];
            assert_eq!(lookup(&message), None, "{label:?}");
        }
        assert_eq!(lookup(&question(".", RecordType::A)), None);
        assert_eq!(lookup(&question("1.2.3.4.", RecordType::A)), None);
    }

    #[test]
    fn other_questions_are_answered_with_an_error_or_not_at_all() {
        let code = |message: &Message| match read(&message.to_vec().unwrap()) {
            Received::Bad(reply) => Some(reply.message.metadata.response_code),
            Received::Lookup(_) | Received::Nothing => None,
        };
        let mut update = question("a.example.", RecordType::A);
        update.metadata.op_code = OpCode::Update;
        assert_eq!(code(&update), Some(ResponseCode::NotImp));

        let mut two = question("a.example.", RecordType::A);
        two.add_query(Query::query(Name::root(), RecordType::A));
        assert_eq!(code(&two), Some(ResponseCode::FormErr));

        let mut chaos = question("version.bind.", RecordType::TXT);
        chaos.queries.iter_mut().for_each(|query| {
            query.set_query_class(DNSClass::CH);
        });
        assert_eq!(code(&chaos), Some(ResponseCode::NXDomain));

        let mut answer = question("a.example.", RecordType::A);
        answer.metadata.message_type = MessageType::Response;
        let read = read(&answer.to_vec().unwrap());
        assert!(matches!(read, Received::Nothing), "{read:?}");
    }

    #[test]
    fn an_answer_that_does_not_fit_says_so() {
        let Received::Lookup(lookup) =
            read(&question("a.example.", RecordType::AAAA).to_vec().unwrap())
        else {
            panic!("not a lookup");
        };
        let addresses: Vec<IpAddr> = (0..40_u128).map(|n| IpAddr::V6(n.into())).collect();
        let reply = lookup.reply.addresses(&addresses, Duration::ZERO);

        let tcp = Message::from_vec(&reply.encode(Transport::Tcp).unwrap()).unwrap();
        assert_eq!(tcp.answers.len(), ANSWERS_MAX);
        assert!(tcp.answers.iter().all(|record| record.ttl == 5));
        let udp = reply.encode(Transport::Udp).unwrap();
        assert!(udp.len() <= 512);
        let udp = Message::from_vec(&udp).unwrap();
        assert!(udp.metadata.truncation || udp.answers.len() == ANSWERS_MAX);
    }

    proptest! {
        #[test]
        fn any_packet_is_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_damaged_question_is_read_without_a_panic(at in 0_usize..40, byte: u8) {
            let mut packet = question("www.example.com.", RecordType::A).to_vec().unwrap();
            if let Some(place) = packet.get_mut(at) {
                *place = byte;
            }
            if let Received::Lookup(lookup) = read(&packet) {
                prop_assert!(lookup.reply.encode(Transport::Udp).unwrap().len() <= 512);
            }
        }
    }
}
