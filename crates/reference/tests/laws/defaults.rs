//! A list of arguments that ends early equals the list that goes on with the defaults.

use crate::each_sample;
use crate::run::{Constants, Shapes, run};
use nnhal_hal::OperationType;
use nnhal_ops::{Parameter, Presence, Signature};

fn may_end_before(parameter: &Parameter) -> bool {
    matches!(parameter.presence, Presence::Trailing(_)) && parameter.default.is_some()
}

/// Operations with arguments that have a default.
fn operations() -> impl Iterator<Item = OperationType> {
    crate::calls::all_operations().filter(|operation| {
        let signature = Signature::of(*operation);
        signature.is_some_and(|it| it.forms.iter().any(|it| it.inputs.iter().any(may_end_before)))
    })
}

#[test]
fn what_is_not_given_is_as_the_default() {
    each_sample(32, operations(), |sample, random| {
        let parameters = Signature::of(sample.operation).unwrap().forms[sample.form].inputs;
        let Some(first) = parameters.iter().position(may_end_before) else { return Ok(()) };
        let mut whole = sample.clone();
        whole.inputs.truncate(first);
        for parameter in &parameters[first..] {
            whole = whole.ints(&[parameter.default.ok_or("no default")?]);
        }
        for row in sample.rows() {
            let about = |error: String| format!("{:?}: {error}", row.types);
            let expected =
                run(&whole.typed(row), Shapes::OfInputs, Constants::Some, random).map_err(about)?;
            for end in (first..parameters.len()).filter(|at| may_end_before(&parameters[*at])) {
                let mut short = whole.clone();
                short.inputs.truncate(end);
                let found = run(&short.typed(row), Shapes::OfInputs, Constants::Some, random)
                    .map_err(about)?;
                if found != expected {
                    let error = format!("with {end} inputs {found:?} instead of {expected:?}");
                    return Err(about(error));
                }
            }
        }
        Ok(())
    });
}
