// SPDX-License-Identifier: GPL-2.0-only
//! What a setting allows though it is hardly meant, each with the reason. Pure.

use crate::settings::Settings;
use crate::tables::{feature_index, show_ns, tunable_index};

/// Switches that do nothing unless one of the others is on.
const NEEDS: [(&str, &[&str]); 14] = [
    ("WA_IDLE", &["AFFINE_WAKEUPS"]),
    ("WA_WEIGHT", &["AFFINE_WAKEUPS"]),
    ("WA_BIAS", &["WA_WEIGHT"]),
    ("WAKE_WIDE", &["AFFINE_WAKEUPS"]),
    ("SYNC_LESS", &["SYNC_WAKEUPS"]),
    ("SYNC_STACK", &["SYNC_WAKEUPS"]),
    ("KTHREAD_STACK", &["IDLE_SIBLING"]),
    ("RECENT_CPU", &["IDLE_SIBLING"]),
    ("IDLE_SMT", &["IDLE_SIBLING"]),
    ("SIS_UTIL", &["IDLE_SIBLING"]),
    ("SCHED_IDLE_CPU", &["IDLE_SIBLING"]),
    ("GENTLE_FAIR_SLEEPERS", &["FAIR_SLEEPERS"]),
    ("NORMALIZED_SLEEPER", &["FAIR_SLEEPERS"]),
    ("CACHE_HOT_BUDDY", &["NEXT_BUDDY", "LAST_BUDDY"]),
];

/// Switches by which a wakee may preempt without the whole granularity's lead.
const EASIER: [&str; 4] = [
    "ADAPTIVE_GRAN",
    "WAKEUP_SYNC",
    "WAKEUP_OVERLAP",
    "WAKEUP_RUNNING",
];

impl Settings {
    /// What is allowed but hardly meant, each with the reason. Only what `old`
    /// did not do already, so that an unrelated change does not repeat it, and
    /// of switches without effect only those turned on since.
    pub fn warnings_since(&self, old: &Settings) -> Vec<String> {
        let before = old.warnings();
        let mut warnings = self.warnings();
        warnings.retain(|warning| !before.contains(warning));
        let idle = |(rule, needs): &(&str, &[&str])| {
            self.on(rule) && !old.on(rule) && !needs.iter().any(|need| self.on(need))
        };
        let say = |(rule, needs): (&str, &[&str])| {
            format!("{rule} has no effect while {} is off", needs.join(" or "))
        };
        warnings.extend(NEEDS.into_iter().filter(idle).map(say));
        warnings
    }

    fn on(&self, name: &str) -> bool {
        feature_index(name).is_some_and(|i| self.feature(i))
    }

    fn warnings(&self) -> Vec<String> {
        let lazy = self.granularity_warning();
        lazy.into_iter().chain(self.period_warning()).collect()
    }

    fn value(&self, name: &str) -> u64 {
        tunable_index(name).map_or(0, |i| self.tunables[i])
    }

    /// The lead a wakee needs against the credit that a sleeper gets. Both are
    /// those of nice 0, where no weight counts.
    fn granularity_warning(&self) -> Option<String> {
        let (latency, gran) = (
            self.value("sched_latency_ns"),
            self.value("wakeup_granularity_ns"),
        );
        let (credit, goal) = if self.on("GENTLE_FAIR_SLEEPERS") {
            let goal = "half of sched_latency_ns while GENTLE_FAIR_SLEEPERS is on";
            (latency / 2, goal)
        } else {
            (latency, "sched_latency_ns")
        };
        if !self.on("WAKEUP_PREEMPTION") || !self.on("FAIR_SLEEPERS") || gran < credit {
            return None;
        }
        let easier: Vec<_> = EASIER.into_iter().filter(|name| self.on(name)).collect();
        let but = if easier.is_empty() {
            String::new()
        } else {
            format!(" but by {}", easier.join(" or "))
        };
        Some(format!(
            "wakeup_granularity_ns={} is not below {}, the most credit a sleeper gets ({goal}): \
             no wakeup can preempt any more{but}, which starves loads that wait for wakeups",
            show_ns(gran),
            show_ns(credit)
        ))
    }

    fn period_warning(&self) -> Option<String> {
        let (min, latency) = (
            self.value("min_granularity_ns"),
            self.value("sched_latency_ns"),
        );
        (min > latency).then(|| {
            format!(
                "min_granularity_ns={} is above sched_latency_ns={}: every queue stretches the \
                 period, so sched_latency_ns no longer bounds the wait",
                show_ns(min),
                show_ns(latency)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::with;

    #[test]
    fn a_granularity_no_sleeper_can_beat_is_warned_about() {
        let warns = |words: &[&str]| {
            let found = with(words).warnings();
            found.iter().any(|w| w.contains("wakeup_granularity_ns"))
        };
        let goal = "sched_latency_ns=20ms";
        assert!(!warns(&[]));
        assert!(!warns(&[goal, "wakeup_granularity_ns=9999us"]));
        assert!(warns(&[goal, "wakeup_granularity_ns=10ms"]));
        assert!(!warns(&[
            goal,
            "wakeup_granularity_ns=10ms",
            "NO_GENTLE_FAIR_SLEEPERS"
        ]));
        assert!(warns(&[
            goal,
            "wakeup_granularity_ns=20ms",
            "NO_GENTLE_FAIR_SLEEPERS"
        ]));
        assert!(!warns(&[
            goal,
            "wakeup_granularity_ns=20ms",
            "NO_WAKEUP_PREEMPTION"
        ]));
        assert!(warns(&["sched_latency_ns=8ms"]));
    }

    #[test]
    fn a_warning_is_given_once_by_the_change_that_causes_it() {
        let calm = Settings::default();
        let rash = with(&["wakeup_granularity_ns=1s"]);
        assert_eq!(rash.warnings_since(&calm).len(), 1);
        let mut later = rash.clone();
        later.apply(&["NO_IDLE_CORE"]).expect("word");
        assert!(later.warnings_since(&rash).is_empty());
        assert_eq!(
            with(&["min_granularity_ns=25ms"])
                .warnings_since(&calm)
                .len(),
            1
        );
    }

    #[test]
    fn the_weight_of_a_task_does_not_count_but_easier_ways_are_named() {
        let rash = "wakeup_granularity_ns=12ms";
        let plain = with(&[rash]).warnings();
        assert!(plain[0].contains("no wakeup can preempt any more, which"));
        assert_eq!(with(&[rash, "NO_ASYM_GRAN"]).warnings(), plain);
        assert_eq!(with(&[rash, "NORMALIZED_SLEEPER"]).warnings(), plain);
        let easier = with(&[rash, "ADAPTIVE_GRAN", "WAKEUP_SYNC"]).warnings();
        assert!(easier[0].contains("any more but by ADAPTIVE_GRAN or WAKEUP_SYNC, which"));
    }

    #[test]
    fn a_switch_without_effect_is_named_by_the_change_that_turns_it_on() {
        let since = |old: &Settings, words: &[&str]| {
            let mut new = old.clone();
            new.apply(words).expect("words");
            new.warnings_since(old)
        };
        let off = with(&["NO_IDLE_SIBLING"]);
        assert!(off.warnings_since(&Settings::default()).is_empty());
        let warnings = since(&off, &["RECENT_CPU"]);
        assert_eq!(
            warnings,
            ["RECENT_CPU has no effect while IDLE_SIBLING is off"]
        );
        assert!(since(&off, &["RECENT_CPU", "IDLE_SIBLING"]).is_empty());
        assert!(since(&off, &["KTHREAD_STACK"]).is_empty(), "on already");
        let buddy = since(&Settings::default(), &["CACHE_HOT_BUDDY"]);
        assert!(buddy[0].ends_with("while NEXT_BUDDY or LAST_BUDDY is off"));
        assert!(since(&off, &["CACHE_HOT_BUDDY", "LAST_BUDDY"]).is_empty());
    }

    #[test]
    fn every_name_here_is_a_switch() {
        let names = NEEDS
            .iter()
            .flat_map(|(rule, needs)| needs.iter().chain([rule]));
        for name in names.chain(&EASIER) {
            assert!(feature_index(name).is_some(), "{name}");
        }
    }
}
