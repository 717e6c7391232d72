//! The one TLS crypto provider of the process.
//!
//! It deliberately offers no choice: rustls refuses to pick a provider by itself as soon as two are compiled in, and
//! which ones are is up to the dependencies of the day.

/// Makes `ring` the process-wide provider of rustls. May be called any number of times, from any thread; a provider that the
/// embedding program has installed before stays.
pub fn install_default_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // A lost race means that another thread has just installed one, which is all that is wanted.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}
