//! What the older versions say of a device (contract: section 3).

use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::{NONE, demand_status};
use nnhal_hal::OperandType;
use nnhal_hidl::v1_0::PerformanceInfo;
use nnhal_hidl::v1_2::OperandPerformance;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["DEV-CAP-7", "DEV-CAP-5", "DEV-CAP-4"],
        name: "what older versions say of costs follows from what the newest says",
        run: Run::Driver(costs),
    },
    Check {
        ids: &["DEV-INFO-1", "DEV-INFO-2"],
        name: "there are a version string and one type",
        run: Run::Driver(identity),
    },
];

fn got<T>(method: &str, answer: nnhal_hidl::Return<(i32, T)>) -> Result<T, Violation> {
    let (status, value) = answer.map_err(|error| Violation(format!("{method}: {error}")))?;
    demand_status(method, status, NONE)?;
    Ok(value)
}

/// The cost that a list gives a type (contract: what is not listed costs the most that there is).
fn listed(list: &[OperandPerformance], wanted: OperandType) -> PerformanceInfo {
    let most = PerformanceInfo { exec_time: f32::MAX, power_usage: f32::MAX };
    let code = wanted.code().cast_signed();
    list.iter().find(|row| row.operand_type == code).map_or(most, |row| row.info)
}

fn demand_same(
    what: &str,
    found: PerformanceInfo,
    expected: PerformanceInfo,
) -> Result<(), Violation> {
    demand!(found == expected, "{what} is {found:?}, but {expected:?} by a newer version");
    Ok(())
}

fn costs(driver: &Driver) -> Result<Verdict, Violation> {
    let oldest = got("getCapabilities", driver.v1_0.get_capabilities())?;
    let Ok(v1_1) = driver.v1_1() else {
        return Ok(Verdict::NotOffered("versions that are older than its own".into()));
    };
    let older = got("getCapabilities_1_1", v1_1.get_capabilities_1_1())?;
    demand_same("float32Performance", oldest.float32_performance, older.float32_performance)?;
    let (found, expected) = (oldest.quantized8_performance, older.quantized8_performance);
    demand_same("quantized8Performance", found, expected)?;
    let Ok(v1_2) = driver.v1_2() else { return Ok(Verdict::Kept) };
    let newer = got("getCapabilities_1_2", v1_2.get_capabilities_1_2())?;
    let list = &newer.operand_performance;
    let floats = listed(list, OperandType::TensorFloat32);
    demand_same("float32Performance", older.float32_performance, floats)?;
    let quantized = listed(list, OperandType::TensorQuant8Asymm);
    demand_same("quantized8Performance", older.quantized8_performance, quantized)?;
    demand_same(
        "relaxedFloat32toFloat16Performance",
        older.relaxed_float32to_float16_performance,
        newer.relaxed_float32to_float16_performance_tensor,
    )?;
    let last = OperandType::TensorQuant8Symm.code().cast_signed();
    let oem = [OperandType::Oem, OperandType::TensorOemByte].map(|it| it.code().cast_signed());
    let known = |code: i32| (0..=last).contains(&code) || oem.contains(&code);
    let strange = list.iter().find(|row| !known(row.operand_type));
    demand!(strange.is_none(), "getCapabilities_1_2 lists {strange:?}");
    // As the newest one's (contract: DEV-CAP-4).
    let in_order = list.windows(2).all(|rows| rows[0].operand_type < rows[1].operand_type);
    demand!(in_order, "the rows of getCapabilities_1_2 are not in order, each once");
    let Ok(v1_3) = driver.v1_3() else { return Ok(Verdict::Kept) };
    let newest = got("getCapabilities_1_3", v1_3.get_capabilities_1_3())?;
    for (what, found, expected) in [
        (
            "the relaxed cost of scalars",
            newer.relaxed_float32to_float16_performance_scalar,
            newest.relaxed_float32to_float16_performance_scalar,
        ),
        (
            "the relaxed cost of tensors",
            newer.relaxed_float32to_float16_performance_tensor,
            newest.relaxed_float32to_float16_performance_tensor,
        ),
    ] {
        demand_same(what, found, expected)?;
    }
    for row in list {
        let expected =
            newest.operand_performance.iter().find(|it| it.operand_type == row.operand_type);
        demand!(expected == Some(row), "{row:?} by 1.2, {expected:?} by 1.3");
    }
    Ok(Verdict::Kept)
}

fn identity(driver: &Driver) -> Result<Verdict, Violation> {
    let Ok(v1_2) = driver.v1_2() else {
        return Ok(Verdict::NotOffered("a type, which is of 1.2".into()));
    };
    let kind = got("getType", v1_2.get_type())?;
    demand!((1..=4).contains(&kind), "the type is {kind}, not one of 1 to 4");
    let text = got("getVersionString", v1_2.get_version_string())?;
    demand!(!text.is_empty(), "the version string is empty");
    Ok(Verdict::Kept)
}
