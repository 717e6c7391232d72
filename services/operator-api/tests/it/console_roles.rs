//! What pages let whom do: never more than the API. Every route of the console's source is asked, so that none is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use domain::key::Role;
use uuid::Uuid;

use crate::console::Browser;
use crate::rig::Rig;

/// What takes no role: signing in and out, what a viewer prefers, and what browsers report.
const OPEN: [&str; 7] = [
    "/console/sign-in",
    "/console/sign-in/start",
    "/console/sign-in/return",
    "/console/sign-out",
    "/console/preferences",
    "/console/policy-violations",
    "/console/assets/{version}/{name}",
];

/// Where each form is sent to, and the operation that it does.
const ACTS: [(&str, &str, &str); 35] = [
    ("/console/access/keys", "POST", "/keys"),
    ("/console/access/keys/{id}/revoke", "DELETE", "/keys/{id}"),
    ("/console/access/keys/{id}/rotate", "POST", "/keys/{id}/rotate"),
    (
        "/console/access/portal-visits/{id}/end",
        "DELETE",
        "/portal-visits/{id}",
    ),
    ("/console/access/visits/{id}/end", "DELETE", "/visits/{id}"),
    ("/console/dead-letters/note", "PUT", "/dead-letters/groups/note"),
    (
        "/console/dead-letters/{id}/discard",
        "POST",
        "/dead-letters/{id}/discard",
    ),
    (
        "/console/dead-letters/{id}/replay",
        "POST",
        "/dead-letters/{id}/replay",
    ),
    ("/console/jobs", "POST", "/dead-letters/jobs"),
    ("/console/jobs/new", "POST", "/dead-letters/jobs"),
    (
        "/console/jobs/{id}/cancel",
        "POST",
        "/dead-letters/jobs/{id}/cancel",
    ),
    (
        "/console/jobs/{id}/pause",
        "POST",
        "/dead-letters/jobs/{id}/pause",
    ),
    ("/console/jobs/{id}/rate", "PATCH", "/dead-letters/jobs/{id}"),
    (
        "/console/jobs/{id}/resume",
        "POST",
        "/dead-letters/jobs/{id}/resume",
    ),
    ("/console/lanes/{lane}/pause", "POST", "/lanes/{lane}/pause"),
    ("/console/lanes/{lane}/resume", "POST", "/lanes/{lane}/resume"),
    (
        "/console/lanes/{lane}/retry-now",
        "POST",
        "/lanes/{lane}/retry-now",
    ),
    ("/console/mails/retry", "POST", "/mails/retry"),
    (
        "/console/notifications/{id}/cancel",
        "POST",
        "/notifications/{id}/cancel",
    ),
    (
        "/console/notifications/{id}/retry-now",
        "POST",
        "/notifications/{id}/retry-now",
    ),
    (
        "/console/portal-links/{id}/revoke",
        "DELETE",
        "/portal-links/{id}",
    ),
    ("/console/pushes/{id}/cancel", "POST", "/pushes/{id}/cancel"),
    ("/console/pushes/{id}/retry-now", "POST", "/pushes/{id}/retry-now"),
    (
        "/console/quota-requests/{id}/approve",
        "POST",
        "/quota-requests/{id}/approve",
    ),
    (
        "/console/quota-requests/{id}/deny",
        "POST",
        "/quota-requests/{id}/deny",
    ),
    (
        "/console/resellers/{reseller}/dashboard",
        "POST",
        "/resellers/{reseller}/portal-links",
    ),
    (
        "/console/resellers/{reseller}/pause",
        "POST",
        "/resellers/{reseller}/pause",
    ),
    (
        "/console/resellers/{reseller}/resume",
        "POST",
        "/resellers/{reseller}/resume",
    ),
    (
        "/console/subscriptions/{id}/limits",
        "PUT",
        "/subscriptions/{id}/limits",
    ),
    (
        "/console/subscriptions/{id}/pause",
        "POST",
        "/subscriptions/{id}/pause",
    ),
    (
        "/console/subscriptions/{id}/resume",
        "POST",
        "/subscriptions/{id}/resume",
    ),
    (
        "/console/subscriptions/{id}/retry-now",
        "POST",
        "/subscriptions/{id}/retry-now",
    ),
    ("/console/system/rebuild", "POST", "/broker/rebuild"),
    ("/console/system/rescue", "POST", "/rescue"),
    ("/console/waiting/cancel", "POST", "/cancellations"),
];

/// The files of the console's source.
fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push(fs::read_to_string(path).unwrap());
        }
    }
    found
}

/// The texts that a file gives names to.
fn names(source: &str) -> BTreeMap<&str, &str> {
    let constants = source.split("const ").skip(1);
    let pairs = constants.filter_map(|it| it.split(';').next()?.split_once(": &str = "));
    pairs.map(|(name, text)| (name, text.trim_matches('"'))).collect()
}

/// What stands between the parenthesis that is open already and the one that closes it.
fn within(text: &str) -> &str {
    let mut depth = 1;
    let end = text.find(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    &text[..end.unwrap()]
}

/// The paths of the routes, and whether each takes a form.
fn routes() -> BTreeMap<String, bool> {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console"));
    let everywhere: BTreeMap<_, _> = sources.iter().flat_map(|source| names(source)).collect();
    let mut routes = BTreeMap::new();
    for source in &sources {
        let own = names(source);
        for call in source.split(".route(").skip(1).map(within) {
            let (first, handlers) = call.split_once(',').unwrap();
            let first = first.trim();
            let name = first.rsplit("::").next().unwrap();
            let path = if first.starts_with('"') {
                first.trim_matches('"')
            } else {
                own.get(name).or_else(|| everywhere.get(name)).unwrap()
            };
            let takes_form = ["post(", "act_routes("].iter().any(|it| handlers.contains(it));
            *routes.entry(path.to_owned()).or_default() |= takes_form;
        }
    }
    routes
}

/// A path about what is not there.
fn filled(path: &str) -> String {
    path.replace("{id}", &Uuid::now_v7().to_string())
        .replace("{lane}", "push")
        .replace("{reseller}", "acme")
        .replace("{*path}", "nothing-here")
}

#[test]
fn every_form_has_its_operation() {
    let forms = routes().into_iter().filter(|(_, takes_form)| *takes_form);
    let forms: BTreeSet<_> = forms
        .map(|(path, _)| path)
        .filter(|path| !OPEN.contains(&&**path))
        .collect();
    let known: BTreeSet<_> = ACTS.iter().map(|(form, _, _)| (*form).to_owned()).collect();
    assert_eq!(forms, known);
}

#[testkit::test]
async fn a_page_allows_nothing_that_the_api_refuses(rig: &Rig) {
    // So long that it is refused: where the role is enough, nothing is done all the same.
    let note = "x".repeat(2_001);
    for role in [Role::Viewer, Role::Operator, Role::Admin] {
        let key = rig.key_of(role).await;
        let browser = Browser::with_key(rig, &key).await;
        let mut refused = BTreeSet::new();
        for (form, method, path) in ACTS {
            let request = rig.request(method, &filled(path)).bearer_auth(&key);
            let request = request.header("content-type", "application/json").body("{");
            let api = request.send().await.unwrap().status().as_u16();
            let page = browser.post(&filled(form), &[("note", &*note)]).await.status;
            assert_eq!(page == 403, api == 403, "{role:?} {form}: {page} and {api}");
            assert!(page >= 400, "{role:?} {form}: {page}");
            if page == 403 {
                refused.insert(form);
            }
        }
        let of_all = match role {
            Role::Viewer => refused.len() == ACTS.len(),
            Role::Operator => refused.contains("/console/access/keys") && refused.len() < 10,
            _ => refused.is_empty(),
        };
        assert!(of_all, "{role:?} {refused:?}");
        for path in routes().into_keys().filter(|path| !OPEN.contains(&&**path)) {
            let answer = browser.get(&filled(&path)).await;
            let status = answer.status;
            assert!(status < 500 && status != 401, "{role:?} {path}: {status}");
            // What only counts what would be done is for those who may do it.
            let counts = ["/console/jobs/new", "/console/waiting/cancel"];
            let may = !counts.contains(&&*path) || role != Role::Viewer;
            assert!(status != 403 || !may, "{role:?} {path}");
            // The list of jobs has the address to which the form of another page is sent.
            if status == 200 && refused.contains(&*path) && path != "/console/jobs" {
                assert!(answer.html.contains("needs the role"), "{role:?} {path}");
            }
        }
    }
}
