//! A web server that does nothing but read one file per request: what HTTP costs at least.
//!
//! It looks only for the end of a request and answers each with the same file as JSON would
//! carry it, one thread per connection.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
};

use crate::http::Address;

/// The requests that it gets are a few hundred bytes, and come one at a time.
const REQUEST_BYTES_MAX: usize = 4096;

/// The server; its threads end with the connections, and the last one with the run.
#[derive(Debug)]
pub(crate) struct FileServer {
    address: SocketAddr,
}

impl FileServer {
    /// Serves `file` from now on.
    pub(crate) fn start(file: &Path) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let file = file.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let file = file.clone();
                // A client that goes away ends its thread, which is all there is to it.
                std::thread::spawn(move || serve(stream, &file));
            }
        });
        Ok(Self { address })
    }

    pub(crate) fn address(&self) -> Address {
        Address::Tcp(self.address)
    }
}

fn serve(mut stream: TcpStream, file: &PathBuf) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = [0; REQUEST_BYTES_MAX];
    loop {
        let mut filled = 0;
        // Every request that is sent to it ends with a brace.
        while !request[..filled].ends_with(b"}") {
            match stream.read(&mut request[filled..])? {
                0 => return Ok(()),
                length => filled += length,
            }
        }
        let content = std::fs::read(file)?;
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            content.len()
        )
        .into_bytes();
        answer.extend_from_slice(&content);
        stream.write_all(&answer)?;
    }
}
