//! A `.tflite` file gives an error or a model, whatever is in it: the importer never panics, hangs
//! or takes memory out of proportion to the file (contract: GEN-8), and the validator can look at
//! what comes out.
//!
//! Worth starting from real files: `cargo +nightly fuzz run tflite_import CORPUS assets/digits`.

#![no_main]

use nnhal_hal::HalVersion;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(import) = nnhal_tflite::import_bytes(bytes) {
        assert_eq!(import.operator_origin.len(), import.model.main.operations.len());
        assert_eq!(import.inputs.len(), import.model.main.inputs.len());
        assert_eq!(import.outputs.len(), import.model.main.outputs.len());
        let _ = nnhal_ops::validate(&import.model, HalVersion::LATEST);
    }
});
