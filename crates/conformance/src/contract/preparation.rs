//! Preparing models (contract: sections 5 and 16).

use super::models::{
    adder, addition, bytes, constant_addition, execute, pool_bytes, prepare, sum, sum_request,
};
use super::{Check, Run, Verdict, Violation, demand, demand_refusal};
use nnhal_hal::ErrorStatus::{InvalidArgument, MissedDeadlinePersistent, MissedDeadlineTransient};
use nnhal_hal::{
    Deadline, Device, ExecutionPreference, HalVersion, Model, OperandLifeTime, PrepareOptions,
    Priority, RequestBuilder,
};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["PREP-3", "QOS-1"],
        name: "every preference and priority gives a model that works",
        run: Run::Device(wishes),
    },
    Check {
        ids: &["PREP-6", "QOS-6"],
        name: "a deadline that has passed is missed",
        run: Run::Device(passed_deadline),
    },
    Check { ids: &["QOS-4"], name: "a deadline far away is none", run: Run::Device(far_deadline) },
    Check {
        ids: &["GEN-4"],
        name: "arguments are looked at before deadlines",
        run: Run::Device(order),
    },
    Check {
        ids: &["PREP-7", "PREP-8", "CACHE-4"],
        name: "wrong cache files change nothing",
        run: Run::Device(wrong_cache_files),
    },
    Check {
        ids: &["MODEL-18", "PREP-11"],
        name: "constants may be anywhere, may overlap, and are not needed afterwards",
        run: Run::Device(constants),
    },
    Check {
        ids: &["PREP-14"],
        name: "several threads prepare one model",
        run: Run::Device(threads),
    },
    Check {
        ids: &["PREP-10", "CONC-1"],
        name: "one prepared model serves different shapes at once",
        run: Run::Device(shapes),
    },
];

fn expect_sum(device: &dyn Device, options: PrepareOptions) -> Result<(), Violation> {
    let prepared = device.prepare_model(&addition([2, 2]), device.version(), options)?;
    let request = sum_request()?;
    execute(&*prepared, &request)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "the sum is {found:?}");
    Ok(())
}

fn wishes(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    for preference in [
        ExecutionPreference::LowPower,
        ExecutionPreference::FastSingleAnswer,
        ExecutionPreference::SustainedSpeed,
    ] {
        for priority in [Priority::Low, Priority::Medium, Priority::High] {
            let options = PrepareOptions { preference, priority, ..PrepareOptions::default() };
            expect_sum(&**device, options)?;
        }
    }
    Ok(Verdict::Kept)
}

fn within(deadline: u64) -> PrepareOptions {
    let deadline = Some(Deadline::from_nanoseconds_since_epoch(deadline));
    PrepareOptions { deadline, ..PrepareOptions::default() }
}

fn passed_deadline(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = device.prepare_model(&addition([2, 2]), device.version(), within(0));
    match prepared {
        // A deadline may be missed, it need not be (QOS-3).
        Ok(_) => Ok(Verdict::Kept),
        late => {
            let missed = [MissedDeadlinePersistent, MissedDeadlineTransient];
            demand_refusal("a deadline that has passed", late, &missed)?;
            Ok(Verdict::Kept)
        }
    }
}

fn far_deadline(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    for deadline in [i64::MAX.cast_unsigned(), u64::MAX] {
        expect_sum(&**device, within(deadline))?;
    }
    Ok(Verdict::Kept)
}

fn order(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let prepared = device.prepare_model(&Model::default(), device.version(), within(0));
    demand_refusal("an invalid model with a passed deadline", prepared, &[InvalidArgument])?;
    Ok(Verdict::Kept)
}

fn wrong_cache_files(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    if device.version() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("caching, which is of 1.2".into()));
    }
    let read_only = || {
        let file = File::open("/dev/null").map(OwnedFd::from);
        file.map_err(|error| Violation(format!("the check's own file: {error}")))
    };
    for (model, data) in [(40, 40), (1, 0), (0, 1)] {
        let files = |count| (0..count).map(|_| read_only()).collect::<Result<Vec<_>, _>>();
        let options = PrepareOptions {
            model_cache: files(model)?,
            data_cache: files(data)?,
            ..PrepareOptions::default()
        };
        expect_sum(&**device, options)?;
    }
    Ok(Verdict::Kept)
}

fn constants(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    for shift in 0..4_u32 {
        let mut model = constant_addition();
        let mut values = vec![0; shift as usize];
        values.extend_from_slice(&model.operand_values);
        model.operand_values = values.into();
        let copied =
            |operand: &&mut nnhal_hal::Operand| operand.lifetime == OperandLifeTime::ConstantCopy;
        for constant in model.main.operands.iter_mut().filter(copied) {
            constant.location.offset += shift;
        }
        // Both constants of the sum are the same bytes.
        let places: Vec<_> =
            model.main.operations.iter().map(|operation| operation.inputs[1] as usize).collect();
        model.main.operands[places[1]].location = model.main.operands[places[0]].location;
        let prepared = prepare(&**device, &model)?;
        drop(model);
        let mut request = RequestBuilder::new();
        request.input(&bytes(&[1.0, 2.0, 3.0, 4.0])).output(16);
        let request = request.build()?;
        execute(&*prepared, &request)?;
        let found = RequestBuilder::read_output(&request, 0)?;
        let expected = bytes(&[21.0, 22.0, 23.0, 24.0]);
        demand!(found == expected, "{shift} bytes further the sum is {found:?}");
    }
    Ok(Verdict::Kept)
}

fn threads(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    std::thread::scope(|scope| {
        let prepare = || expect_sum(&**device, PrepareOptions::default());
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(prepare)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Violation("the device panics".into())))
        })
    })?;
    Ok(Verdict::Kept)
}

fn shapes(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    drop(adder(&**device)?);
    let open =
        device.prepare_model(&addition([0, 2]), device.version(), PrepareOptions::default())?;
    std::thread::scope(|scope| {
        let run = |rows: u32| {
            let open = &open;
            move || {
                let zeros = vec![0; rows as usize * 8];
                let mut request = RequestBuilder::new();
                for _ in 0..2 {
                    request.input_shaped(&zeros, &[rows, 2]);
                }
                request.output_shaped(zeros.len(), &[rows, 2]);
                let request = request.build()?;
                for _ in 0..20 {
                    let shapes = execute(&**open, &request)?.output_shapes;
                    let right = shapes.iter().all(|shape| shape.dimensions == [rows, 2]);
                    demand!(right, "{rows} rows, but {shapes:?}");
                }
                demand!(pool_bytes(&request, 0)?.iter().all(|byte| *byte == 0), "0 + 0 is not 0");
                Ok(())
            }
        };
        let threads: Vec<_> = (1..6).map(|rows| scope.spawn(run(rows))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Violation("the device panics".into())))
        })
    })?;
    Ok(Verdict::Kept)
}
