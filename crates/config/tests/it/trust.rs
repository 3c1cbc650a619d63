//! What a user has trusted, and how long it stays so.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use zareba_config::{ProjectFile, RuntimeKind, TrustedFiles};

use crate::case::Case;

const LOCAL: &str = "[runtime]\nkind = \"local\"\n";
const RECORD: &str = "case-home/.config/zareba/trusted.toml";

fn trust(case: &Case, path: &Path) {
    let file = ProjectFile::read(path).unwrap();
    TrustedFiles::trust(&case.environment(), &file).unwrap();
}

fn kind(case: &Case) -> Option<RuntimeKind> {
    case.try_load()
        .ok()
        .map(|loaded| loaded.settings.runtime.kind)
}

#[test]
fn a_file_that_was_trusted_may_say_everything_until_it_changes() {
    let case = Case::new().untrusted().file("zareba.toml", LOCAL);
    assert_eq!(kind(&case), None);
    trust(&case, &case.path("zareba.toml"));
    assert_eq!(kind(&case), Some(RuntimeKind::Local));
    let case = case.file("zareba.toml", &format!("{LOCAL}# one more line\n"));
    assert_eq!(kind(&case), None);
    let case = case.file("zareba.toml", LOCAL);
    assert_eq!(kind(&case), Some(RuntimeKind::Local));
    let removed = TrustedFiles::forget(&case.environment(), &case.path("zareba.toml"));
    assert!(removed.unwrap());
    assert_eq!(kind(&case), None);
    let again = TrustedFiles::forget(&case.environment(), &case.path("zareba.toml"));
    assert!(!again.unwrap());
}

#[test]
fn the_same_content_at_another_place_is_another_file() {
    let case = Case::new()
        .untrusted()
        .file("zareba.toml", LOCAL)
        .file("other/zareba.toml", LOCAL);
    trust(&case, &case.path("other/zareba.toml"));
    assert_eq!(kind(&case), None);
}

#[test]
fn a_link_is_the_file_that_it_leads_to() {
    let case = Case::new().untrusted().file("real/settings.toml", LOCAL);
    symlink(case.path("real/settings.toml"), case.path("zareba.toml")).unwrap();
    trust(&case, &case.path("real/settings.toml"));
    assert_eq!(kind(&case), Some(RuntimeKind::Local));
}

#[test]
fn the_record_is_the_users_alone() {
    let case = Case::new().untrusted().file("zareba.toml", LOCAL);
    trust(&case, &case.path("zareba.toml"));
    let record = case.path(RECORD);
    let modes = [&record, record.parent().unwrap()].map(|path| fs::metadata(path).unwrap().mode());
    assert_eq!(modes.map(|mode| mode & 0o7777), [0o600, 0o700]);
    let names = fs::read_dir(record.parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1, "nothing else is left there");
    fs::set_permissions(&record, Permissions::from_mode(0o602)).unwrap();
    assert_eq!(
        case.complaints(),
        [format!(
            "cannot use the record of trusted files `{RECORD}`: other users may write to it; take that \
             away with `chmod go-w`"
        )]
    );
}

#[test]
fn a_record_that_is_none_trusts_nothing() {
    for text in ["file = 3", "[[file]]\npath = \"/a\"\n", "[[files]]\n"] {
        let case = Case::new()
            .untrusted()
            .file(RECORD, text)
            .file("zareba.toml", LOCAL);
        assert_eq!(
            case.complaints(),
            [format!(
                "`{RECORD}` is not a record of trusted files; remove it and trust them again"
            )]
        );
    }
}

#[test]
fn records_of_several_files_do_not_undo_each_other() {
    let case = Case::new().untrusted();
    let files: Vec<_> = (0..8)
        .map(|number| format!("{number}/zareba.toml"))
        .collect();
    let case = files.iter().fold(case, |case, name| case.file(name, LOCAL));
    std::thread::scope(|scope| {
        for name in &files {
            let (case, path) = (&case, case.path(name));
            scope.spawn(move || trust(case, &path));
        }
    });
    let trusted = TrustedFiles::load(&case.environment()).unwrap();
    let known: Vec<_> = trusted
        .files()
        .iter()
        .map(|file| file.path.clone())
        .collect();
    let expected: Vec<_> = files
        .iter()
        .map(|name| case.path(name).canonicalize().unwrap())
        .collect();
    assert_eq!(known, expected);
}

#[test]
fn what_a_file_needs_trust_for_is_listed_line_by_line_without_secrets() {
    let text = "[shell]\ntimeout = 3\n[env]\nAPI_TOKEN = \"hunter2\"\n[runtime]\nkind = \"cli\"\n\
                [telemetry]\nheaders = \"hunter2\"\n";
    let case = Case::new().file("zareba.toml", text);
    let file = ProjectFile::read(&case.path("zareba.toml")).unwrap();
    let listed: Vec<String> = file
        .settings_that_need_trust()
        .unwrap()
        .into_iter()
        .map(|it| {
            format!(
                "{}: {} = {}",
                it.origin.line().unwrap(),
                it.key,
                it.value.unwrap()
            )
        })
        .collect();
    assert_eq!(
        listed,
        [
            "4: env.API_TOKEN = \"***\"",
            "6: runtime.kind = \"cli\"",
            "8: telemetry.headers = \"***\"",
        ]
    );
}

#[test]
fn without_a_home_nothing_is_trusted_and_nothing_can_be() {
    let case = Case::new()
        .untrusted()
        .variable("HOME", "")
        .file("zareba.toml", LOCAL);
    assert_eq!(kind(&case), None);
    let file = ProjectFile::read(&case.path("zareba.toml")).unwrap();
    let refused = TrustedFiles::trust(&case.environment(), &file).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "neither `HOME` nor `XDG_CONFIG_HOME` names a directory for the record of trusted files"
    );
}
