//! The documentation for resellers under `/docs`, as files of a folder.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use metrics_exporter_prometheus::PrometheusBuilder;
use reqwest::{Response, header};
use sqlx::PgPool;
use tempfile::TempDir;
use testkit::eventually;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::app::{ALL, entered};
use crate::portal::{Portal, problem};

/// A site as the generator makes one, and beside it what must not be seen.
struct Site {
    parent: TempDir,
}

impl Site {
    fn new() -> Self {
        let parent = tempfile::tempdir().unwrap();
        let site = Self { parent };
        for (path, text) in [
            ("secret.txt", "not for anybody"),
            ("outside/index.html", "<p>outside"),
            ("site/index.html", "<p>quick start: ä"),
            ("site/types/index.html", "<p>types"),
            ("site/types/domain.html", "<p>domain"),
            ("site/_static/site.css", "body {}"),
            ("site/_static/site.js", "1"),
            ("site/_static/font.woff2", "font"),
            ("site/_static/empty/only.svg", "<svg/>"),
            ("site/.hidden", "hidden"),
        ] {
            let path = site.parent.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        site
    }

    fn folder(&self) -> PathBuf {
        self.parent.path().join("site")
    }

    async fn serve(&self, pool: PgPool) -> Portal {
        let folder = self.folder();
        Portal::start_with(pool, |config| config.portal.docs_directory = Some(folder)).await
    }
}

async fn get(portal: &Portal, path: &str) -> Response {
    portal.request("GET", path).send().await.unwrap()
}

fn told<'a>(response: &'a Response, name: &str) -> &'a str {
    response
        .headers()
        .get(name)
        .map_or("", |value| value.to_str().unwrap())
}

/// The status and the body of the answer to a request line that no client would send.
async fn raw(portal: &Portal, line: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(portal.address).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nhost: portal\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

#[testkit::test]
async fn files_come_with_their_type_and_protection(pool: PgPool) {
    let site = Site::new();
    let portal = site.serve(pool).await;
    for (path, text, content_type) in [
        ("/docs/", "<p>quick start: ä", "text/html; charset=utf-8"),
        ("/docs/types/", "<p>types", "text/html; charset=utf-8"),
        ("/docs/_static/site.css", "body {}", "text/css; charset=utf-8"),
        ("/docs/_static/site.js", "1", "text/javascript; charset=utf-8"),
        ("/docs/_static/font.woff2", "font", "font/woff2"),
    ] {
        let response = get(&portal, path).await;
        assert_eq!(response.status(), 200, "{path}");
        assert_eq!(told(&response, "content-type"), content_type, "{path}");
        assert_eq!(told(&response, "x-content-type-options"), "nosniff", "{path}");
        let policy = told(&response, "content-security-policy").to_owned();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("script-src 'self';"),
            "{policy}"
        );
        assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
        assert_eq!(response.text().await.unwrap(), text, "{path}");
        let head = portal.request("HEAD", path).send().await.unwrap();
        assert_eq!(head.status(), 200, "{path}");
        assert_eq!(told(&head, "content-length"), text.len().to_string(), "{path}");
        assert_eq!(head.text().await.unwrap(), "", "{path}");
    }
}

#[testkit::test]
async fn folders_are_their_index_and_are_never_listed(pool: PgPool) {
    let site = Site::new();
    let portal = site.serve(pool).await;
    for (asked, led) in [("/docs", "/docs/"), ("/docs/types", "/docs/types/")] {
        let (status, _) = raw(&portal, &format!("GET {asked}")).await;
        assert_eq!(status, 307, "{asked}");
        let response = get(&portal, asked).await;
        assert_eq!(response.url().path(), led);
        assert_eq!(response.status(), 200, "{asked}");
    }
    for path in [
        "/docs/_static",
        "/docs/_static/",
        "/docs/_static/empty/",
        "/docs/index.html/",
    ] {
        let response = get(&portal, path).await;
        assert_eq!(response.status(), 404, "{path}");
        let page = response.text().await.unwrap();
        assert!(!page.contains("only.svg") && !page.contains("site.css"), "{page}");
    }
}

#[testkit::test]
async fn a_page_that_is_not_there_is_answered_with_a_page(pool: PgPool) {
    let site = Site::new();
    let portal = site.serve(pool).await;
    let long = format!("/docs/{}", "x".repeat(4000));
    for path in [
        "/docs/no.html",
        "/docs/types/no/where.html",
        "/docs/.hidden",
        &long,
    ] {
        let response = get(&portal, path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(told(&response, "content-type"), "text/html; charset=utf-8");
        assert_eq!(told(&response, "x-content-type-options"), "nosniff");
        assert!(told(&response, "content-security-policy").contains("default-src 'none'"));
        assert_eq!(told(&response, "cache-control"), "no-cache");
        let page = response.text().await.unwrap();
        assert!(page.contains("<a href=\"/docs/\">"), "{page}");
    }
}

#[testkit::test]
async fn nothing_outside_of_the_folder_is_served(pool: PgPool) {
    let site = Site::new();
    let (folder, outside) = (site.folder(), site.parent.path().join("outside"));
    let portal = site.serve(pool).await;
    symlink("../secret.txt", folder.join("link.html")).unwrap();
    symlink(&outside, folder.join("linked")).unwrap();
    fs::create_dir(folder.join("index")).unwrap();
    symlink("../../secret.txt", folder.join("index/index.html")).unwrap();
    symlink("types/domain.html", folder.join("inside.html")).unwrap();
    let absolute = format!("/docs/{}", site.parent.path().join("secret.txt").display());
    for path in [
        "/docs/../secret.txt",
        "/docs/types/../../secret.txt",
        "/docs/..%2fsecret.txt",
        "/docs/%2e%2e/secret.txt",
        "/docs/types/..%2f..%2fsecret.txt",
        "/docs/..%5csecret.txt",
        "/docs/%252e%252e/secret.txt",
        "/docs/%00",
        "/docs/secret.txt%00.html",
        "/docs/%2fetc/passwd",
        "/docs//etc/passwd",
        "/docs/link.html",
        "/docs/linked",
        "/docs/linked/",
        "/docs/linked/index.html",
        "/docs/index/",
        &absolute,
    ] {
        let (status, body) = raw(&portal, &format!("GET {path}")).await;
        assert_eq!(status, 404, "{path}: {body}");
        assert!(
            !body.contains("not for anybody") && !body.contains("outside"),
            "{path}"
        );
    }
    // What is no UTF-8 is no path at all.
    assert_eq!(raw(&portal, "GET /docs/%ff").await.0, 400);
    assert_eq!(
        raw(&portal, "GET /docs/inside.html").await,
        (200, "<p>domain".to_owned())
    );
}

#[testkit::test]
async fn other_methods_are_refused(pool: PgPool) {
    let site = Site::new();
    let portal = site.serve(pool).await;
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for path in ["/docs", "/docs/", "/docs/index.html"] {
            let response = portal.request(method, path).send().await.unwrap();
            assert_eq!(told(&response, "allow"), "GET,HEAD", "{method} {path}");
            problem(response, 405, "method-not-allowed").await;
        }
    }
}

#[testkit::test]
async fn what_has_not_changed_is_not_sent_again(pool: PgPool) {
    let site = Site::new();
    let portal = site.serve(pool).await;
    let first = get(&portal, "/docs/index.html").await;
    assert_eq!(told(&first, "cache-control"), "no-cache");
    let since = told(&first, "last-modified").to_owned();
    let again = async || {
        let request = portal.request("GET", "/docs/index.html");
        let request = request.header(header::IF_MODIFIED_SINCE, &since);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(again().await, 304);
    let page = site.folder().join("index.html");
    let page = fs::File::options().write(true).open(page).unwrap();
    let modified = page.metadata().unwrap().modified().unwrap();
    page.set_modified(modified + std::time::Duration::from_secs(60))
        .unwrap();
    assert_eq!(again().await, 200);

    let hashed = get(&portal, "/docs/_static/site.css?v=1a2b").await;
    assert_eq!(
        told(&hashed, "cache-control"),
        "public, max-age=31536000, immutable"
    );
    let missing = get(&portal, "/docs/_static/none.css?v=1a2b").await;
    assert_eq!(told(&missing, "cache-control"), "no-cache");
}

#[testkit::test]
async fn any_number_of_pages_is_one_label(pool: PgPool) {
    // Recorders of a thread keep tests apart; all tasks of a test run on its own thread.
    let recorder = PrometheusBuilder::new().build_recorder();
    let _recording = metrics::set_default_local_recorder(&recorder);
    let metrics = recorder.handle();
    let site = Site::new();
    let portal = site.serve(pool).await;
    for path in [
        "/docs/index.html",
        "/docs/types/domain.html",
        "/docs/a",
        "/docs/b/c",
    ] {
        get(&portal, path).await;
    }
    for sample in [
        r#"postrider_http_requests_total{route="/docs/{*path}",status="200"} 2"#,
        r#"postrider_http_requests_total{route="/docs/{*path}",status="404"} 2"#,
    ] {
        eventually(&format!("{sample} in\n{}", metrics.render()), async || {
            metrics.render().lines().any(|line| line == sample).then_some(())
        })
        .await;
    }
}

#[testkit::test]
async fn a_site_that_is_built_later_is_served_then(pool: PgPool) {
    let site = Site::new();
    let built = site.parent.path().join("built later");
    let folder = built.clone();
    let portal = Portal::start_with(pool, |config| config.portal.docs_directory = Some(folder)).await;
    assert_eq!(get(&portal, "/docs/").await.status(), 404);
    fs::rename(site.folder(), built).unwrap();
    assert_eq!(get(&portal, "/docs/").await.status(), 200);
}

#[testkit::test]
async fn the_openapi_page_is_there_with_and_without_a_site(pool: PgPool) {
    let site = Site::new();
    let portal = Portal::start(pool.clone()).await;
    let page = get(&portal, "/openapi.html").await.text().await.unwrap();
    assert!(page.contains("Postrider reseller API"), "{page}");
    assert_eq!(get(&portal, "/docs").await.text().await.unwrap(), page);
    assert_eq!(get(&portal, "/docs/").await.status(), 404);
    let (form, libraries) = ("/app/subscriptions/new", "libraries for Python, Go");
    let shown = entered(&portal, &ALL).await.see(form).await;
    assert!(!shown.contains(libraries), "the reference has none: {shown}");
    portal.stop().await;

    let portal = site.serve(pool).await;
    assert_eq!(get(&portal, "/openapi.html").await.text().await.unwrap(), page);
    let shown = entered(&portal, &ALL).await.see(form).await;
    assert!(shown.contains(libraries), "{shown}");
}
