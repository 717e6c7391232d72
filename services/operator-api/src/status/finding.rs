//! What the state of the system amounts to, one finding for each thing that is out of order.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// Something is not delivered, or soon will not be.
    Critical,
    /// Something is out of order, and an operator should look.
    Warning,
    /// Worth knowing; nothing is wrong.
    Notice,
}

/// What a finding does to what was handed in, the worst first: findings of one severity stand in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Harm {
    /// While it lasts, something is not accepted or not sent at all. Such findings keep the order from causes to effects.
    Stops,
    /// Something will not be delivered unless a person does something about it.
    Loses,
    /// Something is delivered later.
    Delays,
    /// None.
    Nothing,
    /// None but of a setting that is for development, which is as it is until it is changed.
    Setting,
}

/// A thing that is worth knowing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Finding)]
pub(crate) struct Finding {
    /// The kind of finding; stable.
    #[schema(value_type = String, example = "no-leader")]
    pub(crate) id: &'static str,
    pub(crate) severity: Severity,
    /// What is so, in a sentence.
    #[schema(example = "The push lane has had no leader for 42 s.")]
    pub(crate) text: String,
    /// What the sentence and its meaning are made of, by the name of each part, for those who say them in another language; times are RFC 3339, and
    /// lengths of time have names that end in `Seconds` or `Millis`. docs/cli.md has the names for each `id`.
    #[schema(value_type = Object, example = json!({"withoutSeconds": 42}))]
    pub(crate) params: Map<String, Value>,
    /// What it means.
    #[schema(example = "No push is sent. What comes is stored and waits.")]
    pub(crate) meaning: String,
    /// The command that helps, or shows more.
    #[schema(example = "postrider status")]
    pub(crate) command: Option<String>,
    /// The section of docs/runbook.md about it.
    #[schema(value_type = String, example = "nothing-is-sent")]
    pub(crate) runbook: &'static str,
    /// The bulk job that it is about, for pages, which lead there.
    #[serde(skip)]
    pub(crate) job: Option<Uuid>,
    /// What it does to what was handed in.
    #[serde(skip)]
    pub(crate) harm: Harm,
    /// Since when it does so, as far as that is known.
    #[serde(skip)]
    pub(crate) since: Option<DateTime<Utc>>,
}

impl Finding {
    /// A finding without a command. A notice harms nothing, and what is worse stops something, unless it says otherwise.
    pub(crate) fn new(
        (id, severity, runbook): (&'static str, Severity, &'static str),
        text: impl Into<String>,
        meaning: impl Into<String>,
    ) -> Self {
        Self {
            id,
            severity,
            text: text.into(),
            params: Map::new(),
            meaning: meaning.into(),
            command: None,
            runbook,
            job: None,
            harm: match severity {
                Severity::Critical | Severity::Warning => Harm::Stops,
                Severity::Notice => Harm::Nothing,
            },
            since: None,
        }
    }

    /// The same, which names this; nothing where there is nothing to name.
    pub(crate) fn naming(mut self, name: &str, value: impl Serialize) -> Self {
        match serde_json::to_value(value) {
            // What cannot be written as JSON is not worth a failure.
            Ok(Value::Null) | Err(_) => {}
            Ok(value) => {
                self.params.insert(name.to_owned(), value);
            }
        }
        self
    }

    /// The same, which names what was counted up to a bound, and the bound where there is more.
    pub(crate) fn counting(self, name: &str, count: u64, up_to: u64) -> Self {
        self.naming(name, count)
            .naming("countedUpTo", (count > up_to).then_some(up_to))
    }

    /// The same, which does this to what was handed in, since a time where that is known.
    pub(crate) fn harming(mut self, harm: Harm, since: Option<DateTime<Utc>>) -> Self {
        (self.harm, self.since) = (harm, since);
        self
    }

    /// The same about a bulk job.
    pub(crate) fn of_job(mut self, job: Uuid) -> Self {
        self.job = Some(job);
        self
    }

    /// The same with the command that helps.
    pub(crate) fn with(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }
}
