//! Tests of the multipart reader: every way a body can be cut into pieces.

use futures_util::{StreamExt as _, stream};

use super::*;

type Pieces = stream::Iter<std::vec::IntoIter<io::Result<Bytes>>>;

fn source(pieces: &[&[u8]]) -> Pieces {
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    stream::iter(pieces)
}

async fn file_of(pieces: &[&[u8]]) -> io::Result<Option<(PartHead, Vec<u8>)>> {
    let mut reader = MultipartReader::new("B", source(pieces));
    let Some(head) = reader.part_named("file", 2).await? else {
        return Ok(None);
    };
    let (mut data, _returned) = reader.into_data();
    let mut bytes = Vec::new();
    while let Some(piece) = data.next().await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(Some((head, bytes)))
}

fn head(file_name: &str) -> PartHead {
    PartHead {
        name: Some("file".into()),
        file_name: Some(file_name.into()),
    }
}

const BODY: &[u8] = b"--B\r\nContent-Disposition: form-data; name=\"other\"\r\n\r\nx\r\n\
    --B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n\
    Content-Type: application/octet-stream\r\n\r\none\r\n--Bee\r\n--two\r\r\n--B--\r\n";

#[tokio::test]
async fn the_data_is_the_same_wherever_the_body_is_cut() {
    // The data itself holds a near miss: a line that begins like the delimiter.
    let body = BODY.to_vec();
    let body = String::from_utf8(body).unwrap().replace("--Bee", "--bee");
    let expected = Some((head("a.bin"), b"one\r\n--bee\r\n--two\r".to_vec()));
    for cut in 0..=body.len() {
        let (first, second) = body.as_bytes().split_at(cut);
        assert_eq!(
            file_of(&[first, second]).await.unwrap(),
            expected,
            "cut at {cut}"
        );
    }
    let bytes: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    assert_eq!(file_of(&bytes).await.unwrap(), expected);
}

#[tokio::test]
async fn an_empty_file_is_empty_and_a_missing_part_is_none() {
    let empty =
        b"--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"e\"\r\n\r\n\r\n--B--";
    assert_eq!(
        file_of(&[empty]).await.unwrap(),
        Some((head("e"), Vec::new()))
    );
    assert_eq!(file_of(&[b"--B--\r\n"]).await.unwrap(), None);
}

#[tokio::test]
async fn a_body_that_stops_early_is_an_error_wherever_it_stops() {
    let body =
        b"--B\r\ncontent-disposition: form-data; name=\"file\"; filename=\"e\"\r\n\r\ndata\r\n--B";
    for end in 0..body.len() {
        let error = file_of(&[&body[..end]]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "cut at {end}");
    }
}

#[tokio::test]
async fn endless_preambles_headers_and_parts_are_refused() {
    let long = vec![b'x'; PART_HEADER_BYTES_MAX + 100];
    let other = b"--B\r\ncontent-disposition: form-data; name=\"o\"\r\n\r\n1\r\n".repeat(4);
    let headers = [b"--B\r\n".as_slice(), &long].concat();
    for body in [&long, &headers, &other] {
        let error = file_of(&[body]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}

#[tokio::test]
async fn a_dropped_part_gives_the_reader_back() {
    let mut reader = MultipartReader::new("B", source(&[BODY, b"rest"]));
    reader.part_named("file", 2).await.unwrap();
    let (data, returned) = reader.into_data();
    drop(data);
    let rest: Vec<_> = returned
        .await
        .unwrap()
        .into_source()
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(rest, [Bytes::from_static(b"rest")]);
}

#[test]
fn boundaries_are_found_only_in_form_data() {
    for (content_type, boundary) in [
        ("multipart/form-data; boundary=abc", Some("abc")),
        (
            "Multipart/Form-Data; charset=utf-8; Boundary=\"a b\"",
            Some("a b"),
        ),
        ("multipart/form-data", None),
        ("multipart/form-data; boundary=", None),
        ("multipart/mixed; boundary=abc", None),
        ("application/json", None),
    ] {
        assert_eq!(
            boundary_of(content_type.as_bytes()).as_deref(),
            boundary,
            "{content_type}"
        );
    }
}
