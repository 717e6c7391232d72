//! Columns as what they stand for, so that a statement reads its rows right into what it returns: `status AS "status: Name<_>"` for a name
//! that a CHECK constraint keeps to known values, `attempts AS "attempts: Count"` for a number that is never negative. A column that may be
//! null is `"reason!: Nullable<Name<_>>"`: sqlx has no way from an `Option` of one type to that of another.

use std::str::FromStr;
use std::time::Duration;

use domain::dead_letter_job::{JobAction, JobPause, JobStatus};
use domain::email::{EmailKind, EmailStatus};
use domain::event::UnknownFields;
use domain::notification::RetryPlan;
use domain::push::{AttemptStatus, ErrorType, Platform, PushStatus};
use domain::reason::{NotificationReason, PushReason, StateReason};
use domain::subscription::{PausedBy, QuotaRequestStatus, RecoveryEnd, ReplayStatus, SubscriptionState};
use sqlx::error::BoxDynError;
use sqlx::postgres::PgValueRef;
use sqlx::{Decode, Postgres, ValueRef as _};

use crate::{DeadLetterLane, DeadLetterReason, DeadLetterState, Fate};

/// A name.
#[derive(Debug)]
pub(crate) struct Name<T>(T);

/// A number, of either width.
#[derive(Debug)]
pub(crate) struct Count(u64);

/// An age in seconds, as the database reckons it; one in the future, as after a clock was turned back, is none.
#[derive(Debug)]
pub(crate) struct Age(Duration);

/// What may be missing.
#[derive(Debug)]
pub(crate) struct Nullable<T>(Option<T>);

impl<'r, T: FromStr<Err: Into<BoxDynError>>> Decode<'r, Postgres> for Name<T> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<Postgres>>::decode(value)?;
        text.parse().map(Self).map_err(Into::into)
    }
}

impl<'r> Decode<'r, Postgres> for Count {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let number = <i64 as Decode<Postgres>>::decode(value)?;
        Ok(Self(number.unsigned_abs()))
    }
}

impl<'r> Decode<'r, Postgres> for Age {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let seconds = <f64 as Decode<Postgres>>::decode(value)?;
        Ok(Self(Duration::try_from_secs_f64(seconds).unwrap_or_default()))
    }
}

impl<'r, T: Decode<'r, Postgres>> Decode<'r, Postgres> for Nullable<T> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        let is_there = !value.is_null();
        is_there.then(|| T::decode(value)).transpose().map(Self)
    }
}

/// What each becomes, and what it becomes when it may be null.
macro_rules! becomes {
    ($($column:ty => $type:ty: $of:expr;)*) => {$(
        impl From<$column> for $type {
            fn from(column: $column) -> Self {
                $of(column.0)
            }
        }

        impl From<Nullable<$column>> for Option<$type> {
            fn from(column: Nullable<$column>) -> Self {
                column.0.map(<$type>::from)
            }
        }
    )*};
}

macro_rules! names {
    ($($name:ty),*) => {
        becomes! { $(Name<$name> => $name: |name| name;)* }
    };
}

becomes! {
    Count => u64: |count| count;
    Count => u32: |count| u32::try_from(count).unwrap_or(u32::MAX);
    Count => u16: |count| u16::try_from(count).unwrap_or(u16::MAX);
    Age => Duration: |age| age;
}

names! {
    AttemptStatus, DeadLetterLane, DeadLetterReason, DeadLetterState, EmailKind, EmailStatus, ErrorType, Fate, JobAction,
    JobPause, JobStatus, NotificationReason, PausedBy, Platform, PushReason, PushStatus, QuotaRequestStatus, RecoveryEnd, ReplayStatus, RetryPlan,
    StateReason, SubscriptionState, UnknownFields
}
