//! What became of a connection that brought no answer, by the types in the chain of causes, in words for both clients: without an address, and without
//! what libraries and the operating system call it where there is a plain word.
//!
//! It deliberately does not say whose fault that is, nor anything of names, of TLS, or of deadlines.

use std::error::Error;
use std::io;

use domain::notification::FailureKind;

use crate::own_fault::chain;

/// How the connection failed, and in words.
pub(crate) fn failure(error: &reqwest::Error) -> (FailureKind, String) {
    let cause = innermost(error);
    let plain = chain(error).find_map(plain_words);
    let told = |begin: &str| plain.map_or_else(|| format!("{begin}: {cause}"), str::to_owned);
    if error.is_connect() {
        return (FailureKind::Connect, told("the connection could not be opened"));
    }
    let of_http = find::<hyper::Error>(error);
    if find::<io::Error>(error).is_some() || of_http.is_some_and(was_closed) {
        return (
            FailureKind::Connect,
            told("the connection was lost before the answer"),
        );
    }
    match of_http {
        Some(_) => (FailureKind::Protocol, format!("the answer is not HTTP: {cause}")),
        None => (FailureKind::Other, cause.to_string()),
    }
}

/// What happens most, as people say it.
fn plain_words(error: &(dyn Error + 'static)) -> Option<&'static str> {
    if error.downcast_ref::<hyper::Error>().is_some_and(was_closed) {
        return Some("the connection was closed without an answer");
    }
    match error.downcast_ref::<io::Error>()?.kind() {
        io::ErrorKind::ConnectionRefused => Some("the connection was refused"),
        io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
            Some("the connection was reset without an answer")
        }
        io::ErrorKind::UnexpectedEof => Some("the connection was closed without an answer"),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            Some("there is no route to its address")
        }
        // One that is open is given up as well, when nothing that was sent is acknowledged.
        io::ErrorKind::TimedOut => Some("the connection timed out"),
        _ => None,
    }
}

fn was_closed(error: &hyper::Error) -> bool {
    error.is_incomplete_message() || error.is_closed()
}

/// The first error of a type among `error` and its causes.
pub(crate) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(<dyn Error>::downcast_ref)
}

/// The cause of all others.
pub(crate) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_most_has_plain_words_also_where_it_is_wrapped() {
        for (kind, said) in [
            (
                io::ErrorKind::ConnectionRefused,
                Some("the connection was refused"),
            ),
            (
                io::ErrorKind::ConnectionReset,
                Some("the connection was reset without an answer"),
            ),
            (
                io::ErrorKind::HostUnreachable,
                Some("there is no route to its address"),
            ),
            (io::ErrorKind::TimedOut, Some("the connection timed out")),
            (io::ErrorKind::Unsupported, None),
        ] {
            let error = io::Error::from(kind);
            assert_eq!(plain_words(&error), said, "{kind:?}");
            let wrapped = io::Error::other(error);
            assert_eq!(chain(&wrapped).find_map(plain_words), said, "wrapped: {kind:?}");
        }
    }
}
