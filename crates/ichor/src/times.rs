//! Times as people read them.

use jiff::Timestamp;

/// Says how long ago something happened, such as `7m10s ago`.
pub(crate) fn ago(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(time).as_secs();
    if seconds < 0 {
        return format!("in {}", short(seconds.unsigned_abs()));
    }
    format!("{} ago", short(seconds.unsigned_abs()))
}

/// Writes seconds with their two largest units, such as `2h3m` or `45s`.
fn short(seconds: u64) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
    let Some(first) = units.iter().position(|(_, length)| seconds >= *length) else {
        return "0s".to_owned();
    };
    let mut rest = seconds;
    let mut text = String::new();
    for (name, length) in units.iter().skip(first).take(2) {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            text.push_str(&format!("{count}{name}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(seconds: i64, expected: &str) {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let time = Timestamp::from_second(1_800_000_000 - seconds).unwrap();
        assert_eq!(ago(time, now), expected);
    }

    #[test]
    fn the_two_largest_units_are_shown() {
        check(0, "0s ago");
        check(45, "45s ago");
        check(430, "7m10s ago");
        check(7_380, "2h3m ago");
        check(86_400, "1d ago");
        check(200_000, "2d7h ago");
        check(-90, "in 1m30s");
    }
}
