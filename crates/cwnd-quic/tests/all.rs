//! The factories: specifications, laws in files and texts, and refused controllers.

use cwnd::registry::algorithms;
use cwnd_quic::{Controllers, Error};

/// quinn ignores pacing rates, and so refuses the controllers that set one.
#[test]
fn quinn_refuses_controllers_that_pace() {
    let refused: Vec<_> = algorithms()
        .iter()
        .map(|algorithm| algorithm.name)
        .filter(|name| cwnd_quic::quinn::factory(*name).is_err())
        .collect();
    assert_eq!(refused, ["prague", "daimd", "udt", "tfrc", "bbr", "bbr3", "copa", "c4"]);
    let error = cwnd_quic::quinn::factory("reno(pacing=1.25)").expect_err("it paces");
    assert_eq!(
        error.to_string(),
        "reno(pacing=1.25) sets a pacing rate, which quinn ignores: it would send bursts \
         (factory_even_if_paced accepts it)"
    );
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(cwnd_quic::quinn::factory_even_if_paced("bbr3").is_ok());
}

const GENTLE: &str = r#"
law gentle "AIMD(alpha, 1/4)"
parameter alpha = 1 in [0, 10] "packets in a round-trip time"
on grow:
    return w + alpha * acked / w
on cut:
    return 3 * w / 4
"#;

/// A law in a file, by its path, with values of its parameters.
#[test]
fn laws_are_read_from_files_and_texts() {
    let folder = std::env::temp_dir().join(format!("cwnd-quic-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    let path = folder.join("gentle.law").display().to_string();
    let read = |text: &str| Controllers::try_from(text).map(|controllers| controllers.to_string());
    let failed = |text: &str| read(text).expect_err("it is faulty").to_string();
    assert!(failed(&path).starts_with(&format!("{path}: ")), "{}", failed(&path));
    std::fs::write(&path, GENTLE).expect("the folder is writable");
    assert_eq!(read(&path).expect("it is right"), "gentle.law");
    assert_eq!(read(&format!("{path}(alpha=2)")).expect("it is right"), "gentle.law(alpha=2)");
    std::fs::write(&path, GENTLE.replace("3 * w", "3 * v")).expect("the folder is writable");
    assert!(failed(&path).starts_with(&format!("{path}:7:16: ")), "{}", failed(&path));
    std::fs::remove_dir_all(&folder).expect("it is there");

    let law = cwnd_quic::law("text.law", GENTLE).expect("it is right");
    assert_eq!(Controllers::from(law).to_string(), "text.law");
    assert!(matches!(cwnd_quic::law("text.law", "law"), Err(Error::Law { .. })));
}
