//! Frames are read as they were written, however they were cut, and nothing else gets through.

use proptest::prelude::*;

use super::*;

fn client_frame() -> impl Strategy<Value = ClientFrame> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..300)
            .prop_map(|bytes| ClientFrame::Stdin(bytes.into())),
        Just(ClientFrame::EndOfStdin),
        (1_u16.., 1_u16..)
            .prop_map(|(rows, columns)| ClientFrame::Resize(TerminalSize { rows, columns })),
        proptest::sample::select(&ProgramSignal::ALL[..]).prop_map(ClientFrame::Signal),
    ]
}

fn server_frame() -> impl Strategy<Value = ServerFrame> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        bytes().prop_map(|bytes| ServerFrame::Stdout(bytes.into())),
        bytes().prop_map(|bytes| ServerFrame::Stderr(bytes.into())),
        any::<i32>().prop_map(|code| ServerFrame::Exit(ProgramExit::Code(code))),
        any::<i32>().prop_map(|signal| ServerFrame::Exit(ProgramExit::Signal(signal))),
        any::<String>().prop_map(ServerFrame::Error),
        any::<u32>().prop_map(ServerFrame::Taken),
    ]
}

/// All frames of `bytes`, pushed in pieces of `cut` bytes.
fn cut_up(bytes: &[u8], cut: usize) -> Result<Vec<(u8, Bytes)>, FrameError> {
    let mut reader = FrameReader::default();
    let mut found = Vec::new();
    for piece in bytes.chunks(cut) {
        reader.push(piece);
        while let Some(frame) = reader.frame()? {
            found.push(frame);
        }
        // What is kept back is less than one frame.
        assert!(reader.buffer.len() < HEAD_BYTES + FRAME_BYTES_MAX);
    }
    Ok(found)
}

proptest! {
    #[test]
    fn client_frames_survive_the_way(frames in proptest::collection::vec(client_frame(), 0..8), cut in 1_usize..700) {
        let mut bytes = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let found = cut_up(&bytes, cut).unwrap().into_iter();
        let found: Result<Vec<_>, _> = found.map(|(kind, content)| ClientFrame::decode(kind, content)).collect();
        prop_assert_eq!(found, Ok(frames));
    }

    #[test]
    fn server_frames_survive_the_way(frames in proptest::collection::vec(server_frame(), 0..8), cut in 1_usize..700) {
        let mut bytes = BytesMut::new();
        frames.iter().for_each(|frame| frame.encode(&mut bytes));
        let found = cut_up(&bytes, cut).unwrap().into_iter();
        let found: Result<Vec<_>, _> = found.map(|(kind, content)| ServerFrame::decode(kind, content)).collect();
        prop_assert_eq!(found, Ok(frames));
    }

    #[test]
    fn any_bytes_are_cut_and_read_without_harm_g_1(bytes in proptest::collection::vec(any::<u8>(), 0..4096), cut in 1_usize..700) {
        // Small first bytes make frames that are known and short more likely.
        let tame: Vec<u8> = bytes.iter().map(|byte| byte % 5).collect();
        for bytes in [bytes, tame] {
            let whole = cut_up(&bytes, usize::MAX);
            prop_assert_eq!(&whole, &cut_up(&bytes, cut));
            for (kind, content) in whole.unwrap_or_default() {
                prop_assert!(content.len() <= FRAME_BYTES_MAX);
                let _ = ClientFrame::decode(kind, content.clone());
                let _ = ServerFrame::decode(kind, content);
            }
        }
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused_by_its_head_g_5() {
    let mut reader = FrameReader::default();
    reader.push(&[0, 0, 1, 0, 1]);
    let length = u32::try_from(FRAME_BYTES_MAX).unwrap() + 1;
    assert_eq!(reader.frame(), Err(FrameError::TooLong { length }));
}

#[test]
fn malformed_frames_are_told_from_unknown_ones() {
    let content = Bytes::from_static(b"xyz");
    for kind in 1..=3 {
        let expected = Err(FrameError::Malformed { kind });
        assert_eq!(ClientFrame::decode(kind, content.clone()), expected);
    }
    for kind in 2..=4 {
        let expected = Err(FrameError::Malformed { kind });
        assert_eq!(ServerFrame::decode(kind, content.clone()), expected);
    }
    let expected = FrameError::UnknownKind { kind: 5 };
    assert_eq!(ClientFrame::decode(5, content.clone()), Err(expected));
    assert_eq!(ServerFrame::decode(5, content), Err(expected));
    let no_size = Bytes::from_static(&[0, 0, 0, 1]);
    assert_eq!(
        ClientFrame::decode(2, no_size),
        Err(FrameError::Malformed { kind: 2 })
    );
}
