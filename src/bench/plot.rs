// SPDX-License-Identifier: GPL-2.0-only
//! Curves and bars as SVG inside of a page. Pure.
//!
//! Written by hand, not with a library: plotters and its like draw their colours
//! into each shape, and a page that is read on paper and in the dark needs classes
//! instead. Sizes are those of a phone (480 wide); a larger screen scales them.
//! A line is told by its colour, dash and marker; names stand beside the drawing,
//! in a list that wraps, so that no name can cover another.

use maud::{Markup, html};

use crate::bench::axis::{Scale, WIDE};

/// Width of a drawing, in its own units; text is 14 of them high.
const WIDTH: f64 = 480.0;
/// Height of a drawing of curves.
const HEIGHT: f64 = 296.0;
/// Room for a character; generous, as fonts differ.
const CHAR: f64 = 8.0;
/// Room for a digit of an axis, which a narrow page draws larger.
const DIGIT: f64 = 10.0;
/// Room above and below the area that is drawn in.
const TOP: f64 = 30.0;
const BOTTOM: f64 = 52.0;
const RIGHT: f64 = 18.0;
/// Height of a bar with the name above it.
const BAR: f64 = 46.0;
/// Colours of the page, without that of the reference; see report.css.
const COLOURS: usize = 6;
/// As stroke-dasharray has it; one more than there are colours, so that the two
/// lines of a colour differ in their dashes too.
const DASHES: [&str; COLOURS + 1] = [
    "none",
    "8 4",
    "2 3",
    "10 3 2 3",
    "16 4",
    "4 2",
    "10 3 2 3 2 3",
];

/// A place on a curve; the ends of its interval are its height where it has none.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up.
    pub y: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One setting's curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Which setting it is; see [`class`].
    pub style: usize,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A drawing of curves.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows, for those who cannot see it.
    pub about: String,
    /// Title of the axis across.
    pub across: String,
    /// Title of the axis upwards.
    pub up: String,
    /// Places on the axis across, which is logarithmic, with labels.
    pub ticks: Vec<(f64, String)>,
    /// The noise: a grey band, by its lower and upper edge.
    pub band: Vec<(f64, f64, f64)>,
    /// A height that must be in view.
    pub holds: f64,
    /// The curves.
    pub curves: Vec<Curve>,
    /// Whether each point gets a marker.
    pub marked: bool,
}

/// A setting's bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Name of the setting.
    pub name: String,
    /// What stands at its right.
    pub text: String,
    /// Class of its colour.
    pub class: &'static str,
    /// Ratio, and the ends of its interval.
    pub value: (f64, f64, f64),
}

/// The classes that give a setting its colour.
pub fn class(style: usize) -> String {
    match style {
        0 => "s0".into(),
        n => format!("s{}", (n - 1) % COLOURS + 1),
    }
}

fn dash(style: usize) -> &'static str {
    DASHES[style % DASHES.len()]
}

/// A marker of a shape of its own around a place.
fn marker(style: usize, x: f64, y: f64) -> Markup {
    let at = |points: &[(f64, f64)]| {
        let one = |(dx, dy): &(f64, f64)| format!("{:.1},{:.1}", x + dx, y + dy);
        points.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    let shape = match style % 5 {
        0 => return html! { circle cx=(n(x)) cy=(n(y)) r="4" {} },
        1 => at(&[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)]),
        2 => at(&[(0.0, -5.5), (5.0, 4.0), (-5.0, 4.0)]),
        3 => at(&[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)]),
        _ => at(&[(0.0, 5.5), (5.0, -4.0), (-5.0, -4.0)]),
    };
    html! { polygon points=(shape) {} }
}

/// A short piece of a setting's line, to stand before its name.
pub fn swatch(style: usize, marked: bool) -> Markup {
    html! {
        svg.swatch.(class(style)) viewBox="0 0 40 14" aria-hidden="true" {
            line.curve x1="2" x2="38" y1="7" y2="7" stroke-dasharray=(dash(style)) {}
            @if marked { (marker(style, 20.0, 7.0)) }
        }
    }
}

fn n(value: f64) -> String {
    format!("{value:.1}")
}

/// Draws curves.
pub fn curves(chart: &Chart) -> Markup {
    let points = chart.curves.iter().flat_map(|c| &c.points);
    let heights = points.flat_map(|p| [p.y, p.low, p.high]);
    let edges = chart.band.iter().flat_map(|(_, low, high)| [*low, *high]);
    let all = heights.chain(edges).chain([chart.holds]);
    let (low, high) = (
        all.clone().fold(f64::MAX, f64::min),
        all.clone().fold(0.0, f64::max),
    );
    let log = low > 0.0 && high / low > WIDE;
    let up = Scale::new(all, log, HEIGHT - BOTTOM, TOP).airy();
    let heights = up.ticks(6);
    let longest = heights.iter().map(|(_, t)| t.len()).max().unwrap_or(0);
    let left = 12.0 + DIGIT * longest as f64;
    let places = chart.ticks.iter().map(|(x, _)| *x);
    let on_curves = chart.curves.iter().flat_map(|c| &c.points).map(|p| p.x);
    let across = Scale::new(
        places.chain(on_curves),
        true,
        left + 14.0,
        WIDTH - RIGHT - 6.0,
    );
    let baseline = HEIGHT - BOTTOM;
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(chart.about) {
            @if chart.band.len() > 1 { polygon.band points=(band(chart, &across, &up)) {} }
            @for (value, text) in &heights {
                @let y = n(up.place(*value));
                line.grid x1=(n(left)) x2=(n(WIDTH - RIGHT)) y1=(y) y2=(y) {}
                text.end x=(n(left - 6.0)) y=(y) dy="0.35em" { (text) }
            }
            @for (x, text) in thin(&chart.ticks, &across) {
                line.grid x1=(n(x)) x2=(n(x)) y1=(n(baseline)) y2=(n(baseline + 5.0)) {}
                text.middle x=(n(x)) y=(n(baseline + 20.0)) { (text) }
            }
            line.axis x1=(n(left)) x2=(n(WIDTH - RIGHT)) y1=(n(baseline)) y2=(n(baseline)) {}
            text x="2" y="15" { (cut(&chart.up, WIDTH)) }
            text.middle x=(n((left + WIDTH) / 2.0)) y=(n(HEIGHT - 8.0)) { (chart.across) }
            @for curve in &chart.curves { (line(curve, chart, &across, &up)) }
        }
    }
}

/// Labels that have room beside the one before.
fn thin(ticks: &[(f64, String)], scale: &Scale) -> Vec<(f64, String)> {
    let mut kept: Vec<(f64, String)> = vec![];
    for (value, text) in ticks {
        let x = scale.place(*value);
        let room = |(before, t): &(f64, String)| {
            x - before >= CHAR * (t.len() + text.len() + 2) as f64 / 2.0
        };
        if kept.last().is_none_or(room) {
            kept.push((x, text.clone()));
        }
    }
    kept
}

fn band(chart: &Chart, across: &Scale, up: &Scale) -> String {
    let place = |x: f64, y: f64| format!("{:.1},{:.1}", across.place(x), up.place(y));
    let above = chart.band.iter().map(|(x, _, high)| place(*x, *high));
    let below = chart.band.iter().rev().map(|(x, low, _)| place(*x, *low));
    above.chain(below).collect::<Vec<_>>().join(" ")
}

fn line(curve: &Curve, chart: &Chart, across: &Scale, up: &Scale) -> Markup {
    let points = curve.points.iter().filter(|p| p.y.is_finite());
    // Beside each other, else the whiskers of one hide those of another.
    let others = chart.curves.len() as f64;
    let whiskers = chart
        .curves
        .iter()
        .flat_map(|c| &c.points)
        .any(|p| p.high > p.low);
    let aside = match whiskers && curve.style > 0 {
        true => (curve.style as f64 - others / 2.0).clamp(-6.0, 6.0) * 2.5,
        false => 0.0,
    };
    let placed = points.map(|p| (across.place(p.x) + aside, up.place(p.y), p));
    let placed: Vec<_> = placed.collect();
    let path: Vec<_> = placed
        .iter()
        .map(|(x, y, _)| format!("{x:.1},{y:.1}"))
        .collect();
    html! {
        g.(class(curve.style)) {
            polyline.curve points=(path.join(" ")) stroke-dasharray=(dash(curve.style)) {}
            @if chart.marked {
                @for (x, y, p) in &placed {
                    @if p.high > p.low {
                        (whisker((*x, up.place(p.low)), (*x, up.place(p.high))))
                    }
                    (marker(curve.style, *x, *y))
                }
            }
        }
    }
}

/// From one end to the other, with a stroke across each.
fn whisker(a: (f64, f64), b: (f64, f64)) -> Markup {
    let (dx, dy) = if a.0 == b.0 { (3.5, 0.0) } else { (0.0, 5.0) };
    let stroke =
        |(x, y): (f64, f64)| format!("M{:.1} {:.1}L{:.1} {:.1}", x - dx, y - dy, x + dx, y + dy);
    let middle = format!("M{:.1} {:.1}L{:.1} {:.1}", a.0, a.1, b.0, b.1);
    html! { path.whisker d=(stroke(a) + &middle + &stroke(b)) {} }
}

/// What of a text fits so many units.
fn cut(text: &str, room: f64) -> String {
    let most = (room / CHAR) as usize;
    match text.chars().count() {
        n if n <= most => text.into(),
        _ => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['\u{2026}'])
            .collect(),
    }
}

/// Draws bars that start at 1, with whiskers; the noise is a grey band around 1.
pub fn bars(about: &str, title: &str, floor: Option<f64>, bars: &[Bar]) -> Markup {
    let floor = floor.unwrap_or(0.0);
    let ends = bars.iter().flat_map(|b| [b.value.0, b.value.1, b.value.2]);
    let all = ends.chain([1.0 - floor, 1.0 + floor]);
    let across = Scale::new(all, false, 8.0, WIDTH - 8.0).airy();
    let baseline = BAR * bars.len() as f64 + 6.0;
    let place = |v: f64| across.place(v);
    let one = place(1.0);
    html! {
        svg.plot viewBox=(format!("0 0 {WIDTH} {}", baseline + BOTTOM)) role="img" aria-label=(about) {
            rect.band x=(n(place(1.0 - floor))) width=(n(place(1.0 + floor) - place(1.0 - floor)))
                y="0" height=(n(baseline)) {}
            @for (x, text) in thin(&across.ticks(5), &across) {
                line.grid x1=(n(x)) x2=(n(x)) y1="0" y2=(n(baseline)) {}
                text.middle x=(n(x.clamp(20.0, WIDTH - 20.0))) y=(n(baseline + 17.0)) { (text) }
            }
            line.axis x1=(n(one)) x2=(n(one)) y1="0" y2=(n(baseline)) {}
            text.middle x=(n(WIDTH / 2.0)) y=(n(baseline + 38.0)) { (cut(title, WIDTH)) }
            @for (i, bar) in bars.iter().enumerate() {
                @let y = BAR * i as f64 + 4.0;
                @let (value, low, high) = bar.value;
                @let middle = y + 29.0;
                @let room = WIDTH - CHAR * (bar.text.chars().count() + 3) as f64;
                g.(bar.class) {
                    title { (bar.name) ": " (bar.text) }
                    rect.bar x=(n(place(value).min(one))) width=(n((place(value) - one).abs()))
                        y=(n(middle - 8.0)) height="16" {}
                    (whisker((place(low), middle), (place(high), middle)))
                }
                text.halo x="8" y=(n(y + 13.0)) { (cut(&bar.name, room)) }
                text.end.halo x=(n(WIDTH - 8.0)) y=(n(y + 13.0)) { (bar.text) }
            }
        }
    }
}
