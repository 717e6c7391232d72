//! CPU time and memory of this process, read when someone asks.
//!
//! It deliberately goes past the recorder, whose counters are whole numbers: CPU time needs fractions of a second. Outside Linux
//! there is nothing to read and the metrics are absent.

use std::fmt::Write as _;
use std::fs;

use crate::Metric;

pub(crate) fn append(text: &mut String) {
    if let Some(seconds) = cpu_seconds() {
        family(text, Metric::ProcessCpuSeconds, seconds);
    }
    if let Some(bytes) = resident_bytes() {
        family(text, Metric::ProcessResidentMemory, bytes);
    }
}

fn family(text: &mut String, metric: Metric, value: f64) {
    let definition = metric.definition();
    let (name, kind, help) = (definition.name, definition.kind.name(), definition.help);
    let _ = writeln!(
        text,
        "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
    );
}

fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name, is in parentheses and may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "a clock has around a hundred ticks per second"
    )]
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    Some((user + system) / ticks_per_second)
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}
