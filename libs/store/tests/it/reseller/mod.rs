//! The statements of the reseller lane.

mod cancelled_resends;
mod changed_quotas;
mod charges;
mod claims;
mod completions;
mod dead_letters;
mod due;
mod event_keys;
mod exhausted;
mod fan_out;
mod fences;
mod first_of_day;
mod health_signals;
mod ids;
mod line_scene;
mod lines;
mod outages;
mod paces;
mod promotion;
mod quotas;
mod rescue;
mod resent_at_once;
pub(crate) mod scene;
mod state_table;
mod turns;
mod used_up;
