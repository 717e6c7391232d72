//! The fields of a subscription in a form: what was typed, what is wrong with it, and the events there are to choose from.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use domain::notification::RetryPlan;
use explain::Rules;
use http_api::{FieldProblem, Problem};
use pages::Fields;

use super::confirm;
use crate::app::App;
use crate::bounds::{self, LimitsDocument};
use crate::event_types;
use crate::request::Reseller;
use crate::subscriptions::SubscriptionDocument;

/// Event types with the same beginning.
pub(super) struct Group {
    /// With its star, as a filter has it.
    pub(super) prefix: String,
    /// Names and descriptions.
    pub(super) types: Vec<(String, String)>,
}

/// What there is to choose from.
pub(super) struct Offered {
    pub(super) groups: Vec<Group>,
    pub(super) limits: LimitsDocument,
    /// After how long what failed is tried again by the short plan; nothing where it is not.
    pub(super) retry_waits: String,
}

/// A form of a subscription.
pub(super) struct SubscriptionForm {
    pub(super) url: String,
    pub(super) email: String,
    pub(super) description: String,
    pub(super) timeout: String,
    pub(super) event_types: Vec<String>,
    pub(super) retry_plan: String,
    pub(super) retry_client_errors: bool,
    pub(super) resend_after_outage: bool,
    pub(super) offered: Offered,
    pub(super) errors: Vec<FieldProblem>,
}

/// The catalogue by beginnings, without what was retired, and what the installation allows.
pub(super) async fn offered(app: &Arc<App>, reseller: &Reseller) -> Result<Offered, Problem> {
    let list = event_types::list(State(Arc::clone(app)), reseller.clone())
        .await?
        .0;
    let mut groups: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for event_type in list.items {
        if event_type.retired_at.is_none() {
            let beginning = event_type.name.split('.').next().unwrap_or_default();
            let group = groups.entry(format!("{beginning}.*")).or_default();
            group.push((event_type.name, event_type.description));
        }
    }
    let group = |(prefix, types)| Group { prefix, types };
    Ok(Offered {
        groups: groups.into_iter().map(group).collect(),
        limits: bounds::show(State(Arc::clone(app)), reseller.clone()).await?.0,
        retry_waits: Rules::from(&*app.config).retry_waits(RetryPlan::Short),
    })
}

impl SubscriptionForm {
    /// One that nothing was typed in.
    pub(super) fn empty(offered: Offered, resend_after_outage: bool) -> Self {
        Self {
            url: String::new(),
            email: String::new(),
            description: String::new(),
            timeout: String::new(),
            event_types: Vec::new(),
            retry_plan: "SHORT".to_owned(),
            retry_client_errors: false,
            resend_after_outage,
            offered,
            errors: Vec::new(),
        }
    }

    /// One with what a subscription has.
    pub(super) fn of(subscription: &SubscriptionDocument, offered: Offered) -> Self {
        Self {
            url: subscription.url.clone(),
            email: subscription.email.clone(),
            description: subscription.description.clone(),
            timeout: subscription.timeout_millis.to_string(),
            event_types: subscription.event_types.clone(),
            retry_plan: subscription.retry_plan.as_str().to_owned(),
            retry_client_errors: subscription.retry_client_errors,
            resend_after_outage: subscription.resend_after_outage,
            offered,
            errors: Vec::new(),
        }
    }

    /// One with what was typed, and what cannot be read of it.
    pub(super) fn typed(fields: &Fields, offered: Offered) -> Self {
        let text = |name| fields.get(name).unwrap_or_default().to_owned();
        Self {
            url: text("url"),
            email: text("email"),
            description: text("description"),
            timeout: text("timeoutMillis"),
            event_types: fields.all("eventTypes"),
            retry_plan: text("retryPlan"),
            retry_client_errors: fields.get("retryClientErrors").is_some(),
            resend_after_outage: fields.get("resendAfterOutage").is_some(),
            offered,
            errors: Vec::new(),
        }
    }

    /// The time for an answer that was typed; none where nothing was. What is no number is as wrong as a number that is too small.
    pub(super) fn timeout_millis(&self) -> Option<i64> {
        (!self.timeout.is_empty()).then(|| self.timeout.parse().unwrap_or(-1))
    }

    pub(super) fn has(&self, filter: &str) -> bool {
        self.event_types.iter().any(|chosen| chosen == filter)
    }

    /// Whether the types of a group are seen at once: some are chosen, or have to be.
    pub(super) fn is_open(&self, group: &Group) -> bool {
        self.wrong("eventTypes").is_some() || group.types.iter().any(|(name, _)| self.has(name))
    }

    /// Filters that were chosen and that the catalogue does not offer.
    pub(super) fn others(&self) -> Vec<&String> {
        let offered =
            |filter: &str| {
                filter == "*"
                    || self.offered.groups.iter().any(|group| {
                        group.prefix == filter || group.types.iter().any(|(name, _)| name == filter)
                    })
            };
        self.event_types
            .iter()
            .filter(|filter| !offered(filter))
            .collect()
    }

    /// How many event types the filters match, of how many.
    pub(super) fn matched(&self) -> (usize, usize) {
        let types = self.offered.groups.iter().flat_map(|group| &group.types);
        let is_matched = |name: &str| {
            self.event_types
                .iter()
                .any(|filter| match filter.strip_suffix('*') {
                    Some(beginning) => name.starts_with(beginning),
                    None => name == filter,
                })
        };
        let matched = types.clone().filter(|(name, _)| is_matched(name)).count();
        (matched, types.count())
    }

    /// What is wrong with a field.
    pub(super) fn wrong(&self, field: &str) -> Option<&str> {
        confirm::wrong(&self.errors, field)
    }

    /// The field of the page that an error is about.
    pub(super) fn place_of(&self, error: &FieldProblem) -> String {
        let name: &str = &error.field;
        name.split('[').next().unwrap_or_default().to_owned()
    }
}
