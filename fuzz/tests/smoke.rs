//! Every target over its corpus, over what is near to it, and over random bytes.

use std::path::Path;

use proptest::prelude::*;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap_or_else(|error| panic!("{target} has no corpus: {error}"))
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{target}: {error}"));
    files.sort();
    assert!(!files.is_empty(), "{target} has an empty corpus");
    files
        .iter()
        .map(|path| std::fs::read(path).unwrap_or_default())
        .collect()
}

/// Runs a target over each seed: whole, cut short at every place, and with every byte changed.
fn near(target: fn(&[u8]), seeds: &[Vec<u8>]) {
    for seed in seeds {
        target(seed);
        for place in 0..seed.len() {
            target(&seed[..place]);
            for other in [0x00, 0x1b, b'9', b'"', 0x80, 0xff] {
                let mut changed = seed.clone();
                changed[place] = other;
                target(&changed);
            }
        }
    }
}

#[test]
fn the_renderer_survives_its_corpus() {
    near(zareba_fuzz::renderer, &corpus("renderer"));
}

#[test]
fn the_action_decoder_survives_its_corpus() {
    near(zareba_fuzz::action_decoder, &corpus("action_decoder"));
}

proptest! {
    #[test]
    fn the_renderer_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        zareba_fuzz::renderer(&bytes);
    }

    #[test]
    fn the_action_decoder_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        zareba_fuzz::action_decoder(&bytes);
    }

    #[test]
    fn the_renderer_survives_all_that_looks_like_sequences(
        text in "(\x1b\\[[0-9;?]{0,6}[@-~]|\x1b[ -~]|[a-z\r\n\t\x08é世\u{301}]|\x1b\\][ -~]{0,5}\x07){0,80}"
    ) {
        zareba_fuzz::renderer(text.as_bytes());
    }
}
