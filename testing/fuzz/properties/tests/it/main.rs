//! Every property on every input that is kept, and on inputs that proptest makes of them: the twin of `cargo fuzz` that
//! needs no nightly toolchain and ends in seconds.

mod complete;
mod inputs;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use properties::{ALL, Property};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Inputs that are made for each property, and for the one that reads all of the configuration each time.
const CASES: u32 = 500;
const CASES_OF_CONFIGURATION: u32 = 50;

fn holds(property: &Property, input: &[u8], origin: &str) {
    let checked = catch_unwind(AssertUnwindSafe(|| (property.check)(input)));
    if let Err(panic) = checked {
        eprintln_once(property, input, origin);
        resume_unwind(panic);
    }
}

/// The input in a form that can be kept as a file.
#[expect(clippy::print_stderr, reason = "the reader of a failure needs the input")]
fn eprintln_once(property: &Property, input: &[u8], origin: &str) {
    eprintln!(
        "{} does not hold for {origin}: {:?}",
        property.name,
        input.escape_ascii().to_string()
    );
}

fn on_what_is_kept(property: &Property) {
    let kept = inputs::kept(property.name);
    assert!(!kept.is_empty(), "testing/fuzz/corpus/{} is empty", property.name);
    for (name, input) in &kept {
        holds(property, input, name);
    }
}

fn on_what_is_made(property: &Property) {
    let config = Config {
        cases: match property.name {
            "configuration" => CASES_OF_CONFIGURATION,
            _ => CASES,
        },
        failure_persistence: None,
        ..Config::default()
    };
    let made = inputs::made(property.name);
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let run = TestRunner::new_with_rng(config, rng).run(&made, |input| {
        let checked = catch_unwind(AssertUnwindSafe(|| (property.check)(&input)));
        checked.map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let said = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            let input = input.escape_ascii().to_string();
            TestCaseError::fail(format!("{:?} for b\"{input}\"", said.unwrap_or_default()))
        })
    });
    if let Err(error) = run {
        panic!("{} does not hold: {error}", property.name);
    }
}

macro_rules! twins {
    ($($name:ident),* $(,)?) => {
        $(
            mod $name {
                #[test]
                fn holds_for_every_input_that_is_kept() {
                    super::on_what_is_kept(&super::named(stringify!($name)));
                }

                #[test]
                fn holds_for_inputs_that_are_made() {
                    super::on_what_is_made(&super::named(stringify!($name)));
                }
            }
        )*
    };
}

fn named(name: &str) -> Property {
    *ALL.iter()
        .find(|property| property.name == name)
        .expect("a property of this name")
}

properties::with_all_names!(twins);
