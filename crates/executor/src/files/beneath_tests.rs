//! The kernel's lookup and the one by hand: the same answers, and no way out.

use std::{fs, os::unix::fs::symlink};

use super::*;

const LOOKING: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

#[test]
fn walking_by_hand_follows_the_same_rules_as_the_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::write(root.join("a/b/file"), "x").unwrap();
    symlink("../a/b", root.join("a/inside")).unwrap();
    symlink("../../..", root.join("a/b/out")).unwrap();
    symlink("self", root.join("self")).unwrap();
    symlink(root.join("a"), root.join("absolute")).unwrap();
    symlink("/proc/self/root", root.join("magic")).unwrap();
    let beneath = Beneath::open_root(&root).unwrap();
    let check = |path: &str, inside: Result<(), Errno>, refused: Result<(), Errno>| {
        let path = Path::new(path);
        for (links, expected) in [(Links::Inside, inside), (Links::Refused, refused)] {
            let walked = beneath.base().walk(path, LOOKING, links).map(drop);
            assert_eq!(walked, expected, "walk {path:?} {links:?}");
            let opened = beneath.open_relative(path, LOOKING, links).map(drop);
            assert_eq!(opened, expected, "open {path:?} {links:?}");
        }
        let opened = beneath.open(&root.join(path), LOOKING).map(drop);
        assert_eq!(opened, inside, "open {path:?} by its whole name");
    };
    let link = Err(Errno::LOOP);
    check("a/b/file", Ok(()), Ok(()));
    check("a/inside/file", Ok(()), link);
    check("absolute/b/file", Ok(()), link);
    check("a/../a/b/..", Ok(()), Ok(()));
    check(".", Ok(()), Ok(()));
    check("", Ok(()), Ok(()));
    check("..", Err(Errno::XDEV), Err(Errno::XDEV));
    check("a/../..", Err(Errno::XDEV), Err(Errno::XDEV));
    check("a/b/out", Err(Errno::XDEV), link);
    check("a/b/out/etc", Err(Errno::XDEV), link);
    check("magic", Err(Errno::XDEV), link);
    check("magic/etc", Err(Errno::XDEV), link);
    check("self", link, link);
    check("a/none", Err(Errno::NOENT), Err(Errno::NOENT));
    check("a/b/file/x", Err(Errno::NOTDIR), Err(Errno::NOTDIR));
}

#[test]
fn an_absolute_path_is_inside_by_either_name_of_the_root_and_by_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().canonicalize().unwrap().join("real");
    fs::create_dir(&real).unwrap();
    fs::write(real.join("file"), "x").unwrap();
    fs::write(directory.path().join("real-not"), "x").unwrap();
    let named = directory.path().join("named");
    symlink("real", &named).unwrap();
    let beneath = Beneath::open_root(&named).unwrap();
    let check = |path: &Path, expected: Result<(), Errno>| {
        let opened = beneath.open(path, LOOKING).map(drop);
        assert_eq!(opened, expected, "{path:?}");
    };
    check(&named.join("file"), Ok(()));
    check(&real.join("file"), Ok(()));
    check(&real, Ok(()));
    let outside = Err(Errno::XDEV);
    check(&directory.path().join("real-not"), outside);
    check(&real.join("../real-not"), outside);
    check(Path::new("/"), outside);
    check(Path::new("/etc/passwd"), outside);
    let by_magic = Path::new("/proc/self/root").join(real.strip_prefix("/").unwrap());
    check(&by_magic.join("file"), outside);
}

#[test]
fn a_directory_without_a_name_follows_no_absolute_link() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("d")).unwrap();
    symlink(root.path().join("d"), root.path().join("absolute")).unwrap();
    symlink("d", root.path().join("relative")).unwrap();
    let handle = fs::File::open(root.path()).unwrap();
    let open =
        |path: &str| open_beneath(&handle, Path::new(path), LOOKING, Links::Inside).map(drop);
    assert_eq!(open("relative"), Ok(()));
    assert_eq!(open("absolute"), Err(Errno::XDEV));
    assert_eq!(open("/"), Err(Errno::XDEV));
}

/// One thread exchanges a directory for a link that leads out, as fast as it can; nothing that
/// is opened meanwhile lies outside.
#[test]
fn a_link_that_comes_between_never_leads_out() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("root");
    fs::create_dir_all(root.join("d")).unwrap();
    fs::write(root.join("d/file"), "inside").unwrap();
    fs::create_dir(directory.path().join("out")).unwrap();
    fs::write(directory.path().join("out/file"), "outside").unwrap();
    symlink("../out", root.join("link")).unwrap();
    let beneath = Beneath::open_root(&root).unwrap();
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let (from, to) = (root.join("d"), root.join("link"));
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let cwd = rustix::fs::CWD;
                rustix::fs::renameat_with(cwd, &from, cwd, &to, flags).unwrap();
            }
        });
        let mut inside = 0;
        for attempt in 0..20_000 {
            let opened = if attempt % 2 == 0 {
                beneath.open(&root.join("d/file"), OFlags::RDONLY)
            } else {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                beneath
                    .base()
                    .walk(Path::new("d/file"), flags, Links::Inside)
            };
            match opened {
                Ok(file) => {
                    let text = std::io::read_to_string(fs::File::from(file)).unwrap();
                    assert_eq!(text, "inside");
                    inside += 1;
                }
                Err(errno) => assert!(
                    matches!(
                        errno,
                        Errno::XDEV | Errno::AGAIN | Errno::LOOP | Errno::NOTDIR | Errno::NOENT
                    ),
                    "{errno}"
                ),
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(inside > 0);
    });
}
