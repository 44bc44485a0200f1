//! Validation answers, whatever the model: it never panics, hangs or takes memory without bound,
//! and a model that keeps the rules of one version keeps those of the later ones (contract: GEN-8,
//! SEC-3).
//!
//! The first byte chooses between a wild model and a valid one that the other bytes damage.

#![no_main]

#[path = "../../crates/ops/tests/garbage/mod.rs"]
mod garbage;
#[path = "../../crates/ops/tests/samples/mod.rs"]
mod samples;

use garbage::Source;
use nnhal_hal::{HalVersion, Model};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// No model that an input describes takes so long.
const SLOW: Duration = Duration::from_secs(2);

/// Made once: making their memory is slow.
fn samples() -> &'static [Model] {
    static SAMPLES: OnceLock<Vec<Model>> = OnceLock::new();
    SAMPLES.get_or_init(|| samples::all().into_iter().map(|sample| sample.model).collect())
}

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let source = &mut Source::new(rest);
    let model = match samples().get(usize::from(*first)) {
        Some(sample) => {
            let mut model = sample.clone();
            garbage::damage(&mut model, source);
            model
        }
        None => garbage::wild(source),
    };
    let started = Instant::now();
    let oldest = nnhal_ops::validate::oldest_version(&model).ok();
    assert!(started.elapsed() < SLOW, "{:?}", started.elapsed());
    for version in HalVersion::ALL.iter().copied() {
        let result = nnhal_ops::validate::check(&model, version);
        assert_eq!(result.is_ok(), oldest.is_some_and(|it| version >= it), "{version}: {result:?}");
        let is_whole = result.as_ref().is_ok_and(|checked| checked.defects().is_empty());
        assert_eq!(nnhal_ops::validate(&model, version).is_ok(), is_whole, "{version}");
        if let Ok(checked) = result {
            let left = checked.obstacles().iter().filter(|it| it.is_none()).count();
            let part = checked.runnable_part().map_or(0, |part| part.operations.len());
            assert_eq!(part, left, "{version}");
        }
    }
});
