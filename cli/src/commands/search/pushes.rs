//! Finding pushes over the operator API.

use chrono::{DateTime, Utc};
use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde_json::Value;

use super::columns::{LATE_PUSHES, PUSHES};
use super::{
    STATUSES, Stretch, joined, note_late, note_waiting, nothing, print, query, seconds, statuses, upper,
    written,
};
use crate::age::Age;
use crate::operator::{Common, OperatorArgs};
use crate::output::{self, Form};
use crate::shown;

/// Which pushes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider push list --device 463B3209 --newer-than 1d         did the device get its push?
  postrider push list --status RETRY                            what is tried again, due longest first
  postrider push list --waiting                                 all that wait, the oldest first
  postrider push list --prototype Hello --status FAILED,GIVEN_UP --newer-than 2h
  postrider push list --reason CANCELLED                        what an operator has cancelled
  postrider push list --status FAILED,GIVEN_UP --ended-since 1h
  postrider push list --late 5m --ended-since 1d                what ended more than 5 minutes after it was accepted")]
pub(crate) struct PushListArgs {
    /// For this device: the push key that they were handed in with; it is in no answer and no record.
    #[arg(long, value_name = "PUSH_KEY", value_parser = NonEmptyStringValueParser::new())]
    device: Option<String>,
    /// Of this message prototype.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    prototype: Option<String>,
    /// For devices of this platform.
    #[arg(long, value_parser = PossibleValuesParser::new(["IOS", "ANDROID"]), ignore_case = true)]
    platform: Option<String>,
    /// In these statuses, such as FAILED,GIVEN_UP; may be repeated.
    #[arg(long, value_parser = PossibleValuesParser::new(STATUSES), ignore_case = true, value_delimiter = ',')]
    status: Vec<String>,
    /// All that wait, the oldest first, in whichever status.
    #[arg(long, conflicts_with = "status")]
    waiting: bool,
    /// Moved by hand for this reason.
    #[arg(long, value_parser = PossibleValuesParser::new(["REPLAYED", "CANCELLED"]), ignore_case = true)]
    reason: Option<String>,
    /// Sent, failed, given up or cancelled at this time or later, whenever it was accepted; a time, or an age such as 3d.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_since: Option<DateTime<Utc>>,
    /// Sent, failed, given up or cancelled before this time; a time, or an age such as 10m.
    #[arg(long, value_name = "TIME", value_parser = crate::age::time_or_age)]
    ended_until: Option<DateTime<Utc>>,
    /// Ended more than so long after it was accepted, or after its dead letter was last replayed, such as 5m.
    #[arg(long, value_name = "AGE")]
    late: Option<Age>,
    #[command(flatten)]
    stretch: Stretch,
    #[command(flatten)]
    common: Common,
}

/// Lists pushes.
pub(crate) async fn pushes(args: &PushListArgs) -> anyhow::Result<()> {
    let mut query = query([
        ("device", args.device.clone()),
        ("prototype", args.prototype.clone()),
        ("platform", upper(args.platform.as_ref())),
        ("status", joined(&statuses(&args.status, args.waiting))),
        ("reason", upper(args.reason.as_ref())),
        ("endedSince", args.ended_since.map(written)),
        ("endedUntil", args.ended_until.map(written)),
        ("lateBySeconds", seconds(args.late)),
    ]);
    args.stretch.add_to(&mut query);
    let api = args.common.operator.connect()?;
    let pages = args.stretch.part.of(&api, "/pushes", query);
    let (form, what) = (args.common.form(), "push");
    let document = if args.late.is_some() {
        print(pages, form, LATE_PUSHES, what).await?
    } else {
        print(pages, form, PUSHES, what).await?
    };
    let found = shown::items(&document["items"]);
    let is_by_end = args.ended_since.is_some() || args.ended_until.is_some();
    note_late(args.late, (&args.stretch, is_by_end), found);
    if found.iter().any(|push| !push["pausedBy"].is_null()) {
        output::note(
            "an operator has paused the lane, for which these wait; `postrider pauses` says who, and why",
        );
    }
    if found.iter().any(|push| push["held"] == true) {
        output::note(
            "Swrve is out of order and the lane held, for which these wait, whenever they are due; they are sent by themselves when Swrve works \
             again, and `postrider status` says since when it does not",
        );
    }
    let elsewhere = match args.status.as_slice() {
        [one] => waits_elsewhere(&one.to_uppercase()),
        _ => None,
    };
    if let (true, Some(elsewhere)) = (found.is_empty(), elsewhere) {
        output::note(elsewhere);
    }
    note_waiting(&document, &args.status);
    Ok(())
}

/// Where else a push may wait than in a status in which none does.
fn waits_elsewhere(status: &str) -> Option<&'static str> {
    match status {
        "RETRY" | "PENDING" => Some(
            "while the lane is held or paused, what waits may be in the queue: `postrider push list --status IN_MEMORY` lists it",
        ),
        "IN_MEMORY" => Some(
            "while the lane is paused, what is in the queue soon becomes PENDING: `postrider push list --status PENDING` lists it",
        ),
        _ => None,
    }
}

/// The pushes of a device, the newest first: the latest one's identifier, if there is just this one, else a list of them.
pub(crate) async fn pushes_of(
    operator: &OperatorArgs,
    device: &str,
    form: Form,
) -> anyhow::Result<Option<String>> {
    let query = query([("device", Some(device.to_owned()))]);
    let document: Value = operator.connect()?.get("/pushes", &query).await?;
    if let [one] = shown::items(&document["items"])
        && document["next"].is_null()
    {
        return Ok(one["id"].as_str().map(str::to_owned));
    }
    if form == Form::Json || shown::items(&document["items"]).is_empty() {
        shown::print(&document, form, PUSHES, &nothing(&document, "push"))?;
        return Ok(None);
    }
    // `explain` has no -o wide, which the line below a list that is too narrow would name.
    output::result(shown::list(&document["items"], PUSHES))?;
    shown::note_next(&document);
    output::note(
        "`postrider explain PUSH` tells the story of one; `postrider push list --device` with `-o wide` has every column",
    );
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_names_the_other_status_in_which_pushes_wait() {
        for (asked, other) in [
            ("PENDING", "IN_MEMORY"),
            ("RETRY", "IN_MEMORY"),
            ("IN_MEMORY", "PENDING"),
        ] {
            let hint = waits_elsewhere(asked).unwrap();
            assert!(
                hint.contains(&format!("`postrider push list --status {other}`")),
                "{hint}"
            );
        }
        assert_eq!(waits_elsewhere("SENT"), None);
    }
}
