//! Values as Go programs spell them, durations such as `1m30s` and booleans such as `--flag=false`, and versions.

use std::time::Duration;

use talos_config::generate::Release;

/// Reads a Go duration: decimal numbers with units `ns`, `us`, `ms`, `s`, `m`, `h`, or `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let problem = || format!("`{text}` is not a duration such as 30s, 1m30s or 2h");
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if unsigned.starts_with('-') {
        return Err(format!("`{text}` is negative"));
    }
    if unsigned == "0" {
        return Ok(Duration::ZERO);
    }
    if unsigned.is_empty() {
        return Err(problem());
    }
    let mut total = Duration::ZERO;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(problem)?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" | "µs" | "μs" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(problem()),
        };
        let number: f64 = number.parse().map_err(|_| problem())?;
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| problem())?;
        total = total.checked_add(part).ok_or_else(problem)?;
        rest = tail;
    }
    Ok(total)
}

/// Reads a Go boolean.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

/// Accepts a version of Talos: `1.13`, `v1.13`, `v1.13.9` or `v1.13.0-rc.1`.
pub(crate) fn talos_version(text: &str) -> Result<String, String> {
    match Release::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Accepts a version of Talos, or nothing, which talosctl takes for the newest one.
pub(crate) fn talos_version_if_any(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        _ => talos_version(text),
    }
}

/// Reads a Go duration, or days such as `30d`.
pub(crate) fn period(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        _ => duration(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, milliseconds: Option<u64>) {
        assert_eq!(
            duration(text).ok(),
            milliseconds.map(Duration::from_millis),
            "{text}"
        );
    }

    #[test]
    fn durations_are_read_as_go_does() {
        check("1m30s", Some(90_000));
        check("1m0s", Some(60_000));
        check("30m", Some(1_800_000));
        check("1.5h", Some(5_400_000));
        check("300ms", Some(300));
        check("8760h0m0s", Some(31_536_000_000));
        check("0", Some(0));
        check("0s", Some(0));
        check("+2s", Some(2_000));
        check("", None);
        check("5", None);
        check("s", None);
        check("1m 30s", None);
        check("1d", None);
        check("-5s", None);
        check("1..5s", None);
        check("99999999999999999999h", None);
    }

    #[test]
    fn booleans_are_read_as_go_does() {
        assert_eq!(boolean("T"), Ok(true));
        assert_eq!(boolean("0"), Ok(false));
        assert!(boolean("yes").is_err());
    }

    #[test]
    fn versions_of_talos_are_told_from_other_words() {
        for good in [
            "1.13",
            "v1.13",
            "1.13.9",
            "v1.13.9",
            "v1.13.0-rc.1",
            "v1.14.0-alpha.2-12-g0a1b2c3",
            "v2.0",
        ] {
            assert_eq!(talos_version(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "v",
            "1",
            "nonsense",
            "latest",
            "1.13.banana",
            "v1.13.9+abc",
            "v1.13-rc.1",
            "v1.13.0-",
            "v1.13.0-rc..1",
            "1.13.9.1",
            "1..9",
            "1.+3",
            "vv1.13",
            "V1.13",
            " 1.13",
            "1.013",
            "1.99999999999",
            "1.13.9@sha256:00",
        ] {
            assert!(talos_version(bad).is_err(), "{bad}");
        }
        assert_eq!(talos_version_if_any("").as_deref(), Ok(""));
        assert!(talos_version_if_any("x").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_duration_or_an_error(text in "\\PC{0,12}") {
            let _ = duration(&text);
        }
    }

    #[test]
    fn periods_are_durations_or_days() {
        assert_eq!(period("30d"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(period("720h"), Ok(Duration::from_secs(2_592_000)));
        assert_eq!(period("0"), Ok(Duration::ZERO));
        assert!(period("d").is_err());
        assert!(period("30").is_err());
    }
}
