//! What the lists of pushes, notifications and events show.

use crate::output::Column;
use crate::shown::ShownColumn;

/// Of pushes.
pub(super) const PUSHES: [ShownColumn; 9] = [
    (Column::whole("push"), "/id"),
    (Column::time("accepted").spare(2), "/createdAt"),
    (Column::whole("status"), "/status"),
    (Column::whole("paused by").spare(3), "/pausedBy"),
    (Column::time("ended").spare(5), "/finishedAt"),
    (Column::time("due").spare(4), "/nextAttemptAt"),
    (Column::whole("attempts").spare(6), "/attempts"),
    (Column::whole("prototype").spare(7), "/messagePrototypeKey"),
    (
        Column::prose("last failure").spare(1),
        "/lastFailure/code /lastFailure/error",
    ),
];

/// Of pushes that ended late: how long each took.
pub(super) const LATE_PUSHES: [ShownColumn; 8] = [
    (Column::whole("push"), "/id"),
    (Column::time("accepted").spare(2), "/createdAt"),
    (Column::whole("status"), "/status"),
    (Column::time("ended").spare(3), "/finishedAt"),
    (Column::span("took"), "/createdAt /finishedAt"),
    (Column::whole("attempts").spare(4), "/attempts"),
    (Column::whole("prototype").spare(5), "/messagePrototypeKey"),
    (
        Column::prose("last failure").spare(1),
        "/lastFailure/code /lastFailure/error",
    ),
];

/// Of notifications.
pub(super) const NOTIFICATIONS: [ShownColumn; 11] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(9), "/eventId"),
    (Column::whole("event type").spare(8), "/eventType"),
    (Column::whole("to").spare(4), "/url"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(1), "/reason"),
    (Column::whole("paused by").spare(3), "/pausedBy"),
    (Column::time("accepted").spare(7), "/acceptedAt"),
    (Column::time("ended").spare(6), "/finishedAt"),
    (Column::time("due").spare(5), "/nextAttemptAt"),
    (Column::prose("last failure").spare(2), "/error"),
];

/// Of notifications that ended late: how long each took.
pub(super) const LATE_NOTIFICATIONS: [ShownColumn; 10] = [
    (Column::whole("notification"), "/id"),
    (Column::whole("event").spare(7), "/eventId"),
    (Column::whole("event type").spare(6), "/eventType"),
    (Column::whole("to").spare(3), "/url"),
    (Column::whole("status"), "/status"),
    (Column::whole("reason").spare(1), "/reason"),
    (Column::time("accepted").spare(5), "/acceptedAt"),
    (Column::time("ended").spare(4), "/finishedAt"),
    (Column::span("took"), "/acceptedAt /finishedAt"),
    (Column::prose("last failure").spare(2), "/error"),
];

/// Of events.
pub(super) const EVENTS: [ShownColumn; 6] = [
    (Column::whole("event"), "/id"),
    (Column::whole("event id").spare(4), "/eventId"),
    (Column::whole("reseller"), "/resellerId"),
    (Column::whole("event type").spare(2), "/eventType"),
    (Column::time("accepted").spare(1), "/acceptedAt"),
    (Column::whole("notifications"), "/notifications"),
];
