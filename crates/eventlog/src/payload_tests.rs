//! Where payloads of each size go, and that they come back.

use super::*;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn el_10_a_small_payload_stands_in_its_record() {
    let payload = object(json!({ "text": "x".repeat(INLINE_BYTES_MAX - 11) }));
    let folded = fold(payload.clone()).await.unwrap();
    assert_eq!(folded.stored, Stored::Inline(text_of(&payload)));
    assert_eq!(folded.bytes(), INLINE_BYTES_MAX);
    assert_eq!((folded.payload, folded.blobs), (payload, vec![]));
}

#[tokio::test]
async fn el_10_a_larger_payload_is_kept_apart_and_comes_back_whole() {
    let payload = object(json!({ "text": "x".repeat(INLINE_BYTES_MAX - 10) }));
    let folded = fold(payload.clone()).await.unwrap();
    let [blob] = &folded.blobs[..] else {
        panic!("{:?}", folded.stored)
    };
    assert_eq!(folded.stored, Stored::Apart(blob.digest.to_string()));
    assert_eq!(blob.bytes, text_of(&payload));
    assert_eq!(folded.payload, payload);
}

#[tokio::test]
async fn el_10_large_texts_of_a_very_large_payload_become_references() {
    let long = "ä".repeat(WHOLE_BYTES_MAX);
    let payload = object(json!({ "action": "run", "list": [1, { "out": long }] }));
    let folded = fold(payload).await.unwrap();
    let reference = &folded.payload["list"][1]["out"];
    assert_eq!(reference["$blob"], Digest::of(long.as_bytes()).to_string());
    assert_eq!(reference["bytes"], long.len());
    assert_eq!(reference["form"], "text");
    assert_eq!(reference["head"], "ä".repeat(HEAD_BYTES_MAX / 2));
    assert_eq!(folded.payload["action"], "run");
    assert_eq!(folded.blobs[0].bytes, long);
    assert_eq!(folded.stored, Stored::Inline(text_of(&folded.payload)));
}

#[tokio::test]
async fn el_10_many_small_values_become_a_reference_to_their_field_or_to_all() {
    let many: Vec<usize> = (0..300_000).collect();
    let folded = fold(object(json!({ "kind": "x", "many": many })))
        .await
        .unwrap();
    assert_eq!(folded.payload["kind"], "x");
    assert_eq!(folded.payload["many"]["form"], "json");
    assert_eq!(folded.blobs[0].bytes, json!(many).to_string());

    let wide: Map<String, Value> = (0..200_000).map(|n| (n.to_string(), n.into())).collect();
    let folded = fold(wide.clone()).await.unwrap();
    assert_eq!(
        folded.payload["$blob"],
        Digest::of(text_of(&wide).as_bytes()).to_string()
    );
    assert_eq!(folded.blobs[0].bytes, text_of(&wide));
}

#[tokio::test]
async fn too_large_and_too_deep_payloads_are_refused() {
    let payload = object(json!({ "text": "x".repeat(PAYLOAD_BYTES_MAX) }));
    let error = fold(payload).await.unwrap_err();
    assert!(matches!(error, LogError::TooLarge { .. }), "{error}");

    let nested = |levels: usize| {
        let inner = (1..levels).fold(json!([]), |inner, _| json!([inner]));
        object(json!({ "nested": inner }))
    };
    let good = fold(nested(DEPTH_MAX - 2)).await.unwrap();
    let (Stored::Inline(text) | Stored::Apart(text)) = good.stored;
    assert!(serde_json::from_str::<Value>(&text).is_ok());
    let error = fold(nested(DEPTH_MAX)).await.unwrap_err();
    assert!(matches!(error, LogError::TooDeep { .. }), "{error}");
}
