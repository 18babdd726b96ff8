// SPDX-License-Identifier: GPL-2.0-only
//! Which figures a bench's page has, out of what: ratios and medians over clients,
//! bars for what has one number of clients or none, wakeup latencies. Pure.

use maud::{Markup, html};

use crate::bench::axis::WIDE;
use crate::bench::compare::Cell;
use crate::bench::data::Results;
use crate::bench::plot::{Bar, Chart, Curve, Point, bars, curves, swatch};
use crate::bench::show::{Block, clients_text, counts, times, way, word};
use crate::hist::{Hist, bounds};

/// The histogram that is drawn.
const LATENCY: &str = "wakeup_latency";
/// Times that get a label; they are what people think in.
const TIMES: [(f64, &str); 8] = [
    (1e2, "100ns"),
    (1e3, "1us"),
    (1e4, "10us"),
    (1e5, "100us"),
    (1e6, "1ms"),
    (1e7, "10ms"),
    (1e8, "100ms"),
    (1e9, "1s"),
];
/// The rest of the values is not drawn: a single one would stretch the axis.
const NEARLY_ALL: f64 = 99.95;

/// A setting's number among the page's colours, dashes and markers; the reference
/// has number 0.
fn style(results: &Results, setting: &str) -> usize {
    if setting == results.spec.reference_name() {
        return 0;
    }
    let others = results.spec.settings.iter().map(|s| s.name.as_str());
    let mut others = others.filter(|name| *name != results.spec.reference_name());
    others.position(|name| name == setting).map_or(1, |n| n + 1)
}

fn legend(results: &Results, settings: &[&str], marked: bool, band: bool) -> Markup {
    html! {
        ul.legend {
            @for setting in settings {
                li { (swatch(style(results, setting), marked)) (setting) }
            }
            @if band {
                li { span.swatch.bandbox {} (results.spec.reference_name()) " against itself" }
            }
        }
    }
}

/// Ratios to the reference, and the medians themselves, over clients.
pub fn sweep_plots(results: &Results, block: &Block) -> Markup {
    let reference = results.spec.reference_name();
    let ratio = |cell: &Cell| {
        let r = cell.ratio?;
        Some((r.value, r.low, r.high))
    };
    let floors = block.clients.iter().filter_map(|n| {
        let floor = block.floor(*n)?;
        Some((f64::from(*n), 1.0 - floor, 1.0 + floor))
    });
    let mut ratios = Chart {
        about: format!("ratio of {} to {reference} over clients", block.axis()),
        across: "clients".into(),
        up: format!(
            "\u{d7} {reference} ({} is better)",
            way(block.metric.better)
        ),
        ticks: block
            .clients
            .iter()
            .map(|n| (f64::from(*n), n.to_string()))
            .collect(),
        band: floors.collect(),
        holds: 1.0,
        curves: drawn(results, block, ratio),
        marked: true,
    };
    let flat = |n: &u32| Point {
        x: f64::from(*n),
        y: 1.0,
        low: 1.0,
        high: 1.0,
    };
    let one = Curve {
        style: 0,
        points: block.clients.iter().map(flat).collect(),
    };
    ratios.curves.insert(0, one);
    let medians = Chart {
        about: format!("{} over clients", block.what()),
        up: block.what(),
        band: vec![],
        holds: lowest(block),
        curves: drawn(results, block, |c| Some((c.median, c.median, c.median))),
        ..ratios.clone()
    };
    html! {
        div.figures {
            figure {
                (curves(&ratios))
                figcaption { "Ratio to " (reference) " with its 95 % interval" }
            }
            figure { (curves(&medians)) figcaption { "Medians" } }
        }
        (legend(results, &block.settings, true, !ratios.band.is_empty()))
    }
}

/// Zero belongs to an axis of amounts, unless the amounts need a logarithmic one.
fn lowest(block: &Block) -> f64 {
    let medians = block.cells().map(|c| c.median).filter(|m| m.is_finite());
    let (low, high) = medians.fold((f64::MAX, 0f64), |(l, h), m| (l.min(m), h.max(m)));
    if low > 0.0 && high / low > WIDE {
        low
    } else {
        0.0
    }
}

type Ends = (f64, f64, f64);

fn drawn(results: &Results, block: &Block, what: impl Fn(&Cell) -> Option<Ends>) -> Vec<Curve> {
    let point = |n: u32, setting: &str| {
        let (y, low, high) = what(block.at(n, setting)?)?;
        Some(Point {
            x: f64::from(n),
            y,
            low,
            high,
        })
    };
    let curve = |setting: &&str| Curve {
        style: style(results, setting),
        points: block
            .clients
            .iter()
            .filter_map(|n| point(*n, setting))
            .collect(),
    };
    let all = block.settings.iter().map(curve);
    all.filter(|c| !c.points.is_empty()).collect()
}

/// A bar a setting, from the reference to its ratio.
pub fn ratio_bars(results: &Results, block: &Block) -> Markup {
    let clients = block.clients[0];
    let bar = |setting: &&str| {
        let cell = block.at(clients, setting)?;
        let ratio = cell.ratio?;
        let word = cell.verdict.map_or("", word);
        Some(Bar {
            name: (*setting).into(),
            text: format!("{} {word}", times(ratio.value)),
            class: word,
            value: (ratio.value, ratio.low, ratio.high),
        })
    };
    let all: Vec<Bar> = block.settings.iter().filter_map(bar).collect();
    let reference = results.spec.reference_name();
    let title = format!(
        "\u{d7} {reference} ({} is better)",
        way(block.metric.better)
    );
    let about = format!("ratio of {} to {reference}", block.axis());
    html! {
        @if !all.is_empty() {
            figure.bars {
                (bars(&about, &title, block.floor(clients), &all))
                figcaption {
                    "Ratio to " (reference) " with its 95 % interval"
                    @if block.floor(clients).is_some() {
                        "; the grey band is " (reference) " against itself"
                    }
                }
            }
        }
    }
}

/// How wakeup latencies are spread, a drawing a number of clients.
pub fn latency_plots(results: &Results, workload: &str) -> Markup {
    let runs = results
        .runs
        .iter()
        .filter(|r| r.workload == workload && counts(results, r));
    let mut clients: Vec<u32> = runs.map(|r| r.clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let charts: Vec<_> = clients
        .iter()
        .map(|n| (*n, latencies(results, workload, *n)))
        .collect();
    let charts: Vec<_> = charts
        .into_iter()
        .filter(|(_, c)| !c.curves.is_empty())
        .collect();
    let shown = |name: &str| {
        let number = style(results, name);
        charts
            .iter()
            .any(|(_, c)| c.curves.iter().any(|curve| curve.style == number))
    };
    let settings = results.spec.settings.iter().map(|s| s.name.as_str());
    let settings: Vec<&str> = settings.filter(|name| shown(name)).collect();
    html! {
        @if !charts.is_empty() {
            h3 { "Wakeup latency under scx_kin" }
            div.figures.small {
                @for (n, chart) in &charts {
                    figure {
                        (curves(chart))
                        @if *n > 0 { figcaption { (clients_text(*n)) } }
                    }
                }
            }
            (legend(results, &settings, false, false))
        }
    }
}

fn latencies(results: &Results, workload: &str, clients: u32) -> Chart {
    let mut drawn = vec![];
    for setting in &results.spec.settings {
        let mut sum = Hist::default();
        let of = |r: &&crate::bench::data::Run| {
            r.workload == workload && r.clients == clients && r.setting == setting.name
        };
        for run in results
            .runs
            .iter()
            .filter(of)
            .filter(|r| counts(results, r))
        {
            let hist = run.sample.as_ref().and_then(|s| s.hists.get(LATENCY));
            sum.merge(hist.map_or(&[], |h| h.0.as_slice()));
        }
        if sum.total() > 0 {
            drawn.push(Curve {
                style: style(results, &setting.name),
                points: spread(&sum),
            });
        }
    }
    let places = drawn.iter().flat_map(|c| &c.points).map(|p| p.x);
    let (low, high) = places.fold((f64::MAX, 0f64), |(l, h), x| (l.min(x), h.max(x)));
    let inside = TIMES.iter().filter(|(t, _)| (low..=high).contains(t));
    Chart {
        about: format!("cumulative wakeup latency of {workload}"),
        across: "wakeup latency".into(),
        up: "% of wakeups within".into(),
        ticks: inside.map(|(t, text)| (*t, (*text).into())).collect(),
        band: vec![],
        holds: 0.0,
        curves: drawn,
        marked: false,
    }
}

/// The share of the values that lie below each bucket's end.
fn spread(hist: &Hist) -> Vec<Point> {
    let total = hist.total() as f64;
    let first = hist.0.iter().position(|n| *n > 0).unwrap_or(0);
    let at = |x: f64, y: f64| Point {
        x: x.max(1.0),
        y,
        low: y,
        high: y,
    };
    let mut points = vec![at(bounds(first).0, 0.0)];
    let mut below = 0;
    for (bucket, n) in hist.0.iter().enumerate().skip(first) {
        below += n;
        let percent = below as f64 * 100.0 / total;
        points.push(at(bounds(bucket).1, percent));
        if percent >= NEARLY_ALL {
            break;
        }
    }
    points
}
