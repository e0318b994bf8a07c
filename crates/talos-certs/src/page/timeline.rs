//! When certificates end, soonest first, on a scale from an hour to ten years.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::moment;
use crate::{Inventory, Listed, ListedPlace};

const HOUR: f64 = 3600.0;
/// The scale's last point: ten years, the life of an authority.
const HOURS: f64 = 87_600.0;
/// Marks of the scale.
const MARKS: [(&str, f64); 6] = [
    ("1 d", 24.0),
    ("1 w", 168.0),
    ("30 d", 720.0),
    ("90 d", 2160.0),
    ("1 y", 8760.0),
    ("10 y", HOURS),
];

/// One certificate on the scale.
struct Bar<'inventory> {
    listed: &'inventory Listed,
    start: Timestamp,
    end: Timestamp,
}

pub(super) fn section(inventory: &Inventory, now: Timestamp) -> Markup {
    let bars: Vec<Bar<'_>> = inventory.certificates.iter().filter_map(bar).collect();
    html! {
        section #timeline aria-labelledby="timeline-title" {
            h2 #timeline-title { "Expiry" }
            @if bars.is_empty() { p { "No certificate was seen." } } @else {
                div.scroll role="region" aria-labelledby="timeline-title" tabindex="0" {
                    table.timeline {
                        thead {
                            tr {
                                th scope="col" { "Certificate" }
                                th scope="col" { "Where" }
                                th scope="col" { "Ends" }
                                th scope="col" { "Left" }
                                th scope="col" { "Renewed by" }
                                th.scale scope="col" { (scale()) }
                            }
                        }
                        tbody { @for bar in &bars { (row(bar, now)) } }
                    }
                }
            }
        }
    }
}

fn bar(listed: &Listed) -> Option<Bar<'_>> {
    Some(Bar {
        listed,
        start: listed.certificate.not_before.parse().ok()?,
        end: listed.certificate.not_after.parse().ok()?,
    })
}

fn scale() -> Markup {
    html! {
        svg aria-hidden="true" {
            @for (mark, hours) in MARKS {
                text x=(percent(hours)) y="11" text-anchor="end" { (mark) }
            }
        }
    }
}

fn row(bar: &Bar<'_>, now: Timestamp) -> Markup {
    let left = now.duration_until(bar.end);
    let state = state(bar, now);
    html! {
        tr class=(state) {
            th scope="row" title=(bar.listed.certificate.subject) { (bar.listed.purpose) }
            td { (places(&bar.listed.places)) }
            td { time datetime=(bar.end) { (moment(bar.end)) } }
            td { (words(left)) }
            td title=[bar.listed.renewal.note.as_ref()] { (bar.listed.renewal.by) }
            td.scale {
                svg aria-hidden="true" {
                    @for (_, hours) in MARKS {
                        line x1=(percent(hours)) x2=(percent(hours)) y1="0" y2="16" {}
                    }
                    rect x="0" y="3" height="10" rx="2" width=(percent(left.as_secs_f64() / HOUR)) {}
                }
            }
        }
    }
}

/// Names the first place of a certificate and counts the others, which stand in its title.
fn places(places: &[ListedPlace]) -> Markup {
    let named: Vec<String> = places
        .iter()
        .map(|place| match &place.node {
            Some(node) => format!("{node} {}", place.place),
            None => place.place.clone(),
        })
        .collect();
    html! {
        @if let Some((first, others)) = named.split_first() {
            span title=(named.join("\n")) {
                (first)
                @if !others.is_empty() { " and " (others.len()) " more" }
            }
        }
    }
}

/// Tells how urgent a certificate is: its last tenth is soon, for short and for long lives alike.
fn state(bar: &Bar<'_>, now: Timestamp) -> &'static str {
    let life = bar.start.duration_until(bar.end);
    let left = now.duration_until(bar.end);
    if now < bar.start {
        "future"
    } else if left.is_negative() {
        "expired"
    } else if left.as_secs_f64() * 10.0 < life.as_secs_f64() {
        "soon"
    } else {
        "valid"
    }
}

/// Places a time on the scale, in percent of its width.
fn percent(hours: f64) -> String {
    let place = (hours.max(1.0).ln() / HOURS.ln()).min(1.0) * 100.0;
    format!("{place:.1}%")
}

/// Says how much time is left, in the largest unit that gives at least two.
fn words(left: SignedDuration) -> String {
    let hours = left.as_hours();
    let text = match hours.abs() {
        0..2 => format!("{} min", left.as_mins().abs()),
        2..48 => format!("{} h", hours.abs()),
        48..17_520 => format!("{} d", hours.abs() / 24),
        _ => format!("{} y", hours.abs() / 8760),
    };
    if left.is_negative() {
        format!("{text} ago")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_in_the_largest_unit_that_gives_two() {
        let check = |seconds: i64, expected: &str| {
            assert_eq!(words(SignedDuration::from_secs(seconds)), expected);
        };
        check(59 * 60, "59 min");
        check(23 * 3600, "23 h");
        check(47 * 3600, "47 h");
        check(30 * 86400, "30 d");
        check(10 * 31_536_000, "10 y");
        check(-30 * 86400, "30 d ago");
    }

    #[test]
    fn the_scale_begins_at_an_hour_and_ends_at_ten_years() {
        assert_eq!(percent(-5.0), "0.0%");
        assert_eq!(percent(1.0), "0.0%");
        assert_eq!(percent(HOURS), "100.0%");
        assert_eq!(percent(2.0 * HOURS), "100.0%");
    }
}
