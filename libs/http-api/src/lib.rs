//! What every HTTP API of Postrider has: API keys, bodies and their JSON, problem details, connections with bounds on
//! their number and waits, what is observed of each request, and the documents about itself.
//!
//! What it deliberately does not have: a route. What is served under which path, to whom, and which limits hold is the
//! business of each service.

mod address_limit;
mod auth;
mod body;
pub mod docs_page;
mod documents;
mod field_code;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod idempotency;
mod json;
mod kind;
pub mod last_answer;
mod note;
mod observe;
pub mod openapi;
mod outage;
pub mod paging;
mod peer;
mod problem;
mod reading;
mod refusals;
mod remembered;
mod request;
mod response_headers;
mod router;
mod server;
mod strangers;
mod taken;
pub mod words;
mod wrong_query;

pub use address_limit::AddressLimit;
pub use auth::{Caller, Identity, Keys};
pub use body::{read as read_body, require_json};
pub use documents::Documents;
pub use field_code::FieldCode;
pub use idempotency::{IDEMPOTENCY_KEY, REPLAYED, idempotency_key};
pub use json::{Handling, Object, Wrong, read as read_json};
pub use kind::ProblemKind;
pub use note::note;
pub use observe::{Observer, traceparent};
pub use outage::Outage;
pub use peer::current as caller_address;
pub use problem::{FieldProblem, PROBLEM_JSON, Problem, ProblemBody};
pub use reading::by;
pub use remembered::Remembered;
pub use request::{Draft, Id, Ids, Name, Params, Payload, ReadParams, TakesBodies};
pub use router::{complete, method_not_allowed};
pub use server::{ConnectionLimits, NoUpgrade, Place, Upgrade, Upgraded, serve};
pub use strangers::Strangers;
pub use taken::refuse_in_vain;
pub use wrong_query::WrongQuery;
