// SPDX-License-Identifier: GPL-2.0-only
//! Which counters say why one setting is faster than another. Pure.

use std::collections::BTreeMap;

use crate::hist::Hist;
use crate::metrics::Sample;

/// Counters that are told of a cell: more would hide the one that matters.
const MOST_WHY: usize = 3;
/// A counter that differs by less than this factor explains little.
const LEAST_FACTOR: f64 = 1.25;
/// Fewest events in both, in the shorter time of the two: from here on a factor of
/// [`LEAST_FACTOR`], a ninth of the sum, is over two standard deviations of it.
const LEAST_EVENTS: f64 = 400.0;
/// Counters whose counts differ by no more than this on both sides are one event
/// seen twice, such as a way out and a step on the way to it.
const SAME_EVENT: f64 = 0.01;

/// What decisions cost. It changes with their number, and is no reason itself.
const EFFORT: [&str; 1] = ["scan_words"];

/// A counter that says why.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Its name.
    pub counter: String,
    /// Events a second in these runs.
    pub here: f64,
    /// Events a second in those that they are compared with.
    pub there: f64,
}

/// What scx_kin counted in several runs.
pub struct Seen<'a> {
    seconds: f64,
    counts: BTreeMap<&'a str, u64>,
    wakeups: Hist,
}

impl<'a> Seen<'a> {
    /// None if there is no sample, or none of any length.
    pub fn new(samples: impl Iterator<Item = &'a Sample>) -> Option<Seen<'a>> {
        let mut seen = Seen {
            seconds: 0.0,
            counts: BTreeMap::new(),
            wakeups: Hist::default(),
        };
        for sample in samples {
            seen.seconds += sample.seconds;
            for (name, n) in &sample.counters {
                *seen.counts.entry(name).or_default() += n;
            }
            if let Some(hist) = sample.hists.get("wakeup_latency") {
                seen.wakeups.merge(&hist.0);
            }
        }
        (seen.seconds > 0.0).then_some(seen)
    }

    fn count(&self, name: &str) -> f64 {
        self.counts.get(name).copied().unwrap_or(0) as f64
    }

    /// Median and 99th percentile of the wakeup latency, in ns.
    pub fn latency(&self) -> Option<(f64, f64)> {
        let percentile = |p| self.wakeups.percentile(p);
        percentile(50.0).zip(percentile(99.0))
    }
}

/// The counters that differ most, as counting goes: a difference is held against
/// the square root of the sum, which is how far it strays if nothing differs.
pub fn why(here: &Seen, there: &Seen) -> Vec<Why> {
    // counts in the shorter time of the two: none is made up
    let time = here.seconds.min(there.seconds);
    let scaled = |seen: &Seen, name| seen.count(name) * time / seen.seconds;
    let names = here.counts.keys().chain(there.counts.keys());
    let names = names.filter(|name| !EFFORT.contains(name));
    let mut all: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    all.extend(names.map(|name| (*name, (scaled(here, name), scaled(there, name)))));
    all.retain(|_, (a, b)| *a + *b >= LEAST_EVENTS && a.max(*b) >= LEAST_FACTOR * a.min(*b));
    let mut all: Vec<(&str, f64, f64)> = all.into_iter().map(|(k, (a, b))| (k, a, b)).collect();
    let strength = |(_, a, b): &(&str, f64, f64)| (a - b).abs() / (a + b).sqrt();
    all.sort_by(|one, other| strength(other).total_cmp(&strength(one)));

    let near = |a: f64, b: f64| (a - b).abs() <= SAME_EVENT * a.max(b);
    let mut told: Vec<(&str, f64, f64)> = vec![];
    for (name, a, b) in all {
        let again = told.iter().any(|(_, c, d)| near(a, *c) && near(b, *d));
        if !again && told.len() < MOST_WHY {
            told.push((name, a, b));
        }
    }
    let row = |(name, a, b): (&str, f64, f64)| Why {
        counter: name.into(),
        here: a / time,
        there: b / time,
    };
    told.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: f64, counters: &[(&str, u64)]) -> Sample {
        let counters = counters.iter().map(|(name, n)| (name.to_string(), *n));
        Sample {
            seconds,
            counters: counters.collect(),
            ..Sample::default()
        }
    }

    /// Counters and rates that say why.
    fn told(here: &[Sample], there: &[Sample]) -> Vec<(String, f64, f64)> {
        let here = Seen::new(here.iter()).expect("samples");
        let there = Seen::new(there.iter()).expect("samples");
        let all = why(&here, &there).into_iter();
        all.map(|w| (w.counter, w.here, w.there)).collect()
    }

    #[test]
    fn what_differs_most_comes_first_and_what_hardly_does_not_at_all() {
        let here = [
            sample(10.0, &[("even", 60_000), ("more", 5000), ("rare", 90)]),
            sample(10.0, &[("even", 60_000), ("more", 4000)]),
        ];
        let there = [sample(10.0, &[("even", 50_000), ("gone", 2000)])];
        let want = [
            ("more".to_string(), 450.0, 0.0),
            ("gone".to_string(), 0.0, 200.0),
        ];
        assert_eq!(told(&here, &there), want);
    }

    #[test]
    fn an_event_that_is_counted_twice_is_told_once() {
        let here = [sample(1.0, &[("a", 9000), ("b", 9010), ("c", 9000)])];
        let there = [sample(1.0, &[("a", 1000), ("b", 1003), ("c", 3000)])];
        assert_eq!(told(&here, &there).len(), 2);
    }

    #[test]
    fn no_more_is_told_than_can_be_read() {
        let names = ["a", "b", "c", "d", "e"];
        let counts: Vec<_> = names.iter().zip([1000, 2000, 4000, 8000, 16_000]).collect();
        let counts: Vec<_> = counts.into_iter().map(|(k, n)| (*k, n)).collect();
        let all = told(&[sample(1.0, &counts)], &[sample(1.0, &[])]);
        let names: Vec<&str> = all.iter().map(|(name, _, _)| name.as_str()).collect();
        assert_eq!(names, ["e", "d", "c"]);
    }

    #[test]
    fn without_a_sample_nothing_was_seen() {
        assert!(Seen::new([].into_iter()).is_none());
        assert!(Seen::new([sample(0.0, &[("a", 5)])].iter()).is_none());
    }
}
