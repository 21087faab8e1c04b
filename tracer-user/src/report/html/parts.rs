//! Pieces that several sections have, and the sections that are little more than such a piece.

use super::data::Timeline;
use super::markup::{Attribute, Markup};
use crate::report::escape::escape_line;
use crate::report::findings::percent;
use crate::report::model::Report;
use crate::report::text::style::{count, plural, time};

/// A part of a bar.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// A class of the style sheet.
    pub color: &'static str,
    /// Its length.
    pub ns: i64,
}

/// A section with its heading, which links can name.
pub fn section(page: &mut Markup, id: &str, title: &str, note: &str, inside: impl FnOnce(&mut Markup)) {
    let heading = format!("{id}-title");
    page.with("section", &[("id", id), ("aria-labelledby", &heading)], |page| {
        page.with("div", &[("class", "heading")], |page| {
            page.leaf("h2", &[("id", &heading)], title);
            if !note.is_empty() {
                page.leaf("p", &[("class", "faint")], note);
            }
        });
        inside(page);
    });
}

/// A small square in a colour. What it stands for is written beside it.
pub fn swatch(page: &mut Markup, color: &'static str) {
    page.with("svg", &[("class", "swatch"), ("viewBox", "0 0 10 10"), ("aria-hidden", "true")], |page| {
        page.with("rect", &[("class", color), ("width", "10"), ("height", "10"), ("rx", "2")], |_| ());
    });
}

/// Parts of a whole, side by side. A picture only: its numbers are written beside it.
pub fn bar(page: &mut Markup, parts: &[Part], whole: i64, kind: &'static str) {
    let class = format!("parts {kind}");
    let attributes: [Attribute<'_>; 4] = [
        ("class", class.trim_end()),
        ("viewBox", "0 0 1000 10"),
        ("preserveAspectRatio", "none"),
        ("aria-hidden", "true"),
    ];
    page.with("svg", &attributes, |page| {
        page.with("rect", &[("class", "ground"), ("width", "1000"), ("height", "10")], |_| ());
        let mut from = 0;
        for part in parts {
            let at = |ns: i64| format!("{:.2}", ns as f64 * 1000.0 / whole.max(1) as f64);
            let (x, width) = (at(from), at(part.ns));
            page.with(
                "rect",
                &[("class", part.color), ("x", &x), ("width", &width), ("height", "10")],
                |_| (),
            );
            from += part.ns;
        }
    });
}

/// The place of the timeline, which the script draws, and of the gap that is picked there.
pub fn timeline(page: &mut Markup, timeline: &Timeline) {
    if timeline.total_gaps == 0 {
        return;
    }
    section(
        page,
        "timeline",
        "When they waited",
        "share of the time, by cause; below it the single gaps",
        |page| {
            page.with("noscript", &[], |page| {
                page.leaf(
                    "p",
                    &[("class", "careful")],
                    "The timeline is drawn by a script, and scripts are off. The tables below say the same.",
                );
            });
            page.with(
                "div",
                &[
                    ("id", "timeline-tools"),
                    ("class", "tools"),
                    ("role", "toolbar"),
                    ("aria-label", "Timeline"),
                    ("hidden", ""),
                ],
                |page| {
                    for (id, label, words) in TOOLS {
                        page.leaf("button", &[("type", "button"), ("id", id), ("aria-label", label)], words);
                    }
                    page.leaf("output", &[("id", "range"), ("class", "faint n")], "");
                },
            );
            page.with(
                "div",
                &[
                    ("id", "lanes"),
                    ("role", "application"),
                    ("tabindex", "0"),
                    ("aria-roledescription", "timeline"),
                    ("aria-label", "Gaps of the GPUs over time"),
                    ("aria-describedby", "timeline-keys"),
                    ("hidden", ""),
                ],
                |page| {
                    page.with("canvas", &[("id", "canvas"), ("aria-hidden", "true")], |_| ());
                    page.leaf("div", &[("id", "tip"), ("role", "presentation"), ("hidden", "")], "");
                },
            );
            page.leaf(
            "p",
            &[("id", "timeline-keys"), ("class", "faint keys")],
            "Keys: ← → gap before and after, ↑ ↓ GPU, + − zoom, 0 all, Home the longest gap, Shift with ← → moves the view, Enter to the gap's chain. Mouse: click picks, drag moves, the wheel zooms with Ctrl or once the timeline was chosen.",
        );
            page.leaf("p", &[("class", "faint")], &what_is_drawn(timeline));
            page.leaf("p", &[("id", "said"), ("class", "only-read"), ("aria-live", "polite")], "");
            page.with("div", &[("id", "gap"), ("class", "gap"), ("tabindex", "-1"), ("hidden", "")], |_| ());
        },
    );
}

const TOOLS: [(&str, &str, &str); 8] = [
    ("zoom-in", "Zoom in", "+"),
    ("zoom-out", "Zoom out", "−"),
    ("zoom-all", "Show all of it", "All"),
    ("move-left", "Earlier", "◀"),
    ("move-right", "Later", "▶"),
    ("gap-before", "Gap before", "‹ gap"),
    ("gap-after", "Gap after", "gap ›"),
    ("gap-longest", "The longest gap", "Longest"),
];

fn what_is_drawn(timeline: &Timeline) -> String {
    let kept = timeline.gaps.len() as u64;
    if kept == timeline.total_gaps {
        return format!("All {} are drawn one by one.", plural(kept, "gap"));
    }
    let kept_ns: i64 = timeline.gaps.iter().map(|gap| gap.length).sum();
    let all_ns: i64 =
        timeline.devices.iter().flat_map(|device| device.columns.iter().flatten()).map(|(_, ns)| ns).sum();
    format!(
        "The {} longest of {} are drawn one by one ({} of the waiting); the shorter ones are in the coloured shares above them.",
        count(kept),
        plural(timeline.total_gaps, "gap"),
        percent(kept_ns.min(all_ns), all_ns),
    )
}

/// What to change.
pub fn advice(page: &mut Markup, report: &Report) {
    if report.advice.is_empty() {
        return;
    }
    section(page, "change", "What to change", "the time is the most that can be won", |page| {
        page.with("ol", &[("class", "advice")], |page| {
            for advice in &report.advice {
                page.with("li", &[], |page| {
                    page.with("p", &[], |page| {
                        page.leaf("b", &[], &time(advice.ns));
                        let share = percent(advice.ns, report.totals.window_ns);
                        page.text(&format!(" ({share} of the window): {}", escape_line(&advice.found)));
                    });
                    page.with("ul", &[], |page| {
                        for change in &advice.change {
                            page.leaf("li", &[], change);
                        }
                    });
                    page.with("p", &[("class", "faint")], |page| {
                        page.leaf("b", &[], "To disprove it: ");
                        page.text(&advice.disproof);
                    });
                });
            }
        });
    });
}
