//! A provider of OpenID Connect that does what a test wants: one person, who is always signed in there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, body::Bytes};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use config::{Config, Secret};
use domain::clock::{Clock, ManualClock, SystemClock};
use reqwest::redirect::Policy;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::{Url, form_urlencoded};

const CLIENT: &str = "postrider";
const SECRET: &str = "a secret: of+the client";
pub(crate) const PUBLIC_URL: &str = "https://console.example";

/// What the provider does to a token before it hands it out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Other claims than were signed.
    Tampered,
    Unsigned,
}

/// What a test may change.
pub(crate) struct Mood {
    /// Claims that are put over those of a good token; null takes one out.
    pub(crate) claims: Value,
    pub(crate) fault: Fault,
    /// How many seconds ago the person showed who it is.
    pub(crate) authenticated_ago: i64,
    /// Whether nothing is answered but errors.
    pub(crate) is_away: bool,
    /// The same of the token endpoint alone.
    pub(crate) token_is_away: bool,
    /// Whether nothing is answered at all.
    pub(crate) is_silent: bool,
    /// How far the provider's clock is ahead of the console's, in seconds.
    pub(crate) clock_ahead: i64,
    /// How often the discovery document was asked for.
    pub(crate) discovery_requests: u32,
    pub(crate) clock: Option<ManualClock>,
    /// How often the keys were asked for.
    pub(crate) key_requests: u32,
    kid: String,
    pair: EcdsaKeyPair,
    codes: HashMap<String, Asked>,
}

/// What the browser brought.
type Asked = HashMap<String, String>;

#[derive(Clone)]
struct Shared {
    issuer: String,
    mood: Arc<Mutex<Mood>>,
}

/// The provider at work.
pub(crate) struct Provider {
    shared: Shared,
    server: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn pair() -> EcdsaKeyPair {
    let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap()
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Shared {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            mood: Arc::new(Mutex::new(Mood {
                claims: json!({}),
                fault: Fault::None,
                authenticated_ago: 10,
                is_away: false,
                token_is_away: false,
                is_silent: false,
                clock_ahead: 0,
                discovery_requests: 0,
                clock: None,
                key_requests: 0,
                kid: "first".to_owned(),
                pair: pair(),
                codes: HashMap::new(),
            })),
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(keys))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .with_state(shared.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { shared, server }
    }

    /// Has the console sign people in here.
    pub(crate) fn configure(&self, config: &mut Config) {
        let operator = &mut config.operator;
        operator.public_url = Some(PUBLIC_URL.to_owned());
        operator.oidc.issuer = Some(self.shared.issuer.clone());
        operator.oidc.client_id = Some(CLIENT.to_owned());
        operator.oidc.client_secret = Some(Secret::new(SECRET));
        operator.oidc.roles.viewer = vec!["support".to_owned()];
        operator.oidc.roles.operator = vec!["on-call".to_owned(), "engineers".to_owned()];
        operator.oidc.roles.admin = vec!["leads".to_owned()];
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Mood)) {
        change(&mut self.shared.mood.lock().unwrap());
    }

    /// Signs with another key from now on, and publishes no other.
    pub(crate) fn rotate(&self) {
        self.change(|mood| (mood.kid, mood.pair) = ("second".to_owned(), pair()));
    }

    pub(crate) fn discovery_requests(&self) -> u32 {
        self.shared.mood.lock().unwrap().discovery_requests
    }

    pub(crate) fn key_requests(&self) -> u32 {
        self.shared.mood.lock().unwrap().key_requests
    }

    /// Follows the link to the provider, as a browser does. Returns where it sends the browser back to, as a path of the console.
    pub(crate) async fn visit(&self, address: &str) -> String {
        assert!(address.starts_with(self.issuer()), "{address}");
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .build()
            .unwrap();
        let answer = client.get(address).send().await.unwrap();
        assert_eq!(answer.status(), 302, "{}", answer.text().await.unwrap());
        let back = answer.headers()["location"].to_str().unwrap();
        back.strip_prefix(PUBLIC_URL).unwrap().to_owned()
    }
}

impl Mood {
    fn now(&self) -> i64 {
        self.clock
            .as_ref()
            .map_or_else(|| SystemClock.now(), Clock::now)
            .timestamp()
            + self.clock_ahead
    }

    fn token(&self, issuer: &str, asked: &Asked) -> String {
        let now = self.now();
        let mut claims = json!({
            "iss": issuer, "sub": "7f3a", "aud": CLIENT, "exp": now + 300, "iat": now, "nonce": asked["nonce"],
            "auth_time": now - self.authenticated_ago, "name": "Ada Lovelace",
        });
        for (name, value) in self.claims.as_object().unwrap() {
            if value.is_null() {
                claims.as_object_mut().unwrap().remove(name);
            } else {
                claims[name] = value.clone();
            }
        }
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        if self.fault == Fault::Unsigned {
            return format!(
                "{}.{}.",
                part(&json!({"alg": "none", "kid": self.kid})),
                part(&claims)
            );
        }
        let header = part(&json!({"alg": "ES256", "kid": self.kid}));
        let signed = format!("{header}.{}", part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        let signature = URL_SAFE_NO_PAD.encode(signature);
        if self.fault == Fault::Tampered {
            claims["groups"] = json!(["leads"]);
            return format!("{header}.{}.{signature}", part(&claims));
        }
        format!("{signed}.{signature}")
    }
}

impl Shared {
    /// Goes on while the provider is not silent.
    async fn hear(&self) {
        while self.mood.lock().unwrap().is_silent {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn answer(&self, answer: impl FnOnce(&mut Mood) -> Response) -> Response {
        let mut mood = self.mood.lock().unwrap();
        if mood.is_away {
            return StatusCode::BAD_GATEWAY.into_response();
        }
        answer(&mut mood)
    }
}

async fn discovery(State(shared): State<Shared>) -> Response {
    shared.mood.lock().unwrap().discovery_requests += 1;
    shared.hear().await;
    let issuer = &shared.issuer;
    let document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/keys"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    shared.answer(|_| Json(document).into_response())
}

async fn keys(State(shared): State<Shared>) -> Response {
    shared.hear().await;
    shared.answer(|mood| {
        mood.key_requests += 1;
        let point = mood.pair.public_key().as_ref();
        let (x, y) = (
            URL_SAFE_NO_PAD.encode(&point[1..33]),
            URL_SAFE_NO_PAD.encode(&point[33..]),
        );
        let key = json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": mood.kid, "x": x, "y": y});
        Json(json!({ "keys": [key] })).into_response()
    })
}

async fn authorize(State(shared): State<Shared>, Query(asked): Query<Asked>) -> Response {
    let expected = [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("code_challenge_method", "S256"),
        ("redirect_uri", "https://console.example/console/sign-in/return"),
    ];
    for (name, value) in expected {
        if asked.get(name).map(String::as_str) != Some(value) {
            return (StatusCode::BAD_REQUEST, format!("{name} is wrong: {asked:?}")).into_response();
        }
    }
    shared.answer(|mood| {
        let code = format!("code-{}", mood.codes.len());
        let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
        back.query_pairs_mut()
            .append_pair("code", &code)
            .append_pair("state", &asked["state"])
            .append_pair("iss", &shared.issuer);
        mood.codes.insert(code, asked);
        (StatusCode::FOUND, [(header::LOCATION, back.to_string())]).into_response()
    })
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let basic = STANDARD.encode(format!("{}:{}", encoded(CLIENT), encoded(SECRET)));
    if headers
        .get(header::AUTHORIZATION)
        .is_none_or(|shown| *shown != format!("Basic {basic}"))
    {
        return refusal("invalid_client");
    }
    let form: Asked = form_urlencoded::parse(&body).into_owned().collect();
    shared.hear().await;
    shared.answer(|mood| {
        if mood.token_is_away {
            return StatusCode::BAD_GATEWAY.into_response();
        }
        // Kept empty, so that no other code is called the same.
        let asked = mood.codes.get_mut(&form["code"]).map(std::mem::take);
        let Some(asked) = asked.filter(|asked| !asked.is_empty()) else {
            return refusal("invalid_grant");
        };
        let challenge = URL_SAFE_NO_PAD.encode(digest(&SHA256, form["code_verifier"].as_bytes()));
        if asked["code_challenge"] != challenge || asked["redirect_uri"] != form["redirect_uri"] {
            return refusal("invalid_grant");
        }
        let token = mood.token(&shared.issuer, &asked);
        Json(json!({"access_token": "unused", "token_type": "Bearer", "id_token": token})).into_response()
    })
}

fn refusal(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
}
