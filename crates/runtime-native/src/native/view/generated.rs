//! Files of `/etc` that say who and where a sandbox is. An overlay shows them in place of whatever
//! the machine or the image has there, be it a link, and the sandbox can change them.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Read as _},
};

use zareba_confine::Identity;

use super::{HOME, Resolver, USER};
use crate::native::lot;

/// A longer list of name servers is not one.
const RESOLVER_MAX_BYTES: u64 = 64 * 1024;

/// The same for every sandbox.
pub(super) const COMMON: [(&str, &str); 2] = [
    (
        "hosts",
        "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n",
    ),
    ("hostname", "sandbox\n"),
];

/// The files that only one sandbox has.
pub(super) fn own(resolver: Resolver<'_>) -> io::Result<[(&'static str, String); 2]> {
    // The machine's own would name it to whoever is told; two sandboxes are two machines.
    let number = lot::draw()?;
    Ok([
        ("resolv.conf", name_servers(resolver)?),
        ("machine-id", format!("{number:032x}\n")),
    ])
}

/// The user database; an image has its own.
pub(super) fn users(identity: Identity) -> [(&'static str, String); 2] {
    let Identity {
        uid_inside: uid,
        gid_inside: gid,
        ..
    } = identity;
    let users = format!(
        "root:x:0:0:root:/root:/bin/sh\n{USER}:x:{uid}:{gid}::{HOME}:/bin/bash\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    );
    let groups = format!("root:x:0:\n{USER}:x:{gid}:\nnogroup:x:65534:\n");
    [("passwd", users), ("group", groups)]
}

fn name_servers(resolver: Resolver<'_>) -> io::Result<String> {
    match resolver {
        Resolver::None => Ok("# This sandbox has no network.\n".to_owned()),
        Resolver::At(addresses) => {
            let mut text = String::new();
            for address in addresses {
                let _ = writeln!(text, "nameserver {address}");
            }
            Ok(text)
        }
        Resolver::LikeTheMachine => {
            let file = match File::open("/etc/resolv.conf") {
                // Without one, programs ask this machine.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
                file => file?,
            };
            let mut text = String::new();
            file.take(RESOLVER_MAX_BYTES).read_to_string(&mut text)?;
            Ok(text)
        }
    }
}
