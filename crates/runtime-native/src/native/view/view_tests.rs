//! What is written into a policy, and what is made for it outside. What becomes of it in a real
//! sandbox is for the integration tests.

use std::{
    collections::BTreeSet,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink},
};

use tempfile::TempDir;
use zareba_confine::{Access, Layer, Overlay};

use super::*;

/// A state directory with the directory of one sandbox.
struct State {
    _directory: TempDir,
    sandbox: PathBuf,
    identity: Identity,
}

impl State {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let sandbox = directory.path().join("native/one");
        fs::create_dir_all(&sandbox).unwrap();
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let identity = Identity {
            uid_inside: 1000,
            gid_inside: 1000,
            uid_outside: uid.as_raw(),
            gid_outside: gid.as_raw(),
        };
        Self {
            _directory: directory,
            sandbox,
            identity,
        }
    }

    fn see(&self, view: &View, workspace: Option<&Path>) -> io::Result<Seen> {
        see(&Request {
            view,
            identity: self.identity,
            directory: &self.sandbox,
            workspace,
            mode: WorkspaceMode::ReadWrite,
            guarded: &[".envrc".to_owned(), ".vscode".to_owned()],
            tools: None,
            resolver: Resolver::None,
        })
    }

    fn skeletons(&self) -> BTreeSet<String> {
        let store = self.sandbox.join("../../skeleton");
        fs::read_dir(store)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect()
    }
}

const COPY_ON_WRITE: View = View::Machine {
    system: SystemMode::CopyOnWrite,
};

fn find<'a>(seen: &'a Seen, inside: &str) -> Option<&'a EntryKind> {
    let found = seen
        .entries
        .iter()
        .find(|entry| entry.inside == Path::new(inside));
    found.map(|entry| &entry.kind)
}

fn overlay_at<'a>(seen: &'a Seen, inside: &str) -> &'a Overlay {
    match find(seen, inside) {
        Some(EntryKind::Overlay(overlay)) => overlay,
        other => panic!("{inside}: {other:?}"),
    }
}

fn own_file(seen: &Seen, name: &str) -> String {
    let own = &overlay_at(seen, "/etc").own;
    let found = own.iter().find(|file| file.name == name);
    found.expect(name).text.clone()
}

fn paths(overlay: &Overlay) -> Vec<&Path> {
    overlay.lower.iter().map(|lower| &*lower.path).collect()
}

#[test]
fn system_directories_lie_below_a_skeleton_and_a_layer_of_the_sandboxs_own() {
    let state = State::new();
    let seen = state.see(&COPY_ON_WRITE, None).unwrap();
    let usr = overlay_at(&seen, "/usr");
    let [skeleton, real] = paths(usr)[..] else {
        panic!("{usr:?}");
    };
    assert_eq!(real, Path::new("/usr"));
    assert!(skeleton.join("bin").is_dir() && skeleton.join("local").is_dir());
    assert_eq!(fs::read_dir(skeleton.join("bin")).unwrap().count(), 0);
    assert_eq!(usr.lower[1].owner, Ownership::AsItIs);
    let Some(Layer::Directory(layer)) = &usr.layer else {
        panic!("{usr:?}");
    };
    assert!(layer.join("upper").is_dir());
    assert_ne!(usr.layer, overlay_at(&seen, "/etc").layer);
    assert_eq!(seen.root, Root::Memory);
}

#[test]
fn a_read_only_system_has_no_layer_and_is_an_overlay_all_the_same_ns_4() {
    let state = State::new();
    let view = View::Machine {
        system: SystemMode::ReadOnly,
    };
    let seen = state.see(&view, None).unwrap();
    assert_eq!(overlay_at(&seen, "/usr").layer, None);
    assert_eq!(overlay_at(&seen, "/etc").layer, None);
    assert_eq!(paths(overlay_at(&seen, "/usr")).len(), 2);
}

#[test]
fn secrets_are_hidden_by_marks_whether_they_are_there_or_not_ns_4() {
    let state = State::new();
    let seen = state.see(&COPY_ON_WRITE, None).unwrap();
    let [shared, _machine] = paths(overlay_at(&seen, "/etc"))[..] else {
        panic!("{seen:?}");
    };
    let is_mark = |path: &str| {
        let found = fs::symlink_metadata(shared.join(path));
        found.is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0)
    };
    for secret in ["shadow", "krb5.keytab", "docker", "sudoers.d"] {
        assert!(is_mark(secret), "{secret}");
    }
    let (hidden, parent) = ("ssl/private", Path::new("/etc/ssl"));
    assert_eq!(is_mark(hidden), parent.is_dir() && !parent.is_symlink());
    assert!(shared.join("passwd").is_file());
}

#[test]
fn every_sandbox_is_a_machine_of_its_own_ns_4() {
    let number = || {
        let state = State::new();
        let seen = state.see(&COPY_ON_WRITE, None).unwrap();
        own_file(&seen, "machine-id")
    };
    let (one, other) = (number(), number());
    assert_ne!(one, other);
    assert_eq!(one.len(), 33);
}

#[test]
fn a_skeleton_is_shared_and_removed_when_nobody_stands_on_an_old_one() {
    let state = State::new();
    let store = state.sandbox.join("../../skeleton");
    let one = lease(&store, &["/usr"], state.identity).unwrap();
    let same = lease(&store, &["/usr"], state.identity).unwrap();
    assert_eq!(one.path, same.path);
    let other = lease(&store, &["/etc"], state.identity).unwrap();
    assert_ne!(one.path, other.path);
    assert_eq!(state.skeletons().len(), 2);
    let kept = name_of(&other.path);
    drop((one, same));
    // A killed maker leaves something, too.
    fs::create_dir(store.join("unfinished")).unwrap();
    let third = lease(&store, &["/usr", "/etc"], state.identity).unwrap();
    assert_eq!(
        state.skeletons(),
        BTreeSet::from([kept, name_of(&third.path)])
    );
}

fn lease(store: &Path, tops: &[&str], identity: Identity) -> io::Result<skeleton::Skeleton> {
    let tops: Vec<_> = tops
        .iter()
        .map(|top| skeleton::Top::mirrored(top))
        .collect();
    skeleton::lease(store, &tops, &skeleton::facts(&tops)?, identity)
}

#[test]
fn a_fact_holds_until_something_about_its_directory_changes() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("directory");
    type Change = fn(&Path);
    let changes: [Change; 5] = [
        |directory| fs::create_dir(directory.join("added")).unwrap(),
        |directory| fs::remove_dir(directory.join("added")).unwrap(),
        |directory| fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap(),
        |directory| {
            fs::rename(directory, directory.with_extension("old")).unwrap();
            fs::create_dir(directory).unwrap();
        },
        |directory| fs::remove_dir(directory).unwrap(),
    ];
    fs::create_dir(&directory).unwrap();
    for (number, change) in changes.into_iter().enumerate() {
        let fact = skeleton::Fact::of(&directory).unwrap();
        assert!(fact.still_holds());
        change(&directory);
        assert!(!fact.still_holds(), "{number}");
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn many_who_need_a_skeleton_at_once_get_the_same() {
    let state = State::new();
    let store = state.sandbox.join("../../skeleton");
    let paths: BTreeSet<PathBuf> = std::thread::scope(|scope| {
        let lease = || lease(&store, &["/usr"], state.identity).unwrap().path;
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(lease)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(paths.len(), 1);
}

/// There is no other user that it could download as.
#[test]
fn apt_in_an_image_downloads_as_the_only_user_there_is() {
    for has_apt in [true, false] {
        let state = State::new();
        let image = TempDir::new().unwrap();
        if has_apt {
            fs::create_dir_all(image.path().join("etc/apt/apt.conf.d")).unwrap();
        }
        let layers = vec![image.path().to_owned()];
        state.see(&View::Image { layers }, None).unwrap();
        let setting = state.sandbox.join("files/etc/apt/apt.conf.d/99zareba");
        let found = fs::read_to_string(setting).ok();
        let wanted = "APT::Sandbox::User \"root\";\n".to_owned();
        assert_eq!(found, has_apt.then_some(wanted));
    }
}

#[test]
fn an_image_is_the_root_and_keeps_its_users() {
    let state = State::new();
    let image = TempDir::new().unwrap();
    let layers = vec![image.path().to_owned()];
    let seen = state.see(&View::Image { layers }, None).unwrap();
    let Root::Overlay(root) = &seen.root else {
        panic!("{:?}", seen.root);
    };
    let files = state.sandbox.join("files");
    assert_eq!(paths(root), [files.as_path(), image.path()]);
    for point in ["dev", "proc", "run", "tmp", "workspace", "home/agent"] {
        assert!(files.join(point).is_dir(), "{point}");
    }
    for (name, is_made) in [("hosts", true), ("resolv.conf", true), ("passwd", false)] {
        assert_eq!(files.join("etc").join(name).is_file(), is_made, "{name}");
    }
    assert!(find(&seen, "/usr").is_none());
    assert!(find(&seen, "/workspace").is_some());
}

#[test]
fn what_git_acts_on_is_guarded_also_when_it_was_missing_ns_6() {
    let state = State::new();
    let workspace = TempDir::new().unwrap();
    fs::create_dir(workspace.path().join(".git")).unwrap();
    fs::write(workspace.path().join(".envrc"), "").unwrap();
    let seen = state.see(&COPY_ON_WRITE, Some(workspace.path())).unwrap();
    let access = |inside: &str| match find(&seen, inside) {
        Some(EntryKind::Again { access }) => Some(*access),
        _ => None,
    };
    assert_eq!(access("/workspace/.git"), Some(Access::ReadWrite));
    assert_eq!(access("/workspace/.git/hooks"), Some(Access::ReadOnly));
    assert_eq!(access("/workspace/.git/config"), Some(Access::ReadOnly));
    assert_eq!(access("/workspace/.envrc"), Some(Access::ReadOnly));
    assert_eq!(access("/workspace/.vscode"), Some(Access::ReadOnly));
    assert!(workspace.path().join(".git/hooks").is_dir());
}

#[test]
fn a_link_in_place_of_a_guarded_name_is_refused_ns_6() {
    let state = State::new();
    let workspace = TempDir::new().unwrap();
    symlink("/etc", workspace.path().join(".git")).unwrap();
    let error = state
        .see(&COPY_ON_WRITE, Some(workspace.path()))
        .unwrap_err();
    assert!(error.to_string().contains("copied on write"), "{error}");
}

#[test]
fn name_servers_are_those_that_were_given() {
    let state = State::new();
    let resolver = Resolver::At(&[IpAddr::from([169, 254, 1, 1])]);
    let seen = see(&Request {
        view: &COPY_ON_WRITE,
        identity: state.identity,
        directory: &state.sandbox,
        workspace: None,
        mode: WorkspaceMode::CopyOnWrite,
        guarded: &[],
        tools: None,
        resolver,
    })
    .unwrap();
    let text = own_file(&seen, "resolv.conf");
    assert_eq!(text, "nameserver 169.254.1.1\n");
}
