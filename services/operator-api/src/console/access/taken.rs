//! Taking access: revoking keys, and ending visits to the console and to dashboards of resellers.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use http::StatusCode;
use http_api::{Id, Params, Problem};
use uuid::Uuid;

use super::{HERE, named, why};
use crate::app::App;
use crate::console::act::ActForm;
use crate::console::frame::{Frame, done};
use crate::console::visit::Fields;
use crate::request::{Administrator, Viewer};
use crate::visits::Why;
use crate::{keys, portal_links, visits};

/// What is taken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Taken {
    Key,
    Visit,
    PortalVisit,
}

impl Taken {
    /// The form that asks for it, and what answers that.
    pub(super) fn route(self) -> MethodRouter<Arc<App>> {
        let ask = async move |State(app): State<Arc<App>>, viewer: Viewer, frame: Frame, Id(id): Id| {
            self.ask(&app, viewer, frame, id).await
        };
        let take =
            async move |State(app): State<Arc<App>>,
                        admin: Administrator,
                        frame: Frame,
                        Id(id): Id,
                        fields: Fields| { self.answer(&app, admin, (frame, fields), id).await };
        get(ask).post(take)
    }

    async fn ask(self, app: &Arc<App>, viewer: Viewer, frame: Frame, id: Uuid) -> Result<Response, Problem> {
        let named = self.named(app, viewer, id).await?;
        Ok(self.form(&frame, id, &named).page(frame))
    }

    async fn answer(
        self,
        app: &Arc<App>,
        admin: Administrator,
        (frame, fields): (Frame, Fields),
        id: Uuid,
    ) -> Result<Response, Problem> {
        let viewer = admin.viewer();
        let taken = match why(&fields) {
            Ok(why) => self.take(app, admin, id, why).await,
            Err(problem) => Err(problem),
        };
        match taken {
            Ok(_) => Ok(done(HERE, self.said())),
            Err(problem) => {
                let named = self.named(app, viewer, id).await?;
                self.form(&frame, id, &named).again(frame, &fields, problem)
            }
        }
    }

    async fn named(self, app: &Arc<App>, viewer: Viewer, id: Uuid) -> Result<String, Problem> {
        match self {
            Self::Key => named::key(app, viewer, id).await,
            Self::Visit => named::visit(app, viewer, id).await,
            Self::PortalVisit => named::portal_visit(app, viewer, id).await,
        }
    }

    async fn take(
        self,
        app: &Arc<App>,
        admin: Administrator,
        id: Uuid,
        why: Params<Why>,
    ) -> Result<StatusCode, Problem> {
        let app = State(Arc::clone(app));
        match self {
            Self::Key => keys::revoke(app, admin, Id(id), why).await,
            Self::Visit => visits::end(app, admin, Id(id), why).await,
            Self::PortalVisit => portal_links::end(app, admin, Id(id), why).await,
        }
    }

    fn said(self) -> &'static str {
        match self {
            Self::Key => "The key is revoked. Services that remember it refuse it within seconds.",
            Self::Visit => "The visit is over. Its person has to sign in again within seconds.",
            Self::PortalVisit => "The visit is over. Its open pages are refused within seconds.",
        }
    }

    fn form(self, frame: &Frame, id: Uuid, named: &str) -> ActForm {
        match self {
            Self::Key => revoke_form(frame, id, named),
            Self::Visit => end_form(frame, id, named),
            Self::PortalVisit => end_portal_form(frame, id, named),
        }
    }
}

/// The form to revoke a key.
fn revoke_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "revoke".to_owned(),
        title: "Revoke a key".to_owned(),
        said: vec![
            format!(
                "1 key: {named}. Services refuse it within seconds, and the visits that began with it are over."
            ),
            "This cannot be undone: another key has to be made.".to_owned(),
        ],
        button: "Revoke",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/keys/{id}/revoke"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

/// The form to end a visit.
fn end_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "end".to_owned(),
        title: "End a visit".to_owned(),
        said: vec![format!(
            "1 visit: {named}. Its person has to sign in again, and can: to keep a person away, revoke the key, or take the role at the provider."
        )],
        button: "End the visit",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/visits/{id}/end"), HERE.to_owned())
    };
    form.of_administrators(frame)
}

/// The form to end a visit to the dashboard of a reseller.
fn end_portal_form(frame: &Frame, id: Uuid, named: &str) -> ActForm {
    let form = ActForm {
        id: "end-portal".to_owned(),
        title: "End a visit to a dashboard".to_owned(),
        said: vec![format!(
            "1 visit: {named}. Its open pages are refused within seconds. Its person can come again with another link: to prevent that, revoke the key that makes them."
        )],
        button: "End the visit",
        is_dangerous: true,
        ..ActForm::new(frame, format!("{HERE}/portal-visits/{id}/end"), HERE.to_owned())
    };
    form.of_administrators(frame)
}
