//! Addresses that lead to the console, and what a person and a program are told at one that leads nowhere.

use domain::key::Role;

use crate::console::{Browser, holds};
use crate::rig::Rig;

const READS: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[testkit::test]
async fn a_slash_at_the_end_leads_to_the_first_page_with_what_was_asked(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    for (asked, leads) in [
        ("/console/", "/console"),
        ("/console/?a=b%20c", "/console?a=b%20c"),
    ] {
        let answer = browser.get(asked).await;
        assert_eq!((answer.status, answer.header("location")), (308, leads));
    }
}

#[testkit::test]
async fn a_problem_is_a_page_for_a_person_and_json_for_a_program(rig: &Rig) {
    let browser = Browser::of(rig, Role::Viewer).await;
    for (path, status, allow) in [
        ("/console/sign-out", 405, "POST"),
        ("/console/assets/0/none.css", 404, ""),
    ] {
        let asked = browser.request("GET", path).header("accept", READS);
        let page = browser.send(asked).await;
        assert_eq!(
            (page.status, page.header("allow")),
            (status, allow),
            "{path}: {page:?}"
        );
        holds(&page.html, &["<h1>", "href=\"/console\""]);
        let asked = browser.request("GET", path).header("accept", "application/json");
        let problem = browser.send(asked).await;
        assert_eq!(
            (problem.status, problem.header("content-type")),
            (status, "application/problem+json"),
            "{path}"
        );
    }
}
