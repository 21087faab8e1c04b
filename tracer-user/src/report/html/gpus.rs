//! Each GPU's time as a bar.

use super::markup::Markup;
use super::parts::{self, Part};
use crate::report::findings::percent;
use crate::report::model::{Device, Report};
use crate::report::text::shown;
use crate::report::text::style::{bytes, count, plural, time};

/// Devices that get a bar of their own; of the others the sums are said.
const DEVICES: usize = 64;

pub fn write(page: &mut Markup, report: &Report) {
    parts::section(page, "gpus", "What the GPUs did", "from each one's first work to its last", |page| {
        page.with("ul", &[("class", "legend"), ("aria-hidden", "true")], |page| {
            for (color, words) in KINDS {
                page.with("li", &[], |page| {
                    parts::swatch(page, color);
                    page.text(words);
                });
            }
        });
        for device in report.devices.iter().take(DEVICES) {
            one(page, device);
        }
        if report.devices.len() > DEVICES {
            let rest: i64 = report.devices.iter().skip(DEVICES).map(Device::gap_ns).sum();
            let more = (report.devices.len() - DEVICES) as u64;
            page.leaf(
                "p",
                &[("class", "faint")],
                &format!("{} with {} of waiting not drawn", plural(more, "more GPU"), time(rest)),
            );
        }
    });
}

const KINDS: [(&str, &str); 4] =
    [("busy", "computing"), ("copy", "only copying"), ("comm", "only communicating"), ("idle", "idle")];

fn one(page: &mut Markup, device: &Device) {
    let window = device.window_ns();
    let lengths = [device.compute_ns, device.exposed_copy_ns, device.exposed_comm_ns, device.idle_ns];
    let kinds = || KINDS.into_iter().zip(lengths).filter(|(_, ns)| *ns > 0);
    let words: Vec<String> =
        kinds().map(|((_, words), ns)| format!("{words} {}", percent(ns, window))).collect();
    page.with("div", &[("class", "gpu")], |page| {
        page.with("h3", &[], |page| {
            page.text(&format!("GPU {} ", device.device));
            page.leaf("span", &[("class", "faint")], &shown(&device.name));
        });
        let bar: Vec<Part> = kinds().map(|((color, _), ns)| Part { color, ns }).collect();
        parts::bar(page, &bar, window, "tall");
        page.leaf("p", &[], &format!("{} of {}", words.join(", "), time(window)));
        let copies =
            if device.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", count(device.copies)) };
        page.leaf(
            "p",
            &[("class", "faint")],
            &format!(
                "{}, {copies} of {}; outside of this: {} before its first work, {} after its last",
                plural(device.kernels, "kernel"),
                bytes(device.bytes),
                time(device.edge_before_ns),
                time(device.edge_after_ns),
            ),
        );
        if device.imbalance_ns != 0 {
            let line = format!(
                "DOES NOT ADD UP: its work and its gaps differ from its window by {}",
                time(device.imbalance_ns)
            );
            page.leaf("p", &[("class", "bad")], &line);
        }
    });
}
