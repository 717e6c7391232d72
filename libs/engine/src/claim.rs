//! Claiming, however long the database is away: meanwhile there is nothing else to do.

use std::fmt::Display;
use std::time::{Duration, Instant};

use lifecycle::error_chain;
use telemetry::Metric;
use tokio_util::sync::CancellationToken;

/// Pause before something that the database did not answer is asked again.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How long a claim under way, with what is asked about it, may go on after a stop, so that what it takes is not left to its lease.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// How a lane claims.
pub(crate) trait Claiming {
    /// What is claimed, for the log.
    const WHAT: &'static str;
    /// How long the database may take for an answer before it counts as away.
    const LIMIT: Duration;
    type Id: Copy + Display;
    /// What a claim took, or what it did with the rest.
    type Claimed;

    /// Claims what of these still waits, in one statement.
    async fn claim_together(&self, ids: &[Self::Id]) -> Result<Self::Claimed, store::Error>;
    fn took_nothing(claimed: &Self::Claimed) -> bool;
    /// Whether any of these still waits.
    async fn any_waits(&self, ids: &[Self::Id]) -> Result<bool, store::Error>;
    /// Whether this replica may claim at all.
    async fn may_claim(&self) -> Result<bool, store::Error>;
    /// Several claims as one.
    fn sum(claims: Vec<Self::Claimed>) -> Self::Claimed;
}

/// Claims these, for as long as it takes, and says when that was asked for; what the database refuses for good is passed over. `None` when
/// stopped, or when nothing is to be claimed now.
pub(crate) async fn claim<L: Claiming>(
    lane: &L,
    ids: &[L::Id],
    stop: &CancellationToken,
) -> Option<(L::Claimed, Instant)> {
    let answer = tokio::select! {
        () = async { stop.cancelled().await; tokio::time::sleep(STOP_LIMIT).await } => return None,
        answer = together(lane, ids, stop) => answer,
    };
    match answer {
        Ok(claimed) => claimed,
        // To its end, also after a stop: what is claimed already has to come back from here.
        Err(Refused) => {
            let asked = Instant::now();
            Some((singly(lane, ids).await, asked))
        }
    }
}

/// The database refuses for good to have these claimed.
struct Refused;

async fn together<L: Claiming>(
    lane: &L,
    ids: &[L::Id],
    stop: &CancellationToken,
) -> Result<Option<(L::Claimed, Instant)>, Refused> {
    let (what, count) = (L::WHAT, ids.len());
    loop {
        // From before the claim was asked for, so that what is counted from it never ends too late.
        let asked = Instant::now();
        let (error, claiming) = match store::within(L::LIMIT, lane.claim_together(ids)).await {
            Ok(claimed) if !L::took_nothing(&claimed) => return Ok(Some((claimed, asked))),
            Ok(claimed) => match why_nothing(lane, ids).await {
                Ok(Nothing::NoneWaits) => return Ok(Some((claimed, asked))),
                Ok(Nothing::MayNot) => return Ok(None),
                Ok(Nothing::MayAgain) => {
                    if paused(stop).await.is_none() {
                        return Ok(None);
                    }
                    continue;
                }
                Err(error) => (error, false),
            },
            Err(error) => (error, true),
        };
        Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
        if !error.is_transient() {
            tracing::error!(
                error = error_chain(&error),
                what,
                count,
                "the database refuses a claim"
            );
            return if claiming { Err(Refused) } else { Ok(None) };
        }
        tracing::warn!(error = error_chain(&error), what, count, "could not claim");
        if paused(stop).await.is_none() {
            return Ok(None);
        }
    }
}

/// Why a claim took nothing.
enum Nothing {
    NoneWaits,
    /// The term has ended, or there is a pause.
    MayNot,
    /// What refused the claim is over.
    MayAgain,
}

/// Whether there is a pause by now does not tell by itself, since it may have ended meanwhile: then what was refused is there for the
/// asking.
async fn why_nothing<L: Claiming>(lane: &L, ids: &[L::Id]) -> Result<Nothing, store::Error> {
    if !store::within(L::LIMIT, lane.any_waits(ids)).await? {
        return Ok(Nothing::NoneWaits);
    }
    let may = store::within(L::LIMIT, lane.may_claim()).await?;
    Ok(if may { Nothing::MayAgain } else { Nothing::MayNot })
}

/// Claims each by itself, so that one that the database refuses for good holds up no other. What came by a message is found again by its
/// lease, which bounds how often that is found out.
async fn singly<L: Claiming>(lane: &L, ids: &[L::Id]) -> L::Claimed {
    let claim_one = |id| async move { lane.claim_together(&[id]).await };
    let claims = store::singly(L::LIMIT, ids, claim_one, |id, error| {
        let what = L::WHAT;
        tracing::error!(what, %id, error = error_chain(&error), "passed over one that could not be claimed");
        Metric::StoreErrors.increment_with(&[("operation", "reading_queue")], 1);
    });
    L::sum(claims.await)
}

/// Waits a moment; `None` when stopped.
pub(crate) async fn paused(stop: &CancellationToken) -> Option<()> {
    tokio::select! {
        () = stop.cancelled() => None,
        () = tokio::time::sleep(RETRY_PAUSE) => Some(()),
    }
}
