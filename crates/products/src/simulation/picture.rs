//! Draws a timeline with a lane for each actor, and the requests between them.

use super::report::{Event, Failure};
use crate::html::escape;

/// Actors that always have a lane, from top to bottom. Requests end in the lane of the API server.
const LANES: [&str; 4] = ["user", "operator", API_SERVER, "environment"];
const API_SERVER: &str = "API server";
const EXTERNAL: &str = "external systems";
const FAULT: &str = "fault";

const LANE: usize = 34;
/// Height of the axis, above the lanes.
const AXIS: usize = 20;
/// Distance between events, and the extra distance for a pause.
const STEP: usize = 16;
const PAUSE: usize = 34;
/// Gap in milliseconds between two events above which a pause is drawn.
const LONGEST: u64 = 400;
const MARGIN: usize = 24;

/// Adds the picture. If it is too wide, it scrolls in its frame while lane names stay in place.
pub(super) fn push_timeline(page: &mut String, failure: &Failure) {
    let lanes = lanes(&failure.events);
    let places = places(&failure.events);
    let width = places.last().copied().unwrap_or(0) + 2 * MARGIN;
    let height = AXIS + lanes.len() * LANE;
    page.push_str("<div class=\"timeline\">\n<ul class=\"lanes\" aria-hidden=\"true\">");
    for lane in &lanes {
        page.push_str(&format!("<li class=\"{}\">{}</li>", class(lane), escape(lane)));
    }
    page.push_str(&format!(
        "</ul>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Timeline, which scrolls\">\n\
         <svg role=\"img\" aria-label=\"Timeline of {} events; the table below lists them\" width=\"{width}\" \
         height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n",
        failure.events.len()
    ));
    for number in 0..lanes.len() {
        let y = middle(number);
        page.push_str(&format!(
            "<line class=\"lane\" x1=\"0\" y1=\"{y}\" x2=\"{width}\" y2=\"{y}\"/>\n"
        ));
    }
    push_axis(page, &failure.events, &places, height);
    for (event, x) in failure.events.iter().zip(&places) {
        push_event(page, event, *x, &lanes, height);
    }
    page.push_str("</svg>\n</div>\n</div>\n");
    push_legend(page);
}

fn push_legend(page: &mut String) {
    page.push_str("<ul class=\"legend\">");
    for (mark, meaning) in [
        (
            "<circle class=\"changed\" cx=\"8\" cy=\"8\" r=\"5\"/>",
            "changed something",
        ),
        (
            "<circle class=\"read\" cx=\"8\" cy=\"8\" r=\"4\"/>",
            "changed nothing",
        ),
        (
            "<path class=\"error\" d=\"M4 4l8 8M12 4l-8 8\"/>",
            "answered with an error",
        ),
        ("<path class=\"fault\" d=\"M8 2l6 6-6 6-6-6z\"/>", "perturbation"),
        (
            "<rect class=\"note\" x=\"3\" y=\"3\" width=\"10\" height=\"10\"/>",
            "starts, ends or fails",
        ),
    ] {
        page.push_str(&format!(
            "<li><svg aria-hidden=\"true\" width=\"16\" height=\"16\" viewBox=\"0 0 16 16\">{mark}</svg> {meaning}</li>"
        ));
    }
    page.push_str("</ul>\n");
}

fn lanes(events: &[Event]) -> Vec<&str> {
    let mut lanes = LANES.to_vec();
    for event in events {
        if !lanes.contains(&event.actor.as_str()) && event.actor != FAULT {
            lanes.push(&event.actor);
        }
    }
    if events.iter().any(|event| event.external) {
        lanes.insert(3, EXTERNAL);
    }
    if events.iter().any(|event| event.actor == FAULT) {
        lanes.push(FAULT);
    }
    lanes
}

pub(super) fn class(actor: &str) -> &'static str {
    match actor {
        "user" => "user",
        "operator" | "operator 2" => "operator",
        API_SERVER | EXTERNAL => "server",
        "environment" => "environment",
        FAULT => "fault",
        _ => "other",
    }
}

fn places(events: &[Event]) -> Vec<usize> {
    let mut x = MARGIN;
    let mut before = events.first().map_or(0, |event| event.at);
    let mut places = Vec::new();
    for event in events {
        if is_pause(before, event.at) {
            x += PAUSE;
        }
        places.push(x);
        before = event.at;
        x += STEP;
    }
    places
}

fn is_pause(before: u64, at: u64) -> bool {
    at.saturating_sub(before) > LONGEST
}

fn middle(lane: usize) -> usize {
    AXIS + lane * LANE + LANE / 2
}

/// Labels the time at the start and after each pause.
fn push_axis(page: &mut String, events: &[Event], places: &[usize], height: usize) {
    let mut before = None;
    for (event, x) in events.iter().zip(places) {
        if before.is_none_or(|before| is_pause(before, event.at)) {
            let line = x - STEP / 2;
            page.push_str(&format!(
                "<line class=\"pause\" x1=\"{line}\" y1=\"{AXIS}\" x2=\"{line}\" y2=\"{height}\"/>\n\
                 <text x=\"{line}\" y=\"13\">{}</text>\n",
                short_seconds(event.at)
            ));
        }
        before = Some(event.at);
    }
}

/// A time in seconds with at most one decimal. Otherwise, labels of adjacent pauses could touch.
fn short_seconds(milliseconds: u64) -> String {
    match (milliseconds / 1000, milliseconds % 1000 / 100) {
        (seconds, 0) => format!("{seconds} s"),
        (seconds, tenths) => format!("{seconds}.{tenths} s"),
    }
}

pub(super) fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

fn push_event(page: &mut String, event: &Event, x: usize, lanes: &[&str], height: usize) {
    let lane = lanes.iter().position(|lane| *lane == event.actor).unwrap_or(0);
    let y = middle(lane);
    let kind = class(&event.actor);
    page.push_str(&format!(
        "<g class=\"{kind}\"><title>{} {}: {}{}</title>",
        seconds(event.at),
        escape(&event.actor),
        escape(&event.text),
        event.code.map(|code| format!(" → {code}")).unwrap_or_default(),
    ));
    let target = if event.external { EXTERNAL } else { API_SERVER };
    let server = lanes.iter().position(|lane| *lane == target).map_or(y, middle);
    match event.code {
        _ if event.actor == FAULT => page.push_str(&format!(
            "<line class=\"cut\" x1=\"{x}\" y1=\"{AXIS}\" x2=\"{x}\" y2=\"{height}\"/>\
             <path class=\"fault\" d=\"M{x} {}l7 7-7 7-7-7z\"/>",
            y - 7
        )),
        None => page.push_str(&format!(
            "<rect class=\"note\" x=\"{}\" y=\"{}\" width=\"10\" height=\"10\"/>",
            x - 5,
            y - 5
        )),
        Some(code) => {
            page.push_str(&format!(
                "<line class=\"request\" x1=\"{x}\" y1=\"{y}\" x2=\"{x}\" y2=\"{server}\"/><circle class=\"from\" cx=\"{x}\" \
                 cy=\"{y}\" r=\"3\"/>"
            ));
            page.push_str(&match (code, event.changed) {
                (400.., _) => format!(
                    "<path class=\"error\" d=\"M{} {}l8 8m0-8l-8 8\"/>",
                    x - 4,
                    server - 4
                ),
                (_, true) => format!("<circle class=\"changed\" cx=\"{x}\" cy=\"{server}\" r=\"5\"/>"),
                (_, false) => format!("<circle class=\"read\" cx=\"{x}\" cy=\"{server}\" r=\"4\"/>"),
            });
        }
    }
    page.push_str("</g>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: u64, actor: &str, code: Option<u16>) -> Event {
        Event {
            at,
            actor: actor.to_owned(),
            text: "get pods <a>".to_owned(),
            code,
            changed: false,
            external: false,
        }
    }

    #[test]
    fn lanes_of_others_are_added_and_faults_are_last() {
        let events = [event(0, "fault", None), event(0, "registrar", Some(200))];
        let expected = [
            "user",
            "operator",
            "API server",
            "environment",
            "registrar",
            "fault",
        ];
        assert_eq!(lanes(&events), expected);
    }

    #[test]
    fn external_systems_have_a_lane_below_the_server() {
        let mut call = event(0, "operator", Some(200));
        call.external = true;
        let expected = [
            "user",
            "operator",
            "API server",
            "external systems",
            "environment",
        ];
        assert_eq!(lanes(&[call]), expected);
    }

    #[test]
    fn pauses_are_wider_than_events() {
        let events = [
            event(0, "user", None),
            event(400, "user", None),
            event(801, "user", None),
        ];
        assert_eq!(
            places(&events),
            [MARGIN, MARGIN + STEP, MARGIN + 2 * STEP + PAUSE]
        );
    }
}
