//! The two requests to the kernel's routing that a filtered sandbox needs, spelt by hand.
//!
//! See `rtnetlink(7)`. Every request asks for an answer, which is there when sending it returns:
//! the kernel works it off in the sender's own call.

use std::{io, net::IpAddr, os::fd::OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// An answer is a header, an error number and the request it is about.
const ANSWER_MAX_BYTES: usize = 1024;

/// Bytes of a message before its content.
const HEADER_BYTES: usize = 16;

/// Messages and their attributes begin at multiples of this.
const ALIGNMENT: usize = 4;

const REQUEST_FLAGS: u16 =
    (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;

/// A line to the kernel's routing, in the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        // Without a protocol it is NETLINK_ROUTE, and without an address it is the kernel's.
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Gives the loopback interface one more address.
    pub(crate) fn add_address(&mut self, address: IpAddr) -> io::Result<()> {
        self.request(|sequence| new_address(sequence, address))
    }

    /// Routes every address of one family to the loopback interface, as if it were its own.
    /// Connections come from `source` when the program does not choose.
    pub(crate) fn make_all_local(&mut self, source: IpAddr) -> io::Result<()> {
        self.request(|sequence| all_local(sequence, source))
    }

    fn request(&mut self, message: impl FnOnce(u32) -> Message) -> io::Result<()> {
        self.sequence += 1;
        let message = message(self.sequence).finish();
        rustix::net::send(&self.socket, &message, SendFlags::empty())?;
        let mut answer = [0; ANSWER_MAX_BYTES];
        let (length, _) = rustix::net::recv(&self.socket, &mut answer, RecvFlags::DONTWAIT)?;
        let answer = answer.get(..length).unwrap_or_default();
        match error_of(answer, self.sequence) {
            Some(0) => Ok(()),
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The error number in an answer, 0 when all went well; `None` when it is no answer to us.
fn error_of(answer: &[u8], sequence: u32) -> Option<i32> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let answered = u32::from_ne_bytes(*answer.get(8..)?.first_chunk()?);
    let code = i32::from_ne_bytes(*answer.get(HEADER_BYTES..)?.first_chunk()?);
    (i32::from(kind) == libc::NLMSG_ERROR && answered == sequence).then_some(code.checked_neg()?)
}

fn new_address(sequence: u32, address: IpAddr) -> Message {
    let mut message = Message::new(libc::RTM_NEWADDR, sequence);
    // Without the flag the kernel asks around whether somebody has an IPv6 address already, and
    // until it knows, some milliseconds later, nothing can be bound to it.
    let (prefix_bits, flags) = match address {
        IpAddr::V4(_) => (32, 0),
        IpAddr::V6(_) => (128, libc::IFA_F_NODAD as u8),
    };
    // `struct ifaddrmsg`.
    message.bytes([family(address), prefix_bits, flags, libc::RT_SCOPE_UNIVERSE]);
    message.bytes(LOOPBACK.to_ne_bytes());
    message.address(libc::IFA_LOCAL, address);
    message.address(libc::IFA_ADDRESS, address);
    message
}

fn all_local(sequence: u32, source: IpAddr) -> Message {
    let mut message = Message::new(libc::RTM_NEWROUTE, sequence);
    let (any_destination, any_source, any_service) = (0, 0, 0);
    let flags = 0_u32;
    // `struct rtmsg`.
    message.bytes([family(source), any_destination, any_source, any_service]);
    message.bytes([
        libc::RT_TABLE_LOCAL,
        libc::RTPROT_BOOT,
        libc::RT_SCOPE_HOST,
        libc::RTN_LOCAL,
    ]);
    message.bytes(flags.to_ne_bytes());
    message.attribute(libc::RTA_OIF, &LOOPBACK.to_ne_bytes());
    message.address(libc::RTA_PREFSRC, source);
    message
}

fn family(address: IpAddr) -> u8 {
    let family = match address {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    family as u8
}

/// A request that is being written. All that is ever put into one is a few dozen bytes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, sequence: u32) -> Self {
        let (length_to_come, from_the_kernels_peer) = (0_u32, 0_u32);
        let mut message = Self(Vec::new());
        // `struct nlmsghdr`.
        message.bytes(length_to_come.to_ne_bytes());
        message.bytes(kind.to_ne_bytes());
        message.bytes(REQUEST_FLAGS.to_ne_bytes());
        message.bytes(sequence.to_ne_bytes());
        message.bytes(from_the_kernels_peer.to_ne_bytes());
        message
    }

    fn bytes<const COUNT: usize>(&mut self, bytes: [u8; COUNT]) {
        self.0.extend_from_slice(&bytes);
    }

    fn address(&mut self, kind: u16, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.attribute(kind, &address.octets()),
            IpAddr::V6(address) => self.attribute(kind, &address.octets()),
        }
    }

    /// `struct rtattr` and its content.
    fn attribute(&mut self, kind: u16, content: &[u8]) {
        let length = (size_of::<libc::rtattr>() + content.len()) as u16;
        self.bytes(length.to_ne_bytes());
        self.bytes(kind.to_ne_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        for (to, from) in self.0.iter_mut().zip(length.to_ne_bytes()) {
            *to = from;
        }
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{OWN_V4, OWN_V6};

    #[test]
    fn a_message_says_its_own_length() {
        for message in [
            new_address(1, OWN_V4.into()),
            new_address(1, OWN_V6.into()),
            all_local(1, OWN_V4.into()),
            all_local(1, OWN_V6.into()),
        ] {
            let bytes = message.finish();
            let said = u32::from_ne_bytes(*bytes.first_chunk().unwrap());
            assert_eq!(said as usize, bytes.len());
            assert_eq!(bytes.len() % ALIGNMENT, 0);
        }
    }

    #[test]
    fn an_answer_is_read_and_nothing_else_is_taken_for_one() {
        let answer = |kind: i32, sequence: u32, code: i32| {
            let mut message = Message::new(kind as u16, sequence);
            message.bytes(code.to_ne_bytes());
            message.finish()
        };
        let good = answer(libc::NLMSG_ERROR, 7, -libc::EPERM);
        assert_eq!(error_of(&good, 7), Some(libc::EPERM));
        assert_eq!(error_of(&answer(libc::NLMSG_ERROR, 7, 0), 7), Some(0));
        assert_eq!(error_of(&good, 8), None);
        assert_eq!(error_of(&answer(libc::NLMSG_DONE, 7, 0), 7), None);
        assert_eq!(error_of(&answer(libc::NLMSG_ERROR, 7, i32::MIN), 7), None);
        for length in 0..good.len() {
            assert_eq!(error_of(&good[..length], 7), None);
        }
    }
}
