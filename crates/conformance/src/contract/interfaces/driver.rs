//! [`Driver`] and [`DriverModel`]: a driver and its prepared models by every version of the
//! interfaces, called with numbers as they are on the wire.

use super::super::Violation;
use super::told::{Ended, Preparation, Told};
use super::words;
use nnhal_hal::{ExecutionPreference, HalVersion, MeasureTiming, Model, Priority, Request};
use nnhal_hidl::v1_2::{CacheToken, OutputShape, Timing};
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, Return, v1_0, v1_1, v1_2, v1_3};
use std::sync::Arc;

/// Names the compilations of these checks.
pub(super) const TOKEN: CacheToken = [7; 32];

/// A driver by each version that it implements.
pub(in crate::contract) struct Driver {
    v1_0: Arc<dyn v1_0::IDevice>,
    v1_1: Option<Arc<dyn v1_1::IDevice>>,
    v1_2: Option<Arc<dyn v1_2::IDevice>>,
    pub(super) v1_3: Option<Arc<dyn v1_3::IDevice>>,
}

/// How to prepare, as far as the version has words for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PrepareWishes {
    pub(super) preference: i32,
    pub(super) priority: i32,
    pub(super) deadline: OptionalTimePoint,
}

impl Default for PrepareWishes {
    fn default() -> Self {
        Self {
            preference: ExecutionPreference::FastSingleAnswer.code(),
            priority: Priority::Medium.code(),
            deadline: OptionalTimePoint::None,
        }
    }
}

/// How to execute, as far as the version has words for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExecuteWishes {
    pub(super) measure: i32,
    pub(super) deadline: OptionalTimePoint,
    pub(super) loop_timeout: OptionalTimeoutDuration,
}

impl Default for ExecuteWishes {
    fn default() -> Self {
        Self {
            measure: MeasureTiming::No.code(),
            deadline: OptionalTimePoint::None,
            loop_timeout: OptionalTimeoutDuration::None,
        }
    }
}

/// What a call returned, which must have got through.
fn returned<T>(method: &str, answer: Return<T>) -> Result<T, Violation> {
    answer.map_err(|error| Violation(format!("{method}: {error}")))
}

fn lacks(version: HalVersion) -> Violation {
    Violation(format!("the driver does not implement {version}"))
}

impl Driver {
    /// A driver by the versions that it can be cast to, none newer than one.
    pub(in crate::contract) fn new(driver: Arc<dyn v1_0::IDevice>, newest: HalVersion) -> Self {
        let same = || Arc::clone(&driver);
        let offers = |version| newest >= version;
        Self {
            v1_1: offers(HalVersion::V1_1).then(|| same().cast_to_1_1()).flatten(),
            v1_2: offers(HalVersion::V1_2).then(|| same().cast_to_1_2()).flatten(),
            v1_3: offers(HalVersion::V1_3).then(|| same().cast_to_1_3()).flatten(),
            v1_0: driver,
        }
    }

    /// The versions that it implements.
    pub(super) fn versions(&self) -> Vec<HalVersion> {
        let newer = [
            (HalVersion::V1_1, self.v1_1.is_some()),
            (HalVersion::V1_2, self.v1_2.is_some()),
            (HalVersion::V1_3, self.v1_3.is_some()),
        ];
        let newer = newer.iter().filter(|(_, offered)| *offered).map(|(version, _)| *version);
        std::iter::once(HalVersion::V1_0).chain(newer).collect()
    }

    /// The newest version that it implements.
    pub(super) fn newest(&self) -> HalVersion {
        self.versions().last().copied().unwrap_or(HalVersion::V1_0)
    }

    pub(super) fn v1_1(&self) -> Result<&dyn v1_1::IDevice, Violation> {
        self.v1_1.as_deref().ok_or_else(|| lacks(HalVersion::V1_1))
    }

    pub(super) fn v1_2(&self) -> Result<&dyn v1_2::IDevice, Violation> {
        self.v1_2.as_deref().ok_or_else(|| lacks(HalVersion::V1_2))
    }

    pub(super) fn v1_3(&self) -> Result<&dyn v1_3::IDevice, Violation> {
        self.v1_3.as_deref().ok_or_else(|| lacks(HalVersion::V1_3))
    }

    /// `getSupportedOperations` of a version.
    pub(super) fn supported_operations(
        &self,
        version: HalVersion,
        model: &Model,
    ) -> Result<(i32, Vec<bool>), Violation> {
        let answer = match version {
            HalVersion::V1_0 => self.v1_0.get_supported_operations(&words(model)?),
            HalVersion::V1_1 => self.v1_1()?.get_supported_operations_1_1(&words(model)?),
            HalVersion::V1_2 => self.v1_2()?.get_supported_operations_1_2(&words(model)?),
            _ => self.v1_3()?.get_supported_operations_1_3(&words(model)?),
        };
        returned("getSupportedOperations", answer)
    }

    /// `prepareModel` of a version; the status of the call.
    pub(super) fn prepare(
        &self,
        version: HalVersion,
        model: &Model,
        wishes: PrepareWishes,
        callback: Option<Arc<Told<Preparation>>>,
    ) -> Result<i32, Violation> {
        let PrepareWishes { preference, priority, deadline } = wishes;
        let answer = match version {
            HalVersion::V1_0 => {
                self.v1_0.prepare_model(&words(model)?, callback.map(|callback| callback as _))
            }
            HalVersion::V1_1 => {
                let callback = callback.map(|callback| callback as _);
                self.v1_1()?.prepare_model_1_1(&words(model)?, preference, callback)
            }
            HalVersion::V1_2 => {
                let callback = callback.map(|callback| callback as _);
                let (driver, model) = (self.v1_2()?, words(model)?);
                driver.prepare_model_1_2(&model, preference, &[], &[], &TOKEN, callback)
            }
            _ => {
                let callback = callback.map(|callback| callback as _);
                let (driver, model) = (self.v1_3()?, words(model)?);
                driver.prepare_model_1_3(
                    &model,
                    preference,
                    priority,
                    deadline,
                    &[],
                    &[],
                    &TOKEN,
                    callback,
                )
            }
        };
        returned("prepareModel", answer)
    }

    /// `prepareModelFromCache` of 1.2 or 1.3; the status of the call.
    pub(super) fn load(
        &self,
        version: HalVersion,
        model_cache: &[Handle],
        data_cache: &[Handle],
        callback: Option<Arc<Told<Preparation>>>,
    ) -> Result<i32, Violation> {
        let answer = if version <= HalVersion::V1_2 {
            let callback = callback.map(|callback| callback as _);
            self.v1_2()?.prepare_model_from_cache(model_cache, data_cache, &TOKEN, callback)
        } else {
            let callback = callback.map(|callback| callback as _);
            let never = OptionalTimePoint::None;
            let driver = self.v1_3()?;
            driver.prepare_model_from_cache_1_3(never, model_cache, data_cache, &TOKEN, callback)
        };
        returned("prepareModelFromCache", answer)
    }

    /// A model prepared by the newest version, without any wish.
    pub(super) fn prepared(&self, model: &Model) -> Result<DriverModel, Violation> {
        let told = Told::new();
        let (newest, wishes) = (self.newest(), PrepareWishes::default());
        let status = self.prepare(newest, model, wishes, Some(Arc::clone(&told)))?;
        super::demand_status("launching a preparation", status, super::NONE)?;
        let Preparation { status, model } = told.only()?;
        super::demand_status("a preparation", status, super::NONE)?;
        model.ok_or_else(|| Violation("there is no prepared model with NONE".into()))
    }
}

/// A prepared model by each version that it implements.
pub(super) struct DriverModel {
    v1_0: Arc<dyn v1_0::IPreparedModel>,
    pub(super) v1_2: Option<Arc<dyn v1_2::IPreparedModel>>,
    pub(super) v1_3: Option<Arc<dyn v1_3::IPreparedModel>>,
}

impl DriverModel {
    pub(super) fn new(model: Arc<dyn v1_0::IPreparedModel>) -> Self {
        let (v1_2, v1_3) = (Arc::clone(&model).cast_to_1_2(), Arc::clone(&model).cast_to_1_3());
        Self { v1_0: model, v1_2, v1_3 }
    }

    fn v1_2(&self) -> Result<&dyn v1_2::IPreparedModel, Violation> {
        self.v1_2.as_deref().ok_or_else(|| lacks(HalVersion::V1_2))
    }

    fn v1_3(&self) -> Result<&dyn v1_3::IPreparedModel, Violation> {
        self.v1_3.as_deref().ok_or_else(|| lacks(HalVersion::V1_3))
    }

    /// `execute` of 1.0, 1.2 or 1.3; the status of the call.
    pub(super) fn launch(
        &self,
        version: HalVersion,
        request: &Request,
        wishes: ExecuteWishes,
        callback: Option<Arc<Told<Ended>>>,
    ) -> Result<i32, Violation> {
        let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
        let answer = match version {
            HalVersion::V1_0 | HalVersion::V1_1 => {
                self.v1_0.execute(&words(request)?, callback.map(|callback| callback as _))
            }
            HalVersion::V1_2 => {
                let callback = callback.map(|callback| callback as _);
                self.v1_2()?.execute_1_2(&words(request)?, measure, callback)
            }
            _ => {
                let callback = callback.map(|callback| callback as _);
                let (model, request) = (self.v1_3()?, words(request)?);
                model.execute_1_3(&request, measure, deadline, loop_timeout, callback)
            }
        };
        returned("execute", answer)
    }

    /// The status of the call, and what was told once.
    pub(super) fn execute(
        &self,
        version: HalVersion,
        request: &Request,
        wishes: ExecuteWishes,
    ) -> Result<(i32, Ended), Violation> {
        let told = Told::new();
        let status = self.launch(version, request, wishes, Some(Arc::clone(&told)))?;
        Ok((status, told.only()?))
    }

    /// `executeSynchronously` of 1.2 or 1.3.
    pub(super) fn run(
        &self,
        version: HalVersion,
        request: &Request,
        wishes: ExecuteWishes,
    ) -> Result<(i32, Vec<OutputShape>, Timing), Violation> {
        let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
        let answer = if version <= HalVersion::V1_2 {
            self.v1_2()?.execute_synchronously(&words(request)?, measure)
        } else {
            let (model, request) = (self.v1_3()?, words(request)?);
            model.execute_synchronously_1_3(&request, measure, deadline, loop_timeout)
        };
        returned("executeSynchronously", answer)
    }
}
