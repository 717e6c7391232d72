//! How long answers take: fixed, or drawn from the response times once measured at Swrve.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The measured distribution: the share of answers that took no longer than so many milliseconds.
const MEASURED: [(f64, f64); 8] = [
    (0.0, 233.0),
    (0.50, 983.0),
    (0.75, 2_513.0),
    (0.95, 3_883.0),
    (0.98, 4_510.0),
    (0.99, 5_956.0),
    (0.999, 7_688.0),
    (1.0, 7_701.0),
];

/// How long an accepted push takes to be answered. Its text form is `seed`, `about:MILLIS` or `fixed:MILLIS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseTime {
    /// Always the same.
    Fixed(Duration),
    /// Drawn from the same table, stretched or pressed so that it takes this long on average.
    About(Duration),
    /// Drawn from the table of Swrve's response times in the seed of the push lane: from 233 ms over a median of 983 ms
    /// to 7,701 ms.
    Seed,
}

/// A text that is no [`ResponseTime`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no response time: write \"seed\", \"about:MILLIS\" or \"fixed:MILLIS\"")]
pub struct ResponseTimeSyntax {
    text: String,
}

impl ResponseTime {
    /// The response time below which a share of `quantile` (from 0 up to 1) of the answers lies.
    pub fn at_quantile(self, quantile: f64) -> Duration {
        match self {
            Self::Fixed(time) => time,
            Self::About(average) => {
                average.mul_f64(measured_millis(quantile.clamp(0.0, 1.0)) / measured_average())
            }
            Self::Seed => Duration::from_secs_f64(measured_millis(quantile.clamp(0.0, 1.0)) / 1_000.0),
        }
    }
}

/// Linear between the measured points.
fn measured_millis(quantile: f64) -> f64 {
    for pair in MEASURED.windows(2) {
        let [(low, from), (high, to)] = [pair[0], pair[1]];
        if quantile <= high {
            return from + (to - from) * (quantile - low) / (high - low);
        }
    }
    MEASURED[MEASURED.len() - 1].1
}

/// The average of the times between the measured points, in milliseconds.
fn measured_average() -> f64 {
    let spans = MEASURED.windows(2).map(|pair| {
        let [(low, from), (high, to)] = [pair[0], pair[1]];
        (high - low) * f64::midpoint(from, to)
    });
    spans.sum()
}

impl FromStr for ResponseTime {
    type Err = ResponseTimeSyntax;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "seed" {
            return Ok(Self::Seed);
        }
        let millis = |kind: &str| text.strip_prefix(kind)?.parse().ok().map(Duration::from_millis);
        let about = millis("about:").map(Self::About);
        about
            .or_else(|| millis("fixed:").map(Self::Fixed))
            .ok_or_else(|| ResponseTimeSyntax {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for ResponseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "fixed:{}", time.as_millis()),
            Self::About(average) => write!(f, "about:{}", average.as_millis()),
            Self::Seed => f.write_str("seed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_about_an_average_have_it_and_the_measured_shape() {
        let about = ResponseTime::About(Duration::from_millis(2_000));
        let drawn = (0..10_000_u32).map(|draw| {
            about
                .at_quantile((f64::from(draw) + 0.5) / 10_000.0)
                .as_secs_f64()
        });
        let average = drawn.sum::<f64>() / 10_000.0;
        assert!((average - 2.0).abs() < 0.01, "{average}");
        let factor = |quantile: f64| {
            about.at_quantile(quantile).as_secs_f64() / ResponseTime::Seed.at_quantile(quantile).as_secs_f64()
        };
        assert!((factor(0.1) - factor(0.99)).abs() < 1e-6);
        assert_eq!("about:2000".parse(), Ok(about));
        assert_eq!(about.to_string(), "about:2000");
    }

    #[test]
    fn quantiles_are_those_of_the_measured_table() {
        for (quantile, millis) in [
            (0.0, 233),
            (0.25, 608),
            (0.5, 983),
            (0.75, 2_513),
            (0.95, 3_883),
            (0.98, 4_510),
            (0.99, 5_956),
        ] {
            assert_eq!(
                ResponseTime::Seed.at_quantile(quantile).as_millis(),
                millis,
                "{quantile}"
            );
        }
        assert_eq!(ResponseTime::Seed.at_quantile(0.999).as_millis(), 7_688);
        assert_eq!(ResponseTime::Seed.at_quantile(1.0).as_millis(), 7_701);
        assert_eq!(
            ResponseTime::Fixed(Duration::from_millis(7)).at_quantile(0.9),
            Duration::from_millis(7)
        );
    }

    #[test]
    fn text_forms_round_trip() {
        for text in ["seed", "fixed:0", "fixed:1500"] {
            assert_eq!(text.parse::<ResponseTime>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_ways_to_write_it() {
        for text in ["", "fixed", "fixed:", "fixed:-1", "fixed:1s", "Seed"] {
            let error = text.parse::<ResponseTime>().unwrap_err().to_string();
            assert!(
                error.contains("fixed:MILLIS") && error.contains("seed"),
                "{error}"
            );
        }
    }
}
