//! The reseller lane: events, subscriptions, notifications, and the attempts to deliver them.
