//! A trace as it has to be: one root, and every other span under one that is there too.

use std::collections::HashSet;

use testkit::eventually;

use crate::collector::{Collector, Span, SpanKind};
use crate::scene::Traceparent;

/// The spans of one trace.
#[derive(Debug)]
pub(crate) struct Tree {
    spans: Vec<Span>,
    /// The span of the request that was accepted. One that was not answered is asked again, in the same trace if the
    /// caller has one.
    root: String,
}

impl Tree {
    /// Waits until the trace of what is stored is whole and has, beside others, spans with these names as often as they are
    /// given.
    pub(crate) async fn with(collector: &Collector, stored: &Traceparent, names: &[&str]) -> Self {
        let what = format!("{stored:?} to be whole, with {names:?}");
        eventually(&what, async || {
            let tree = Self {
                spans: collector.trace(stored.trace()),
                root: stored.span().to_owned(),
            };
            let there = names
                .iter()
                .all(|name| tree.named(name).len() >= names.iter().filter(|other| *other == name).count());
            (there && orphans(&tree.spans).is_empty()).then_some(tree)
        })
        .await
    }

    /// Spans of this name.
    pub(crate) fn named(&self, name: &str) -> Vec<&Span> {
        self.spans.iter().filter(|span| span.name == name).collect()
    }

    /// The only span of this name.
    pub(crate) fn only(&self, name: &str) -> &Span {
        let named = self.named(name);
        assert_eq!(named.len(), 1, "spans named {name:?} in {self:#?}");
        named[0]
    }

    /// The span of the request that all of it follows from.
    pub(crate) fn root(&self) -> &Span {
        let root = self.spans.iter().find(|span| span.id == self.root);
        let root = root.unwrap_or_else(|| panic!("no span {} in {self:#?}", self.root));
        assert_eq!(root.kind, SpanKind::Server);
        root
    }

    /// The span that another one is under.
    pub(crate) fn above(&self, span: &Span) -> &Span {
        let above = self.spans.iter().find(|above| above.id == span.parent);
        above.unwrap_or_else(|| panic!("{span:?} has nothing above it in {self:#?}"))
    }

    /// The only request that was accepted.
    pub(crate) fn accepted(&self) -> &Span {
        let attempts = self.attempts();
        let accepted = |span: &&&Span| span.attribute("http.response.status_code") == "200";
        let accepted: Vec<_> = attempts.iter().filter(accepted).collect();
        assert_eq!(accepted.len(), 1, "requests that were accepted in {self:#?}");
        accepted[0]
    }

    /// From a span up to the root: the service and name of each, the span itself left out.
    pub(crate) fn way_up(&self, span: &Span) -> Vec<String> {
        let mut way = Vec::new();
        let mut below = span;
        while let Some(above) = self.spans.iter().find(|above| above.id == below.parent) {
            way.push(format!("{}: {}", above.service, above.name));
            assert!(way.len() <= self.spans.len(), "a circle in {self:#?}");
            below = above;
        }
        way
    }

    /// The answered requests to Swrve or an endpoint in the order of their attempts.
    pub(crate) fn attempts(&self) -> Vec<&Span> {
        let mut attempts = self.named("POST");
        // What was handed back before its first byte was sent is no attempt.
        attempts.retain(|span| !span.attribute("http.response.status_code").is_empty());
        attempts.sort_by_key(|span| {
            span.attribute("postrider.attempt")
                .parse::<u32>()
                .expect("a number")
        });
        attempts
    }

    /// Attempt number and status of each of [`Self::attempts`].
    pub(crate) fn answers(&self) -> Vec<(&str, &str)> {
        self.attempts()
            .into_iter()
            .map(|span| {
                (
                    span.attribute("postrider.attempt"),
                    span.attribute("http.response.status_code"),
                )
            })
            .collect()
    }
}

/// The spans whose parent is not there; a request's may be somewhere else, or nowhere.
pub(crate) fn orphans(spans: &[Span]) -> Vec<&Span> {
    let known: HashSet<&str> = spans.iter().map(|span| span.id.as_str()).collect();
    let is_orphan = |span: &&Span| span.kind != SpanKind::Server && !known.contains(span.parent.as_str());
    spans.iter().filter(is_orphan).collect()
}
