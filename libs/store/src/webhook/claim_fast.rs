//! Claiming what nothing speaks against: the subscription takes everything at once, nothing of it waits in line, and
//! today's quota has room for all of it. That is nearly everything, and one statement that does no more costs half of one that can also defer, pace and
//! give up. The first of a day is among it, since all subscriptions have one. What it leaves alone is decided by the whole rule, in `claim`.

use chrono::NaiveDate;
use sqlx::Connection as _;
use uuid::Uuid;

use crate::tentative::Tentative;
use crate::webhook::claim::{ClaimRow, ClaimTerms, Claims, KEPT_LEASE};
use crate::{Error, Store, interval};

impl Store {
    /// Claims those of `ids` that are ordinary. Of a subscription whose quota has no room for all of them it takes none.
    pub(super) async fn claim_fast(
        &self,
        ids: &[Uuid],
        lease_token: Uuid,
        today: NaiveDate,
        terms: &ClaimTerms,
    ) -> Result<(Claims, Tentative), Error> {
        let mut connection = self.resting.take().await?;
        let mut transaction = connection.begin().await?;
        let rows = sqlx::query_file_as!(
            ClaimRow,
            "queries/webhook/claim_fast.sql",
            ids,
            terms.at,
            lease_token,
            interval(terms.lease),
            i32::try_from(terms.daily_quota).unwrap_or(i32::MAX),
            terms.rate(),
            today,
            interval(KEPT_LEASE),
        )
        .fetch_all(&mut *transaction)
        .await?;
        let claims = self
            .commit_claims(transaction, rows, lease_token, terms.at)
            .await?;
        connection.rest();
        Ok(claims)
    }
}
