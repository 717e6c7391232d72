//! Everything that a round needs, made before the first fault.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encryption::SealingKey;
use reqwest::Client;
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::settings;
use crate::args::Args;
use crate::cluster::{Cluster, Layout, Replicas};
use crate::ledger::Ledger;
use crate::plan::{Lane, Plan};
use crate::receivers::{Cursors, Receivers};
use crate::rng::Rng;
use crate::traffic::{Door, Office, Operators, Post, RESELLERS, Subscribers, UserAgents};

/// After which a request is asked again; the services answer sooner when they can.
const REQUEST_LIMIT: Duration = Duration::from_secs(6);
/// Between two looks at what has arrived.
const COLLECT: Duration = Duration::from_millis(200);

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) replicas: Replicas,
    pub(super) receivers: Arc<Receivers>,
    pub(super) subscribers: Subscribers,
    pub(super) ledger: Arc<Ledger>,
    pub(super) door: Door,
    pub(super) operators: Operators,
    pub(super) post: Post,
    pub(super) user_agents: UserAgents,
    pub(super) pool: PgPool,
    pub(super) cursors: Arc<Mutex<Cursors>>,
    _collecting: AbortOnDropHandle<()>,
}

impl Stage {
    pub(super) async fn set(plan: &Plan, args: &Args, folder: &Path) -> anyhow::Result<Self> {
        let mut receivers = Receivers::start().await?;
        let sealing_key = sealing_key(plan.seed);
        let layout = Layout {
            postrider: args
                .postrider
                .canonicalize()
                .with_context(|| format!("no {}", args.postrider.display()))?,
            folder: folder.to_owned(),
            replicas: Replicas::default(),
            broker_nodes: args.broker_nodes.into(),
            swrve: receivers.swrve.addr(),
            receivers: vec![receivers.endpoints.addr()],
            settings: settings::all(&sealing_key),
            replica_settings: |_, _| Vec::new(),
        };
        let cluster = Cluster::start(layout)
            .await
            .context("the cluster could not be started")?;
        let pool = PgPoolOptions::new()
            .max_connections(4)
            .connect_lazy(cluster.postgres_url())
            .context("the database cannot be reached")?;
        let events = u64::from(args.rate / 3) * plan.lasts.as_secs();
        let key = SealingKey::parse(&sealing_key).context("no sealing key")?;
        let subscribers = Subscribers::make(&pool, cluster.receivers()[0], &key, events).await;
        receivers.furnish(subscribers.rules(), subscribers.secrets.clone());
        let ledger = Arc::new(Ledger::default());
        let http = Client::builder()
            .timeout(REQUEST_LIMIT)
            .no_proxy()
            .build()
            .context("no HTTP client")?;
        let door = Door {
            http: http.clone(),
            key: make_key(&cluster, "--name callers --role ingest").await?,
            addresses: cluster.ingest(),
            ledger: Arc::clone(&ledger),
        };
        let post = Post {
            http: http.clone(),
            endpoints: cluster.webpush_endpoints(),
            ledger: Arc::clone(&ledger),
        };
        let user_agents = UserAgents::start(&cluster.webpush_connections(), &ledger)
            .await
            .context("user agents could not be registered")?;
        let operators = operators(&cluster, http, pool.clone(), Arc::clone(&ledger)).await?;
        let (receivers, cursors) = (Arc::new(receivers), Arc::default());
        let collecting = tokio::spawn(collect(
            Arc::clone(&receivers),
            Arc::clone(&cursors),
            Arc::clone(&ledger),
        ));
        Ok(Self {
            cluster,
            replicas: Replicas::default(),
            receivers,
            subscribers,
            ledger,
            door,
            operators,
            post,
            user_agents,
            pool,
            cursors,
            _collecting: AbortOnDropHandle::new(collecting),
        })
    }

    pub(super) async fn let_lanes_go_on(&self) {
        for lane in [Lane::Push, Lane::Reseller] {
            self.operators.resume(lane).await;
        }
    }
}

/// The same for the same seed; it seals nothing of value.
fn sealing_key(seed: u64) -> String {
    let mut rng = Rng::for_number(seed, u64::MAX);
    let bytes: Vec<u8> = (0..4).flat_map(|_| rng.next().to_be_bytes()).collect();
    STANDARD.encode(bytes)
}

async fn operators(
    cluster: &Cluster,
    http: Client,
    pool: PgPool,
    ledger: Arc<Ledger>,
) -> anyhow::Result<Operators> {
    let operator = Office {
        address: cluster.operator()[0],
        key: make_key(cluster, "--name operators --role operator").await?,
    };
    let mut portal = HashMap::new();
    for reseller in RESELLERS {
        let create = format!("--name {reseller} --role reseller --reseller {reseller}");
        let office = Office {
            address: cluster.portal()[0],
            key: make_key(cluster, &create).await?,
        };
        portal.insert(reseller, office);
    }
    Ok(Operators {
        http,
        operator,
        portal,
        pool,
        ledger,
    })
}

async fn make_key(cluster: &Cluster, arguments: &str) -> anyhow::Result<String> {
    let arguments: Vec<&str> = ["keys", "create"]
        .into_iter()
        .chain(arguments.split_whitespace())
        .collect();
    let mut command = cluster.command(&arguments);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await?
        .context("no key")?;
    ensure!(
        output.status.success(),
        "no key: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

async fn collect(receivers: Arc<Receivers>, cursors: Arc<Mutex<Cursors>>, ledger: Arc<Ledger>) {
    let mut ticks = tokio::time::interval(COLLECT);
    loop {
        ticks.tick().await;
        receivers.collect(&mut *cursors.lock().await, &ledger, false);
    }
}
