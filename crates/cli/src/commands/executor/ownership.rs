//! Gives the working directory to the user who will work in it, with everything below.
//!
//! As OpenHands does, because a mounted directory usually belongs to somebody else. Links are
//! given away themselves and never followed.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown},
    path::{Path, PathBuf},
};

use zareba_executor::User;

use crate::{
    exit::Exit,
    failure::{Failure, OrFail as _},
    say,
};

/// What owner and group of a tree shall be.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
}

/// Gives `directory` and everything in it to `user`; `group` is a name or a number.
pub(super) fn give(directory: &Path, user: &User, group: &str) -> Result<(), Failure> {
    let deed = || format!("cannot give `{}` to `{}`", directory.display(), user.name);
    fs::create_dir_all(directory).or_fail(Exit::Start, deed())?;
    let root = fs::canonicalize(directory).or_fail(Exit::Start, deed())?;
    if root.parent().is_none() {
        say::warning("the working directory is `/`, whose files stay with their owners");
        return Ok(());
    }
    let owner = Owner {
        uid: user.uid,
        gid: group_number(group)?,
    };
    give_tree(&root, owner)
        .and_then(|()| open_to_group(&root))
        .or_fail(Exit::Start, deed())
}

fn give_tree(root: &Path, owner: Owner) -> io::Result<()> {
    give_one(root, owner)?;
    let mut open: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            // What vanishes meanwhile needs no owner.
            match give_one(&path, owner) {
                Ok(Kind::Directory) => open.push(path),
                Ok(Kind::Other) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Directory,
    Other,
}

fn give_one(path: &Path, owner: Owner) -> io::Result<Kind> {
    let found = fs::symlink_metadata(path)?;
    if (found.uid(), found.gid()) != (owner.uid, owner.gid) {
        lchown(path, Some(owner.uid), Some(owner.gid))?;
    }
    Ok(if found.is_dir() {
        Kind::Directory
    } else {
        Kind::Other
    })
}

/// The group may read and write the directory itself.
fn open_to_group(root: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(root)?.permissions();
    permissions.set_mode(permissions.mode() | 0o060);
    fs::set_permissions(root, permissions)
}

fn group_number(group: &str) -> Result<u32, Failure> {
    if let Ok(number) = group.parse() {
        return Ok(number);
    }
    let database = fs::read_to_string("/etc/group").unwrap_or_default();
    let known = database.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    // A container made from one file has no database, and root is root everywhere.
    let known = known.or_else(|| (group == "root").then_some(0));
    known.ok_or_else(|| {
        Failure::new(Exit::Configuration, format!("there is no group `{group}`"))
            .hint("SANDBOX_GROUP_ID takes the name or the number of a group")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_known_by_number_and_by_name() {
        assert_eq!(group_number("1234"), Ok(1234));
        assert_eq!(group_number("root"), Ok(0));
        let failure = group_number("no such group").unwrap_err();
        assert_eq!(failure.exit(), Exit::Configuration);
    }
}
