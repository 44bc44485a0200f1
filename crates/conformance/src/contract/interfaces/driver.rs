//! [`Driver`]: a driver by every version of the interfaces, called with numbers as they are on the wire.

use super::super::Violation;
use super::driver_model::{DriverModel, lacks, returned};
use super::notified::Notified;
use super::preparation::Preparation;
use super::words;
use nnhal_hal::{ExecutionPreference, HalVersion, Model, Priority};
use nnhal_hidl::v1_2::CacheToken;
use nnhal_hidl::v1_3::OptionalTimePoint;
use nnhal_hidl::{Handle, HidlMemory, v1_0, v1_1, v1_2, v1_3};
use std::sync::Arc;

/// Names the compilations of these checks.
pub(super) const TOKEN: CacheToken = [7; 32];

/// Files of a compilation, as a call is given them.
#[derive(Debug, Clone)]
pub(super) struct CacheHandles {
    pub(super) model: Vec<Handle>,
    pub(super) data: Vec<Handle>,
    pub(super) token: CacheToken,
}

impl CacheHandles {
    /// No files.
    pub(super) fn none() -> Self {
        Self { model: Vec::new(), data: Vec::new(), token: TOKEN }
    }
}

/// What `allocate` answers.
pub(super) struct Allocated {
    pub(super) status: i32,
    pub(super) buffer: Option<Arc<dyn v1_3::IBuffer>>,
    pub(super) token: u32,
}

/// What `allocate` is asked for.
#[derive(Clone, Default)]
pub(super) struct Wish {
    pub(super) dimensions: Vec<u32>,
    pub(super) models: Vec<Option<Arc<dyn v1_3::IPreparedModel>>>,
    pub(super) inputs: Vec<v1_3::BufferRole>,
    pub(super) outputs: Vec<v1_3::BufferRole>,
}

/// A driver by each version that it implements.
pub(in crate::contract) struct Driver {
    pub(super) v1_0: Arc<dyn v1_0::IDevice>,
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

impl Driver {
    /// A driver by the versions that it can be cast to, none newer than one.
    pub(in crate::contract) fn new(driver: Arc<dyn v1_0::IDevice>, newest: HalVersion) -> Self {
        let offers = |version| newest >= version;
        Self {
            v1_1: offers(HalVersion::V1_1).then(|| driver.cast()).flatten(),
            v1_2: offers(HalVersion::V1_2).then(|| driver.cast()).flatten(),
            v1_3: offers(HalVersion::V1_3).then(|| driver.cast()).flatten(),
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
        callback: Option<Arc<Notified<Preparation>>>,
    ) -> Result<i32, Violation> {
        self.prepare_and_save(version, model, wishes, &CacheHandles::none(), callback)
    }

    /// The same with files, as far as the version has words for them.
    pub(super) fn prepare_and_save(
        &self,
        version: HalVersion,
        model: &Model,
        wishes: PrepareWishes,
        files: &CacheHandles,
        callback: Option<Arc<Notified<Preparation>>>,
    ) -> Result<i32, Violation> {
        self.prepare_words(version, model, None, wishes, files, callback)
    }

    /// The same with other pools than the model has.
    pub(super) fn prepare_with_pools(
        &self,
        version: HalVersion,
        model: &Model,
        pools: &[HidlMemory],
        callback: &Arc<Notified<Preparation>>,
    ) -> Result<i32, Violation> {
        let (wishes, files) = (PrepareWishes::default(), CacheHandles::none());
        let callback = Some(Arc::clone(callback));
        self.prepare_words(version, model, Some(pools), wishes, &files, callback)
    }

    fn prepare_words(
        &self,
        version: HalVersion,
        model: &Model,
        pools: Option<&[HidlMemory]>,
        wishes: PrepareWishes,
        files: &CacheHandles,
        callback: Option<Arc<Notified<Preparation>>>,
    ) -> Result<i32, Violation> {
        let CacheHandles { model: model_cache, data: data_cache, token } = files;
        let PrepareWishes { preference, priority, deadline } = wishes;
        let put = |own: &mut Vec<HidlMemory>| {
            if let Some(pools) = pools {
                *own = pools.to_vec();
            }
        };
        let answer = match version {
            HalVersion::V1_0 => {
                let mut model: v1_0::Model = words(model)?;
                put(&mut model.pools);
                self.v1_0.prepare_model(&model, callback.map(|callback| callback as _))
            }
            HalVersion::V1_1 => {
                let mut model: v1_1::Model = words(model)?;
                put(&mut model.pools);
                let callback = callback.map(|callback| callback as _);
                self.v1_1()?.prepare_model_1_1(&model, preference, callback)
            }
            HalVersion::V1_2 => {
                let mut model: v1_2::Model = words(model)?;
                put(&mut model.pools);
                let callback = callback.map(|callback| callback as _);
                self.v1_2()?.prepare_model_1_2(
                    &model,
                    preference,
                    model_cache,
                    data_cache,
                    token,
                    callback,
                )
            }
            _ => {
                let mut model: v1_3::Model = words(model)?;
                put(&mut model.pools);
                let callback = callback.map(|callback| callback as _);
                self.v1_3()?.prepare_model_1_3(
                    &model,
                    preference,
                    priority,
                    deadline,
                    model_cache,
                    data_cache,
                    token,
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
        files: &CacheHandles,
        callback: Option<Arc<Notified<Preparation>>>,
    ) -> Result<i32, Violation> {
        let CacheHandles { model: model_cache, data: data_cache, token } = files;
        if version > HalVersion::V1_2 {
            return self.load_until(OptionalTimePoint::None, files, callback);
        }
        let callback = callback.map(|callback| callback as _);
        let answer =
            self.v1_2()?.prepare_model_from_cache(model_cache, data_cache, token, callback);
        returned("prepareModelFromCache", answer)
    }

    /// `prepareModelFromCache_1_3` with a deadline; the status of the call.
    pub(super) fn load_until(
        &self,
        deadline: OptionalTimePoint,
        CacheHandles { model, data, token }: &CacheHandles,
        callback: Option<Arc<Notified<Preparation>>>,
    ) -> Result<i32, Violation> {
        let callback = callback.map(|callback| callback as _);
        let driver = self.v1_3()?;
        let answer = driver.prepare_model_from_cache_1_3(deadline, model, data, token, callback);
        returned("prepareModelFromCache_1_3", answer)
    }

    /// `getNumberOfCacheFilesNeeded`: model caches and data caches; none before 1.2.
    pub(super) fn cache_files_needed(&self) -> Result<(usize, usize), Violation> {
        let Some(driver) = &self.v1_2 else { return Ok((0, 0)) };
        let answer = driver.get_number_of_cache_files_needed();
        let (status, model, data) = returned("getNumberOfCacheFilesNeeded", answer)?;
        super::demand_status("getNumberOfCacheFilesNeeded", status, super::NONE)?;
        Ok((model as usize, data as usize))
    }

    /// `allocate`.
    pub(super) fn allocate(&self, wish: &Wish) -> Result<Allocated, Violation> {
        let desc = v1_3::BufferDesc { dimensions: wish.dimensions.clone() };
        let answer = self.v1_3()?.allocate(&desc, &wish.models, &wish.inputs, &wish.outputs);
        let (status, buffer, token) = returned("allocate", answer)?;
        Ok(Allocated { status, buffer, token })
    }

    /// A model prepared by the newest version, without any wish.
    pub(super) fn prepared(&self, model: &Model) -> Result<DriverModel, Violation> {
        self.prepared_by(self.newest(), model)
    }

    /// A model prepared by a version, without any wish.
    pub(super) fn prepared_by(
        &self,
        version: HalVersion,
        model: &Model,
    ) -> Result<DriverModel, Violation> {
        let (notified, wishes) = (Notified::new(), PrepareWishes::default());
        let status = self.prepare(version, model, wishes, Some(Arc::clone(&notified)))?;
        super::demand_status("launching a preparation", status, super::NONE)?;
        let Preparation { status, model } = notified.only()?;
        super::demand_status("a preparation", status, super::NONE)?;
        model.ok_or_else(|| Violation("there is no prepared model with NONE".into()))
    }
}
