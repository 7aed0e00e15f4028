//! How fast something went, and what it cost.

use std::time::Duration;

/// The processor time of this process; none where the system does not say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu(Option<Duration>);

impl Cpu {
    pub(super) fn now() -> Cpu {
        Cpu(std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| cpu_of(&stat)))
    }

    /// What was used since then.
    fn since(self) -> Option<Duration> {
        Cpu::now().0?.checked_sub(self.0?)
    }
}

/// User and system time are the 14th and 15th field, in hundredths of a second; the second field,
/// the name in brackets, may have spaces.
fn cpu_of(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + system) * 10))
}

/// The resident memory of this process, in megabytes; none where the system does not say.
pub(super) fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// How fast something went, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_s: f64,
    /// Microseconds of processor time for each, on all cores together.
    pub(super) cpu_us: Option<f64>,
}

impl Pace {
    /// So many in so much time, from a moment at which the process had used so much.
    pub(super) fn of(count: usize, elapsed: Duration, before: Cpu) -> Pace {
        let count = count as f64;
        Pace {
            per_s: count / elapsed.as_secs_f64().max(1e-9),
            cpu_us: before.since().map(|used| used.as_secs_f64() * 1e6 / count.max(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_a_name_with_spaces() {
        let stat = "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(2)));
        assert_eq!(cpu_of("garbage"), None);
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_mb().is_none_or(|mb| mb > 0.5));
    }
}
