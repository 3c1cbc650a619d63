//! What the agent is told about its edits.

use super::*;

fn report(name: &str, before: &str, after: &str) -> Option<String> {
    Linter::new(Linting::On, Owner::Ourselves).report(Path::new(name), before, after)
}

const CLEAN: &str = "\nNo linting issues found in the changes.\n";

#[test]
fn a_clean_edit_is_said_to_be_clean() {
    assert_eq!(report("a.json", "{}", "{\"a\": 1}").as_deref(), Some(CLEAN));
    assert_eq!(
        report("a.sh", "", "if true; then\n  echo ok\nfi\n").as_deref(),
        Some(CLEAN)
    );
}

#[test]
fn a_mistake_is_told_with_its_place() {
    assert_eq!(
        report("a.json", "{}", "{\n  \"a\": }").as_deref(),
        Some("\nLinting issues found in the changes:\n- Line 2, Column 8: expected value\n\n")
    );
    let shell = report("a.sh", "true\n", "true\nfi\n").unwrap();
    assert_eq!(
        shell,
        "\nLinting issues found in the changes:\n- Line 2, Column 1: syntax error near unexpected token `fi'\n\n"
    );
}

#[test]
fn a_mistake_that_was_there_before_is_not_told_again() {
    assert_eq!(report("a.sh", "fi\n", "true\nfi\n").as_deref(), Some(CLEAN));
    let known = Issue {
        line: 1,
        column: 1,
        message: "m".to_owned(),
    };
    let same_text = Issue {
        line: 2,
        ..known.clone()
    };
    let other_text = Issue {
        line: 3,
        ..known.clone()
    };
    assert_eq!(
        introduced(
            vec![same_text, other_text.clone()],
            "new\nold\nmore\n",
            &[known],
            "old\n"
        ),
        [other_text]
    );
}

#[test]
fn python_is_checked_by_its_own_compiler() {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    let expected_none = python.is_err();
    let told = report("a.py", "x = 1\n", "x = 1\ndef f(:\n    pass\n");
    assert_eq!(told.is_none(), expected_none);
    if let Some(told) = told {
        let start = "\nLinting issues found in the changes:\n- Line 2, Column ";
        assert!(
            told.starts_with(start) && told.contains(": E999 SyntaxError: "),
            "{told}"
        );
        assert_eq!(report("a.py", "", "x = 1\n").as_deref(), Some(CLEAN));
    }
}

#[test]
fn other_files_and_a_linter_that_is_off_say_nothing() {
    assert_eq!(report("a.txt", "", "{"), None);
    let off = Linter::new(Linting::Off, Owner::Ourselves);
    assert_eq!(off.report(Path::new("a.json"), "", "{"), None);
}
