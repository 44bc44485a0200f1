//! NCHW is NHWC transposed: with the flag set and images turned, the results are the same bytes,
//! turned likewise, in every type.

use crate::each_sample;
use crate::run::{Constants, Shapes, run};
use crate::sample::{Layout, transpose};
use nnhal_hal::OperationType;
use nnhal_ops::extension::element_size;
use nnhal_ops::{Parameter, Signature};

/// The operations whose definition has the flag.
fn operations_with_flag() -> impl Iterator<Item = OperationType> {
    let is_flag = |parameter: &Parameter| parameter.name == "NCHW";
    crate::calls::all_operations().filter(move |operation| {
        Signature::of(*operation)
            .is_some_and(|it| it.forms.iter().any(|form| form.inputs.iter().any(is_flag)))
    })
}

#[test]
fn nchw_is_nhwc_transposed() {
    // As many as `types.hal` 1.3 has.
    assert_eq!(operations_with_flag().count(), 22);
    each_sample(48, operations_with_flag(), |sample, random| {
        let turned = sample.channels_first().ok_or("the sample has no flag")?;
        for row in sample.rows() {
            let about = |error: String| format!("{:?}: {error}", row.types);
            let (last, first) = (sample.typed(row), turned.typed(row));
            let expected = run(&last, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            let found = run(&first, Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            for (index, (expected, found)) in expected.into_iter().zip(found).enumerate() {
                let expected = if sample.outputs[index].layout == Layout::Image {
                    let size = element_size(last.outputs[index].operand_type).unwrap() as usize;
                    let elements: Vec<&[u8]> = expected.1.chunks(size).collect();
                    let (dimensions, elements) = transpose(&expected.0, &elements, [0, 3, 1, 2]);
                    (dimensions, elements.concat())
                } else {
                    expected
                };
                if found != expected {
                    return Err(about(format!(
                        "output {index}: {found:?} instead of {expected:?}"
                    )));
                }
            }
        }
        Ok(())
    });
}
