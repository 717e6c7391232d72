//! How the sink is told to fail.

use std::collections::VecDeque;

/// A point of the dialogue at which a rule can step in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Before the greeting.
    Connect,
    /// `EHLO` or `HELO`.
    Hello,
    /// `AUTH`.
    Auth,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The end of the content.
    Message,
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Answers with this code and text, and keeps nothing.
    Answer(u16, String),
    /// Answers nothing and keeps the connection open.
    Hang,
    /// Closes the connection without an answer.
    Close,
    /// Keeps the mail and closes the connection without an answer: the sender cannot know that it arrived. At any
    /// other stage than [`Stage::Message`] the same as [`Action::Close`].
    KeepAndClose,
    /// Keeps the mail and answers nothing. At any other stage than [`Stage::Message`] the same as [`Action::Hang`].
    KeepAndHang,
}

/// One exception from taking everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where it steps in.
    pub stage: Stage,
    /// Only for mails to this address; `None` for all. Known from [`Stage::Recipient`] on.
    pub recipient: Option<String>,
    /// How often it does; `None` for always.
    pub times: Option<u32>,
    /// What it does.
    pub action: Action,
}

impl Rule {
    /// A rule for every mail, for ever.
    pub fn always(stage: Stage, action: Action) -> Self {
        Self {
            stage,
            recipient: None,
            times: None,
            action,
        }
    }

    /// The same rule for mails to one address only.
    pub fn to(mut self, recipient: &str) -> Self {
        self.recipient = Some(recipient.to_owned());
        self
    }

    /// The same rule, so many times only.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }
}

/// The rules in force; the first that fits is obeyed.
#[derive(Debug, Default)]
pub(crate) struct Script {
    rules: VecDeque<Rule>,
}

impl Script {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        Self { rules: rules.into() }
    }

    /// What to do at a stage of a mail to `recipients`, if anything out of the ordinary.
    pub(crate) fn at(&mut self, stage: Stage, recipients: &[String]) -> Option<Action> {
        let concerns = |rule: &Rule| {
            let named = rule.recipient.as_ref();
            rule.stage == stage
                && rule.times != Some(0)
                && named.is_none_or(|named| recipients.iter().any(|to| to.eq_ignore_ascii_case(named)))
        };
        let rule = self.rules.iter_mut().find(|rule| concerns(rule))?;
        rule.times = rule.times.map(|times| times - 1);
        Some(rule.action.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_is_obeyed_as_often_as_it_says() {
        let busy = Action::Answer(451, "busy".to_owned());
        let mut script = Script::new(vec![
            Rule::always(Stage::Recipient, busy.clone())
                .to("a@example.org")
                .times(1),
            Rule::always(Stage::Recipient, Action::Close).to("b@example.org"),
        ]);
        let (a, b) = (["A@example.org".to_owned()], ["b@example.org".to_owned()]);
        assert_eq!(script.at(Stage::Data, &a), None);
        assert_eq!(script.at(Stage::Recipient, &a), Some(busy));
        assert_eq!(script.at(Stage::Recipient, &a), None);
        assert_eq!(script.at(Stage::Recipient, &b), Some(Action::Close));
        assert_eq!(script.at(Stage::Recipient, &b), Some(Action::Close));
    }
}
