//! CPU time and memory of processes, as Linux tells them.

use std::fs;
use std::ops::AddAssign;

/// Seconds of CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuTime {
    pub(crate) user: f64,
    /// In the kernel, on behalf of the process.
    pub(crate) system: f64,
}

impl CpuTime {
    pub(crate) fn total(self) -> f64 {
        self.user + self.system
    }

    /// What was used since `before`; nothing is used up again.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: (self.user - before.user).max(0.0),
            system: (self.system - before.system).max(0.0),
        }
    }
}

impl AddAssign for CpuTime {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// What Linux says of a process in `/proc/…/stat`, in clock ticks.
#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    own: CpuTime,
    /// Children that have ended and were waited for.
    ended_children: CpuTime,
}

impl Stat {
    fn read(path: &str) -> Option<Self> {
        Self::parse(&fs::read_to_string(path).ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field, the program's name, is in parentheses and may hold spaces and parentheses itself.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            own: CpuTime {
                user: ticks(11)?,
                system: ticks(12)?,
            },
            ended_children: CpuTime {
                user: ticks(13)?,
                system: ticks(14)?,
            },
        })
    }
}

/// CPU time that a process has used, all its threads; nothing when it is gone.
pub(crate) fn of(pid: u32) -> CpuTime {
    let stat = Stat::read(&format!("/proc/{pid}/stat"));
    in_seconds(stat.map(|stat| stat.own).unwrap_or_default())
}

/// CPU time of a process and of all its children, the ended ones included.
pub(crate) fn of_family(parent: u32) -> CpuTime {
    let mut sum = CpuTime::default();
    for pid in all_processes() {
        let Some(stat) = Stat::read(&format!("/proc/{pid}/stat")) else {
            continue;
        };
        if pid == parent {
            sum += stat.own;
            sum += stat.ended_children;
        } else if stat.parent == parent {
            sum += stat.own;
        }
    }
    in_seconds(sum)
}

/// CPU time of the threads of this process with this name.
pub(crate) fn of_own_threads(name: &str) -> CpuTime {
    let mut sum = CpuTime::default();
    for thread in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let path = thread.path();
        let is_meant = fs::read_to_string(path.join("comm")).is_ok_and(|found| found.trim() == name);
        if let Some(stat) = Stat::read(&path.join("stat").to_string_lossy()).filter(|_| is_meant) {
            sum += stat.own;
        }
    }
    in_seconds(sum)
}

/// CPU time that the whole machine has used since its start, everything but idling; what interrupts took is in the
/// kernel's.
pub(crate) fn of_machine() -> CpuTime {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let sum = |indices: &[usize]| indices.iter().filter_map(|index| fields.get(*index)).sum();
    // user nice system idle iowait irq softirq steal; what follows is contained in the first two.
    in_seconds(CpuTime {
        user: sum(&[0, 1]),
        system: sum(&[2, 5, 6, 7]),
    })
}

pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    Stat::read(&format!("/proc/{pid}/stat")).map(|stat| stat.parent)
}

/// The ids of all processes that run now.
pub(crate) fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn in_seconds(ticks: CpuTime) -> CpuTime {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a clock has around a hundred ticks per second"
    )]
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    CpuTime {
        user: ticks.user / per_second,
        system: ticks.system / per_second,
    }
}

/// Memory of a process in megabytes (10^6 bytes).
#[derive(Debug, Clone, Copy, PartialEq)]
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
        let stat = Stat::parse("7 (a b) c)) S 4 2 3 4 5 6 7 8 9 10 30 12 13 14 15").unwrap();
        assert_eq!(stat.parent, 4);
        assert_eq!((stat.own.user, stat.own.system), (30.0, 12.0));
        assert_eq!(
            (stat.ended_children.user, stat.ended_children.system),
            (13.0, 14.0)
        );
        assert_eq!(Stat::parse("nothing"), None);
    }

    #[test]
    fn this_process_is_found_with_its_parent() {
        let own = std::process::id();
        assert!(all_processes().any(|pid| pid == own));
        let parent = parent_of(own).unwrap();
        // In this order: time goes on between the two.
        let alone = of(own).total();
        assert!(of_family(parent).total() >= alone);
    }

    #[test]
    fn time_is_never_used_less_than_nothing() {
        let at = |user, system| CpuTime { user, system };
        assert_eq!(at(3.0, 1.0).since(at(1.0, 2.0)), at(2.0, 0.0));
    }

    #[test]
    fn memory_is_told_in_megabytes() {
        let status = "Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1000 kB\n";
        assert_eq!(megabytes_in(status, "VmRSS:"), Some(1.024));
        assert_eq!(megabytes_in(status, "VmHWM:"), Some(2.048));
        assert_eq!(megabytes_in(status, "VmSwap:"), None);
    }
}
