//! Whether everything that changes something is in the audit log. An operation or a command that is new has no decision here, and
//! the tests fail until it has one.

use std::collections::BTreeSet;

use clap::CommandFactory as _;

use super::{leaves, section};
use crate::args::Cli;

/// What an operation leaves in the audit log.
#[derive(Clone, Copy)]
enum Audit {
    /// An entry of this action; several where it depends on what was asked for.
    As(&'static [&'static str]),
    /// None, for this reason.
    None(&'static str),
}

use Audit::As;

/// What is handed in is traffic: it has rows of its own, with the key that brought it in the logs and metrics.
const TAKEN_IN: Audit = Audit::None("what is handed in has rows of its own");

const INGEST: &[(&str, Audit)] = &[
    ("putEventType", As(&["event-type.put"])),
    ("retireEventType", As(&["event-type.retire"])),
    ("submitEvent", TAKEN_IN),
    ("submitEvents", TAKEN_IN),
    ("submitPush", TAKEN_IN),
];

const OPERATOR: &[(&str, Audit)] = &[
    ("approveQuotaRequest", As(&["quota-request.approve"])),
    ("cancelDeadLetterJob", As(&["dead-letter-job.cancel"])),
    ("cancelNotification", As(&["notification.cancel"])),
    ("cancelPush", As(&["push.cancel"])),
    (
        "cancelWaiting",
        As(&["push.cancel-many", "notification.cancel-many"]),
    ),
    // One entry, whatever the number of dead letters, and one when it has been through.
    ("changeDeadLetterJob", As(&["dead-letter-job.pace"])),
    (
        "createDeadLetterJob",
        As(&["dead-letter-job.create", "dead-letter-job.complete"]),
    ),
    ("createKey", As(&["api-key.create"])),
    ("createPortalLink", As(&["portal-link.create"])),
    ("denyQuotaRequest", As(&["quota-request.deny"])),
    // Of each person, not of each visit.
    ("endVisits", As(&["visit.revoke"])),
    ("discardDeadLetter", As(&["dead-letter.discard"])),
    ("endPortalVisit", As(&["portal-visit.end"])),
    ("revokePortalLink", As(&["portal-link.revoke"])),
    ("endVisit", As(&["visit.end"])),
    ("noteDeadLetterGroup", As(&["dead-letter-group.note"])),
    ("pauseDeadLetterJob", As(&["dead-letter-job.pause"])),
    ("pauseLane", As(&["lane.pause"])),
    ("pauseReseller", As(&["reseller.pause"])),
    ("pauseSubscription", As(&["subscription.pause"])),
    ("rebuildBroker", As(&["broker.rebuild", "broker.rebuilt"])),
    ("replayDeadLetter", As(&["dead-letter.replay"])),
    ("rescue", As(&["rescue.start", "rescue.end"])),
    ("retryLaneNow", As(&["lane.retry-now", "subscription.retry-now"])),
    ("retryNotificationNow", As(&["notification.retry-now"])),
    ("retryPushNow", As(&["push.retry-now"])),
    ("retrySubscriptionNow", As(&["subscription.retry-now"])),
    ("retireEventType", As(&["event-type.retire"])),
    ("revokeKey", As(&["api-key.revoke"])),
    ("rotateKey", As(&["api-key.rotate"])),
    ("retryMails", As(&["mails.retry"])),
    ("resumeDeadLetterJob", As(&["dead-letter-job.resume"])),
    ("resumeLane", As(&["lane.resume"])),
    ("resumeReseller", As(&["reseller.resume"])),
    ("resumeSubscription", As(&["subscription.resume"])),
    ("setSubscriptionLimits", As(&["subscription.limits"])),
];

const PORTAL: &[(&str, Audit)] = &[
    ("activateSubscription", As(&["subscription.activate"])),
    ("cancelNotification", As(&["notification.cancel"])),
    // One entry, whatever the number of notifications.
    ("cancelNotifications", As(&["notification.cancel-many"])),
    ("cancelReplay", As(&["replay.cancel"])),
    ("changeSubscription", As(&["subscription.change"])),
    ("checkEndpoint", As(&["endpoint.check"])),
    (
        "checkSignature",
        Audit::None("it shows no secret and changes nothing"),
    ),
    ("confirmEmail", As(&["subscription.confirm-address"])),
    ("createPortalLink", As(&["portal-link.create"])),
    ("createReplay", As(&["replay.create"])),
    ("createSubscription", As(&["subscription.create"])),
    ("deactivateSubscription", As(&["subscription.deactivate"])),
    ("deleteSubscription", As(&["subscription.delete"])),
    ("endVisit", As(&["portal-visit.end"])),
    ("endVisits", As(&["portal-visit.end"])),
    ("pauseSubscription", As(&["subscription.pause"])),
    ("requestQuota", As(&["quota-request.create"])),
    ("resendEmailCode", As(&["subscription.ask-address"])),
    ("resendNotification", As(&["notification.resend"])),
    // One entry, whatever the number of notifications.
    ("resendNotifications", As(&["subscription.resend"])),
    ("resumeSubscription", As(&["subscription.resume"])),
    // One entry, whatever the number of notifications.
    ("retrySubscriptionNow", As(&["subscription.retry-now"])),
    ("revokeSecret", As(&["secret.revoke"])),
    ("rotateSecret", As(&["secret.create"])),
    ("testSubscription", As(&["subscription.test"])),
    ("withdrawQuotaRequest", As(&["quota-request.withdraw"])),
    ("verifySubscription", As(&["subscription.verify"])),
    // A look that is told of, too.
    ("viewSecret", As(&["secret.view"])),
];

/// The commands that change the database by themselves. Those that have a service do it are the operations above.
const COMMANDS: &[(&str, Audit)] = &[
    (
        "demo",
        Audit::None("what it writes is made up, into a database of a demonstration alone"),
    ),
    ("event-types put", As(&["event-type.put"])),
    ("event-types retire", As(&["event-type.retire"])),
    ("keys create", As(&["api-key.create"])),
    ("keys revoke", As(&["api-key.revoke"])),
    ("keys rotate", As(&["api-key.rotate"])),
    (
        "migrate",
        Audit::None("the database keeps a record of its migrations, which are a release's and no person's"),
    ),
    ("quotas approve", As(&["quota-request.approve"])),
    ("quotas deny", As(&["quota-request.deny"])),
    ("quotas set", As(&["subscription.limits"])),
    (
        "recover",
        As(&[
            "recover.start",
            "recover.end",
            "lane.pause",
            "lane.resume",
            "dead-letter-job.pause",
            "dead-letter-job.cancel",
            "replay.cancel",
            "portal-visit.end",
        ]),
    ),
];

/// The commands that ask `operator-api` to change something.
const ASKING_COMMANDS: &[&str] = &[
    "broker rebuild",
    "cancel notification",
    "cancel push",
    "cancel waiting",
    "dead-letters discard",
    "dead-letters note",
    "dead-letters replay",
    "jobs cancel",
    "jobs pause",
    "jobs rate",
    "jobs resume",
    "mails retry",
    "pause lane",
    "pause reseller",
    "pause subscription",
    "portal-links revoke",
    "rescue",
    "resume lane",
    "resume reseller",
    "resume subscription",
    "retry-now lane",
    "retry-now notification",
    "retry-now push",
    "retry-now subscription",
    "visits end",
    "visits revoke",
];

/// All others: they look, run a service or a stand-in, or do what a reseller does.
const OTHER_COMMANDS: &[&str] = &[
    "activity",
    "attempts",
    "audit",
    "broker definitions",
    "completions",
    "config check",
    "config show",
    "dead-letters groups",
    "dead-letters list",
    "dead-letters show",
    "dead-letters timeline",
    "event list",
    "event send",
    "event show",
    "event-types list",
    "event-types show",
    "events list",
    "events show",
    "explain",
    "find",
    "healthcheck",
    "history",
    "jobs list",
    "jobs show",
    "jobs watch",
    "keys list",
    "limits",
    "listen",
    "mails list",
    "notifications answers",
    "notifications cancel",
    "notifications failures",
    "notifications list",
    "notifications resend",
    "notifications scheduled",
    "notifications show",
    "notifications story",
    "notifications why",
    "overview",
    "pauses",
    "portal-links create",
    "portal-links end",
    "portal-links visits",
    "push",
    "push list",
    "push show",
    "quota days",
    "quota request",
    "quota show",
    "quota withdraw",
    "quotas requests",
    "receive",
    "replay",
    "replays cancel",
    "replays list",
    "replays show",
    "resellers",
    "resend",
    "retry-now endpoint",
    "secrets list",
    "secrets revoke",
    "secrets rotate",
    "secrets show",
    "serve",
    "sign",
    "sim report",
    "sim smtp",
    "sim swrve",
    "status",
    "subscriptions activate",
    "subscriptions check",
    "subscriptions confirm",
    "subscriptions create",
    "subscriptions deactivate",
    "subscriptions delete",
    "subscriptions list",
    "subscriptions metrics",
    "subscriptions pause",
    "subscriptions resume",
    "subscriptions retry-now",
    "subscriptions show",
    "subscriptions states",
    "subscriptions test",
    "subscriptions update",
    "subscriptions verify",
    "tail",
    "trigger",
    "up",
    "user-agents",
    "verify",
    "version",
    "visits list",
    "waiting",
];

/// The operations of an OpenAPI document that change something, by their names.
fn writing(document: &str) -> BTreeSet<String> {
    let document: serde_json::Value = serde_json::from_str(document).expect("an OpenAPI document");
    let items = document["paths"].as_object().expect("paths").values();
    let operations = items.flat_map(|item| item.as_object().expect("operations"));
    let writing = operations.filter(|(method, _)| !["get", "head", "options"].contains(&method.as_str()));
    let names = writing.map(|(_, operation)| operation["operationId"].as_str().expect("a name"));
    names.map(str::to_owned).collect()
}

fn names(decided: &[(&str, Audit)]) -> BTreeSet<String> {
    decided.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn every_operation_that_changes_something_is_in_the_audit_log_or_says_why_not() {
    let documents = [
        (INGEST, include_str!("../../../../docs/openapi/ingest-api.json")),
        (
            OPERATOR,
            include_str!("../../../../docs/openapi/operator-api.json"),
        ),
        (
            PORTAL,
            include_str!("../../../../docs/openapi/reseller-portal.json"),
        ),
    ];
    for (decided, document) in documents {
        let undecided: Vec<_> = writing(document).difference(&names(decided)).cloned().collect();
        assert_eq!(
            undecided,
            [] as [&str; 0],
            "what do these leave in the audit log?"
        );
        let gone = decided
            .iter()
            .find(|(name, _)| !document.contains(&format!("\"{name}\"")));
        assert_eq!(gone.map(|(name, _)| name), None, "no operation has this name");
    }
}

#[test]
fn every_command_that_changes_the_database_is_in_the_audit_log_or_says_why_not() {
    let leaves = leaves().into_iter();
    let present: BTreeSet<_> = leaves
        .map(|(path, _)| path.replacen("postrider ", "", 1))
        .collect();
    let mut decided = names(COMMANDS);
    let others = ASKING_COMMANDS.iter().chain(OTHER_COMMANDS);
    decided.extend(others.map(|name| (*name).to_owned()));
    assert_eq!(decided, present, "does a new command change the database?");
}

#[test]
fn every_command_of_operators_that_changes_something_takes_a_note() {
    let changing = COMMANDS.iter().filter(|(_, audit)| matches!(audit, As(_)));
    let changing = changing.map(|(name, _)| *name);
    for name in changing.chain(ASKING_COMMANDS.iter().copied()) {
        let mut command = &Cli::command();
        for word in name.split(' ') {
            command = command.find_subcommand(word).expect("a command");
        }
        let takes_note = command.get_arguments().any(|one| one.get_id() == "note");
        assert!(takes_note, "postrider {name} takes no note");
    }
}

#[test]
fn the_guide_and_the_command_know_every_action_of_the_audit_log() {
    let section = section("audit").expect("a section");
    let known: BTreeSet<String> = domain::audit::actions().collect();
    for action in &known {
        let named = section.contains(&format!("`{action}`"));
        assert!(named, "docs/cli.md does not tell of {action}");
    }
    for (name, audit) in [INGEST, OPERATOR, PORTAL, COMMANDS].concat() {
        match audit {
            As(actions) => {
                for action in actions {
                    let named = section.contains(&format!("`{action}`"));
                    assert!(named, "{name}: docs/cli.md does not tell of {action}");
                    assert!(
                        known.contains(*action),
                        "{name}: {action} is not found by its name"
                    );
                }
            }
            Audit::None(why) => assert!(!why.is_empty(), "{name}"),
        }
    }
}
