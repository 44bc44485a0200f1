//! What a device says of itself (contract: section 3).

use super::{Check, Run, Verdict, Violation, demand};
use nnhal_hal::{Device, DeviceStatus, MAX_NUMBER_OF_CACHE_FILES, OperandType};
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check { ids: &["DEV-STAT-1"], name: "an idle device is available", run: Run::Device(status) },
    Check {
        ids: &["DEV-CAP-1", "DEV-CAP-2", "DEV-CAP-3", "DEV-CAP-6"],
        name: "every cost is above 0",
        run: Run::Device(costs),
    },
    Check {
        ids: &["DEV-CAP-4", "DEV-CAP-5", "DEV-CAP-6"],
        name: "types are listed in order, once, and none that has no cost of its own",
        run: Run::Device(order),
    },
    Check {
        ids: &["DEV-INFO-1"],
        name: "there is a version string",
        run: Run::Device(version_string),
    },
    Check {
        ids: &["DEV-INFO-3"],
        name: "the name is a vendor's and a device's",
        run: Run::Device(name),
    },
    Check {
        ids: &["DEV-EXT-1", "DEV-EXT-2", "DEV-EXT-3"],
        name: "extensions have good names and types",
        run: Run::Device(extensions),
    },
    Check { ids: &["DEV-CACHE-1"], name: "few enough cache files", run: Run::Device(cache_files) },
];

fn status(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let found = device.status();
    demand!(found == DeviceStatus::Available, "the status is {found:?}");
    Ok(Verdict::Kept)
}

fn costs(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let capabilities = device.capabilities();
    let named = [
        ("relaxed scalars", capabilities.relaxed_float32_to_float16_scalar),
        ("relaxed tensors", capabilities.relaxed_float32_to_float16_tensor),
        ("IF", capabilities.if_performance),
        ("WHILE", capabilities.while_performance),
    ];
    for (what, info) in named {
        demand!(info.is_valid(), "{what}: {info:?}");
    }
    for row in &capabilities.operand_performance {
        demand!(row.info.is_valid(), "{}: {:?}", row.operand_type, row.info);
    }
    Ok(Verdict::Kept)
}

fn order(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let listed = device.capabilities().operand_performance;
    for pair in listed.windows(2) {
        let [first, second] = [pair[0].operand_type, pair[1].operand_type];
        demand!(first.code() < second.code(), "{first} stands before {second}");
    }
    for row in &listed {
        let odd = matches!(row.operand_type, OperandType::Subgraph | OperandType::Extension(_));
        demand!(!odd, "{} is listed", row.operand_type);
        let since = row.operand_type.since();
        demand!(since <= device.version(), "{} is listed, which is of {since}", row.operand_type);
    }
    Ok(Verdict::Kept)
}

fn version_string(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    demand!(!device.version_string().is_empty(), "it is empty");
    Ok(Verdict::Kept)
}

fn name(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let name = device.name();
    let parts: Vec<&str> = name.split('-').collect();
    let good = matches!(&parts[..], [vendor, device] if !vendor.is_empty() && !device.is_empty());
    demand!(good, "{name:?} is not VENDOR-DEVICE");
    Ok(Verdict::Kept)
}

fn extensions(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let extensions = device.supported_extensions();
    nnhal_hal::extension::check_offered(&extensions)
        .map_err(|mistake| Violation(mistake.to_string()))?;
    if extensions.is_empty() {
        return Ok(Verdict::NotOffered("extensions".into()));
    }
    Ok(Verdict::Kept)
}

fn cache_files(device: &Arc<dyn Device>) -> Result<Verdict, Violation> {
    let needed = device.cache_files_needed();
    demand!(needed.is_valid(), "{needed:?}, at most {MAX_NUMBER_OF_CACHE_FILES} of each");
    Ok(Verdict::Kept)
}
