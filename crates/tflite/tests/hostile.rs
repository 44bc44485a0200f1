//! Damaged and hostile files: an import or an error, never a panic, a hang, or much memory.

use proptest::prelude::*;
use std::path::Path;

fn digits(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets/digits").join(name);
    std::fs::read(path).unwrap()
}

/// Imports; if that succeeds, the model is put before the validator, as a device would.
fn survive(bytes: &[u8]) -> bool {
    match tflite::import_bytes(bytes) {
        Ok(import) => {
            let _ = ops::validate(&import.model, hal::HalVersion::LATEST);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

#[test]
fn whole_files_import() {
    assert!(survive(&digits("digits_float32.tflite")));
    assert!(survive(&digits("digits_int8.tflite")));
}

#[test]
fn every_truncation_is_survived() {
    let bytes = digits("digits_int8.tflite");
    let mut imported = 0;
    for length in (0..bytes.len()).step_by(7) {
        imported += usize::from(survive(&bytes[..length]));
    }
    // The root table lies near the end or the beginning, but what it points to is everywhere.
    assert!(imported < 200, "{imported} truncated files were imported");
}

#[test]
fn every_byte_of_the_tables_may_be_any_extreme() {
    let bytes = digits("digits_int8.tflite");
    let stride = if cfg!(debug_assertions) { 13 } else { 5 };
    for at in (0..bytes.len()).step_by(stride) {
        for value in [0x00, 0x7F, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            survive(&damaged);
        }
    }
}

#[test]
fn every_word_of_the_tables_may_be_near_a_limit() {
    let bytes = digits("digits_float32.tflite");
    let limits = [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0xFFFF_FFF0_u32];
    let stride = if cfg!(debug_assertions) { 44 } else { 20 };
    for at in (0..bytes.len() - 4).step_by(stride) {
        for limit in limits {
            let mut damaged = bytes.clone();
            damaged[at..at + 4].copy_from_slice(&limit.to_le_bytes());
            survive(&damaged);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn many_flips_at_once_are_survived(
        flips in prop::collection::vec((0_usize..25_408, any::<u8>()), 1..40)
    ) {
        let mut bytes = digits("digits_int8.tflite");
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= value;
            }
        }
        survive(&bytes);
    }

    #[test]
    fn a_word_moved_elsewhere_is_survived(from in 0_usize..6_000, to in 0_usize..6_000) {
        // Offsets and indexes are words: moved, they make tables share parts and form cycles.
        let mut bytes = digits("digits_float32.tflite");
        let (from, to) = (from * 4, to * 4);
        if let Some(word) = bytes.get(from..from + 4).map(<[u8]>::to_vec)
            && let Some(place) = bytes.get_mut(to..to + 4)
        {
            place.copy_from_slice(&word);
        }
        survive(&bytes);
    }

    #[test]
    fn noise_behind_the_right_identifier_is_survived(
        noise in prop::collection::vec(any::<u8>(), 8..2_000)
    ) {
        let mut bytes = noise;
        bytes[4..8].copy_from_slice(b"TFL3");
        survive(&bytes);
    }
}
