//! Which logs go.

use super::*;

/// Usages from names, ages in hours and sizes, at a time that is returned with them.
fn usages(rows: &[(&str, i64, u64)]) -> (Vec<Usage>, Timestamp) {
    let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    let usages = rows.iter().map(|(name, hours, bytes)| Usage {
        session: SessionId::new(*name).unwrap(),
        records: 1,
        bytes: *bytes,
        changed: now - SignedDuration::from_hours(*hours),
    });
    (usages.collect(), now)
}

fn check(policy: Retention, rows: &[(&str, i64, u64)], expected: &[&str]) {
    let closed = (rows.iter().map(|(name, ..)| *name)).filter(|name| *name != "open");
    let policy = Retention {
        closed: closed.map(|name| SessionId::new(name).unwrap()).collect(),
        ..policy
    };
    let (usages, now) = usages(rows);
    let removed = policy.outdated(usages, now);
    let removed: Vec<_> = removed.iter().map(SessionId::as_str).collect();
    assert_eq!(removed, expected);
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn el_8_closed_sessions_go_by_age_and_open_ones_stay() {
    let rows = [
        ("open", 99, 1),
        ("old", 3, 1),
        ("at-the-limit", 2, 1),
        ("young", 1, 1),
    ];
    let policy = Retention {
        age_max: Some(2 * HOUR),
        ..Retention::default()
    };
    check(policy, &rows, &["old"]);
    check(Retention::default(), &rows, &[]);
}

#[test]
fn el_8_beyond_a_size_the_oldest_go_first() {
    let rows = [("open", 9, 500), ("b", 2, 10), ("a", 3, 10), ("c", 1, 10)];
    let policy = |bytes| Retention {
        bytes_max: Some(bytes),
        ..Retention::default()
    };
    check(policy(800), &rows, &[]);
    // All three take more than an eighth of so little, so only age counts.
    check(policy(30), &rows, &[]);
    check(policy(29), &rows, &["a"]);
    check(policy(10), &rows, &["a", "b"]);
}

#[test]
fn el_8_a_chatty_session_does_not_push_out_others() {
    let rows = [("a", 9, 5), ("b", 8, 5), ("chatty", 1, 900), ("c", 7, 5)];
    let policy = Retention {
        bytes_max: Some(100),
        ..Retention::default()
    };
    check(policy, &rows, &["chatty"]);
}
