//! Launching executions, and what their callbacks are notified of (contract: sections 7, 10, 16, 17).

use super::super::models::{addition, endless, sum, sum_request};
use super::super::requests::MISTAKES;
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::driver_model::{DriverModel, ExecuteWishes};
use super::notified::{Ended, Notified};
use super::{INVALID, MISSED, NONE, demand_status, name_of};
use nnhal_hal::{ErrorStatus, HalVersion, MeasureTiming, Request, RequestBuilder};
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["EXEC-3", "CB-1", "CB-3", "TIME-1"],
        name: "a good request is reported once by every version",
        run: Run::Driver(good),
    },
    Check {
        ids: &["CB-2", "EXEC-9"],
        name: "the results are there when the callback is notified",
        run: Run::Driver(notified_at_the_end),
    },
    Check {
        ids: &[
            "EXEC-1", "CB-5", "SHAPE-1", "GEN-4", "REQ-1", "REQ-2", "REQ-3", "REQ-4", "REQ-6",
            "REQ-9",
        ],
        name: "a request with one thing wrong is returned, and reported once",
        run: Run::Driver(wrong),
    },
    Check { ids: &["EXEC-2"], name: "a null callback is refused", run: Run::Driver(no_callback) },
    Check {
        ids: &["GEN-7", "EXEC-1"],
        name: "numbers that are no codes are returned, and reported once",
        run: Run::Driver(no_codes),
    },
    Check {
        ids: &["EXEC-5", "QOS-3", "QOS-6"],
        name: "a deadline that has passed is reported, not returned",
        run: Run::Driver(passed_deadline),
    },
    Check {
        ids: &["QOS-7", "QOS-6"],
        name: "a loop that takes too long is reported, not returned",
        run: Run::Driver(endless_loop),
    },
    Check {
        ids: &["GEN-2", "CB-6", "EXEC-11"],
        name: "older methods have no statuses of newer versions",
        run: Run::Driver(older_statuses),
    },
    Check {
        ids: &["CB-7", "SHAPE-4", "EXEC-10"],
        name: "too short a buffer is reported with shapes",
        run: Run::Driver(short_buffer),
    },
    Check {
        ids: &["SHAPE-2", "SHAPE-3"],
        name: "unknown shapes are reported to callbacks",
        run: Run::Driver(unknown_shapes),
    },
    Check {
        ids: &["EXEC-10", "CB-6"],
        name: "the oldest method reports too short a buffer as a status alone",
        run: Run::Driver(short_in_1_0),
    },
    Check {
        ids: &["SYNC-1", "SYNC-2", "SYNC-4", "GEN-3"],
        name: "synchronous answers are those that callbacks get",
        run: Run::Driver(synchronous),
    },
    Check {
        ids: &["CONC-3", "CB-1"],
        name: "the callback comes though the prepared model is let go of",
        run: Run::Driver(model_let_go),
    },
    Check {
        ids: &["CONC-1", "CB-1"],
        name: "many launches at once, each reported once",
        run: Run::Driver(at_once),
    },
];

/// The versions with a method of their own that executes.
fn versions(driver: &Driver) -> impl Iterator<Item = HalVersion> + use<> {
    driver.versions().into_iter().filter(|version| *version != HalVersion::V1_1)
}

fn adder(driver: &Driver) -> Result<DriverModel, Violation> {
    driver.prepared(&addition([2, 2]))
}

fn wrong_request() -> Result<Request, Violation> {
    let mut request = sum_request()?;
    request.inputs.pop();
    Ok(request)
}

/// Demands that an execution that failed tells neither shapes nor times.
fn demand_empty(what: &str, ended: &Ended) -> Result<(), Violation> {
    let Some((shapes, timing)) = &ended.details else { return Ok(()) };
    let status = name_of(ended.status);
    demand!(shapes.is_empty(), "{what}: {shapes:?} is reported with {status}");
    demand!(*timing == Timing::NONE, "{what}: {timing:?} is reported with {status}");
    Ok(())
}

/// Demands `INVALID_ARGUMENT`, returned and reported, and nothing else with it.
fn demand_invalid(what: &str, launched: i32, ended: &Ended) -> Result<(), Violation> {
    demand_status(&format!("{what}, as returned"), launched, INVALID)?;
    demand_status(&format!("{what}, as reported"), ended.status, INVALID)?;
    demand_empty(what, ended)
}

/// Demands success, complete shapes or none, and times only if they are wanted.
fn demand_success(what: &str, ended: &Ended, measured: bool) -> Result<(), Violation> {
    demand_status(what, ended.status, NONE)?;
    let Some((shapes, timing)) = &ended.details else { return Ok(()) };
    let complete = OutputShape { dimensions: vec![2, 2], is_sufficient: true };
    let right = shapes.is_empty() || *shapes == [complete];
    demand!(right, "{what}: the shapes are {shapes:?}");
    demand!(measured || *timing == Timing::NONE, "{what}: {timing:?} was not asked for");
    let both = timing.time_on_device != u64::MAX && timing.time_in_driver != u64::MAX;
    let ordered = !both || timing.time_on_device <= timing.time_in_driver;
    demand!(ordered, "{what}: the times are {timing:?}");
    Ok(())
}

fn good(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    for version in versions(driver) {
        for measure in [MeasureTiming::No, MeasureTiming::Yes] {
            let wishes = ExecuteWishes { measure: measure.code(), ..ExecuteWishes::default() };
            let request = sum_request()?;
            let (launched, ended) = model.execute(version, &request, wishes)?;
            demand_status(&format!("launching by {version}"), launched, NONE)?;
            let what = format!("executing by {version}");
            demand_success(&what, &ended, measure == MeasureTiming::Yes)?;
            let found = RequestBuilder::read_output(&request, 0)?;
            demand!(found == sum(), "by {version} the sum is {found:?}");
        }
    }
    Ok(Verdict::Kept)
}

fn notified_at_the_end(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    for version in versions(driver) {
        let request = sum_request()?;
        let seen = Arc::new(Mutex::new(None));
        let witness = {
            let (request, seen) = (request.clone(), Arc::clone(&seen));
            move || {
                let output = RequestBuilder::read_output(&request, 0).ok();
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = output;
            }
        };
        let notified = Notified::with_witness(witness);
        let wishes = ExecuteWishes::default();
        model.launch(version, &request, wishes, Some(Arc::clone(&notified)))?;
        demand_status(&format!("executing by {version}"), notified.only()?.status, NONE)?;
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).take();
        demand!(seen == Some(sum()), "by {version} the output is {seen:?} when it is reported");
    }
    Ok(Verdict::Kept)
}

fn wrong(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    for version in versions(driver) {
        let wishes = ExecuteWishes::default();
        for (what, spoil) in MISTAKES {
            let mut request = sum_request()?;
            spoil(&mut request);
            let (launched, ended) = model.execute(version, &request, wishes)?;
            demand_invalid(&format!("{what}, by {version}"), launched, &ended)?;
            if version >= HalVersion::V1_3 {
                let deadline = OptionalTimePoint::NanosecondsSinceEpoch(1);
                let late = ExecuteWishes { deadline, ..wishes };
                let (launched, ended) = model.execute(version, &request, late)?;
                demand_invalid(&format!("{what}, too late"), launched, &ended)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn no_callback(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    for version in versions(driver) {
        let status = model.launch(version, &sum_request()?, ExecuteWishes::default(), None)?;
        demand_status(&format!("no callback by {version}"), status, INVALID)?;
    }
    Ok(Verdict::Kept)
}

fn no_codes(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("codes in arguments, which are of 1.2".into()));
    }
    let model = adder(driver)?;
    let wishes = ExecuteWishes::default();
    let deadline = OptionalTimePoint::Unknown { tag: 9 };
    let loop_timeout = OptionalTimeoutDuration::Unknown { tag: 9 };
    let wrong = [
        ("measure 2", HalVersion::V1_2, ExecuteWishes { measure: 2, ..wishes }),
        ("measure -1", HalVersion::V1_2, ExecuteWishes { measure: -1, ..wishes }),
        ("a deadline of tag 9", HalVersion::V1_3, ExecuteWishes { deadline, ..wishes }),
        ("a loop timeout of tag 9", HalVersion::V1_3, ExecuteWishes { loop_timeout, ..wishes }),
    ];
    for (what, since, wishes) in wrong {
        for version in versions(driver).filter(|version| *version >= since) {
            let what = format!("{what} by {version}");
            let (launched, ended) = model.execute(version, &sum_request()?, wishes)?;
            demand_invalid(&what, launched, &ended)?;
            let (status, shapes, timing) = model.run(version, &sum_request()?, wishes)?;
            let ended = Ended { status, details: Some((shapes, timing)) };
            demand_invalid(&format!("{what}, synchronously"), status, &ended)?;
        }
    }
    Ok(Verdict::Kept)
}

fn passed_deadline(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_3 {
        return Ok(Verdict::NotOffered("deadlines, which are of 1.3".into()));
    }
    let model = adder(driver)?;
    let deadline = OptionalTimePoint::NanosecondsSinceEpoch(1);
    let measure = MeasureTiming::Yes.code();
    let wishes = ExecuteWishes { deadline, measure, ..ExecuteWishes::default() };
    let (launched, ended) = model.execute(HalVersion::V1_3, &sum_request()?, wishes)?;
    demand_status("launching with a passed deadline", launched, NONE)?;
    if ended.status != ErrorStatus::None.code() {
        demand_status("a passed deadline", ended.status, MISSED)?;
        demand_empty("a passed deadline", &ended)?;
    }
    Ok(Verdict::Kept)
}

/// A prepared loop without end, and a request for it, if the driver has WHILE.
pub(super) fn prepared_loop(driver: &Driver) -> Result<Option<(DriverModel, Request)>, Violation> {
    if driver.newest() < HalVersion::V1_3 {
        return Ok(None);
    }
    let (_, answers) = driver.supported_operations(HalVersion::V1_3, &endless())?;
    if !answers.iter().all(|supported| *supported) {
        return Ok(None);
    }
    let mut request = RequestBuilder::new();
    request.input(&[0; 4]).output(4);
    Ok(Some((driver.prepared(&endless())?, request.build()?)))
}

fn endless_loop(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, request)) = prepared_loop(driver)? else {
        return Ok(Verdict::NotOffered("WHILE".into()));
    };
    let loop_timeout = OptionalTimeoutDuration::Nanoseconds(1_000_000);
    let wishes = ExecuteWishes { loop_timeout, ..ExecuteWishes::default() };
    let (launched, ended) = model.execute(HalVersion::V1_3, &request, wishes)?;
    demand_status("launching a loop without end", launched, NONE)?;
    demand_status("a loop without end", ended.status, MISSED)?;
    demand_empty("a loop without end", &ended)?;
    Ok(Verdict::Kept)
}

/// The loop runs into the default limit, of which only 1.3 can say so.
fn older_statuses(driver: &Driver) -> Result<Verdict, Violation> {
    let Some((model, request)) = prepared_loop(driver)? else {
        return Ok(Verdict::NotOffered("WHILE".into()));
    };
    let wishes = ExecuteWishes::default();
    // At once, because each takes as long as the limit.
    let notified = [Notified::new(), Notified::new()];
    for (version, notified) in [HalVersion::V1_0, HalVersion::V1_2].into_iter().zip(&notified) {
        let launched = model.launch(version, &request, wishes, Some(Arc::clone(notified)))?;
        demand_status(&format!("launching by {version}"), launched, NONE)?;
    }
    let (status, shapes, timing) = model.run(HalVersion::V1_2, &request, wishes)?;
    let failure = [ErrorStatus::GeneralFailure];
    let synchronous = Ended { status, details: Some((shapes, timing)) };
    for (what, ended) in ["execute", "execute_1_2"].into_iter().zip(notified) {
        let ended = ended.only()?;
        demand_status(what, ended.status, &failure)?;
        demand_empty(what, &ended)?;
    }
    demand_status("executeSynchronously", synchronous.status, &failure)?;
    demand_empty("executeSynchronously", &synchronous)?;
    Ok(Verdict::Kept)
}

fn short_buffer(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("unknown output shapes, which are of 1.2".into()));
    }
    let model = driver.prepared(&addition([0, 2]))?;
    let mut request = RequestBuilder::new();
    request.input_shaped(&[0; 16], &[2, 2]).input_shaped(&[0; 16], &[2, 2]).output(4);
    let request = request.build()?;
    let short = [ErrorStatus::OutputInsufficientSize];
    for version in versions(driver).filter(|version| *version >= HalVersion::V1_2) {
        let (launched, ended) = model.execute(version, &request, ExecuteWishes::default())?;
        // Who does not know such outputs ends so (contract: EXEC-8).
        if ended.status == ErrorStatus::GeneralFailure.code() {
            return Ok(Verdict::NotOffered("unknown output shapes".into()));
        }
        let returned = [NONE, &short].concat();
        demand_status(&format!("launching by {version}"), launched, &returned)?;
        demand_status(&format!("too short a buffer by {version}"), ended.status, &short)?;
        let shapes = ended.details.map(|(shapes, _)| shapes).unwrap_or_default();
        let notified = matches!(&shapes[..], [shape] if !shape.is_sufficient);
        demand!(notified, "by {version} too short a buffer has the shapes {shapes:?}");
    }
    Ok(Verdict::Kept)
}

fn unknown_shapes(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("unknown output shapes, which are of 1.2".into()));
    }
    let model = driver.prepared(&addition([0, 2]))?;
    for version in versions(driver).filter(|version| *version >= HalVersion::V1_2) {
        let mut request = RequestBuilder::new();
        request.input_shaped(&[0; 16], &[2, 2]).input_shaped(&[0; 16], &[2, 2]).output(16);
        let wishes = ExecuteWishes::default();
        let (launched, ended) = model.execute(version, &request.build()?, wishes)?;
        demand_status(&format!("launching by {version}"), launched, NONE)?;
        // Who does not know such outputs ends so (contract: EXEC-8).
        if ended.status == ErrorStatus::GeneralFailure.code() {
            return Ok(Verdict::NotOffered("unknown output shapes".into()));
        }
        demand_status(&format!("executing by {version}"), ended.status, NONE)?;
        let shapes = ended.details.map(|(shapes, _)| shapes).unwrap_or_default();
        let complete = [OutputShape { dimensions: vec![2, 2], is_sufficient: true }];
        demand!(shapes == complete, "by {version} the shapes are {shapes:?}");
    }
    Ok(Verdict::Kept)
}

fn short_in_1_0(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    let mut request = sum_request()?;
    request.outputs[0].location.length = 15;
    let (launched, ended) = model.execute(HalVersion::V1_0, &request, ExecuteWishes::default())?;
    let short = [ErrorStatus::OutputInsufficientSize];
    demand_status("launching", launched, &[NONE, &short].concat())?;
    demand_status("too short a buffer", ended.status, &short)?;
    demand!(ended.details.is_none(), "the callback of 1.0 gets {:?}", ended.details);
    Ok(Verdict::Kept)
}

fn synchronous(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("synchronous executions, which are of 1.2".into()));
    }
    let model = adder(driver)?;
    for version in versions(driver).filter(|version| *version >= HalVersion::V1_2) {
        for request in [sum_request()?, wrong_request()?] {
            let wishes = ExecuteWishes::default();
            let (status, shapes, timing) = model.run(version, &request, wishes)?;
            let answered = Ended { status, details: Some((shapes, timing)) };
            let (_, notified) = model.execute(version, &request, wishes)?;
            let (answer, other) = (name_of(answered.status), name_of(notified.status));
            demand!(
                answer == other,
                "by {version}: {answer} synchronously, but {other} is reported"
            );
            let what = format!("synchronously by {version}");
            if status == ErrorStatus::None.code() {
                demand_success(&what, &answered, false)?;
            } else {
                demand_invalid(&what, status, &answered)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn model_let_go(driver: &Driver) -> Result<Verdict, Violation> {
    for version in versions(driver) {
        for _ in 0..10 {
            let (model, request, notified) =
                (adder(driver)?, sum_request()?, Notified::<Ended>::new());
            let wishes = ExecuteWishes::default();
            model.launch(version, &request, wishes, Some(Arc::clone(&notified)))?;
            drop(model);
            demand_status(&format!("executing by {version}"), notified.only()?.status, NONE)?;
        }
    }
    Ok(Verdict::Kept)
}

fn at_once(driver: &Driver) -> Result<Verdict, Violation> {
    let model = adder(driver)?;
    for version in versions(driver) {
        let launches: Vec<_> = (0..32)
            .map(|_| {
                let (request, notified) = (sum_request()?, Notified::<Ended>::new());
                let wishes = ExecuteWishes::default();
                model.launch(version, &request, wishes, Some(Arc::clone(&notified)))?;
                Ok((request, notified))
            })
            .collect::<Result<_, Violation>>()?;
        for (request, notified) in launches {
            demand_status(&format!("executing by {version}"), notified.only()?.status, NONE)?;
            let found = RequestBuilder::read_output(&request, 0)?;
            demand!(found == sum(), "by {version} the sum is {found:?}");
        }
    }
    Ok(Verdict::Kept)
}
