//! The page that on-call engineers follow, and a reader who follows it to the letter.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use testkit::PATIENCE;
use uuid::Uuid;

use crate::console::{Visit, Way};

/// How long it may take until all is well.
const UNTIL_WELL: Duration = Duration::from_secs(8 * 60);

const RUNBOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/runbook.md");

/// The commands of one section of `docs/runbook.md`, in their order.
pub(crate) struct Page {
    heading: &'static str,
    blocks: std::vec::IntoIter<Block>,
    variables: BTreeMap<String, String>,
    /// Of the console, whose pages are followed as well.
    visit: Option<Visit>,
}

/// Commands, and where the console shows or does the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Block {
    commands: String,
    ways: Vec<Way>,
}

/// What came of a block of commands: of its last command, as a shell has it.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) commands: String,
    pub(crate) code: i32,
    pub(crate) shown: String,
    pub(crate) said: String,
}

impl Page {
    /// The section under `### heading`.
    pub(crate) fn section(heading: &'static str) -> Self {
        let text = std::fs::read_to_string(RUNBOOK).expect("the runbook can be read");
        let blocks = shell_blocks(&text, heading);
        assert!(
            !blocks.is_empty(),
            "the runbook has no commands under {heading:?}"
        );
        Self {
            heading,
            blocks: blocks.into_iter(),
            variables: BTreeMap::new(),
            visit: None,
        }
    }

    /// Signs in to the console, before anything is out of order: while the database is away it lets in those alone who were there.
    pub(crate) async fn sign_in(&mut self) {
        let at = |name: &str| self.variables[name].as_str();
        self.visit = Some(Visit::of(at("OPERATOR_URL"), at("OPERATOR_KEY")).await);
    }

    /// What the engineer has in the environment, or puts into a variable that the page names.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "so that it can be an identifier as well as a text"
    )]
    pub(crate) fn set(&mut self, variable: &str, value: impl ToString) {
        self.variables.insert(variable.to_owned(), value.to_string());
    }

    /// With the variables of another page.
    pub(crate) fn with_what_is_set_in(mut self, other: &Self) -> Self {
        self.variables.clone_from(&other.variables);
        self.visit.clone_from(&other.visit);
        self
    }

    /// Follows the next block of commands as it stands there, and the pages that do the same.
    pub(crate) async fn follow(&mut self) -> Followed {
        let block = self.next();
        let visit = self
            .visit
            .clone()
            .expect("the engineer has signed in to the console");
        visit.offers(&block.ways, &self.variables).await;
        let followed = self.run(block.commands).await;
        visit.shows(&block.ways, &self.variables).await;
        followed
    }

    fn next(&mut self) -> Block {
        let block = self.blocks.next();
        block.unwrap_or_else(|| panic!("{:?} has no more commands", self.heading))
    }

    async fn run(&self, commands: String) -> Followed {
        let mut shell = Command::new("bash");
        if !commands.contains("postrider status") {
            // That one says by its exit code what it found; every other has to succeed.
            shell.arg("-e");
        }
        shell
            .args(["-u", "-o", "pipefail", "-c", &commands])
            .envs(&self.variables);
        // Not on the test's own thread, on which the services may be.
        let output = tokio::task::spawn_blocking(move || shell.output()).await;
        let output = output.expect("it does not panic").expect("bash can be run");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Followed {
            commands,
            code: output.status.code().unwrap_or(-1),
            shown: text(&output.stdout),
            said: text(&output.stderr),
        }
    }

    /// [`Self::follow`] where every command is to succeed.
    pub(crate) async fn follow_well(&mut self) -> Followed {
        let followed = self.follow().await;
        assert_eq!(followed.code, 0, "{followed:#?}");
        followed
    }

    /// Follows the next block again and again until all is well, as the page says.
    pub(crate) async fn follow_until_well(&mut self) -> Followed {
        let (followed, ways) = self.follow_until(0, "").await;
        let visit = self
            .visit
            .as_ref()
            .expect("the engineer has signed in to the console");
        visit.says_until(&ways, &self.variables, "All is well").await;
        followed
    }

    /// Follows the next block again and again until it says that this is wrong; processes tell of themselves every few seconds.
    pub(crate) async fn follow_until_wrong(&mut self, what: &str) -> Followed {
        self.follow_until(3, what).await.0
    }

    async fn follow_until(&mut self, code: i32, said: &str) -> (Followed, Vec<Way>) {
        let block = self.next();
        // What callers were answered is told for five minutes.
        let patience = if code == 0 { UNTIL_WELL } else { PATIENCE };
        let deadline = Instant::now() + patience;
        loop {
            let followed = self.run(block.commands.clone()).await;
            if followed.code == code && followed.shown.contains(said) {
                return (followed, block.ways);
            }
            assert!(
                Instant::now() < deadline,
                "it never exits {code} and says {said:?}: {followed:#?}"
            );
        }
    }

    /// Nothing of the section was left out.
    pub(crate) fn end(mut self) {
        let left = self.blocks.next();
        assert_eq!(left, None, "{:?} says more than was followed", self.heading);
    }
}

impl Followed {
    /// Checks that one of the lines shown has all of these in it.
    pub(crate) fn shows(&self, parts: &[&str]) -> &Self {
        let shown = self
            .shown
            .lines()
            .any(|line| parts.iter().all(|part| line.contains(part)));
        assert!(shown, "no line with {parts:?} in {self:#?}");
        self
    }

    /// What the last row is about: its first identifier.
    pub(crate) fn last_id(&self) -> Uuid {
        let id = |row: &str| row.split_whitespace().find_map(|word| word.parse().ok());
        let mut ids = self.shown.lines().filter_map(id);
        ids.next_back()
            .unwrap_or_else(|| panic!("no identifier in {self:#?}"))
    }
}

/// The fenced blocks of shell commands between a heading and the next one, each with the pages that are named below it.
fn shell_blocks(text: &str, heading: &str) -> Vec<Block> {
    let wanted = format!("### {heading}");
    let (mut inside, mut block) = (false, None::<String>);
    let mut blocks = Vec::new();
    for line in text.lines() {
        match &mut block {
            Some(_) if line.trim() == "```" => blocks.extend(block.take().map(|commands| Block {
                commands,
                ways: Vec::new(),
            })),
            Some(block) => {
                block.push_str(line.trim_start());
                block.push('\n');
            }
            None if inside && line.trim_start().starts_with("Page: ") => {
                let last: Option<&mut Block> = blocks.last_mut();
                last.expect("a page stands below commands").ways = Way::all(line);
            }
            None if line.starts_with('#') => inside = line == wanted,
            None if inside && line.trim() == "```sh" => block = Some(String::new()),
            None => {}
        }
    }
    blocks
}

#[test]
fn a_section_ends_at_the_next_heading() {
    let text = "### One\n```sh\na\n# not a heading\nb\n```\n\nPage: `/console`.\n\n```sql\nc\n```\n### Two\n```sh\nd\n```\n";
    let block = |commands: &str, ways| Block {
        commands: commands.to_owned(),
        ways,
    };
    assert_eq!(
        shell_blocks(text, "One"),
        [block("a\n# not a heading\nb\n", Way::all("`/console`"))]
    );
    assert_eq!(shell_blocks(text, "Two"), [block("d\n", Vec::new())]);
}
