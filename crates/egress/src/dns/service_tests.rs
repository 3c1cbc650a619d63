//! What questions are answered with, over a scripted world outside.

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RData, RecordType};

use super::*;
use crate::record::VerdictKind;
use crate::stage::{SERVER, STRANGER, Script, Stage};

const POLICY: &str = r#"{
    "allow": ["good.example", "*.wild.example", "broken.example", "inside.example",
              "mixed.example", "six.example", "own.example", "odd.example:8443", "10.9.9.9:5432",
              "listed.example", "gone.example"],
    "deny": ["bad.wild.example"]
}"#;

fn stage() -> Stage {
    let names = [
        ("good.example", vec![SERVER, STRANGER]),
        ("a.wild.example", vec![SERVER]),
        ("bad.wild.example", vec![SERVER]),
        ("secret.example", vec![SERVER]),
        (
            "inside.example",
            vec!["10.0.0.1", "169.254.169.254", "::ffff:127.0.0.1"],
        ),
        ("mixed.example", vec!["192.168.1.1", SERVER]),
        ("six.example", vec!["2606:4700::1"]),
        ("own.example", vec!["8.8.4.4"]),
        ("odd.example", vec![SERVER]),
        ("listed.example", vec!["10.9.9.9"]),
        ("localhost", vec!["127.0.0.1"]),
    ];
    let routes = [
        ("2606:4700::1".parse().unwrap(), Route::None),
        ("8.8.4.4".parse().unwrap(), Route::Own),
    ];
    let script = Script {
        names: names.into(),
        routes: routes.into(),
        ..Script::default()
    };
    Stage::new(POLICY, script)
}

fn question(name: &str, record_type: RecordType) -> Message {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
    message.set_edns(Edns::new());
    message
}

/// Response code, addresses, and the reason if there is one.
async fn ask(stage: &Stage, name: &str, record_type: RecordType) -> (u16, Vec<String>, String) {
    let question = question(name, record_type).to_vec().unwrap();
    let answer = answer(&stage.proxy, &question, Transport::Udp)
        .await
        .unwrap();
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!(answer.metadata.id, 7);
    assert!(answer.authorities.is_empty() && answer.additionals.is_empty());
    let addresses = answer.answers.iter().map(|record| match &record.data {
        RData::A(address) => address.to_string(),
        RData::AAAA(address) => address.to_string(),
        other => panic!("{other:?}"),
    });
    let reason = answer.edns.as_ref().and_then(|edns| {
        let option = edns.option(15.into())?;
        let bytes: Vec<u8> = option.try_into().ok()?;
        Some(String::from_utf8_lossy(bytes.get(2..)?).into_owned())
    });
    let code = answer.metadata.response_code.into();
    (code, addresses.collect(), reason.unwrap_or_default())
}

const NO_ERROR: u16 = 0;
const FAILED: u16 = 2;
const NO_SUCH_NAME: u16 = 3;

#[tokio::test]
async fn an_allowed_name_is_answered_and_remembered_eg_4() {
    let stage = stage();
    let answer = ask(&stage, "GOOD.example.", RecordType::A).await;
    assert_eq!(
        answer,
        (
            NO_ERROR,
            vec![SERVER.into(), STRANGER.into()],
            String::new()
        )
    );
    let name = HostName::parse("good.example").unwrap();
    let now = Instant::now();
    assert!(
        stage
            .proxy
            .resolved()
            .contains(&name, SERVER.parse().unwrap(), now)
    );

    let decisions = stage.decisions().await;
    let [decision] = decisions.as_slice() else {
        panic!("{decisions:?}");
    };
    let expected = Decision {
        time_ms: decision.time_ms,
        duration_ms: decision.duration_ms,
        name: Some("good.example".into()),
        address: Some(SERVER.parse().unwrap()),
        verdict: VerdictKind::Allow,
        rule: Some("good.example".into()),
        end: Some(End::Closed),
        ..Decision::begin(DecisionKind::Dns)
    };
    assert_eq!(decision, &expected);
}

#[tokio::test]
async fn other_names_never_leave_this_machine_eg_5() {
    let stage = stage();
    let long = format!("{}.{}.evil.example.", "a".repeat(63), "b".repeat(63));
    for name in [
        "secret.example.",
        "data-of-mine.good.example.",
        "wild.example.",
        "bad.wild.example.",
        "localhost.",
        "a.localhost.",
        "1.0.0.127.in-addr.arpa.",
        &long,
    ] {
        for record_type in [
            RecordType::A,
            RecordType::TXT,
            RecordType::NULL,
            RecordType::PTR,
        ] {
            let (code, addresses, reason) = ask(&stage, name, record_type).await;
            assert_eq!(
                (code, addresses.len()),
                (NO_SUCH_NAME, 0),
                "{name} {record_type}"
            );
            assert!(!reason.is_empty(), "{name} {record_type}");
        }
    }
    assert_eq!(*stage.world.lookups.lock().unwrap(), [""; 0]);
    let decisions = stage.decisions().await;
    assert!(
        decisions
            .iter()
            .all(|decision| decision.verdict == VerdictKind::Deny)
    );
    assert_eq!(decisions.len(), 32);
}

#[tokio::test]
async fn a_refusal_says_what_is_missing() {
    let stage = stage();
    let (_, _, reason) = ask(&stage, "secret.example.", RecordType::A).await;
    assert_eq!(
        reason,
        "`secret.example` is not allowed; add `secret.example` to native.allow"
    );
}

#[tokio::test]
async fn only_addresses_are_looked_up_eg_5() {
    let stage = stage();
    for record_type in [
        RecordType::TXT,
        RecordType::NULL,
        RecordType::MX,
        RecordType::CNAME,
        RecordType::HTTPS,
        RecordType::SVCB,
        RecordType::ANY,
    ] {
        let (code, addresses, _) = ask(&stage, "good.example.", record_type).await;
        assert_eq!((code, addresses.len()), (NO_ERROR, 0), "{record_type}");
    }
    assert_eq!(*stage.world.lookups.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn every_address_of_an_answer_is_judged_eg_4_eg_6() {
    let stage = stage();
    let (code, addresses, reason) = ask(&stage, "inside.example.", RecordType::A).await;
    assert_eq!((code, addresses.len()), (NO_ERROR, 0));
    assert!(reason.contains("a cloud metadata service"), "{reason}");
    let (_, addresses, reason) = ask(&stage, "inside.example.", RecordType::AAAA).await;
    assert_eq!(addresses.len(), 0);
    assert!(
        reason.contains("127.0.0.1 is a loopback address"),
        "{reason}"
    );
    let (_, addresses, reason) = ask(&stage, "own.example.", RecordType::A).await;
    assert_eq!(addresses.len(), 0);
    assert!(
        reason.contains("8.8.4.4 is this machine itself"),
        "{reason}"
    );

    let (_, addresses, _) = ask(&stage, "mixed.example.", RecordType::A).await;
    assert_eq!(addresses, [SERVER]);
    let (_, addresses, _) = ask(&stage, "listed.example.", RecordType::A).await;
    assert_eq!(addresses, ["10.9.9.9"]);
}

#[tokio::test]
async fn an_address_without_a_route_is_left_out() {
    let stage = stage();
    let answer = ask(&stage, "six.example.", RecordType::AAAA).await;
    assert_eq!(answer, (NO_ERROR, Vec::new(), String::new()));
}

#[tokio::test]
async fn what_the_name_servers_say_is_passed_on() {
    let stage = stage();
    assert_eq!(
        ask(&stage, "gone.example.", RecordType::A).await.0,
        NO_SUCH_NAME
    );
    assert_eq!(
        ask(&stage, "broken.example.", RecordType::A).await.0,
        FAILED
    );
    assert_eq!(
        ask(&stage, "good.example.", RecordType::AAAA).await.0,
        NO_ERROR
    );
    assert_eq!(ask(&stage, "odd.example.", RecordType::A).await.1, [SERVER]);
}

#[tokio::test]
async fn lookups_come_no_faster_than_their_pace_eg_5() {
    let stage = stage();
    let mut refused = 0;
    for _ in 0..400 {
        let (code, _, _) = ask(&stage, "good.example.", RecordType::A).await;
        refused += usize::from(code == 5);
    }
    let asked = stage.world.lookups.lock().unwrap().len();
    assert_eq!(asked + refused, 400);
    assert!((200..300).contains(&asked), "{asked}");
}

#[tokio::test]
async fn garbage_gets_no_answer_or_an_error() {
    let stage = stage();
    assert_eq!(answer(&stage.proxy, b"", Transport::Udp).await, None);
    assert_eq!(
        answer(&stage.proxy, &[0xff; 600], Transport::Udp).await,
        None
    );
    let bad = answer(&stage.proxy, &[0x01; 30], Transport::Udp)
        .await
        .unwrap();
    let bad = Message::from_vec(&bad).unwrap();
    assert!(bad.answers.is_empty() && bad.queries.is_empty());
}
