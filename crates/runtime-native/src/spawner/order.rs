//! What a spawner is told, as one message.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
};

/// More than this is left to an ordinary start. A message must fit into a socket's buffer.
pub(super) const ORDER_MAX_BYTES: usize = 64 * 1024;

/// A command line, the program's name first, and a whole environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpawnOrder {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// The sandbox gets a network with nothing in it: one that was made ahead will do.
    pub(crate) empty_network: bool,
}

/// Behind the number of arguments, when the network is empty.
const EMPTY_NETWORK: &str = "n";

impl SpawnOrder {
    /// The number of arguments and what network it is, the arguments and the variables, each ended by
    /// a zero byte. None when that is too long, or no program could be given such strings.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let network = if self.empty_network {
            EMPTY_NETWORK
        } else {
            ""
        };
        let mut bytes = format!("{}{network}\0", self.arguments.len()).into_bytes();
        for argument in &self.arguments {
            push(&mut bytes, argument.as_bytes())?;
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.as_bytes().contains(&b'=') {
                return None;
            }
            let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
            push(&mut bytes, &variable)?;
        }
        (bytes.len() <= ORDER_MAX_BYTES).then_some(bytes)
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut strings = bytes.strip_suffix(&[0])?.split(|byte| *byte == 0);
        let first = std::str::from_utf8(strings.next()?).ok()?;
        let before_network = first.strip_suffix(EMPTY_NETWORK);
        let count: usize = before_network.unwrap_or(first).parse().ok()?;
        let own = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let arguments: Vec<OsString> = strings.by_ref().take(count).map(own).collect();
        if arguments.len() != count {
            return None;
        }
        let variables = strings.map(|variable| {
            let middle = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at_checked(middle)?;
            Some((own(name), own(value.get(1..)?)))
        });
        Some(Self {
            arguments,
            environment: variables.collect::<Option<_>>()?,
            empty_network: before_network.is_some(),
        })
    }

    /// The same of an order that is not read as a whole.
    pub(super) fn has_empty_network(bytes: &[u8]) -> bool {
        let first = bytes.split(|byte| *byte == 0).next();
        first.is_some_and(|first| first.ends_with(EMPTY_NETWORK.as_bytes()))
    }
}

fn push(bytes: &mut Vec<u8>, string: &[u8]) -> Option<()> {
    if string.contains(&0) {
        return None;
    }
    bytes.extend_from_slice(string);
    bytes.push(0);
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(arguments: &[&str], environment: &[(&str, &str)]) -> SpawnOrder {
        SpawnOrder {
            arguments: arguments.iter().map(OsString::from).collect(),
            environment: environment
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            empty_network: false,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for order in [
            order(&[], &[]),
            order(&["zareba", "", "a b"], &[]),
            order(&["zareba"], &[("A", ""), ("B", "x=y\nz")]),
            SpawnOrder {
                empty_network: true,
                ..order(&["zareban"], &[])
            },
        ] {
            let bytes = order.encode().unwrap();
            let empty_network = SpawnOrder::has_empty_network(&bytes);
            assert_eq!(empty_network, order.empty_network);
            assert_eq!(SpawnOrder::decode(&bytes), Some(order));
        }
    }

    #[test]
    fn what_no_program_could_be_given_is_not_written() {
        assert_eq!(order(&["a\0b"], &[]).encode(), None);
        assert_eq!(order(&[], &[("A", "\0")]).encode(), None);
        assert_eq!(order(&[], &[("A=B", "")]).encode(), None);
        assert_eq!(order(&[], &[("", "x")]).encode(), None);
        let long = "x".repeat(ORDER_MAX_BYTES);
        assert_eq!(order(&[&long], &[]).encode(), None);
    }

    #[test]
    fn half_an_order_is_none() {
        let whole = order(&["a", "b"], &[("C", "d")]).encode().unwrap();
        for length in 0..whole.len() {
            let half = SpawnOrder::decode(&whole[..length]);
            assert!(
                half.is_none() || length == b"2\0a\0b\0".len(),
                "{length}: {half:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn anything_may_come(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Some(order) = SpawnOrder::decode(&bytes) {
                let again = order.encode().and_then(|bytes| SpawnOrder::decode(&bytes));
                prop_assert!(again.is_none_or(|again| again == order));
            }
        }
    }
}
