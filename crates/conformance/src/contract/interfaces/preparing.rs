//! Launching preparations, and what their callbacks are notified of (contract: sections 4 to 7).

use super::super::models::{addition, foreign, pool_addition, rectifier, sum, sum_request};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::{CacheHandles, Driver, PrepareWishes};
use super::driver_model::{DriverModel, ExecuteWishes, returned};
use super::notified::Notified;
use super::preparation::Preparation;
use super::{INVALID, MISSED, NONE, demand_status, name_of, words};
use nnhal_hal::{ErrorStatus, HalVersion, Model, OperandSpec, OperandType, RequestBuilder};
use nnhal_hidl::v1_3::OptionalTimePoint;
use nnhal_hidl::{Handle, v1_0, v1_1, v1_2, v1_3};
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["PREP-3", "CB-1", "CB-4"],
        name: "a good model is reported once, and works by every version that it must have",
        run: Run::Driver(good),
    },
    Check {
        ids: &["PREP-1", "CB-1", "CB-5"],
        name: "an invalid model is returned, and reported once",
        run: Run::Driver(invalid),
    },
    Check {
        ids: &["DEV-SUP-1", "DEV-SUP-2", "GEN-3"],
        name: "an answer for each operation, or none with an error",
        run: Run::Driver(answers),
    },
    Check { ids: &["PREP-2"], name: "a null callback is refused", run: Run::Driver(no_callback) },
    Check {
        ids: &["PREP-5", "DEV-SUP-5"],
        name: "a valid model that cannot be run is reported, not returned",
        run: Run::Driver(unsupported),
    },
    Check {
        ids: &["PREP-6", "QOS-3"],
        name: "a deadline that has passed is reported, not returned",
        run: Run::Driver(passed_deadline),
    },
    Check {
        ids: &["GEN-4"],
        name: "a wrong model is returned before a passed deadline",
        run: Run::Driver(wrong_and_late),
    },
    Check {
        ids: &["GEN-7", "PREP-1"],
        name: "numbers that are no codes are returned, and reported once",
        run: Run::Driver(no_codes),
    },
    Check {
        ids: &["GEN-6"],
        name: "an older method refuses a newer type",
        run: Run::Driver(newer_type),
    },
    Check {
        ids: &["MODEL-3", "MODEL-4", "GEN-6", "GEN-7"],
        name: "numbers that are no types of the version are refused",
        run: Run::Driver(strange_types),
    },
    Check {
        ids: &["CACHE-5", "GEN-4", "GEN-7"],
        name: "loading looks at its arguments before its deadline, and at that",
        run: Run::Driver(strange_loads),
    },
    Check {
        ids: &["CACHE-5", "CACHE-6", "CACHE-7"],
        name: "a cache without files is returned, and reported once",
        run: Run::Driver(no_cache_files),
    },
    Check {
        ids: &["PREP-11"],
        name: "constants in a pool that the client lets go of",
        run: Run::Driver(borrowed_pool),
    },
];

/// Launches a preparation: the status of the call, and what was reported once.
fn launch(
    driver: &Driver,
    version: HalVersion,
    model: &Model,
    wishes: PrepareWishes,
) -> Result<(i32, Preparation), Violation> {
    let notified = Notified::new();
    let status = driver.prepare(version, model, wishes, Some(Arc::clone(&notified)))?;
    Ok((status, notified.only()?))
}

/// Demands that a model came exactly with `NONE` (contract: PREP-3).
fn demand_model_with_none(version: HalVersion, notified: &Preparation) -> Result<(), Violation> {
    let (status, model) = (name_of(notified.status), notified.model.is_some());
    let right = model == (notified.status == ErrorStatus::None.code());
    demand!(right, "by {version}: {status} is reported, and that there is a model: {model}");
    Ok(())
}

/// Demands a status that is returned and reported, without a model.
fn demand_returned_and_notified(
    what: &str,
    launched: i32,
    notified: &Preparation,
    allowed: &[ErrorStatus],
) -> Result<(), Violation> {
    demand_status(&format!("{what}, as returned"), launched, allowed)?;
    demand_status(&format!("{what}, as reported"), notified.status, &[status_of(launched)?])?;
    demand!(
        notified.model.is_none(),
        "{what}: a model is reported with {}",
        name_of(notified.status)
    );
    Ok(())
}

fn status_of(code: i32) -> Result<ErrorStatus, Violation> {
    ErrorStatus::from_code(code).map_err(|error| Violation(error.to_string()))
}

fn expect_sum(model: &DriverModel, version: HalVersion) -> Result<(), Violation> {
    let request = sum_request()?;
    let (launched, ended) = model.execute(version, &request, ExecuteWishes::default())?;
    demand_status(&format!("launching by {version}"), launched, NONE)?;
    demand_status(&format!("executing by {version}"), ended.status, NONE)?;
    let found = RequestBuilder::read_output(&request, 0)?;
    demand!(found == sum(), "by {version} the sum is {found:?}");
    Ok(())
}

fn good(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let wishes = PrepareWishes::default();
        let (launched, notified) = launch(driver, version, &addition([2, 2]), wishes)?;
        demand_status(&format!("launching by {version}"), launched, NONE)?;
        demand_status(&format!("preparing by {version}"), notified.status, NONE)?;
        demand_model_with_none(version, &notified)?;
        let Some(model) = notified.model else { continue };
        let has = |wanted| match wanted {
            HalVersion::V1_2 => model.v1_2.is_some(),
            _ => model.v1_3.is_some(),
        };
        for wanted in [HalVersion::V1_2, HalVersion::V1_3] {
            let must = version >= wanted;
            demand!(!must || has(wanted), "CB-4: what {version} prepares is not one of {wanted}");
            if has(wanted) {
                expect_sum(&model, wanted)?;
            }
        }
        expect_sum(&model, HalVersion::V1_0)?;
    }
    Ok(Verdict::Kept)
}

/// An addition whose result no one writes.
fn broken() -> Model {
    let mut model = addition([2, 2]);
    model.main.operations[0].outputs.clear();
    model
}

fn invalid(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let (launched, notified) = launch(driver, version, &broken(), PrepareWishes::default())?;
        let what = format!("an invalid model by {version}");
        demand_returned_and_notified(&what, launched, &notified, INVALID)?;
    }
    Ok(Verdict::Kept)
}

fn answers(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let (status, answers) = driver.supported_operations(version, &addition([2, 2]))?;
        demand_status(&format!("asking by {version}"), status, NONE)?;
        demand!(answers.len() == 1, "by {version}: {} answers for one operation", answers.len());
        let (status, answers) = driver.supported_operations(version, &broken())?;
        demand_status(&format!("asking of an invalid model by {version}"), status, INVALID)?;
        demand!(answers.is_empty(), "by {version}: {answers:?} with INVALID_ARGUMENT");
    }
    Ok(Verdict::Kept)
}

fn no_callback(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let wishes = PrepareWishes::default();
        let status = driver.prepare(version, &addition([2, 2]), wishes, None)?;
        demand_status(&format!("no callback by {version}"), status, INVALID)?;
        if version >= HalVersion::V1_2 {
            let status = driver.load(version, &CacheHandles::none(), None)?;
            let allowed = [ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];
            demand_status(&format!("no callback for a cache by {version}"), status, &allowed)?;
        }
    }
    Ok(Verdict::Kept)
}

fn unsupported(driver: &Driver) -> Result<Verdict, Violation> {
    let model = foreign();
    for version in driver.versions() {
        let (status, answers) = driver.supported_operations(version, &model)?;
        demand_status(&format!("asking by {version}"), status, NONE)?;
        if answers == [true] {
            return Ok(Verdict::NotOffered("an operation that it does not support".into()));
        }
        let (launched, notified) = launch(driver, version, &model, PrepareWishes::default())?;
        demand_status(&format!("launching by {version}"), launched, NONE)?;
        demand!(notified.status != ErrorStatus::None.code(), "by {version} it is prepared");
        demand_model_with_none(version, &notified)?;
    }
    Ok(Verdict::Kept)
}

/// A point of time that has passed.
const PAST: OptionalTimePoint = OptionalTimePoint::NanosecondsSinceEpoch(1);

fn needs_1_3(what: &str) -> Verdict {
    Verdict::NotOffered(format!("{what}, which are of 1.3"))
}

fn passed_deadline(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_3 {
        return Ok(needs_1_3("deadlines"));
    }
    let wishes = PrepareWishes { deadline: PAST, ..PrepareWishes::default() };
    let (launched, notified) = launch(driver, HalVersion::V1_3, &addition([2, 2]), wishes)?;
    demand_status("launching with a passed deadline", launched, NONE)?;
    demand_status("a passed deadline", notified.status, &[NONE, MISSED].concat())?;
    demand_model_with_none(HalVersion::V1_3, &notified)?;
    Ok(Verdict::Kept)
}

fn wrong_and_late(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_3 {
        return Ok(needs_1_3("deadlines"));
    }
    let wishes = PrepareWishes { deadline: PAST, ..PrepareWishes::default() };
    let (launched, notified) = launch(driver, HalVersion::V1_3, &broken(), wishes)?;
    demand_returned_and_notified("an invalid model, too late", launched, &notified, INVALID)?;
    Ok(Verdict::Kept)
}

fn no_codes(driver: &Driver) -> Result<Verdict, Violation> {
    let wishes = PrepareWishes::default();
    let unknown = OptionalTimePoint::Unknown { tag: 2 };
    let wrong = [
        ("preference 3", HalVersion::V1_1, PrepareWishes { preference: 3, ..wishes }),
        ("preference -1", HalVersion::V1_1, PrepareWishes { preference: -1, ..wishes }),
        ("priority 3", HalVersion::V1_3, PrepareWishes { priority: 3, ..wishes }),
        ("a deadline of tag 2", HalVersion::V1_3, PrepareWishes { deadline: unknown, ..wishes }),
    ];
    if driver.newest() < HalVersion::V1_1 {
        return Ok(Verdict::NotOffered("codes in arguments, which are of 1.1".into()));
    }
    for (what, since, wishes) in wrong {
        for version in driver.versions().into_iter().filter(|version| *version >= since) {
            let (launched, notified) = launch(driver, version, &addition([2, 2]), wishes)?;
            let what = format!("{what} by {version}");
            demand_returned_and_notified(&what, launched, &notified, INVALID)?;
        }
    }
    Ok(Verdict::Kept)
}

/// A model of 1.1's form with a type of 1.2, which only a driver that looks at numbers refuses.
fn newer_type(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_1 {
        return Ok(Verdict::NotOffered("versions that are older than its own".into()));
    }
    let half = OperandSpec::new(OperandType::TensorFloat16, [2]);
    let newer: v1_2::Model = words(&rectifier(&half))?;
    let mut model: v1_1::Model = words(&rectifier(&OperandSpec::tensor_float32([2])))?;
    for (operand, newer) in model.operands.iter_mut().zip(&newer.operands) {
        operand.operand_type = newer.operand_type;
    }
    let notified = Notified::<Preparation>::new();
    let callback = Some(Arc::clone(&notified) as _);
    let preference = PrepareWishes::default().preference;
    let answer = driver.v1_1()?.prepare_model_1_1(&model, preference, callback);
    let launched = answer.map_err(|error| Violation(error.to_string()))?;
    demand_returned_and_notified("a type of 1.2 by 1.1", launched, &notified.only()?, INVALID)?;
    Ok(Verdict::Kept)
}

fn no_cache_files(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.newest() < HalVersion::V1_2 {
        return Ok(Verdict::NotOffered("caching, which is of 1.2".into()));
    }
    let allowed = [ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];
    for version in driver.versions().into_iter().filter(|version| *version >= HalVersion::V1_2) {
        for handles in [vec![], vec![Handle::new(vec![], vec![])], vec![Handle::NULL; 40]] {
            let notified = Notified::new();
            let what = format!("{} handles without files by {version}", handles.len());
            let files = CacheHandles { model: handles, ..CacheHandles::none() };
            let status = driver.load(version, &files, Some(Arc::clone(&notified)))?;
            demand_returned_and_notified(&what, status, &notified.only()?, &allowed)?;
        }
    }
    Ok(Verdict::Kept)
}

fn borrowed_pool(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let notified = Notified::new();
        {
            let (model, wishes) = (pool_addition()?, PrepareWishes::default());
            let status = driver.prepare(version, &model, wishes, Some(Arc::clone(&notified)))?;
            demand_status(&format!("launching by {version}"), status, NONE)?;
        }
        let notified = notified.only()?;
        demand_status(&format!("preparing by {version}"), notified.status, NONE)?;
        let Some(model) = notified.model else { return Err(Violation("there is no model".into())) };
        let mut request = sum_request()?;
        request.inputs.pop();
        let (_, ended) = model.execute(HalVersion::V1_0, &request, ExecuteWishes::default())?;
        demand_status("executing", ended.status, NONE)?;
        let found = RequestBuilder::read_output(&request, 0)?;
        demand!(found == sum(), "by {version} the sum is {found:?}");
    }
    Ok(Verdict::Kept)
}

/// The words of a version for an addition whose tensors, or whose operation, have numbers that are none there.
fn strange_types(driver: &Driver) -> Result<Verdict, Violation> {
    let model = addition([2, 2]);
    let is_tensor = |code: i32| code == OperandType::TensorFloat32.code().cast_signed();
    // Of 1.0 the last are types 5 and 28, of 1.2 types 13 and 94, of 1.3 types 15 and 101.
    for (operand, operation) in [(6, 29), (-1, -1), (9999, 9999)] {
        let what = |kind: &str, code: i32| format!("{kind} type {code} by 1.0");
        let mut wrong: v1_0::Model = words(&model)?;
        for it in wrong.operands.iter_mut().filter(|it| is_tensor(it.operand_type)) {
            it.operand_type = operand;
        }
        let answer =
            returned("getSupportedOperations", driver.v1_0.get_supported_operations(&wrong))?;
        demand_status(&what("operand", operand), answer.0, INVALID)?;
        let mut wrong: v1_0::Model = words(&model)?;
        wrong.operations[0].operation_type = operation;
        let answer =
            returned("getSupportedOperations", driver.v1_0.get_supported_operations(&wrong))?;
        demand_status(&what("operation", operation), answer.0, INVALID)?;
    }
    if let Ok(v1_2) = driver.v1_2() {
        for (operand, operation) in [(14, 95), (-1, -1), (9999, 9999)] {
            let ask = |wrong: &v1_2::Model| {
                returned("getSupportedOperations_1_2", v1_2.get_supported_operations_1_2(wrong))
            };
            let mut wrong: v1_2::Model = words(&model)?;
            for it in wrong.operands.iter_mut().filter(|it| is_tensor(it.operand_type)) {
                it.operand_type = operand;
            }
            demand_status(&format!("operand type {operand} by 1.2"), ask(&wrong)?.0, INVALID)?;
            let mut wrong: v1_2::Model = words(&model)?;
            wrong.operations[0].operation_type = operation;
            demand_status(&format!("operation type {operation} by 1.2"), ask(&wrong)?.0, INVALID)?;
        }
    }
    if let Ok(v1_3) = driver.v1_3() {
        for (operand, operation) in [(16, 102), (-1, -1), (9999, 9999)] {
            let ask = |wrong: &v1_3::Model| {
                returned("getSupportedOperations_1_3", v1_3.get_supported_operations_1_3(wrong))
            };
            let mut wrong: v1_3::Model = words(&model)?;
            for it in wrong.main.operands.iter_mut().filter(|it| is_tensor(it.operand_type)) {
                it.operand_type = operand;
            }
            demand_status(&format!("operand type {operand} by 1.3"), ask(&wrong)?.0, INVALID)?;
            let mut wrong: v1_3::Model = words(&model)?;
            wrong.main.operations[0].operation_type = operation;
            demand_status(&format!("operation type {operation} by 1.3"), ask(&wrong)?.0, INVALID)?;
        }
    }
    Ok(Verdict::Kept)
}

fn strange_loads(driver: &Driver) -> Result<Verdict, Violation> {
    if driver.v1_3.is_none() || driver.cache_files_needed()? == (0, 0) {
        return Ok(Verdict::NotOffered("caches with deadlines, which are of 1.3".into()));
    }
    for (what, deadline) in [
        ("no files, too late", OptionalTimePoint::NanosecondsSinceEpoch(1)),
        ("no files and a deadline of tag 9", OptionalTimePoint::Unknown { tag: 9 }),
    ] {
        let notified = Notified::new();
        let callback = Some(Arc::clone(&notified));
        let launched = driver.load_until(deadline, &CacheHandles::none(), callback)?;
        demand_returned_and_notified(what, launched, &notified.only()?, INVALID)?;
    }
    Ok(Verdict::Kept)
}
