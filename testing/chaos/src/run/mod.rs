//! One round: everything is started, hit by faults while traffic flows, healed, drained, judged and stopped.

mod drain;
mod inject;
mod settings;
mod stage;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::args::Args;
use crate::cluster::{ClusterFault, End, Service};
use crate::ledger::{History, read_starts};
use crate::plan::{Fault, Plan};
use crate::receivers::Cursors;
use crate::traffic::{EventOrder, PushOrder, Subscribers, Traffic};
use crate::verdict::{self, Ends, Expected, Facts, Rows, Rules, Verdict};
pub use inject::{Injection, InjectionResult};
use stage::Stage;

/// What one interruption can leave without an outcome: what a process may have claimed, in one lane.
const IN_FLIGHT: usize = 300;
/// What comes on top of the longest fault until everything has gone on.
const RECOVERY: Duration = Duration::from_secs(60);
/// What comes on top of a fault of storage until a connection node of Web Push has connected again.
const STORAGE_RECOVERY: Duration = Duration::from_secs(5);

/// A round that has been judged.
pub struct Round {
    /// What was to happen.
    pub plan: Plan,
    /// What did, with the times at which it did.
    pub injections: Vec<Injection>,
    /// What was seen from outside.
    pub history: History,
    /// What the database says.
    pub rows: Rows,
    /// The verdict.
    pub verdict: Verdict,
    /// How long everything took to be healthy again.
    pub healing: Duration,
    /// How long everything that was left took to end.
    pub draining: Duration,
    /// Where the logs are.
    pub folder: PathBuf,
}

impl Round {
    /// Runs a plan.
    ///
    /// # Errors
    ///
    /// When it could not be carried out, which is no verdict about the product.
    pub async fn of(plan: Plan, args: &Args) -> anyhow::Result<Self> {
        let folder = args.folder.join(format!("{}-{}", plan.seed, std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("no folder {}", folder.display()))?;
        let folder = folder.canonicalize().context("no path to the folder")?;
        std::fs::write(folder.join("plan.json"), serde_json::to_vec_pretty(&plan)?)?;
        let mut stage = Stage::set(&plan, args, &folder).await?;
        let played = play(&mut stage, &plan, args).await;
        let result = match played {
            Ok(played) => judge(&stage, &plan, played).await,
            Err(error) => Err(error),
        };
        stage.pool.close().await;
        let deaths = stage.cluster.deaths();
        let stopped = stage.cluster.stop().await;
        let (mut judged, played) = result?;
        judged.violations.extend(deaths.into_iter().map(|death| {
            let text = format!("ended by itself: {}\n{}", death.status, death.log_tail);
            verdict::Violation {
                check: "deaths",
                subject: death.process,
                text,
            }
        }));
        if let Err(error) = stopped {
            judged.violations.push(verdict::Violation {
                check: "stop",
                subject: "cluster".to_owned(),
                text: format!("{:#}", error),
            });
        }
        let (history, rows) = played.read;
        Ok(Self {
            plan,
            injections: played.injections,
            history,
            rows,
            verdict: judged,
            healing: played.healing,
            draining: played.draining,
            folder,
        })
    }
}

struct Played {
    faults_began: Instant,
    injections: Vec<Injection>,
    healing: Duration,
    draining: Duration,
    drained: drain::Drained,
}

struct Read {
    injections: Vec<Injection>,
    healing: Duration,
    draining: Duration,
    read: (History, Rows),
}

async fn play(stage: &mut Stage, plan: &Plan, args: &Args) -> anyhow::Result<Played> {
    let to_agents = (&stage.post, stage.user_agents.channels());
    let traffic = Traffic::start(&stage.door, to_agents, args.rate);
    let faults_began = Instant::now();
    let injections = inject::all(stage, plan).await;
    traffic.stop();
    let began = Instant::now();
    stage.receivers.heal();
    stage
        .cluster
        .heal_all()
        .await
        .context("not everything could be healed")?;
    stage.let_lanes_go_on().await;
    let healing = began.elapsed();
    let drained = drain::until_nothing_moves(stage, &traffic, args.short).await?;
    let draining = began.elapsed() - healing;
    traffic.end().await;
    Ok(Played {
        faults_began,
        injections,
        healing,
        draining,
        drained,
    })
}

async fn judge(stage: &Stage, plan: &Plan, played: Played) -> anyhow::Result<(Verdict, Read)> {
    let mut cursors = stage.cursors.lock().await;
    stage.receivers.collect(&mut cursors, &stage.ledger, true);
    *cursors = Cursors::default();
    let history = stage.ledger.close();
    let event_body = |id: &str| EventOrder::of(id).map(|event| event.delivered());
    let rows = Rows {
        pushes: verdict::pushes(&stage.pool).await?,
        notifications: verdict::notifications(&stage.pool, &stage.subscribers.paths()).await?,
        events: verdict::event_rows(&stage.pool, event_body).await?,
    };
    let mut leftovers = verdict::leftovers(&stage.pool).await?;
    leftovers.queues.clone_from(&played.drained.queued);
    let mut starts = Vec::new();
    for index in 0..stage.replicas.of(Service::Dispatcher) {
        read_starts(
            &stage.cluster.log(Service::Dispatcher.replica(index)),
            &mut starts,
        )?;
    }
    let rules = rules(plan, &played, &stage.subscribers);
    let expected = expected(&history, &rows, &stage.subscribers);
    let facts = Facts {
        history: &history,
        rows: &rows,
        starts: &starts,
        leftovers: &leftovers,
        rules: &rules,
    };
    let mut verdict = verdict::judge(&facts, &expected);
    if let Some(stuck) = played.drained.stuck {
        let violation = verdict::Violation {
            check: "drain",
            subject: "everything".to_owned(),
            text: stuck,
        };
        verdict.violations.insert(0, violation);
    }
    let read = Read {
        injections: played.injections,
        healing: played.healing,
        draining: played.draining,
        read: (history, rows),
    };
    Ok((verdict, read))
}

fn rules(plan: &Plan, played: &Played, subscribers: &Subscribers) -> Rules {
    let faults = || {
        plan.faults.iter().filter_map(|planned| match &planned.fault {
            Fault::Cluster(fault) => Some(fault),
            _ => None,
        })
    };
    let is_freeze = |fault: &&ClusterFault| matches!(fault, ClusterFault::Freeze { replica, .. } if replica.service == Service::Dispatcher);
    // Whatever takes the database away takes it from all who work with it.
    let weight = |fault: &ClusterFault| match fault {
        ClusterFault::KillPostgres { .. } => 4,
        _ => 1,
    };
    let injections = &played.injections;
    let longest = injections.iter().map(Injection::lasted).max().unwrap_or_default();
    Rules {
        push_attempts: settings::PUSH_ATTEMPTS,
        notification_attempts: 1 + settings::NOTIFICATION_RETRIES,
        gap: settings::GAP,
        freezes: faults().filter(is_freeze).count(),
        interruptions: faults().map(weight).sum(),
        in_flight: IN_FLIGHT,
        limits: subscribers.limits(),
        storage_away: storage_away(played.faults_began, injections),
        longest_silence: longest + RECOVERY,
    }
}

/// When connection nodes of Web Push may have failed to delete what was acknowledged.
fn storage_away(began: Instant, injections: &[Injection]) -> Vec<(Instant, Instant)> {
    let is_one = |fault: &Fault| {
        let Fault::Cluster(fault) = fault else {
            return false;
        };
        let from = match fault {
            ClusterFault::KillPostgres { .. } => return true,
            ClusterFault::Cut { from, to, .. }
            | ClusterFault::Blackhole { from, to, .. }
            | ClusterFault::Latency { from, to, .. }
            | ClusterFault::ResetConnections { from, to }
                if *to == End::Postgres =>
            {
                from
            }
            _ => return false,
        };
        matches!(from, End::Replica(replica) if replica.service == Service::WebpushConnection)
    };
    let faults = injections.iter().filter(|one| is_one(&one.planned.fault));
    faults
        .map(|one| (began + one.at, began + one.at + one.lasted() + STORAGE_RECOVERY))
        .collect()
}

/// What must be there, and how it may have ended.
fn expected(history: &History, rows: &Rows, subscribers: &Subscribers) -> Expected {
    let mut expected = Expected::default();
    // Whatever was handed in may be there; callers number from 0 without a gap.
    for number in 0..history.pushes.tried {
        let push = PushOrder::number(number);
        let ends = Ends {
            accepted: history.pushes.accepted.contains_key(&push.user),
            taken: push.is_taken(),
            refused: !push.is_taken(),
            may_wait: false,
        };
        expected.pushes.insert(push.user, ends);
    }
    // What is stored was fanned out with it, whether its caller has learnt of it or not.
    for event in &rows.events {
        let Some(order) = EventOrder::of(&event.event_id) else {
            continue;
        };
        for one in subscribers.all.iter().filter(|one| one.matches(&order)) {
            let ends = Ends {
                accepted: true,
                taken: one.takes(),
                refused: one.refuses(),
                may_wait: one.limits.quota.is_some(),
            };
            expected
                .notifications
                .insert(format!("{}/{}", one.path, order.id), ends);
        }
    }
    expected
}
