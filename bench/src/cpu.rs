//! CPU time and memory of processes, as Linux tells them.

use std::fs;
use std::time::Duration;

/// CPU time that a process has used, user and system, all threads; zero when it is gone.
pub(crate) fn time_of(pid: u32) -> Duration {
    let ticks = fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| ticks_in(&stat));
    #[expect(
        clippy::cast_precision_loss,
        reason = "a clock has around a hundred ticks per second"
    )]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Duration::from_secs_f64(ticks.unwrap_or(0.0) / per_second)
}

fn ticks_in(stat: &str) -> Option<f64> {
    // The second field, the program's name, is in parentheses and may hold spaces and parentheses itself.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// CPU time that the whole machine has used since its start, everything but idling.
pub(crate) fn time_of_machine() -> Duration {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; what follows is contained in the first two.
    let busy: f64 = fields
        .iter()
        .take(8)
        .enumerate()
        .filter(|(index, _)| !matches!(index, 3 | 4))
        .map(|(_, ticks)| ticks)
        .sum();
    #[expect(
        clippy::cast_precision_loss,
        reason = "a clock has around a hundred ticks per second"
    )]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Duration::from_secs_f64(busy / per_second)
}

/// Memory of a process in megabytes (10^6 bytes).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) resident: f64,
    /// Most that was ever resident.
    pub(crate) peak: f64,
}

/// Memory of a process; `None` when it is gone.
pub(crate) fn memory_of(pid: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Memory {
        resident: megabytes_in(&status, "VmRSS:")?,
        peak: megabytes_in(&status, "VmHWM:")?,
    })
}

fn megabytes_in(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a b) c)) S 1 2 3 4 5 6 7 8 9 10 30 12 13 14";
        assert_eq!(ticks_in(stat), Some(42.0));
        assert_eq!(ticks_in("nothing"), None);
    }

    #[test]
    fn memory_is_told_in_megabytes() {
        let status = "Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n";
        assert_eq!(megabytes_in(status, "VmRSS:"), Some(1.024));
        assert_eq!(megabytes_in(status, "VmHWM:"), Some(2.048));
        assert_eq!(megabytes_in(status, "VmSwap:"), None);
    }
}
