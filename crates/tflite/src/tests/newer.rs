//! What is newer than this program is named.

use super::draft::Draft;
use super::mapping::{import, reasons};
use crate::import_bytes;
use crate::schema::{
    BuiltinOperator as B, QuantizationDetails, QuantizationParameters, TensorType as T, Unread,
};

/// A magnitude, of this version.
fn negation(version: i32) -> Draft {
    let mut draft = Draft::new();
    let [x, y] = [0; 2].map(|_| draft.tensor(T::Float32, &[2]));
    draft.operator(B::Abs, &[x], &[y], None);
    draft.ends(0, &[x], &[y]);
    draft.model.operator_codes.as_mut().unwrap()[0].version = version;
    draft
}

#[test]
fn versions_of_operators() {
    import(&negation(5));
    let error = import_bytes(&negation(6).bytes()).unwrap_err().to_string();
    assert!(error.contains("ABS version 6 (\"tensor 0\" FLOAT32 [2], "), "{error}");
    let expected = "the operator is newer than this program, which knows versions up to 5";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn operators_and_types() {
    let mut draft = negation(1);
    draft.model.operator_codes.as_mut().unwrap()[0].builtin_code = 300;
    let error = import_bytes(&draft.bytes()).unwrap_err().to_string();
    assert!(error.contains("builtin 300 version 1"), "{error}");
    assert!(error.contains("the operator is newer than this program"), "{error}");
    let mut draft = negation(1);
    draft.tensor_mut(0).type_ = 23;
    let found = reasons(&draft);
    assert_eq!(found[0], "the HAL has no type type 23");
}

#[test]
fn a_way_to_quantize_is_named_that_is_not_known() {
    for (details, name) in [
        (QuantizationDetails::CustomQuantization(Box::new(Unread {})), "CustomQuantization"),
        (QuantizationDetails::MultiAxisQuantization(Box::new(Unread {})), "MultiAxisQuantization"),
    ] {
        let mut draft = Draft::new();
        let [x, y] = [0; 2].map(|_| draft.tensor(T::Int8, &[2]));
        draft.tensor_mut(x).quantization = Some(Box::new(QuantizationParameters {
            details: Some(details),
            ..QuantizationParameters::default()
        }));
        draft.operator(B::Neg, &[x], &[y], None);
        draft.ends(0, &[x], &[y]);
        let found = reasons(&draft);
        assert!(found[0].contains(&format!("is quantized by {name}, expected")), "{found:?}");
    }
}
