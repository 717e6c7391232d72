//! CPU time, memory, file descriptors, age and network traffic of this process, read when someone asks.
//!
//! It deliberately goes past the recorder, whose counters are whole numbers: CPU time needs fractions of a second. Outside Linux
//! there is nothing to read and the metrics are absent. The kernel counts bytes of the network for a network namespace and not for
//! a process: in a container, or whatever else has a namespace of its own, they are those of the process.

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
    for (metric, direction) in [
        (Metric::ProcessNetworkReceived, Direction::In),
        (Metric::ProcessNetworkSent, Direction::Out),
    ] {
        if let Some(bytes) = network_bytes(direction) {
            family(text, metric, bytes);
        }
    }
}

/// The bytes of IP packets in this process's network namespace, its own machine included.
fn network_bytes(direction: Direction) -> Option<f64> {
    let (v4, v6) = match direction {
        Direction::In => ("InOctets", "Ip6InOctets"),
        Direction::Out => ("OutOctets", "Ip6OutOctets"),
    };
    let netstat = fs::read_to_string("/proc/self/net/netstat").ok()?;
    // Without IPv6 there is no such file.
    let snmp6 = fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default();
    Some(ip_extended(&netstat, v4)? + listed(&snmp6, v6).unwrap_or(0.0))
}

#[derive(Clone, Copy)]
enum Direction {
    In,
    Out,
}

/// A value of `IpExt`, whose names stand in one line and whose values in the next.
fn ip_extended(netstat: &str, name: &str) -> Option<f64> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut pairs = names
        .split_ascii_whitespace()
        .zip(values.split_ascii_whitespace());
    pairs.find(|(known, _)| *known == name)?.1.parse().ok()
}

/// A value of a file with a name and a value in each line.
fn listed(text: &str, name: &str) -> Option<f64> {
    let mut lines = text
        .lines()
        .filter_map(|line| line.split_once(char::is_whitespace));
    lines.find(|(known, _)| *known == name)?.1.trim().parse().ok()
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

/// The start is counted from the start of the machine, whose time the kernel reckons again with each adjustment of the clock.
/// Taken once, so that no reader sees a restart where there was none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_is_read_by_name_of_both_versions_of_ip() {
        let netstat = "TcpExt: SyncookiesSent InOctets\nTcpExt: 1 2\n\
                       IpExt: InNoRoutes InOctets OutOctets\nIpExt: 0 2481346920 2255584085\n";
        assert_eq!(ip_extended(netstat, "InOctets"), Some(2_481_346_920.0));
        assert_eq!(ip_extended(netstat, "OutOctets"), Some(2_255_584_085.0));
        assert_eq!(ip_extended("TcpExt: InOctets\nTcpExt: 1\n", "InOctets"), None);
        let snmp6 = "Ip6InReceives                   \t3\nIp6InOctets                     \t256\n";
        assert_eq!(listed(snmp6, "Ip6InOctets"), Some(256.0));
        assert_eq!(listed("", "Ip6InOctets"), None);
    }
}
