//! Every operation alone, in the types of every row of its signature.

use crate::calls::model::{Constants, Shapes, Tensor, alone, execute};
use crate::calls::random::Random;
use crate::calls::sample::Call;
use crate::calls::{each_sample, samples};
use crate::compare::{Tolerance, compare};
use crate::devices;
use nnhal_hal::OperationType;

/// Where the definition leaves the rounding of quantized results open.
fn tolerance(operation: OperationType) -> Tolerance {
    use OperationType as Op;
    match operation {
        Op::LogSoftmax | Op::Logistic | Op::Softmax | Op::Tanh => Tolerance::ONE_STEP,
        _ => Tolerance::STRICT,
    }
}

/// All that a model may leave open, and what may be constant.
fn ways(outputs: &[Tensor]) -> Vec<(&'static str, Shapes<'_>, Constants)> {
    let mut ways = vec![
        ("all but the first are constants", Shapes::OfInputs, Constants::AllButFirst),
        ("some are constants", Shapes::OfInputs, Constants::Some),
        ("constants, no shape known", Shapes::Unknown, Constants::AllButFirst),
        ("nothing known", Shapes::Unknown, Constants::None),
    ];
    // A length of 0 cannot be distinguished from an unknown one.
    if outputs.iter().all(|(dimensions, _)| !dimensions.contains(&0)) {
        ways.push(("constants, all shapes known", Shapes::Known(outputs), Constants::AllButFirst));
        ways.push(("all from the request", Shapes::Known(outputs), Constants::None));
    }
    ways
}

fn check(call: &Call, random: &mut Random) -> Result<(), String> {
    let (model, request) = alone(call, Shapes::OfInputs, Constants::Some, random)?;
    let expected = execute(devices::reference(), &model, &request)?;
    let tolerances = vec![tolerance(call.operation); call.outputs.len()];
    for (way, shapes, constants) in ways(&expected) {
        let (model, request) = alone(call, shapes, constants, random)?;
        for candidate in devices::candidates() {
            let about = |error: String| format!("{way}; {}: {error}", candidate.name);
            let found = candidate.execute(&model, &request).map_err(about)?;
            compare(&call.outputs, &expected, &found, &tolerances).map_err(about)?;
        }
    }
    Ok(())
}

#[test]
fn every_operation_alone_is_as_by_reference() {
    each_sample(4, samples::operations(), |sample, random| {
        let channels_first = sample.channels_first();
        for sample in [Some(sample), channels_first.as_ref()].into_iter().flatten() {
            for row in sample.rows() {
                let call = sample.typed(row);
                check(&call, random).map_err(|error| format!("{:?}: {error}", row.types))?;
            }
        }
        Ok(())
    });
}

/// Recurrent layers that are wider than a vector and a tile. Of one step: in several, layers without
/// limits make errors as large as anything.
#[test]
fn wide_recurrent_layers_are_as_by_reference() {
    use OperationType as Op;
    let operations = [Op::Lstm, Op::Rnn, Op::Svdf, Op::QuantizedLstm, Op::Quantized16bitLstm];
    for operation in operations {
        for seed in 0..12 {
            let random = &mut Random::new(seed);
            let most = 21 + 12 * u32::try_from(seed % 3).expect("a small number");
            let sample = samples::recurrent::draw(operation, random, most).expect("a sample");
            for row in sample.rows() {
                let outcome = check(&sample.typed(row), random);
                outcome.unwrap_or_else(|error| panic!("{operation}, {:?}: {error}", row.types));
            }
        }
    }
}

/// Without the pass that would have rewritten it, an operation runs as it is.
#[test]
fn every_operation_alone_is_as_by_reference_with_passes_switched_off() {
    let check = |call: &Call, random: &mut Random| {
        let (shapes, constants) = (Shapes::OfInputs, Constants::AllButFirst);
        let (model, request) = alone(call, shapes, constants, random)?;
        let expected = execute(devices::reference(), &model, &request)?;
        let tolerances = vec![tolerance(call.operation); call.outputs.len()];
        for candidate in devices::with_passes_off() {
            let about = |error: String| format!("{}: {error}", candidate.name);
            let found = candidate.execute(&model, &request).map_err(about)?;
            compare(&call.outputs, &expected, &found, &tolerances).map_err(about)?;
        }
        Ok(())
    };
    each_sample(1, samples::operations(), |sample, random| {
        let channels_first = sample.channels_first();
        for sample in [Some(sample), channels_first.as_ref()].into_iter().flatten() {
            for row in sample.rows() {
                let outcome: Result<(), String> = check(&sample.typed(row), random);
                outcome.map_err(|error| format!("{:?}: {error}", row.types))?;
            }
        }
        Ok(())
    });
}
