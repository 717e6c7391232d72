//! CPU time by who used it: each service, the servers, the load generator, and the rest of the machine.

use crate::cpu::{self, CpuTime};

use super::Rig;

/// The thread of this process that stands in for resellers' endpoints.
pub(crate) const RECEIVER_THREAD: &str = "receiver";

/// Everything on the machine.
pub(crate) const MACHINE: &str = "whole machine";
/// What belongs to no process that is told apart: the threads of the kernel, interrupts, other programs.
const REST: &str = "kernel and others";

/// Seconds of CPU time by who used them, those of a kind together. The last one is the whole machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Usage(Vec<(String, CpuTime)>);

impl Usage {
    pub(crate) fn entries(&self) -> &[(String, CpuTime)] {
        &self.0
    }

    pub(crate) fn of(&self, who: &str) -> CpuTime {
        let found = self.0.iter().find(|(name, _)| name == who);
        found.map(|(_, time)| *time).unwrap_or_default()
    }

    /// All of Postrider's own processes.
    pub(crate) fn of_services(&self) -> CpuTime {
        const SERVICES: [&str; 5] = [
            "ingest-api",
            "dispatcher",
            "retry-worker",
            "reseller-portal",
            "operator-api",
        ];
        let mut sum = CpuTime::default();
        for service in SERVICES {
            sum += self.of(service);
        }
        sum
    }

    fn add(&mut self, who: &str, time: CpuTime) {
        match self.0.iter_mut().find(|(name, _)| name == who) {
            Some((_, sum)) => *sum += time,
            None => self.0.push((who.to_owned(), time)),
        }
    }

    /// What was used since `before`, which is of the same processes.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let mut used = Self::default();
        let mut known = CpuTime::default();
        for (who, time) in &self.0 {
            let time = time.since(before.of(who));
            if who == MACHINE {
                used.add(REST, time.since(known));
            } else {
                known += time;
            }
            used.add(who, time);
        }
        used
    }
}

impl Rig {
    /// What everybody has used up to now.
    pub(crate) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for process in self.running() {
            usage.add(&process.name, cpu::of(process.pid));
        }
        if let Some(pid) = self.servers.postgres {
            usage.add("PostgreSQL", cpu::of_family(pid));
        }
        if let Some(pid) = self.servers.rabbitmq {
            usage.add("RabbitMQ", cpu::of_family(pid));
        }
        let receiver = cpu::of_own_threads(RECEIVER_THREAD);
        usage.add("load generator", cpu::of(std::process::id()).since(receiver));
        usage.add("receiver", receiver);
        usage.add(MACHINE, cpu::of_machine());
        usage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(of: &[(&str, f64)]) -> Usage {
        let mut usage = Usage::default();
        for (who, user) in of {
            let time = CpuTime {
                user: *user,
                system: 0.0,
            };
            usage.add(who, time);
        }
        usage
    }

    #[test]
    fn replicas_count_together_and_what_no_process_used_is_the_rest() {
        let before = usage(&[("dispatcher", 1.0), ("dispatcher", 1.0), (MACHINE, 10.0)]);
        let after = usage(&[("dispatcher", 2.0), ("dispatcher", 3.0), (MACHINE, 17.0)]);
        let used = after.since(&before);
        assert_eq!(used.of("dispatcher").total(), 3.0);
        assert_eq!(used.of(REST).total(), 4.0);
        assert_eq!(used.of(MACHINE).total(), 7.0);
        assert_eq!(used.of_services().total(), 3.0);
        assert_eq!(used.of("unknown").total(), 0.0);
    }
}
