//! Inputs of a property: those that are kept as files, and a strategy that makes others of them and of the dictionary.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The folder `fuzz`.
pub(crate) fn folder() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("it lies in fuzz").to_owned()
}

/// What is kept of a property, by the names of the files.
pub(crate) fn kept(property: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(files) = fs::read_dir(folder().join("corpus").join(property)) else {
        return Vec::new();
    };
    let read = files.map(|file| {
        let path = file.expect("a readable folder").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name, fs::read(&path).expect("a readable file"))
    });
    let mut kept: Vec<_> = read.collect();
    kept.sort();
    kept
}

/// The entries of a property's dictionary, which is written as libFuzzer wants it.
pub(crate) fn tokens(property: &str) -> Vec<Vec<u8>> {
    let path = folder().join("dictionaries").join(format!("{property}.dict"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('"'))
        .map(token)
        .collect()
}

fn token(line: &str) -> Vec<u8> {
    let inner = line.trim_end().trim_start_matches('"').strip_suffix('"');
    let mut rest = inner.expect("an entry ends in a quote").bytes();
    let mut token = Vec::new();
    while let Some(byte) = rest.next() {
        match (byte, byte == b'\\') {
            (_, true) => match rest.next() {
                Some(b'x') => {
                    let digits =
                        [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
                    let digits: String = digits.into_iter().collect();
                    token.push(u8::from_str_radix(&digits, 16).expect("hexadecimal"));
                }
                Some(other) => token.push(other),
                None => panic!("an escape at the end of {line}"),
            },
            (other, false) => token.push(other),
        }
    }
    token
}

/// A change of an input.
#[derive(Debug, Clone)]
enum Change {
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Repeat(Index, usize),
    Join(Vec<u8>, Index),
}

/// Inputs that are made: bytes, tokens in a row, and changes of what is kept.
pub(crate) fn made(property: &str) -> BoxedStrategy<Vec<u8>> {
    let kept: Vec<_> = kept(property).into_iter().map(|(_, input)| input).collect();
    let mut tokens = tokens(property);
    tokens.push(vec![0]);
    let bytes = vec(any::<u8>(), 0..120);
    let in_a_row = (any::<u8>(), vec(select(tokens.clone()), 0..16))
        .prop_map(|(first, tokens)| [vec![first], tokens.concat()].concat());
    let plain_row = vec(select(tokens.clone()), 0..16).prop_map(|tokens| tokens.concat());
    let piece = prop_oneof![select(tokens), vec(any::<u8>(), 0..4)];
    let change = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (any::<Index>(), 1..8_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (any::<Index>(), 1..8_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        (select(kept.clone()), any::<Index>()).prop_map(|(other, at)| Change::Join(other, at)),
    ];
    let changed = (select(kept), vec(change, 0..5)).prop_map(|(input, changes)| {
        changes
            .into_iter()
            .fold(input, |input, change| changed(input, &change))
    });
    prop_oneof![1 => bytes, 1 => in_a_row, 1 => plain_row, 5 => changed].boxed()
}

fn changed(mut input: Vec<u8>, change: &Change) -> Vec<u8> {
    let place = |at: &Index, input: &[u8]| at.index(input.len() + 1);
    match change {
        Change::Set(at, byte) => {
            if !input.is_empty() {
                let at = at.index(input.len());
                input[at] = *byte;
            }
        }
        Change::Insert(at, piece) => {
            let at = place(at, &input);
            input.splice(at..at, piece.iter().copied());
        }
        Change::Remove(at, count) => {
            let at = place(at, &input);
            let end = (at + count).min(input.len());
            input.drain(at..end);
        }
        Change::Repeat(at, count) => {
            let at = place(at, &input);
            let end = (at + count).min(input.len());
            let again = input[at..end].to_vec();
            input.splice(end..end, again);
        }
        Change::Join(other, at) => {
            input.truncate(place(at, &input));
            input.extend_from_slice(&other[at.index(other.len() + 1)..]);
        }
    }
    input
}
