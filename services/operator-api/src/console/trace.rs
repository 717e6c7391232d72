//! A trace on a page: a link where the configuration says where traces are looked at, and its id to be copied.

use config::Config;
use pages::visible;

use super::frame::{Markup, escape, segment};

/// The trace with this id.
pub(super) fn shown(config: &Config, trace: &str) -> Markup {
    let id = escape(&visible(trace));
    let shown = match config.operator.trace_at(&segment(trace)) {
        Some(place) => format!(r#"<a class="link mono" href="{}">{id}</a>"#, escape(&place)),
        None => format!(r#"<span class="mono">{id}</span>"#),
    };
    Markup(format!(
        r##"{shown} <button class="copy script" type="button" data-copy="{id}" aria-label="Copy the trace"><svg class="icon" aria-hidden="true"><use href="#i-copy"/></svg></button>"##
    ))
}
