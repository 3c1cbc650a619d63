//! A connection to a port of another server's sandbox, as a socket of this machine.

use std::{io, net::Ipv4Addr};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use zareba_client::Connection;

/// Strangers that may knock before us; a port that is open for an instant has none.
const STRANGERS_MAX: usize = 16;

/// A socket whose other end is the connection. A task carries the bytes and ends with either.
pub(super) async fn socket(mut connection: Connection) -> io::Result<TcpStream> {
    let (ours, mut theirs) = pair().await?;
    tokio::spawn(async move {
        if let Err(error) = copy_bidirectional(&mut connection, &mut theirs).await {
            tracing::debug!(%error, "a connection to a port of another server ended");
        }
    });
    Ok(ours)
}

/// Two ends of one connection within this machine. Whoever else connects meanwhile is not let in.
async fn pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let ours = TcpStream::connect(listener.local_addr()?).await?;
    let wanted = ours.local_addr()?;
    for _ in 0..STRANGERS_MAX {
        let (theirs, peer) = listener.accept().await?;
        if peer == wanted {
            ours.set_nodelay(true)?;
            theirs.set_nodelay(true)?;
            return Ok((ours, theirs));
        }
    }
    Err(io::Error::other("too many strangers connected instead"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn both_ends_are_of_one_connection() {
        let (mut ours, mut theirs) = pair().await.unwrap();
        ours.write_all(b"ping").await.unwrap();
        let mut read = [0; 4];
        theirs.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"ping");
        drop(theirs);
        assert_eq!(ours.read(&mut read).await.unwrap(), 0);
    }
}
