//! Drivers that do what they must not, used as devices: nothing hangs, nothing panics, and what they
//! did is said.

#[path = "../common/mod.rs"]
mod common;
mod describing;
mod executing;
mod preparing;

use common::add_constant;
use nnhal_hal::{
    Cancellation, Device, Error, ErrorStatus, ExecutionError, ExecutionOptions, HalVersion,
    PrepareOptions, PreparedModel, Request,
};
use nnhal_hidl::cast::Cast;
use nnhal_hidl::client::{self, Interface, Misbehaviour, Options};
use nnhal_hidl::v1_2::{CacheToken, OutputShape, Timing};
use nnhal_hidl::v1_3::{OptionalTimePoint, OptionalTimeoutDuration};
use nnhal_hidl::{
    Handle, HidlMemory, MQDescriptor, Return, TransportError, v1_0, v1_1, v1_2, v1_3,
};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const NONE: i32 = ErrorStatus::None.code();
const FAILURE: i32 = ErrorStatus::GeneralFailure.code();
const SMALL: i32 = ErrorStatus::OutputInsufficientSize.code();
/// No status of any version.
const STRANGE: i32 = 4711;

type PreparedCallback = Arc<dyn v1_3::IPreparedModelCallback>;
type ExecutionCallback = Arc<dyn v1_3::IExecutionCallback>;

/// A driver that does with callbacks what a test says, and otherwise nothing.
#[derive(Clone)]
struct Driver {
    prepare: Arc<dyn Fn(PreparedCallback) -> Return<i32> + Send + Sync>,
    supported: (i32, Vec<bool>),
    capabilities: v1_3::Capabilities,
    version_string: String,
    device_type: i32,
    extensions: Vec<v1_2::Extension>,
    cache_files: (u32, u32),
    allocated: (i32, bool, u32),
}

impl Driver {
    fn new() -> Self {
        let one = v1_0::PerformanceInfo { exec_time: 1.0, power_usage: 1.0 };
        Self {
            prepare: Arc::new(|callback| {
                callback.notify_1_3(NONE, Some(Arc::new(Model::new()))).map(|()| NONE)
            }),
            supported: (NONE, vec![true]),
            capabilities: v1_3::Capabilities {
                relaxed_float32to_float16_performance_scalar: one,
                relaxed_float32to_float16_performance_tensor: one,
                operand_performance: [3, 5]
                    .map(|operand_type| v1_2::OperandPerformance { operand_type, info: one })
                    .to_vec(),
                if_performance: one,
                while_performance: one,
            },
            version_string: "1".to_owned(),
            device_type: 1,
            extensions: vec![],
            cache_files: (0, 0),
            allocated: (NONE, true, 1),
        }
    }

    fn preparing(
        prepare: impl Fn(PreparedCallback) -> Return<i32> + Send + Sync + 'static,
    ) -> Self {
        Self { prepare: Arc::new(prepare), ..Self::new() }
    }

    fn device_with(self, options: Options) -> Arc<dyn Device> {
        let interface = Interface::V1_3(Arc::new(self));
        Arc::new(client::Device::new("test-driver", interface, options).unwrap())
    }

    fn device(self) -> Arc<dyn Device> {
        self.device_with(Options::default())
    }

    /// Why nothing can be done with what it says of itself.
    fn refused(self) -> String {
        let refused = client::from_v1_3("test-driver", Arc::new(self)).err().unwrap();
        assert_eq!(refused.status(), ErrorStatus::GeneralFailure);
        refused.to_string()
    }
}

impl v1_0::IDevice for Driver {
    fn get_capabilities(&self) -> Return<(i32, v1_0::Capabilities)> {
        Ok((FAILURE, v1_0::Capabilities::default()))
    }
    fn get_supported_operations(&self, _: &v1_0::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn prepare_model(
        &self,
        _: &v1_0::Model,
        _: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
    fn get_status(&self) -> Return<i32> {
        Ok(STRANGE)
    }
    fn provide(self: Arc<Self>, _: &mut Cast<'_>) {
        panic!("on purpose")
    }
}

impl v1_1::IDevice for Driver {
    fn get_capabilities_1_1(&self) -> Return<(i32, v1_1::Capabilities)> {
        Err(TransportError::DeadObject)
    }
    fn get_supported_operations_1_1(&self, _: &v1_1::Model) -> Return<(i32, Vec<bool>)> {
        Err(TransportError::DeadObject)
    }
    fn prepare_model_1_1(
        &self,
        _: &v1_1::Model,
        _: i32,
        _: Option<Arc<dyn v1_0::IPreparedModelCallback>>,
    ) -> Return<i32> {
        Err(TransportError::DeadObject)
    }
}

impl v1_2::IDevice for Driver {
    fn get_version_string(&self) -> Return<(i32, String)> {
        Ok((NONE, self.version_string.clone()))
    }
    fn get_type(&self) -> Return<(i32, i32)> {
        Ok((NONE, self.device_type))
    }
    fn get_capabilities_1_2(&self) -> Return<(i32, v1_2::Capabilities)> {
        Ok((STRANGE, v1_2::Capabilities::default()))
    }
    fn get_supported_extensions(&self) -> Return<(i32, Vec<v1_2::Extension>)> {
        Ok((NONE, self.extensions.clone()))
    }
    fn get_supported_operations_1_2(&self, _: &v1_2::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn get_number_of_cache_files_needed(&self) -> Return<(i32, u32, u32)> {
        Ok((NONE, self.cache_files.0, self.cache_files.1))
    }
    fn prepare_model_1_2(
        &self,
        _: &v1_2::Model,
        _: i32,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        _: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
    fn prepare_model_from_cache(
        &self,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        _: Option<Arc<dyn v1_2::IPreparedModelCallback>>,
    ) -> Return<i32> {
        panic!("on purpose")
    }
}

impl v1_3::IDevice for Driver {
    fn get_capabilities_1_3(&self) -> Return<(i32, v1_3::Capabilities)> {
        Ok((NONE, self.capabilities.clone()))
    }
    fn get_supported_operations_1_3(&self, _: &v1_3::Model) -> Return<(i32, Vec<bool>)> {
        Ok(self.supported.clone())
    }
    fn prepare_model_1_3(
        &self,
        _: &v1_3::Model,
        _: i32,
        _: i32,
        _: OptionalTimePoint,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        callback: Option<PreparedCallback>,
    ) -> Return<i32> {
        (self.prepare)(callback.unwrap())
    }
    fn prepare_model_from_cache_1_3(
        &self,
        _: OptionalTimePoint,
        _: &[Handle],
        _: &[Handle],
        _: &CacheToken,
        callback: Option<PreparedCallback>,
    ) -> Return<i32> {
        (self.prepare)(callback.unwrap())
    }
    fn allocate(
        &self,
        _: &v1_3::BufferDesc,
        _: &[Option<Arc<dyn v1_3::IPreparedModel>>],
        _: &[v1_3::BufferRole],
        _: &[v1_3::BufferRole],
    ) -> Return<(i32, Option<Arc<dyn v1_3::IBuffer>>, u32)> {
        let (status, buffer, token) = self.allocated;
        Ok((status, buffer.then(|| Arc::new(Buffer) as _), token))
    }
}

struct Buffer;

impl v1_3::IBuffer for Buffer {
    fn copy_to(&self, _: &HidlMemory) -> Return<i32> {
        Ok(STRANGE)
    }
    fn copy_from(&self, _: &HidlMemory, _: &[u32]) -> Return<i32> {
        panic!("on purpose")
    }
}

/// A prepared model that answers what a test says.
#[derive(Clone)]
struct Model {
    execute: Arc<dyn Fn(ExecutionCallback) -> Return<i32> + Send + Sync>,
    synchronous: (i32, Vec<OutputShape>, Timing),
    fenced: Arc<dyn Fn() -> (i32, Handle, bool) + Send + Sync>,
    burst: bool,
}

impl Model {
    fn new() -> Self {
        Self {
            execute: Arc::new(|callback| {
                callback.notify_1_3(NONE, &[], Timing::NONE).map(|()| NONE)
            }),
            synchronous: (NONE, vec![], Timing::NONE),
            fenced: Arc::new(|| (NONE, Handle::NULL, true)),
            burst: false,
        }
    }

    fn answering(status: i32, shapes: &[(&[u32], bool)], times: (u64, u64)) -> Self {
        let shapes = shapes.iter().map(|(dimensions, is_sufficient)| OutputShape {
            dimensions: dimensions.to_vec(),
            is_sufficient: *is_sufficient,
        });
        let timing = Timing { time_on_device: times.0, time_in_driver: times.1 };
        Self { synchronous: (status, shapes.collect(), timing), ..Self::new() }
    }

    fn executing(
        execute: impl Fn(ExecutionCallback) -> Return<i32> + Send + Sync + 'static,
    ) -> Self {
        Self { execute: Arc::new(execute), ..Self::new() }
    }

    fn prepared_with(self, options: Options) -> Arc<dyn PreparedModel> {
        let driver = Driver::preparing(move |callback| {
            callback.notify_1_3(NONE, Some(Arc::new(self.clone()))).map(|()| NONE)
        });
        prepare(&*driver.device_with(options)).unwrap()
    }

    /// Used synchronously.
    fn prepared(self) -> Arc<dyn PreparedModel> {
        self.prepared_with(Options::default())
    }

    /// Used by callbacks.
    fn prepared_asynchronous(self) -> Arc<dyn PreparedModel> {
        self.prepared_with(Options { asynchronous: true, ..Options::default() })
    }
}

impl v1_0::IPreparedModel for Model {
    fn execute(
        &self,
        _: &v1_0::Request,
        _: Option<Arc<dyn v1_0::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(STRANGE)
    }
}

impl v1_2::IPreparedModel for Model {
    fn execute_1_2(
        &self,
        _: &v1_0::Request,
        _: i32,
        _: Option<Arc<dyn v1_2::IExecutionCallback>>,
    ) -> Return<i32> {
        Ok(STRANGE)
    }
    fn execute_synchronously(
        &self,
        _: &v1_0::Request,
        _: i32,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok((STRANGE, vec![], Timing::NONE))
    }
    fn configure_execution_burst(
        &self,
        callback: Option<Arc<dyn v1_2::IBurstCallback>>,
        requests: &MQDescriptor,
        results: &MQDescriptor,
    ) -> Return<(i32, Option<Arc<dyn v1_2::IBurstContext>>)> {
        // What it is given works, whatever it makes of it.
        assert!(callback.is_some() && requests.grantors.len() == 4 && results.grantors.len() == 4);
        Ok((NONE, self.burst.then(|| Arc::new(DeadContext) as _)))
    }
}

/// A burst that no one serves.
struct DeadContext;

impl v1_2::IBurstContext for DeadContext {
    fn free_memory(&self, _: i32) -> Return<()> {
        panic!("on purpose")
    }
    fn ping(&self) -> Return<()> {
        Err(TransportError::DeadObject)
    }
}

impl v1_3::IPreparedModel for Model {
    fn execute_1_3(
        &self,
        _: &v1_3::Request,
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        callback: Option<ExecutionCallback>,
    ) -> Return<i32> {
        (self.execute)(callback.unwrap())
    }
    fn execute_synchronously_1_3(
        &self,
        _: &v1_3::Request,
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Vec<OutputShape>, Timing)> {
        Ok(self.synchronous.clone())
    }
    fn execute_fenced(
        &self,
        _: &v1_3::Request,
        _: &[Handle],
        _: i32,
        _: OptionalTimePoint,
        _: OptionalTimeoutDuration,
        _: OptionalTimeoutDuration,
    ) -> Return<(i32, Handle, Option<Arc<dyn v1_3::IFencedExecutionCallback>>)> {
        let (status, fence, callback) = (self.fenced)();
        Ok((status, fence, callback.then(|| Arc::new(Info) as _)))
    }
}

struct Info;

impl v1_3::IFencedExecutionCallback for Info {
    fn get_execution_info(&self) -> Return<(i32, Timing, Timing)> {
        // More on the device than in the driver (contract: TIME-2).
        let timing = Timing { time_on_device: 9, time_in_driver: 1 };
        Ok((NONE, timing, Timing { time_on_device: 1, time_in_driver: 2 }))
    }
}

fn prepare(device: &dyn Device) -> nnhal_hal::Result<Arc<dyn PreparedModel>> {
    device.prepare_model(&add_constant().model, HalVersion::V1_3, PrepareOptions::default())
}

fn misbehaviour(error: &Error) -> &Misbehaviour {
    assert_eq!(error.status(), ErrorStatus::GeneralFailure, "{error}");
    error.reason().unwrap_or_else(|| panic!("{error}"))
}
