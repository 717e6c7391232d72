//! What every path has: health, versions, errors, other origins, and endpoints that outlive their keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use config::Secret;
use sqlx::PgPool;
use webpush::{Keys, Subscription};

use crate::scene::{Scene, accepted, refused};

#[testkit::database_test]
async fn monitors_find_what_they_know(pool: PgPool) {
    let scene = Scene::start(pool).await;
    for path in [
        "/health",
        "/__heartbeat__",
        "/__lbheartbeat__",
        "/status",
        "/__version__",
    ] {
        let response = scene.request("GET", path).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        let body = response.text().await.unwrap();
        assert!(
            body.contains("version") || path == "/__lbheartbeat__",
            "{path}: {body}"
        );
    }
    for path in ["/v1/err", "/v1/err/crit", "/__error__"] {
        let response = scene.request("GET", path).send().await.unwrap();
        assert_eq!(refused(response, 418).await, Some(999), "{path}");
    }
    scene.stop().await;
}

#[testkit::database_test]
async fn other_paths_and_methods_are_errors_of_the_same_form(pool: PgPool) {
    let scene = Scene::start(pool).await;
    for path in ["/", "/nothing", "/push/a", "/notif/a"] {
        assert_eq!(
            refused(scene.request("GET", path).send().await.unwrap(), 404).await,
            None
        );
    }
    let path = scene.path(None);
    assert_eq!(
        refused(scene.request("GET", &path).send().await.unwrap(), 405).await,
        None
    );
    scene.stop().await;
}

#[testkit::database_test]
async fn pages_of_any_origin_may_send(pool: PgPool) {
    let scene = Scene::start(pool).await;
    let path = scene.path(None);
    let asked = scene
        .request("OPTIONS", &path)
        .header("Origin", "https://page.example")
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "authorization,ttl,content-encoding",
        );
    let response = asked.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let headers = response.headers();
    assert_eq!(headers["access-control-allow-origin"], "*");
    assert!(
        headers["access-control-allow-methods"]
            .to_str()
            .unwrap()
            .contains("POST")
    );
    assert_eq!(
        headers["access-control-allow-headers"],
        "authorization,ttl,content-encoding"
    );
    for path in [path.as_str(), "/nothing"] {
        let response = scene
            .post(path)
            .header("Origin", "https://page.example")
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["access-control-allow-origin"], "*", "{path}");
        let exposed = response.headers()["access-control-expose-headers"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(exposed.contains("Location"), "{exposed}");
    }
    scene.stop().await;
}

/// The runbook's way: the new key is added last, then goes first, then the old one goes.
#[testkit::database_test]
async fn keys_are_replaced_without_losing_a_subscription(pool: PgPool) {
    let texts = [URL_SAFE.encode([1; 32]), URL_SAFE.encode([2; 32])];
    let keys = |order: &[usize]| {
        order
            .iter()
            .map(|n| Secret::new(texts[*n].clone()))
            .collect::<Vec<_>>()
    };
    let made_with = |n: usize| Keys::parse(&texts[n]).unwrap();
    let mut subscribed = None;
    for (order, takes_old, takes_new) in [
        ([0].as_slice(), true, false),
        (&[0, 1], true, true),
        (&[1, 0], true, true),
        (&[1], false, true),
    ] {
        let scene = Scene::start_with(pool.clone(), |config| config.webpush.keys = keys(order)).await;
        let (uaid, channel) = *subscribed.get_or_insert((scene.uaid, scene.channel));
        let subscription = Subscription::new(uaid, channel, None);
        for (n, taken) in [(0, takes_old), (1, takes_new)] {
            let path = webpush::endpoint_url("", &subscription, &made_with(n), scene.now());
            let response = scene.post(&path).send().await.unwrap();
            if taken {
                accepted(response).await;
            } else {
                assert_eq!(refused(response, 404).await, Some(102), "{order:?}");
            }
        }
        scene.stop().await;
    }
}
