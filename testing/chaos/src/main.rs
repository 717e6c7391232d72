//! `chaos`: rounds of the fault harness, one after the other. Exits 0 when all have passed, 1 when one has failed, 2 when one could
//! not be carried out.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use chaos::args::Args;
use chaos::cluster::Replicas;
use chaos::plan::{Plan, Terms, is_kind, kind_names};
use chaos::rng::Rng;
use chaos::run::Round;
use chaos::{report, seeds};
use clap::Parser;

/// Seconds of faults in a short run.
const SHORT: u64 = 20;

#[expect(clippy::print_stderr, reason = "it is how a program says why it has failed")]
fn main() -> ExitCode {
    let args = Args::parse();
    lifecycle::crypto::install_default_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = runtime.context("no runtime").and_then(|runtime| {
        runtime.block_on(async {
            tokio::select! {
                ended = run(&args) => ended,
                _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted"),
            }
        })
    });
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the run could not be carried out: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether every round has passed.
async fn run(args: &Args) -> anyhow::Result<bool> {
    for plan in plans(args)? {
        if !one(plan, args).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn plans(args: &Args) -> anyhow::Result<Vec<Plan>> {
    if let Some(file) = &args.plan_file {
        let text = std::fs::read(file).with_context(|| format!("no {}", file.display()))?;
        return Ok(vec![
            serde_json::from_slice(&text).context("the file holds no plan")?,
        ]);
    }
    let none = args.faults == ["none"];
    let unknown = args.faults.iter().find(|kind| !none && !is_kind(kind));
    if let Some(kind) = unknown {
        let known: Vec<&str> = kind_names().collect();
        anyhow::bail!(
            "there are no faults called {kind:?}; there are {}",
            known.join(", ")
        );
    }
    let terms = |seed, seconds, kinds: &[String]| Terms {
        seed,
        lasts: Duration::from_secs(seconds),
        broker_nodes: args.broker_nodes.into(),
        replicas: Replicas::default(),
        kinds: kinds.to_vec(),
    };
    if args.regressions {
        let known = seeds::known();
        return Ok(known
            .iter()
            .map(|known| Plan::draw(&terms(known.seed, known.seconds, &known.kinds)))
            .collect());
    }
    // Short enough to be read out.
    let first = args.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let seconds = if args.short { SHORT } else { args.seconds };
    let seed = |round: u64| match round {
        0 => first,
        _ => Rng::for_number(first, round).next() >> 32,
    };
    Ok((0..args.rounds)
        .map(|round| Plan::draw(&terms(seed(round), seconds, &args.faults)))
        .collect())
}

#[expect(clippy::print_stdout, reason = "it is what the program is for")]
async fn one(plan: Plan, args: &Args) -> anyhow::Result<bool> {
    let seed = plan.seed;
    println!(
        "seed {seed}: {} faults in {} s",
        plan.faults.len(),
        plan.lasts.as_secs()
    );
    if args.plan {
        print!("{plan}");
        return Ok(true);
    }
    let round = Box::pin(Round::of(plan, args))
        .await
        .with_context(|| format!("seed {seed}"))?;
    let passed = round.verdict.violations.is_empty();
    if passed {
        print!("{}", report::table(&round));
        println!("seed {seed}: passed");
        if !args.keep {
            std::fs::remove_dir_all(&round.folder).context("the folder of the run cannot be removed")?;
        }
    } else {
        report::keep(&round, &round.folder).context("the report cannot be written")?;
        print!("{}", report::failure(&round));
        println!("seed {seed}: FAILED");
    }
    Ok(passed)
}
