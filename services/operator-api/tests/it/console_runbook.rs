//! The scenarios of `docs/runbook.md` by the pages of the console: each command has one beside it, and each of them is there.

use domain::key::Role;
use serde_json::json;
use sqlx::PgPool;
use testkit::eventually;
use testkit::subscription_factory::SubscriptionRow;

use crate::console::Browser;
use crate::rig::Rig;

const RUNBOOK: &str = include_str!("../../../../docs/runbook.md");

/// The lines of the scenarios.
fn scenarios() -> impl Iterator<Item = &'static str> {
    let after = RUNBOOK.split("\n## Scenarios\n").nth(1).unwrap();
    after.split("\n## ").next().unwrap().lines()
}

/// The pages that a line names.
fn pages(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with("/console")).collect()
}

#[test]
fn every_command_of_a_scenario_has_its_page() {
    let (mut is_shell, mut lines) = (false, scenarios());
    let mut commands = 0;
    while let Some(line) = lines.next() {
        match line.trim() {
            "```sh" => is_shell = true,
            "```" if is_shell => {
                is_shell = false;
                commands += 1;
                let next = lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
                let is_named = next.trim().starts_with("Page: ") && !pages(next).is_empty();
                assert!(is_named, "after a command stands {next:?} instead of its page");
            }
            _ => {}
        }
    }
    assert!(commands > 20, "{commands}");
}

#[testkit::test]
async fn every_page_of_a_scenario_is_there(rig: &Rig) {
    let subscription = SubscriptionRow::active().make(&rig.it.pool).await;
    let letter = dead_letter(&rig.it.pool).await;
    let browser = Browser::of(rig, Role::Operator).await;
    let mut seen = 0;
    for page in scenarios()
        .filter(|line| line.trim().starts_with("Page: "))
        .flat_map(pages)
    {
        let address = page
            .replace("$SUBSCRIPTION", &subscription.to_string())
            .replace("$DEAD_LETTER", &letter)
            .replace("$RESELLER", "acme");
        assert!(!address.contains('$'), "what is {page}?");
        browser.see(&address).await;
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[testkit::test]
async fn a_finding_leads_to_its_section_where_the_runbook_is_read(pool: PgPool) {
    let address = "https://git.example/postrider/docs/runbook.md";
    let rig = Rig::with(pool, |config| {
        config.operator.runbook_url = Some(address.to_owned())
    })
    .await;
    rig.act("/lanes/push/pause", &json!({"note": "a test"}), 200)
        .await;
    let browser = Browser::of(&rig, Role::Viewer).await;
    // Pages share a look at the system for a second.
    let page = eventually("the pause to be found", async || {
        let page = browser.see("/console").await;
        page.contains("The lane push is paused").then_some(page)
    })
    .await;
    let link = format!("Runbook: <a class=\"link\" href=\"{address}#a-lane-is-paused\">a-lane-is-paused</a>");
    assert!(page.contains(&link), "{link}: {page}");
}

async fn dead_letter(pool: &PgPool) -> String {
    let insert = "INSERT INTO dead_letters (lane, reason, fingerprint, detail)
        VALUES ('push', 'MALFORMED', 'malformed', 'a test') RETURNING id::text";
    sqlx::query_scalar(insert).fetch_one(pool).await.unwrap()
}
