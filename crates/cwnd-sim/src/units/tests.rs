use proptest::prelude::*;

use super::*;

fn rate(text: &str) -> Result<Option<f64>, String> {
    text.parse::<BitRate>().map(BitRate::finite)
}
fn nanos(text: &str) -> Result<u64, String> {
    text.parse::<Span>().map(Span::nanos)
}

#[test]
fn rates_have_the_units_of_tc() {
    assert_eq!(rate("15mbit"), Ok(Some(15e6)));
    assert_eq!(rate("1Gbit"), Ok(Some(1e9)));
    assert_eq!(rate("64kbit"), Ok(Some(64e3)));
    assert_eq!(rate("100bit"), Ok(Some(100.0)));
    assert_eq!(rate("1.5 mbit"), Ok(Some(1.5e6)));
    assert_eq!(rate("2mibit"), Ok(Some(2.0 * 1024.0 * 1024.0)));
    assert_eq!(rate("1e6"), Ok(Some(1e6)));
    assert_eq!(rate("infinite"), Ok(None));
}

#[test]
fn the_error_of_an_ambiguous_rate_has_both_meanings() {
    let message = rate("15mbps").unwrap_err();
    assert!(message.contains("write 15mbit for bits or 120mbit for bytes"), "{message}");
    assert!(rate("1kbps").is_err() && rate("10bps").is_err() && rate("1gibps").is_err());
}

#[test]
fn invalid_rates_are_errors() {
    for text in [
        "0", "0mbit", "-1mbit", "0.5bit", "7bit", "100tbit", "inf", "nan", "", "mbit", "1..2mbit",
        "15mb", "15 Mb/s", "1e999",
    ] {
        assert!(rate(text).is_err(), "{text}");
    }
}

#[test]
fn times_have_a_resolution_of_one_nanosecond() {
    assert_eq!(nanos("100ms"), Ok(100_000_000));
    assert_eq!(nanos("10us"), Ok(10_000));
    assert_eq!(nanos("10µs"), Ok(10_000));
    assert_eq!(nanos("250ns"), Ok(250));
    assert_eq!(nanos("0.1s"), Ok(100_000_000));
    assert_eq!(nanos("2min"), Ok(120_000_000_000));
    assert_eq!(nanos("2h"), Ok(MAX_DURATION.nanos()));
    assert_eq!(nanos("5"), Ok(5_000_000_000));
    for text in ["-1s", "2.1h", "1e-12s", "1d", "s", "1 s s", "NaN", "inf"] {
        assert!(nanos(text).is_err(), "{text}");
    }
}

#[test]
fn a_range_of_times_has_ordered_ends() {
    let range: SpanRange = "0.25ms..0.75ms".parse().unwrap();
    assert_eq!((range.low().nanos(), range.high().nanos()), (250_000, 750_000));
    assert_eq!(range.at(0.5).as_nanos(), 500_000);
    assert!("5s..1s".parse::<SpanRange>().unwrap_err().contains("ends before it begins"));
    assert!("1s..".parse::<SpanRange>().is_err());
    assert!("1s..2s..3s".parse::<SpanRange>().is_err());
}

#[test]
fn amounts_of_data_are_powers_of_1024_as_in_tc() {
    let bytes = |text: &str| text.parse::<Bytes>().map(Bytes::get);
    assert_eq!(bytes("1460"), Ok(1460));
    assert_eq!(bytes("64kb"), Ok(65_536));
    assert_eq!(bytes("10MB"), Ok(10 << 20));
    assert_eq!(bytes("1GiB"), Ok(1 << 30));
    assert_eq!(bytes("1500b"), Ok(1500));
    assert!(bytes("1.5").is_err() && bytes("-1").is_err() && bytes("10mbit").is_err());
}

#[test]
fn queues_have_four_units() {
    let queue = |text: &str| text.parse::<QueueSize>();
    assert_eq!(queue("20p"), Ok(QueueSize::Packets(20)));
    assert_eq!(queue("20"), Ok(QueueSize::Packets(20)));
    assert_eq!(queue("64kb"), Ok(QueueSize::Bytes(Bytes::new(65_536))));
    assert_eq!(queue("1.5bdp"), Ok(QueueSize::Bdp(1.5)));
    assert_eq!(queue("infinite"), Ok(QueueSize::Infinite));
    for text in ["0p", "-1p", "1.5p", "0bdp", "2ms", "p", "1e12p", "0kb"] {
        assert!(queue(text).is_err(), "{text}");
    }
}

#[test]
fn thresholds_are_packets_or_percentages() {
    let threshold = |text: &str| text.parse::<Threshold>();
    assert_eq!(threshold("5p"), Ok(Threshold::Packets(5.0)));
    assert_eq!(threshold("15%").map(|share| share.of(80)), Ok(12.0));
    assert!(threshold("0.15").unwrap_err().contains("15%"));
    assert!(threshold("101%").is_err() && threshold("-1p").is_err());
}

#[test]
fn probabilities_are_within_0_and_1() {
    let probability = |text: &str| text.parse::<Probability>().map(Probability::get);
    assert_eq!(probability("1%"), Ok(0.01));
    assert_eq!(probability("1"), Ok(1.0));
    assert!(probability("1.01").is_err() && probability("-0.1").is_err());
}

/// Checks that a value is read back from its text.
fn round_trip<T>(value: T) -> Result<(), TestCaseError>
where
    T: std::fmt::Display + std::str::FromStr<Err = String> + PartialEq + std::fmt::Debug,
{
    let text = value.to_string();
    prop_assert_eq!(text.parse::<T>(), Ok(value), "{}", text);
    Ok(())
}

proptest! {
    #[test]
    fn every_rate_round_trips(bits in 8.0f64..1e13) {
        round_trip(BitRate::bits(bits).unwrap())?;
        round_trip(BitRate::bits(bits.round()).unwrap())?;
        round_trip(BitRate::bits((bits / 1e5).ceil() * 1e5).unwrap_or(BitRate::INFINITE))?;
    }

    #[test]
    fn every_time_round_trips(nanos in 0..=MAX_DURATION.nanos()) {
        let span: Span = format!("{nanos}ns").parse().unwrap();
        prop_assert_eq!(span.nanos(), nanos);
        round_trip(span)?;
        round_trip(SpanRange::from(span))?;
        round_trip(format!("0s..{nanos}ns").parse::<SpanRange>().unwrap())?;
    }

    #[test]
    fn every_size_round_trips(
        bytes in 1u64..1 << 53,
        packets in 1u32..1_000_000_000,
        x in 1e-3f64..1e3,
    ) {
        round_trip(Bytes::new(bytes))?;
        round_trip(QueueSize::Packets(packets))?;
        round_trip(QueueSize::Bytes(Bytes::new(bytes)))?;
        round_trip(QueueSize::Bdp(x))?;
        round_trip(Threshold::Packets(x))?;
        round_trip(Threshold::Percent(x / 10.0))?;
        round_trip((x / 1e3).to_string().parse::<Probability>().unwrap())?;
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,24}|[0-9.eE+-]{0,12} ?[a-zµ%]{0,6}") {
        let _ = (text.parse::<BitRate>(), text.parse::<Span>(), text.parse::<SpanRange>());
        let _ = (text.parse::<Bytes>(), text.parse::<QueueSize>(), text.parse::<Threshold>());
        let _ = text.parse::<Probability>();
    }
}
