//! Dynamic shape equals static shape: whatever a model leaves for the request to say, the results
//! are the same bytes (contract: PREP-10, SHAPE-3).

use crate::random::Random;
use crate::run::{Constants, Shapes, run, run_before_another};
use crate::{each_sample, samples};

#[test]
fn prep_10_what_a_model_leaves_open_changes_nothing() {
    each_sample(16, samples::operations(), |sample, random| {
        for row in sample.rows() {
            let call = sample.typed(row);
            let about = |what: &str, error: String| format!("{:?}, {what}: {error}", row.types);
            let open = run(&call, Shapes::OfInputs, Constants::Some, random)
                .map_err(|error| about("shapes of outputs unknown", error))?;
            let mut ways = vec![
                ("only ranks known", Shapes::Ranks(&open), Constants::Some),
                ("no shape known", Shapes::Unknown, Constants::Some),
                ("no shape and no value known", Shapes::Unknown, Constants::None),
                ("only ranks and no value known", Shapes::Ranks(&open), Constants::None),
            ];
            // A length of 0 cannot be distinguished from an unknown one.
            if open.iter().all(|(dimensions, _)| !dimensions.contains(&0)) {
                ways.push(("all shapes known", Shapes::Known(&open), Constants::Some));
                ways.push(("no value known", Shapes::Known(&open), Constants::None));
            }
            for (what, shapes, constants) in ways {
                let found = run(&call, shapes, constants, &mut Random::new(7))
                    .map_err(|error| about(what, error))?;
                if found != open {
                    return Err(about(what, format!("{found:?} instead of {open:?}")));
                }
            }
            let found = run_before_another(&call, random)
                .map_err(|error| about("results not known before another operation", error))?;
            if let Some(found) = found.filter(|it| it.1 != open[0].1) {
                let error = format!("{found:?} instead of {:?}", open[0]);
                return Err(about("results not known before another operation", error));
            }
        }
        Ok(())
    });
}
