//! How fast something went, and what it cost.

use std::time::Duration;

/// The processor time of this process and of the server's; none where the system does not say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    own: Option<Duration>,
    server: Option<(ServerProcess, Duration)>,
}

impl Cpu {
    pub(super) fn now(server: Option<ServerProcess>) -> Cpu {
        let own = std::fs::read_to_string("/proc/self/stat").ok();
        Cpu {
            own: own.and_then(|stat| Stat::of(&stat)).map(|stat| stat.used),
            server: server.and_then(|server| Some((server, server.used()?))),
        }
    }

    /// What this process has used since then.
    fn own_since(self) -> Option<Duration> {
        Cpu::now(None).own?.checked_sub(self.own?)
    }

    /// What the server has used since then.
    fn server_since(self) -> Option<Duration> {
        let (server, before) = self.server?;
        server.used()?.checked_sub(before)
    }
}

/// What the system says of a process, in hundredths of a second where it is time.
struct Stat {
    parent: u32,
    used: Duration,
    /// By children that have ended.
    by_children: Duration,
}

impl Stat {
    /// The second field, the name in brackets, may have spaces; the parent is the fourth, user and
    /// system time are the 14th and 15th, and those of ended children the two after them.
    fn of(stat: &str) -> Option<Stat> {
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let hundredths = |at| Some(Duration::from_millis((number(at)? + number(at + 1)?) * 10));
        let parent = u32::try_from(number(1)?).ok()?;
        Some(Stat { parent, used: hundredths(11)?, by_children: hundredths(13)? })
    }

    fn of_process(process: u32) -> Option<Stat> {
        Stat::of(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }
}

/// A server that is one process, or one with children, on this host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ServerProcess(u32);

impl ServerProcess {
    /// The parent of a process that serves one connection; none if that is on another host.
    pub(super) fn of_backend(backend: i32) -> Option<ServerProcess> {
        let backend = u32::try_from(backend).ok()?;
        let name = std::fs::read_to_string(format!("/proc/{backend}/comm")).ok()?;
        let parent = Stat::of_process(backend)?.parent;
        (name.trim() == "postgres").then_some(ServerProcess(parent))
    }

    /// By the file in which a server wrote its number; none if that is on another host, or not
    /// for us to read.
    pub(super) fn of_file(file: &str) -> Option<ServerProcess> {
        let process = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
        ["mariadbd", "mysqld"].contains(&name.trim()).then_some(ServerProcess(process))
    }

    /// The time of the process, of its children, and of those that have ended.
    fn used(self) -> Option<Duration> {
        let own = Stat::of_process(self.0)?;
        let processes = std::fs::read_dir("/proc").ok()?.filter_map(Result::ok);
        let processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let children = processes.filter_map(Stat::of_process).filter(|stat| stat.parent == self.0);
        Some(own.used + own.by_children + children.map(|stat| stat.used).sum::<Duration>())
    }
}

/// The resident memory of this process, in megabytes; none where the system does not say.
pub(super) fn resident_mb() -> Option<f64> {
    status_mb("VmRSS:")
}

fn status_mb(name: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

/// The most memory that this process has had at once, in megabytes.
pub(super) fn peak_mb() -> Option<f64> {
    status_mb("VmHWM:")
}

/// How fast something went, and what it cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) per_s: f64,
    /// Microseconds of processor time for each, on all cores together.
    pub(super) cpu_us: Option<f64>,
    /// The same of the server's processes, where they are on this host.
    pub(super) server_us: Option<f64>,
}

impl Pace {
    /// So many in so much time, from a moment at which the process had used so much.
    pub(super) fn of(count: usize, elapsed: Duration, before: Cpu) -> Pace {
        let count = count as f64;
        let each = |used: Duration| used.as_secs_f64() * 1e6 / count.max(1.0);
        Pace {
            per_s: count / elapsed.as_secs_f64().max(1e-9),
            cpu_us: before.own_since().map(each),
            server_us: before.server_since().map(each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_a_name_with_spaces() {
        let stat = Stat::of("12 (a (b) c) S 7 2 3 4 5 6 7 8 9 10 150 50 30 10 20").unwrap();
        assert_eq!((stat.parent, stat.used), (7, Duration::from_secs(2)));
        assert_eq!(stat.by_children, Duration::from_millis(400));
        assert!(Stat::of("garbage").is_none());
    }

    #[test]
    fn this_process_has_memory() {
        assert!(resident_mb().is_none_or(|mb| mb > 0.5));
    }
}
