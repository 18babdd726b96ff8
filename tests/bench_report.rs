// SPDX-License-Identifier: GPL-2.0-only
//! What a bench shows, made of results that are built by hand. The texts under
//! tests/bench are what it shows today: whoever changes one has looked at it.

#[path = "bench/fixture.rs"]
mod fixture;

use fixture::{Bench, ladder, small, why};
use scx_kin::bench::across::across;
use scx_kin::bench::data::{Better, Run};
use scx_kin::bench::export::{csv, markdown};
use scx_kin::bench::html::html;
use scx_kin::bench::stats::Verdict;
use scx_kin::bench::table::table;
use scx_kin::metrics::WIDTH;

/// Text that means something to each of the forms that it is shown in.
const NASTY: &str = "<b>&\"quoted\"</b>, | *x* `y` __z__\n\u{1b}[31m</script>";

/// Shows the whole text where it is another.
fn assert_text(shown: &str, right: &str) {
    assert!(shown == right, "it is now:\n{shown}\ninstead of:\n{right}");
}

fn assert_fits(text: &str) {
    for line in text.lines() {
        let width = textwrap::core::display_width(line);
        assert!(width <= WIDTH, "{width} columns: {line}");
        assert_eq!(line, line.trim_end(), "blanks at its end");
    }
}

/// The page without what HTML has and XML has not.
fn parsed(page: &str) -> String {
    let body = page.strip_prefix("<!DOCTYPE html>").expect("a doctype");
    let voids = regex::Regex::new("<(meta|wbr|br)[^>]*>").expect("pattern");
    voids.replace_all(body, "").into_owned()
}

/// A bench in which all that can be odd is odd.
fn odd() -> Bench {
    let long = "L".repeat(150);
    let wide = "\u{6f22}\u{5b57} ".repeat(40);
    let settings = [
        (NASTY, NASTY),
        (&long, "x"),
        (&wide, "y"),
        ("never ran", "z"),
    ];
    let mut bench = Bench::new(&settings, false);
    let metric = bench.workload(NASTY, (NASTY, NASTY, Better::Lower));
    let big = 1e300;
    for n in (0..20).map(|i| 3u32.pow(i % 10) + i) {
        bench.cell((NASTY, &metric, n), NASTY, 1e-12, None);
        let judged = Some((0.5, 123.4, big, Verdict::Worse));
        let cell = bench.cell((NASTY, &metric, n), &long, big, judged);
        cell.why = vec![why(&"c".repeat(90), 1e12, 0.0)];
        bench
            .cell((NASTY, &metric, n), &wide, f64::NAN, None)
            .values
            .clear();
    }
    let single = bench.workload("single", ("m", "", Better::Higher));
    for setting in [NASTY, &long, &wide] {
        let judged = Some((0.0, 0.0, f64::INFINITY, Verdict::TooNoisy));
        bench.cell(("single", &single, 1), setting, 0.0, judged);
    }
    bench.latency(&long, 4);
    bench
        .results
        .machine
        .push(("kernel".into(), NASTY.repeat(9)));
    bench.results.ended_early = Some(NASTY.into());
    bench.results.spec.name = NASTY.into();
    for run in bench.results.runs.iter_mut().take(9) {
        run.disturbed = Some(NASTY.into());
    }
    bench
}

#[test]
fn a_sweep_and_a_single_figure_are_shown_as_they_are_posted() {
    let Bench { results, cells } = small();
    assert_text(&table(&results, &cells), include_str!("bench/small.txt"));
}

#[test]
fn a_ladder_has_its_steps_and_its_doubts() {
    let Bench {
        mut results,
        mut cells,
    } = ladder();
    results.ended_early = Some("Ctrl-C".into());
    results.runs[2].disturbed = Some("load 3.2 when it started".into());
    let again = Run {
        repeat: true,
        disturbed: None,
        ..results.runs[2].clone()
    };
    results.runs.insert(3, again);
    cells[1].values.truncate(4);
    assert_text(&table(&results, &cells), include_str!("bench/ladder.txt"));
}

#[test]
fn markdown_is_what_one_pastes() {
    let Bench { results, cells } = small();
    assert_text(&markdown(&results, &cells), include_str!("bench/small.md"));
}

#[test]
fn csv_has_every_run_and_quotes_what_needs_it() {
    let Bench { mut results, cells } = small();
    results.runs.truncate(3);
    for run in &mut results.runs {
        run.figures.insert("tps".into(), 1204.5);
    }
    results.runs[1].disturbed = Some("load 3.2, \"cron\"".into());
    results.runs[2].figures.clear();
    let right = "\
        round,setting,twin,workload,clients,metric,unit,value,disturbed,repeat,at,seconds\n\
        1,stock,false,pgbench,1,tps,1/s,1204.5,,false,0.000,10.000\n\
        1,stock,true,pgbench,1,tps,1/s,1204.5,\"load 3.2, \"\"cron\"\"\",false,0.000,10.000\n\
        2,stock,false,pgbench,1,,,,,false,10.500,10.000\n";
    assert_text(&csv(&results, &cells), right);
    let Bench { results, cells } = odd();
    let text = csv(&results, &cells);
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let first = rows.records().next().expect("a row").expect("whole");
    assert_eq!(&first[1], NASTY, "data stays what it was");
}

#[test]
fn two_sides_are_told_apart_and_where_they_disagree() {
    let (a, mut b) = (small(), small());
    b.results.machine[1].1 = "Intel Xeon Gold 6430".into();
    b.results.machine.pop();
    b.results.spec.settings[2].is = "NO_RUN_TO_PARITY".into();
    let turned = b
        .cells
        .iter_mut()
        .find(|c| c.setting == "no parity" && c.clients == 4);
    turned.expect("cell").verdict = Some(Verdict::Better);
    b.cells
        .retain(|c| c.setting != "scx_kin" || c.clients != 64);
    let text = across(
        ("a.json", &a.results, &a.cells),
        ("b.json", &b.results, &b.cells),
    );
    assert_text(&text, include_str!("bench/across.txt"));
}

#[test]
fn what_has_nothing_in_common_is_told_in_a_line() {
    let side = |name, bench: &Bench| (name, bench.results.clone(), bench.cells.clone());
    let told = |change: &dyn Fn(&mut Bench)| {
        let mut other = small();
        change(&mut other);
        let (a, b) = (side("a.json", &small()), side("b.json", &other));
        across((a.0, &a.1, &a.2), (b.0, &b.1, &b.2))
    };
    let workload = told(&|b| b.cells.iter_mut().for_each(|c| c.workload += "2"));
    assert_eq!(workload, "a.json and b.json have no workload in common\n");
    let unit = told(&|b| {
        b.cells
            .iter_mut()
            .for_each(|c| c.metric.unit = "furlongs".into())
    });
    assert!(unit.contains("no metric (name, unit") && unit.lines().count() == 1);
    let setting = told(&|b| b.cells.iter_mut().for_each(|c| c.setting += "!"));
    assert!(setting.contains("no setting by name in common"));
    let clients = told(&|b| b.cells.iter_mut().for_each(|c| c.clients += 1000));
    assert!(clients.contains("no number of clients in common"));
    let nothing = told(&|b| b.cells.clear());
    assert_eq!(nothing, "b.json has no figures: nothing to compare\n");
}

#[test]
fn no_name_is_long_or_odd_enough_to_break_a_line() {
    for Bench { results, cells } in [small(), ladder(), odd()] {
        assert_fits(&table(&results, &cells));
        assert_fits(&across(("a", &results, &cells), ("b", &results, &cells)));
        assert!(
            !table(&results, &cells).contains('\u{1b}'),
            "no colour is smuggled in"
        );
    }
    let Bench { results, cells } = odd();
    let side = |b: &str| b.contains('<') && !b.contains("&lt;");
    let text = markdown(&results, &cells);
    assert!(!text.lines().any(side), "{text}");
    let Bench { results, .. } = small();
    assert_fits(&table(&results, &[]));
}

#[test]
fn the_page_is_well_formed_and_whole_in_itself() {
    for Bench { results, cells } in [small(), ladder(), odd()] {
        for cells in [cells, vec![]] {
            let page = html(&results, &cells);
            let xml = parsed(&page);
            let document = roxmltree::Document::parse(&xml).expect("tags that match");
            for node in document.descendants().filter(|n| n.is_element()) {
                let name = node.tag_name().name();
                assert!(
                    !["script", "b>", "img", "link", "iframe"].contains(&name),
                    "{name}"
                );
                for attribute in node.attributes() {
                    let (name, value) = (attribute.name(), attribute.value());
                    assert!(!["href", "src", "onload"].contains(&name), "{name}");
                    assert!(
                        !value.contains("NaN") && !value.contains("inf"),
                        "{name}={value}"
                    );
                }
            }
            for fetch in ["http:", "https:", "url(", "@import", "<script"] {
                assert!(!page.contains(fetch), "{fetch}");
            }
        }
    }
}

#[test]
fn the_page_shows_odd_names_as_they_are() {
    let Bench { results, cells } = odd();
    let xml = parsed(&html(&results, &cells));
    let document = roxmltree::Document::parse(&xml).expect("tags that match");
    let heading = document.descendants().find(|n| n.has_tag_name("h1"));
    let text = heading.and_then(|h| h.text()).expect("a heading");
    assert!(text.contains("<b>&\"quoted\"</b>"), "{text}");
}

#[test]
fn each_setting_has_a_look_of_its_own_on_the_page() {
    let Bench { results, cells } = small();
    let page = html(&results, &cells);
    for class in ["s0", "s1", "s2"] {
        assert!(page.contains(&format!("<g class=\"{class}\">")), "{class}");
    }
    assert!(page.contains("class=\"band\""), "the noise");
    assert!(page.contains("% of wakeups within"), "the latencies");
}
