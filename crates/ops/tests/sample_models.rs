//! The samples, which other tests break, are what they say. How each must not be broken is tested
//! by the mutants of the crate `conformance`.

mod samples;

use nnhal_hal::{HalVersion, OperandType};

#[test]
fn samples_are_valid_from_their_version_on() {
    for sample in samples::all() {
        for version in HalVersion::ALL.iter().copied() {
            match nnhal_ops::validate(&sample.model, version) {
                Ok(_) => assert!(version >= sample.version, "{}: {version}", sample.name),
                Err(error) => assert!(version < sample.version, "{}: {error}", sample.name),
            }
        }
        assert_eq!(nnhal_ops::validate::oldest_version(&sample.model), Ok(sample.version));
    }
}

#[test]
fn model_25_alternative_types_are_accepted() {
    let mut count = 0;
    for sample in samples::all() {
        for (index, operand_type) in sample.alternatives {
            let mut model = sample.model.clone();
            let operand = &mut model.main.operands[index];
            operand.operand_type = operand_type;
            let is_quantized = operand_type == OperandType::TensorQuant8Asymm;
            operand.scale = if is_quantized { 0.25 } else { 0.0 };
            let result = nnhal_ops::validate(&model, sample.version);
            assert!(result.is_ok(), "{}: {operand_type}: {result:?}", sample.name);
            count += 1;
        }
    }
    assert!(count > 0);
}
