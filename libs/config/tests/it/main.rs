//! The behaviour of loading a configuration: layers, errors, secrets and the documents that describe the keys.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails like the test itself")]

mod defaults;
mod documents;
mod errors;
mod layers;
mod reseller;
mod rules;
mod secrets;

use config::{Config, Errors, Fault, Problem, Sources};

const DATABASE_URL: &str = "postgres://postrider:hunter2@127.0.0.1:5432/postrider";
const AMQP_URL: &str = "amqp://postrider:hunter3@127.0.0.1:5672/%2f";

/// Sources that lack nothing.
fn complete() -> Sources {
    Sources::default()
        .with_variable("DATABASE_URL", DATABASE_URL)
        .with_variable("AMQP_URL", AMQP_URL)
}

fn load_yaml(yaml: &str) -> Result<Config, Errors> {
    config::load(&complete().with_yaml("prod.yaml", yaml))
}

fn problems(sources: &Sources) -> Vec<Problem> {
    config::load(sources)
        .expect_err("the configuration is wrong")
        .problems()
        .to_vec()
}

/// The only problem of a configuration file.
fn problem(yaml: &str) -> Problem {
    let mut problems = problems(&complete().with_yaml("prod.yaml", yaml));
    assert_eq!(problems.len(), 1, "{problems:#?}");
    problems.remove(0)
}

fn rule_of(problem: &Problem) -> &str {
    match &problem.fault {
        Fault::RuleBroken { statement } => statement,
        other => panic!("not a broken rule: {other:?}"),
    }
}
