//! A driver that keeps the contract but for one [`Breach`].

use crate::buffers::BrokenBuffer;
use crate::proxy;
use nnhal_burst::packet::ResultPacket;
use nnhal_burst::{FmqRequestDatum, FmqResultDatum, MessageQueue};
use nnhal_hal::{ErrorStatus, HalVersion, Memory};
use nnhal_hidl::cast::Cast;
use nnhal_hidl::convert::Convert as _;
use nnhal_hidl::v1_2::{CacheToken, IBurstCallback, IBurstContext, OutputShape, Timing};
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{Handle, HidlMemory, MQDescriptor, Return, serve, v1_0, v1_1, v1_2, v1_3};
use std::any::Any;
use std::collections::BTreeMap;
use std::io::Seek;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One way in which a driver can break what the interfaces demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    None,
    // Preparations.
    TellsOfModelsTwice,
    NeverTellsOfModels,
    NeverTellsOfWrongModels,
    TellsOfWrongModelsOnly,
    NoModelWithNone,
    OldModels,
    NoCallbackIsFine,
    UnsupportedIsReturned,
    PreparesLateIsReturned,
    AnyPreferenceIsFine,
    OneInterfaceForAll,
    CacheIsReported,
    AnswersWithErrors,
    ForgetsPools,
    // Executions.
    TellsOfExecutionsTwice,
    NeverTellsOfWrongRequests,
    TellsOfWrongRequestsOnly,
    TellsTooEarly,
    TellsTimesUnasked,
    TellsShapesWithErrors,
    ExecutesWithoutCallback,
    AnyMeasureIsFine,
    LateIsReturned,
    NewStatusesInOldMethods,
    ForgetsShapes,
    ForgetsLaunchesOfLostModels,
    DifferentWhenSynchronous,
    NoShapesForCallbacks,
    ShortIsFailureOfOld,
    LateBeforeWrong,
    AnyLengthIsFine,
    // Bursts.
    ContextWithErrors,
    AsksForEachSlot,
    AsksTwice,
    KeepsFreedMemory,
    MakesUpMemory,
    AnyPacketIsFine,
    AnyPacketIsInvalid,
    // Fences.
    FenceWithErrors,
    NoCallbackWithFence,
    AnotherInfoEachTime,
    WrongIsFailureBehindFences,
    FenceAndCallbackWithErrors,
    TimesOfFailures,
    AnyTagBehindFences,
    // What older versions say.
    OlderCostsDiffer,
    OlderCostsTwice,
    AnyTypeIsFine,
    NewTypesInOldMethods,
    TypeIsSeveral,
    // Caching.
    LoadsFromPosition,
    StumblesOverHandles,
    OpensFilesAgain,
    RemembersModels,
    IgnoresTokens,
    LoadsAnotherModel,
    TokenOfZerosIsWrong,
    LoadsByAnyTag,
    LateLoadsFirst,
    LoadedHaveNoBursts,
    LoadedFailBehindFences,
    // Packets.
    SwapsFields,
    DirtyPadding,
    SplitsResults,
    SwallowsErrors,
    NewStatusesInBursts,
    OneBurstAtATime,
    // Memory.
    AnyMemoryIsFine,
    CutsSizes,
    // Buffers.
    OneTokenForAll,
    TokenWithErrors,
    AllocatesAnything,
    KeepsItsDimensions,
    KeepsItsSize,
    AnySizeIsFine,
    KeepsAfterFailures,
    EmptyIsInvalid,
    AnyTokenIsFine,
    DimensionsFirst,
    LooksForBuffersLate,
}

pub const NONE: i32 = ErrorStatus::None.code();
pub const FAILURE: i32 = ErrorStatus::GeneralFailure.code();
pub const INVALID: i32 = ErrorStatus::InvalidArgument.code();
pub const MISSED: i32 = ErrorStatus::MissedDeadlinePersistent.code();
const SMALL: i32 = ErrorStatus::OutputInsufficientSize.code();

/// The reference device behind the interfaces up to a version, but for one breach.
struct Broken {
    inner: Arc<serve::Device>,
    newest: HalVersion,
    breach: Breach,
    /// What was saved, by token, where files are not looked at.
    saved: Arc<Saved>,
    /// How often it was asked for its type.
    asked: AtomicU64,
}

/// Prepared models by token.
type Saved = Mutex<BTreeMap<CacheToken, Model>>;

/// The reference device behind the interfaces up to a version, but for one breach.
pub fn broken(newest: HalVersion, breach: Breach) -> Arc<dyn v1_0::IDevice> {
    let inner = serve::Device::new(nnhal_reference::device());
    let (saved, asked) = (Arc::default(), AtomicU64::new(0));
    Arc::new(Broken { inner, newest, breach, saved, asked })
}

/// Between the driver and the callback of a preparation.
struct PreparationEar {
    client: Arc<dyn v1_3::IPreparedModelCallback>,
    breach: Breach,
    /// Where the model is remembered.
    saved: Option<(Arc<Saved>, CacheToken)>,
}

type Model = Arc<dyn v1_3::IPreparedModel>;

impl Breach {
    /// Whether it is one of models that were loaded, and of no others.
    fn is_of_loaded(self) -> bool {
        matches!(self, Self::LoadedHaveNoBursts | Self::LoadedFailBehindFences)
    }
}

impl PreparationEar {
    fn hear(&self, status: i32, model: Option<Model>) -> Return<()> {
        let (client, breach) = (&self.client, self.breach);
        if breach == Breach::None {
            // The device knows its own again, in `allocate`.
            return client.notify_1_3(status, model);
        }
        let model = model.map(|inner| Arc::new(BrokenModel::new(inner, breach)));
        if let (Some((saved, token)), Some(model)) = (&self.saved, &model) {
            saved.lock().unwrap().insert(*token, Arc::clone(model) as Model);
        }
        match breach {
            Breach::TellsOfModelsTwice => {
                client.notify_1_3(status, model.clone().map(|model| model as Model))?;
            }
            Breach::NeverTellsOfModels if status == NONE => return Ok(()),
            Breach::NeverTellsOfWrongModels if status == INVALID => return Ok(()),
            Breach::NoModelWithNone => return client.notify_1_3(status, None),
            Breach::OldModels => return client.notify(status, model.map(|model| model as _)),
            _ => {}
        }
        client.notify_1_3(status, model.map(|model| model as Model))
    }
}

impl v1_0::IPreparedModelCallback for PreparationEar {
    fn notify(&self, _: i32, _: Option<Arc<dyn v1_0::IPreparedModel>>) -> Return<()> {
        unreachable!("what is served tells by the method of the version")
    }
}

impl v1_2::IPreparedModelCallback for PreparationEar {
    fn notify_1_2(&self, _: i32, _: Option<Arc<dyn v1_2::IPreparedModel>>) -> Return<()> {
        unreachable!("what is served tells by the method of the version")
    }
}

impl v1_3::IPreparedModelCallback for PreparationEar {
    fn notify_1_3(&self, status: i32, model: Option<Model>) -> Return<()> {
        self.hear(status, model)
    }
}

impl v1_0::IDevice for Broken {
    fn get_capabilities(&self) -> Return<(i32, v1_0::Capabilities)> {
        let (status, mut capabilities) = self.inner.get_capabilities()?;
        if self.breach == Breach::OlderCostsDiffer {
            capabilities.quantized8_performance.exec_time += 1.0;
        }
        Ok((status, capabilities))
    }

    fn get_supported_operations(&self, model: &v1_0::Model) -> Return<(i32, Vec<bool>)> {
        self.inner.get_supported_operations(model)
    }

    fn prepare_model(
        &self,
        model: &v1_0::Model,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        self.inner.prepare_model(model, callback)
    }

    fn get_status(&self) -> Return<i32> {
        self.inner.get_status()
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        if self.newest >= HalVersion::V1_1 {
            cast.provide::<dyn v1_1::IDevice>(self.clone());
        }
        if self.newest >= HalVersion::V1_2 {
            cast.provide::<dyn v1_2::IDevice>(self.clone());
        }
        if self.newest >= HalVersion::V1_3 {
            cast.provide::<dyn v1_3::IDevice>(self);
        }
    }
}

impl v1_1::IDevice for Broken {
    fn get_capabilities_1_1(&self) -> Return<(i32, v1_1::Capabilities)> {
        self.inner.get_capabilities_1_1()
    }

    fn get_supported_operations_1_1(&self, model: &v1_1::Model) -> Return<(i32, Vec<bool>)> {
        self.inner.get_supported_operations_1_1(model)
    }

    fn prepare_model_1_1(
        &self,
        model: &v1_1::Model,
        preference: i32,
        callback: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let mut model = model.clone();
        if self.breach == Breach::OneInterfaceForAll {
            for operand in &mut model.operands {
                let newer = nnhal_hal::OperandType::TensorFloat16.code().cast_signed();
                if operand.operand_type == newer {
                    operand.operand_type =
                        nnhal_hal::OperandType::TensorFloat32.code().cast_signed();
                }
            }
        }
        self.inner.prepare_model_1_1(&model, preference, callback)
    }
}

impl v1_2::IDevice for Broken {
    fn get_version_string(&self) -> Return<(i32, String)> {
        self.inner.get_version_string()
    }

    fn get_type(&self) -> Return<(i32, i32)> {
        match self.breach {
            // A client asks first, and would not take such a driver at all.
            Breach::TypeIsSeveral if self.asked.fetch_add(1, Ordering::Relaxed) > 0 => {
                Ok((NONE, 2 | 4))
            }
            _ => self.inner.get_type(),
        }
    }

    fn get_capabilities_1_2(&self) -> Return<(i32, v1_2::Capabilities)> {
        let (status, mut capabilities) = self.inner.get_capabilities_1_2()?;
        if self.breach == Breach::OlderCostsTwice {
            let first = capabilities.operand_performance[0];
            capabilities.operand_performance.insert(0, first);
        }
        Ok((status, capabilities))
    }

    fn get_supported_extensions(&self) -> Return<(i32, Vec<v1_2::Extension>)> {
        self.inner.get_supported_extensions()
    }

    fn get_supported_operations_1_2(&self, model: &v1_2::Model) -> Return<(i32, Vec<bool>)> {
        let signed = nnhal_hal::OperandType::TensorQuant8AsymmSigned.code().cast_signed();
        if self.breach == Breach::NewTypesInOldMethods
            && model.operands.iter().any(|it| it.operand_type == signed)
        {
            return Ok((NONE, vec![false; model.operations.len()]));
        }
        self.inner.get_supported_operations_1_2(model)
    }

    fn get_number_of_cache_files_needed(&self) -> Return<(i32, u32, u32)> {
        self.inner.get_number_of_cache_files_needed()
    }

    fn prepare_model_1_2(
        &self,
        model: &v1_2::Model,
        preference: i32,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        self.inner.prepare_model_1_2(model, preference, model_cache, data_cache, token, callback)
    }

    fn prepare_model_from_cache(
        &self,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        self.inner.prepare_model_from_cache(model_cache, data_cache, token, callback)
    }
}

impl v1_3::IDevice for Broken {
    fn get_capabilities_1_3(&self) -> Return<(i32, v1_3::Capabilities)> {
        self.inner.get_capabilities_1_3()
    }

    fn get_supported_operations_1_3(&self, model: &v1_3::Model) -> Return<(i32, Vec<bool>)> {
        let is_none = |code: i32, last: i32| (last + 1..10_000).contains(&code);
        if self.breach == Breach::AnyTypeIsFine
            && (model.main.operands.iter().any(|it| is_none(it.operand_type, 15))
                || model.main.operations.iter().any(|it| is_none(it.operation_type, 101)))
        {
            return Ok((NONE, vec![false; model.main.operations.len()]));
        }
        let (status, answers) = self.inner.get_supported_operations_1_3(model)?;
        match self.breach {
            Breach::AnswersWithErrors if status != NONE => Ok((status, vec![false])),
            _ => Ok((status, answers)),
        }
    }

    fn prepare_model_1_3(
        &self,
        model: &v1_3::Model,
        preference: i32,
        priority: i32,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let breach = self.breach;
        let Some(client) = callback else {
            return Ok(if breach == Breach::NoCallbackIsFine { NONE } else { INVALID });
        };
        let foreign = nnhal_hal::OperationType::OemOperation.code().cast_signed();
        let is_foreign = |model: &v1_3::Model| {
            model.main.operations.iter().any(|operation| operation.operation_type == foreign)
        };
        let files = || model_cache.iter().chain(data_cache);
        let has_files = files().next().is_some();
        let refused = match breach {
            Breach::StumblesOverHandles if files().any(|file| file.fds().len() != 1) => {
                Some(INVALID)
            }
            Breach::TokenOfZerosIsWrong if *token == CacheToken::default() => Some(INVALID),
            Breach::UnsupportedIsReturned if is_foreign(model) => Some(FAILURE),
            Breach::PreparesLateIsReturned if deadline != OptionalTimePoint::None => Some(MISSED),
            _ => None,
        };
        if let Some(status) = refused {
            client.notify_1_3(status, None)?;
            return Ok(status);
        }
        let mut model = model.clone();
        if breach == Breach::ForgetsPools {
            let zeros = |_: &HidlMemory| memory(16);
            model.pools = model.pools.iter().map(zeros).collect();
        }
        if breach == Breach::AnyMemoryIsFine {
            model.pools.iter_mut().for_each(make_fine);
        }
        let token = if breach == Breach::IgnoresTokens { &[1; 32] } else { token };
        let saved = (breach == Breach::RemembersModels && has_files)
            .then(|| (Arc::clone(&self.saved), *token));
        let preference = if breach == Breach::AnyPreferenceIsFine { 1 } else { preference };
        let breach = if breach.is_of_loaded() { Breach::None } else { breach };
        let ear = Some(Arc::new(PreparationEar { client, breach, saved }) as _);
        let status = self.inner.prepare_model_1_3(
            &model,
            preference,
            priority,
            deadline,
            model_cache,
            data_cache,
            token,
            ear,
        )?;
        Ok(if breach == Breach::TellsOfWrongModelsOnly { NONE } else { status })
    }

    fn prepare_model_from_cache_1_3(
        &self,
        deadline: OptionalTimePoint,
        model_cache: &[Handle],
        data_cache: &[Handle],
        token: &CacheToken,
        callback: Option<Arc<dyn v1_3::IPreparedModelCallback>>,
    ) -> Return<i32> {
        let has_callback = callback.is_some();
        let breach = self.breach;
        let files = || model_cache.iter().chain(data_cache);
        if let (Some(client), Breach::RemembersModels) = (&callback, breach)
            && let Some(model) = self.saved.lock().unwrap().get(token)
        {
            client.notify_1_3(NONE, Some(Arc::clone(model)))?;
            return Ok(NONE);
        }
        if let (Some(client), Breach::LoadsFromPosition) = (&callback, breach) {
            let position = |fd: &std::os::fd::OwnedFd| {
                std::fs::File::from(fd.try_clone().unwrap()).stream_position().unwrap()
            };
            if files().flat_map(Handle::fds).any(|fd| position(fd) != 0) {
                client.notify_1_3(FAILURE, None)?;
                return Ok(FAILURE);
            }
        }
        if let (Some(client), Breach::LoadsAnotherModel) = (&callback, breach) {
            return self.load_product(client);
        }
        if let Some(client) = &callback {
            let status = match (breach, deadline) {
                (Breach::LateLoadsFirst, OptionalTimePoint::NanosecondsSinceEpoch(1)) => MISSED,
                (Breach::LoadsByAnyTag, OptionalTimePoint::Unknown { .. }) => FAILURE,
                _ => NONE,
            };
            if status != NONE {
                client.notify_1_3(status, None)?;
                return Ok(status);
            }
        }
        let open_again = |files: &[Handle]| -> Vec<Handle> {
            let again = |file: &Handle| {
                let [fd] = file.fds() else { return file.clone() };
                let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
                let both = std::fs::File::options().read(true).write(true).open(path);
                Handle::of_fd(both.unwrap().into())
            };
            files.iter().map(again).collect()
        };
        let again = [open_again(model_cache), open_again(data_cache)];
        let (model_cache, data_cache) = match breach {
            Breach::OpensFilesAgain => (&again[0][..], &again[1][..]),
            _ => (model_cache, data_cache),
        };
        let token = if breach == Breach::IgnoresTokens { &[1; 32] } else { token };
        let callback = callback.map(|client| match breach.is_of_loaded() {
            true => Arc::new(PreparationEar { client, breach, saved: None }) as _,
            false => client,
        });
        let status = self.inner.prepare_model_from_cache_1_3(
            deadline,
            model_cache,
            data_cache,
            token,
            callback,
        )?;
        Ok(if has_callback && self.breach == Breach::CacheIsReported { NONE } else { status })
    }

    fn allocate(
        &self,
        desc: &v1_3::BufferDesc,
        models: &[Option<Model>],
        input_roles: &[v1_3::BufferRole],
        output_roles: &[v1_3::BufferRole],
    ) -> Return<(i32, Option<Arc<dyn v1_3::IBuffer>>, u32)> {
        // The device knows its own again.
        let own = |model: &Option<Model>| {
            let Some(model) = model else { return None };
            let any: &dyn Any = &**model;
            let broken = any.downcast_ref::<BrokenModel>();
            Some(broken.map_or_else(|| Arc::clone(model), |it| Arc::clone(&it.inner)))
        };
        let models: Vec<_> = models.iter().map(own).collect();
        let (status, buffer, token) =
            self.inner.allocate(desc, &models, input_roles, output_roles)?;
        let breach = self.breach;
        Ok(match (breach, buffer) {
            (Breach::AllocatesAnything, None) => {
                (NONE, Some(BrokenBuffer::new(None, breach) as _), 1)
            }
            (Breach::TokenWithErrors, None) => (status, None, 7),
            (Breach::OneTokenForAll, Some(buffer)) => (status, Some(buffer), 1),
            (_, Some(buffer)) => {
                (status, Some(BrokenBuffer::new(Some(buffer), breach) as _), token)
            }
            (_, None) => (status, None, token),
        })
    }
}

impl Broken {
    /// Loads a product where a sum was saved.
    fn load_product(&self, client: &Arc<dyn v1_3::IPreparedModelCallback>) -> Return<i32> {
        let spec = || nnhal_hal::OperandSpec::tensor_float32([2, 2]);
        let mut graph = nnhal_hal::SubgraphBuilder::new();
        let (a, b) = (graph.input("a", spec()), graph.input("b", spec()));
        let none = graph.scalar_i32(0);
        let product = graph.operation(nnhal_hal::OperationType::Mul, [a, b, none], spec());
        graph.output(product);
        let model = v1_3::Model::from_canonical(&graph.into_model().unwrap()).unwrap();
        let (token, client) = (CacheToken::default(), Arc::clone(client));
        let never = OptionalTimePoint::None;
        let inner: &dyn v1_3::IDevice = &*self.inner;
        inner.prepare_model_1_3(&model, 1, 1, never, &[], &[], &token, Some(client))
    }
}

/// Makes memory that is of no use memory of zeros.
fn make_fine(pool: &mut HidlMemory) {
    if pool.to_canonical().is_err() {
        *pool = memory(4096);
    }
}

fn is_in_buffer(request: &v1_3::Request) -> bool {
    request.pools.iter().any(|pool| matches!(pool, v1_3::MemoryPool::Token(_)))
}

impl BrokenModel {
    fn new(inner: Model, breach: Breach) -> Self {
        Self { inner, breach, life: Arc::new(()), bursts: AtomicU64::new(0) }
    }

    /// A request as the driver takes it.
    fn taken(&self, request: &v1_3::Request) -> v1_3::Request {
        let mut request = request.clone();
        for pool in &mut request.pools {
            let v1_3::MemoryPool::HidlMemory(memory) = pool else { continue };
            match self.breach {
                Breach::AnyMemoryIsFine => make_fine(memory),
                Breach::CutsSizes => memory.size &= u64::from(u32::MAX),
                _ => {}
            }
        }
        request
    }
}

/// Shared memory of zeros.
fn memory(bytes: u64) -> HidlMemory {
    HidlMemory::from_canonical(&Memory::allocate(bytes).unwrap()).unwrap()
}

/// A prepared model, but for one breach.
struct BrokenModel {
    inner: Model,
    breach: Breach,
    life: Arc<()>,
    bursts: AtomicU64,
}

/// Between the driver and the callback of an execution.
struct ExecutionEar {
    client: Arc<dyn v1_3::IExecutionCallback>,
    breach: Breach,
}

impl v1_0::IExecutionCallback for ExecutionEar {
    fn notify(&self, _: i32) -> Return<()> {
        unreachable!("what is served tells by the method of the version")
    }
}

impl v1_2::IExecutionCallback for ExecutionEar {
    fn notify_1_2(&self, _: i32, _: &[OutputShape], _: Timing) -> Return<()> {
        unreachable!("what is served tells by the method of the version")
    }
}

impl v1_3::IExecutionCallback for ExecutionEar {
    fn notify_1_3(&self, status: i32, shapes: &[OutputShape], timing: Timing) -> Return<()> {
        let (client, shape) = (&self.client, OutputShape::default());
        match self.breach {
            Breach::TellsOfExecutionsTwice => client.notify_1_3(status, shapes, timing)?,
            Breach::NeverTellsOfWrongRequests if status == INVALID => return Ok(()),
            Breach::TellsTimesUnasked => {
                let timing = Timing { time_on_device: 1, time_in_driver: 2 };
                return client.notify_1_3(status, shapes, timing);
            }
            Breach::TellsShapesWithErrors if status == INVALID => {
                return client.notify_1_3(status, &[shape], timing);
            }
            Breach::ForgetsShapes if status == SMALL => {
                return client.notify_1_3(status, &[], timing);
            }
            Breach::NoShapesForCallbacks if status == NONE => {
                return client.notify_1_3(status, &[], timing);
            }
            _ => {}
        }
        client.notify_1_3(status, shapes, timing)
    }
}

impl v1_0::IPreparedModel for BrokenModel {
    fn execute(
        &self,
        request: &v1_0::Request,
        callback: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        if let (Breach::ShortIsFailureOfOld, Some(client)) = (self.breach, &callback)
            && request.outputs.iter().any(|output| output.location.length == 15)
        {
            client.notify(FAILURE)?;
            return Ok(NONE);
        }
        self.inner.execute(request, callback)
    }

    fn provide(self: Arc<Self>, cast: &mut Cast<'_>) {
        if self.breach != Breach::OldModels {
            cast.provide::<dyn v1_2::IPreparedModel>(self.clone());
            cast.provide::<dyn v1_3::IPreparedModel>(self);
        }
    }
}

impl v1_2::IPreparedModel for BrokenModel {
    fn execute_1_2(
        &self,
        request: &v1_0::Request,
        measure: i32,
        callback: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        self.inner.execute_1_2(request, measure, callback)
    }

    fn execute_synchronously(
        &self,
        request: &v1_0::Request,
        measure: i32,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        let (status, shapes, timing) = self.inner.execute_synchronously(request, measure)?;
        let newer = self.breach == Breach::NewStatusesInOldMethods && status == FAILURE;
        Ok((if newer { MISSED } else { status }, shapes, timing))
    }

    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn IBurstCallback>>,
        requests: &MQDescriptor,
        results: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn IBurstContext>>)> {
        let breach = self.breach;
        if breach == Breach::OneBurstAtATime && self.bursts.fetch_add(1, Ordering::Relaxed) > 0 {
            return Ok((FAILURE, None));
        }
        if breach == Breach::LoadedHaveNoBursts {
            return Ok((FAILURE, None));
        }
        let status = match breach {
            Breach::SwapsFields
            | Breach::DirtyPadding
            | Breach::SplitsResults
            | Breach::SwallowsErrors
            | Breach::NewStatusesInBursts => {
                return proxy::configure(&*self.inner, breach, callback, requests, results);
            }
            Breach::AnyPacketIsFine => ErrorStatus::None,
            Breach::AnyPacketIsInvalid => ErrorStatus::InvalidArgument,
            _ => {
                let callback = callback.map(|client| Arc::new(Asking { client, breach }) as _);
                let (status, context) =
                    self.inner.configure_execution_burst(callback, requests, results)?;
                return Ok(match context {
                    Some(inner) if breach == Breach::KeepsFreedMemory => {
                        (status, Some(Arc::new(Keeping { _inner: inner })))
                    }
                    None if breach == Breach::ContextWithErrors => {
                        (status, Some(Arc::new(DeadContext)))
                    }
                    context => (status, context),
                });
            }
        };
        let requests = MessageQueue::open(requests.to_burst().unwrap()).unwrap();
        let results = MessageQueue::open(results.to_burst().unwrap()).unwrap();
        std::thread::spawn(move || answer_always(status, requests, results));
        Ok((NONE, Some(Arc::new(DeadContext))))
    }
}

/// A burst whose answer is always the same.
fn answer_always(
    status: ErrorStatus,
    requests: MessageQueue<FmqRequestDatum>,
    results: MessageQueue<FmqResultDatum>,
) {
    let (mut reader, mut writer) = (requests.into_reader(), results.into_writer());
    let (mut request, mut result) = (Vec::new(), Vec::new());
    let packet = ResultPacket { status, ..ResultPacket::failed(ErrorStatus::GeneralFailure) };
    packet.encode(&mut result).unwrap();
    while reader.read(&mut request, Some(Duration::from_secs(2))).is_ok() {
        writer.write(&result, None).unwrap();
    }
}

/// The context of a burst that does not exist.
struct DeadContext;

impl IBurstContext for DeadContext {
    fn free_memory(&self, _slot: i32) -> Return<()> {
        Ok(())
    }
}

/// The context of a burst that lets go of nothing.
struct Keeping {
    _inner: Arc<dyn IBurstContext>,
}

impl IBurstContext for Keeping {
    fn free_memory(&self, _slot: i32) -> Return<()> {
        Ok(())
    }
}

/// Between a burst and its client's memory.
struct Asking {
    client: Arc<dyn IBurstCallback>,
    breach: Breach,
}

impl IBurstCallback for Asking {
    fn get_memories(&self, slots: &[i32]) -> Return<(i32, Vec<HidlMemory>)> {
        match self.breach {
            Breach::AsksForEachSlot => {
                let mut all = Vec::new();
                for slot in slots {
                    let (status, memories) = self.client.get_memories(&[*slot])?;
                    if status != NONE {
                        return Ok((status, Vec::new()));
                    }
                    all.extend(memories);
                }
                Ok((NONE, all))
            }
            Breach::AsksTwice => {
                self.client.get_memories(slots)?;
                self.client.get_memories(slots)
            }
            Breach::MakesUpMemory => {
                let (_, mut memories) = self.client.get_memories(slots)?;
                memories.resize_with(slots.len(), || memory(64));
                Ok((NONE, memories))
            }
            _ => self.client.get_memories(slots),
        }
    }
}

impl v1_3::IPreparedModel for BrokenModel {
    fn execute_1_3(
        &self,
        request: &v1_3::Request,
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout: OptionalTimeoutDuration,
        callback: Option<Arc<dyn v1_3::IExecutionCallback>>,
    ) -> Return<i32> {
        let (breach, inner) = (self.breach, Arc::clone(&self.inner));
        let request = &self.taken(request);
        let Some(client) = callback else {
            return Ok(if breach == Breach::ExecutesWithoutCallback { NONE } else { INVALID });
        };
        let measure = if breach == Breach::AnyMeasureIsFine { 0 } else { measure };
        let limited =
            deadline != OptionalTimePoint::None || loop_timeout != OptionalTimeoutDuration::None;
        match breach {
            Breach::LateIsReturned if limited => {
                let (status, shapes, timing) =
                    inner.execute_synchronously_1_3(request, measure, deadline, loop_timeout)?;
                client.notify_1_3(status, &shapes, timing)?;
                return Ok(status);
            }
            Breach::LateBeforeWrong if deadline == OptionalTimePoint::NanosecondsSinceEpoch(1) => {
                client.notify_1_3(MISSED, &[], Timing::NONE)?;
                return Ok(NONE);
            }
            Breach::AnyLengthIsFine
                if request.inputs.iter().any(|it| [12, 17].contains(&it.location.length)) =>
            {
                client.notify_1_3(NONE, &[], Timing::NONE)?;
                return Ok(NONE);
            }
            Breach::TellsTooEarly => {
                client.notify_1_3(NONE, &[], Timing::NONE)?;
                let request = request.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    inner.execute_synchronously_1_3(&request, measure, deadline, loop_timeout)
                });
                return Ok(NONE);
            }
            Breach::LooksForBuffersLate => {
                let request = request.clone();
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    let (status, shapes, timing) = inner
                        .execute_synchronously_1_3(&request, measure, deadline, loop_timeout)
                        .unwrap();
                    client.notify_1_3(status, &shapes, timing).unwrap();
                });
                return Ok(NONE);
            }
            Breach::ForgetsLaunchesOfLostModels => {
                let (request, life) = (request.clone(), Arc::downgrade(&self.life));
                std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(20));
                    if life.upgrade().is_some() {
                        let ended = inner.execute_synchronously_1_3(
                            &request,
                            measure,
                            deadline,
                            loop_timeout,
                        );
                        let (status, shapes, timing) = ended.unwrap();
                        client.notify_1_3(status, &shapes, timing).unwrap();
                    }
                });
                return Ok(NONE);
            }
            _ => {}
        }
        let ear = Some(Arc::new(ExecutionEar { client, breach }) as _);
        let status = inner.execute_1_3(request, measure, deadline, loop_timeout, ear)?;
        Ok(if breach == Breach::TellsOfWrongRequestsOnly { NONE } else { status })
    }

    fn execute_synchronously_1_3(
        &self,
        request: &v1_3::Request,
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        let in_buffer = is_in_buffer(request);
        let request = &self.taken(request);
        let answer =
            self.inner.execute_synchronously_1_3(request, measure, deadline, loop_timeout)?;
        match (self.breach, answer.0) {
            (Breach::AnyTokenIsFine, INVALID | FAILURE) if in_buffer => {
                return Ok((NONE, vec![], Timing::NONE));
            }
            (Breach::DimensionsFirst, FAILURE) if in_buffer => {
                return Ok((INVALID, vec![], Timing::NONE));
            }
            _ => {}
        }
        let differs = self.breach == Breach::DifferentWhenSynchronous && answer.0 == INVALID;
        Ok(if differs { (FAILURE, vec![], Timing::NONE) } else { answer })
    }

    fn execute_fenced(
        &self,
        request: &v1_3::Request,
        wait_for: &[Handle],
        measure: i32,
        deadline: OptionalTimePoint,
        loop_timeout: OptionalTimeoutDuration,
        duration: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn v1_3::IFencedExecutionCallback>>)> {
        let tamed = |limit: OptionalTimeoutDuration| match limit {
            OptionalTimeoutDuration::Unknown { .. }
                if self.breach == Breach::AnyTagBehindFences =>
            {
                OptionalTimeoutDuration::None
            }
            limit => limit,
        };
        let (loop_timeout, duration) = (tamed(loop_timeout), tamed(duration));
        let (status, fence, callback) = self.inner.execute_fenced(
            request,
            wait_for,
            measure,
            deadline,
            loop_timeout,
            duration,
        )?;
        let file = || std::fs::File::open("/dev/null").unwrap().into();
        Ok(match self.breach {
            Breach::FenceWithErrors if status != NONE => (status, Handle::of_fd(file()), None),
            Breach::LoadedFailBehindFences => (FAILURE, Handle::NULL, None),
            Breach::NoCallbackWithFence => (status, fence, None),
            Breach::WrongIsFailureBehindFences if status == INVALID => (FAILURE, fence, callback),
            Breach::FenceAndCallbackWithErrors if status != NONE => {
                (status, Handle::of_fd(file()), Some(Arc::new(Info::default())))
            }
            Breach::TimesOfFailures => {
                (status, fence, callback.map(|inner| Arc::new(Timed(inner)) as _))
            }
            Breach::AnotherInfoEachTime => (status, fence, Some(Arc::new(Info::default()))),
            _ => (status, fence, callback),
        })
    }
}

/// What became of an execution: something else whenever it is asked.
#[derive(Default)]
struct Info(AtomicU64);

impl v1_3::IFencedExecutionCallback for Info {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        let time = self.0.fetch_add(1, Ordering::Relaxed);
        Ok((NONE, Timing { time_on_device: time, time_in_driver: time }, Timing::NONE))
    }
}

/// What became of an execution, with times whatever that is.
struct Timed(Arc<dyn v1_3::IFencedExecutionCallback>);

impl v1_3::IFencedExecutionCallback for Timed {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        let (status, ..) = self.0.get_execution_info()?;
        let timing = Timing { time_on_device: 1, time_in_driver: 2 };
        Ok((status, timing, timing))
    }
}
