// SPDX-License-Identifier: GPL-2.0-only
//! How the kernel lets some numbers grow with the number of CPUs: its
//! `tunable_scaling`. Pure.

/// The numbers that are scaled.
pub const SCALED: [&str; 3] = [
    "sched_latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
];

/// CPUs that the defaults in intf.h are scaled for. More change nothing.
pub const TABLE_CPUS: usize = 8;

/// What a nanosecond is divided into before a number is scaled: every factor of
/// up to 1024 CPUs divides it, so nothing is lost on the way to another scaling
/// and back.
pub const PARTS: u64 = 27_720;

/// CPUs beyond which `log` and `linear` stop to grow.
const MOST_CPUS: usize = 8;

/// The factor that numbers grow by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// They do not grow.
    None,
    /// By 1 + log2 of the CPUs, of which at most 8 count: the kernel's default.
    Log,
    /// By the CPUs, of which at most 8 count.
    Linear,
    /// By 1 + log2 of the CPUs, as 2.6.32 did it.
    LogUncapped,
}

impl Scaling {
    /// All of them.
    pub const ALL: [Scaling; 4] = [
        Scaling::None,
        Scaling::Log,
        Scaling::Linear,
        Scaling::LogUncapped,
    ];

    /// What a person writes after `tunable_scaling=`.
    pub fn name(self) -> &'static str {
        match self {
            Scaling::None => "none",
            Scaling::Log => "log",
            Scaling::Linear => "linear",
            Scaling::LogUncapped => "log-uncapped",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Scaling> {
        Scaling::ALL.into_iter().find(|s| s.name() == name)
    }

    /// What it does.
    pub fn help(self) -> &'static str {
        match self {
            Scaling::None => "as they are on one CPU",
            Scaling::Log => "times 1 + log2(CPUs), of which at most 8 count; the default",
            Scaling::Linear => "times the CPUs, of which at most 8 count",
            Scaling::LogUncapped => "times 1 + log2(CPUs), as 2.6.32 had it",
        }
    }

    /// The factor for a number of online CPUs; at least 1.
    pub fn factor(self, cpus: usize) -> u64 {
        let cpus = cpus.max(1);
        let few = cpus.min(MOST_CPUS);
        match self {
            Scaling::None => 1,
            Scaling::Log => 1 + u64::from(few.ilog2()),
            Scaling::Linear => few as u64,
            Scaling::LogUncapped => 1 + u64::from(cpus.ilog2()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_the_kernels() {
        let of = |cpus| Scaling::ALL.map(|s| s.factor(cpus));
        assert_eq!(of(0), [1, 1, 1, 1]);
        assert_eq!(of(1), [1, 1, 1, 1]);
        assert_eq!(of(2), [1, 2, 2, 2]);
        assert_eq!(of(3), [1, 2, 3, 2]);
        assert_eq!(of(4), [1, 3, 4, 3]);
        assert_eq!(of(7), [1, 3, 7, 3]);
        assert_eq!(of(8), [1, 4, 8, 4]);
        assert_eq!(of(64), [1, 4, 8, 7]);
        assert_eq!(of(1024), [1, 4, 8, 11]);
    }

    #[test]
    fn every_factor_divides_a_nanosecond() {
        let factors = (1..=1024).flat_map(|cpus| Scaling::ALL.map(|s| s.factor(cpus)));
        assert!(factors.into_iter().all(|f| PARTS.is_multiple_of(f)));
    }

    #[test]
    fn names_are_found_again() {
        for scaling in Scaling::ALL {
            assert_eq!(Scaling::named(scaling.name()), Some(scaling));
        }
        assert_eq!(Scaling::named("cubic"), None);
    }
}
