//! [`DriverModel`]: a prepared model by every version of the interfaces, called with numbers as they are on the wire.

use super::super::Violation;
use super::notified::{Ended, Notified};
use super::words;
use nnhal_hal::{HalVersion, MeasureTiming, Request};
use nnhal_hidl::v1_2::{OutputShape, Timing};
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Return, v1_0, v1_2, v1_3};
use std::sync::Arc;

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
pub(super) fn returned<T>(method: &str, answer: Return<T>) -> Result<T, Violation> {
    answer.map_err(|error| Violation(format!("{method}: {error}")))
}

/// A version that is asked for and not there.
pub(super) fn lacks(version: HalVersion) -> Violation {
    Violation(format!("the driver does not implement {version}"))
}

/// A prepared model by each version that it implements.
pub(super) struct DriverModel {
    v1_0: Arc<dyn v1_0::IPreparedModel>,
    pub(super) v1_2: Option<Arc<dyn v1_2::IPreparedModel>>,
    pub(super) v1_3: Option<Arc<dyn v1_3::IPreparedModel>>,
}

impl DriverModel {
    pub(super) fn new(model: Arc<dyn v1_0::IPreparedModel>) -> Self {
        Self { v1_2: model.cast(), v1_3: model.cast(), v1_0: model }
    }

    /// The same object once more.
    pub(super) fn again(&self) -> Self {
        Self::new(Arc::clone(&self.v1_0))
    }

    fn v1_2(&self) -> Result<&dyn v1_2::IPreparedModel, Violation> {
        self.v1_2.as_deref().ok_or_else(|| lacks(HalVersion::V1_2))
    }

    pub(super) fn v1_3(&self) -> Result<&dyn v1_3::IPreparedModel, Violation> {
        self.v1_3.as_deref().ok_or_else(|| lacks(HalVersion::V1_3))
    }

    /// `execute` of 1.0, 1.2 or 1.3; the status of the call.
    pub(super) fn launch(
        &self,
        version: HalVersion,
        request: &Request,
        wishes: ExecuteWishes,
        callback: Option<Arc<Notified<Ended>>>,
    ) -> Result<i32, Violation> {
        match version {
            HalVersion::V1_0 | HalVersion::V1_1 | HalVersion::V1_2 => {
                self.launch_older_words(version, &words(request)?, wishes, callback)
            }
            _ => self.launch_words(&words(request)?, wishes, callback),
        }
    }

    /// `execute` of 1.0 or 1.2 with these very words.
    pub(super) fn launch_older_words(
        &self,
        version: HalVersion,
        request: &v1_0::Request,
        wishes: ExecuteWishes,
        callback: Option<Arc<Notified<Ended>>>,
    ) -> Result<i32, Violation> {
        let answer = if version < HalVersion::V1_2 {
            self.v1_0.execute(request, callback.map(|callback| callback as _))
        } else {
            let callback = callback.map(|callback| callback as _);
            self.v1_2()?.execute_1_2(request, wishes.measure, callback)
        };
        returned("execute", answer)
    }

    /// `execute_1_3` with these very words.
    pub(super) fn launch_words(
        &self,
        request: &v1_3::Request,
        wishes: ExecuteWishes,
        callback: Option<Arc<Notified<Ended>>>,
    ) -> Result<i32, Violation> {
        let ExecuteWishes { measure, deadline, loop_timeout } = wishes;
        let callback = callback.map(|callback| callback as _);
        let model = self.v1_3()?;
        returned("execute", model.execute_1_3(request, measure, deadline, loop_timeout, callback))
    }

    /// The status of the call, and what was reported once.
    pub(super) fn execute(
        &self,
        version: HalVersion,
        request: &Request,
        wishes: ExecuteWishes,
    ) -> Result<(i32, Ended), Violation> {
        let notified = Notified::new();
        let status = self.launch(version, request, wishes, Some(Arc::clone(&notified)))?;
        Ok((status, notified.only()?))
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
