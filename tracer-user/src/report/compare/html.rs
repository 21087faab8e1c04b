//! A comparison as a page.

use super::text::{answer, how, more, ns, of, signed, size, unit};
use super::{Change, Comparison, Verdict};
use crate::report::escape::escape_line;
use crate::report::html::markup::Markup;
use crate::report::html::{document, section};
use crate::report::text::{command_words, shown};

/// The comparison as a page that needs nothing else.
#[must_use]
pub fn render(comparison: &Comparison) -> String {
    let title =
        format!("gtrace: {} against {}", shown(&comparison.after.path), shown(&comparison.before.path));
    document(&title, &[], |page| {
        page.with("main", &[("id", "main")], |page| {
            page.with("section", &[("class", "verdict"), ("aria-labelledby", "answer")], |page| {
                top(page, comparison);
            });
            for (id, title, verdict) in [
                ("better", "Less waiting", Verdict::Better),
                ("worse", "More waiting", Verdict::Worse),
                ("same", "No more than noise", Verdict::Same),
                ("unclear", "Too short to say", Verdict::Unclear),
            ] {
                changes(page, id, title, unit(comparison.per), &of(comparison, verdict));
            }
            let stages: Vec<&Change> = comparison.stages.iter().collect();
            changes(page, "stages", "By what the program was at", unit(comparison.per), &stages);
            page.with("section", &[("aria-label", "How to read it")], |page| {
                page.leaf("p", &[("class", "faint")], &how(comparison.per));
            });
        });
    })
}

fn top(page: &mut Markup, comparison: &Comparison) {
    let class = match comparison.waiting.verdict {
        Verdict::Better => "healthy",
        Verdict::Worse => "worse",
        Verdict::Same | Verdict::Unclear => "",
    };
    page.leaf("h1", &[("id", "answer"), ("class", class)], &answer(comparison));
    page.leaf("p", &[], &more(comparison));
    page.with("dl", &[("class", "first")], |page| {
        for (name, side) in [("Before", &comparison.before), ("After", &comparison.after)] {
            page.leaf("dt", &[], name);
            page.with("dd", &[], |page| {
                page.leaf("code", &[], &shown(&side.path));
                page.text(&format!(": {}", size(side)));
                page.leaf("p", &[("class", "faint")], &shown(&command_words(&side.command).join(" ")));
            });
        }
    });
    for doubt in &comparison.doubts {
        page.leaf("p", &[("class", "careful")], &escape_line(doubt));
    }
}

fn changes(page: &mut Markup, id: &'static str, title: &str, unit: &str, list: &[&Change]) {
    if list.is_empty() {
        return;
    }
    let most =
        list.iter().map(|change| change.change.abs() + change.noise.unwrap_or(0.0)).fold(1.0, f64::max);
    section(page, id, title, &format!("in each {unit}"), |page| {
        page.with(
            "div",
            &[("class", "scroll"), ("role", "region"), ("aria-label", title), ("tabindex", "0")],
            |page| {
                page.with("table", &[], |page| {
                    page.with("caption", &[("class", "only-read")], |page| page.text(title));
                    page.with("thead", &[], |page| {
                        page.with("tr", &[], |page| {
                            for (words, class) in HEAD {
                                page.leaf("th", &[("scope", "col"), ("class", class)], words);
                            }
                        });
                    });
                    page.with("tbody", &[], |page| {
                        for change in list {
                            row(page, change, most);
                        }
                    });
                });
            },
        );
    });
}

const HEAD: [(&str, &str); 6] =
    [("change", "n"), ("noise", "n"), ("less · more", ""), ("before", "n"), ("after", "n"), ("where", "")];

fn row(page: &mut Markup, change: &Change, most: f64) {
    page.with("tr", &[], |page| {
        page.leaf("td", &[("class", "n")], &signed(change.change));
        page.leaf(
            "td",
            &[("class", "n")],
            &change.noise.map(|noise| format!("±{}", ns(noise))).unwrap_or_default(),
        );
        page.with("td", &[("class", "diverging")], |page| arrow(page, change, most));
        page.leaf("td", &[("class", "n")], &ns(change.before));
        page.leaf("td", &[("class", "n")], &ns(change.after));
        page.with("td", &[], |page| {
            page.text(&change.says);
            if change.says != change.name {
                page.text(" ");
                page.leaf("code", &[("class", "faint")], &shown(&change.name));
            }
        });
    });
}

/// A bar from the middle to the left (less) or right (more), and the noise as a line around its end.
fn arrow(page: &mut Markup, change: &Change, most: f64) {
    let at = |value: f64| 500.0 + value / most * 480.0;
    let span =
        |from: f64, to: f64| (format!("{:.1}", from.min(to)), format!("{:.1}", (to - from).abs().max(1.0)));
    let color = match change.verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::Same | Verdict::Unclear => "c0",
    };
    let view = [
        ("class", "parts"),
        ("viewBox", "0 0 1000 10"),
        ("preserveAspectRatio", "none"),
        ("aria-hidden", "true"),
    ];
    page.with("svg", &view, |page| {
        page.with("rect", &[("class", "ground"), ("width", "1000"), ("height", "10")], |_| ());
        let (x, width) = span(at(0.0), at(change.change));
        page.with(
            "rect",
            &[("class", color), ("x", &x), ("width", &width), ("y", "1"), ("height", "8")],
            |_| (),
        );
        if let Some(noise) = change.noise {
            let (x, width) = span(at(change.change - noise), at(change.change + noise));
            page.with(
                "rect",
                &[("class", "cu"), ("x", &x), ("width", &width), ("y", "4"), ("height", "2")],
                |_| (),
            );
        }
        page.with("rect", &[("class", "cu"), ("x", "499"), ("width", "2"), ("height", "10")], |_| ());
    });
}
