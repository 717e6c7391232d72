//! Taking access: revoking keys, and ending visits to the console and to dashboards of resellers.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::routing::{MethodRouter, get};
use http::StatusCode;
use http_api::{Id, Problem};
use uuid::Uuid;

use super::{HERE, named, why};
use crate::app::App;
use crate::console::act::ActForm;
use crate::console::frame::{Frame, done};
use crate::console::visit::Fields;
use crate::request::{Administrator, Viewer};
use crate::{keys, portal_links, visits};

#[derive(Clone, Copy)]
enum Kind {
    Key,
    Visit,
    /// To the dashboard of a reseller.
    PortalVisit,
}

/// Access that can be taken, and what the form for it says.
struct Taken {
    kind: Kind,
    /// Its place below the page of all access, and what is done to it there.
    place: (&'static str, &'static str),
    /// Tells the form from others.
    form: &'static str,
    title: &'static str,
    /// What stands before what it is called.
    one: &'static str,
    /// What follows from the act.
    effect: &'static str,
    /// What else is to be known.
    further: Option<&'static str>,
    button: &'static str,
    /// What is said when it was done.
    done: &'static str,
}

static ALL: [Taken; 3] = [
    Taken {
        kind: Kind::Key,
        place: ("keys", "revoke"),
        form: "revoke",
        title: "Revoke a key",
        one: "1 key",
        effect: "Services refuse it within seconds, and the visits that began with it are over.",
        further: Some("This cannot be undone: another key has to be made."),
        button: "Revoke",
        done: "The key is revoked. Services that remember it refuse it within seconds.",
    },
    Taken {
        kind: Kind::Visit,
        place: ("visits", "end"),
        form: "end",
        title: "End a visit",
        one: "1 visit",
        effect: "Its person has to sign in again, and can: to keep a person away, revoke the key, or take the role at the provider.",
        further: None,
        button: "End the visit",
        done: "The visit is over. Its person has to sign in again within seconds.",
    },
    Taken {
        kind: Kind::PortalVisit,
        place: ("portal-visits", "end"),
        form: "end-portal",
        title: "End a visit to a dashboard",
        one: "1 visit",
        effect: "Its open pages are refused within seconds. Its person can come again with another link: to prevent that, revoke the key that makes them.",
        further: None,
        button: "End the visit",
        done: "The visit is over. Its open pages are refused within seconds.",
    },
];

/// The page with the form of one, and what the form does.
fn act_routes(taken: &'static Taken) -> MethodRouter<Arc<App>> {
    let ask = async move |State(app): State<Arc<App>>, viewer: Viewer, frame: Frame, Id(id): Id| {
        let named = taken.named(&app, viewer, id).await?;
        Ok::<_, Problem>(taken.form(&frame, id, &named).page(frame))
    };
    let act_on = async move |State(app): State<Arc<App>>,
                             admin: Administrator,
                             frame: Frame,
                             Id(id): Id,
                             fields: Fields| {
        let viewer = admin.viewer();
        match taken.take(Arc::clone(&app), admin, id, &fields).await {
            Ok(_) => Ok(done(HERE, taken.done)),
            Err(problem) => {
                let named = taken.named(&app, viewer, id).await?;
                taken.form(&frame, id, &named).again(frame, &fields, problem)
            }
        }
    };
    get(ask).post(act_on)
}

/// What can be taken.
pub(super) fn routes() -> Router<Arc<App>> {
    let [key, visit, portal_visit] = &ALL;
    Router::new()
        .route("/console/access/keys/{id}/revoke", act_routes(key))
        .route("/console/access/visits/{id}/end", act_routes(visit))
        .route("/console/access/portal-visits/{id}/end", act_routes(portal_visit))
}

impl Taken {
    fn form(&self, frame: &Frame, id: Uuid, named: &str) -> ActForm {
        let (place, act) = self.place;
        let mut said = vec![format!("{}: {named}. {}", self.one, self.effect)];
        said.extend(self.further.map(str::to_owned));
        let form = ActForm {
            id: self.form.to_owned(),
            title: self.title.to_owned(),
            said,
            button: self.button,
            is_dangerous: true,
            ..ActForm::new(frame, format!("{HERE}/{place}/{id}/{act}"), HERE.to_owned())
        };
        form.of_administrators(frame)
    }

    /// How the one of this identifier is called.
    async fn named(&self, app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
        match self.kind {
            Kind::Key => named::key(app, viewer, id).await,
            Kind::Visit => named::visit(app, viewer, id).await,
            Kind::PortalVisit => named::portal_visit(app, viewer, id).await,
        }
    }

    /// Takes it, as the API does.
    async fn take(
        &self,
        app: Arc<App>,
        admin: Administrator,
        id: Uuid,
        fields: &Fields,
    ) -> Result<StatusCode, Problem> {
        let why = why(fields)?;
        match self.kind {
            Kind::Key => keys::revoke(State(app), admin, Id(id), why).await,
            Kind::Visit => visits::end(State(app), admin, Id(id), why).await,
            Kind::PortalVisit => portal_links::end(State(app), admin, Id(id), why).await,
        }
    }
}
