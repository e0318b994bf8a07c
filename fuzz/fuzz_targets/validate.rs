//! Any machine configuration is judged, and each finding stands on a line of the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use talos_config::validate::{Mode, Options, validate};

fuzz_target!(|text: &str| {
    let options = Options {
        mode: Mode::Container,
        strict: true,
        talos_version: None,
    };
    let Ok(report) = validate(text, &options) else {
        return;
    };
    let lines = text.lines().count() as u64 + 1;
    for finding in report.findings {
        assert!(finding.line.is_none_or(|line| line <= lines));
    }
});
