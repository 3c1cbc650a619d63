//! `zareba dial`: one connection, with standard input and output as its other end.
//!
//! A runtime starts it in a container whose socket it cannot see. It runs as the agent's user, and
//! requests with the session key pass through it, so nobody may look into its memory (NS-7).

use std::{
    fs::File,
    io::{self, Read, Write},
    net::{Ipv4Addr, Shutdown, TcpStream},
    os::{fd::AsFd, unix::net::UnixStream},
    thread,
};

use rustix::{
    process::{DumpableBehavior, set_dumpable_behavior},
    stdio,
};

use crate::{
    arguments::DialArguments,
    exit::Exit,
    failure::{Failure, OrFail as _},
};

/// Tells the other end that it may send.
const GREETING: &[u8] = b"connected\n";

/// What is passed on at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Passes bytes on until what listens here has closed.
pub(super) fn perform(arguments: &DialArguments) -> Result<Exit, Failure> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(io::Error::from)
        .or_fail(Exit::Start, "cannot keep others from our memory")?;
    match (&arguments.unix, arguments.port) {
        (Some(path), _) => {
            let stream = UnixStream::connect(path);
            let stream = stream.or_fail(Exit::Failure, "cannot connect")?;
            let copy = stream
                .try_clone()
                .or_fail(Exit::Failure, "cannot connect")?;
            join(stream, copy, |stream| stream.shutdown(Shutdown::Write))
        }
        (None, port) => {
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.unwrap_or_default()));
            let stream = stream.or_fail(Exit::Failure, "cannot connect")?;
            let _ = stream.set_nodelay(true);
            let copy = stream
                .try_clone()
                .or_fail(Exit::Failure, "cannot connect")?;
            join(stream, copy, |stream| stream.shutdown(Shutdown::Write))
        }
    }
}

fn join<S: Read + Write + Send + 'static>(
    mut reader: S,
    mut writer: S,
    close: impl FnOnce(&S) -> io::Result<()> + Send + 'static,
) -> Result<Exit, Failure> {
    let own = |number: io::Result<std::os::fd::OwnedFd>| number.map(File::from);
    let mut input = own(stdio::stdin().as_fd().try_clone_to_owned())
        .or_fail(Exit::Start, "cannot read standard input")?;
    let mut output = own(stdio::stdout().as_fd().try_clone_to_owned())
        .or_fail(Exit::Start, "cannot write to standard output")?;
    // Whoever has gone is noticed by the other direction.
    let _ = output.write_all(GREETING);
    // Ends with us: what listens here decides when that is.
    thread::spawn(move || {
        let _ = pass(&mut input, &mut writer);
        let _ = close(&writer);
    });
    let _ = pass(&mut reader, &mut output);
    Ok(Exit::Success)
}

fn pass(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let length = match from.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if length == 0 {
            return Ok(());
        }
        to.write_all(chunk.get(..length).unwrap_or_default())?;
    }
}
