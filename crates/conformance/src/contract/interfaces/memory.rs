//! Memory as it is passed, good and bad (contract: section 15).

use super::super::models::{addition, sum_request};
use super::super::{Check, Run, Verdict, Violation, demand};
use super::driver::Driver;
use super::driver_model::{DriverModel, ExecuteWishes};
use super::notified::Notified;
use super::preparation::Preparation;
use super::{INVALID, NONE, demand_status, words};
use nnhal_hal::memory::Protection;
use nnhal_hal::{ErrorStatus, HalVersion, Memory};
use nnhal_hidl::v1_3::MemoryPool;
use nnhal_hidl::{Handle, HidlMemory, v1_0, v1_3};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(super) const CHECKS: &[Check] = &[
    Check {
        ids: &["MEM-1", "MEM-2", "REQ-10"],
        name: "memory of no kind, or with a wrong handle, is refused in requests",
        run: Run::Driver(in_requests),
    },
    Check {
        ids: &["MODEL-27", "MEM-1", "MEM-2"],
        name: "memory of no kind, or with a wrong handle, is refused in models, used or not",
        run: Run::Driver(in_models),
    },
    Check {
        ids: &["MEM-5"],
        name: "memory that is longer than what is behind it is refused",
        run: Run::Driver(longer_than_it_is),
    },
    Check {
        ids: &["MEM-6"],
        name: "memory of more than 4 GiB is refused or used, and never cut",
        run: Run::Driver(large),
    },
    Check {
        ids: &["PREP-12"],
        name: "constants that cannot be mapped fail the preparation",
        run: Run::Driver(cannot_be_mapped),
    },
];

pub(super) fn own(error: impl std::fmt::Display) -> Violation {
    Violation(format!("the check's own memory: {error}"))
}

/// A file of zeros.
pub(super) fn file(bytes: u64) -> Result<OwnedFd, Violation> {
    let file = tempfile::tempfile().map_err(own)?;
    file.set_len(bytes).map_err(own)?;
    Ok(file.into())
}

/// A descriptor that cannot be mapped.
pub(super) fn pipe() -> Result<OwnedFd, Violation> {
    let (reader, _) = std::io::pipe().map_err(own)?;
    Ok(reader.into())
}

fn handle(fds: Vec<OwnedFd>, integers: &[i32]) -> Handle {
    Handle::new(fds, integers.to_vec())
}

pub(super) fn of_kind(name: &str, handle: Handle, size: u64) -> HidlMemory {
    HidlMemory { name: name.into(), handle, size }
}

const READ_WRITE: i32 = 3;

/// Memory that no version has, or only a newer one (contract: MEM-1, MEM-2).
fn wrong_memory(version: HalVersion) -> Result<Vec<(String, HidlMemory)>, Violation> {
    let whole = || file(4096);
    let mut wrong = vec![
        ("no name", of_kind("", handle(vec![whole()?], &[]), 4096)),
        ("an unknown name", of_kind("ashmem2", handle(vec![whole()?], &[]), 4096)),
        ("ashmem with a null handle", of_kind("ashmem", Handle::NULL, 4096)),
        ("ashmem without a descriptor", of_kind("ashmem", handle(vec![], &[]), 4096)),
        ("ashmem of two", of_kind("ashmem", handle(vec![whole()?, whole()?], &[]), 4096)),
        ("ashmem with an integer", of_kind("ashmem", handle(vec![whole()?], &[3]), 4096)),
        ("ashmem of size 0", of_kind("ashmem", handle(vec![whole()?], &[]), 0)),
        ("mmap_fd with a null handle", of_kind("mmap_fd", Handle::NULL, 4096)),
        ("mmap_fd without integers", of_kind("mmap_fd", handle(vec![whole()?], &[]), 4096)),
        (
            "mmap_fd with four integers",
            of_kind("mmap_fd", handle(vec![whole()?], &[READ_WRITE, 0, 0, 0]), 4096),
        ),
        (
            "mmap_fd without a descriptor",
            of_kind("mmap_fd", handle(vec![], &[READ_WRITE, 0, 0]), 4096),
        ),
        ("mmap_fd of size 0", of_kind("mmap_fd", handle(vec![whole()?], &[READ_WRITE, 0, 0]), 0)),
        (
            "mmap_fd that is executable",
            of_kind("mmap_fd", handle(vec![whole()?], &[7, 0, 0]), 4096),
        ),
    ];
    let blob = of_kind("hardware_buffer_blob", handle(vec![whole()?], &[]), 4096);
    if version < HalVersion::V1_2 {
        wrong.push(("a hardware buffer, which is of 1.2", blob));
    } else {
        wrong.push(("a null hardware buffer", of_kind("hardware_buffer_blob", Handle::NULL, 4096)));
    }
    Ok(wrong.into_iter().map(|(what, it)| (format!("{what}, by {version}"), it)).collect())
}

/// Where in a request a pool of the check's is.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// Nothing uses it.
    Beside,
    /// All arguments are in it, at this offset in bytes.
    Used(u32),
}

/// Executes the sum by a version, with a pool of the check's; what is reported.
fn execute_with(
    model: &DriverModel,
    version: HalVersion,
    pool: &HidlMemory,
    place: Place,
) -> Result<i32, Violation> {
    let mut request = sum_request()?;
    if let Place::Used(offset) = place {
        for argument in request.inputs.iter_mut().chain(&mut request.outputs) {
            argument.location.offset += offset;
        }
    }
    let is_used = matches!(place, Place::Used(_));
    let (notified, wishes) = (Notified::new(), ExecuteWishes::default());
    let callback = Some(Arc::clone(&notified));
    let launched = if version == HalVersion::V1_3 {
        let mut request: v1_3::Request = words(&request)?;
        request.pools.push(MemoryPool::HidlMemory(pool.clone()));
        if is_used {
            request.pools.swap_remove(0);
        }
        model.launch_words(&request, wishes, callback)?
    } else {
        let mut request: v1_0::Request = words(&request)?;
        request.pools.push(pool.clone());
        if is_used {
            request.pools.swap_remove(0);
        }
        model.launch_older_words(version, &request, wishes, callback)?
    };
    let notified = notified.only()?.status;
    let failed = launched != ErrorStatus::None.code();
    demand!(!failed || launched == notified, "CB-5: another status is reported than was returned");
    Ok(notified)
}

/// The versions with a method of their own that executes.
fn versions(driver: &Driver) -> impl Iterator<Item = HalVersion> + use<> {
    driver.versions().into_iter().filter(|version| *version != HalVersion::V1_1)
}

fn in_requests(driver: &Driver) -> Result<Verdict, Violation> {
    let model = driver.prepared(&addition([2, 2]))?;
    for version in versions(driver) {
        for place in [Place::Beside, Place::Used(0)] {
            for (what, memory) in wrong_memory(version)? {
                let status = execute_with(&model, version, &memory, place)?;
                demand_status(&format!("{what}, {place:?}"), status, INVALID)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn in_models(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let models = [addition([2, 2]), super::super::models::pool_addition()?];
        for model in models {
            for (what, pool) in wrong_memory(version)? {
                let notified = Notified::<Preparation>::new();
                let launched = driver.prepare_with_pools(version, &model, &[pool], &notified)?;
                let notified = notified.only()?;
                demand_status(&format!("{what}, as returned"), launched, INVALID)?;
                demand_status(&format!("{what}, as reported"), notified.status, INVALID)?;
                demand!(notified.model.is_none(), "{what}: there is a model");
            }
        }
    }
    Ok(Verdict::Kept)
}

fn longer_than_it_is(driver: &Driver) -> Result<Verdict, Violation> {
    let model = driver.prepared(&addition([2, 2]))?;
    let file_of = |integers: &[i32], size| {
        Ok::<_, Violation>(of_kind("mmap_fd", handle(vec![file(4096)?], integers), size))
    };
    for version in versions(driver) {
        for (what, pool) in [
            ("ashmem", of_kind("ashmem", handle(vec![file(4096)?], &[]), 1 << 20)),
            ("mmap_fd", file_of(&[READ_WRITE, 0, 0], 1 << 20)?),
            ("mmap_fd behind an offset", file_of(&[READ_WRITE, 4000, 0], 4096)?),
            ("mmap_fd behind an offset of 64 bits", file_of(&[READ_WRITE, 0, 1], 4096)?),
        ] {
            for place in [Place::Beside, Place::Used(0)] {
                let status = execute_with(&model, version, &pool, place)?;
                demand_status(&format!("{what} by {version}, {place:?}"), status, INVALID)?;
            }
        }
    }
    Ok(Verdict::Kept)
}

fn large(driver: &Driver) -> Result<Verdict, Violation> {
    // A length that is cut to 32 bits is 4096. There is nothing on the disk behind it.
    const SIZE: u64 = (1 << 32) + 4096;
    let model = driver.prepared(&addition([2, 2]))?;
    for version in versions(driver) {
        let pool = of_kind("mmap_fd", handle(vec![file(SIZE)?], &[READ_WRITE, 0, 0]), SIZE);
        let mut answers = Vec::new();
        for place in [Place::Beside, Place::Used(0), Place::Used(3 << 30)] {
            let status = execute_with(&model, version, &pool, place)?;
            let refused = [ErrorStatus::InvalidArgument, ErrorStatus::GeneralFailure];
            let what = format!("{SIZE} bytes by {version}, {place:?}");
            demand_status(&what, status, &[NONE, &refused].concat())?;
            answers.push(status);
        }
        let taken = answers[1] == ErrorStatus::None.code();
        demand!(!taken || answers[2] == answers[1], "by {version} the 3rd GiB is not there");
    }
    Ok(Verdict::Kept)
}

fn cannot_be_mapped(driver: &Driver) -> Result<Verdict, Violation> {
    for version in driver.versions() {
        let pool = of_kind("ashmem", handle(vec![pipe()?], &[]), 4096);
        let notified = Notified::<Preparation>::new();
        let model = super::super::models::pool_addition()?;
        driver.prepare_with_pools(version, &model, &[pool], &notified)?;
        let notified = notified.only()?;
        let success = notified.status == ErrorStatus::None.code();
        demand!(!success && notified.model.is_none(), "by {version} a pool in a pipe is prepared");
    }
    Ok(Verdict::Kept)
}

/// Memory that may only be read.
pub(super) fn read_only(length: u64) -> Result<HidlMemory, Violation> {
    let program = std::env::current_exe().and_then(File::open).map_err(own)?;
    let memory = Memory::from_file(program.into(), Protection::READ, 0, length).map_err(own)?;
    words(&memory)
}
