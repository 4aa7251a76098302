//! Numbers, times and rates in sentences, and the words that a reader may not know.

use chart::short;

/// What the words of a report mean, for readers who have never measured far memory.
pub(super) const GLOSSARY: [(&str, &str); 9] = [
    (
        "local memory",
        "the part of a program's memory that stays in its own machine; the rest is far away, on \
         another machine behind a network",
    ),
    (
        "fetch",
        "the program touches a page (4 KiB) that is far away, and waits until it has come over the \
         network",
    ),
    (
        "round trip",
        "how long a request for a page takes there and back in an idle network, without the time \
         that the page itself takes on the wire; a microsecond (µs) is a millionth of a second",
    ),
    ("bandwidth", "how many bits pass over the network's link in a second; 1 Gb/s is 10^9"),
    (
        "slowdown",
        "how many times as long the program takes as without far memory (or, where it is measured \
         by work done in a second, how many times less it does); 1.05 is 5 % slower",
    ),
    (
        "interval",
        "the numbers in brackets: the true value lies between them in at least 93 of 100 such \
         experiments",
    ),
    (
        "percentile",
        "p99 is the time that 99 of 100 do not exceed; the slow ones are what users notice",
    ),
    ("native", "the program as it is, without afar"),
    (
        "flow",
        "one transfer over the network from its first byte to its last; its ideal time is what it \
         takes alone in the network",
    ),
];

/// A moment, to the minute: `2026-11-28 15:51 UTC`.
pub(super) fn moment(unix_ns: u64) -> String {
    let minutes = unix_ns / 60_000_000_000;
    let (days, minutes) = (minutes / 1440, minutes % 1440);
    // Days since 1 March of the year 0, in eras of 400 years that all have as many days.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// A share in percent: `5 %`, `0.4 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", short(share * 100.0))
}

/// How much slower a slowdown is: `5 % slower`, `2.3 times as slow`.
pub(super) fn slower(slowdown: f64) -> String {
    match slowdown {
        ..0.995 => format!("{} faster", percent(1.0 - slowdown)),
        ..1.005 => "as fast as without it".to_owned(),
        ..2.0 => format!("{} slower", percent(slowdown - 1.0)),
        _ => format!("{} times as slow", short(slowdown)),
    }
}

/// A time with a unit of its size.
pub(super) fn time_ns(ns: f64) -> String {
    match ns.abs() {
        0.0..1e3 => format!("{} ns", short(ns)),
        0.0..1e6 => format!("{} µs", short(ns / 1e3)),
        0.0..1e9 => format!("{} ms", short(ns / 1e6)),
        _ => format!("{} s", short(ns / 1e9)),
    }
}

/// A rate of bits in Mb/s or Gb/s.
pub(super) fn bits_per_s(rate: f64) -> String {
    match rate.abs() {
        0.0..1e9 => format!("{} Mb/s", short(rate / 1e6)),
        _ => format!("{} Gb/s", short(rate / 1e9)),
    }
}

/// A number as it stands in a table and in CSV: enough digits to compute with.
pub(super) fn exact(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { String::new() };
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 12")]
    let decimals = (6.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// A command as it can be typed again in a shell.
pub(super) fn command(words: &[String]) -> String {
    let plain = |word: &String| {
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,%@+{}".contains(letter);
        !word.is_empty() && word.chars().all(is_plain)
    };
    let quoted = words.iter().map(|word| match plain(word) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_a_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_795_880_657, "2026-11-28 15:44 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(moment(seconds * 1_000_000_000), wanted);
        }
    }

    #[test]
    fn numbers_in_sentences() {
        assert_eq!(percent(0.05), "5 %");
        let cases = [0.9, 1.001, 1.07, 2.5].map(slower);
        assert_eq!(
            cases,
            ["10 % faster", "as fast as without it", "7 % slower", "2.5 times as slow"]
        );
        let times = [900.0, 5_300.0, 2e6, 3e9].map(time_ns);
        assert_eq!(times, ["900 ns", "5.3 µs", "2 ms", "3 s"]);
        assert_eq!([1e8, 4e10].map(bits_per_s), ["100 Mb/s", "40 Gb/s"]);
        assert_eq!([0.0, 3.0, 1.234_567_89, 1e-5].map(exact), ["0", "3", "1.234568", "0.00001"]);
        let words = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(list(&words), "a, b and c");
        assert_eq!(list(&words[..1]), "a");
    }

    #[test]
    fn commands_can_be_typed_again() {
        let words = ["afar", "run", "--local", "25%", "it's", ""].map(str::to_owned);
        assert_eq!(command(&words), "afar run --local 25% 'it'\\''s' ''");
    }
}
