//! The pages of the console that the runbook names below its commands, and an engineer who opens them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use http::StatusCode;
use http::header::{COOKIE, SET_COOKIE};
use reqwest::redirect::Policy;
use testkit::PATIENCE;

/// A page, and what is done there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its path, with variables as in a command.
    path: String,
    /// What the control is called that does the same as the commands.
    act: Option<String>,
}

impl Way {
    /// The pages of a line such as "Page: `/console/lanes`, *Pause*."
    pub(crate) fn all(line: &str) -> Vec<Self> {
        let mut ways: Vec<Self> = Vec::new();
        let mut rest = line;
        while let Some(at) = rest.find(['`', '*']) {
            let (quote, inner) = rest[at..].split_at(1);
            let Some((word, after)) = inner.split_once(quote) else {
                break;
            };
            match ways.last_mut() {
                Some(way) if quote == "*" => way.act = Some(word.to_owned()),
                _ if word.starts_with("/console") => ways.push(Self {
                    path: word.to_owned(),
                    act: None,
                }),
                _ => panic!("{word:?} is no page of the console: {line}"),
            }
            rest = after;
        }
        ways
    }

    fn path(&self, variables: &BTreeMap<String, String>) -> String {
        let variables = variables.iter();
        let path = variables.fold(self.path.clone(), |path, (name, value)| {
            path.replace(&format!("${name}"), value)
        });
        assert!(!path.contains('$'), "{path} names what is not known");
        path
    }
}

/// A visit to the console with the engineer's key.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    url: String,
    key: String,
    cookie: String,
    client: reqwest::Client,
}

impl Visit {
    /// Signs in.
    pub(crate) async fn of(url: &str, key: &str) -> Self {
        let client = reqwest::Client::builder()
            .redirect(Policy::none())
            .no_proxy()
            .build();
        let client = client.expect("a client");
        let asked = client
            .post(format!("{url}/console/sign-in"))
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("key={key}"));
        let answer = asked.send().await.expect("the console answers");
        let cookie = answer
            .headers()
            .get(SET_COOKIE)
            .expect("the key opens the console");
        let cookie = cookie.to_str().expect("a cookie is text").split(';').next();
        let visit = Self {
            url: url.to_owned(),
            key: key.to_owned(),
            cookie: cookie.expect("a cookie has a value").to_owned(),
            client,
        };
        // To where signing in leads a browser; the console knows those while the database is away who were there before.
        visit.get("/console").await;
        visit
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        let asked = self.client.get(format!("{}{path}", self.url));
        let answer = asked.header(COOKIE, &self.cookie).send().await;
        answer.expect("the console answers")
    }

    /// The page that is answered with 200. A visit that has ended, as one does in an hour that a test lets pass in seconds, is begun again.
    async fn see(&self, path: &str) -> String {
        let mut answer = self.get(path).await;
        if answer.status() == StatusCode::SEE_OTHER {
            answer = Self::of(&self.url, &self.key).await.get(path).await;
        }
        let status = answer.status();
        let page = answer.text().await.expect("a page is text");
        assert!(status == 200 && page.contains("<h1"), "{path}: {status}: {page}");
        page
    }

    /// Before the commands: each act that the runbook names is offered on its page.
    pub(crate) async fn offers(&self, ways: &[Way], variables: &BTreeMap<String, String>) {
        for way in ways {
            let Some(act) = &way.act else { continue };
            let path = way.path(variables);
            let page = self.see(&path).await;
            let controls = page.split("<a ").skip(1).filter_map(|link| link.split_once('>'));
            let offered = controls.filter(|(_, text)| text.starts_with(act.as_str()));
            assert!(offered.count() > 0, "{path} offers no {act:?}: {page}");
        }
    }

    /// After the commands: each page is there.
    pub(crate) async fn shows(&self, ways: &[Way], variables: &BTreeMap<String, String>) {
        for way in ways {
            self.see(&way.path(variables)).await;
        }
    }

    /// Waits until one of the pages says something.
    pub(crate) async fn says_until(&self, ways: &[Way], variables: &BTreeMap<String, String>, said: &str) {
        let Some(way) = ways.first() else { return };
        let (path, deadline) = (way.path(variables), Instant::now() + PATIENCE);
        loop {
            let page = self.see(&path).await;
            if page.contains(said) {
                return;
            }
            assert!(Instant::now() < deadline, "{path} never says {said:?}: {page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[test]
fn pages_are_read_with_what_is_done_there() {
    let way = |path: &str, act: Option<&str>| Way {
        path: path.to_owned(),
        act: act.map(str::to_owned),
    };
    assert_eq!(
        Way::all(
            "Page: `/console/subscriptions/$ID`, *Resume*; then `/console/jobs/new?fingerprint=prototype-key/*`, with how far back."
        ),
        [
            way("/console/subscriptions/$ID", Some("Resume")),
            way("/console/jobs/new?fingerprint=prototype-key/*", None)
        ]
    );
}
