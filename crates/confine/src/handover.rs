//! Passing descriptors from one process to another, in one message over a socket pair.
//!
//! The sending side allocates nothing and takes no lock, so that it can run in a process that
//! was forked off one with several threads.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// The most that the kernel lets one message carry (`SCM_MAX_FD`).
pub(crate) const DESCRIPTORS_MAX: usize = 253;

const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

/// Two ends, each of which sees when the other is closed.
///
/// # Errors
/// When there are no descriptors left.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends copies of descriptors over a Unix socket.
///
/// # Errors
/// When there are too many for one message, or the other side is gone.
pub fn send(channel: impl AsFd, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    // Descriptors travel with at least one byte; which one means nothing.
    send_with(channel, &[0], descriptors)
}

/// The same with some bytes, which are at least one and arrive as one message.
///
/// # Errors
/// When that is too much for one message, or the other side is gone.
pub fn send_with(
    channel: impl AsFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = SendAncillaryBuffer::new(&mut space);
    // The kernel does not take a message that promises some and has none.
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = rustix::io::retry_on_intr(|| {
        rustix::net::sendmsg(
            &channel,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
    })?;
    if sent == bytes.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::WriteZero.into())
    }
}

/// Waits for descriptors, or for the other side to be gone without having sent any.
///
/// # Errors
/// When it is gone, or there is no room for them.
pub fn receive(channel: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let (_, descriptors) = receive_with(channel, &mut [0])?;
    Ok(descriptors)
}

/// The same with the bytes that came along: how many of `bytes` those are.
///
/// # Errors
/// When the other side is gone, or there is no room for all of it.
pub fn receive_with(channel: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            &channel,
            &mut [IoSliceMut::new(bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut received = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    if message.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Some did not fit into our table of descriptors.
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(rustix::io::Errno::MFILE.into());
    }
    Ok((message.bytes, received))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_that_goes_without_a_word_is_noticed() {
        let (ours, theirs) = pair().unwrap();
        drop(theirs);
        let error = receive(ours).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn as_many_as_the_kernel_takes_arrive_and_more_are_refused() {
        let (ours, theirs) = pair().unwrap();
        send(&theirs, &[theirs.as_fd(); DESCRIPTORS_MAX]).unwrap();
        assert_eq!(receive(&ours).unwrap().len(), DESCRIPTORS_MAX);
        let error = send(&theirs, &[theirs.as_fd(); DESCRIPTORS_MAX + 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn bytes_arrive_whole_with_their_descriptors_or_not_at_all() {
        let (ours, theirs) = pair().unwrap();
        send_with(&theirs, b"words", &[theirs.as_fd()]).unwrap();
        let mut room = [0; 8];
        let (length, descriptors) = receive_with(&ours, &mut room).unwrap();
        assert_eq!((&room[..length], descriptors.len()), (&b"words"[..], 1));
        send_with(&theirs, b"too many words", &[]).unwrap();
        let error = receive_with(&ours, &mut room).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
