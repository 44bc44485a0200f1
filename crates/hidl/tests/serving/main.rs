//! What a served device owes those who call it by the interfaces themselves.

mod believing;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod executing;
mod preparing;
mod stub;

use common::{
    Executed, Notified, Prepared, Sample, add_constant, endless, invalid, model_of_1_2,
    unknown_output, unsupported,
};
use nnhal_hal::{
    BufferDescription, CacheFilesNeeded, CacheToken, Capabilities, Deadline, Device, DeviceType,
    Error, ErrorStatus, Execution, ExecutionError, ExecutionOptions, HalVersion, Memory, Model,
    PrepareOptions, PreparedModel, Request, Support,
};
use nnhal_hidl::convert::Convert;
use nnhal_hidl::tasks::Limits;
use nnhal_hidl::v1_2::Timing;
use nnhal_hidl::v1_3::{IDevice as _, OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, HidlMemory, Return, serve, v1_0, v1_1, v1_2, v1_3};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use v1_0::IDevice as _;
use v1_1::IDevice as _;
use v1_2::IDevice as _;

const NONE: i32 = ErrorStatus::None.code();
const FAILURE: i32 = ErrorStatus::GeneralFailure.code();
const EXHAUSTED: i32 = ErrorStatus::ResourceExhaustedTransient.code();
const INVALID: i32 = ErrorStatus::InvalidArgument.code();
const TOKEN: CacheToken = [7; 32];
const FAST: i32 = nnhal_hal::ExecutionPreference::FastSingleAnswer.code();
const MEDIUM: i32 = nnhal_hal::Priority::Medium.code();
const NO_DEADLINE: OptionalTimePoint = OptionalTimePoint::None;
const NO_DURATION: OptionalTimeoutDuration = OptionalTimeoutDuration::None;
const NO: i32 = nnhal_hal::MeasureTiming::No.code();
const YES: i32 = nnhal_hal::MeasureTiming::Yes.code();

fn served() -> Arc<serve::Device> {
    serve::Device::new(nnhal_reference::device())
}

fn to<T: Convert>(canonical: &T::Canonical) -> T {
    T::from_canonical(canonical).unwrap()
}

fn is_missed(status: i32) -> bool {
    status == ErrorStatus::MissedDeadlineTransient.code()
        || status == ErrorStatus::MissedDeadlinePersistent.code()
}

/// How to prepare a model by one version's method, with the callback that goes with it.
type Prepare = fn(&serve::Device, &Model, Option<Arc<Notified<Prepared>>>) -> i32;

/// The four methods.
const PREPARE: [(HalVersion, Prepare); 4] = [
    (HalVersion::V1_0, |device, model, callback| {
        device.prepare_model(&to(model), callback.map(|callback| callback as _)).unwrap()
    }),
    (HalVersion::V1_1, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device.prepare_model_1_1(&to(model), FAST, callback).unwrap()
    }),
    (HalVersion::V1_2, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device.prepare_model_1_2(&to(model), FAST, &[], &[], &TOKEN, callback).unwrap()
    }),
    (HalVersion::V1_3, |device, model, callback| {
        let callback = callback.map(|callback| callback as _);
        device
            .prepare_model_1_3(&to(model), FAST, MEDIUM, NO_DEADLINE, &[], &[], &TOKEN, callback)
            .unwrap()
    }),
];

/// A prepared model by 1.3.
fn prepared(device: &serve::Device, model: &Model) -> Arc<dyn v1_3::IPreparedModel> {
    let notified = Notified::<Prepared>::new();
    assert_eq!(PREPARE[3].1(device, model, Some(Arc::clone(&notified))), NONE);
    let (status, model) = notified.only();
    assert_eq!(status, NONE);
    model.unwrap().newest()
}
