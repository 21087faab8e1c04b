//! The report as one HTML file that needs nothing else: no network, no other file.
//!
//! What is said is in the markup, so that it can be read without scripts, printed, and read out. The scripts draw the
//! timeline and show the chain behind a gap that is picked. The page's own policy allows no other script than these, loads
//! nothing and sends nothing.

mod colors;
mod data;
mod gpus;
mod ledger;
pub mod markup;
mod parts;
mod step_chart;
mod steps;
mod summary;
mod tables;
mod timeline;
mod trust;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use crate::report::model::Report;
use crate::report::text::shown;
use crate::store::{Bundle, StoreError};
use colors::Colors;
use markup::Markup;
use step_chart::StepCharts;

pub(super) use parts::section;
pub use timeline::{DEVICES, GAPS};

const STYLES: [&str; 4] = [
    include_str!("page/theme.css"),
    include_str!("page/layout.css"),
    include_str!("page/parts.css"),
    include_str!("page/print.css"),
];

/// In the order in which each needs those before it.
const SCRIPTS: [&str; 8] = [
    include_str!("page/words.js"),
    include_str!("page/recording.js"),
    include_str!("page/view.js"),
    include_str!("page/drawing.js"),
    include_str!("page/gap.js"),
    include_str!("page/timeline.js"),
    include_str!("page/theme.js"),
    include_str!("page/print.js"),
];

/// The page of an analysed bundle, of which `report` was made.
///
/// # Errors
/// A table cannot be read.
pub fn render(bundle: &Bundle, report: &Report, progress: &dyn Fn(u64)) -> Result<String, StoreError> {
    let colors = Colors::new(report);
    let timeline = timeline::collect(bundle, report, &colors, progress)?;
    let charts = StepCharts::collect(bundle)?;
    // A timeline is integers and strings: it is always JSON.
    let json = markup::json_for_script(&timeline).unwrap_or_else(|_| "null".into());
    let title = format!("gtrace: {}", shown(&summary::command(report)));
    Ok(document(&title, &SCRIPTS, |page| {
        summary::header(page, report);
        page.with("main", &[("id", "main")], |page| {
            summary::verdict(page, report);
            if report.totals.window_ns > 0 {
                gpus::write(page, report);
                ledger::write(page, report, &colors);
                parts::timeline(page, &timeline);
                steps::write(page, report, &charts);
                parts::advice(page, report);
                tables::write(page, report, &timeline);
            }
            trust::write(page, report);
        });
        summary::footer(page, report);
        page.own("\n<script type=\"application/json\" id=\"recording\">");
        page.own(&json);
        page.own("</script>\n");
    }))
}

/// A whole document: what `body` writes, and `scripts` of ours that run when it is there.
pub(super) fn document(title: &str, scripts: &[&'static str], body: impl FnOnce(&mut Markup)) -> String {
    let nonce = nonce();
    let mut page = Markup::default();
    page.own("<!doctype html>\n");
    page.with("html", &[("lang", "en")], |page| {
        page.with("head", &[], |page| head(page, title, &nonce));
        page.own("\n");
        page.with("body", &[], |page| {
            page.leaf("a", &[("class", "skip"), ("href", "#main")], "Skip to the report");
            body(page);
            if !scripts.is_empty() {
                page.with("script", &[("nonce", nonce.as_str())], |page| {
                    page.own("\"use strict\";\n(() => {\n");
                    for script in scripts {
                        page.own(script);
                    }
                    page.own("})();\n");
                });
            }
        });
    });
    page.own("\n");
    page.finish()
}

fn head(page: &mut Markup, title: &str, nonce: &str) {
    page.void("meta", &[("charset", "utf-8")]);
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; base-uri 'none'; form-action 'none'"
    );
    page.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
    page.void("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    page.void("meta", &[("name", "color-scheme"), ("content", "light dark")]);
    page.void("meta", &[("name", "generator"), ("content", concat!("gtrace ", env!("CARGO_PKG_VERSION")))]);
    page.leaf("title", &[], title);
    page.with("style", &[("nonce", nonce)], |page| STYLES.iter().for_each(|style| page.own(style)));
}

/// A word that nobody who chose the names in a recording could know.
fn nonce() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
