//! `postrider history`: what a lane or Web Push did in each of the last minutes, and what had stopped it.

use anyhow::bail;
use chrono::{DateTime, SecondsFormat, Utc};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};

use crate::operator::Common;
use crate::output::{self, Column, Form};
use crate::shown::{self, ShownColumn};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  postrider history push
  postrider history reseller --minutes 10
  postrider history webpush
  postrider history push --pace                         two minutes by the second, with gaps and answers")]
pub(crate) struct HistoryArgs {
    /// Which lane, or Web Push.
    #[arg(value_parser = PossibleValuesParser::new(["push", "reseller", WEBPUSH]))]
    lane: String,
    /// How many minutes, the present one included.
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=60))]
    minutes: u32,
    /// Of the push lane: the last two minutes by the second, with the smallest gap between two sends.
    #[arg(long, conflicts_with = "minutes")]
    pace: bool,
    #[command(flatten)]
    common: Common,
}

const COLUMNS: [ShownColumn; 7] = [
    (Column::time("minute"), "/minute"),
    (Column::whole("accepted"), "/accepted"),
    (Column::whole("delivered"), "/delivered"),
    (Column::whole("failed"), "/failed"),
    (Column::whole("retried"), "/retried"),
    (Column::whole("processes").spare(1), "/processes"),
    (Column::whole("epochs").spare(2), "/epochs"),
];

const OF_RESELLER: [ShownColumn; 9] = [
    (Column::time("minute"), "/minute"),
    (Column::whole("accepted"), "/accepted"),
    (Column::whole("delivered"), "/delivered"),
    (Column::whole("failed"), "/failed"),
    (Column::whole("retried"), "/retried"),
    (Column::whole("put back"), "/putBack"),
    (Column::whole("in flight"), "/inFlight"),
    (Column::whole("slots").spare(2), "/slots"),
    (Column::whole("processes").spare(1), "/processes"),
];

const WEBPUSH: &str = "webpush";

const OF_WEBPUSH: [ShownColumn; 6] = [
    (Column::time("minute"), "/minute"),
    (Column::whole("direct"), "/direct"),
    (Column::whole("stored"), "/stored"),
    (Column::whole("not stored"), "/failed"),
    (Column::whole("connections begun"), "/opened"),
    (Column::whole("processes").spare(1), "/processes"),
];

const PACE: [ShownColumn; 8] = [
    (Column::time("second"), "/second"),
    (Column::whole("sends"), "/sends"),
    (Column::whole("smallest gap in µs"), "/smallestGapMicros"),
    (Column::whole("in flight"), "/inFlight"),
    (Column::whole("2xx"), "/answers/taken"),
    (Column::whole("4xx"), "/answers/refused"),
    (Column::whole("5xx"), "/answers/failed"),
    (Column::whole("no answer"), "/answers/missing"),
];

/// The seconds of the pace in which something was sent or answered, as a list; and what the two minutes were, for people.
async fn pace(args: &HistoryArgs) -> anyhow::Result<()> {
    if args.lane != "push" {
        bail!("only the push lane keeps a pace: postrider history push --pace");
    }
    let api = args.common.operator.connect()?;
    let mut document: Value = api.get("/lanes/push/pace", &()).await?;
    let form = args.common.form();
    if form == Form::Json {
        return output::json(&document);
    }
    let number = |name: &str| document[name].as_u64();
    if let (Some(smallest), Some(gap)) = (number("smallestGapMicros"), number("gapMicros")) {
        let sends = number("sends").unwrap_or_default();
        let verdict = if smallest < gap { "TOO FAST: " } else { "" };
        output::note(format!(
            "{verdict}{sends} sends, the smallest gap {smallest} µs, at least {gap} µs is kept"
        ));
    }
    let seconds = document["seconds"].take();
    let is_of_note = |second: &&Value| {
        let answers = second["answers"]
            .as_object()
            .into_iter()
            .flat_map(|answers| answers.values());
        answers
            .chain([&second["sends"]])
            .any(|count| count.as_u64() > Some(0))
    };
    let items: Vec<_> = seconds
        .as_array()
        .into_iter()
        .flatten()
        .filter(is_of_note)
        .cloned()
        .collect();
    let document = json!({"items": items, "next": null});
    shown::print(&document, form, PACE, "nothing was sent in the last two minutes")
}

/// The outages and pauses of a lane's history, a sentence each.
fn stops(document: &Value) -> Vec<String> {
    let time = |of: &Value| {
        let at = of.as_str()?.parse::<DateTime<Utc>>().ok()?;
        Some(at.to_rfc3339_opts(SecondsFormat::Secs, true))
    };
    let span = |from: &Value, to: &Value| {
        let from = time(from).unwrap_or_default();
        time(to).map_or(format!("since {from}"), |to| format!("from {from} to {to}"))
    };
    let holds = shown::items(&document["holds"]).iter().map(|hold| {
        let probes = hold["probes"].as_u64().unwrap_or_default();
        let (answered, ended) = (&hold["answeredAt"], &hold["endedAt"]);
        // Held until it works again, as stories and findings say it; what had waited is sent after that.
        let until = if answered.is_null() { ended } else { answered };
        let caught_up = match (time(answered), time(ended)) {
            (None, _) => String::new(),
            (Some(_), None) => "; what had waited is being sent".to_owned(),
            (Some(_), Some(at)) => format!("; what had waited was sent by {at}"),
        };
        format!(
            "held {}: {}, {probes} {}, the last failure: {}{caught_up}",
            span(&hold["since"], until),
            shown::cell(hold, "/class"),
            if probes == 1 { "probe" } else { "probes" },
            shown::cell(hold, "/lastAnswer")
        )
    });
    let pauses = shown::items(&document["pauses"]).iter().map(|pause| {
        let by = shown::cell(pause, "/pausedBy");
        let note = match shown::cell(pause, "/note") {
            note if note.is_empty() => note,
            note => format!(": {note}"),
        };
        let until = time(&pause["until"]).map_or(String::new(), |at| format!(" until {at}"));
        format!(
            "paused {}{until} by {by}{note}",
            span(&pause["pausedAt"], &pause["resumedAt"])
        )
    });
    holds.chain(pauses).collect()
}

/// Does what the command says.
pub(crate) async fn run(args: &HistoryArgs) -> anyhow::Result<()> {
    if args.pace {
        return pace(args).await;
    }
    let path = match args.lane.as_str() {
        WEBPUSH => "/webpush/history".to_owned(),
        lane => format!("/lanes/{lane}/history"),
    };
    let query = [("minutes", args.minutes)];
    let document: Value = args.common.operator.connect()?.get(&path, &query).await?;
    let (form, none) = (args.common.form(), "nothing is known of the last minutes");
    match args.lane.as_str() {
        WEBPUSH => shown::print(&document, form, OF_WEBPUSH, none),
        lane => {
            match lane {
                "reseller" => shown::print(&document, form, OF_RESELLER, none)?,
                _ => shown::print(&document, form, COLUMNS, none)?,
            }
            if form.is_for_people() {
                for stop in stops(&document) {
                    output::result(stop)?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stopped_a_lane_is_told_with_its_probes() {
        let document = json!({
            "holds": [
                {"class": "SWRVE", "since": "2026-11-21T10:02:11.5Z", "answeredAt": null, "endedAt": "2026-11-21T10:02:32Z",
                 "probes": 20, "lastAnswer": "503 Service Unavailable"},
                {"class": "SWRVE", "since": "2026-11-21T10:04:00Z", "answeredAt": null, "endedAt": null, "probes": 1,
                 "lastAnswer": "\u{1b}[2Jno answer"},
                {"class": "SWRVE", "since": "2026-11-21T10:06:00Z", "answeredAt": "2026-11-21T10:06:30Z",
                 "endedAt": "2026-11-21T10:06:35Z", "probes": 2, "lastAnswer": "no answer"},
                {"class": "SWRVE", "since": "2026-11-21T10:07:00Z", "answeredAt": "2026-11-21T10:07:30Z", "endedAt": null,
                 "probes": 2, "lastAnswer": "no answer"},
            ],
            "pauses": [
                {"pausedBy": "maria (1)", "pausedAt": "2026-11-21T10:03:00Z", "resumedAt": "2026-11-21T10:03:21.9Z"},
                {"pausedBy": "maria (1)", "note": "incident 17", "pausedAt": "2026-11-21T10:05:00Z", "resumedAt": null},
                {"pausedBy": "maria (1)", "pausedAt": "2026-11-21T10:05:00Z", "resumedAt": null, "until": "2026-11-21T12:00:00Z"},
            ],
        });
        let told = stops(&document);
        assert_eq!(
            told[0],
            "held from 2026-11-21T10:02:11Z to 2026-11-21T10:02:32Z: SWRVE, 20 probes, the last failure: 503 Service Unavailable"
        );
        assert!(
            told[1].starts_with("held since 2026-11-21T10:04:00Z: SWRVE, 1 probe,"),
            "{told:?}"
        );
        assert!(!told[1].contains('\u{1b}'), "{told:?}");
        assert_eq!(
            told[2],
            "held from 2026-11-21T10:06:00Z to 2026-11-21T10:06:30Z: SWRVE, 2 probes, the last failure: no answer; what had waited was \
             sent by 2026-11-21T10:06:35Z"
        );
        assert!(
            told[3].starts_with("held from 2026-11-21T10:07:00Z to 2026-11-21T10:07:30Z")
                && told[3].ends_with("; what had waited is being sent"),
            "{told:?}"
        );
        assert_eq!(
            told[4],
            "paused from 2026-11-21T10:03:00Z to 2026-11-21T10:03:21Z by maria (1)"
        );
        assert_eq!(
            told[5],
            "paused since 2026-11-21T10:05:00Z by maria (1): incident 17"
        );
        assert_eq!(
            told[6],
            "paused since 2026-11-21T10:05:00Z until 2026-11-21T12:00:00Z by maria (1)"
        );
        assert_eq!(stops(&json!({"items": []})), [""; 0]);
    }
}
