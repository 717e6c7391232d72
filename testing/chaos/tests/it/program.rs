//! What the program says of itself and of a plan.

use std::process::{Command, Output};

fn chaos(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chaos"));
    command.args(arguments).output().expect("the program can be run")
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[test]
fn a_seed_that_was_printed_gives_the_same_plan_again() {
    let [one, other] = [
        chaos(&["--plan", "--seed", "7"]),
        chaos(&["--plan", "--seed", "7"]),
    ];
    assert!(one.status.success());
    assert_eq!(text(&one), text(&other));
    assert!(text(&one).starts_with("seed 7: "), "{}", text(&one));
}

#[test]
fn without_a_seed_there_is_one_nevertheless() {
    let text = text(&chaos(&["--plan"]));
    let seed = text.strip_prefix("seed ").and_then(|rest| rest.split(':').next());
    assert!(seed.is_some_and(|seed| seed.parse::<u64>().is_ok()), "{text}");
}

#[test]
fn rounds_have_seeds_of_their_own_that_follow_from_the_first() {
    let seeds = || -> Vec<String> {
        let text = text(&chaos(&["--plan", "--seed", "7", "--rounds", "3"]));
        text.lines()
            .filter(|line| line.starts_with("seed "))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(seeds().len(), 3);
    assert_eq!(seeds(), seeds());
}

#[test]
fn a_kind_of_fault_that_there_is_not_is_refused_by_name() {
    let output = chaos(&["--plan", "--faults", "freeze,earthquake"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("earthquake"));
}
