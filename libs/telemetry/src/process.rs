//! CPU time, memory, file descriptors and age of this process, read when someone asks.
//!
//! It deliberately goes past the recorder, whose counters are whole numbers: CPU time needs fractions of a second. Outside Linux
//! there is nothing to read and the metrics are absent.

use std::fmt::Write as _;
use std::fs;
use std::sync::OnceLock;

use crate::Metric;

pub(crate) fn append(text: &mut String) {
    if let Some(seconds) = cpu_seconds() {
        family(text, Metric::ProcessCpuSeconds, seconds);
    }
    if let Some(bytes) = resident_bytes() {
        family(text, Metric::ProcessResidentMemory, bytes);
    }
    if let Some(time) = start_time() {
        family(text, Metric::ProcessStartTime, time);
    }
    if let Some(count) = open_files() {
        family(text, Metric::ProcessOpenFiles, count);
    }
    if let Some(count) = max_files() {
        family(text, Metric::ProcessMaxFiles, count);
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

/// A field of `/proc/self/stat`, counted as its manual page does from 1. The second one is the program's name.
fn stat_field(number: usize) -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name is in parentheses and may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(number - 3)?.parse().ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a clock has around a hundred ticks per second"
)]
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

fn cpu_seconds() -> Option<f64> {
    Some((stat_field(14)? + stat_field(15)?) / ticks_per_second())
}

/// The start is counted from the start of the machine, whose time the kernel reckons anew with each adjustment of the clock.
/// Taken once, so that nobody sees a restart where there was none.
fn start_time() -> Option<f64> {
    static START: OnceLock<Option<f64>> = OnceLock::new();
    *START.get_or_init(reckon_start_time)
}

fn reckon_start_time() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: f64 = line.trim().parse().ok()?;
    Some(booted + stat_field(22)? / ticks_per_second())
}

/// Without the one that reading them takes.
fn open_files() -> Option<f64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(f64::from(u32::try_from(open).ok()?) - 1.0)
}

/// Nothing when there is no limit.
fn max_files() -> Option<f64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}
