//! `docs/configuration.md` says what the code does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use zareba_config::{RESERVED_VARIABLES, keys, reference_markdown};

use crate::case::Case;

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    fs::read_to_string(path).unwrap()
}

#[test]
fn the_page_holds_the_generated_reference() {
    assert!(
        page().contains(&reference_markdown()),
        "docs/configuration.md is out of date: run `cargo run -p zareba-config --example write_reference`"
    );
}

#[test]
fn the_page_names_every_key_and_every_reserved_variable() {
    let page = page();
    for key in keys() {
        for name in std::iter::once(key.path).chain(key.openhands) {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
    for name in RESERVED_VARIABLES {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn every_example_file_of_the_page_loads() {
    let page = page();
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        Case::new().file("zareba.toml", example).load();
    }
}

#[test]
fn no_two_settings_share_a_name() {
    let mut names = BTreeSet::new();
    for key in keys() {
        let paths = std::iter::once(key.path)
            .chain(key.openhands)
            .map(str::to_owned);
        for name in paths.chain(key.variables) {
            assert!(names.insert(name.clone()), "{name}");
        }
    }
}

#[test]
fn every_key_is_explained_in_a_sentence() {
    for key in keys() {
        assert!(
            key.meaning.ends_with('.') && key.meaning.len() > 10,
            "{}: {}",
            key.path,
            key.meaning
        );
    }
}
